"""The verification of data files against their index, and of the index by itself.

Nothing is written but the digests of units (`seekable.index.offsets`) that an older index lacks.

A plain verification compares size, modification time (which is all that opening compares) and both ends of
each file with the index, and reads the index itself: its catalog, its table, each segment and each offset. A
deep one also reads each file as a whole, finds its records again, and compares content and every offset.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain, groupby
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from seekable._arguments import check_workers
from seekable._lazy import lazy
from seekable.errors import DataNotFound, IndexStale, UnsupportedFormat
from seekable.index.build.content import DecompressingSource
from seekable.index.build.data_file import opened_file
from seekable.index.build.file_parts import plan_batches
from seekable.index.build.scan import survey
from seekable.index.catalog import CATALOG, read_table
from seekable.index.digest import END_BYTES, PIECE_BYTES, content_digest
from seekable.index.fileset import FileSet
from seekable.index.finder import (
    ByteSource,
    ReadsSideFiles,
    changed_beside,
    is_splittable,
    is_surveyor,
    is_table_indexer,
)
from seekable.index.index_location import find_index, may_hold_placeholders
from seekable.index.indexed_files import indexed_files
from seekable.index.integrity import Indexed, VerificationProblem, check_catalog, check_offsets, check_segment
from seekable.index.location import shown_path
from seekable.index.offsets import open_offsets
from seekable.index.sidecar_files import read_schema
from seekable.parallel.cluster import most_requests
from seekable.parallel.function_calls import Tasks, run_tasks
from seekable.parallel.map_ranges import FOREIGN_REQUESTS
from seekable.parallel.pickling import deserialized, serialized
from seekable.parallel.processes import WorkerProcesses, usable_cpus
from seekable.parallel.progress import Progress, Throttle
from seekable.storage.abandoned import abandoned_at_errors, check_not_abandoned
from seekable.storage.compression import compression_of
from seekable.storage.far import far
from seekable.storage.files import stat_file

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
    from concurrent.futures import Executor, Future

    from numpy.typing import NDArray

    from seekable.index.build.data_file import Data
    from seekable.index.build.file_parts import FilePart
    from seekable.index.file_table import Entry, FileTable
    from seekable.index.finder import Finder
    from seekable.index.indexed_files import IndexedFiles
    from seekable.index.integrity import Kind
    from seekable.parallel import cluster
    from seekable.parallel.progress import ProgressHook
    from seekable.storage import paths
    from seekable.storage.listing import FoundFiles
else:
    cluster = lazy("seekable.parallel.cluster")
    paths = lazy("seekable.storage.paths")


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a verification."""

    files: int
    """The number of data files."""

    records: int
    """The number of their records by the index."""

    bytes: int
    """The number of bytes that they have now."""

    folders: tuple[str, ...]
    """The folders of the indexes."""

    problems: tuple[VerificationProblem, ...]
    """The problems of the index, then of the files, in their order, at most one a file."""

    indexed: tuple[Indexed, ...]
    """The files that are indexed, in their order."""

    @property
    def unread(self) -> int:
        """The number of files whose offsets came from another index, so that bytes in them have no digest."""
        return sum(file.entry.unread for file in self.indexed)

    def with_those_of(self, other: Verification) -> Verification:
        """Return the result for the files of both."""
        return Verification(
            self.files + other.files,
            self.records + other.records,
            self.bytes + other.bytes,
            tuple(dict.fromkeys((*self.folders, *other.folders))),
            tuple(dict.fromkeys((*self.problems, *other.problems))),
            (*self.indexed, *other.indexed),
        )

    @property
    def good(self) -> FileSet:
        """The indexed files that nothing is wrong with, as the index has them; nothing is built."""
        bad = {problem.path for problem in self.problems}
        bad |= {file.shown for file in self.indexed if os.path.join(*file.segment) in bad}
        runs = groupby(
            (file for file in self.indexed if file.shown not in bad), lambda file: (file.root, file.folder)
        )
        return FileSet(tuple(_part(root, folder, list(files)) for (root, folder), files in runs))


