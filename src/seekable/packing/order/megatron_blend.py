"""The order of Megatron-core's ``BlendedDataset``: which source each sample comes from.

Draw ``s`` takes the source whose share lags the most: the one of the largest ``w * max(s, 1) - drawn``, in
64-bit floats, the first one on ties. An *exhaustive* blend draws every sample of every source once; a source
leaves it when it is spent.

Draw by draw this is a loop over all sources. Here many stretches of the blend are walked abreast, each from a
guess of the numbers drawn before it. Walks from different guesses meet soon, so most guesses lead to the
true end of their stretch. The numbers at each end are compared with the next guess, and a stretch that began
wrong is walked again: the result is exact.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s

__all__ = ["blend_exhaustively", "blend_weighted", "normalized", "split_bounds", "wanted_samples"]

_ABREAST = 4096
"""The most stretches that are walked at once."""

_SHORTEST = 256
"""A stretch has at least this number of draws, so that most walks meet the true one within it."""


def normalized(weights: Sequence[float]) -> list[float]:
    """Return weights divided by their sum, rounded as numpy does.

    Example:
        >>> normalized([7, 3])
        [0.7, 0.3]
    """
    values = np.array(weights, dtype=np.float64)
    shares: list[float] = (values / np.sum(values)).tolist()
    return shares


def wanted_samples(share: float, samples: int, surplus: float = 0.0) -> int:
    """Return the number of samples to build of a source, for a blend of ``samples``.

    Args:
        share: the source's share of the blend.
        samples: the number of samples of the blend.
        surplus: the share to build beyond what is wanted; Megatron's default is 0.005.

    Example:
        >>> wanted_samples(0.7, 1000), wanted_samples(0.7, 1000, 0.005)
        (700, 704)
    """
    return math.ceil(math.ceil(samples * share) * (1 + surplus))


def split_bounds(shares: Sequence[float], documents: int) -> list[tuple[int, int]]:
    """Return the first document of each split and the one after its last, as Megatron rounds them.

    Args:
        shares: the relative sizes of the splits, such as 969, 30 and 1.
        documents: the number of documents.

    Example:
        >>> split_bounds([969, 30, 1], 50)
        [(0, 48), (48, 50), (50, 50)]
    """
    edges = [0.0]
    for share in normalized(shares):
        edges.append(edges[-1] + share)
    # ``round`` takes the even one of two neighbours.
    return [
        (round(start * float(documents)), round(stop * float(documents))) if start < stop else (0, 0)
        for start, stop in itertools.pairwise(edges)
    ]


def blend_weighted(weights: Sequence[float], size: int) -> tuple[NDArray[np.int16], Int64s]:
    """Return the source of each draw, and the number of the sample in the source.

    Args:
        weights: the share of each source; they should add up to 1.
        size: the number of draws.

    Example:
        >>> blend_weighted([0.7, 0.3], 12)[0].tolist()
        [0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1]
    """
    return _Walk(np.array(weights, dtype=np.float64), None).run(size)


def blend_exhaustively(sizes: Sequence[int]) -> tuple[NDArray[np.int16], Int64s]:
    """Return the source and the sample of each draw, where every sample of every source is drawn once.

    Args:
        sizes: the number of samples of each source, at least 1.

    Example:
        >>> blend_exhaustively([3, 1])[0].tolist()
        [0, 1, 0, 0]
    """
    limits, total = np.array(sizes, dtype=np.int64), sum(sizes)
    return _Walk(limits / float(total), limits).run(total)


class _Walk:
    """Stretches of one blend, walked abreast."""

    def __init__(self, weights: NDArray[np.float64], limits: Int64s | None) -> None:
        self._weights = weights
        self._limits = limits

    def run(self, size: int) -> tuple[NDArray[np.int16], Int64s]:
        """Return the source of each draw, and the number of earlier draws of that source."""
        steps = max(_SHORTEST, -(-size // _ABREAST))
        stretches = -(-size // steps)
        sources = np.zeros((stretches, steps), dtype=np.int16)
        samples = np.zeros((stretches, steps), dtype=np.int64)
        begins = self._guesses(np.arange(stretches) * steps)
        ends = np.empty_like(begins)
        wrong = np.arange(stretches)
        while wrong.size:
            ends[wrong] = self._stride(wrong, begins[wrong], sources, samples)
            wrong = 1 + np.flatnonzero((begins[1:] != ends[:-1]).any(axis=1))
            begins[wrong] = ends[wrong - 1]
        return sources.reshape(-1)[:size], samples.reshape(-1)[:size]

    def _guesses(self, starts: Int64s) -> Int64s:
        """Return numbers drawn of each source that add up to the number of draws before each start."""
        shares = self._weights * starts[:, None]
        counts = np.floor(shares).astype(np.int64)
        ranks = np.argsort(np.argsort(counts - shares, axis=1, kind="stable"), axis=1)
        counts += ranks < (starts - counts.sum(axis=1))[:, None]
        return counts

    def _stride(self, rows: Int64s, begins: Int64s, sources: NDArray[np.int16], samples: Int64s) -> Int64s:
        """Walk some stretches, put their draws into the arrays, and return the numbers at their ends."""
        counts = begins.copy()
        lane = np.arange(len(rows))
        steps = sources.shape[1]
        for step in range(steps):
            draws = np.maximum(rows * steps + step, 1).astype(np.float64)
            errors = self._weights * draws[:, None] - counts
            if self._limits is not None:
                errors[counts >= self._limits] = -np.inf
            chosen = errors.argmax(axis=1)
            sources[rows, step] = chosen
            samples[rows, step] = counts[lane, chosen]
            counts[lane, chosen] += 1
        return counts
