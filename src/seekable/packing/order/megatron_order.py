"""The orders of Megatron-core: ``GPTDataset``, and ``BlendedDataset`` over several.

Three arrays decide the order of a ``GPTDataset``:

* The *document index* has every document once for each epoch of the data, shuffled over all epochs together,
  or the first ones together and then the last one.
* The *sample index* cuts the documents in that order into samples of ``L`` tokens: sample ``k`` is the tokens
  ``k * L`` to ``k * L + L + x`` of the axis, where ``x`` is 1 if the next token is wanted.
* The *shuffle index* is the order of the samples.

All three are drawn from one ``RandomState(seed)``, in the order documents, samples. So they have to be built
before the first sample is known, 12 bytes a document or sample and some 200 ns each; and they hold for one
seed, length and number of samples. The arrays are those of the files that Megatron-core 0.16 caches.

A blend says which source each sample comes from. Draw ``s`` takes the source whose share lags the most: the
one with the largest ``w * max(s, 1) - drawn``, in 64-bit floats, the first one on ties. An *exhaustive* blend
draws every sample of every source once; a source leaves it when it is spent.

Draw by draw a blend is a loop over all sources. Here many stretches of it are walked abreast, each from a
guess of the counts drawn before it. Walks from different guesses meet soon, so most guesses lead to the true
end of their stretch. The counts at each end are compared with the next guess, and a stretch that began wrong
is walked again: the result is exact.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np

from seekable.packing.order.length_order import offsets_of
from seekable.packing.order.sample_pieces import Packing, Pieces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s

    Whole = NDArray[np.integer[Any]]


__all__ = [
    "Megatron",
    "MegatronIndexes",
    "blend_exhaustively",
    "blend_weighted",
    "build_indexes",
    "epochs_needed",
    "normalized",
    "split_bounds",
    "wanted_samples",
]

_INT32 = 2**31 - 1

_MOST_PLACES = 2**40
"""The most documents of all epochs; an index of as many takes 4 TB."""

_UINT32 = 2**32 - 1

_SEEDS = 2**32
"""Seeds of numpy's ``RandomState`` are below this."""

_CHUNK = 1 << 22
"""The number of documents whose tokens are added up at a time: 64 MiB of working memory."""

_LAST_EPOCH_ALONE = 0.80
"""The last epoch is shuffled alone if less than this share of it is wanted."""


_ABREAST = 4096
"""The most stretches that are walked at once."""

_SHORTEST = 256
"""A stretch has at least this number of draws, so that most walks meet the true one within it."""


@dataclass(frozen=True, slots=True, eq=False)
class MegatronIndexes:
    """The three arrays that decide the order of a ``GPTDataset``; they may be memory-mapped files."""

    documents: Whole
    """The document at each place of the axis: rows of the child, (places,)."""

    samples: Whole
    """The place and the first token of each sample, then of the end: (samples + 1, 2)."""

    shuffle: Whole
    """The sample of each row: (samples,)."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Megatron(Packing):
    """The samples of a ``GPTDataset``; every epoch is the same, because the data's epochs are in its axis."""

    offsets: Int64s
    """The number of tokens before each document, then of all: (documents + 1,)."""

    indexes: MegatronIndexes

    tokens: int
    """The number of tokens of a sample: ``L``."""

    extra: int
    """1 if a sample also has the token after it, else 0."""

    @property
    def samples(self) -> int:
        """The number of samples of the order."""
        return len(self.indexes.shuffle)

    @property
    def length(self) -> int:
        """The tokens that a full sample has, with the next token."""
        return self.tokens + self.extra

    def pieces(self, rows: Int64s, epochs: Int64s) -> Pieces:
        """Return the pieces of several samples; the epochs change nothing."""
        numbers = self.indexes.shuffle[rows].astype(np.int64)
        begins = self.indexes.samples[numbers].astype(np.int64)
        ends = self.indexes.samples[numbers + 1].astype(np.int64)
        places = ends[:, 0] - begins[:, 0] + 1
        edges = offsets_of(places)
        at = np.arange(edges[-1]) + np.repeat(begins[:, 0] - edges[:-1], places)
        documents = self.indexes.documents[at].astype(np.int64)
        starts = np.zeros(len(at), dtype=np.int64)
        stops = self.offsets[documents + 1] - self.offsets[documents]
        # A sample that is one piece begins and ends in it, so both ends are set.
        starts[edges[:-1]] = begins[:, 1]
        stops[edges[1:] - 1] = ends[:, 1] + self.extra
        counts = stops - starts
        if counts.min(initial=1) < 1:
            # Documents without tokens, and ends that are written as the end of a document.
            kept = counts > 0
            edges = np.concatenate([[0], np.cumsum(kept)])[edges]
            documents, starts, counts = documents[kept], starts[kept], counts[kept]
        return Pieces(edges, documents, starts, counts)

    def pieces_of_one(self, row: int, epoch: int) -> list[tuple[int, int, int, bool]]:
        """Return the pieces of one sample: (document, start, count, False) of each."""
        number = int(self.indexes.shuffle[row])
        (place, start), (last, end) = self.indexes.samples[number : number + 2].tolist()
        found = []
        for document in self.indexes.documents[place : last + 1].tolist():
            stop = int(self.offsets[document + 1] - self.offsets[document])
            if place == last:
                stop = end + self.extra
            if stop > start:
                found.append((document, start, stop - start, False))
            place, start = place + 1, 0
        return found

    def samples_with(self, document: int, epoch: int) -> Int64s:
        """Return the rows of the samples that have tokens of a document, ascending."""
        found = [np.empty(0, dtype=np.int64)]
        if self.offsets[document] < self.offsets[document + 1]:
            places = np.flatnonzero(self.indexes.documents == document)
            found += [self._numbers_with(document, place) for place in places.tolist()]
        return np.flatnonzero(np.isin(self.indexes.shuffle, np.concatenate(found)))

    def facts(self) -> dict[str, int | float | str]:
        """Return the number of places of documents, and the tokens at the end that no sample has."""
        lengths = np.diff(self.offsets)
        axis = sum(
            int(lengths[self.indexes.documents[start : start + _CHUNK]].sum())
            for start in range(0, len(self.indexes.documents), _CHUNK)
        )
        return {
            "places": len(self.indexes.documents),
            "documents": len(lengths),
            "tail": max(0, axis - self.samples * self.tokens - self.extra),
            "padding": max(0, self.samples * self.tokens + self.extra - axis),
        }

    def _numbers_with(self, document: int, place: int) -> Int64s:
        """Return the samples that have tokens of the document at a place."""
        samples = self.indexes.samples
        first = max(0, _bisect(samples, place) - 1)
        numbers = np.arange(first, min(self.samples, _bisect(samples, place + 1)))
        begins, ends = samples[numbers].astype(np.int64), samples[numbers + 1].astype(np.int64)
        length = int(self.offsets[document + 1] - self.offsets[document])
        starts = np.where(begins[:, 0] == place, begins[:, 1], 0)
        stops = np.where(ends[:, 0] == place, ends[:, 1] + self.extra, length)
        return numbers[(starts < stops) & (ends[:, 0] >= place)]


