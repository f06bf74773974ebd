"""Segments: rows of the objects of a table, which become entries of their own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.cli.kaldi.conversion import plain
from seekable.errors import CorruptTable, InvalidArgument
from seekable.kaldi.files.opening import open_rx

if TYPE_CHECKING:
    from seekable.kaldi.files.pipes import Pipes

__all__ = ["Segment", "read_segments"]

_WORDS = 4


@dataclass(frozen=True, slots=True)
class Segment:
    """Some rows of an object.

    Example:
        >>> Segment("b", "a", 1, 9).rows_of([5, 6, 7])
        [6, 7]
    """

    key: str
    """The key of the new entry."""

    old_key: str
    """The key of the object."""

    first: int
    """The first row, from 0."""

    end: int
    """The row behind the last one; rows behind the object's last one are left out."""

    def rows_of(self, value: Any) -> Any:
        """Return the rows of an object.

        Raises:
            InvalidArgument: the object has no rows, or the segment begins behind the last of them.
        """
        rows = plain(value)
        if not isinstance(rows, np.ndarray | list) or np.ndim(rows) == 0:
            raise InvalidArgument(f"the segment {self.key!r} needs an object with rows (got {value!r})")
        if self.first >= len(rows):
            raise InvalidArgument(
                f"the segment {self.key!r} begins at row {self.first}, and {self.old_key!r} has {len(rows)}"
            )
        return rows[self.first : self.end]


def read_segments(rxfilename: str, frame_shift: float | None, *, pipes: Pipes) -> list[Segment]:
    """Return the segments in a file, whose lines are ``KEY OLD-KEY START END``.

    Args:
        rxfilename: the extended filename.
        frame_shift: the time of a row in seconds, if start and end are times; None if they are rows. Times
            become rows by the division of single precision that Kaldi does, rounded toward zero.
        pipes: the commands that may run.

    Raises:
        CorruptTable: a line is of another form, or has no row; the message has the line.
        InvalidArgument: the frame shift is not above 0.
    """
    if frame_shift is not None and not 0 < frame_shift < math.inf:
        raise InvalidArgument(f"--frame-shift must be above 0 (got {frame_shift})")
    found = []
    with open_rx(rxfilename, header=False, pipes=pipes) as file:
        for number, line in enumerate(file, 1):
            words = line.decode("utf-8", "surrogateescape").split()
            rows = _rows(words, frame_shift)
            if rows is None:
                form = "KEY OLD-KEY START END, with 0 <= START < END"
                message = f"{rxfilename!r}: line {number:,} must be {form} (got {line[:80]!r})"
                raise CorruptTable(message)
            found.append(Segment(words[0], words[1], *rows))
    return found


def _rows(words: list[str], frame_shift: float | None) -> tuple[int, int] | None:
    """Return the first row and the row behind the last one; None if the words do not say that."""
    if len(words) != _WORDS:
        return None
    try:
        if frame_shift is None:
            first, end = (int(word) for word in words[2:])
        else:
            shift = float(np.float32(frame_shift))
            first, end = (int(float(word) / shift) for word in words[2:])
    except (ValueError, OverflowError):
        return None
    return (first, end) if 0 <= first < end else None
