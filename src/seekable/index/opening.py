"""Opening files: their index is read, and built where it is missing or out of date."""

from __future__ import annotations

import itertools
import operator
import os
from contextlib import suppress
from typing import TYPE_CHECKING, final

import numpy as np
from msgspec import structs

from seekable._arguments import check_workers
from seekable._lazy import lazy
from seekable._log import LOG
from seekable._typing import Value
from seekable.errors import AccessDenied, IndexStale
from seekable.index.catalog import read_table, whole_segments
from seekable.index.fileset import FileSet
from seekable.index.finder import ReadsSideFiles, changed_beside, is_table_indexer
from seekable.index.index_location import find_index, may_hold_placeholders
from seekable.index.indexed_files import indexed_files
from seekable.index.sidecar_files import has_points, has_schema, read_schema
from seekable.storage.access import chosen_cache
from seekable.storage.compression import compression_of
from seekable.storage.far import far
from seekable.storage.files import stat_file, stat_files
from seekable.storage.mapped import MOST_OPEN_FILES, OpenFiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from concurrent.futures import Executor

    from numpy.typing import NDArray

    from seekable.index.build import build_index, file_parts, scan
    from seekable.index.file_table import FileTable
    from seekable.index.finder import Finder
    from seekable.index.indexed_files import IndexedFiles
    from seekable.index.offsets import Offsets
    from seekable.parallel import cluster
    from seekable.parallel.progress import ProgressChoice, ProgressHook
    from seekable.storage.listing import FoundFiles
else:
    build_index = lazy("seekable.index.build.build_index")
    cluster = lazy("seekable.parallel.cluster")
    file_parts = lazy("seekable.index.build.file_parts")
    scan = lazy("seekable.index.build.scan")

_MOST_BUILDS = 3

_MOST_READ_BYTES = 64 << 20
"""The most bytes of a file that is compared with its index because both were written at nearly one time."""

_RACY_NS = 2_000_000_000
"""A file indexed this soon after its modification may have changed again with the same time: the times of
some file systems have steps of two seconds."""


class _FileStatus(Value, frozen=True, eq=False):
    """Which files an index has as they are, and which are to be scanned."""

    rows: NDArray[np.int64]
    """The row of each file in the table, -1 where there is none that is valid."""

    racy: NDArray[np.bool_]
    """True for each file with a row that must be read again: it may have changed since it was indexed."""

    @property
    def to_scan(self) -> NDArray[np.bool_]:
        """True for each file to be read."""
        return (self.rows < 0) | self.racy


class _RootFiles(Value, frozen=True, eq=False):
    """The files to open of one root, each once, as they are on disk."""

    root: str
    numbers: dict[str, int]
    sizes: NDArray[np.int64]
    mtimes_ns: NDArray[np.int64]


class _Index(Value, frozen=True, eq=False):
    """The index of one root, compared with the files to open."""

    files: _RootFiles
    folder: str
    notice: str
    table: FileTable | None
    status: _FileStatus
    opened: list[Offsets | bool]
    """What was opened to compare, so that it is not opened again."""


@final
class Indexing(Value, frozen=True):
    """The arguments of `open_files` that say how files are indexed, and where."""

    index_dir: str | os.PathLike[str] | None
    jobs: int | None
    executor: Executor | None
    progress: ProgressChoice
    most_bytes: int | None = None
    publish: bool = False
    by_version: bool = False
    most_open: int = MOST_OPEN_FILES

    def files(self, found: Sequence[FoundFiles], scanner: Finder) -> FileSet:
        """Return an indexed set of files, and publish the index if that is asked for; see `open_files`."""
        if self.publish:
            far().builds.check_publishable(run.root for run in found)
        files = open_files(
            found,
            scanner,
            index_dir=self.index_dir,
            jobs=self.jobs,
            executor=self.executor,
            progress=None if isinstance(self.progress, bool) else self.progress,
            most_bytes=self.most_bytes,
            kept_open=OpenFiles(self.most_open, keeps_maps=not is_table_indexer(scanner)),
        )
        if self.publish:
            for published in far().builds.publish(files):
                LOG.info(published)
        if self.by_version:
            files = far().builds.by_version(files)
        return files


