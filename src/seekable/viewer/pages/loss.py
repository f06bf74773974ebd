"""The losses of a run by step, and their spikes, each with a link to its batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from seekable.charts.lines import lines
from seekable.charts.sheet import THEMES
from seekable.errors import KeyNotFound
from seekable.facts.documents import json_safe
from seekable.facts.loss_log import LossLog, spikes
from seekable.viewer.page import Page, Svg, Table

if TYPE_CHECKING:
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked

__all__ = ["chart", "page"]


def page(opened: Opened, asked: Asked) -> Page:
    """Return the losses from one step to another, and their spikes."""
    opened.pipeline(asked.name)
    log = _part(opened, asked)
    found = spikes(log)
    document = {
        "name": asked.name,
        **log.document(),
        "path": json_safe(log.path),
        "made_of": f"exact, from {log.steps.size:,} lines of the log",
        "spikes": [spike.document() for spike in found],
    }
    header = ["step", "loss", "median", "mad", "times"]
    table = Table(header, [[each[key] for key in header] for each in document["spikes"]])
    ends = (
        {"start": int(log.steps[0]), "stop": int(log.steps[-1])}
        if log.steps.size
        else {"start": 0, "stop": 0}
    )
    return Page("loss", f"{asked.name}, loss", document, ends, table=table)


def chart(opened: Opened, asked: Asked) -> Svg:
    """Return the losses as a line, with a mark at each spike."""
    log = _part(opened, asked)
    marks = [(spike.step, spike.loss) for spike in spikes(log)]
    theme = asked.choice("theme", THEMES)
    return Svg(lines(log.steps, log.losses, marks=marks, title="loss", theme=theme))  # type: ignore[arg-type]  # one of THEMES


def _part(opened: Opened, asked: Asked) -> LossLog:
    log = opened.log
    if log is None:
        message = "no log of losses is open: seekable view ... --log train.jsonl:step,loss"
        raise KeyNotFound(message)
    low = asked.count("from", default=0)
    high = asked.count("to", default=int(log.steps[-1]))
    inside = np.flatnonzero((log.steps >= low) & (log.steps <= high))
    return LossLog(log.path, log.steps[inside], log.losses[inside], log.left_out)
