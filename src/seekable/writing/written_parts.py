"""The parts of a stream that are written: their lanes, the pieces that exist, and the finished files."""

from __future__ import annotations

import os
import sys
from collections import Counter
from typing import TYPE_CHECKING, final

from seekable.writing.finished_files import rows_in, total_size
from seekable.writing.whole_file import content_digest

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from seekable.formats.file_format import FileFormat
    from seekable.writing.lane_part import LanePart, PartSlots
    from seekable.writing.manifest import Parts
    from seekable.writing.part_writer import LaneAnswer
    from seekable.writing.state_log import StateLog
    from seekable.writing.target import Target

__all__ = ["NEVER", "WrittenParts"]

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
            damaged: the numbers of the other files that were noted.
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

    def add(self, answer: LaneAnswer) -> None:
        """Add a part of a lane that was written, and the state of the lane after it."""
        done = answer.done
        before = self._log.done.get((done.lane, done.part))
        self.rows[done.part] -= 0 if before is None else before.rows
        self._log.add(done, answer.state)
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
