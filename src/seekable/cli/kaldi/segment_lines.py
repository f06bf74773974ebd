"""Segments: parts of the objects of a table, which become entries of their own."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.cli.kaldi.conversion import plain
from seekable.errors import CorruptTable, InvalidArgument
from seekable.formats.kaldi.directory.segments import parse_segment
from seekable.formats.kaldi.files.opening import open_rx

if TYPE_CHECKING:
    from seekable.formats.kaldi.files.pipes import Pipes

__all__ = ["Part", "read_parts"]

_WORDS = 4


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an object."""

    key: str
    """The key of the new entry."""

    old_key: str
    """The key of the object."""

    cut: Callable[[Any], Any]
    """Returns the part of the object; raises a SeekableError if the object does not have it."""


def read_parts(rxfilename: str, holder: str, frame_shift: float | None, *, pipes: Pipes) -> list[Part]:
    """Return the parts that the lines of a file describe: ``KEY OLD-KEY START END``.

    Of a wave, start and end are seconds, -1 is its end, and the number of a channel may follow, as Kaldi's
    ``extract-segments`` has it. Of other objects they are rows, the last one excluded, as ``extract-rows``
    has it; rows behind the last one of the object are left out.

    Args:
        rxfilename: the extended filename.
        holder: the name of the holder of the objects.
        frame_shift: the time of a row in seconds, if start and end are times; None if they are rows. Times
            become rows by the division of single precision that Kaldi does, rounded toward zero.
        pipes: the commands that may run.

    Raises:
        CorruptTable: a line is of another form, or has no row; the message has the line.
        InvalidArgument: the frame shift is not above 0, or the objects are waves.
    """
    if frame_shift is not None and (holder == "wave" or not 0 < frame_shift < math.inf):
        found = "waves, whose segments have seconds" if holder == "wave" else str(frame_shift)
        raise InvalidArgument(f"--frame-shift must be above 0, and is for objects with rows (got {found})")
    parse = _of_wave if holder == "wave" else partial(_of_rows, frame_shift=frame_shift)
    parts = []
    with open_rx(rxfilename, header=False, pipes=pipes) as file:
        for number, line in enumerate(file, 1):
            try:
                parts.append(parse(line))
            except CorruptTable as error:
                message = f"{rxfilename!r}: line {number:,}: {error}"
                raise CorruptTable(message) from None
    return parts


def _of_wave(line: bytes) -> Part:
    segment = parse_segment(line)
    return Part(segment.key, segment.recording, segment.cut)


def _of_rows(line: bytes, *, frame_shift: float | None) -> Part:
    words = line.decode("utf-8", "surrogateescape").split()
    bounds = _bounds(words, frame_shift)
    if bounds is None:
        message = f"expected KEY OLD-KEY START END, with 0 <= START < END, found {line[:80]!r}"
        raise CorruptTable(message)
    key, old_key = words[:2]
    return Part(key, old_key, lambda value: _rows(value, *bounds, key=key, old_key=old_key))


def _bounds(words: list[str], frame_shift: float | None) -> tuple[int, int] | None:
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


def _rows(value: Any, first: int, end: int, *, key: str, old_key: str) -> Any:
    rows = plain(value)
    if not isinstance(rows, list) and not (isinstance(rows, np.ndarray) and rows.ndim):
        raise InvalidArgument(f"the segment {key!r} needs an object with rows (got a {type(value).__name__})")
    if first >= len(rows):
        raise InvalidArgument(f"the segment {key!r} begins at row {first}, and {old_key!r} has {len(rows)}")
    return rows[first:end]
