"""Columns of the index for packing: documents by length, and the offsets of their tokens, memory-mapped.

They are built a chunk at a time, in any number of processes. The first pass counts the lengths in each chunk.
Their sums give each chunk its places, so that in the second pass each chunk writes its own part of every
column. A process needs the memory of one chunk.

``packing-<name>-<column>`` holds one column of a `LengthOrder`, little-endian: ``offsets.i64``, ``by-length``
and ``place`` (``.u32``, or ``.u64`` from 2**32 documents on), ``coarse.i64``, and ``classes.i64`` with the
lengths, the counts and the starts of all classes. ``packing-<name>.json`` is written last, and so decides; it
has the counts of documents and classes, and the files that the documents are in. None of them ever changes.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import secrets
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from seekable.index.catalog import read_table
from seekable.index.digest import digest_text
from seekable.packing.order.length_order import (
    COARSE,
    LengthClasses,
    LengthOrder,
    chunk_starts,
    length_classes,
    merged,
    number_type,
    offsets_of,
    sorted_chunk,
)
from seekable.parallel.map_ranges import map_ranges
from seekable.parallel.progress import watched
from seekable.storage.files import (
    TEMPORARY_SUFFIX,
    create_new,
    locked,
    map_file,
    put_in_place,
    regular_only,
    write_atomically,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.index.file_table import FileTable
    from seekable.index.fileset import FileSet
    from seekable.parallel.map_ranges import ExecutionOptions
    from seekable.parallel.progress import ProgressChoice

__all__ = ["CHUNK", "ColumnBuild", "DocumentChunks", "open_columns_of"]

_SCHEMA = 1
_OURS = re.compile(r"(packing-[0-9a-f]{32})(?:\.json|-[a-z-]+\.[iu](?:32|64))")
_TORN = re.compile(rf"packing-[0-9a-f]{{32}}.*{re.escape(TEMPORARY_SUFFIX)}")


CHUNK = 1 << 22
"""The documents of a chunk, a multiple of 256."""

LengthsBetween = Callable[[int, int], "Int64s"]
"""A picklable function of the first document and the one after the last, which returns their lengths."""


class _ColumnFiles:
    """The files of the columns of some documents in an index folder."""

    def __init__(self, folder: str, name: str, documents: int, classes: int) -> None:
        """Name the files, of which none is opened.

        Args:
            folder: the index folder.
            name: 32 hexadecimal digits, which stand for the lengths of all documents.
            documents: the number of documents.
            classes: the number of distinct lengths.
        """
        self.header = _header_path(folder, name)
        """The path of the header."""
        number = number_type(documents)
        word, bits = np.dtype("<i8"), 8 * number.itemsize
        base = os.path.join(folder, f"packing-{name}-")
        self.columns: dict[str, tuple[str, np.dtype[Any], int]] = {
            "offsets": (f"{base}offsets.i64", word, documents + 1),
            "by_length": (f"{base}by-length.u{bits}", number.newbyteorder("<"), documents),
            "place": (f"{base}place.u{bits}", number.newbyteorder("<"), documents),
            "coarse": (f"{base}coarse.i64", word, documents // COARSE + 1),
            "classes": (f"{base}classes.i64", word, 3 * classes),
        }
        """The path of each column, the type of its numbers, and how many there are."""

    def open(self) -> LengthOrder | None:
        """Return the columns, memory-mapped; None if a file is not there or has another size."""
        try:
            arrays = {name: _mapped(*column) for name, column in self.columns.items()}
        except OSError:
            return None
        lengths, counts, starts = arrays.pop("classes").reshape(3, -1)
        return LengthOrder(**arrays, classes=LengthClasses(lengths, counts, starts))

    def encoded_header(self, files: FileSet) -> bytes:
        """Return the bytes of the header.

        Args:
            files: the files whose documents the columns are of; those of the first folder are named.
        """
        count = files.runs[0][2]
        entries = zip(files.plain_names()[:count], files.digests("content")[:count], strict=True)
        described = {
            "seekable_packing": _SCHEMA,
            "documents": self.columns["by_length"][2],
            "classes": self.columns["classes"][2] // 3,
            "format": files.entry(0).format,
            "files": [list(entry) for entry in entries],
        }
        # Python's own JSON, because names may have lone surrogates.
        return json.dumps(described).encode()


def _mapped(path: str, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    """Return the numbers of a file, memory-mapped, in native byte order.

    Raises:
        OSError: the file cannot be opened, or has another size.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = count * dtype.itemsize
        if os.fstat(descriptor).st_size != size:
            raise FileNotFoundError(path)
        # A look-up reads a page here and a page there.
        mapped = map_file(descriptor, size, random=True)
    finally:
        os.close(descriptor)
    numbers: NDArray[Any] = np.frombuffer(mapped, dtype)
    return numbers.astype(dtype.newbyteorder("="), copy=False)


