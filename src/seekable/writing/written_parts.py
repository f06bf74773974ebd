"""The written part of a stream: parts of lanes, their states, the pieces that exist, the finished files.

A *part* of a stream is a range of slots, the same for all lanes, and each lane has the items of its own slots
in it. Slots of a lane that has ended have no item.

The states of lanes at the ends of parts are in one log, to which a line is added when the file of a part is
whole. So a part that has a line need not be written again, and each part can be written from the line of the
part before it. Lines are not synced: after a crash of the machine some are missing, and the work that they
stand for is done again.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any, final

import msgspec
import numpy as np

from seekable.order.lane_rows import num_lane_rows
from seekable.writing.manifest import rows_in, total_size
from seekable.writing.target import content_digest

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from seekable.formats.file_format import FileFormat
    from seekable.writing.manifest import Parts
    from seekable.writing.target import Target

__all__ = ["NEVER", "STATES", "LanePart", "PartSlots", "StateLog", "WrittenParts", "turns"]

_SLOTS_AT_ONCE = 1024


STATES = "states"
"""The name of the file. It has no suffix, so that tools that read hidden files do not take it for data."""


class PartSlots(msgspec.Struct, frozen=True):
    """The division of slots into parts: part ``p`` has the slots from ``p * slots`` on.

    Example:
        >>> division = PartSlots(lanes=3, slots=4)
        >>> [division.of_lane(0, part) for part in range(4)], division.of_lane(2, 0)
        ([2, 1, 1, 2], 1)
    """

    lanes: int
    """The number of lanes."""

    slots: int
    """The number of slots of a part."""

    def before(self, lane: int, part: int) -> int:
        """Return the number of a lane's slots before a part."""
        return num_lane_rows(part * self.slots, self.lanes, lane)

    def of_lane(self, lane: int, part: int) -> int:
        """Return the number of a lane's slots in a part."""
        return self.before(lane, part + 1) - self.before(lane, part)


class LanePart(msgspec.Struct, frozen=True):
    """The description of the records of one lane that were written in one part."""

    lane: int

    part: int

    slots: int
    """The number of slots that have an item."""

    rows: int
    """The number of records that were written."""

    holes: int
    """The number of records that were left out, by the sources or because the item was ``sk.HOLE``."""

    gaps: tuple[int, ...]
    """The indices of the items that were ``sk.HOLE``, from the lane's first one in the part."""

    ended: bool
    """True if the lane has ended: it has no items in later parts."""

    bytes: int
    """The number of bytes of the file that was written; 0 where there are no records, and so no file."""

    digest: str
    """The digest of a piece, which shows after a crash of the machine if it is whole; else empty."""


def turns(
    division: PartSlots, pieces: Sequence[LanePart], *, at_once: int = _SLOTS_AT_ONCE
) -> Iterator[NDArray[np.intp]]:
    """Yield, in arrays, the index of the piece whose next record comes next, in the order of slots.

    Args:
        division: the division of slots into parts.
        pieces: the records of some lanes, all in the same part.
        at_once: the most slots of an array.

    Example:
        >>> long = LanePart(0, 0, slots=3, rows=3, holes=0, gaps=(), ended=True, bytes=6, digest="")
        >>> short = LanePart(1, 0, slots=2, rows=1, holes=1, gaps=(0,), ended=True, bytes=2, digest="")
        >>> [array.tolist() for array in turns(PartSlots(lanes=2, slots=100), [long, short])]
        [[0, 0, 1, 0]]
    """
    begun = [division.before(piece.lane, piece.part) for piece in pieces]
    gaps = [np.array(piece.gaps, dtype=np.int64) for piece in pieces]
    first = min((piece.part for piece in pieces), default=0) * division.slots
    ends = [at + piece.slots for at, piece in zip(begun, pieces, strict=True)]
    last = max(ends, default=0) * division.lanes
    for base in range(first, last, at_once):
        slots = [
            _slots(division, piece, at, holes, range(base, base + at_once))
            for piece, at, holes in zip(pieces, begun, gaps, strict=True)
        ]
        order = np.argsort(np.concatenate(slots))
        if order.size:
            yield np.repeat(np.arange(len(pieces), dtype=np.intp), [each.size for each in slots])[order]


