"""Whether worker processes are worth their start, told before the first file is written."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from seekable.errors import InvalidArgument
from seekable.parallel.pickling import sent

if TYPE_CHECKING:
    from seekable.dataset.base import Dataset
    from seekable.dataset.evaluate import Means

__all__ = ["started_where_that_pays"]

_WARM_ROWS, _ROWS = 4, 60
_SECONDS = 0.5
_WORTH_SECONDS = 4.0


def started_where_that_pays(using: Means, dataset: Dataset, rows: range, *, files: int, job: Any) -> Means:
    """Return the means to write files with: workers at once, where a few records take so long that it pays.

    `evaluate` looks after the first run of work, and here that is a file, which may take an hour.

    Args:
        using: what may be used.
        dataset: what is read.
        rows: those of the first file.
        files: how many there are to be written.
        job: what workers would be sent.
    """
    using = replace(using, workers=max(1, min(files, using.workers)))
    if using.executor is not None or using.workers == 1 or not using.patience_seconds:
        return using
    seconds = _seconds_a_row(dataset, rows) * len(rows) * files
    if seconds * (1 - 1 / using.workers) < _WORTH_SECONDS:
        return using
    try:
        sent(job, way_out="")
    except InvalidArgument:
        return using
    return replace(using, patience_seconds=0.0)


def _seconds_a_row(dataset: Dataset, rows: range) -> float:
    """Read some records, of which the first do not count: files are opened for them."""
    for row in rows[:_WARM_ROWS]:
        dataset.record(row)
    begun, read = time.monotonic(), 0
    for row in rows[_WARM_ROWS : _WARM_ROWS + _ROWS]:
        dataset.record(row)
        read += 1
        if time.monotonic() - begun > _SECONDS:
            break
    return (time.monotonic() - begun) / max(1, read)
