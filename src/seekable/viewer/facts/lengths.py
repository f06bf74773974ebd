"""The lengths of records from the index, in bytes or tokens: histograms, percentiles, and by position.

No record is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from seekable.errors import InvalidArgument
from seekable.formats.tar.sample_source import SampleSource
from seekable.formats.tokens.token_source import TokenSource
from seekable.index.offsets import drop_read_pages
from seekable.nodes.bases import ElementwiseNode, UnaryNode
from seekable.nodes.files.byte_source import FileSource
from seekable.nodes.graph import each_once
from seekable.nodes.node import OrderNode
from seekable.nodes.without import WithHoles
from seekable.packing.nodes.packed_node import PackedNode
from seekable.resume.placeholders import PlaceholderSource
from seekable.viewer.facts.histogram import (
    Histogram,
    counted_lengths_in_bins,
    counted_percentiles,
)
from seekable.viewer.facts.reading import FROM_INDEX, ResultPace

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from seekable._typing import Int64s
    from seekable.formats.tokens.token_reading import TokensPlan
    from seekable.index.fileset import FileSet
    from seekable.nodes.node import Node

IndexUnit = Literal["bytes", "tokens"]

_RECORDS_AT_ONCE = 1 << 18
"""Some 5 ms of work."""

_COUNTED_ONE_BY_ONE = 1 << 16
"""Each shorter length is counted by itself; longer ones, which are few, are kept until the end of a chunk."""

_ONE = np.zeros(1, np.int64)


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
    on it may be up to 0.01 % too small. Empty without records."""

    histogram: Histogram | None
    """Ten bins to a decade; None without records."""

    unit: IndexUnit = "bytes"

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
    """Yield histograms while records are counted in file order; the last one covers all.

    The range of a record ends where the next one begins, so lengths in bytes include the ends of lines.

    Args:
        node: a source of lines, entries or archives, whose lengths are bytes, or of token files.

    Raises:
        InvalidArgument: the node is another one, and the index has no lengths of its records.
    """
    if isinstance(node, TokenSource):
        yield from _histograms(node.lengths_between, node.size, "tokens")
    elif isinstance(node, FileSource | SampleSource):
        yield from _histograms(partial(_lengths, node.files), node.size, "bytes")
    else:
        message = f"the index has no lengths of the records of {node.expression()}: they are rows of a table"
        raise InvalidArgument(message)


def record_lengths(files: FileSet) -> LengthHistogram | None:
    """Return the lengths in bytes of all records in some files; None without a record."""
    *_, found = _histograms(partial(_lengths, files), int(files.starts[-1]), "bytes")
    return found if found.done else None


def _histograms(
    lengths_between: Callable[[int, int], Int64s], records: int, unit: IndexUnit
) -> Generator[LengthHistogram]:
    counts, longer, total, done, pace = np.zeros(_COUNTED_ONE_BY_ONE, np.int64), _Longer(), 0, 0, ResultPace()
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
    """Counts long lengths in bins that are an 8,192nd of a power of two wide; the least length names a bin.

    Memory does not grow with the number of records. An edge of the histogram that lies within such a bin is
    off by less than 0.02 %.
    """

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.longest = 0

    def add(self, lengths: Int64s) -> None:
        self.longest = max(self.longest, int(lengths.max()))
        _, bits = np.frexp(lengths.astype(np.float64))
        shift = bits.astype(np.int64) - 14
        for length, count in zip(*np.unique(lengths >> shift << shift, return_counts=True), strict=True):
            self.counts[int(length)] = self.counts.get(int(length), 0) + int(count)


def _made(
    counts: Int64s, longer: _Longer, total: int, done: int, of: int, unit: IndexUnit
) -> LengthHistogram:
    short = np.flatnonzero(counts)
    long = sorted(longer.counts)
    lengths = np.concatenate([short, np.array(long, np.int64)])
    if not lengths.size:
        return LengthHistogram(done, of, total, None, None, {}, None, unit)
    each = np.concatenate([counts[short], np.array([longer.counts[length] for length in long], np.int64)])
    longest = max(longer.longest, int(lengths[-1]))
    histogram = counted_lengths_in_bins(lengths, each)
    percentiles = counted_percentiles(lengths, each)
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