def _slots(
    division: PartSlots, piece: LanePart, begun: int, gaps: NDArray[np.int64], within: range
) -> NDArray[np.int64]:
    """Return those slots of a piece that have a record and are within a range."""
    edges = (num_lane_rows(edge, division.lanes, piece.lane) for edge in (within.start, within.stop))
    low, high = (edge - begun for edge in edges)
    items = np.arange(max(low, 0), max(0, min(high, piece.slots)), dtype=np.int64)
    if gaps.size:
        items = items[~np.isin(items, gaps[np.searchsorted(gaps, low) : np.searchsorted(gaps, high)])]
    found: NDArray[np.int64] = (begun + items) * division.lanes + piece.lane
    return found


NEVER = sys.maxsize
"""The next part of a lane that has nothing left to write."""


@final
class WrittenParts:
    """The parts and files that exist, from which follows the part that a lane has to write next.

    Args:
        division: the division of slots into parts.
        target: the folder, or the one file of all parts.
        names: the names of the files.
        log: the parts of lanes that are finished.
    """

    def __init__(self, division: PartSlots, target: Target, names: Parts, log: StateLog) -> None:
        self.division = division
        self.lanes = range(division.lanes)
        self.is_one_file = target.file is not None
        """True if all parts become one file."""
        self.is_direct = division.lanes == 1 and not self.is_one_file
        """True if the only lane writes the files of the result."""
        self._target = target
        self._names = names
        self._log = log
        self.rows: Counter[int] = Counter()
        """By part, the rows of the lanes that have written it."""
        self.parts = 0
        """The number of parts up to the last one with rows, as far as is known."""
        self._ends: dict[int, int] = {}
        """By lane that has ended, the number of its parts."""
        for done in log.done.values():
            self._know(done)
        self._pieces = {
            (lane, part)
            for (lane, part), done in log.done.items()
            if done.digest and content_digest(self.piece(lane, part)) == done.digest
        }
        self.finished: dict[int, tuple[int, int]] = {}
        """By number, the rows and bytes of the files of the result that are finished."""

    def find_finished(
        self, form: FileFormat, there: Mapping[int, tuple[int, int]], *, damaged: Container[int]
    ) -> None:
        """Find the files that earlier calls finished, also those that a killed call did not note.

        A file gets its name when it is complete. One that was not noted is read here, to find out if it was
        damaged later.

        Args:
            form: the format of the files.
            there: by number, the rows and bytes of the files that are known to be whole.
            damaged: the indices of the other files that were noted.
        """
        self.finished.update(there)
        for name in () if self.is_one_file else self._target.output.names(self._target.folder):
            part = self._names.number(name)
            if part is None or part in self.finished or part in damaged:
                continue
            path, rows = self._target.join(name), self.rows[part]
            beside = self.beside(part)
            size = total_size([path, *beside])
            is_known = size is not None and all(self._is_known(lane, part) for lane in self.lanes)
            if size is not None and is_known and rows_in(form, path, beside) == rows:
                self.finished[part] = rows, size

    def add(self, done: LanePart, state: list[Any]) -> None:
        """Add a part of a lane that was written, and the state of the lane after it."""
        before = self._log.done.get((done.lane, done.part))
        self.rows[done.part] -= 0 if before is None else before.rows
        self._log.add(done, state)
        self._know(done)
        if done.rows and self.is_direct:
            self.finished[done.part] = done.rows, done.bytes
        elif done.rows:
            self._pieces.add((done.lane, done.part))

    def needed(self, lane: int, part: int) -> int:
        """Return the first part of a lane, from ``part`` on, that has to be written; `NEVER` if none has."""
        while part < self._ends.get(lane, NEVER):
            done = self._log.done.get((lane, part))
            if done is None:
                if self.division.of_lane(lane, part):
                    return part
            elif done.rows and (lane, part) not in self._pieces and not self.is_finished(part):
                return part
            part += 1
        return NEVER

    @property
    def open_lanes(self) -> int:
        """The number of lanes that have not ended."""
        return len(self.lanes) - len(self._ends)

    @property
    def files(self) -> int | None:
        """The number of files of the result; None until all lanes have ended."""
        if self.open_lanes:
            return None
        return 1 if self.is_one_file else max(1, self.parts)

    @property
    def is_complete(self) -> bool:
        """True if all files of the result are finished."""
        return self.files is not None and all(number in self.finished for number in range(self.files))

    def is_finished(self, part: int) -> bool:
        """Return True if the file of a part is finished."""
        return (0 if self.is_one_file else part) in self.finished

    def path(self, lane: int, part: int) -> str:
        """Return the path of the file that a lane writes: a piece, or a file of the result."""
        return self.result(part) if self.is_direct else self.piece(lane, part)

    def result(self, number: int) -> str:
        """Return the path of a file of the result."""
        return self._target.join(self._names.name(number))

    def beside(self, number: int) -> tuple[str, ...]:
        """Return the paths of the files that belong to a file of the result."""
        return tuple(map(self._target.join, self._names.beside(number)))

    def piece(self, lane: int, part: int) -> str:
        """Return the path of the piece of a lane."""
        return os.path.join(self._target.lanes, f"lane-{lane:05}-part-{part:05}")

    def pieces(self, part: int) -> Iterator[tuple[LanePart, str]]:
        """Yield the lanes that have rows in a part, each with the path of its piece."""
        for lane in self.lanes:
            done = self._log.done.get((lane, part))
            if done is not None and done.rows:
                yield done, self.piece(lane, part)

    def drop_pieces(self) -> None:
        """Remove the pieces of finished files; the caller has written a manifest that lists these files."""
        for lane, part in [each for each in self._pieces if self.is_finished(each[1])]:
            self._pieces.discard((lane, part))
            os.unlink(self.piece(lane, part))

    def _know(self, done: LanePart) -> None:
        self.rows[done.part] += done.rows
        if done.rows:
            self.parts = max(self.parts, done.part + 1)
        if done.ended:
            self._ends[done.lane] = done.part + 1

    def _is_known(self, lane: int, part: int) -> bool:
        """Return True if a lane has written a part, or has nothing in it."""
        is_past = part >= self._ends.get(lane, NEVER)
        return is_past or (lane, part) in self._log.done or not self.division.of_lane(lane, part)


