"""Facts as figures for pages and ``seekable plot``: the picture, the numbers that it draws, the document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.viewer.charts import areas, bars, histogram, lines
from seekable.viewer.curves import rule_words
from seekable.viewer.facts.json_documents import in_words, json_safe
from seekable.viewer.page import PageRows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from seekable.viewer.charts import Theme
    from seekable.viewer.facts.data_survey import FileSizes
    from seekable.viewer.facts.lengths import LengthHistogram
    from seekable.viewer.facts.loss_log import ComparedLoss, LossLog
    from seekable.viewer.facts.padding import Padding
    from seekable.viewer.facts.run_mixture import RunMixture, Schedule


@dataclass(frozen=True, slots=True)
class Figure:
    """One fact in three forms."""

    document: Mapping[str, Any]
    """The fact, JSON-safe."""

    table: PageRows
    """The numbers that the picture draws."""

    draw: Callable[[Theme], str]
    """Returns the picture as SVG."""


def lengths_figure(name: str, found: LengthHistogram) -> Figure:
    """Return the lengths of records as a histogram; the rows of its table are the bins."""
    edges, counts = (
        ([0, 1], []) if found.histogram is None else (found.histogram.edges, found.histogram.counts)
    )
    title = f"{name}: {in_words(found.done, 'record')} by length in {found.unit}"
    rows = [[low, high, count] for low, high, count in zip(edges, edges[1:], counts, strict=False)]

    def draw(theme: Theme) -> str:
        bins = list(counts) or [0]
        return histogram(edges, bins, title=title, x_name=found.unit, log=True, theme=theme)

    return Figure(found.document(), PageRows(["from", "below", "records"], rows), draw)


def mixture_figure(name: str, found: RunMixture, *, changes: Sequence[int] = ()) -> Figure:
    """Return a mixture as areas of what is delivered; a row is a source from one place to the next.

    Args:
        name: that of the run.
        found: the mixture.
        changes: the steps from which something was changed in the run: they get a line each, with its number.
    """
    steps = found.steps.tolist()
    rows = [
        [start, stop, source, plan, came]
        for start, stop, plans, cames in zip(
            steps, steps[1:], found.planned.tolist(), found.delivered.tolist(), strict=False
        )
        for source, plan, came in zip(found.names, plans, cames, strict=True)
    ]
    title = f"{name}: delivered {found.unit}, and the plan as lines"

    def draw(theme: Theme) -> str:
        rules = rule_words(changes)
        return areas(
            found.names, steps, found.delivered, found.planned, title=title, rules=rules, theme=theme
        )

    return Figure(found.document(), PageRows(["from", "to", "source", "planned", "delivered"], rows), draw)


def files_figure(name: str, found: FileSizes) -> Figure:
    """Return files as bars of their bytes, the largest first."""
    title = f"{name}: {in_words(len(found.names), 'file')} by size in bytes"

    def draw(theme: Theme) -> str:
        return bars(found.names, found.bytes, title=title, unit="bytes", theme=theme)

    rows = list(zip(found.names, found.records, found.bytes, strict=True))
    return Figure(found.document(), PageRows(["file", "records", "bytes"], rows), draw)


def loss_figure(log: LossLog, found: Sequence[ComparedLoss]) -> Figure:
    """Return losses as a line with a dot at each spike."""
    marks = {spike.step: spike.loss for spike in found}
    document = {
        **log.document(),
        "path": json_safe(log.path),
        "made_of": f"exact, from {in_words(log.steps.size, 'line')} of the log",
        "spikes": [spike.document() for spike in found],
    }
    rows = [
        [step, loss, int(step in marks)]
        for step, loss in zip(log.steps.tolist(), document["losses"], strict=True)
    ]

    def draw(theme: Theme) -> str:
        return lines(log.steps, log.losses, marks=list(marks.items()), title="loss", theme=theme)

    return Figure(document, PageRows(["step", "loss", "spike"], rows), draw)


def padding_figure(name: str, found: Padding) -> Figure:
    """Return the padding of steps as a line of its share in percent; a row is a step that was looked at."""
    columns = found.steps, found.held, found.padded, found.shares
    rows = [list(row) for row in zip(*(column.tolist() for column in columns), strict=True)]
    title = f"{name}: padding of each step, % of its {found.unit}"

    def draw(theme: Theme) -> str:
        return lines(found.steps, 100 * found.shares, title=title, from_zero=True, theme=theme)

    return Figure(found.document(), PageRows(["step", "held", "padded", "share"], rows), draw)


def schedule_figure(name: str, found: Schedule, *, start: int, stop: int) -> Figure:
    """Return the weights that hold from one step to another as areas; a row is a part of one change."""
    document = found.document()
    rows = [
        [change["step"], change["position"], source, weight, share]
        for change in document["changes"]
        for source, weight, share in zip(found.names, change["weights"], change["shares"], strict=True)
    ]
    begun = int(np.searchsorted(found.steps, start, side="right")) - 1
    edges = [start, *(step for step in found.steps[begun + 1 :] if step < stop), stop]
    shares = found.shares[begun : begun + len(edges) - 1]
    # The totals beside the areas are those of all steps, so that each row counts as often as it has steps.
    amounts = shares * np.diff(edges)[:, None]

    def draw(theme: Theme) -> str:
        return areas(found.names, edges, amounts, amounts, title=f"{name}: weights", theme=theme)

    return Figure(document, PageRows(["step", "position", "source", "weight", "share"], rows), draw)
