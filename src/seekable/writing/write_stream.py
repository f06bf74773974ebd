"""The writing of a stream: the lanes run in any processes, and what they write is merged.

The slots of a stream are divided into *parts*, and file ``k`` of a folder has the items of part ``k`` in the
order of slots. The lanes of a part are written by any processes, as pieces, and then merged. So the files are
those of any other data: their natural order is that of the stream, and the bytes of each depend on nothing
but the stream and the arguments.
"""

from __future__ import annotations

import contextlib
import os
import time
from functools import partial
from typing import TYPE_CHECKING, Any, final

from seekable._lazy import lazy
from seekable.errors import InvalidArgument
from seekable.parallel.cluster import check_nodes, most_requests
from seekable.parallel.function_calls import WAY_OUT, FunctionCalls, answered, greeting, offered
from seekable.parallel.map_ranges import FOREIGN_REQUESTS
from seekable.parallel.pickling import serialized
from seekable.writing.finished_files import recorded
from seekable.writing.lane_part import PartSlots
from seekable.writing.manifest import MANIFEST_SECONDS, Parts
from seekable.writing.part_schedule import PartSchedule
from seekable.writing.part_writer import LaneAnswer, PartWriter, TookTooLong
from seekable.writing.preview import StreamPreview
from seekable.writing.source import Source, Writing
from seekable.writing.state_log import StateLog
from seekable.writing.written_parts import WrittenParts

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from seekable.formats.file_format import FileFormat
    from seekable.parallel import processes
    from seekable.parallel.map_ranges import ExecutionOptions
    from seekable.parallel.progress import Watch
    from seekable.writing.laned_items import LanedItems
    from seekable.writing.manifest import Manifest, ManifestFile
    from seekable.writing.part_writer import LaneWork, MergeWork
    from seekable.writing.target import Target
else:
    processes = lazy("seekable.parallel.processes")

__all__ = ["stream_source"]

_SLOTS_PER_PART = 100_000
"""The slots of a part where all parts become one file."""


def stream_source(items: LanedItems) -> Source:
    """Return all items of a stream, which ends. They are not traced to files."""
    return Source(
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
        self._schedule = PartSchedule(self._there, self._log)
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
