"""The histogram of the lengths of all records, from the index: no record is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from seekable.errors import InvalidArgument
from seekable.formats.tar.sample_source import SampleSource
from seekable.formats.tokens.source.token_source import TokenSource
from seekable.index.offsets import drop_read_pages
from seekable.nodes.files.byte_source import FileSource
from seekable.viewer.facts.histogram import Histogram, of_counted_lengths
from seekable.viewer.facts.made_of import FROM_INDEX
from seekable.viewer.facts.pace import Pace
from seekable.viewer.facts.record_lengths import PERCENTILES

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from seekable._typing import Int64s
    from seekable.index.fileset import FileSet
    from seekable.nodes.contract import Node

__all__ = ["LengthHistogram", "has_lengths", "length_histogram"]

_RECORDS_AT_ONCE = 1 << 18
"""Some 5 ms of work."""

_COUNTED_ONE_BY_ONE = 1 << 16
"""Each shorter length is counted by itself; longer ones, which are few, are kept until the end of a chunk."""


@dataclass(frozen=True, slots=True)
class LengthHistogram:
    """The lengths of records; while the work goes on, of the first ones.

    In bytes, line ends included, or in tokens where the records are documents of token files.
    """

    done: int
    """The number of records whose lengths were counted."""

    of: int
    """The number of all records."""

    total: int
    """The sum of the lengths."""

    shortest: int | None
    longest: int | None

    percentiles: Mapping[int, int]
    """For each number of PERCENTILES the length that this percentage of records does not exceed; from 65,536
    on it may be up to 0.1 % too small. Empty without records."""

    histogram: Histogram | None
    """Ten bins to a decade; None without records."""

    unit: Literal["bytes", "tokens"] = "bytes"

    @property
    def mean(self) -> float | None:
        """The mean length; None without records."""
        return self.total / self.done if self.done else None

    @property
    def made_of(self) -> str:
        """The records or the index that the figures come from."""
        first = f", of the first {self.done:,} of {self.of:,} rows" if self.done < self.of else ""
        return FROM_INDEX + first

    def document(self) -> dict[str, Any]:
        """Return the histogram as a JSON-safe dict."""
        return {
            "made_of": self.made_of,
            "done": self.done,
            "of": self.of,
            "unit": self.unit,
            "total": self.total,
            "mean": self.mean,
            "shortest": self.shortest,
            **{f"p{percent}": length for percent, length in self.percentiles.items()},
            "longest": self.longest,
            "histogram": None if self.histogram is None else self.histogram.document(),
        }


def has_lengths(node: Node) -> bool:
    """Return True if the index has the length of each record: of lines, entries, archives and tokens."""
    return isinstance(node, FileSource | SampleSource | TokenSource)


def length_histogram(node: Node) -> Generator[LengthHistogram]:
    """Yield the histogram of more and more records, in the order of the files; the last one is of all.

    The range of a record ends where the next one begins, so lengths in bytes include the ends of lines.

    Args:
        node: a source of lines, entries or archives, whose lengths are bytes, or of token files.

    Raises:
        InvalidArgument: it is none of these, so that the index has no lengths.
    """
    if isinstance(node, TokenSource):
        yield from _histograms(node.lengths_between, node.size, "tokens")
    elif isinstance(node, FileSource | SampleSource):
        files = node.files
        yield from _histograms(lambda first, last: _lengths(files, first, last), node.size, "bytes")
    else:
        message = f"the index has no lengths of the records of {node.expression()}: they are rows of a table"
        raise InvalidArgument(message)


def _histograms(
    lengths_between: Callable[[int, int], Int64s], records: int, unit: Literal["bytes", "tokens"]
) -> Generator[LengthHistogram]:
    counts, longer, total, done, pace = np.zeros(_COUNTED_ONE_BY_ONE, np.int64), _Longer(), 0, 0, Pace()
    for first in range(0, records, _RECORDS_AT_ONCE):
        lengths = lengths_between(first, min(first + _RECORDS_AT_ONCE, records))
        total += int(lengths.sum())
        done += lengths.size
        if int(lengths.max()) >= _COUNTED_ONE_BY_ONE:
            longer.add(lengths[lengths >= _COUNTED_ONE_BY_ONE])
            lengths = lengths[lengths < _COUNTED_ONE_BY_ONE]
        counts += np.bincount(lengths, minlength=_COUNTED_ONE_BY_ONE)
        drop_read_pages()
        if done < records and pace.due():
            yield _made(counts, longer, total, done, records, unit)
            pace.made()
    yield _made(counts, longer, total, done, records, unit)


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


def _made(
    counts: Int64s, longer: _Longer, total: int, done: int, of: int, unit: Literal["bytes", "tokens"]
) -> LengthHistogram:
    short = np.flatnonzero(counts)
    long = sorted(longer.counts)
    lengths = np.concatenate([short, np.array(long, np.int64)])
    if not lengths.size:
        return LengthHistogram(done, of, total, None, None, {}, None, unit)
    each = np.concatenate([counts[short], np.array([longer.counts[length] for length in long], np.int64)])
    below = np.cumsum(each)
    ranks = {percent: int(np.searchsorted(below, -(-done * percent // 100))) for percent in PERCENTILES}
    percentiles = {percent: int(lengths[rank]) for percent, rank in ranks.items()}
    longest = max(longer.longest, int(lengths[-1]))
    histogram = of_counted_lengths(lengths, each)
    return LengthHistogram(done, of, total, int(lengths[0]), longest, percentiles, histogram, unit)


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
            offsets = np.asarray(words.span(at + low, at + high + 1)).view(np.int64)
            found.append(offsets[1:] - offsets[:-1])
    return np.concatenate(found)
