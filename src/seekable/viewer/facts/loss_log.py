"""The losses that a trainer wrote to a log, and the spikes among them."""

from __future__ import annotations

import csv
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._arguments import checked_path
from seekable.errors import DataNotFound, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from seekable._typing import Int64s

BEFORE = 50
"""The number of losses that each one is compared with: those before it."""

MADS = 6.0
"""A spike is this many median absolute deviations above the median."""

_AT_ONCE = 1 << 14
"""The windows whose medians are found together: 6.5 MB of them."""


@dataclass(frozen=True, slots=True)
class LossLog:
    """The losses of a log, by ascending step."""

    path: str
    steps: Int64s
    losses: NDArray[np.float64]
    """The loss of each step; it can be NaN or infinite."""
    left_out: int
    """The number of lines without a step and a loss, such as those of an evaluation or one cut short."""

    def document(self) -> dict[str, Any]:
        """Return the path and the losses, JSON-safe: None for a loss that is not finite."""
        losses = [loss if np.isfinite(loss) else None for loss in self.losses.tolist()]
        return {"path": self.path, "steps": self.steps.tolist(), "losses": losses, "left_out": self.left_out}

    def loss_of(self, step: int) -> float | None:
        """Return the loss of a step; None if the log has no such step."""
        at = int(np.searchsorted(self.steps, step))
        is_there = at < self.steps.size and self.steps[at] == step
        return float(self.losses[at]) if is_there else None

    def between(self, first: int, last: int) -> LossLog:
        """Return the losses of the steps from ``first`` to ``last``, both included."""
        inside = np.flatnonzero((self.steps >= first) & (self.steps <= last))
        return LossLog(self.path, self.steps[inside], self.losses[inside], self.left_out)


@dataclass(frozen=True, slots=True)
class ComparedLoss:
    """A loss, and the 50 finite losses before it."""

    step: int
    loss: float
    median: float
    """The median of the losses before it."""
    mad: float
    """The median absolute deviation: the median distance of these losses to their median."""

    @property
    def times(self) -> float | None:
        """The distance of the loss above the median, in ``mad``; None if that is 0 or the loss not finite."""
        return (self.loss - self.median) / self.mad if self.mad and np.isfinite(self.loss) else None

    def document(self) -> dict[str, Any]:
        """Return the comparison, JSON-safe: None for a loss that is not finite."""
        loss = self.loss if np.isfinite(self.loss) else None
        return {"step": self.step, "loss": loss, "median": self.median, "mad": self.mad, "times": self.times}


def read_loss_log(path: str | os.PathLike[str], *, step: str = "step", loss: str = "loss") -> LossLog:
    """Return the losses of a log: lines of JSON, or CSV with a header where the name ends in ``.csv``.

    Where a step comes again, as after a resume, its last line counts.

    Args:
        path: the file.
        step: the field or column that has the step.
        loss: the field or column that has the loss.

    Raises:
        InvalidArgument: no line has both.
        DataNotFound: there is no such file.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     log = pathlib.Path(folder, "train.jsonl")
        ...     _ = log.write_text('{"step": 1, "loss": 2.5}' + chr(10) + '{"step": 2, "loss": 2.25}')
        ...     read_loss_log(log).losses.tolist()
        [2.5, 2.25]
    """
    shown = checked_path(path)
    if not os.path.isfile(path):
        message = f"there is no log of losses {shown!r}"
        raise DataNotFound(message)
    by_step: dict[int, float] = {}
    left_out, first = 0, None
    with open(path, encoding="utf-8", errors="replace", newline="") as file:
        for fields in _csv_lines(file) if shown.lower().endswith(".csv") else _json_lines(file):
            first = fields if first is None else first
            pair = _pair(fields, step, loss)
            if pair is None:
                left_out += 1
            else:
                by_step[pair[0]] = pair[1]
    if not by_step:
        has = ", ".join(map(repr, first)) if first else "none"
        message = (
            f"no line of {shown} has a number as {step!r} and as {loss!r} (the first line has the fields "
            f"{has}): name the fields, as in {shown}:step,loss"
        )
        raise InvalidArgument(message)
    steps = np.array(sorted(by_step), dtype=np.int64)
    losses = np.array([by_step[number] for number in steps.tolist()], dtype=np.float64)
    return LossLog(shown, steps, losses, left_out)


def spikes(log: LossLog) -> tuple[ComparedLoss, ...]:
    """Return the losses above median + 6 MAD of the 50 finite ones before them, and those not finite.

    A loss with fewer than 50 before it is not compared.

    Example:
        >>> losses = np.full(60, 2.0) + np.arange(60) % 3 / 100
        >>> losses[55] = 4.0
        >>> log = LossLog("train.jsonl", np.arange(60), losses, 0)
        >>> [(spike.step, spike.median) for spike in spikes(log)]
        [(55, 2.01)]
    """
    finite = np.isfinite(log.losses)
    values = log.losses[finite]
    before = np.cumsum(finite) - finite
    compared = np.flatnonzero(before >= BEFORE)
    found = []
    for start in range(0, compared.size, _AT_ONCE):
        at = compared[start : start + _AT_ONCE]
        windows = np.lib.stride_tricks.sliding_window_view(values, BEFORE)[before[at] - BEFORE]
        medians, mads = _medians(windows)
        high = ~(log.losses[at] <= medians + MADS * mads)
        columns = (log.steps[at], log.losses[at], medians, mads)
        found += [ComparedLoss(*row) for row in zip(*(each[high].tolist() for each in columns), strict=True)]
    return tuple(found)


def compared_loss(log: LossLog, step: int) -> ComparedLoss | None:
    """Return the loss of a step with the 50 finite ones before it; None if there are fewer, or no such step.

    Example:
        >>> log = LossLog("train.jsonl", np.arange(60), np.arange(60) / 2, 0)
        >>> compared_loss(log, 50)
        ComparedLoss(step=50, loss=25.0, median=12.25, mad=6.25)
    """
    loss = log.loss_of(step)
    values = log.losses[: np.searchsorted(log.steps, step)]
    before = values[np.isfinite(values)][-BEFORE:]
    if loss is None or before.size < BEFORE:
        return None
    median, mad = _medians(before[None])
    return ComparedLoss(step, loss, float(median[0]), float(mad[0]))


def _medians(windows: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the median and the median absolute deviation of each row."""
    medians = np.median(windows, axis=1)
    return medians, np.median(np.abs(windows - medians[:, None]), axis=1)


def _json_lines(lines: Any) -> Iterator[dict[str, Any]]:
    """Yield the object of each line; an empty one for any other line."""
    for line in lines:
        if line.strip():
            try:
                fields = json.loads(line)
            except (ValueError, RecursionError):
                fields = {}
            yield fields if isinstance(fields, dict) else {}


def _csv_lines(lines: Any) -> Iterator[dict[str, Any]]:
    """Yield the fields of each row; an empty one where the rest is not CSV."""
    try:
        yield from csv.DictReader(lines)
    except csv.Error:
        yield {}


def _pair(fields: dict[str, Any], step: str, loss: str) -> tuple[int, float] | None:
    """Return the step and the loss of a line; None if one of them is missing or not a number."""
    given = fields.get(step), fields.get(loss)
    if any(value is None or isinstance(value, bool) for value in given):
        return None
    try:
        number = float(given[0])  # type: ignore[arg-type]  # what is not a number raises
        pair = int(number), float(given[1])  # type: ignore[arg-type]  # as above
    except (TypeError, ValueError, OverflowError):
        return None
    return pair if pair[0] == number and 0 <= number < 1 << 53 else None
