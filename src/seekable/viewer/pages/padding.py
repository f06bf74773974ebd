"""The padding of the batches of a pipeline over some steps, by the index or by the records themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import InvalidArgument, KeyNotFound
from seekable.viewer.charts.sheet import THEMES
from seekable.viewer.facts.lengths import index_unit
from seekable.viewer.facts.mixture import usual_stop
from seekable.viewer.facts.padding import Padding, padding
from seekable.viewer.facts.token_counts import record_measure
from seekable.viewer.figures import padding_figure
from seekable.viewer.opened import after_end
from seekable.viewer.page import Page, Redirect, Svg
from seekable.viewer.pages.job import shown_of
from seekable.viewer.pages.odd import records_of

if TYPE_CHECKING:
    from collections.abc import Generator

    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked

_WORST = 10


def page(opened: Opened, asked: Asked) -> Page:
    """Return the padding from one step to another, the steps with most of it, and how far its job is."""
    start, stop = _window(opened, asked)
    loader = opened.pipeline(asked.name).loader
    found = _found(opened, asked)
    document: dict[str, Any] = {"name": asked.name, "from": start, "to": stop}
    shown: dict[str, Any] = {"job": None, "found": found, "worst": [], "start": start, "stop": stop}
    shown["by_index"] = index_unit(loader.dataset.node)
    shown["after_end"] = after_end(opened.pipeline(asked.name), stop - 1)
    table = None
    if found is not None:
        figure = padding_figure(asked.name, found)
        document |= figure.document
        table = figure.table
        order = np.argsort(-found.shares, kind="stable")[:_WORST].tolist()
        rows = list(figure.table.rows)
        shown["worst"] = [rows[at] for at in order]
    if asked.query.get("job"):
        job = opened.jobs[asked.text("job")]
        document["job"] = {**job.document(), "result": None}
        shown |= {"job": document["job"], **shown_of(job)}
    return Page("padding", f"{asked.name}, padding", document, shown, table=table)


def chart(opened: Opened, asked: Asked) -> Svg:
    """Return the padding of each step that was looked at as a line.

    Raises:
        KeyNotFound: the records were not read yet, and the index has no lengths.
    """
    found = _found(opened, asked)
    if found is None:
        message = f"the index of {asked.name} has no lengths: its page of padding reads the records"
        raise KeyNotFound(message)
    return Svg(padding_figure(asked.name, found).draw(asked.choice("theme", THEMES)))  # type: ignore[arg-type]  # one of THEMES


def read(opened: Opened, asked: Asked) -> Redirect:
    """Start to read the records of some steps, and return where their padding is shown."""
    start, stop = _window(opened, asked)
    job = opened.jobs.start("padding", (asked.name, start, stop), _read(opened, asked.name, start, stop))
    return Redirect(f"p/{asked.name}/padding?from={start}&to={stop}&job={job.name}")


def _window(opened: Opened, asked: Asked) -> tuple[int, int]:
    loader = opened.pipeline(asked.name).loader
    start = asked.count("from", default=loader.first_step)
    stop = asked.count("to", default=usual_stop(loader, start=start))
    if stop <= start:
        message = f"to= must be above from= (got {stop:,} and {start:,})"
        raise InvalidArgument(message)
    return start, stop


def _found(opened: Opened, asked: Asked) -> Padding | None:
    """Return the padding of the job of the address, or by the index; None where that has no lengths."""
    if asked.query.get("job"):
        partial = opened.jobs[asked.text("job")].partial
        return partial if isinstance(partial, Padding) else None
    start, stop = _window(opened, asked)
    loader = opened.pipeline(asked.name).loader
    if index_unit(loader.dataset.node) is None:
        return None
    work = padding(loader, start=start, stop=stop)
    return opened.kept.get(("padding", asked.name, start, stop), lambda: list(work)[-1])


def _read(opened: Opened, name: str, start: int, stop: int) -> Generator[Padding]:
    """Yield the padding by the records as they are in the files; no function of the pipeline runs."""
    loader, node = opened.pipeline(name).loader, records_of(opened, name)
    first = node.record(loader.position_of(start))
    measure = record_measure(first, text_key=opened.text_key, tokenizer=opened.tokenizer)
    yield from padding(loader, start=start, stop=stop, measure=measure, source=node)