def verify_files(  # noqa: PLR0913 - keywords
    found: Sequence[FoundFiles],
    scanner: Finder,
    *,
    deep: bool,
    folders: Collection[str] = (),
    index_dir: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: ProgressHook | None = None,
) -> Verification:
    """Compare files with their index, and the index with itself.

    Args:
        found: the files.
        scanner: finds the records in them.
        deep: read all of them, instead of their ends.
        folders: the roots that are verified as a whole: each file that the index has below one must exist.
        index_dir: the user's folder for indexes; None for those beside the data.
        jobs: the most processes that read; None for one to a processor.
        executor: reads the files as a whole instead; it stays open.
        progress: is called in this thread with the progress of a deep verification.

    Raises:
        DataNotFound: a file does not exist.
        WorkerDied: a worker process or the executor ended too early.
    """
    check_workers(jobs, executor)
    seen = _look_up(found, scanner, folders, index_dir)
    cluster.check_nodes(executor, _seen_by_nodes(found, seen.of_indexes))
    damaged = _check_segments(seen.indexed)
    rest = [file for file in seen.indexed if file.segment not in damaged]
    problems = seen.problems | _by_path(check_offsets(file, surveyed=is_surveyor(scanner)) for file in rest)
    if isinstance(scanner, ReadsSideFiles):
        problems |= _by_path(_look_beside(file, scanner) for file in rest)
    rest = [file for file in rest if file.path not in problems]
    if deep:
        read: Iterable[VerificationProblem | None] = compare_all(
            rest, scanner, jobs=jobs, executor=executor, progress=progress
        )
    else:
        read = _look_at_all(rest, progress)
    problems |= _by_path(read)
    in_order = (os.path.join(run.root, name) for run in found for name in run.names)
    of_files = [problems[path] for path in dict.fromkeys(in_order) if path in problems]
    return Verification(
        files=sum(len(run.names) for run in found),
        records=sum(file.entry.records for file in seen.indexed),
        bytes=sum(file.bytes for file in seen.indexed),
        folders=tuple(seen.of_indexes),
        problems=(
            *filter(None, seen.of_indexes.values()),
            *damaged.values(),
            *(
                replace(problem, path=shown_path(problem.path))
                for problem in (*of_files, *seen.gone.values())
            ),
        ),
        indexed=tuple(seen.indexed),
    )


@dataclass(slots=True)
class _Seen:
    """What the indexes say of files, and what a look at the files shows, before any is read."""

    of_indexes: dict[str, VerificationProblem | None] = field(default_factory=dict)
    """The problem of each index folder by itself."""

    indexed: list[Indexed] = field(default_factory=list)
    problems: dict[str, VerificationProblem] = field(default_factory=dict)
    gone: dict[str, VerificationProblem] = field(default_factory=dict)


def _look_up(
    found: Sequence[FoundFiles],
    scanner: Finder,
    folders: Collection[str],
    index_dir: str | os.PathLike[str] | None,
) -> _Seen:
    """Look up files in their indexes, and in `folders` also indexed files that do not exist any more."""
    seen = _Seen()
    for run in found:
        folder, table = _index_of(run, scanner.name, index_dir)
        if folder not in seen.of_indexes:
            seen.of_indexes[folder] = _check_index(folder, table)
        here = _survey(run, folder, table, scanner)
        seen.indexed += [file for file in here if isinstance(file, Indexed)]
        seen.problems |= {file.path: file for file in here if isinstance(file, VerificationProblem)}
        if table and run.root in folders:
            seen.gone |= _by_path(_gone(run, folder, table, scanner.name))
    return seen


def _part(root: str, folder: str, files: Sequence[Indexed]) -> IndexedFiles:
    table = read_table(folder)
    rows = np.array([file.row for file in files], np.int64)
    if table is None or [table.name(row) for row in rows.tolist()] != [file.entry.name for file in files]:
        raise IndexStale(f"the index in {folder!r} was built anew while it was verified; verify it again")
    return indexed_files(root, folder, table, rows)


def _by_path(problems: Iterable[VerificationProblem | None]) -> dict[str, VerificationProblem]:
    return {problem.path: problem for problem in problems if problem}


