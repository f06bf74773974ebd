"""The rows that facts are made of: read as samples, pieces of files and raw bytes, and named in words.

A sample is the first rows of a shuffle of the row numbers, as ``seekable sample`` prints them. All who take
one seed get the same rows, and a larger sample begins with a smaller one. Pages, the command line and JSON
documents print beside each figure what it is made of.
"""

from __future__ import annotations

import math
import os
import time
from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from seekable._arguments import checked_count, checked_seed
from seekable._collector import collector_paused
from seekable._lazy import lazy
from seekable.errors import CorruptRecord, InvalidArgument
from seekable.formats.lines.line_source import decoder_named
from seekable.nodes.files.byte_source import FileSource
from seekable.nodes.graph import HOLE, known_size
from seekable.nodes.sequence_source import SequenceSource
from seekable.nodes.shuffle import Shuffle

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.kaldi import table_entries
    from seekable.index.fileset import FileSet
    from seekable.nodes.node import Node
else:
    table_entries = lazy("seekable.formats.kaldi.table_entries")


Found = TypeVar("Found")

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
        >>> read_sample(letters._node, np.array([4, 0, 4]))
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


def row_pieces(start: int, stop: int) -> Iterator[Int64s]:
    """Yield rows that follow one another, at most 512 at a time."""
    for first in range(start, stop, PIECE_ROWS):
        yield np.arange(first, min(first + PIECE_ROWS, stop))


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
        >>> raw_record(sk.from_sequence("ab")._node, 0) is None
        True
    """
    if not isinstance(node, FileSource):
        return None
    if node.decoder.reads_objects and isinstance(node.decoder, table_entries.EntryDecoder):
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
    starts, _ = files.words(numbers, np.zeros_like(numbers))
    _, ends = files.words(numbers, files.records[numbers] - 1)
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


FROM_INDEX = "exact, from the index"
COMPUTED = "exact, computed"

NORMAL_95 = 1.959963984540054
"""The 97.5 % point of the normal distribution, for intervals of 95 %."""

RULE_OF_THREE = 3.0
"""What never came in n draws has a share of at most 3/n with 95 % confidence: 0.95 = 1 - exp(-3)."""

_SECONDS = 0.05
_PARTS = 4


def from_sample(rows: int, *, of: int, seed: int) -> str:
    """Return the words for a figure from some rows of a shuffle.

    Args:
        rows: the number of rows that were looked at.
        of: the number of all rows.
        seed: the seed of the shuffle.

    Example:
        >>> from_sample(1000, of=10_000_000, seed=0)
        'from 1,000 of 10,000,000 rows, seed 0'
        >>> from_sample(3, of=3, seed=0)
        'exact, from all 3 rows'
    """
    if rows >= of:
        return f"exact, from all {of:,} rows" if of != 1 else "exact, from its one row"
    return f"from {rows:,} of {of:,} rows, seed {seed}"


def from_all(at: datetime) -> str:
    """Return the words for a figure from a pass over all records.

    Example:
        >>> from datetime import datetime, timezone
        >>> from_all(datetime(2026, 1, 31, 14, 2, tzinfo=timezone.utc))
        'from all, at 14:02'
    """
    return f"from all, at {at:%H:%M}"


@dataclass(frozen=True, slots=True)
class Share:
    """The share of the rows that have a property, with its 95 % bounds.

    Example:
        >>> share_of(600, 1000).in_words()
        '60 % (57 to 63)'
        >>> share_of(0, 1000).in_words()
        '0 % (at most 0.3)'
        >>> share_of(1000, 1000).in_words()
        '100 % (at least 99.7)'
        >>> share_of(1, 4, exact=True).in_words()
        '25 %'
    """

    count: int
    """The number of rows that have the property."""

    of: int
    """The number of rows that were looked at."""

    low: float
    """The lower bound of the share, 0 to 1."""

    high: float
    """The upper bound of the share, 0 to 1; equal to the lower one if the share is exact."""

    @property
    def share(self) -> float:
        """The share among the rows that were looked at, 0 to 1; 0 without rows."""
        return self.count / self.of if self.of else 0.0

    @property
    def exact(self) -> bool:
        """True if all rows were looked at, so that the share has no bounds."""
        return self.low == self.high

    def in_words(self) -> str:
        """Return the share in percent with its bounds: one of them if it was seen never, or always."""
        if not self.of:
            return "no rows"
        if self.exact:
            return f"{_percent(self.share)} %"
        if not self.count:
            return f"0 % (at most {_percent(self.high)})"
        if self.count == self.of:
            return f"100 % (at least {_percent(self.low)})"
        return f"{_percent(self.share)} % ({_percent(self.low)} to {_percent(self.high)})"

    def document(self) -> dict[str, Any]:
        """Return the counts, the share and its bounds, JSON-safe."""
        return {"count": self.count, "of": self.of, "share": self.share, "low": self.low, "high": self.high}


def share_of(count: int, of: int, *, exact: bool = False) -> Share:
    """Return a share with its 95 % bounds: Wilson's interval, and the rule of three at both ends.

    A sample without replacement has narrower bounds than these, so they hold for it too.

    Args:
        count: the number of rows that have the property.
        of: the number of rows that were looked at.
        exact: True if these were all rows there are; the bounds are then the share.

    Raises:
        InvalidArgument: ``count`` is below 0 or above ``of``.

    Example:
        >>> found = share_of(2, 1000)
        >>> round(found.low, 5), found.share, round(found.high, 5)
        (0.00055, 0.002, 0.00726)
    """
    checked_count("count", count, least=0)
    if count > of:
        message = f"count must be at most {of}, the number of rows that were looked at (got {count})"
        raise InvalidArgument(message)
    if not of:
        return Share(0, 0, 0.0, 0.0 if exact else 1.0)
    share = count / of
    if exact:
        return Share(count, of, share, share)
    if not count:
        return Share(count, of, 0.0, min(1.0, RULE_OF_THREE / of))
    if count == of:
        return Share(count, of, max(0.0, 1 - RULE_OF_THREE / of), 1.0)
    square = NORMAL_95 * NORMAL_95 / of
    middle = (share + square / 2) / (1 + square)
    half = NORMAL_95 / (1 + square) * math.sqrt(share * (1 - share) / of + square / of / 4)
    return Share(count, of, max(0.0, middle - half), min(1.0, middle + half))


def _percent(share: float) -> str:
    """Return a share in percent with as many digits as tell it from 0 and from 100."""
    percent = 100 * share
    distance = min(percent, 100 - percent)
    if distance <= 0:
        return "0" if percent < 50 else "100"  # noqa: PLR2004 - the nearer end
    digits = 0 if distance >= 10 else -math.floor(math.log10(distance))  # noqa: PLR2004
    text = f"{percent:.{max(0, digits)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


class ResultPace:
    """Says when a partial result is due: some 50 ms after the last one.

    Making one may take long, so the next is due at the earliest after four times that time.
    """

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._wait = _SECONDS

    def due(self) -> bool:
        """Return True if a partial result is to be made now."""
        now = time.monotonic()
        if now - self._last < self._wait:
            return False
        self._last = now
        return True

    def made(self) -> None:
        """Note that the partial result is made; what its reader does until ``due`` is called counts too."""
        now = time.monotonic()
        self._wait = max(_SECONDS, _PARTS * (now - self._last))
        self._last = now


@dataclass(frozen=True, slots=True)
class Sampled:
    """How much of a sample was read: what facts of samples begin with."""

    done: int
    """The number of rows that were read."""

    of: int
    """The number of rows to read."""

    size: int
    """The number of all rows."""

    seed: int

    @property
    def exact(self) -> bool:
        """True if all rows there are were read."""
        return self.done >= self.size

    @property
    def made_of(self) -> str:
        """The records that the figures come from."""
        return from_sample(self.done, of=self.size, seed=self.seed)

    def counts(self) -> dict[str, Any]:
        """Return the numbers of rows, JSON-safe."""
        return {
            "made_of": self.made_of,
            "done": self.done,
            "of": self.of,
            "unit": "rows",
            "rows": self.size,
            "seed": self.seed,
        }


def surveyed(
    node: Node,
    add: Callable[[Sequence[int], Sequence[Any]], None],
    facts: Callable[[Sampled], Found],
    *,
    n: int,
    seed: int,
) -> Generator[Found]:
    """Yield results while a sample is read; the last one covers all of it.

    Args:
        node: the data, or a pipeline, with a length.
        add: takes records, given their rows.
        facts: returns what was found.
        n: the number of rows of the sample; all rows if there are fewer.
        seed: which sample.

    Raises:
        EndlessDataset: the node has no length.
        IndexStale: a file was changed after it was indexed.
    """
    size = known_size(node, "a sample")
    rows = sample_rows(size, n, seed)
    pace, done = ResultPace(), 0
    for piece, records in read_pieces(node, rows):
        with collector_paused():
            add(piece.tolist(), records)
        done += len(records)
        if done < rows.size and pace.due():
            found = facts(Sampled(done, rows.size, size, seed))
            pace.made()
            yield found
    yield facts(Sampled(done, rows.size, size, seed))


def whole_of(rows: Sequence[int], records: Sequence[Any]) -> list[tuple[int, Any]]:
    """Return the records with their rows, without holes and corrupt ones.

    Example:
        >>> whole_of([4, 7], ["a", HOLE])
        [(4, 'a')]
    """
    return [
        (row, record)
        for row, record in zip(rows, records, strict=True)
        if record is not HOLE and not isinstance(record, CorruptRecord)
    ]


def ratio_error(tops: NDArray[Any], bottoms: NDArray[Any], part: float = 0.0) -> float:
    """Return half of the 95 % interval of a ratio of two sums, each over units that were drawn at random.

    Args:
        tops: what each unit adds to the sum above, one dimension, at least two units.
        bottoms: what it adds to the one below, which is not 0.
        part: the part of all units that was drawn, 0 to 1.

    Example:
        >>> round(ratio_error(np.array([1, 2, 3]), np.array([2, 4, 7])), 4)
        0.0531
    """
    # It is the error of the mean of these differences.
    off = tops - tops.sum() / bottoms.sum() * bottoms
    variance = float((off**2).sum()) / max(1, tops.size - 1) / tops.size * (1 - part)
    return NORMAL_95 * math.sqrt(variance) / float(bottoms.mean())
