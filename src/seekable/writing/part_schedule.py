"""The work that is left of a stream, and what of it may be done next."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, final

from seekable.writing.part_writer import LaneWork, MergeWork
from seekable.writing.whole_file import content_digest

if TYPE_CHECKING:
    from collections.abc import Container

    from seekable.writing.file_format import FileFormat
    from seekable.writing.lane_part import LanePart, PartSlots
    from seekable.writing.manifest import Parts
    from seekable.writing.part_writer import LaneAnswer, MergeAnswer
    from seekable.writing.state_log import StateLog
    from seekable.writing.target import Target

__all__ = ["PartSchedule"]

_AHEAD = 2
"""The number of parts by which a lane may be ahead of the first file that is not finished."""


@final
class PartSchedule:
    """Hands out work, and takes what was done.

    The parts of a lane are written one after the other, and a part is merged when all its lanes are there. A
    single lane needs no merging: it writes the files of the result.

    Args:
        division: the division of slots into parts.
        target: the folder, or the one file of all parts.
        names: the names of the files.
        log: the parts of lanes that are finished.
        finished: the rows and bytes of the finished files of the result, by number; changed in place.
    """

    def __init__(
        self,
        division: PartSlots,
        target: Target,
        names: Parts,
        log: StateLog,
        finished: dict[int, tuple[int, int]],
    ) -> None:
        self._division = division
        self._target = target
        self._names = names
        self._log = log
        self._finished = finished
        self._is_one_file = target.file is not None
        self._is_direct = division.lanes == 1 and not self._is_one_file
        self._lanes = range(division.lanes)
        self._next = dict.fromkeys(self._lanes, 0)
        """By lane, the first part that may have to be written."""
        self._low = 0
        """The first part whose file is not finished, in a folder of files."""
        self._busy: set[int] = set()
        """The lanes of which a part is being written."""
        self._merging: set[int] = set()
        """The numbers of the files that are being merged."""
        self._last: dict[int, int] = {}
        """By lane, the worker that wrote it last."""
        self._ends: dict[int, int] = {}
        """By lane that has ended, the number of its parts."""
        self._parts = 0
        """The number of parts up to the last one with rows, as far as is known."""
        self._pieces = self._whole_pieces()
        for done in log.done.values():
            self._know(done)

    def find_finished(self, form: FileFormat, *, damaged: Container[int]) -> None:
        """Add the files that a killed call finished, and did not note.

        A file gets its name when it is complete. It is read here to find out if it was damaged later.

        Args:
            form: the format of the files.
            damaged: the numbers of files that were noted, and are not as they were.
        """
        if self._is_one_file:
            return
        for name in os.listdir(self._target.folder):
            part, path = self._names.number(name), self._target.join(name)
            if part is None or part in self._finished or part in damaged or not self._is_known(part):
                continue
            rows = sum(done.rows for done in self._done_of(part))
            if form.rows_in(path) == rows:
                self._finished[part] = rows, os.path.getsize(path)

    def take(self, worker: int | None = None) -> LaneWork | MergeWork | None:
        """Return a piece of work that may be begun now; None if there is none.

        Args:
            worker: the worker that does it. It is given a lane that it wrote before, if there is one.
        """
        work = self._merge() or self._lane(worker)
        if isinstance(work, MergeWork):
            self._merging.add(work.number)
        elif work is not None:
            self._busy.add(work.lane)
            if worker is not None:
                self._last[work.lane] = worker
        return work

    def put(self, work: LaneWork | MergeWork, answer: LaneAnswer | MergeAnswer) -> None:
        """Take what was done."""
        if isinstance(work, MergeWork):
            self._merging.discard(work.number)
            self._finished[work.number] = answer.rows, answer.bytes  # type: ignore[union-attr]
            return
        done: LanePart = answer.done  # type: ignore[union-attr]
        self._busy.discard(work.lane)
        self._log.add(done, answer.state)  # type: ignore[union-attr]
        self._know(done)
        if not done.rows:
            return
        if self._is_direct:
            self._finished[done.part] = done.rows, done.bytes
        else:
            self._pieces.add((done.lane, done.part))

    @property
    def is_done(self) -> bool:
        """True if all files of the result are finished."""
        return self.files is not None and all(number in self._finished for number in range(self.files))

    @property
    def files(self) -> int | None:
        """The number of files of the result; None until all lanes have ended."""
        if len(self._ends) < len(self._lanes):
            return None
        return 1 if self._is_one_file else max(1, self._parts)

    def give_up(self) -> None:
        """Take the work under way as not begun."""
        self._busy.clear()
        self._merging.clear()

    @property
    def open_lanes(self) -> int:
        """The number of lanes that have not ended."""
        return len(self._lanes) - len(self._ends)

    def piece(self, lane: int, part: int) -> str:
        """Return the path of the piece of a lane."""
        return os.path.join(self._target.lanes, f"lane-{lane:05}-part-{part:05}")

    def drop_pieces(self) -> None:
        """Remove the pieces of finished files; the caller has written a manifest that lists these files."""
        for lane, part in list(self._pieces):
            if (0 if self._is_one_file else part) in self._finished:
                self._pieces.discard((lane, part))
                os.unlink(self.piece(lane, part))

    def _know(self, done: LanePart) -> None:
        if done.rows:
            self._parts = max(self._parts, done.part + 1)
        if done.ended:
            self._ends[done.lane] = min(done.part + 1, self._ends.get(done.lane, done.part + 1))

    def _whole_pieces(self) -> set[tuple[int, int]]:
        """Return the lanes and parts of the pieces that are whole."""
        return {
            (lane, part)
            for (lane, part), done in self._log.done.items()
            if done.digest and content_digest(self.piece(lane, part)) == done.digest
        }

    def _path(self, lane: int, part: int) -> str:
        return self._target.join(self._names.name(part)) if self._is_direct else self.piece(lane, part)

    def _has(self, lane: int, part: int) -> bool:
        """Return True if nothing is left to be written of a lane in a part, for its file to be merged."""
        if part >= self._ends.get(lane, part + 1) or not self._division.of_lane(lane, part):
            return True
        done = self._log.done.get((lane, part))
        return done is not None and (not done.rows or (lane, part) in self._pieces)

    def _needs(self, lane: int, part: int) -> bool:
        """Return True if a part of a lane has to be written."""
        if part >= self._ends.get(lane, part + 1) or not self._division.of_lane(lane, part):
            return False
        is_known = (lane, part) in self._log.done
        return not is_known or not (part in self._finished or self._has(lane, part))

    def _lane(self, worker: int | None) -> LaneWork | None:
        most = None if self._is_one_file else self._begun() + _AHEAD
        found = [
            (part + (self._last.get(lane, worker) != worker), part, lane)
            for lane in self._lanes
            if lane not in self._busy and (part := self._next_part(lane)) is not None
            if most is None or part <= most
        ]
        if not found:
            return None
        _, part, lane = min(found)
        return LaneWork(
            lane,
            part,
            slots=self._division.of_lane(lane, part),
            state=self._log.state(lane, part),
            path=self._path(lane, part),
            is_piece=not self._is_direct,
        )

    def _begun(self) -> int:
        """Return the first part in which there may be rows that are not in a finished file."""
        while self._low in self._finished:
            self._low += 1
        part = self._low
        while self.open_lanes and (part in self._finished or self._is_empty(part)):
            part += 1
        return part

    def _is_empty(self, part: int) -> bool:
        """Return True if it is certain that a part has no rows."""
        return not any(done.rows for done in self._done_of(part)) and self._is_ready(part)

    def _done_of(self, part: int) -> list[LanePart]:
        """Return what was written of the lanes in a part."""
        lanes = (self._log.done.get((lane, part)) for lane in self._lanes)
        return [done for done in lanes if done is not None]

    def _is_known(self, part: int) -> bool:
        """Return True if all lanes were written in a part, though their pieces may be gone."""
        return all((lane, part) in self._log.done or self._has(lane, part) for lane in self._lanes)

    def _is_ready(self, part: int) -> bool:
        """Return True if all lanes of a part can be merged."""
        return all(self._has(lane, part) for lane in self._lanes)

    def _next_part(self, lane: int) -> int | None:
        """Return the next part of a lane that has to be written, None if all are."""
        part = self._next[lane]
        while not self._needs(lane, part):
            if part >= self._ends.get(lane, part + 1):
                return None
            part += 1
        self._next[lane] = part
        return part

    def _merge(self) -> MergeWork | None:
        if self._is_one_file:
            if self.files is None or 0 in self._merging | self._finished.keys():
                return None
            is_ready = all(map(self._is_ready, range(self._parts)))
            return self._merged(0, range(self._parts)) if is_ready else None
        # A part without rows becomes a file if there are rows behind it.
        stop = max(self._parts, 1 if self.files else 0)
        for part in range(self._low, stop):
            if part in self._finished or part in self._merging:
                continue
            if self._is_ready(part):
                return self._merged(part, range(part, part + 1))
        return None

    def _merged(self, number: int, parts: range) -> MergeWork:
        merged = (
            tuple((done, self.piece(done.lane, part)) for done in self._done_of(part) if done.rows)
            for part in parts
        )
        return MergeWork(number, self._target.join(self._names.name(number)), tuple(merged))
