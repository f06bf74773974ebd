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
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from seekable._arguments import check_workers
from seekable._lazy import lazy
from seekable.errors import IndexStale, UnsupportedFormat
from seekable.index.catalog import CATALOG, read_table
from seekable.index.deep_verification import compare_all, has_same_ends, looked_at
from seekable.index.fileset import FileSet
from seekable.index.index_location import find_index, may_hold_placeholders
from seekable.index.indexed_files import indexed_files
from seekable.index.integrity import Indexed, VerificationProblem, check_catalog, check_offsets, check_segment
from seekable.index.location import shown_path
from seekable.index.sidecar_files import read_schema
from seekable.index.surveyor import ReadsSideFiles, changed_beside, is_surveyor, is_table_indexer
from seekable.parallel.progress import Progress, Throttle
from seekable.storage.far import far
from seekable.storage.files import stat_file

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from concurrent.futures import Executor

    from seekable.index.file_table import FileTable
    from seekable.index.indexed_files import IndexedFiles
    from seekable.index.surveyor import Finder
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
    of_indexes: dict[str, VerificationProblem | None] = {}
    indexed: list[Indexed] = []
    problems: dict[str, VerificationProblem] = {}
    gone: dict[str, VerificationProblem] = {}
    for run in found:
        folder, table = _index_of(run, scanner.name, index_dir)
        if folder not in of_indexes:
            of_indexes[folder] = _check_index(folder, table)
        here = _survey(run, folder, table, scanner)
        indexed += [file for file in here if isinstance(file, Indexed)]
        problems |= {file.path: file for file in here if isinstance(file, VerificationProblem)}
        if table and run.root in folders:
            gone |= _by_path(_gone(run, folder, table, scanner.name))
    cluster.check_nodes(executor, _seen_by_nodes(found, of_indexes))
    damaged = _check_segments(indexed)
    rest = [file for file in indexed if file.segment not in damaged]
    problems |= _by_path(check_offsets(file, surveyed=is_surveyor(scanner)) for file in rest)
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
        records=sum(file.entry.records for file in indexed),
        bytes=sum(file.bytes for file in indexed),
        folders=tuple(of_indexes),
        problems=(
            *filter(None, of_indexes.values()),
            *damaged.values(),
            *(replace(problem, path=shown_path(problem.path)) for problem in (*of_files, *gone.values())),
        ),
        indexed=tuple(indexed),
    )


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
