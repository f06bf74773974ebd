"""The segments of samples, and the arrays that are made of them: segment ids, positions, cumulated lengths.

A segment is what attention may stay within: a piece of a document, or all pieces of a rearranged one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.packing.nodes.sample_form import Positions
    from seekable.packing.order.pieces import Pieces

    Int32s = NDArray[np.int32]

__all__ = ["Placed", "Segments", "placed", "segments_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """Pieces of some samples with their places in these; a sample has ``width`` places."""

    bounds: Int64s
    """For each sample the number of its first piece, then the number of all pieces."""

    documents: Int64s
    """The row of each piece's document; -1 for a literal token."""

    starts: Int64s
    """The first token of each piece in its document; of a literal token its id."""

    counts: Int64s
    """The number of tokens of each piece."""

    joined: NDArray[np.bool_] | None
    """True for each piece that goes on with the segment of the piece before it; None if none does."""

    at: Int64s
    """The place of each piece's first token in its sample."""

    width: int

    @property
    def samples(self) -> int:
        """The number of samples of the batch."""
        return self.bounds.size - 1

    @property
    def used(self) -> Int64s:
        """The number of tokens in each sample."""
        last = self.bounds[1:] - 1
        used: Int64s = self.at[last] + self.counts[last]
        return used

    @property
    def sample_of(self) -> Int64s:
        """The number of the sample that each piece is in."""
        return np.repeat(np.arange(self.samples, dtype=np.int64), np.diff(self.bounds))

    def slice(self, start: int, stop: int) -> Placed:
        """Return the pieces of the samples ``start`` to ``stop``."""
        first, last = int(self.bounds[start]), int(self.bounds[stop])
        return Placed(
            self.bounds[start : stop + 1] - first,
            self.documents[first:last],
            self.starts[first:last],
            self.counts[first:last],
            None if self.joined is None else self.joined[first:last],
            self.at[first:last],
            self.width,
        )


def placed(pieces: Pieces, width: int) -> Placed:
    """Return pieces with their places in samples of ``width`` tokens; tokens beyond these are cut off.

    Example:
        >>> from seekable.packing.order.pieces import Pieces
        >>> columns = np.array([[0, 1, 2], [5, 0, 0], [3, 2, 4]])
        >>> some = placed(Pieces(np.array([0, 2, 3]), *columns), 4)
        >>> some.at.tolist(), some.counts.tolist()
        ([0, 3, 0], [3, 1, 4])
    """
    ends = np.cumsum(pieces.counts)
    begins = ends - pieces.counts
    bounds, counts = pieces.bounds, pieces.counts
    at = begins - np.repeat(begins[bounds[:-1]], np.diff(bounds))
    whole = Placed(bounds, pieces.documents, pieces.starts, counts, pieces.joined, at, width)
    return whole if not counts.size or int(whole.used.max()) <= width else _cut(whole, width)


def _cut(pieces: Placed, width: int) -> Placed:
    """Return the pieces of the first ``width`` tokens of each sample."""
    kept = pieces.at < width
    counts = np.minimum(pieces.counts, width - pieces.at)[kept]
    bounds = np.concatenate([[0], np.cumsum(kept)])[pieces.bounds]
    joined = None if pieces.joined is None else pieces.joined[kept]
    columns = pieces.documents[kept], pieces.starts[kept], counts, joined, pieces.at[kept]
    return Placed(bounds, *columns, width)


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """The segments of some samples; the unused places at the end of a sample are a segment with number 0."""

    bounds: Int64s
    """For each sample the number of its first segment, then the number of all segments."""

    numbers: Int32s
    """The number of each segment in its sample, from 1; 0 for unused places."""

    counts: Int64s
    """The number of places of each segment."""

    firsts: Int64s
    """The position of each segment's first token."""

    width: int

    def ids(self) -> Int32s:
        """Return the number of the segment at each place: int32, shape (samples, width)."""
        return np.repeat(self.numbers, self.counts).reshape(-1, self.width)

    def positions(self) -> Int32s:
        """Return the position of the token at each place, 0 at unused ones: int32, (samples, width)."""
        ends = np.cumsum(self.counts)
        begins = ends - self.counts
        # A position is a place in the sample less the place where position 0 of the segment would be.
        out: Int32s = np.repeat((begins % self.width - self.firsts).astype(np.int32), self.counts)
        places = out.reshape(-1, self.width)
        np.subtract(np.arange(self.width, dtype=np.int32), places, out=places)
        unused = np.flatnonzero(self.numbers == 0)
        for start, stop in zip(begins[unused].tolist(), ends[unused].tolist(), strict=True):
            out[start:stop] = 0
        return places

    def cumulated(self) -> list[Int32s]:
        """Return, for each sample, 0 and then the end of each segment that is used: int32 arrays."""
        used = self.numbers > 0
        ends = np.cumsum(self.counts) % self.width
        ends[ends == 0] = self.width
        sizes = np.add.reduceat(used.astype(np.int64), self.bounds[:-1]) + 1
        edges = np.concatenate([[0], np.cumsum(sizes)])
        out = np.zeros(int(edges[-1]), dtype=np.int32)
        places = np.arange(int(edges[-1]))
        out[np.delete(places, edges[:-1])] = ends[used]
        lows, highs = edges[:-1].tolist(), edges[1:].tolist()
        return [out[low:high] for low, high in zip(lows, highs, strict=True)]

    def longest(self) -> Int64s:
        """Return the number of tokens of the longest segment of each sample: int64."""
        longest: Int64s = np.maximum.reduceat(np.where(self.numbers > 0, self.counts, 0), self.bounds[:-1])
        return longest


def segments_of(pieces: Placed, positions: Positions) -> Segments:
    """Return the segments of at least one sample.

    Args:
        pieces: the pieces of the samples.
        positions: ``"piece"`` for positions from 0 in each segment, ``"document"`` for those in documents.
    """
    bounds, counts, firsts = pieces.bounds, pieces.counts, pieces.starts
    if pieces.joined is not None:
        heads = ~pieces.joined
        heads[bounds[:-1]] = True
        begins = np.flatnonzero(heads)
        counts, firsts = np.add.reduceat(counts, begins), firsts[begins]
        bounds = np.concatenate([[0], np.cumsum(heads)])[bounds]
    if positions == "piece":
        firsts = np.zeros(counts.size, dtype=np.int64)
    numbers = np.arange(1, counts.size + 1) - np.repeat(bounds[:-1], np.diff(bounds))
    made = Segments(bounds, numbers.astype(np.int32), counts, firsts, pieces.width)
    unused = pieces.width - pieces.used
    return made if not unused.any() else _with_unused(made, unused)


def _with_unused(segments: Segments, unused: Int64s) -> Segments:
    """Return segments with one more for each sample of which some places are unused."""
    short = np.flatnonzero(unused)
    at = segments.bounds[1:][short]
    added: Any = np.zeros(segments.bounds.size, dtype=np.int64)
    added[1:][short] = 1
    return Segments(
        segments.bounds + np.cumsum(added),
        np.insert(segments.numbers, at, 0),
        np.insert(segments.counts, at, unused[short]),
        np.insert(segments.firsts, at, 0),
        segments.width,
    )