@dataclass(frozen=True, slots=True)
class PositionLengths:
    """The lengths of the records at some positions."""

    held: Int64s
    """The bytes of each record, line end included, or its tokens; in a packed sample without padding."""

    places: Int64s
    """The places that each record takes by itself: the width of a packed sample, else its length; -1 for a
    hole, which is in no batch."""


def index_unit(node: Node) -> IndexUnit | None:
    """Return the unit of the lengths that the index has for a pipeline's records; None where it has none.

    Packed samples and token files are measured in tokens; lines, entries and archives in bytes, whatever maps
    do to them. None where records are put into lists, sources differ in their unit, or one has no lengths.

    Example:
        >>> import seekable as sk
        >>> index_unit(sk.from_sequence("abc")._node) is None
        True
    """
    units = _units(node)
    return units.pop() if len(units) == 1 else None


def _units(node: Node) -> set[IndexUnit | None]:
    if isinstance(node, PlaceholderSource):
        return {None} if node.files is None else _units(node.files)
    if isinstance(node, PackedNode | TokenSource):
        return {"tokens"}
    if isinstance(node, FileSource | SampleSource):
        return {"bytes"}
    if isinstance(node, OrderNode | WithHoles) or _is_one_to_one(node):
        return {unit for child in each_once(node.children) for unit in _units(child)}
    return {None}


def _is_one_to_one(node: Node) -> bool:
    return isinstance(node, UnaryNode) and isinstance(node, ElementwiseNode)


def position_lengths(node: Node, positions: Int64s) -> PositionLengths:
    """Return the lengths of the records at some positions, in the unit of ``index_unit``.

    Args:
        node: a pipeline for which ``index_unit`` is not None.
        positions: int64, one dimension, at least 0, of any epochs.

    Raises:
        InvalidArgument: the index has no lengths of its records.
    """
    if isinstance(node, PlaceholderSource) and node.files is not None:
        return position_lengths(node.files, positions)
    if isinstance(node, PackedNode):
        epochs, rows = np.divmod(positions, node.size)
        pieces = node.maker.pieces(rows, epochs)
        return PositionLengths(pieces.held, np.full(positions.size, pieces.width))
    if isinstance(node, TokenSource):
        counts = cast("TokensPlan", node.plan(positions)).counts
        return PositionLengths(counts, counts)
    if isinstance(node, FileSource | SampleSource):
        files, rows = node.files, positions % max(1, node.size)
        numbers = np.searchsorted(files.starts, rows, side="right") - 1
        starts, ends = files.words(numbers, rows - files.starts[numbers])
        lengths = (ends - starts).astype(np.int64)
        return PositionLengths(lengths, lengths)
    if isinstance(node, OrderNode):
        return _routed(node, positions)
    if isinstance(node, WithHoles) or _is_one_to_one(node):
        found = position_lengths(node.children[0], positions)
        return _with_holes(node, positions, found) if isinstance(node, WithHoles) else found
    message = f"the index has no lengths of the records of {node.expression()}"
    raise InvalidArgument(message)


def _with_holes(node: WithHoles, positions: Int64s, found: PositionLengths) -> PositionLengths:
    """Return lengths in which those of rows that are left out are those of holes."""
    holes = node.holes(positions)
    held, places = found.held.copy(), found.places.copy()
    held[holes], places[holes] = 0, -1
    return PositionLengths(held, places)


def _routed(node: OrderNode, positions: Int64s) -> PositionLengths:
    slots, below = type(node).router([node]).route(_ONE, positions)
    slots = np.broadcast_to(slots, positions.shape)
    held, places = np.zeros((2, positions.size), np.int64)
    for slot in np.unique(slots).tolist():
        at = np.flatnonzero(slots == slot)
        found = position_lengths(node.children[slot], below[at])
        held[at], places[at] = found.held, found.places
    return PositionLengths(held, places)