def _seen_by_nodes(found: Sequence[FoundFiles], folders: Iterable[str]) -> Iterator[str]:
    """Yield the files that the nodes of a cluster must see: the ends of each run, and the catalogs."""
    for run in found:
        yield from (os.path.join(run.root, name) for name in (*run.names[:1], *run.names[-1:]))
    yield from (os.path.join(folder, CATALOG) for folder in folders)


def _index_of(
    run: FoundFiles, format_name: str, index_dir: str | os.PathLike[str] | None
) -> tuple[str, FileTable | None]:
    """Return the index folder that opening would use, and its table if there is one."""
    place = find_index(run.root, index_dir=index_dir)
    shared = read_table(place.shared) if place.shared else None
    if place.shared and shared and (shared.rows(run.names, format_name=format_name) >= 0).all():
        return place.shared, shared
    return place.folder, read_table(place.folder)


def _check_index(folder: str, table: FileTable | None) -> VerificationProblem | None:
    if table is not None:
        return check_catalog(folder, table)
    catalog = os.path.join(folder, CATALOG)
    if os.path.exists(catalog):
        message = "the catalog, or the table that it names, is damaged; seekable index builds them anew"
        return VerificationProblem("index", catalog, message)
    return VerificationProblem("index", catalog, "there is no index; seekable index makes one")


def _survey(
    run: FoundFiles, folder: str, table: FileTable | None, scanner: Finder
) -> list[Indexed | VerificationProblem]:
    """Return each file with its entry in the index, or the problem that it has none."""
    if table is None:
        return []
    entries = table.entries()
    surveyed: list[Indexed | VerificationProblem] = []
    rows = table.rows(run.names, format_name=scanner.name).tolist()
    for name, row, version in zip(run.names, rows, _versions(run), strict=True):
        path = os.path.join(run.root, name)
        if row < 0:
            message = f"the index in {folder!r} does not have it; seekable index adds it"
            surveyed.append(VerificationProblem("not indexed", path, message))
        else:
            try:
                known = Indexed(run.root, folder, row, entries[row], *version)
                surveyed.append(replace(known, remote_size=_remote_size(path, scanner)))
            except UnsupportedFormat as error:
                surveyed.append(VerificationProblem("content", path, str(error)))
    return surveyed


def _versions(run: FoundFiles) -> Iterable[tuple[int, int]]:
    """Look at each file: return its size and modification time, or the number of its version."""
    if "://" in run.root:
        sizes, identities = far().looks(run.root, run.names)
        return zip(sizes.tolist(), identities.tolist(), strict=True)
    statuses = (stat_file(os.path.join(run.root, name)) for name in run.names)
    return ((status.st_size, status.st_mtime_ns) for status in statuses)


def _remote_size(path: str, scanner: Finder) -> int | None:
    """Return the number of bytes of the file that a placeholder stands for; None for any other file."""
    if is_table_indexer(scanner) or not may_hold_placeholders(path):
        return None
    return far().placeholders.size(path)


def _gone(run: FoundFiles, folder: str, table: FileTable, format_name: str) -> Iterator[VerificationProblem]:
    """Yield the files of an index that are not there any more."""
    here = set(run.names)
    for entry in table.entries():
        path = os.path.join(run.root, entry.name)
        if entry.format == format_name and entry.name not in here and not _exists(path):
            message = (
                f"it is in the index in {folder!r} with {entry.records:,} records, and not there any more"
            )
            yield VerificationProblem("gone", path, message)


def _exists(path: str) -> bool:
    return paths.exists(path) if "://" in path else os.path.lexists(path)


def _check_segments(indexed: Sequence[Indexed]) -> dict[tuple[str, str], VerificationProblem]:
    """Return the problems of the segments of some files."""
    files = Counter(file.segment for file in indexed)
    segments = {file.segment: file for file in indexed}
    found = {
        key: check_segment(file.folder, file.entry.segment, files=files[key])
        for key, file in segments.items()
    }
    return {key: problem for key, problem in found.items() if problem}