def _columns_lock(folder: str) -> str:
    """Return the lock file that is held while columns are built in a folder."""
    return os.path.join(folder, "packing.lock")


def open_columns_of(folder: str, name: str) -> LengthOrder | None:
    """Return the columns of some documents; None if a folder does not have all of them."""
    header = _read_header(_header_path(folder, name))
    if header is None:
        return None
    return _ColumnFiles(folder, name, header["documents"], header["classes"]).open()


def _remove_torn(folder: str) -> None:
    """Remove the columns that killed processes left unfinished; the caller holds the folder's lock."""
    for name in os.listdir(folder):
        if _TORN.fullmatch(name):
            _unlink(os.path.join(folder, name))


def _remove_garbage(folder: str, *, of: str) -> None:
    """Remove the columns of files that are not as they were; the caller holds the folder's lock.

    Args:
        folder: where the columns are.
        of: the index folder of the files, which is another one where that cannot be written.
    """
    table = read_table(of)
    if table is None:
        return
    kept = {name for name, header in _headers(folder) if _is_present(header, table)}
    for file in os.listdir(folder):
        found = _OURS.fullmatch(file)
        if found and found[1] not in kept:
            _unlink(os.path.join(folder, file))


def _is_present(header: dict[str, Any], table: FileTable) -> bool:
    """Return True if an index has all files of columns as they were."""
    rows = table.rows([name for name, _ in header["files"]], format_name=header["format"])
    return all(
        row >= 0 and digest_text(table.digest("content", row)) == content
        for row, (_, content) in zip(rows.tolist(), header["files"], strict=True)
    )


