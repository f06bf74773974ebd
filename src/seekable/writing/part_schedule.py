"""The work that is left of a stream, and what of it may be done next."""

from __future__ import annotations

import heapq
import os
import sys
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, final

from seekable.writing.part_writer import LaneWork, MergeWork
from seekable.writing.whole_file import content_digest

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from seekable.writing.file_format import FileFormat
    from seekable.writing.lane_part import LanePart, PartSlots
    from seekable.writing.manifest import Parts
    from seekable.writing.part_writer import LaneAnswer, MergeAnswer
    from seekable.writing.state_log import StateLog
    from seekable.writing.target import Target

__all__ = ["PartSchedule"]

_AHEAD = 2
"""The number of parts by which a lane may be ahead of the first part that is not in a finished file."""

_NEVER = sys.maxsize
"""The next part of a lane that has nothing left to write."""


@final
class PartSchedule:
    """Hands out work, and takes what was done.

    A lane writes its parts one after the other, and a part is merged when all lanes have written theirs. A
    single lane needs no merging: it writes the files of the result. All parts may become one file.

    Args:
        division: the division of slots into parts.
        target: the folder, or the one file of all parts.
        names: the names of the files.
        log: the parts of lanes that are finished.
        form: the format of the files.
        there: by number, the rows and bytes of the files of the result that are known to be whole.
        damaged: the numbers of other files, which are not as they were written.
    """

    def __init__(
        self,
        division: PartSlots,
        target: Target,
        names: Parts,
        log: StateLog,
        form: FileFormat,
        there: Mapping[int, tuple[int, int]],
        *,
        damaged: Container[int],
    ) -> None:
        self._division = division
        self._target = target
        self._names = names
        self._log = log
        self._is_one_file = target.file is not None
        self._is_direct = division.lanes == 1 and not self._is_one_file
        self._lanes = range(division.lanes)
        self._rows: Counter[int] = Counter()
        """By part, the rows of the lanes that have written it."""
        self._parts = 0
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
        self.finished = dict(there)
        """By number, the rows and bytes of the files of the result that are finished."""
        if not self._is_one_file:
            self._find_finished(form, damaged)
        self._low = 0
        """The first part that may not be in a finished file, in a folder of files."""
        self._merging: set[int] = set()
        """The numbers of the files that are being merged."""
        self._next = {lane: self._needed(lane, 0) for lane in self._lanes}
        """By lane, the part that it writes now or next; `_NEVER` if nothing is left."""
        self._lanes_at = Counter(self._next.values())
        """By part, the number of lanes that write it now or next."""
        self._front = 0
        """No lane writes a part below this one."""
        self._last: dict[int, int] = {}
        """By lane, the worker that wrote it last."""
        self._waiting: defaultdict[int | None, list[tuple[int, int]]] = defaultdict(list)
        """By worker that wrote a lane last, the heap of next parts and lanes that may be written."""
        self._busy: set[int] = set()
        """The lanes of which a part is being written."""
        for lane in self._lanes:
            self._wait(lane)

    def take(self, worker: int | None = None) -> LaneWork | MergeWork | None:
        """Return a piece of work that may be begun now; None if there is none.

        Args:
            worker: the worker that does it. A lane that it wrote before is preferred.
        """
        merge = self._merge()
        if merge is not None:
            self._merging.add(merge.number)
            return merge
        return self._write(worker)

    def put(self, work: LaneWork | MergeWork, answer: LaneAnswer | MergeAnswer) -> None:
        """Take what was done."""
        if isinstance(work, MergeWork):
            self._merging.discard(work.number)
            self.finished[work.number] = answer.rows, answer.bytes  # type: ignore[union-attr]
            return
        done: LanePart = answer.done  # type: ignore[union-attr]
        self._rows[done.part] -= self._rows_of(done.lane, done.part)
        self._log.add(done, answer.state)  # type: ignore[union-attr]
        self._know(done)
        if done.rows and self._is_direct:
            self.finished[done.part] = done.rows, done.bytes
        elif done.rows:
            self._pieces.add((done.lane, done.part))
        self._lanes_at[done.part] -= 1
        if not self._lanes_at[done.part]:
            del self._lanes_at[done.part]
        self._next[done.lane] = following = self._needed(done.lane, done.part + 1)
        self._lanes_at[following] += 1
        self._busy.discard(done.lane)
        self._wait(done.lane)

    def give_up(self) -> None:
        """Take the work under way as not begun."""
        self._merging.clear()
        busy, self._busy = self._busy, set()
        for lane in busy:
            self._wait(lane)

    @property
    def is_done(self) -> bool:
        """True if all files of the result are finished."""
        return self.files is not None and all(number in self.finished for number in range(self.files))

    @property
    def files(self) -> int | None:
        """The number of files of the result; None until all lanes have ended."""
        if self.open_lanes:
            return None
        return 1 if self._is_one_file else max(1, self._parts)

    @property
    def open_lanes(self) -> int:
        """The number of lanes that have not ended."""
        return len(self._lanes) - len(self._ends)

    def piece(self, lane: int, part: int) -> str:
        """Return the path of the piece of a lane."""
        return os.path.join(self._target.lanes, f"lane-{lane:05}-part-{part:05}")

    def drop_pieces(self) -> None:
        """Remove the pieces of finished files; the caller has written a manifest that lists these files."""
        for lane, part in [each for each in self._pieces if self._is_finished(each[1])]:
            self._pieces.discard((lane, part))
            os.unlink(self.piece(lane, part))

    def _know(self, done: LanePart) -> None:
        self._rows[done.part] += done.rows
        if done.rows:
            self._parts = max(self._parts, done.part + 1)
        if done.ended:
            self._ends[done.lane] = done.part + 1

    def _rows_of(self, lane: int, part: int) -> int:
        known = self._log.done.get((lane, part))
        return 0 if known is None else known.rows

    def _find_finished(self, form: FileFormat, damaged: Container[int]) -> None:
        """Find the files that a killed call finished, and did not note.

        A file gets its name when it is complete. It is read here to find out if it was damaged later.
        """
        for name in os.listdir(self._target.folder):
            part = self._names.number(name)
            if part is None or part in self.finished or part in damaged:
                continue
            path = self._target.join(name)
            if all(self._is_known(lane, part) for lane in self._lanes):
                rows = self._rows[part]
                if form.rows_in(path) == rows:
                    self.finished[part] = rows, os.path.getsize(path)

    def _is_finished(self, part: int) -> bool:
        return (0 if self._is_one_file else part) in self.finished

    def _is_known(self, lane: int, part: int) -> bool:
        """Return True if it is known what a lane has in a part."""
        is_past = part >= self._ends.get(lane, _NEVER)
        return is_past or (lane, part) in self._log.done or not self._division.of_lane(lane, part)

    def _needed(self, lane: int, part: int) -> int:
        """Return the first part of a lane, from ``part`` on, that has to be written; `_NEVER` if none has."""
        while part < self._ends.get(lane, _NEVER):
            done = self._log.done.get((lane, part))
            if done is None:
                if self._division.of_lane(lane, part):
                    return part
            elif done.rows and (lane, part) not in self._pieces and not self._is_finished(part):
                return part
            part += 1
        return _NEVER

    def _wait(self, lane: int) -> None:
        if self._next[lane] != _NEVER:
            heapq.heappush(self._waiting[self._last.get(lane)], (self._next[lane], lane))

    def _write(self, worker: int | None) -> LaneWork | None:
        """Return the next part of the lane that is furthest behind, and if possible was with this worker."""
        most = _NEVER if self._is_one_file else self._begun() + _AHEAD
        found = [
            (heap[0][0] + (last not in (None, worker)), heap[0], last)
            for last, heap in self._waiting.items()
            if heap and heap[0][0] <= most
        ]
        if not found:
            return None
        _, (part, lane), last = min(found, key=lambda each: each[:2])
        heapq.heappop(self._waiting[last])
        self._busy.add(lane)
        if worker is not None:
            self._last[lane] = worker
        path = self._target.join(self._names.name(part)) if self._is_direct else self.piece(lane, part)
        slots = self._division.of_lane(lane, part)
        return LaneWork(lane, part, slots, self._log.state(lane, part), path, is_piece=not self._is_direct)

    def _begun(self) -> int:
        """Return the first part in which there may be rows that are not in a finished file."""
        while self._low in self.finished:
            self._low += 1
        self._advance()
        part = self._low
        while part in self.finished or (part < self._front != _NEVER and not self._rows[part]):
            part += 1
        return part

    def _advance(self) -> None:
        """Set the first part that a lane writes now or next."""
        if self._front not in self._lanes_at:
            self._front = min(self._lanes_at)

    def _merge(self) -> MergeWork | None:
        """Return the first file of which all lanes are there."""
        self._advance()
        if self._is_one_file:
            is_ready = self._front == _NEVER and 0 not in self._merging and not self.is_done
            return self._merged(0, range(self._parts)) if is_ready else None
        # A part without rows becomes a file if there are rows behind it.
        for part in range(self._low, min(self._front, max(self._parts, self.files or 0))):
            if part not in self.finished and part not in self._merging:
                return self._merged(part, range(part, part + 1))
        return None

    def _merged(self, number: int, parts: range) -> MergeWork:
        done = ([self._log.done.get((lane, part)) for lane in self._lanes] for part in parts)
        merged = (
            tuple((one, self.piece(one.lane, one.part)) for one in lanes if one is not None and one.rows)
            for lanes in done
        )
        return MergeWork(number, self._target.join(self._names.name(number)), tuple(merged))
