"""Sorting documents by length for the index, a chunk at a time, in any number of processes.

The first pass counts the lengths of each chunk. Their sums give each chunk its places, so that in the second
pass each chunk writes its own part of every column. Memory is that of one chunk to a process.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from seekable.packing.lengths.length_columns import (
    ColumnFiles,
    columns_lock,
    open_columns_of,
    remove_garbage,
    remove_torn,
)
from seekable.packing.order.length_order import (
    COARSE,
    chunk_starts,
    length_classes,
    merged,
    offsets_of,
    sorted_chunk,
)
from seekable.parallel.map_ranges import map_ranges
from seekable.parallel.progress import watched
from seekable.storage.files import TEMPORARY_SUFFIX, create_new, locked, put_in_place, write_atomically

if TYPE_CHECKING:
    from seekable._typing import Int64s
    from seekable.index.fileset import FileSet
    from seekable.packing.order.length_order import LengthClasses, LengthOrder
    from seekable.parallel.map_ranges import ExecutionOptions
    from seekable.parallel.progress import ProgressHook

__all__ = ["CHUNK", "Chunks", "ColumnBuild"]

CHUNK = 1 << 22
"""The documents of a chunk, a multiple of 256."""

LengthsBetween = Callable[[int, int], "Int64s"]
"""A picklable function of the first document and the one behind the last that returns their lengths."""


@final
@dataclass(frozen=True, slots=True)
class Chunks:
    """The documents in chunks, given by their numbers; when called, it counts the lengths of some chunks."""

    lengths: LengthsBetween
    documents: int
    """The number of documents, at least 1."""
    chunk: int = CHUNK
    """The number of documents of a chunk, a multiple of 256; the last chunk may be shorter."""

    def __len__(self) -> int:
        """Return the number of chunks."""
        return (self.documents + self.chunk - 1) // self.chunk

    def __call__(self, start: int, stop: int) -> list[tuple[LengthClasses, int]]:
        """Return the classes and the number of tokens of each of some consecutive chunks."""
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
    chunks: Chunks

    def run(self, *, using: ExecutionOptions, progress: ProgressHook | None) -> LengthOrder:
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
            with locked(columns_lock(self.folder), waiting=lambda: watch(0, notice=notice)):
                made = open_columns_of(self.folder, self.name)
                if made is None:
                    remove_torn(self.folder)
                    made = self._built(using, watch)
                    remove_garbage(self.folder, of=self.files.runs[0][1])
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
        target = ColumnFiles(self.folder, self.name, chunks.documents, whole.lengths.size)
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

    chunks: Chunks
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