def _headers(folder: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for file in os.listdir(folder):
        if file.endswith(".json") and (found := _OURS.fullmatch(file)):
            header = _read_header(os.path.join(folder, file))
            if header is not None:
                yield found[1], header


def _read_header(path: str) -> dict[str, Any] | None:
    """Return a header, None if there is none that is whole and of this version."""
    try:
        with open(path, "rb", opener=regular_only) as file:
            header: dict[str, Any] = json.load(file)
    except (OSError, ValueError):
        return None
    return header if header.get("seekable_packing") == _SCHEMA else None


def _header_path(folder: str, name: str) -> str:
    return os.path.join(folder, f"packing-{name}.json")


def _unlink(path: str) -> None:
    with contextlib.suppress(FileNotFoundError, PermissionError):
        os.unlink(path)


@final
@dataclass(frozen=True, slots=True)
class DocumentChunks:
    """Documents in chunks; when it is called, it counts the lengths in some chunks."""

    lengths: LengthsBetween
    documents: int
    """The number of documents, at least 1."""
    chunk: int = CHUNK
    """The number of documents of a chunk, a multiple of 256; the last chunk may be shorter."""

    def __len__(self) -> int:
        """Return the number of chunks."""
        return (self.documents + self.chunk - 1) // self.chunk

    def __call__(self, start: int, stop: int) -> list[tuple[LengthClasses, int]]:
        """Return for each of some consecutive chunks its classes, and how many tokens it has."""
        found = (self.of(number) for number in range(start, stop))
        return [(length_classes(lengths), int(lengths.sum())) for lengths in found]

    def of(self, number: int) -> Int64s:
        """Return the lengths of the documents of a chunk."""
        return self.lengths(number * self.chunk, self.before(number + 1))

    def before(self, number: int) -> int:
        """Return the number of documents before a chunk."""
        return min(number * self.chunk, self.documents)


@final
@dataclass(frozen=True, slots=True)
class ColumnBuild:
    """A build of the columns of some documents in an index folder that exists.

    A process that is killed leaves no column; processes that build at once wait for the first one.
    """

    folder: str
    """The index folder."""
    name: str
    """The name of the columns, 32 hexadecimal digits."""
    files: FileSet
    """The files of the documents."""
    chunks: DocumentChunks

    def run(self, *, using: ExecutionOptions, progress: ProgressChoice) -> LengthOrder:
        """Return the columns, which are built if they are not there.

        Args:
            using: the processes that may be used.
            progress: is called with the number of documents that are done.

        Raises:
            OSError: the folder cannot be written, or the disk is full; nothing is left behind.
            WorkerDied: a worker process ended too early.
        """
        documents = self.chunks.documents
        with watched(progress, task="sorting documents by length", rows=documents) as watch:
            notice = f"another process sorts the documents in {self.folder!r}: waiting for it"
            with locked(_columns_lock(self.folder), waiting=lambda: watch(0, notice=notice)):
                made = open_columns_of(self.folder, self.name)
                if made is None:
                    _remove_torn(self.folder)
                    made = self._built(using, watch)
                    _remove_garbage(self.folder, of=self.files.runs[0][1])
            watch(documents)
        return made

    def _built(self, using: ExecutionOptions, watch: Callable[[int], None]) -> LengthOrder:
        """Write the columns under temporary names, then give them their names, and write the header."""
        chunks, counted = self.chunks, []
        with closing(map_ranges(chunks, len(chunks), using=using)) as parts:
            for end, part in parts:
                counted += part
                watch(chunks.before(end) // 2)
        whole = merged(classes for classes, _ in counted)
        target = _ColumnFiles(self.folder, self.name, chunks.documents, whole.lengths.size)
        suffix = f".{secrets.token_hex(8)}{TEMPORARY_SUFFIX}"
        paths = {column: path + suffix for column, (path, _, _) in target.columns.items()}
        starts = list(chunk_starts(whole, [classes for classes, _ in counted]))
        before = list(itertools.accumulate((tokens for _, tokens in counted), initial=0))
        sorting = _Sorting(chunks, starts, before, paths, target.columns["place"][1])
        try:
            for column, (_, dtype, count) in target.columns.items():
                with create_new(paths[column]) as file:
                    file.truncate(count * dtype.itemsize)
            np.concatenate([whole.lengths, whole.counts, whole.starts]).astype("<i8").tofile(paths["classes"])
            with closing(map_ranges(sorting, len(chunks), using=using)) as written:
                for end, _ in written:
                    watch((chunks.documents + chunks.before(end)) // 2)
            for column, (path, _, _) in target.columns.items():
                _sync(paths[column])
                put_in_place(paths[column], path)
            write_atomically(target.header, target.encoded_header(self.files))
        finally:
            for path in paths.values():
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
        made = target.open()
        assert made is not None
        return made


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class _Sorting:
    """Writes the parts of all columns that belong to chunks."""

    chunks: DocumentChunks
    starts: list[Int64s]
    """For each chunk, the first place in ``by_length`` of each of its classes."""
    before: list[int]
    """For each chunk, the number of tokens before it."""
    paths: dict[str, str]
    number: np.dtype[Any]

    def __call__(self, start: int, stop: int) -> None:
        for chunk in range(start, stop):
            lengths, first = self.chunks.of(chunk), self.chunks.before(chunk)
            offsets = self.before[chunk] + offsets_of(lengths)
            self._write("offsets", first, offsets.astype("<i8"))
            self._write("coarse", first // COARSE, offsets[::COARSE].astype("<i8"))
            documents, places = sorted_chunk(lengths, length_classes(lengths), self.starts[chunk])
            place = np.empty(lengths.size, self.number)
            place[documents] = places
            self._write("place", first, place)
            # Mapped for one chunk alone: the pages of all others do not count as memory of this process.
            by_length = np.memmap(self.paths["by_length"], self.number, "r+")
            by_length[places] = documents + first

    def _write(self, column: str, at: int, numbers: Any) -> None:
        """Write numbers of a column from one on; the last one may be the first of the next chunk."""
        with open(self.paths[column], "r+b") as file:
            file.seek(at * numbers.itemsize)
            file.write(numbers.data)
