"""The axis of tokens: documents end to end, each in an interval, cut into windows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from seekable.packing.order.length_order import COARSE, offsets_of
from seekable.packing.order.sample_pieces import NO_PIECES, Packing, Pieces

if TYPE_CHECKING:
    from collections.abc import Callable

    from seekable._typing import Int64s
    from seekable.packing.order.fill_in_middle import Marks

__all__ = ["Axis", "FixedWindows", "MarkedAxis", "OffsetsAxis", "cut", "cut_one", "windows_over"]


class Axis(ABC):
    """Intervals end to end, each the place of one document.

    The width of an interval is the number of the document's tokens, and of the sentinels that are put between
    them.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def intervals(self) -> int:
        """The number of intervals on the axis."""

    @property
    @abstractmethod
    def end(self) -> int:
        """The number of tokens; after the last one the axis goes on with the first."""

    @abstractmethod
    def at(self, tokens: Int64s) -> Int64s:
        """Return the interval of each token, from 0 to ``end - 1``; never one of width 0."""

    @abstractmethod
    def at_one(self, token: int) -> int:
        """Return ``at`` of one token, without arrays."""

    @abstractmethod
    def edges(self, intervals: Int64s) -> Int64s:
        """Return the first token of each interval; ``end`` for the index after the last interval."""

    @abstractmethod
    def edge_one(self, interval: int) -> int:
        """Return ``edges`` of one interval, without arrays."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class OffsetsAxis(Axis):
    """An axis whose edges are an array.

    Example:
        >>> axis = OffsetsAxis.of(np.array([0, 3, 3, 8]))
        >>> axis.at(np.array([2, 3, 7])).tolist(), axis.at_one(3), axis.end
        ([0, 2, 2], 2, 8)
    """

    offsets: Int64s
    """The first token of each interval, then the number of all tokens; it may be a memory map."""
    coarse: Int64s
    """Each 256th offset, from the first on."""

    @classmethod
    def of(cls, offsets: Int64s) -> OffsetsAxis:
        """Return the axis of some offsets, with the coarse ones taken from them."""
        return cls(offsets, offsets[::COARSE].copy())

    @property
    def intervals(self) -> int:
        """The number of intervals on the axis."""
        return self.offsets.size - 1

    @property
    def end(self) -> int:
        """The number of tokens on the axis."""
        return int(self.offsets[-1])

    def at(self, tokens: Int64s) -> Int64s:
        """Return the interval of each token: a search in ``coarse``, then eight halvings in ``offsets``."""
        block = np.searchsorted(self.coarse, tokens, side="right") - 1
        return halved(tokens, block * COARSE, COARSE, self.intervals, self.edges)

    def at_one(self, token: int) -> int:
        """Return the interval of one token."""
        block = (bisect_right(self.coarse.data, token) - 1) * COARSE
        offsets = self.offsets.data
        return bisect_right(offsets, token, block, min(block + COARSE, len(offsets))) - 1

    def edges(self, intervals: Int64s) -> Int64s:
        """Return the offsets of intervals."""
        return self.offsets[intervals]

    def edge_one(self, interval: int) -> int:
        """Return the offset of one interval."""
        return int(self.offsets[interval])


@final
@dataclass(frozen=True, slots=True, eq=False)
class MarkedAxis(Axis):
    """An axis of documents with sentinels in marked intervals."""

    documents: OffsetsAxis
    """The axis of the documents without sentinels."""
    marks: Marks

    @property
    def intervals(self) -> int:
        """The number of intervals on the axis."""
        return self.documents.intervals

    @property
    def end(self) -> int:
        """The number of tokens and sentinels."""
        return self.documents.end + self.marks.sentinels_before(self.intervals)

    def at(self, tokens: Int64s) -> Int64s:
        """Return the interval of each token, by halvings in ``coarse``, then in ``offsets``."""
        coarse = self.documents.coarse
        size = 1 << (coarse.size - 1).bit_length()
        block = halved(tokens, np.zeros_like(tokens), size, coarse.size - 1, self._coarse_edges)
        return halved(tokens, block * COARSE, COARSE, self.intervals, self.edges)

    def at_one(self, token: int) -> int:
        """Return the interval of one token."""
        return bisect_right(range(self.intervals), token, key=self.edge_one) - 1

    def edges(self, intervals: Int64s) -> Int64s:
        """Return the first token of each interval."""
        return self.documents.offsets[intervals] + self.marks.sentinels_before_each(intervals)

    def edge_one(self, interval: int) -> int:
        """Return the first token of one interval."""
        return int(self.documents.offsets[interval]) + self.marks.sentinels_before(interval)

    def _coarse_edges(self, blocks: Int64s) -> Int64s:
        return self.documents.coarse[blocks] + self.marks.sentinels_before_each(blocks * COARSE)


@dataclass(frozen=True, slots=True, eq=False)
class _Cut:
    """The slices of intervals that windows consist of, window after window; none is empty."""

    bounds: Int64s
    """For each window the index of its first slice, then the count of all slices."""
    intervals: Int64s
    """The interval of each slice."""
    starts: Int64s
    """The first token of the slice, counted from the start of the interval."""
    counts: Int64s
    """The number of tokens of the slice."""
    widths: Int64s
    """The width of the interval."""


def halved(tokens: Int64s, first: Int64s, size: int, last: int, edges: Callable[[Int64s], Int64s]) -> Int64s:
    """Return for each token the last interval that begins at it or before it, by halvings.

    Args:
        tokens: places on the axis.
        first: for each token an interval that does not begin after it.
        size: the number of intervals from ``first`` on, a power of two, that are searched.
        last: the last interval that exists.
        edges: the function from intervals to their first tokens, ascending.
    """
    found = first
    while size > 1:
        size //= 2
        later = np.minimum(found + size, last)
        found = np.where(edges(later) <= tokens, later, found)
    return found


def cut(axis: Axis, begins: Int64s, length: int) -> _Cut:
    """Return the slices that windows consist of.

    Args:
        axis: the axis; a window that passes its end goes on at its start.
        begins: the first token of each window.
        length: the number of tokens of each window, at least 1 and at most ``axis.end``.
    """
    lasts = begins + (length - 1)
    turned = lasts >= axis.end
    lasts = lasts - turned * axis.end
    found = axis.at(np.concatenate([begins, lasts]))
    first, last = found[: begins.size], found[begins.size :]
    sizes = last + turned * axis.intervals - first + 1
    bounds = offsets_of(sizes)
    intervals = np.arange(bounds[-1]) + np.repeat(first - bounds[:-1], sizes)
    intervals -= (intervals >= axis.intervals) * axis.intervals
    edges = axis.edges(intervals)
    widths = axis.edges(intervals + 1) - edges
    heads, tails = bounds[:-1], bounds[1:] - 1
    starts = np.zeros_like(widths)
    starts[heads] = begins - edges[heads]
    stops = widths.copy()
    stops[tails] = lasts + 1 - edges[tails]
    counts = stops - starts
    if counts.all():
        return _Cut(bounds, intervals, starts, counts, widths)
    held = counts > 0
    bounds = np.append(0, np.cumsum(held))[bounds]
    return _Cut(bounds, *(column[held] for column in (intervals, starts, counts, widths)))


def cut_one(axis: Axis, begin: int, length: int) -> list[tuple[int, int, int, int]]:
    """Return ``cut`` of one window, without arrays: interval, start, count and width of each slice."""
    slices = []
    interval = axis.at_one(begin)
    edge = axis.edge_one(interval)
    start = begin - edge
    while length:
        stop = axis.edge_one(interval + 1)
        if count := min(stop - edge - start, length):
            slices.append((interval, start, count, stop - edge))
        length -= count
        start, edge, interval = 0, stop, interval + 1
        if interval == axis.intervals:
            edge = interval = 0
    return slices


def windows_over(start: int, stop: int, *, stride: int, length: int, windows: int) -> Int64s:
    """Return the windows with any of the tokens ``start <= t < stop``, ascending.

    Args:
        start: the first token, counted from the start of window 0.
        stop: the token after the last one.
        stride: the number of tokens from the start of a window to the start of the next one.
        length: the number of tokens of a window.
        windows: the number of windows.
    """
    if start >= stop:
        return np.empty(0, dtype=np.int64)
    first = max(0, (start - length) // stride + 1)
    return np.arange(first, min(windows, (stop - 1) // stride + 1), dtype=np.int64)


@final
@dataclass(frozen=True, slots=True, eq=False)
class FixedWindows(Packing):
    """Sample r has the tokens from ``r * stride`` on; the epoch is of no account.

    Example:
        >>> import numpy as np
        >>> windows = FixedWindows(OffsetsAxis.of(np.array([0, 3, 8, 10])), stride=4, overlap=1)
        >>> windows.samples, windows.pieces_of_one(0, epoch=3)
        (2, [(0, 0, 3, False), (1, 0, 2, False)])
    """

    axis: OffsetsAxis
    """The documents in natural order."""
    stride: int
    """The number of tokens from the start of a window to the start of the next one: L."""
    overlap: int = 0
    """The number of tokens that a window shares with the next one: 1 for the next token, else 0."""

    @property
    def samples(self) -> int:
        """The number of windows in all."""
        return max(0, (self.axis.end - self.overlap) // self.stride)

    @property
    def length(self) -> int:
        """The number of tokens of a window."""
        return self.stride + self.overlap

    def pieces(self, rows: Int64s, epochs: Int64s) -> Pieces:
        """Return the pieces of several windows."""
        if not rows.size:
            return NO_PIECES
        slices = cut(self.axis, rows * self.stride, self.length)
        return Pieces(slices.bounds, slices.intervals, slices.starts, slices.counts)

    def pieces_of_one(self, row: int, epoch: int) -> list[tuple[int, int, int, bool]]:
        """Return the pieces of one window, without arrays."""
        slices = cut_one(self.axis, row * self.stride, self.length)
        return [(document, start, count, False) for document, start, count, _ in slices]

    def samples_with(self, document: int, epoch: int) -> Int64s:
        """Return the windows with tokens of a document, ascending."""
        start, stop = self.axis.edge_one(document), self.axis.edge_one(document + 1)
        return windows_over(start, stop, stride=self.stride, length=self.length, windows=self.samples)

    def facts(self) -> dict[str, int | float | str]:
        """Return the documents, tokens and samples, and the tokens of the tail, which are in no window."""
        used = self.samples * self.stride + self.overlap * (self.samples > 0)
        sizes = {"documents": self.axis.intervals, "tokens": self.axis.end, "samples": self.samples}
        return {**sizes, "tail": self.axis.end - used}
