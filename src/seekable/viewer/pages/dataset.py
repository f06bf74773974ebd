"""A dataset: its figures, the lengths of its records, their keys, and ten rows drawn at random."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.formats.tables.tables import TableSource
from seekable.nodes.display import explained
from seekable.viewer.facts.data_survey import data_facts
from seekable.viewer.facts.documents import json_safe
from seekable.viewer.facts.lengths import has_lengths
from seekable.viewer.facts.made_of import from_sample
from seekable.viewer.facts.reading import sample_rows
from seekable.viewer.facts.statistics import statistics
from seekable.viewer.page import Page
from seekable.viewer.pages.lengths import lengths_in_words, lengths_of
from seekable.viewer.pages.rows import table_of

if TYPE_CHECKING:
    from seekable.viewer.facts.statistics import Statistics
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked

_DRAWN = 10


def dataset(opened: Opened, asked: Asked) -> Page:
    """Return what a dataset is."""
    found = opened.dataset(asked.name)
    size, seed = found.size or 0, asked.count("seed", default=0)
    numbers = sample_rows(size, min(_DRAWN, size), seed)
    table, drawn = table_of(found, numbers)
    survey: Statistics | None = None
    if opened.scans and found.size:
        key = ("statistics", asked.name, opened.sample, 0)
        survey = opened.kept.get(key, lambda: list(statistics(found.node, n=opened.sample))[-1])
    document: dict[str, Any] = {
        "name": asked.name,
        "path": json_safe(opened.paths.get(asked.name, asked.name)),
        **data_facts(found.node),
        "nodes": [json_safe(line) for line in explained(found.node)],
        "columns": (
            {each.name: str(each.type) for each in found.node.schema}
            if isinstance(found.node, TableSource)
            else None
        ),
        "drawn": {"made_of": from_sample(int(numbers.size), of=size, seed=seed), "seed": seed, "rows": drawn},
    }
    if survey is not None:
        document["keys"] = survey.document()
    shown: dict[str, Any] = {"table": table, "survey": survey, "seed": seed, "lengths": None, "words": None}
    if has_lengths(found.node) and size:
        lengths = lengths_of(opened, asked.name)
        document["lengths"] = None if lengths is None else lengths.document()
        shown |= {"lengths": lengths, "words": [] if lengths is None else lengths_in_words(lengths)}
    return Page("dataset", asked.name, document, shown, table=table)
