"""Index files for other tools, ``x.jsonl.idx`` and ``x.tar.idx``: Lhotse's, and Energon's of archives.

Both are little-endian uint64: where each record starts, and one number more. That is for Lhotse the number
of bytes that it reads, which is nearly always the size of the file, and for Energon the first byte of the end
mark. A record is a line, blank ones too; of an archive it is a pair of members for Lhotse and a sample of
WebDataset for Energon, from its first extended header on.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from seekable.errors import DataNotFound, IndexStale, InvalidArgument, UnsupportedFormat
from seekable.formats.lines.jsonl import JsonlScanner
from seekable.formats.shar.lhotse_index import NUMBERS, index_path
from seekable.formats.shar.shar_layout import fields_of_folder
from seekable.formats.tar.header import BLOCK_BYTES
from seekable.formats.tar.samples import SampleRule, group_samples
from seekable.formats.tar.tar_writer import RECORD_BYTES
from seekable.formats.tar.walk import Walk
from seekable.index.build.content import ForwardFile
from seekable.index.digest import END_BYTES
from seekable.storage.files import stat_file, unreadable_error, write_atomically
from seekable.storage.listing import find_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    _Bounds = NDArray[np.uint64]

__all__ = ["Tool", "WrittenIndex", "files_to_index", "one_path_twice", "write_index", "write_indexes"]

Tool = Literal["lhotse", "energon"]
"""The tools that read the files."""

_LINES = (".jsonl", ".json", ".ndjson")
_ARCHIVE = ".tar"
_SHAR = "shar:"
_COMPRESSED = (".gz", ".tgz", ".zst", ".bz2", ".xz", ".lz4")
_CHUNK_BYTES = 8 << 20
_AT_ONCE = 8
"""The most files that are written at once: the time of a small one is that of the disk."""

_TEXT_HEAD = b"0\n"
_NEWLINE = 10


@dataclass(frozen=True, slots=True)
class WrittenIndex:
    """One index file that was written."""

    path: str
    """The path of the data file."""

    index: str
    """The path of its index."""

    records: int
    """The number of records: lines, pairs or samples."""

    size: int
    """The number of bytes of the data file."""


def files_to_index(path: str, tool: Tool) -> tuple[list[str], list[str]]:
    """Return the files that a path stands for, and the compressed ones that are left out.

    A path is a file, a folder, a glob, or a Shar ``shar:DIR``. Of a folder these are the files that end in
    ``.jsonl`` or ``.tar``; for Energon the archives alone.

    Raises:
        DataNotFound: there is no such file.
        UnsupportedFormat: a file is compressed or of another format, or a folder has compressed files alone.
    """
    known = (_ARCHIVE,) if tool == "energon" else (".jsonl", _ARCHIVE)
    suffixes = (*known, *(suffix + more for suffix in known for more in _COMPRESSED), ".tgz")
    of_shar = path.removeprefix(_SHAR) if path.startswith(_SHAR) and not os.path.lexists(path) else None
    if of_shar is not None:
        path, shar = of_shar, fields_of_folder(of_shar)
        files = [file for field in (shar.cuts, *shar.fields) for file in field.paths]
    else:
        found = find_files(path, suffixes=suffixes)
        files = [os.path.join(run.root, name) for run in found for name in run.names]
    packed = [file for file in files if file.lower().endswith(_COMPRESSED)]
    plain = [file for file in files if file not in set(packed)]
    if packed and (not plain or not os.path.isdir(path)):
        raise _compressed_error(packed[0])
    for file in plain:
        _check_suffix(file, tool)
    return plain, packed


def write_index(path: str, tool: Tool, *, folder: str | None = None) -> WrittenIndex:
    """Write the index of one file, whole or not at all; an index that is there is replaced.

    Args:
        path: the path of the file.
        tool: the tool that is to read the index.
        folder: the folder of the index; None for that of the file.

    Raises:
        DataNotFound: the file is not there.
        AccessDenied: this user may not read it.
        IndexStale: it was changed meanwhile.
        InvalidArgument: a text index of StatelessSampler stands where the index would be.
        UnsupportedFormat: it is not of its format, or its members are not pairs or samples.
    """
    if tool not in get_args(Tool):
        message = f"tool must be one of {', '.join(map(repr, get_args(Tool)))}; got {tool!r}"
        raise InvalidArgument(message)
    _check_suffix(path, tool)
    target = index_path(path, folder=folder)
    _check_target(target)
    before = stat_file(path)
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except PermissionError:
        raise unreadable_error(path) from None
    try:
        bounds: Iterable[_Bounds]
        if path.lower().endswith(_ARCHIVE):
            bounds = _archive_bounds(descriptor, path, tool, size=before.st_size)
        else:
            JsonlScanner().check_head(os.pread(descriptor, END_BYTES, 0), path)
            bounds = _line_bounds(descriptor)
        counted = _CountedBounds(bounds, path, before)
        write_atomically(target, counted)
    finally:
        os.close(descriptor)
    return WrittenIndex(path, target, counted.count - 1, before.st_size)


def write_indexes(files: Sequence[str], tool: Tool, *, folder: str | None = None) -> list[WrittenIndex]:
    """Write the indexes of several files, some at a time; see `write_index`.

    Where one cannot be written, those that were begun are finished, and no other is begun.
    """
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="seekable-write") as threads:
        futures = [threads.submit(write_index, file, tool, folder=folder) for file in files]
        try:
            return [future.result() for future in futures]
        except BaseException:
            threads.shutdown(wait=True, cancel_futures=True)
            raise


class _CountedBounds:
    """Arrays of numbers, which are counted; after the last one the file must be as it was before."""

    def __init__(self, arrays: Iterable[_Bounds], path: str, before: os.stat_result) -> None:
        self.count = 0
        self._arrays = arrays
        self._path = path
        self._before = before

    def __iter__(self) -> Iterator[memoryview]:
        for array in self._arrays:
            self.count += len(array)
            yield array.data
        if _version(self._before) != _version(stat_file(self._path)):
            message = f"{self._path!r} was changed while it was indexed; index it when nothing writes to it"
            raise IndexStale(message)


def _version(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ino


def _line_bounds(descriptor: int) -> Iterator[_Bounds]:
    """Yield where lines start, blank ones too, and the size of the file."""
    yield np.zeros(1, NUMBERS)
    at = end = 0
    while data := os.pread(descriptor, _CHUNK_BYTES, at):
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == _NEWLINE) + (at + 1)
        yield ends.astype(NUMBERS)
        end = int(ends[-1]) if len(ends) else end
        at += len(data)
    if at > end:
        yield np.array([at], NUMBERS)


def _archive_bounds(descriptor: int, path: str, tool: Tool, *, size: int) -> Sequence[_Bounds]:
    """Return where the samples of an archive start, and the last number, which depends on the tool."""
    rule = SampleRule(pairs=True) if tool == "lhotse" else SampleRule()
    try:
        with open(descriptor, "rb", buffering=0, closefd=False) as file:
            found = group_samples(Walk(ForwardFile(file, path, size=size)), rule, path=path)
    except UnsupportedFormat as error:
        if tool == "lhotse":
            error.add_note("Lhotse's index is of pairs, a payload and its .json; --for energon is of samples")
        raise
    starts = found.starts.astype(NUMBERS)
    if tool == "lhotse":
        # Lhotse reads whole records of the archive, and its last number counts them.
        read = -(-(int(starts[-1]) + BLOCK_BYTES) // RECORD_BYTES) * RECORD_BYTES
        starts[-1] = min(read, size)
    return [starts]


def _check_suffix(path: str, tool: Tool) -> None:
    """Check the format of a file by its name.

    Raises:
        UnsupportedFormat: it has no index of this tool.
    """
    lower = path.lower()
    if lower.endswith(_COMPRESSED):
        raise _compressed_error(path)
    if lower.endswith(_ARCHIVE) or (tool == "lhotse" and lower.endswith(_LINES)):
        return
    what = "an archive (.tar)" if tool == "energon" else f"one of {', '.join((*_LINES, _ARCHIVE))}"
    message = f"{path!r} is not {what} by its name, so that it has no index of {tool.capitalize()}"
    raise UnsupportedFormat(message)


def _compressed_error(path: str) -> UnsupportedFormat:
    return UnsupportedFormat(
        f"{path!r} is compressed, and the indexes of Lhotse and Energon are of plain files: decompress it, "
        f"or write it plain (Lhotse: compress_jsonl=False). seekable needs neither: sk.open reads it as it is"
    )


def _check_target(target: str) -> None:
    """Check that no index of another kind is replaced.

    Raises:
        DataNotFound: the folder is not there.
        InvalidArgument: a text index of StatelessSampler stands there.
    """
    folder = os.path.dirname(target) or "."
    if not os.path.isdir(folder):
        message = f"{folder!r}, where {target!r} would be written, is no folder"
        raise DataNotFound(message)
    if not os.path.isfile(target):
        return
    with open(target, "rb") as file:
        is_text = file.read(len(_TEXT_HEAD)) == _TEXT_HEAD
    if is_text:
        message = (
            f"{target!r} is the text index of Lhotse's StatelessSampler, which needs it under this name: "
            f"move it away, or write to another folder with --output-dir"
        )
        raise InvalidArgument(message)


def one_path_twice(files: Sequence[str], folder: str | None) -> tuple[str, str] | None:
    """Return two files whose indexes would have one path; None if there are none."""
    seen: dict[str, str] = {}
    for file, target in zip(files, (index_path(file, folder=folder) for file in files), strict=True):
        if seen.setdefault(target, file) != file:
            return seen[target], file
    return None