def _look_at_all(
    files: Sequence[Indexed], progress: ProgressHook | None
) -> Iterator[VerificationProblem | None]:
    size, read, records, throttle = sum(file.bytes for file in files), 0, 0, Throttle()
    # The ends of objects are mostly waited for, many at a time.
    with closing(looked_at(_look, files)) as problems:
        for number, (file, problem) in enumerate(zip(files, problems, strict=True)):
            if progress and throttle.is_due():
                progress(Progress(number, len(files), read, size, records, task="verifying"))
            yield problem
            read, records = read + file.bytes, records + file.entry.records


def _look_beside(file: Indexed, scanner: ReadsSideFiles) -> VerificationProblem | None:
    """Compare the files beside a file with those that it was surveyed with."""
    changed = changed_beside(file.path, scanner.side_files(read_schema(file.folder, file.entry.schema)))
    if changed is None:
        return None
    message = f"{changed!r}, which tells its records, was changed since; opening it indexes it again"
    return VerificationProblem("changed", file.path, message)


def _look(file: Indexed) -> VerificationProblem | None:
    """Compare a file's size, time and ends."""
    if file.difference:
        return VerificationProblem("changed", file.path, f"{file.difference}; opening it indexes it again")
    if not has_same_ends(file):
        message = (
            "its first or last 64 KiB are others, at the same size and time (a deep look tells more); put "
            "the old file back, or index it again after `touch`"
        )
        return VerificationProblem("content", file.path, message)
    return None


@dataclass(frozen=True, slots=True)
class _PartJob:
    """A part of an indexed file, to be read and compared."""

    path: str
    folder: str
    """The folder of the index."""
    entry: Entry
    """The entry of the file in the index; its size is at least 1."""
    start: int
    stop: int
    """The part, in bytes of the file as it is now."""
    size: int
    """The size of the file now; for a placeholder, of the file that it stands for."""
    version: tuple[int, int]
    """The size of the file itself and its modification time; of an object, its size and its version."""


@dataclass(frozen=True, slots=True)
class _Boundary:
    """The first start of a record that is not where the index says."""

    row: int
    """The row of the record."""
    indexed: int | None
    """The first byte of the record by the index; None if the index has no further record in this part."""
    found: int | None
    """The first byte of the record in the file; None if no further record starts in this part."""

    @property
    def offset(self) -> int:
        """The earlier of both bytes."""
        return min(at for at in (self.indexed, self.found) if at is not None)


@dataclass(frozen=True, slots=True)
class _Compared:
    """The present state of a part."""

    pieces: bytes
    """The digests of its pieces."""
    boundary: _Boundary | None
    """The first record that disagrees with the index."""
    refused: str | None
    """The error message if the file is not of the format, or is not what was listed; else None."""


def _compare_parts(jobs: Sequence[_PartJob], scanner: Finder) -> list[_Compared]:
    """Compare some parts, for instance in another process."""
    return [_compare_part(job, scanner, on_bytes=None) for job in jobs]


def _sent_jobs(jobs: Sequence[_PartJob], scanner: Finder) -> bytes:
    """Pickle parts of objects for another process, with their stores."""
    stores = far().passport(job.path for job in jobs)
    return serialized((stores, jobs, scanner), way_out="verify with jobs=1, in this process")


def _compare_sent(data: bytes) -> list[_Compared]:
    """Compare the parts of `_sent_jobs`; call this only with bytes of the process that verifies."""
    _, jobs, scanner = deserialized(data)
    return _compare_parts(jobs, scanner)


