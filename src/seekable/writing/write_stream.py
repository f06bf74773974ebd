"""The writing of a stream to files, from the start or from where an earlier call ended.

The slots of a stream are divided into *parts*, and file ``k`` of a folder has the items of part ``k`` in the
order of slots. The lanes of a part are written by any processes, as pieces, and then merged. So the files are
those of any other data: their natural order is that of the stream, and the bytes of each depend on nothing
but the stream and the arguments.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING, Any, final

from seekable._lazy import lazy
from seekable.errors import InvalidArgument
from seekable.parallel.cluster import check_nodes, most_requests
from seekable.parallel.function_calls import WAY_OUT, FunctionCalls, answered, greeting, offered
from seekable.parallel.map_ranges import FOREIGN_REQUESTS, execution_options
from seekable.parallel.pickling import serialized
from seekable.parallel.progress import watched
from seekable.state.functions import code_digests, python_version
from seekable.storage.addresses import shown
from seekable.storage.files import locked
from seekable.writing.earlier_files import begun, kept
from seekable.writing.ending import has_ended, unend
from seekable.writing.finished_files import recorded
from seekable.writing.lane_part import PartSlots
from seekable.writing.manifest import MANIFEST_SECONDS, Identity, ManifestFile, Parts, Written
from seekable.writing.part_schedule import PartSchedule
from seekable.writing.part_writer import LaneAnswer, PartWriter, TookTooLong
from seekable.writing.preview import StreamPreview
from seekable.writing.shard import Counter
from seekable.writing.state_log import STATES, StateLog
from seekable.writing.target import checked_rows_per_file, made_folder, target_of
from seekable.writing.written_parts import WrittenParts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Executor

    from seekable.parallel import processes
    from seekable.parallel.map_ranges import ExecutionOptions
    from seekable.parallel.progress import ProgressHook, Watch
    from seekable.writing.earlier_files import WritePolicy
    from seekable.writing.ending import Ending
    from seekable.writing.file_format import FileFormat
    from seekable.writing.laned_items import LanedItems
    from seekable.writing.manifest import Manifest
    from seekable.writing.part_writer import LaneWork, MergeWork
    from seekable.writing.target import Target
else:
    processes = lazy("seekable.parallel.processes")

__all__ = ["write_stream"]

_SLOTS_PER_PART = 100_000
"""The slots of a part where all parts become one file."""


def write_stream(  # noqa: PLR0913 - the arguments of the public methods
    items: LanedItems,
    path: str | os.PathLike[str],
    form: FileFormat,
    *,
    rows_per_file: int | None,
    policy: WritePolicy,
    jobs: int | None,
    executor: Executor | None,
    progress: ProgressHook | None,
    ending: Ending | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Written:
    """Write all items; see ``Stream.write_parquet``."""
    using = execution_options(jobs, executor, at_once=True)
    target, form = target_of(path, form, storage_options)
    rows_per_file = checked_rows_per_file(rows_per_file, target)
    identity = _identity(items, form, ending, rows_per_file=rows_per_file)
    with watched(progress, task="writing", rows=None) as watch:
        manifest = kept(target, identity, policy) if target.output.has_folder(target.folder) else None
        if manifest is not None and _is_complete(target, manifest):
            return _ended(target, manifest, kept=len(manifest.finished))
        check_nodes(using.executor, items.paths(), folder=target.folder)
        preview = StreamPreview(items)
        form, settled = form.settled(preview, manifest.settled if manifest else None)
        made_folder(target.folder)
        notice = f"another process is writing into {shown(target.path)!r}: waiting for it"
        with locked(target.lock, waiting=lambda: watch(0, notice=notice)):
            file = ManifestFile(target.manifest)
            manifest = kept(target, identity, policy)
            if manifest is None:
                manifest = begun(target, identity, settled, file, reads=items.paths())
            elif _is_complete(target, manifest):
                return _ended(target, manifest, kept=len(manifest.finished))
            else:
                file.write(manifest)
                unend(target.folder, identity.ending)
            written = _Writing(items, form, target, manifest, watch, file).run(using)
            if ending is not None:
                ending.end(target.folder, form, _paths(target, manifest))
            return written


def _identity(
    items: LanedItems, form: FileFormat, ending: Ending | None, *, rows_per_file: int | None
) -> Identity:
    return Identity(
        pipeline=items.fingerprint,
        records=None,
        code=code_digests([*items.functions(), *form.functions]),
        python=python_version(),
        format=form.name,
        suffix=form.suffix,
        rows_per_file=rows_per_file,
        options=form.options,
        lanes=items.lanes,
        patterns=form.patterns,
        ending=() if ending is None else ending.names,
    )


def _is_complete(target: Target, manifest: Manifest) -> bool:
    is_whole = manifest.files is not None and len(recorded(target, manifest)) == manifest.files
    return is_whole and has_ended(target.folder, manifest.identity.ending)


@final
class _Writing:
    """The writing of one call, which holds the lock."""

    def __init__(
        self,
        items: LanedItems,
        form: FileFormat,
        target: Target,
        manifest: Manifest,
        watch: Watch,
        file: ManifestFile,
    ) -> None:
        self._file = file
        self._patterns = form.patterns
        target.remove_torn(self._patterns, manifest.identity.ending)
        self._target = target
        self._manifest = manifest
        self._watch = watch
        self._noted = time.monotonic()
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
        self._kept = len(manifest.finished)
        self._tally = Counter(watch)
        self._tally.done = sum(done.slots for done in self._log.done.values())
        self._writer = PartWriter(items, form, division, self._tally, target.mounts)

    def run(self, using: ExecutionOptions) -> Written:
        """Write the missing files, and return the description of all."""
        try:
            if using.executor is not None:
                self._in_executor(using.executor)
            else:
                self._here_or_in_workers(using)
        finally:
            self._note(seconds=0)
            # Workers that an error ended, or nodes that died, left unfinished files. In a user's executor
            # others may still be written, unless all are finished.
            if using.executor is None or self._there.is_complete:
                self._target.remove_torn(self._patterns, self._manifest.identity.ending)
        assert self._there.is_complete
        self._watch.end(self._tally.done)
        return _ended(self._target, self._manifest, kept=self._kept)

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
            self._tally.done += answer.done.slots
        self._watch(self._tally.done)
        self._note(seconds=MANIFEST_SECONDS)

    def _note(self, *, seconds: float) -> None:
        """Write the manifest, and remove what it makes needless, if the last write was long enough ago."""
        now = time.monotonic()
        if now - self._noted >= seconds:
            if self._there.is_complete:
                self._manifest.files = self._there.files
                self._manifest.holes = sum(done.holes for done in self._log.done.values())
            self._file.write(self._manifest)
            self._there.drop_pieces()
            self._noted = now


def _name(request: tuple[LaneWork | MergeWork]) -> str:
    return f"{os.path.basename(request[0].path)!r}"


def _ended(target: Target, manifest: Manifest, *, kept: int) -> Written:
    """Remove what the lanes need no more, and return the description of all files.

    The states of a folder of files stay: a file that is lost can be made again from those before it.
    """
    with contextlib.suppress(OSError):  # A finished folder may be read-only.
        target.remove_lanes(but=STATES if target.file is None and target.mounts is None else None)
    numbers = sorted(manifest.finished)
    return Written(
        paths=tuple(map(shown, _paths(target, manifest))),
        rows=sum(manifest.finished[number][0] for number in numbers),
        holes=manifest.holes,
        bytes=sum(manifest.finished[number][1] for number in numbers),
        kept=kept,
    )


def _paths(target: Target, manifest: Manifest) -> tuple[str, ...]:
    """Return the paths of the finished files, in the order of their rows."""
    names = manifest.identity.names(target)
    return tuple(target.join(names.name(number)) for number in sorted(manifest.finished))