def epochs_needed(tokens: int, length: int, extra: int, samples: int | None) -> int:
    """Return the number of epochs of the data that give at least ``samples`` samples.

    Args:
        tokens: the number of tokens of an epoch, at least 1.
        length: the number of tokens of a sample.
        extra: 1 if the next token is wanted, else 0.
        samples: the number of samples; None for those of one epoch.

    Example:
        >>> epochs_needed(20, 4, 1, None), epochs_needed(20, 4, 1, 4), epochs_needed(20, 4, 1, 5)
        (1, 1, 2)
    """
    return 1 if not samples else max(1, -(-(samples * length + extra) // tokens))


def _num_samples(axis: int, length: int, *, keep_last: bool) -> int:
    """Return the number of samples that Megatron-core 0.16.1 cuts a number of tokens into.

    With ``keep_last`` it is a quotient of 32-bit floats, rounded up, as in ``helpers.cpp``: beyond 2**24
    tokens it can be too large or too small.

    Args:
        axis: the number of tokens, without that after the last sample.
        length: the number of tokens of a sample.
        keep_last: True to count the last sample where it is not full.

    Example:
        >>> _num_samples(10, 4, keep_last=False), _num_samples(10, 4, keep_last=True)
        (2, 3)
        >>> _num_samples(1_000_000_006, 3, keep_last=False), _num_samples(1_000_000_006, 3, keep_last=True)
        (333333335, 333333344)
    """
    if not keep_last:
        return axis // length
    return int(np.ceil(np.array(axis).astype(np.float32) / np.float32(length)))


def build_indexes(
    offsets: Int64s, *, length: int, extra: int, seed: int, samples: int | None, keep_last: bool = False
) -> MegatronIndexes:
    """Build the three arrays as Megatron-core 0.16.1 does.

    Args:
        offsets: the number of tokens before each document, then of all.
        length: the number of tokens of a sample, at least 1.
        extra: 1 if the next token is wanted, else 0.
        seed: the seed of ``RandomState``, 0 to 2**32 - 1.
        samples: the number of samples wanted; there may be more. None for those of one epoch.
        keep_last: True to keep the last sample where it is not full, as
            ``drop_last_partial_validation_sequence=False`` does. The number of samples is then computed in
            32-bit floats, as there.

    Raises:
        ValueError: samples are wanted, and there is no token; or a number is beyond Megatron's limits.

    Example:
        >>> offsets = np.array([0, 3, 8, 10, 14, 20])
        >>> made = build_indexes(offsets, length=4, extra=1, seed=1234, samples=None)
        >>> made.documents.tolist(), made.samples.tolist(), made.shuffle.tolist()
        ([4, 0, 1, 2, 3], [[0, 0], [0, 4], [1, 2], [2, 3], [4, 0]], [2, 1, 3, 0])
    """
    count, tokens = len(offsets) - 1, int(offsets[-1] - offsets[0])
    lengths = np.diff(offsets)
    if samples and not tokens:
        message = (
            f"Megatron's order needs at least one token for {samples:,} samples (got {count:,} documents "
            f"without any; Megatron itself never returns here): give it documents, e.g. a larger split"
        )
        raise ValueError(message)
    _check_limits(count, int(lengths.max(initial=0)), length, seed)
    epochs = epochs_needed(tokens, length, extra, samples)
    if epochs * count > _MOST_PLACES:
        message = (
            f"{samples:,} samples of {length:,} tokens take {epochs:,} epochs of {count:,} documents, and "
            f"Megatron's index has a place for each document of each epoch: take fewer samples"
        )
        raise ValueError(message)
    axis = max(0, epochs * tokens - extra)
    before_last = ((epochs - 1) * tokens - extra) // length
    of_last = (samples or 0) - before_last
    alone = epochs > 1 and of_last < int(_LAST_EPOCH_ALONE * ((tokens - extra) // length))
    total = _num_samples(axis, length, keep_last=keep_last)
    random = np.random.RandomState(seed)
    parts = [epochs - 1, 1] if alone else [epochs]
    documents = np.concatenate(
        [_shuffled(np.tile(np.arange(count, dtype=np.int32), n), random) for n in parts]
    )
    cuts = _cuts(lengths, documents, np.minimum(np.arange(total + 1) * length, axis), extra)
    middle = before_last if alone else total
    kind: Any = np.uint32 if total < _UINT32 - 1 else np.int64
    ranges = [np.arange(0, middle, dtype=kind), np.arange(middle, total, dtype=kind)]
    return MegatronIndexes(documents, cuts, np.concatenate([_shuffled(part, random) for part in ranges]))


def _check_limits(count: int, longest: int, length: int, seed: int) -> None:
    if not 0 <= seed < _SEEDS:
        message = f"the seed of Megatron's order must be 0 to {_SEEDS - 1:,} (got {seed})"
    elif max(count, longest, length + 1) > _INT32:
        message = (
            f"Megatron's order has signed 32-bit numbers, up to {_INT32:,} (got {count:,} documents, the "
            f"longest of {longest:,} tokens, and samples of {length:,}): leave out order='megatron'"
        )
    else:
        return
    raise ValueError(message)


def _shuffled(values: Whole, random: np.random.RandomState) -> Whole:
    random.shuffle(values)
    return values


def _cuts(lengths: Int64s, documents: Whole, axis: Int64s, extra: int) -> Whole:
    """Return the place and the token in its document of ascending positions on the axis of tokens.

    A position between two documents is the first token of the second one if the next token is wanted, else
    the end of the first one.
    """
    small = max(len(documents), int(lengths.max(initial=0))) <= _INT32
    cuts = np.zeros((len(axis), 2), dtype=np.int32 if small else np.int64)
    side: Literal["left", "right"] = "right" if extra else "left"
    done, before = int(axis[0] == 0), 0
    for start in range(0, len(documents), _CHUNK):
        ends = before + np.cumsum(lengths[documents[start : start + _CHUNK]])
        stop = int(np.searchsorted(axis, ends[-1], side="left" if extra else "right"))
        here = axis[done:stop]
        places = np.searchsorted(ends, here, side=side)
        cuts[done:stop, 0] = start + places
        cuts[done:stop, 1] = here - np.concatenate([[before], ends])[places]
        done, before = max(done, stop), int(ends[-1])
    return cuts


def _bisect(samples: Whole, place: int) -> int:
    """Return the number of entries of the sample index that lie before a place.

    ``numpy.searchsorted`` would copy the column, which is not contiguous.
    """
    low, high = 0, len(samples)
    while low < high:
        middle = (low + high) // 2
        if int(samples[middle, 0]) < place:
            low = middle + 1
        else:
            high = middle
    return low


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
    """Return how many samples of a source to build for a blend of ``samples``.

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
    """Return the source of each draw, and the sample in that source.

    Args:
        weights: the share of each source; they should add up to 1.
        size: the number of draws.

    Example:
        >>> blend_weighted([0.7, 0.3], 12)[0].tolist()
        [0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1]
    """
    return _BlendWalk(np.array(weights, dtype=np.float64), None).run(size)


def blend_exhaustively(sizes: Sequence[int]) -> tuple[NDArray[np.int16], Int64s]:
    """Return the source and the sample of each draw, where every sample of every source is drawn once.

    Args:
        sizes: the number of samples of each source, at least 1.

    Example:
        >>> blend_exhaustively([3, 1])[0].tolist()
        [0, 1, 0, 0]
    """
    limits, total = np.array(sizes, dtype=np.int64), sum(sizes)
    return _BlendWalk(limits / float(total), limits).run(total)


class _BlendWalk:
    """Stretches of one blend, walked abreast."""

    def __init__(self, weights: NDArray[np.float64], limits: Int64s | None) -> None:
        self._weights = weights
        self._limits = limits

    def run(self, size: int) -> tuple[NDArray[np.int16], Int64s]:
        """Return the source of each draw, and how often it was drawn before."""
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