def _compare_part(job: _PartJob, scanner: Finder, *, on_bytes: Callable[[int], None] | None) -> _Compared:
    """Read a part of a file, find its records again and compare them with the index.

    Args:
        job: the part.
        scanner: finds the records.
        on_bytes: is called with the number of bytes that were read since the last call.

    Raises:
        FileNotFoundError: the file or its offsets do not exist any more.
    """
    with opened_file(job.path, version=job.version, on_wait=on_bytes) as file:
        try:
            if is_table_indexer(scanner):
                ranges = file.ranges()
                groups = scanner.read_layout(ranges).starts
                return _Compared(ranges.digest(), _first_difference(job, groups), None)
            if is_surveyor(scanner):
                with file.data(job.start, job.stop, headers=False) as data:
                    _read_all(data, on_bytes)
                with file.data(job.start, job.stop, headers=compression_of(job.path) is None) as data:
                    words = survey(data, scanner, head_tail=file.head_tail())
                return _Compared(words.pieces, _first_difference(job, words.words), None)
            with file.data(job.start, job.stop, headers=False) as data:
                source = _source(data, job, on_bytes)
                if not job.start:
                    scanner.check_head(source.head, data.name)
                found = scanner.scan(source)
        except (UnsupportedFormat, IndexStale, DataNotFound) as error:
            return _Compared(b"", None, str(error))
        pieces = source.piece_digests()
    return _Compared(pieces, _first_difference(job, found), None)


def _read_all(data: Data, on_bytes: Callable[[int], None] | None) -> None:
    """Read all bytes of an archive, of which a survey reads the headers alone: each must be readable."""
    for _ in ByteSource(data.file, size=data.size, head=data.head, on_bytes=on_bytes).chunks():
        pass


def _source(data: Data, job: _PartJob, on_bytes: Callable[[int], None] | None) -> ByteSource:
    if kind := data.compression:
        return DecompressingSource(data.file, size=data.size, kind=kind, path=data.name, on_bytes=on_bytes)
    part = (job.start, job.stop)
    return ByteSource(data.file, size=data.size, head=data.head, part=part, on_bytes=on_bytes)


def _first_difference(job: _PartJob, found: NDArray[np.uint64]) -> _Boundary | None:
    entry = job.entry
    offsets = open_offsets(job.folder, entry.segment).array[entry.start : entry.start + entry.numbers - 1]
    first, last = np.searchsorted(offsets, np.array([job.start, job.stop], np.uint64)).tolist()
    if job.stop == job.size:
        last = len(offsets)  # What the index has beyond the file's end is wrong, too.
    indexed = offsets[first:last]
    common = min(len(indexed), len(found))
    differ = np.flatnonzero(indexed[:common] != found[:common])
    at = int(differ[0]) if len(differ) else common
    if at == len(indexed) == len(found):
        return None
    return _Boundary(
        first + at,
        int(indexed[at]) if at < len(indexed) else None,
        int(found[at]) if at < len(found) else None,
    )


T = TypeVar("T")


_PART_BYTES = 4 * PIECE_BYTES

_PARALLEL_BYTES = 1 << 30
"""Fewer bytes are read before workers are worth their start."""

_FEWEST_WORKERS = 2

_ENDS_AT_ONCE = 32
"""The objects whose ends are fetched at once, two requests each."""

_PARTS_AT_ONCE = 16
"""The parts of objects that are read at once."""

_AHEAD_EACH = 2
"""Requests under way for each worker."""


def compare_all(
    files: Sequence[Indexed],
    scanner: Finder,
    *,
    jobs: int | None,
    executor: Executor | None,
    progress: ProgressHook | None,
) -> list[VerificationProblem]:
    """Read files as a whole and return their problems, at most one a file.

    Args:
        files: the files, with their entries in the index.
        scanner: finds the records in them.
        jobs: the most processes that read; None for one to a processor.
        executor: reads them instead; it stays open.
        progress: is called in this thread with the progress of the reading.

    Raises:
        WorkerDied: a worker process or the executor ended too early.
    """
    sizes = [file.bytes for file in files]
    part_bytes = _PART_BYTES if is_splittable(scanner) else None
    compressed = {number for number, file in enumerate(files) if compression_of(file.entry.name)}
    batches = list(plan_batches(sizes, part_bytes=part_bytes, whole=compressed))
    watch = _Watch(files, batches, progress)
    parts = sum(len(batch) for batch in batches)
    workers = min(usable_cpus() if jobs is None else jobs, parts)
    if executor is not None:
        results = _in_executor(
            files,
            batches,
            scanner,
            watch,
            executor,
            ahead=most_requests(executor, otherwise=FOREIGN_REQUESTS),
        )
    elif any("://" in file.path for file in files):
        results = _in_threads(files, batches, scanner, watch)
    elif workers < _FEWEST_WORKERS or sum(sizes) < _PARALLEL_BYTES:
        results = _here(files, batches, scanner, watch)
    else:
        results = _in_workers(files, batches, scanner, watch, workers=workers)
    compared: dict[int, dict[int, _Compared]] = {number: {} for number in range(len(files))}
    for part, result in results:
        compared[part.file][part.number] = result
    watch.report(always=True)
    judged = (_judge(files[number], [by[part] for part in sorted(by)]) for number, by in compared.items())
    return [problem for problem in judged if problem]


