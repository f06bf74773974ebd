"""The writing of a stream: the lanes run in any processes, and what they write is merged.

The slots of a stream are divided into *parts*, and file ``k`` of a folder has the items of part ``k`` in the
order of slots. The lanes of a part are written by any processes, as pieces, and then merged. So the files are
those of any other data: their natural order is that of the stream, and the bytes of each depend on nothing
but the stream and the arguments.
"""

from __future__ import annotations

import contextlib
import heapq
import os
import time
from collections import Counter, defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any, final

from seekable._lazy import lazy
from seekable.errors import InvalidArgument
from seekable.parallel.cluster import check_nodes, most_requests
from seekable.parallel.function_calls import WAY_OUT, FunctionCalls, answered, greeting, offered
from seekable.parallel.map_ranges import FOREIGN_REQUESTS
from seekable.parallel.pickling import serialized
from seekable.writing.manifest import MANIFEST_SECONDS, Parts, recorded
from seekable.writing.part_writer import LaneAnswer, LaneWork, MergeAnswer, MergeWork, PartWriter, TookTooLong
from seekable.writing.preview import StreamPreview
from seekable.writing.write_source import WriteSource, Writing
from seekable.writing.written_parts import NEVER, PartSlots, StateLog, WrittenParts

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from seekable.formats.file_format import FileFormat
    from seekable.parallel import processes
    from seekable.parallel.map_ranges import ExecutionOptions
    from seekable.parallel.progress import Watch
    from seekable.writing.manifest import Manifest, ManifestFile
    from seekable.writing.target import Target
    from seekable.writing.write_source import LanedItems
else:
    processes = lazy("seekable.parallel.processes")

__all__ = ["stream_source"]

_SLOTS_PER_PART = 100_000
"""The slots of a part where all parts become one file."""


_AHEAD = 2
"""The number of parts by which a lane may be ahead of the first part that is not in a finished file."""


def stream_source(items: LanedItems) -> WriteSource:
    """Return all items of a stream, which ends. They are not traced to files."""
    return WriteSource(
        fingerprint=items.fingerprint,
        records=None,
        lanes=items.lanes,
        functions=items.functions,
        paths=items.paths,
        origins=tuple,
        preview=StreamPreview(items),
        check_seen=lambda executor, *, folder: check_nodes(executor, items.paths(), folder=folder),
        writing=partial(_StreamWriting, items),
    )


