"""The keys of a dataset's records: types, shares with bounds, lengths and frequent values, from a sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable.facts.statistics import statistics
from seekable.viewer.page import Page, Table

if TYPE_CHECKING:
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked

__all__ = ["stats"]

_SIZES = (1_000, 10_000, 100_000)
"""The samples that the page offers: 6, 44 and 390 ms of reading where the files are in memory."""


def stats(opened: Opened, asked: Asked) -> Page:
    """Return the statistics of a sample of a dataset.

    Raises:
        EndlessDataset: the data has no length, so no sample.
    """
    found, seed = opened.dataset(asked.name), asked.count("seed", default=0)
    n = asked.count("n", default=opened.sample, least=1, most=_SIZES[-1])
    key = ("statistics", asked.name, n, seed)
    survey = opened.kept.get(key, lambda: list(statistics(found.node, n=n, seed=seed))[-1])
    document = {"name": asked.name, "n": n, **survey.document()}
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
    table = Table(("key", "present", "of", "types", "distinct", "p50", "p99", "longest"), rows)
    needed = [size for size, smaller in zip(_SIZES, (0, *_SIZES), strict=False) if smaller < survey.size]
    larger = [size for size in needed if survey.done < min(size, survey.size)]
    return Page("stats", f"{asked.name}, statistics", document, {"survey": survey, "larger": larger}, table)