def has_same_ends(file: Indexed) -> bool:
    """Return True if the first and last 64 KiB of a file are those that were indexed."""
    with opened_file(file.path, version=(file.size, file.mtime_ns)) as opened:
        return opened.head_tail() == file.entry.head_tail


def looked_at(look: Callable[[Indexed], T], files: Sequence[Indexed]) -> Generator[T]:
    """Yield what a function returns for each file, in their order; of objects, many at a time."""
    if not any("://" in file.path for file in files):
        yield from map(look, files)
        return
    with abandoned_at_errors(_ENDS_AT_ONCE, "seekable-verify") as threads:
        yield from threads.map(look, files)


def _go_on(_: int) -> None:
    """End a thread that was abandoned, also where it computes and waits for nothing."""
    check_not_abandoned()


def _job(file: Indexed, part: FilePart) -> _PartJob:
    return _PartJob(
        file.path,
        file.folder,
        file.entry,
        start=part.start,
        stop=part.stop,
        size=file.bytes,
        version=(file.size, file.mtime_ns),
    )


def _here(
    files: Sequence[Indexed],
    batches: Sequence[Sequence[FilePart]],
    scanner: Finder,
    watch: _Watch,
) -> Iterator[tuple[FilePart, _Compared]]:
    for part in chain.from_iterable(batches):
        yield part, _compare_part(_job(files[part.file], part), scanner, on_bytes=watch.read)
        watch.done(part)


def _in_threads(
    files: Sequence[Indexed],
    batches: Sequence[Sequence[FilePart]],
    scanner: Finder,
    watch: _Watch,
) -> Iterator[tuple[FilePart, _Compared]]:
    """Compare objects of stores, whose bytes are mostly waited for."""
    left = chain.from_iterable(batches)
    with abandoned_at_errors(_PARTS_AT_ONCE, "seekable-verify") as threads:
        tasks: Tasks[FilePart, _Compared] = Tasks(
            take=lambda: next(left, None),
            submit=lambda executor, part: executor.submit(
                _compare_part, _job(files[part.file], part), scanner, on_bytes=_go_on
            ),
            here=None,
            idle=watch.report,
            name=lambda part: f"{files[part.file].path!r} from byte {part.start}",
        )
        for part, result in run_tasks(tasks, executor=threads, ahead=_PARTS_AT_ONCE):
            watch.read(part.stop - part.start)
            watch.done(part)
            yield part, result


def _in_workers(
    files: Sequence[Indexed],
    batches: Sequence[Sequence[FilePart]],
    scanner: Finder,
    watch: _Watch,
    *,
    workers: int,
) -> Iterator[tuple[FilePart, _Compared]]:
    with WorkerProcesses(workers) as processes:
        yield from _in_executor(files, batches, scanner, watch, processes, ahead=workers * _AHEAD_EACH)


def _in_executor(
    files: Sequence[Indexed],
    batches: Sequence[Sequence[FilePart]],
    scanner: Finder,
    watch: _Watch,
    executor: Executor,
    *,
    ahead: int,
) -> Iterator[tuple[FilePart, _Compared]]:
    left = iter(batches)

    def submit(executor: Executor, batch: Sequence[FilePart]) -> Future[list[_Compared]]:
        jobs = [_job(files[part.file], part) for part in batch]
        if any("://" in job.path for job in jobs):
            return executor.submit(_compare_sent, _sent_jobs(jobs, scanner))
        return executor.submit(_compare_parts, jobs, scanner)

    tasks: Tasks[Sequence[FilePart], list[_Compared]] = Tasks(
        take=lambda: next(left, None),
        submit=submit,
        here=None,
        idle=watch.report,
        name=lambda batch: f"{files[batch[0].file].path!r} from byte {batch[0].start}",
    )
    with closing(run_tasks(tasks, executor=executor, ahead=ahead)) as answers:
        for batch, results in answers:
            for part, result in zip(batch, results, strict=True):
                watch.read(part.stop - part.start)
                watch.done(part)
                yield part, result