@final
class _StreamWriting(Writing):
    """The writing of parts, lane by lane, and the merging of their pieces."""

    def __init__(
        self,
        items: LanedItems,
        form: FileFormat,
        target: Target,
        manifest: Manifest,
        file: ManifestFile,
        watch: Watch,
    ) -> None:
        super().__init__(form, target, manifest, file, watch)
        target.keep_lanes(manifest.run)
        self._log = StateLog(target.lanes)
        manifest.files, manifest.holes = None, 0
        division = PartSlots(items.lanes, manifest.identity.rows_per_file or _SLOTS_PER_PART)
        names = Parts(form.suffix, target.file, form.patterns)
        self._there = WrittenParts(division, target, names, self._log)
        there = recorded(target, manifest)
        self._there.find_finished(form, there, damaged=manifest.finished.keys() - there.keys())
        manifest.finished = self._there.finished
        self._schedule = _PartSchedule(self._there, self._log)
        self.kept = len(manifest.finished)
        self.tally.done = sum(done.slots for done in self._log.done.values())
        self._writer = PartWriter(items, form, division, self.tally, target.mounts)

    @property
    def is_complete(self) -> bool:
        """True if all lanes have ended, and all files are finished."""
        return self._there.is_complete

    def write_missing(self, using: ExecutionOptions) -> None:
        """Write and merge parts until all files are finished."""
        if using.executor is not None:
            self._in_executor(using.executor)
        else:
            self._here_or_in_workers(using)
        assert self.is_complete

    def write_manifest(self) -> None:
        """Write the manifest, and remove the pieces that it makes needless."""
        if self.is_complete:
            self.manifest.files = self._there.files
            self.manifest.holes = sum(done.holes for done in self._log.done.values())
        self.file.write(self.manifest)
        self._there.drop_pieces()

    def _here_or_in_workers(self, using: ExecutionOptions) -> None:
        """Do the work in this process, or in workers where they were asked for or the work takes long."""
        workers = min(using.workers, self._there.open_lanes)
        if workers > 1 and using.patience_seconds:
            self._writer.until = time.monotonic() + using.patience_seconds
            with contextlib.suppress(TookTooLong):
                self._here()
                return
            self._writer.give_up()
            self._schedule.give_up()
            try:
                payload = serialized(self._writer, way_out=WAY_OUT)
            except InvalidArgument:
                workers = 1
        elif workers > 1:
            payload = serialized(self._writer, way_out=WAY_OUT)
        if workers > 1:
            self._in_workers(payload, workers)
        else:
            self._here()

    def _here(self) -> None:
        while (work := self._schedule.take()) is not None:
            self._put(work, self._writer(work))

    def _in_workers(self, payload: bytes, count: int) -> None:
        """Do the work in processes of one worker each, so that a lane can stay with its worker."""
        free, doing = set(range(count)), {}

        def take() -> tuple[LaneWork | MergeWork] | None:
            for worker in sorted(free):
                work = self._schedule.take(worker)
                if work is not None:
                    free.discard(worker)
                    doing[id(work)] = worker
                    return (work,)
            return None

        with contextlib.ExitStack() as stack, offered(self._writer) as token:
            first = greeting(token, payload)
            workers = [stack.enter_context(processes.WorkerProcesses(1, first=first)) for _ in range(count)]
            calls = FunctionCalls(
                token=token,
                function=self._writer,
                take=take,
                executor_of=lambda request: workers[doing[id(request[0])]],
                name=_name,
            )
            with contextlib.closing(answered(calls, executor=workers[0], ahead=count)) as answers:
                for (work,), answer in answers:
                    free.add(doing.pop(id(work)))
                    if answer.error is not None:
                        raise answer.error
                    self._put(work, answer.made)

    def _in_executor(self, executor: Executor) -> None:
        def take() -> tuple[LaneWork | MergeWork] | None:
            work = self._schedule.take()
            return None if work is None else (work,)

        with offered(self._writer) as token:
            calls = FunctionCalls(
                token=token,
                function=self._writer,
                take=take,
                executor_of=lambda _: executor,
                name=_name,
            )
            ahead = most_requests(executor, otherwise=FOREIGN_REQUESTS)
            with contextlib.closing(answered(calls, executor=executor, ahead=ahead)) as answers:
                for (work,), answer in answers:
                    if answer.error is not None:
                        raise answer.error
                    self._put(work, answer.made)

    def _put(self, work: LaneWork | MergeWork, answer: Any) -> None:
        self._schedule.put(work, answer)
        if isinstance(answer, LaneAnswer):
            self.tally.done += answer.done.slots
        self.watch(self.tally.done)
        self.note(seconds=MANIFEST_SECONDS)


def _name(request: tuple[LaneWork | MergeWork]) -> str:
    return f"{os.path.basename(request[0].path)!r}"


@final
class _PartSchedule:
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
        """The indices of the files that are being merged."""
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
        self._there.add(done, answer.state)
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
        # A part without rows becomes a file if there are rows after it.
        for part in range(self._low, min(front, max(there.parts, there.files or 0))):
            if part not in there.finished and part not in self._merging:
                return self._merged(part, range(part, part + 1))
        return None

    def _merged(self, number: int, parts: range) -> MergeWork:
        pieces = tuple(tuple(self._there.pieces(part)) for part in parts)
        return MergeWork(number, self._there.result(number), self._there.beside(number), pieces)
