"""The bytes of files of lines, piece by piece, each with the places of its records."""

from __future__ import annotations

import os
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable._typing import Int64s
    from seekable.index.fileset import FileSet

__all__ = ["FilePiece", "bytes_of_records", "file_pieces"]

_PIECE_BYTES = 4 << 20
"""Some 2 ms of searching, for which no other thread runs Python."""


@dataclass(frozen=True, slots=True)
class FilePiece:
    """Whole records of a file."""

    first: int
    """The row of the first of them, counted over all files."""

    starts: Int64s
    """The first byte of each record within ``raw``, and the end of the last one; int64."""

    raw: bytes


def bytes_of_records(files: FileSet) -> int:
    """Return the number of bytes that `file_pieces` yields."""
    spans = [(files.range(file, 0)[0], _end(files, file)) for file in _numbers(files)]
    return sum(end - start for start, end in spans)


def file_pieces(files: FileSet) -> Iterator[FilePiece]:
    """Yield the bytes of all records, file by file, some 4 MiB at a time or one record that is larger.

    Raises:
        IndexStale: a file was changed after it was indexed.
    """
    for file in _numbers(files):
        words, at = files.file_words(file)
        starts = words.view[at : at + int(files.records[file]) + 1]
        row, before = 0, int(files.starts[file])
        while row < len(starts) - 1:
            # Pieces end with records, so that none lies in two of them.
            last = max(row + 1, bisect_right(starts, starts[row] + _PIECE_BYTES, lo=row) - 1)
            offsets = np.frombuffer(words.span(at + row, at + last + 1), np.int64) - starts[row]
            yield FilePiece(before + row, offsets, _read(files, file, starts[row], starts[last]))
            row = last


def _numbers(files: FileSet) -> list[int]:
    """Return the numbers of the files that have records."""
    found: list[int] = np.flatnonzero(files.records).tolist()
    return found


def _end(files: FileSet, file: int) -> int:
    return files.range(file, int(files.records[file]) - 1)[1]


def _read(files: FileSet, file: int, start: int, end: int) -> bytes:
    """Return bytes of a file after a check of it."""
    mapped = files.mapped(file)
    mapped.check()
    if not isinstance(mapped.view, memoryview):
        return bytes(mapped.view[start:end])
    # A read waits for the disk without stopping other threads, which a page fault of the map does not.
    with open(mapped.path, "rb", buffering=0) as data:
        return os.pread(data.fileno(), end - start, start)
