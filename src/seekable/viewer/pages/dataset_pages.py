"""A dataset: its figures, and the lengths, keys and values of its records, from the index and samples."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from seekable.errors import KeyNotFound, SeekableError
from seekable.formats.tables.tables import TableSource
from seekable.formats.tokens.token_source import TokenSource
from seekable.nodes.display import explained
from seekable.nodes.node import node_of
from seekable.viewer.charts import bars, histogram
from seekable.viewer.fact_figures import lengths_figure
from seekable.viewer.facts.data_survey import data_facts
from seekable.viewer.facts.filtered_rows import is_quick
from seekable.viewer.facts.histogram import PERCENTILES
from seekable.viewer.facts.json_documents import json_safe
from seekable.viewer.facts.key_paths import path_of, path_text
from seekable.viewer.facts.key_statistics import EMPTY, MISSING, Statistics, field, statistics
from seekable.viewer.facts.lengths import LengthHistogram, has_lengths, length_histogram
from seekable.viewer.facts.reading import FROM_INDEX, from_sample, sample_rows
from seekable.viewer.facts.row_conditions import subject_text
from seekable.viewer.facts.token_counts import token_estimate
from seekable.viewer.page import Page, PageRows, Redirect, Svg
from seekable.viewer.pages.job import SOON_SECONDS, AskedJob, PageWork, asked_job, result_of, started
from seekable.viewer.pages.page_records import data_key, page_records, rows_looked_at
from seekable.viewer.pages.row_table import table_of
from seekable.viewer.render import one_line

if TYPE_CHECKING:
    from seekable.viewer.facts.histogram import Histogram
    from seekable.viewer.facts.key_statistics import FieldFacts
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked

_DRAWN = 10


_SIZES = (1_000, 10_000, 100_000)
"""The samples that the page offers."""

_MOST_READ = 10_000
"""A larger sample is read where a button asks for it."""

_CHARTS = ("lengths", "numbers", "values")

_COUNTED_AT_ONCE = 10_000_000
"""The lengths of so many records are counted in a quarter of a second; of more by a job."""


def dataset(opened: Opened, asked: Asked) -> Page:
    """Return what a dataset is."""
    found = opened.dataset(asked.name)
    node = node_of(found)
    size, seed = node.size or 0, asked.count("seed", default=0)
    numbers = sample_rows(size, min(_DRAWN, size), seed)
    began = time.monotonic()
    job = _survey(opened, asked, seconds=0)
    records = table_of(opened, asked, page_records(opened, asked, numbers))
    if job.document:
        # Both are read at the same time; a program waits until all is there.
        left = max(0.0, SOON_SECONDS - (time.monotonic() - began))
        job = _survey(opened, asked, seconds=None if "as" in asked.query else left)
    survey: Statistics | None = job.partial
    document: dict[str, Any] = {
        "name": asked.name,
        "path": json_safe(opened.paths.get(asked.name, asked.name)),
        **data_facts(node),
        "nodes": [json_safe(line) for line in explained(node)],
        "columns": (
            {each.name: str(each.type) for each in node.schema} if isinstance(node, TableSource) else None
        ),
        "drawn": {
            "made_of": from_sample(int(numbers.size), of=size, seed=seed),
            "seed": seed,
            "rows": records.places,
        },
        **job.document,
    }
    if survey is not None:
        document["keys"] = survey.document()
    shown: dict[str, Any] = {
        "records": records,
        "job_live": False,
        **job.shown,
        "survey": survey,
        "seed": seed,
        "reading": not records.is_read,
        "lengths": None,
        "words": None,
    }
    if has_lengths(node) and size:
        lengths = _lengths_of(opened, asked.name)
        document["lengths"] = None if lengths is None else lengths.document()
        shown |= {"lengths": lengths, "words": [] if lengths is None else _lengths_in_words(lengths)}

    def facts() -> dict[str, Any]:
        return {"drawn": {**document["drawn"], "rows": records.documents()}}

    return Page("dataset", asked.name, document, shown, table=records.table, facts=facts)


def _survey(opened: Opened, asked: Asked, *, seconds: float | None) -> AskedJob:
    """Return the statistics of a sample; with a job where they take longer than a page may."""
    node = node_of(opened.dataset(asked.name))
    if not opened.scans or not node.size:
        return AskedJob()
    return _statistics(opened, asked.name, rows_looked_at(opened, asked.name), 0, seconds)


def _statistics(opened: Opened, name: str, n: int, seed: int, seconds: float | None) -> AskedJob:
    node, key = node_of(opened.dataset(name)), (*data_key(opened, name), n, seed)
    work = PageWork("statistics", key, partial(statistics, node, n=n, seed=seed), at_once=True)
    return result_of(opened, work, small=is_quick(node), seconds=seconds)


def stats(opened: Opened, asked: Asked) -> Page:
    """Return the statistics of a sample, or what the job of the address read so far.

    Raises:
        EndlessDataset: the data has no length, so that no sample can be drawn.
        KeyNotFound: there is no such job.
    """
    job = asked_job(opened, asked)
    if not job.document:
        seconds = None if "as" in asked.query else SOON_SECONDS
        job = _statistics(opened, asked.name, *_sample(opened, asked, most=_MOST_READ), seconds)
    document: dict[str, Any] = {"name": asked.name, **job.document}
    shown: dict[str, Any] = {"survey": None, "larger": [], **job.shown}
    survey = job.partial if isinstance(job.partial, Statistics) else None
    if survey is None:
        return Page("stats", f"{asked.name}, statistics", document, shown)
    document |= {"n": survey.of, **survey.document()}
    document["tokens"] = _tokens(opened, asked.name)
    needed = [size for size, smaller in zip(_SIZES, (0, *_SIZES), strict=False) if smaller < survey.size]
    shown["survey"] = survey
    shown["larger"] = [size for size in needed if survey.of < min(size, survey.size)]
    return Page("stats", f"{asked.name}, statistics", document, shown, _table(document))


def _tokens(opened: Opened, name: str) -> dict[str, Any] | None:
    """Return how many tokens all records have, from the index of token files or by the tokenizer."""
    node = node_of(opened.dataset(name))
    if isinstance(node, TokenSource):
        lengths = _lengths_of(opened, name)
        total = None if lengths is None or lengths.done < lengths.of else lengths.total
        return None if total is None else {"count": total, "low": total, "high": total, "made_of": FROM_INDEX}
    if opened.tokenizer is None:
        return None

    def make() -> dict[str, Any]:
        try:
            return token_estimate(node, opened.tokenizer, text_key=opened.text_key).document()
        except SeekableError as error:
            return {"count": None, "unknown": json_safe(str(error))}

    return opened.kept.get(("tokens", name), make)


def read_stats(opened: Opened, asked: Asked) -> Redirect:
    """Start to read a larger sample, and return where its statistics are shown."""
    n, seed = _sample(opened, asked, most=_SIZES[-1])
    work = statistics(node_of(opened.dataset(asked.name)), n=n, seed=seed)
    key = (*data_key(opened, asked.name), n, seed)
    return started(opened, asked, "statistics", key, work, f"d/{asked.name}/stats?job={{job}}")


def _sample(opened: Opened, asked: Asked, *, most: int) -> tuple[int, int]:
    usual = rows_looked_at(opened, asked.name)
    most = max(most, usual)
    return asked.count("n", default=usual or 1, least=1, most=most), asked.count("seed", default=0)


def _table(document: dict[str, Any]) -> PageRows:
    rows = [
        [
            each["key"],
            each["present"]["count"],
            each["present"]["of"],
            " ".join(kind["type"] for kind in each["types"]),
            each["distinct"],
            *((each["lengths"] or {}).get(name) for name in ("p50", "p99", "longest")),
        ]
        for each in document["keys"]
    ]
    return PageRows(("key", "present", "of", "types", "distinct", "p50", "p99", "longest"), rows)


def field_page(opened: Opened, asked: Asked) -> Page:
    """Return the values of a key in a sample.

    Raises:
        InvalidArgument: the key is not written as a key.
    """
    path = path_of(asked.text("key"))
    job = _field_found(opened, asked, None if "as" in asked.query else SOON_SECONDS)
    document: dict[str, Any] = {"name": asked.name, "key": path_text(path), **job.document}
    shown: dict[str, Any] = {
        "found": None,
        "key": path_text(path),
        "subject": subject_text(path),
        **job.shown,
    }
    found, title = job.partial, f"{asked.name}, {path_text(path)}"
    if found is None:
        return Page("field", title, document, shown)
    key = found.key
    table = PageRows(
        ("value", "count", "of"), [(each.value, each.share.count, each.share.of) for each in key.top]
    )
    kinds = [name for name, _ in key.types]
    odd = [name for name in (MISSING, EMPTY, *kinds[1:]) if name in found.rows]
    charts = [name for name in _CHARTS[:2] if _histogram(found, name) is not None]
    charts = ["values"] if key.is_label else charts
    shown |= {"found": found, "odd": odd, "charts": charts}
    return Page("field", title, document | found.document(), shown, table)


def field_chart(opened: Opened, asked: Asked) -> Svg:
    """Return the lengths, or the numbers, of a key as a histogram; the values of a label as bars.

    Raises:
        KeyNotFound: its values have none.
    """
    found, name = _field_found(opened, asked, None).partial, asked.choice("of", _CHARTS)
    key, theme = path_text(found.key.path), asked.theme
    if name == "values" and found.key.is_label:
        names = [one_line(each.value).striptags() for each in found.key.top]
        counts = [each.share.count for each in found.key.top]
        title = f"{asked.name}: values of {key}"
        return Svg(bars(names, counts, title=title, unit="values", most=len(names), theme=theme))
    bins = _histogram(found, name) if name != "values" else None
    if bins is None:
        message = f"the values of {key} have no {name}"
        raise KeyNotFound(message)
    unit = found.key.lengths.unit if name == "lengths" and found.key.lengths is not None else "value"
    edges = bins.edges if len(set(bins.edges)) > 1 else (bins.edges[0], bins.edges[0] + 1)
    return Svg(
        histogram(
            edges,
            bins.counts,
            title=f"{asked.name}: {name} of {key}",
            x_name=unit,
            log=bins.scale == "log",
            theme=theme,
        )
    )


def _histogram(found: FieldFacts, name: str) -> Histogram | None:
    return found.lengths if name == "lengths" else found.numbers


def _field_found(opened: Opened, asked: Asked, seconds: float | None) -> AskedJob:
    """Return the values of a key in a sample; with a job where they take longer than some seconds.

    Raises:
        SeekableError: they cannot be read, and there was no limit of time.
    """
    node, path = node_of(opened.dataset(asked.name)), path_of(asked.text("key"))
    n, seed = _sample(opened, asked, most=_MOST_READ)
    key = (*data_key(opened, asked.name), path, n, seed)
    work = PageWork("field", key, partial(field, node, path, n=n, seed=seed), at_once=True)
    job = result_of(opened, work, small=is_quick(node), anew=seconds is None, seconds=seconds)
    if seconds is None and job.job is not None and job.job.error is not None:
        raise job.job.error
    return job


def lengths_page(opened: Opened, asked: Asked) -> Page:
    """Return the lengths of the records of data, or how far the job is that counts them.

    Raises:
        KeyNotFound: the index has no lengths, or there is no such job.
    """
    found, job = _lengths_of(opened, asked.name), asked_job(opened, asked, has_result=True)
    document: dict[str, Any] = {"name": asked.name, **job.document}
    shown: dict[str, Any] = {"words": None, "records": node_of(opened.dataset(asked.name)).size, **job.shown}
    table = None
    if found is not None:
        figure = lengths_figure(asked.name, found)
        document |= figure.document
        table = figure.table
        shown["words"] = _lengths_in_words(found)
    return Page("lengths", f"{asked.name}, lengths", document, shown, table=table)


def lengths_chart(opened: Opened, asked: Asked) -> Svg:
    """Return the lengths as a histogram; while a job counts them, of the first records.

    Raises:
        KeyNotFound: the index has no lengths, or they were not counted yet.
    """
    found = _lengths_of(opened, asked.name)
    if found is None:
        message = (
            f"the lengths of {asked.name} were not counted yet: its page starts the job that counts them"
        )
        raise KeyNotFound(message)
    return Svg(lengths_figure(asked.name, found).draw(asked.theme))


def count_lengths(opened: Opened, asked: Asked) -> Redirect:
    """Start to count the lengths of all records, and return where they are shown."""
    work = length_histogram(node_of(opened.dataset(asked.name)))
    return started(opened, asked, "lengths", asked.name, work, f"d/{asked.name}/lengths?job={{job}}")


def _lengths_of(opened: Opened, name: str) -> LengthHistogram | None:
    """Return the lengths of the records of data; None where no job has begun to count so many.

    Raises:
        KeyNotFound: the index has no lengths of these records.
    """
    node = node_of(opened.dataset(name))
    if not has_lengths(node):
        message = f"the index of {name} has no lengths of records: it is made of tables, or of other data"
        raise KeyNotFound(message)
    if (node.size or 0) <= _COUNTED_AT_ONCE:
        return opened.kept.last(("lengths", name), length_histogram(node))
    partials = [job.partial for job in opened.jobs.all() if (job.kind, job.key) == ("lengths", name)]
    return next((partial for partial in partials if isinstance(partial, LengthHistogram)), None)


def _lengths_in_words(found: LengthHistogram) -> list[tuple[str, str]]:
    """Return the mean, percentiles and extremes of lengths as names and texts; none without records.

    Example:
        >>> _lengths_in_words(LengthHistogram(2, 2, 9, 4, 5, {50: 4, 95: 5, 99: 5}, None))
        [('mean', '4.5'), ('shortest', '4'), ('p50', '4'), ('p95', '5'), ('p99', '5'), ('longest', '5')]
    """
    if found.mean is None:
        return []
    shown = {
        "shortest": found.shortest,
        **{f"p{percent}": found.percentiles[percent] for percent in PERCENTILES},
        "longest": found.longest,
    }
    return [("mean", f"{found.mean:,.1f}"), *((name, f"{length:,}") for name, length in shown.items())]