class _Watch:
    """The progress of the reading."""

    def __init__(
        self, files: Sequence[Indexed], batches: Sequence[Sequence[FilePart]], hook: ProgressHook | None
    ) -> None:
        self._hook = hook
        self._files = files
        self._left = Counter(part.file for part in chain.from_iterable(batches))
        self._bytes = sum(file.bytes for file in files)
        self._read = self._records = self._done = 0
        self._throttle = Throttle()

    def read(self, size: int) -> None:
        self._read += size
        self.report()

    def done(self, part: FilePart) -> None:
        self._left[part.file] -= 1
        if not self._left[part.file]:
            self._done += 1
            self._records += self._files[part.file].entry.records

    def report(self, *, always: bool = False) -> None:
        if self._hook is None or not self._throttle.is_due(always=always):
            return
        self._hook(
            Progress(self._done, len(self._files), self._read, self._bytes, self._records, task="verifying")
        )


def _judge(file: Indexed, parts: Sequence[_Compared]) -> VerificationProblem | None:
    """Return the problem of a file whose parts were all compared, None if it has none."""
    refused = next((part.refused for part in parts if part.refused), None)
    if refused:
        return VerificationProblem("changed" if file.difference else "content", file.path, refused, offset=0)
    boundary = next((part.boundary for part in parts if part.boundary), None)
    content = content_digest(b"".join(part.pieces for part in parts))
    if content != file.entry.content and not file.entry.unread:
        return _other_content(file, boundary)
    if boundary:
        message = (
            f"its content is what was indexed, and yet {_in_words(boundary)}: the index in {file.folder!r} "
            f"is wrong; remove it and index again"
        )
        return VerificationProblem("offsets", file.path, message, row=boundary.row, offset=boundary.offset)
    if file.difference:
        message = f"its content is what was indexed, but {file.difference}; opening it indexes it again"
        return VerificationProblem("touched", file.path, message)
    return None


def _other_content(file: Indexed, boundary: _Boundary | None) -> VerificationProblem:
    what = file.difference or "its content is another, at the same size and time"
    remedy = "put the old file back, or open it to index the new one"
    if file.remote_size is not None:
        remedy = (
            f"remove its copy in the cache of huggingface_hub, if it has one; else remove {file.folder!r}, "
            f"and open the data again"
        )
    elif not file.difference:
        remedy = "put the old file back, or index it again after `touch`"
    if boundary:
        message = f"{what}; {_in_words(boundary)}; {remedy}"
        return VerificationProblem(_kind(file), file.path, message, row=boundary.row, offset=boundary.offset)
    where, offset = "records start where they did, so that it cannot be told which one is another", None
    if file.remote_size is not None:
        where += f"; the bytes on this machine or on the Hub are others than those of {file.shown!r}"
    elif file.size == file.entry.size and has_same_ends(file):
        offset = END_BYTES
        where += f" but that it is between byte {offset:,} and byte {file.size - END_BYTES:,}"
    return VerificationProblem(_kind(file), file.path, f"{what}; {where}; {remedy}", offset=offset)


def _kind(file: Indexed) -> Kind:
    return "changed" if file.difference else "content"


def _in_words(boundary: _Boundary) -> str:
    row, indexed, found = boundary.row, boundary.indexed, boundary.found
    if found is None:
        return f"record {row:,}, indexed at byte {indexed:,}, does not start there any more"
    if indexed is None:
        return f"at byte {found:,} starts a record {row:,} that was not indexed"
    return f"record {row:,} starts at byte {found:,} and was indexed at byte {indexed:,}"