class _Head(msgspec.Struct):
    """The content of a line without the states, which are read when they are needed."""

    done: LanePart


class _LogLine(msgspec.Struct):
    done: LanePart

    stages: list[Any]
    """The state of each stage of the lane after the part."""


class StateLog:
    """The parts of lanes that are finished, with the states after them; one process at a time uses a log."""

    def __init__(self, folder: str) -> None:
        """Read the log of a folder, which is made if it does not exist.

        A line that a kill left incomplete is cut off, and so is all after it.
        """
        os.makedirs(folder, exist_ok=True)
        self._path = os.path.join(folder, STATES)
        self.done: dict[tuple[int, int], LanePart] = {}
        """By lane and part, what is finished."""
        self._places: dict[tuple[int, int], tuple[int, int]] = {}
        """By lane and part, the first byte and the size of the line."""
        self._end = 0
        with open(self._path, "ab+") as file:
            file.seek(0)
            for head, size in _whole_lines(file):
                self._note(head.done, size)
            file.truncate(self._end)

    def add(self, done: LanePart, stages: list[Any]) -> None:
        """Write down that a part is finished, and the states after it."""
        line = msgspec.json.encode(_LogLine(done, stages)) + b"\n"
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
            return msgspec.json.decode(file.read(size), type=_LogLine).stages

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