def open_files(  # noqa: PLR0913 - what `Indexing` has
    found: Sequence[FoundFiles],
    scanner: Finder,
    *,
    index_dir: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: ProgressHook | None = None,
    most_bytes: int | None = None,
    kept_open: OpenFiles | None = None,
) -> FileSet:
    """Return an indexed set of files, after indexing those that are new or changed.

    Where all files are indexed, this takes one stat a file: nothing is locked or written.

    Args:
        found: the files, in the order of their records.
        scanner: finds the records in them.
        index_dir: a folder for the indexes of all roots; see `seekable.index.index_location` for the default.
        jobs: the most processes that scan; None for one to a processor.
        executor: runs the scans instead of our own processes; it stays open.
        progress: is called in this thread with the progress of the build; not called without a build.
        most_bytes: the most bytes that may be fetched from stores; None for any number.
        kept_open: the open files of the set; None for the usual bound, without the maps of closed ones.

    Raises:
        InvalidArgument: more bytes may have to be fetched than that; none were.
        DataNotFound: a file does not exist.
        AccessDenied: this user may not read a file, or not write the index.
        UnsupportedFormat: a file is certainly not of the scanner's format.
        IndexStale: a file changed during each of its scans.
        WorkerDied: a worker process ended too early.
    """
    check_workers(jobs, executor)
    wanted = [_stat(root, names) for root, names in _by_root(found).items()]
    for builds in itertools.count():
        # After a build no file is doubted: each was read a moment ago.
        indexes = [_look_up(files, scanner, index_dir=index_dir, doubt=builds == 0) for files in wanted]
        tasks = [task for index in indexes for task in _tasks(index, scanner)]
        if not tasks:
            break
        if builds == _MOST_BUILDS:
            raise IndexStale(
                f"{tasks[0].path!r} and perhaps others were changed each time they had been indexed, "
                f"{builds} times in a row; open them when nothing writes to them"
            )
        cluster.check_nodes(executor, (task.path for task in tasks))
        notices = [index.notice for index in indexes if index.notice and index.status.to_scan.any()]
        build_index.build(
            tasks,
            scanner,
            notices=notices,
            jobs=jobs,
            executor=executor,
            progress=progress,
            most_bytes=most_bytes,
        )
        wanted = [_stat_again(index, scanner.name) for index in indexes]
    return _file_set(found, indexes, OpenFiles(MOST_OPEN_FILES) if kept_open is None else kept_open)


def find_indexed(path: str, *, format_name: str) -> FileSet | None:
    """Return a file as an index has it, None if no index has it as it is now; nothing is built or written.

    The index is that of the folder of the file, or of a folder above.

    Args:
        path: the path of the file.
        format_name: the name of the format in the index.

    Raises:
        DataNotFound: the file does not exist.
    """
    if "://" in path:
        return None
    root, name = os.path.split(os.path.abspath(path))
    while True:
        # A link above the data is no reason to refuse the data.
        with suppress(AccessDenied):
            folder = find_index(root, index_dir=None).folder
            index = _compared(_stat(root, {name: 0}), format_name, folder, notice="", doubt=True)
            if index.table is not None and index.status.rows[0] >= 0 and _is_sure(index, path):
                return FileSet((indexed_files(root, folder, index.table, index.status.rows),))
        above, last = os.path.split(root)
        if not last:
            return None
        root, name = above, os.path.join(last, name)


def _is_sure(index: _Index, path: str) -> bool:
    """Return True unless the one file of an index may have changed since it was indexed."""
    assert index.table is not None
    if not index.status.racy[0]:
        return True
    if index.files.sizes[0] > _MOST_READ_BYTES:
        return False
    version = int(index.files.sizes[0]), int(index.files.mtimes_ns[0])
    return scan.bytes_digest(path, version=version) == index.table.digest(
        "content", int(index.status.rows[0])
    )


def _by_root(found: Iterable[FoundFiles]) -> dict[str, dict[str, int]]:
    """Group the names to open by root, each name once, with its position."""
    roots: dict[str, dict[str, int]] = {}
    for run in found:
        numbers = roots.setdefault(run.root, {})
        for name in run.names:
            numbers.setdefault(name, len(numbers))
    return roots


def _stat(root: str, numbers: dict[str, int]) -> _RootFiles:
    if "://" in root:
        return _RootFiles(root, numbers, *far().looks(root, list(numbers)))
    sizes, mtimes_ns = np.empty((2, len(numbers)), np.int64)
    for number, status in enumerate(stat_files(root, numbers)):
        sizes[number], mtimes_ns[number] = status.st_size, status.st_mtime_ns
    return _RootFiles(root, numbers, sizes=sizes, mtimes_ns=mtimes_ns)


