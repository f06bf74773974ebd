"""The states of lanes at the ends of parts, in one file, to which a line is added when a part is finished.

A line is written when the file of its part is whole. So a part that has a line need not be written again, and
each part can be written from the line of the part before it. Lines are not synced: after a crash of the
machine some are missing, and the work that they stand for is done again.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from seekable.writing.lane_part import LanePart

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["STATES", "StateLog"]

STATES = "states"
"""The name of the file. It has no suffix: it is no data, also to tools that read hidden files."""


class _Head(msgspec.Struct):
    """The content of a line without the states, which are read when they are needed."""

    done: LanePart


class _Line(msgspec.Struct):
    done: LanePart

    stages: list[Any]
    """The state of each stage of the lane after the part."""


class StateLog:
    """The parts of lanes that are finished, with the states after them; one process at a time uses a log."""

    def __init__(self, folder: str) -> None:
        """Read the log of a folder, which is made if it does not exist.

        A line that a kill left incomplete, and all behind it, is cut off.
        """
        os.makedirs(folder, exist_ok=True)
        self._path = os.path.join(folder, STATES)
        self.done: dict[tuple[int, int], LanePart] = {}
        """By lane and part, what is finished."""
        self._places: dict[tuple[int, int], tuple[int, int]] = {}
        """By lane and part, the first byte of the line, and the number of its bytes."""
        self._end = 0
        with open(self._path, "ab+") as file:
            file.seek(0)
            for head, size in _whole_lines(file):
                self._note(head.done, size)
            file.truncate(self._end)

    def add(self, done: LanePart, stages: list[Any]) -> None:
        """Write down that a part is finished, and the states after it."""
        line = msgspec.json.encode(_Line(done, stages)) + b"\n"
        with open(self._path, "ab") as file:
            file.write(line)
        self._note(done, len(line))

    def state(self, lane: int, part: int) -> list[Any] | None:
        """Return the state of a lane at the beginning of a part; None for its first state."""
        # A lane without slots in a part has no line for it.
        before = next((known for known in range(part - 1, -1, -1) if (lane, known) in self._places), None)
        if before is None:
            return None
        first, size = self._places[lane, before]
        with open(self._path, "rb") as file:
            file.seek(first)
            return msgspec.json.decode(file.read(size), type=_Line).stages

    def _note(self, done: LanePart, size: int) -> None:
        self.done[done.lane, done.part] = done
        self._places[done.lane, done.part] = self._end, size
        self._end += size


def _whole_lines(file: Any) -> Iterator[tuple[_Head, int]]:
    """Yield the lines up to the first that is incomplete or damaged, and their sizes in bytes."""
    for line in file:
        try:
            head = msgspec.json.decode(line, type=_Head)
        except ValueError:
            return
        if not line.endswith(b"\n"):
            return
        yield head, len(line)
