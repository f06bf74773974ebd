"""The losses of a run, beside those of others: curves, spikes, and what each run has at one step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.dataset.dataset import Dataset
from seekable.errors import InvalidArgument, KeyNotFound
from seekable.loader.loader import Loader
from seekable.nodes.node import node_of
from seekable.viewer.charts import LEFT
from seekable.viewer.curves import CURVES_RIGHT, CURVES_WIDTH, MOST_CURVES, Curve, curves, rule_words
from seekable.viewer.fact_figures import loss_figure
from seekable.viewer.facts.json_documents import json_safe
from seekable.viewer.facts.loss_log import compared_loss, spikes
from seekable.viewer.facts.named_sources import source_names
from seekable.viewer.facts.saved_state import journal_facts
from seekable.viewer.opened import after_end
from seekable.viewer.page import Page, PageRows, Svg

if TYPE_CHECKING:
    from seekable.viewer.facts.loss_log import ComparedLoss, LossLog
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked

_HEADER = ("step", "loss", "median", "mad", "times")


def loss_page(opened: Opened, asked: Asked) -> Page:
    """Return the losses from one step to another, their spikes, and those of other runs beside them."""
    log, found = _losses(opened, asked)
    others = _others(opened, asked)
    start, stop = _window(opened, asked, others)
    at = asked.optional("at")
    document: dict[str, Any] = {"name": asked.name, **loss_figure(log, found).document}
    document["others"] = [
        {"name": name, **opened.logs[name].between(start, stop).document(), "path": _path(opened.logs[name])}
        for name in others
    ]
    if at is not None:
        document["at"] = [_at_step(opened, name, at) for name in (asked.name, *others)]
    if changed := _journal(opened, asked.name):
        root = opened.pipeline(asked.name).root
        names = source_names(node_of(root)) if isinstance(root, Dataset) else ()
        document["journal"] = journal_facts(changed, names)
    shown = {
        "start": start,
        "stop": stop,
        "at": at,
        "runs": [name for name in opened.logs if name != asked.name],
        "plot": {"left": LEFT, "right": CURVES_RIGHT, "width": CURVES_WIDTH},
        "ends": {spike.step: _end_of(opened, asked.name, spike.step) for spike in found},
        "is_zoomed": "from" in asked.query or "to" in asked.query,
    }
    table = PageRows(_HEADER, [[each[key] for key in _HEADER] for each in document["spikes"]])
    return Page("loss", f"{asked.name}, loss", document, shown, table=table)


def loss_chart(opened: Opened, asked: Asked) -> Svg:
    """Return the losses of the runs as curves, with a mark at each spike of the first of them."""
    log, found = _losses(opened, asked)
    others = _others(opened, asked)
    start, stop = _window(opened, asked, others)
    drawn = [Curve(asked.name, log.steps, log.losses, [(each.step, each.loss) for each in found])]
    for name in others:
        part = opened.logs[name].between(start, stop)
        drawn.append(Curve(name, part.steps, part.losses))
    rules = rule_words([entry.at for entry in _journal(opened, asked.name)])
    if (at := asked.optional("at")) is not None:
        rules.append((at, f"step {at:,}"))
    return Svg(curves(drawn, title="loss", rules=rules, theme=asked.theme))


def _losses(opened: Opened, asked: Asked) -> tuple[LossLog, list[ComparedLoss]]:
    """Return the losses of the run from one step to another, and the spikes among them.

    Raises:
        KeyNotFound: no log of the run is open.
    """
    opened.pipeline(asked.name)
    log = opened.logs.get(asked.name)
    if log is None:
        message = (
            f"no log of the losses of {asked.name} is open: seekable view ... --log {asked.name}=train.jsonl"
        )
        raise KeyNotFound(message)
    low, high = _window(opened, asked, _others(opened, asked))
    # Spikes are found among all losses, because each is compared with those before it.
    return log.between(low, high), [spike for spike in spikes(log) if low <= spike.step <= high]


def _window(opened: Opened, asked: Asked, others: list[str]) -> tuple[int, int]:
    """Return the first and the last step that are shown: by default those of all logs."""
    logs = [opened.logs[name] for name in (asked.name, *others)]
    low = asked.count("from", default=min(int(log.steps[0]) for log in logs))
    high = asked.count("to", default=max(int(log.steps[-1]) for log in logs))
    if high < low:
        message = f"to= must not be below from= (got {high:,} and {low:,})"
        raise InvalidArgument(message)
    return low, high


def _others(opened: Opened, asked: Asked) -> list[str]:
    """Return the other runs whose losses are drawn: those that are named, or all with a log of their own.

    Raises:
        KeyNotFound: a run has no log.
    """
    if "with" in asked.query:
        names = [name for name in asked.text("with").split(",") if name and name != asked.name]
        for name in names:
            if name not in opened.logs:
                message = f"no log of a run {name[:40]!r} is open (there are: {', '.join(opened.logs)})"
                raise KeyNotFound(message)
    else:
        names = [name for name in opened.logs if opened.logs[name] is not opened.logs.get(asked.name)]
    return list(dict.fromkeys(names))[: MOST_CURVES - 1]


def _at_step(opened: Opened, name: str, step: int) -> dict[str, Any]:
    """Return the loss of a run at a step, compared with those before it; None for what is not known."""
    log = opened.logs[name]
    loss, compared = log.loss_of(step), compared_loss(log, step)
    known = dict.fromkeys(("median", "mad", "times")) if compared is None else compared.document()
    finite = loss if loss is not None and np.isfinite(loss) else None
    return {**known, "name": name, "step": step, "loss": finite, "after_end": _end_of(opened, name, step)}


def _end_of(opened: Opened, name: str, step: int) -> str | None:
    """Return in words that a run did not reach a step; None where nothing says so, as of a stream."""
    found = opened.pipeline(name)
    return None if found.is_stream else after_end(found, step)


def _journal(opened: Opened, name: str) -> tuple[Any, ...]:
    pipeline = opened.pipeline(name).pipeline
    return pipeline.journal if isinstance(pipeline, Loader) else ()


def _path(log: LossLog) -> Any:
    return json_safe(log.path)
