"""The keys of a dataset's records: types, shares with bounds, lengths and frequent values, from a sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.errors import SeekableError
from seekable.formats.tokens.source.token_source import TokenSource
from seekable.viewer.facts.documents import json_safe
from seekable.viewer.facts.made_of import FROM_INDEX
from seekable.viewer.facts.statistics import Statistics, statistics
from seekable.viewer.facts.token_counts import token_estimate
from seekable.viewer.page import Page, PageRows, Redirect
from seekable.viewer.pages.job import shown_of
from seekable.viewer.pages.lengths import lengths_of

if TYPE_CHECKING:
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked

_SIZES = (1_000, 10_000, 100_000)
"""The samples that the page offers."""

_AT_ONCE = 2_000
"""A larger sample is read by a job."""


def stats(opened: Opened, asked: Asked) -> Page:
    """Return the statistics of a sample of a dataset, or what the job of the address read so far.

    Raises:
        EndlessDataset: the data has no length, so no sample.
        KeyNotFound: there is no such job.
    """
    document: dict[str, Any] = {"name": asked.name}
    shown: dict[str, Any] = {"job": None, "survey": None, "larger": []}
    if asked.query.get("job"):
        job = opened.jobs[asked.text("job")]
        survey = job.partial if isinstance(job.partial, Statistics) else None
        document["job"] = {**job.document(), "result": None}
        shown |= {"job": document["job"], **shown_of(job)}
    else:
        n, seed = _sample(opened, asked, most=_AT_ONCE)
        work = statistics(opened.dataset(asked.name).node, n=n, seed=seed)
        survey = opened.kept.get(("statistics", asked.name, n, seed), lambda: list(work)[-1])
    if survey is None:
        return Page("stats", f"{asked.name}, statistics", document, shown)
    document |= {"n": survey.of, **survey.document()}
    document["tokens"] = _tokens(opened, asked.name)
    needed = [size for size, smaller in zip(_SIZES, (0, *_SIZES), strict=False) if smaller < survey.size]
    shown["survey"] = survey
    shown["larger"] = [size for size in needed if survey.of < min(size, survey.size)]
    return Page("stats", f"{asked.name}, statistics", document, shown, _table(document))


def _tokens(opened: Opened, name: str) -> dict[str, Any] | None:
    """Return how many tokens all records have: by the index of token files, else by the tokenizer, if any."""
    node = opened.dataset(name).node
    if isinstance(node, TokenSource):
        lengths = lengths_of(opened, name)
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


def read(opened: Opened, asked: Asked) -> Redirect:
    """Start to read a larger sample, and return where its statistics are shown."""
    n, seed = _sample(opened, asked, most=_SIZES[-1])
    work = statistics(opened.dataset(asked.name).node, n=n, seed=seed)
    job = opened.jobs.start("statistics", (asked.name, n, seed), work)
    return Redirect(f"d/{asked.name}/stats?job={job.name}")


def _sample(opened: Opened, asked: Asked, *, most: int) -> tuple[int, int]:
    n = asked.count("n", default=min(opened.sample, most), least=1, most=most)
    return n, asked.count("seed", default=0)


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
