"""The work that may be done next for the files of a stream."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, final

from seekable.writing.part_writer import LaneAnswer, LaneWork, MergeAnswer, MergeWork
from seekable.writing.written_parts import NEVER

if TYPE_CHECKING:
    from seekable.writing.state_log import StateLog
    from seekable.writing.written_parts import WrittenParts

__all__ = ["PartSchedule"]

_AHEAD = 2
"""The number of parts by which a lane may be ahead of the first part that is not in a finished file."""


@final
class PartSchedule:
    """Hands out work, and notes the answers to it.

    A lane writes its parts one after the other, and a part is merged when all lanes have written theirs. A
    single lane needs no merging: it writes the files of the result. All parts may become one file.

    Args:
        there: the parts and files that exist; changed in place.
        log: the states of lanes at the ends of parts.
    """

    def __init__(self, there: WrittenParts, log: StateLog) -> None:
        self._there = there
        self._log = log
        self._low = 0
        """The first part that may not be in a finished file, in a folder of files."""
        self._merging: set[int] = set()
        """The numbers of the files that are being merged."""
        self._next = {lane: there.needed(lane, 0) for lane in there.lanes}
        """By lane, the part that it writes now or next; `NEVER` if nothing is left."""
        self._lanes_at = Counter(self._next.values())
        """By part, the number of lanes that write it now or next."""
        self._last: dict[int, int] = {}
        """By lane, the worker that wrote it last."""
        self._waiting: defaultdict[int | None, list[tuple[int, int]]] = defaultdict(list)
        """By worker that wrote a lane last, the heap of next parts and lanes that may be written."""
        self._busy: set[int] = set()
        """The lanes of which a part is being written."""
        for lane in there.lanes:
            self._wait(lane)

    def take(self, worker: int | None = None) -> LaneWork | MergeWork | None:
        """Return a piece of work that may be begun now; None if there is none.

        Args:
            worker: the worker that does it. A lane that it wrote before is preferred.
        """
        merge = self._merge()
        if merge is None:
            return self._write(worker)
        self._merging.add(merge.number)
        return merge

    def put(self, work: LaneWork | MergeWork, answer: LaneAnswer | MergeAnswer) -> None:
        """Note that a piece of work was done, with its answer."""
        if isinstance(answer, MergeAnswer):
            assert isinstance(work, MergeWork)
            self._merging.discard(work.number)
            self._there.finished[work.number] = answer.rows, answer.bytes
            return
        done = answer.done
        self._there.add(answer)
        self._lanes_at[done.part] -= 1
        if not self._lanes_at[done.part]:
            del self._lanes_at[done.part]
        self._next[done.lane] = following = self._there.needed(done.lane, done.part + 1)
        self._lanes_at[following] += 1
        self._busy.discard(done.lane)
        self._wait(done.lane)

    def give_up(self) -> None:
        """Take the work under way as not begun."""
        self._merging.clear()
        busy, self._busy = self._busy, set()
        for lane in busy:
            self._wait(lane)

    def _wait(self, lane: int) -> None:
        if self._next[lane] != NEVER:
            heapq.heappush(self._waiting[self._last.get(lane)], (self._next[lane], lane))

    def _write(self, worker: int | None) -> LaneWork | None:
        """Return the next part of the lane that is furthest behind, and if possible was with this worker."""
        there = self._there
        most = NEVER if there.is_one_file else self._begun() + _AHEAD
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
        return LaneWork(
            lane,
            part,
            slots=there.division.of_lane(lane, part),
            state=self._log.state(lane, part),
            path=there.path(lane, part),
            beside=there.beside(part) if there.is_direct else (),
            is_piece=not there.is_direct,
        )

    @property
    def _front(self) -> int:
        """The first part that a lane writes now or next: all lanes have written those before it."""
        return min(self._lanes_at)

    def _begun(self) -> int:
        """Return the first part in which there may be rows that are not in a finished file."""
        there, front = self._there, self._front
        while self._low in there.finished:
            self._low += 1
        part = self._low
        while part in there.finished or (part < front != NEVER and not there.rows[part]):
            part += 1
        return part

    def _merge(self) -> MergeWork | None:
        """Return the first file of which all lanes are there."""
        there, front = self._there, self._front
        if there.is_one_file:
            is_ready = front == NEVER and 0 not in self._merging and 0 not in there.finished
            return self._merged(0, range(there.parts)) if is_ready else None
        # A part without rows becomes a file if there are rows behind it.
        for part in range(self._low, min(front, max(there.parts, there.files or 0))):
            if part not in there.finished and part not in self._merging:
                return self._merged(part, range(part, part + 1))
        return None

    def _merged(self, number: int, parts: range) -> MergeWork:
        pieces = tuple(tuple(self._there.pieces(part)) for part in parts)
        return MergeWork(number, self._there.result(number), self._there.beside(number), pieces)
