"""Reads the rows that facts are made of: samples, pieces of files, raw bytes.

A sample is the first rows of a shuffle of the row numbers, as ``seekable sample`` prints them. All who take
one seed get the same rows, and a larger sample begins with a smaller one.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._arguments import checked_count, checked_seed
from seekable.errors import CorruptRecord
from seekable.formats.kaldi.entry_decoder import EntryDecoder
from seekable.formats.lines.line_source import decoder_named
from seekable.nodes.files.byte_source import FileSource
from seekable.nodes.sequence_source import SequenceSource
from seekable.nodes.shuffle import Shuffle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable._typing import Int64s
    from seekable.index.fileset import FileSet
    from seekable.nodes.node import Node

PIECE_ROWS = 512
"""The rows of the first piece: some 3 ms of small JSON records in few files, some 80 ms from a cold disk."""

_LARGEST_PIECE = 8192
"""Where 128 of 1,000 files are open at once, rows come three times as fast as in pieces of 512."""
_PIECE_BYTES = 4 << 20
"""Some 2 ms of searching, for which no other thread runs Python."""

_ONE_NODE = np.zeros(1, np.int64)


def sample_rows(size: int, n: int, seed: int) -> Int64s:
    """Return the rows of a sample, in the order of the shuffle: int64.

    Args:
        size: the number of rows of the dataset.
        n: the number of rows to draw; all of them if there are fewer.
        seed: which sample, ``0 <= seed < 2**64``.

    Raises:
        InvalidArgument: a number is negative, or the seed is too large.

    Example:
        >>> sample_rows(100, 4, 0).tolist() == sample_rows(100, 9, 0).tolist()[:4]
        True
        >>> sorted(sample_rows(3, 10, 7).tolist())
        [0, 1, 2]
    """
    checked_count("size", size, least=0)
    drawn = min(checked_count("n", n, least=0), size)
    order = Shuffle(SequenceSource(range(size), None), checked_seed(seed), fixed=False)
    if not drawn:
        return np.empty(0, np.int64)
    # An order depends on the seed and the length alone, so that of the row numbers is that of the records.
    _, rows = Shuffle.router([order]).route(_ONE_NODE, np.arange(drawn, dtype=np.int64))
    return rows


def read_sample(node: Node, rows: Int64s) -> list[Any]:
    """Return the records at some rows, in the order asked; a corrupt one as its ``CorruptRecord``.

    Args:
        node: the data, or a pipeline.
        rows: int64, one dimension, at least 0.

    Raises:
        IndexStale: a file was changed after it was indexed.

    Example:
        >>> import seekable as sk
        >>> letters = sk.from_sequence("abcdef")
        >>> read_sample(letters.node, np.array([4, 0, 4]))
        ['e', 'a', 'e']
    """
    out: list[Any] = [None] * len(rows)
    order = np.argsort(rows, kind="stable")
    for start in range(0, order.size, PIECE_ROWS):
        places = order[start : start + PIECE_ROWS]
        for place, record in zip(places.tolist(), read_rows(node, rows[places]), strict=True):
            out[place] = record
    return out


def read_pieces(node: Node, rows: Int64s) -> Iterator[tuple[Int64s, list[Any]]]:
    """Yield the records at some rows piece by piece, each piece read in the order of its places in files.

    The pieces are in the order of ``rows``, so that the rows read so far are always a sample. The first piece
    has 512 rows, and each has as many as all before it, up to 8,192: a larger piece has more rows in a file,
    so fewer files are opened for a row. A corrupt record is its ``CorruptRecord``.

    Args:
        node: the data, or a pipeline.
        rows: int64, one dimension, at least 0.

    Yields:
        The rows of a piece, and a list of their records.
    """
    start = 0
    while start < len(rows):
        count = min(max(PIECE_ROWS, start), _LARGEST_PIECE)
        piece = np.sort(rows[start : start + count])
        yield piece, read_rows(node, piece)
        start += count


def read_rows(node: Node, rows: Int64s) -> list[Any]:
    """Return the records at some hundreds of rows; a corrupt one as its ``CorruptRecord``.

    Where one is corrupt, the halves are read by themselves until it alone is left.

    Raises:
        IndexStale: a file was changed after it was indexed.
    """
    try:
        return node.fetch(rows)
    except CorruptRecord as error:
        if len(rows) == 1:
            return [error]
        half = len(rows) // 2
        return [*read_rows(node, rows[:half]), *read_rows(node, rows[half:])]


def raw_source(source: FileSource) -> FileSource:
    """Return the source of the same records as bytes, without the ends of lines."""
    return replace(source, decoder=decoder_named("bytes", source.format), errors=None)


def raw_record(node: Node, row: int) -> bytes | None:
    """Return the bytes of a record; None where a record is not a run of bytes in one file.

    Args:
        node: a source of data.
        row: the index of the record.

    Raises:
        IndexStale: the file was changed.

    Example:
        >>> import seekable as sk
        >>> raw_record(sk.from_sequence("ab").node, 0) is None
        True
    """
    if not isinstance(node, FileSource) or isinstance(node.decoder, EntryDecoder):
        return None
    raw: bytes = raw_source(node).record(row)
    return raw


@dataclass(frozen=True, slots=True)
class FilePiece:
    """Whole records of a file."""

    first: int
    """The row of the first of them, counted over all files."""

    starts: Int64s
    """The first byte of each record within ``raw``, and the end of the last one; int64."""

    raw: bytes


def bytes_of_records(files: FileSet) -> int:
    """Return the bytes of all records: those from the first to the end of the last one in each file."""
    numbers = np.flatnonzero(files.records)
    starts, _ = files.ranges(numbers, np.zeros_like(numbers))
    _, ends = files.ranges(numbers, files.records[numbers] - 1)
    return int(ends.astype(np.int64).sum() - starts.astype(np.int64).sum())


def file_pieces(files: FileSet) -> Iterator[FilePiece]:
    """Yield the bytes of all records, file by file, some 4 MiB at a time or one record that is larger.

    Raises:
        IndexStale: a file was changed after it was indexed.
    """
    for file in np.flatnonzero(files.records).tolist():
        words, at = files.file_words(file)
        starts = words.view[at : at + int(files.records[file]) + 1]
        row, before = 0, int(files.starts[file])
        while row < len(starts) - 1:
            # Pieces end with records, so that none lies in two of them.
            last = max(row + 1, bisect_right(starts, starts[row] + _PIECE_BYTES, lo=row) - 1)
            offsets = np.frombuffer(words.span(at + row, at + last + 1), np.int64) - starts[row]
            yield FilePiece(before + row, offsets, _read(files, file, starts[row], starts[last]))
            row = last


def _read(files: FileSet, file: int, start: int, end: int) -> bytes:
    """Return bytes of a file, after checking that it is the one that was indexed."""
    mapped = files.mapped(file)
    mapped.check()
    if not isinstance(mapped.view, memoryview):
        return bytes(mapped.view[start:end])
    # A read waits for the disk without stopping other threads, which a page fault of the map does not.
    with open(mapped.path, "rb", buffering=0) as data:
        return os.pread(data.fileno(), end - start, start)