def _stat_again(index: _Index, format_name: str) -> _RootFiles:
    """Look again at the files that were scanned; return all with sizes and times."""
    scanned, paths = np.flatnonzero(index.status.to_scan).tolist(), _paths(index)
    sizes, mtimes_ns = index.files.sizes.copy(), index.files.mtimes_ns.copy()
    if "://" in index.files.root:
        # Each scan read one version, which the new table has: the store is not asked again.
        names = list(index.files.numbers)
        _take_scanned(read_table(index.folder), names, scanned, sizes, mtimes_ns, format_name)
        return structs.replace(index.files, sizes=sizes, mtimes_ns=mtimes_ns)
    for file in scanned:
        status = stat_file(paths[file])
        sizes[file], mtimes_ns[file] = status.st_size, status.st_mtime_ns
    return structs.replace(index.files, sizes=sizes, mtimes_ns=mtimes_ns)


def _take_scanned(
    table: FileTable | None,
    names: Sequence[str],
    scanned: Sequence[int],
    sizes: NDArray[np.int64],
    identities: NDArray[np.int64],
    format_name: str,
) -> None:
    """Set the sizes and identities of scanned objects to those that they were scanned with."""
    if table is None or not scanned:
        return
    rows = table.rows([names[file] for file in scanned], format_name=format_name)
    there = np.array(scanned, np.int64)[rows >= 0]
    sizes[there] = table.column("size", rows[rows >= 0])
    identities[there] = table.column("mtime_ns", rows[rows >= 0])


def _look_up(
    files: _RootFiles, scanner: Finder, *, index_dir: str | os.PathLike[str] | None, doubt: bool
) -> _Index:
    location = find_index(files.root, index_dir=index_dir)
    if location.shared:
        # Always doubted: this process cannot write it.
        shared = _compared(files, scanner.name, location.shared, notice="", doubt=True)
        sure = _sure(_with_side_files(shared, scanner, doubt=True), scanner)
        if sure is not None:
            return sure
    index = _compared(files, scanner.name, location.folder, notice=location.notice, doubt=doubt)
    return _with_side_files(index, scanner, doubt=doubt)


def _with_side_files(index: _Index, scanner: Finder, *, doubt: bool) -> _Index:
    """Drop files whose side files have changed since the survey, and doubt those with new side files."""
    if not isinstance(scanner, ReadsSideFiles) or index.table is None:
        return index
    rows, racy = index.status.rows.copy(), index.status.racy.copy()
    paths = _paths(index)
    known = np.flatnonzero(rows >= 0)
    schemas = index.table.column("schema", rows[known]).view(np.uint64).tolist()
    indexed_ns = index.table.column("indexed_ns", rows[known]).tolist()
    beside = {digest: tuple(scanner.side_files(read_schema(index.folder, digest))) for digest in set(schemas)}
    for file, schema, time_ns in zip(known.tolist(), schemas, indexed_ns, strict=True):
        if changed_beside(paths[file], beside[schema]):
            rows[file] = -1
        elif doubt:
            racy[file] |= any(abs(time_ns - side.mtime_ns) < _RACY_NS for side in beside[schema])
    return structs.replace(index, status=_FileStatus(rows, racy & (rows >= 0)))


def _compared(files: _RootFiles, format_name: str, folder: str, *, notice: str, doubt: bool) -> _Index:
    table = read_table(folder)
    whole, opened = whole_segments(folder, table) if table else (None, [])
    doubt = doubt and "://" not in files.root  # An etag changes with each write, whatever the time is.
    found = _file_status(
        table,
        list(files.numbers),
        format_name=format_name,
        sizes=files.sizes,
        mtimes_ns=files.mtimes_ns,
        whole=whole,
        doubt=doubt,
    )
    return _Index(files, folder, notice, table, _enterable(files, folder, table, found), opened)


