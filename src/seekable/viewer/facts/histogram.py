"""Histograms and percentiles of values that are counted.

Bins of lengths grow by a tenth of a decade; bins of other numbers are equally wide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable._typing import Int64s

PERCENTILES = (50, 95, 99)

_A_DECADE = 10
_EQUAL_BINS = 40


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of values in bins; bin ``i`` has the values ``edges[i] <= value < edges[i + 1]``."""

    edges: tuple[float, ...]
    """One more than there are bins, ascending. The last bin of numbers holds its upper edge too."""

    counts: tuple[int, ...]

    scale: Literal["log", "linear"]
    """The scale on which bins look equally wide."""

    def document(self) -> dict[str, Any]:
        """Return the edges, the counts and the scale, JSON-safe."""
        return {"edges": list(self.edges), "counts": list(self.counts), "scale": self.scale}


def _length_edges(shortest: int, longest: int) -> Int64s:
    """Return the edges of bins of lengths, ten to a decade, that hold two lengths: int64, ascending.

    Example:
        >>> _length_edges(0, 3).tolist(), _length_edges(90, 150).tolist()
        ([0, 1, 2, 3, 4], [80, 100, 126, 159])
    """
    decades = len(str(max(longest, 1))) + 1
    grown = np.ceil(10 ** (np.arange(decades * _A_DECADE + 1) / _A_DECADE) - 1e-9).astype(np.int64)
    edges = np.unique(np.concatenate([[0], grown]))
    first = int(np.searchsorted(edges, shortest, side="right")) - 1
    last = int(np.searchsorted(edges, longest, side="right"))
    return edges[first : last + 1]


def lengths_in_bins(lengths: Int64s) -> Histogram | None:
    """Return the histogram of lengths; None without any.

    Example:
        >>> lengths_in_bins(np.array([0, 1, 1, 3])).counts
        (1, 2, 0, 1)
    """
    if not lengths.size:
        return None
    return counted_lengths_in_bins(*np.unique(lengths, return_counts=True))


def counted_lengths_in_bins(lengths: Int64s, counts: Int64s) -> Histogram:
    """Return the histogram of distinct lengths with their counts.

    Args:
        lengths: at least one, ascending, without repeats.
        counts: how often each comes.
    """
    edges = _length_edges(int(lengths[0]), int(lengths[-1]))
    bins = np.searchsorted(edges, lengths, side="right") - 1
    summed = np.zeros(edges.size - 1, np.int64)
    np.add.at(summed, bins, counts)
    return Histogram(tuple(edges.tolist()), tuple(summed.tolist()), "log")


def numbers_in_bins(numbers: NDArray[np.float64]) -> Histogram | None:
    """Return the histogram of finite numbers in 40 equal bins; one bin if all are equal, None without any.

    Example:
        >>> numbers_in_bins(np.array([2.0, 2.0]))
        Histogram(edges=(2.0, 2.0), counts=(2,), scale='linear')
    """
    numbers = numbers[np.isfinite(numbers)]
    if not numbers.size:
        return None
    low, high = float(numbers.min()), float(numbers.max())
    edges = np.linspace(low, high, _EQUAL_BINS + 1) if np.isfinite(high - low) else numbers[:0]
    if not np.all(np.diff(edges) > 0) or not edges.size:
        return Histogram((low, high), (int(numbers.size),), "linear")
    counts, _ = np.histogram(numbers, edges)
    return Histogram(tuple(edges.tolist()), tuple(counts.tolist()), "linear")


def counted_percentiles(lengths: Int64s, counts: Int64s) -> dict[int, int]:
    """Return for each of PERCENTILES the least length that this percentage of all does not exceed.

    Args:
        lengths: at least one, ascending, without repeats.
        counts: how often each comes.

    Example:
        >>> counted_percentiles(np.array([3, 8]), np.array([96, 4]))
        {50: 3, 95: 3, 99: 8}
    """
    below = np.cumsum(counts)
    ranks = {percent: -(-int(below[-1]) * percent // 100) for percent in PERCENTILES}
    return {percent: int(lengths[np.searchsorted(below, rank)]) for percent, rank in ranks.items()}
