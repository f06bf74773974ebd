"""The losses of a run by step, and their spikes, each with a link to its batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable.errors import KeyNotFound
from seekable.viewer.charts.sheet import THEMES
from seekable.viewer.facts.loss_log import spikes
from seekable.viewer.figures import loss_figure
from seekable.viewer.page import Page, PageRows, Svg

if TYPE_CHECKING:
    from seekable.viewer.facts.loss_log import ComparedLoss, LossLog
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked


def page(opened: Opened, asked: Asked) -> Page:
    """Return the losses from one step to another, and their spikes."""
    log, found = _part(opened, asked)
    document = {"name": asked.name, **loss_figure(log, found).document}
    header = ["step", "loss", "median", "mad", "times"]
    table = PageRows(header, [[each[key] for key in header] for each in document["spikes"]])
    ends = (
        {"start": int(log.steps[0]), "stop": int(log.steps[-1])}
        if log.steps.size
        else {"start": 0, "stop": 0}
    )
    return Page("loss", f"{asked.name}, loss", document, ends, table=table)


def chart(opened: Opened, asked: Asked) -> Svg:
    """Return the losses as a line, with a mark at each spike."""
    figure = loss_figure(*_part(opened, asked))
    return Svg(figure.draw(asked.choice("theme", THEMES)))  # type: ignore[arg-type]  # one of THEMES


def _part(opened: Opened, asked: Asked) -> tuple[LossLog, list[ComparedLoss]]:
    opened.pipeline(asked.name)
    log = opened.logs.get(asked.name)
    if log is None:
        message = (
            f"no log of the losses of {asked.name} is open: seekable view ... --log {asked.name}=train.jsonl"
        )
        raise KeyNotFound(message)
    low = asked.count("from", default=0)
    high = asked.count("to", default=int(log.steps[-1]))
    # Of all losses, because a spike is compared with those before it.
    return log.between(low, high), [spike for spike in spikes(log) if low <= spike.step <= high]