def _file_status(
    table: FileTable | None,
    names: Sequence[str],
    *,
    format_name: str,
    sizes: NDArray[np.int64],
    mtimes_ns: NDArray[np.int64],
    whole: NDArray[np.bool_] | None,
    doubt: bool,
) -> _FileStatus:
    """Compare the files of an index with those on disk: which are as they were, which need a scan.

    Pure: no file is accessed.

    Args:
        table: the index's table, if it has one.
        names: the files' names relative to the root.
        format_name: the name of the format that they are opened in.
        sizes: their sizes in bytes, int64.
        mtimes_ns: their modification times, int64.
        whole: True for each segment of the table that can be used; None without a table.
        doubt: True to read files again that were indexed right after they were modified.
    """
    if table is None or whole is None:
        return _FileStatus(np.full(len(names), -1, np.int64), np.zeros(len(names), bool))
    rows = table.rows(names, format_name=format_name)
    here = np.flatnonzero(rows >= 0)
    size, mtime_ns, segment, indexed_ns = table.columns(
        ("size", "mtime_ns", "segment", "indexed_ns"), rows[here]
    )
    valid = (size == sizes[here]) & (mtime_ns == mtimes_ns[here]) & whole[segment]
    rows[here[~valid]] = -1
    racy = np.zeros(len(names), bool)
    racy[here] = doubt & valid & (np.abs(indexed_ns - mtimes_ns[here]) < _RACY_NS)
    return _FileStatus(rows, racy)


def _enterable(files: _RootFiles, folder: str, table: FileTable | None, found: _FileStatus) -> _FileStatus:
    """Drop compressed files without seek points, and tables without a schema."""
    lost = _without_schema(folder, table, found) if table is not None else []
    if table is not None and any(map(compression_of, {name[-4:] for name in files.numbers})):
        lost += [
            number
            for number, name in enumerate(files.numbers)
            if compression_of(name)
            and found.rows[number] >= 0
            and not has_points(folder, table.digest("content", int(found.rows[number])))
        ]
    if not lost:
        return found
    rows = found.rows.copy()
    rows[lost] = -1
    return structs.replace(found, rows=rows)


def _without_schema(folder: str, table: FileTable, found: _FileStatus) -> list[int]:
    known = np.flatnonzero(found.rows >= 0)
    schemas = table.column("schema", found.rows[known]).view(np.uint64)
    if not schemas.any():
        return []
    gone = [digest for digest in set(schemas.tolist()) if digest and not has_schema(folder, digest)]
    if not gone:
        return []
    # NumPy 2.0 finds numbers above 2**63 by sorting alone.
    lost: list[int] = known[np.isin(schemas, np.array(gone, np.uint64), kind="sort")].tolist()
    return lost


def _sure(index: _Index, scanner: Finder) -> _Index | None:
    """Return an index if it is complete and, where in doubt, equal to the files; else None."""
    if index.table is None or (index.status.rows < 0).any():
        return None
    paths = _paths(index)
    for file in np.flatnonzero(index.status.racy).tolist():
        version = int(index.files.sizes[file]), int(index.files.mtimes_ns[file])
        found = scan.content_digest(paths[file], scanner, version=version)
        if found != index.table.digest("content", index.status.rows[file]):
            return None
    return structs.replace(index, status=structs.replace(index.status, racy=np.zeros_like(index.status.racy)))


def _tasks(index: _Index, scanner: Finder) -> Iterator[file_parts.FileToIndex]:
    scanned = np.flatnonzero(index.status.to_scan).tolist()
    names, paths = (list(index.files.numbers), _paths(index)) if scanned else ([], [])
    for file in scanned:
        size, mtime_ns = int(index.files.sizes[file]), int(index.files.mtimes_ns[file])
        remote = None
        if not is_table_indexer(scanner) and may_hold_placeholders(paths[file]):
            remote = far().placeholders.size(paths[file])
        yield file_parts.FileToIndex(
            index.folder, index.files.root, names[file], paths[file], size, mtime_ns, remote
        )


def _paths(index: _Index) -> list[str]:
    folder = os.path.join(index.files.root, "")
    return [folder + name for name in index.files.numbers]


def _file_set(found: Sequence[FoundFiles], indexes: Sequence[_Index], kept_open: OpenFiles) -> FileSet:
    by_root = {index.files.root: index for index in indexes}
    count = sum(map(len, map(operator.attrgetter("names"), found)))
    files = FileSet(tuple([_part(run, by_root[run.root]) for run in found]), ((count, kept_open),))
    files.load()
    return files


def _part(run: FoundFiles, index: _Index) -> IndexedFiles:
    assert index.table is not None  # Only an index without a table lacks files, and none does.
    numbers = np.array([index.files.numbers[name] for name in run.names], np.int64)
    rows = index.status.rows[numbers]
    cache = chosen_cache() if "://" in run.root else None
    return indexed_files(run.root, index.folder, index.table, rows, cache=cache)
