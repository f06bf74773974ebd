"""The lengths of all records of data, from its index: at once, or as a job where that takes longer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.errors import KeyNotFound
from seekable.viewer.charts.sheet import THEMES
from seekable.viewer.facts.lengths import PERCENTILES, LengthHistogram, has_lengths, length_histogram
from seekable.viewer.figures import lengths_figure
from seekable.viewer.page import Page, Redirect, Svg
from seekable.viewer.pages.job import shown_of

if TYPE_CHECKING:
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked

_AT_ONCE = 10_000_000
"""The lengths of so many records are counted in a quarter of a second; of more by a job."""


def page(opened: Opened, asked: Asked) -> Page:
    """Return the lengths of the records of data, or how far the job is that counts them.

    Raises:
        KeyNotFound: the index has no lengths, or there is no such job.
    """
    found = lengths_of(opened, asked.name)
    document: dict[str, Any] = {"name": asked.name}
    shown: dict[str, Any] = {"job": None, "words": None, "records": opened.dataset(asked.name).node.size}
    table = None
    if found is not None:
        figure = lengths_figure(asked.name, found)
        document |= figure.document
        table = figure.table
        shown["words"] = lengths_in_words(found)
    if asked.query.get("job"):
        job = opened.jobs[asked.text("job")]
        document["job"] = job.document()
        shown |= {"job": document["job"], **shown_of(job)}
    return Page("lengths", f"{asked.name}, lengths", document, shown, table=table)


def chart(opened: Opened, asked: Asked) -> Svg:
    """Return the lengths as a histogram; while a job counts them, of the first records.

    Raises:
        KeyNotFound: the index has no lengths, or they were not counted yet.
    """
    found = lengths_of(opened, asked.name)
    if found is None:
        message = (
            f"the lengths of {asked.name} were not counted yet: its page starts the job that counts them"
        )
        raise KeyNotFound(message)
    return Svg(lengths_figure(asked.name, found).draw(asked.choice("theme", THEMES)))  # type: ignore[arg-type]  # one of THEMES


def count(opened: Opened, asked: Asked) -> Redirect:
    """Start to count the lengths of all records, and return where they are shown."""
    job = opened.jobs.start("lengths", asked.name, length_histogram(opened.dataset(asked.name).node))
    return Redirect(f"d/{asked.name}/lengths?job={job.name}")


def lengths_of(opened: Opened, name: str) -> LengthHistogram | None:
    """Return the lengths of the records of data; None where no job has begun to count so many.

    Raises:
        KeyNotFound: the index has no lengths of these records.
    """
    node = opened.dataset(name).node
    if not has_lengths(node):
        message = f"the index of {name} has no lengths of records: it is made of tables, or of other data"
        raise KeyNotFound(message)
    if (node.size or 0) <= _AT_ONCE:
        return opened.kept.get(("lengths", name), lambda: list(length_histogram(node))[-1])
    partials = [job.partial for job in opened.jobs.all() if (job.kind, job.key) == ("lengths", name)]
    return next((partial for partial in partials if isinstance(partial, LengthHistogram)), None)


def lengths_in_words(found: LengthHistogram) -> list[tuple[str, str]]:
    """Return the mean, percentiles and extremes of lengths as names and texts; none without records.

    Example:
        >>> lengths_in_words(LengthHistogram(2, 2, 9, 4, 5, {50: 4, 95: 5, 99: 5}, None))
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
