"""The histogram of the lengths of all records in bytes, from the offsets of the index: no record is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.facts.histogram import Histogram, of_counted_lengths
from seekable.facts.made_of import FROM_INDEX
from seekable.facts.pace import Pace
from seekable.index.offsets import drop_read_pages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable._typing import Int64s
    from seekable.index.fileset import FileSet

__all__ = ["LengthHistogram", "length_histogram"]

_RECORDS_AT_ONCE = 1 << 18
"""Some 5 ms of work."""

_COUNTED_ONE_BY_ONE = 1 << 16
"""Each shorter length is counted by itself; longer ones, which are few, are kept until the end of a chunk."""


@dataclass(frozen=True, slots=True)
class LengthHistogram:
    """The lengths of records in bytes, line ends included; while the work goes on, of the first ones."""

    done: int
    """The number of records whose lengths were counted."""

    of: int
    """The number of all records."""

    total_bytes: int
    shortest: int | None
    longest: int | None
    histogram: Histogram | None
    """Ten bins to a decade; None without records."""

    @property
    def made_of(self) -> str:
        """What the figures are made of."""
        first = f", of the first {self.done:,} of {self.of:,} rows" if self.done < self.of else ""
        return FROM_INDEX + first

    def document(self) -> dict[str, Any]:
        """Return the histogram, JSON-safe."""
        return {
            "made_of": self.made_of,
            "done": self.done,
            "of": self.of,
            "unit": "bytes",
            "total": self.total_bytes,
            "mean": self.total_bytes / self.done if self.done else None,
            "shortest": self.shortest,
            "longest": self.longest,
            "histogram": None if self.histogram is None else self.histogram.document(),
        }


def length_histogram(files: FileSet) -> Iterator[LengthHistogram]:
    """Yield the histogram of more and more records, in the order of the files; the last one is of all.

    The range of a record ends where the next one begins, so lengths include the ends of lines.

    Args:
        files: files of which the index has the offset of each record: lines and entries, no tables.
    """
    records = int(files.starts[-1])
    counts, longer, total, done, pace = np.zeros(_COUNTED_ONE_BY_ONE, np.int64), _Longer(), 0, 0, Pace()
    for first in range(0, records, _RECORDS_AT_ONCE):
        lengths = _lengths(files, first, min(first + _RECORDS_AT_ONCE, records))
        total += int(lengths.sum())
        done += lengths.size
        if int(lengths.max()) >= _COUNTED_ONE_BY_ONE:
            longer.add(lengths[lengths >= _COUNTED_ONE_BY_ONE])
            lengths = lengths[lengths < _COUNTED_ONE_BY_ONE]
        counts += np.bincount(lengths, minlength=_COUNTED_ONE_BY_ONE)
        drop_read_pages()
        if done < records and pace.due():
            yield _made(counts, longer, total, done=done, of=records)
            pace.made()
    yield _made(counts, longer, total, done=done, of=records)


class _Longer:
    """Counts of long lengths in bins of a 1,024th of a power of two; the first length of a bin stands for it.

    Memory does not grow with the number of records. An edge of the histogram that lies within such a bin is
    off by less than a thousandth.
    """

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.longest = 0

    def add(self, lengths: Int64s) -> None:
        self.longest = max(self.longest, int(lengths.max()))
        _, bits = np.frexp(lengths.astype(np.float64))
        shift = bits.astype(np.int64) - 11
        for length, count in zip(*np.unique(lengths >> shift << shift, return_counts=True), strict=True):
            self.counts[int(length)] = self.counts.get(int(length), 0) + int(count)


def _made(counts: Int64s, longer: _Longer, total: int, *, done: int, of: int) -> LengthHistogram:
    short = np.flatnonzero(counts)
    long = sorted(longer.counts)
    lengths = np.concatenate([short, np.array(long, np.int64)])
    if not lengths.size:
        return LengthHistogram(done, of, total, None, None, None)
    each = np.concatenate([counts[short], np.array([longer.counts[length] for length in long], np.int64)])
    longest = max(longer.longest, int(lengths[-1]))
    return LengthHistogram(done, of, total, int(lengths[0]), longest, of_counted_lengths(lengths, each))


def _lengths(files: FileSet, first: int, last: int) -> Int64s:
    """Return the lengths of the records ``first`` to ``last``, counted over all files."""
    starts = files.starts
    begin = int(np.searchsorted(starts, first, side="right")) - 1
    found: list[Int64s] = []
    for file in range(begin, int(np.searchsorted(starts, last, side="left"))):
        before, end = int(starts[file]), int(starts[file + 1])
        low, high = max(first, before) - before, min(last, end) - before
        if low < high:
            words, at = files.file_words(file)
            offsets = np.frombuffer(words, np.uint64, high - low + 1, 8 * (at + low)).view(np.int64)
            found.append(offsets[1:] - offsets[:-1])
    return np.concatenate(found)
