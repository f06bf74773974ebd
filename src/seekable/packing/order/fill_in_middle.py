"""Fill-in-the-middle: documents rearranged as prefix, suffix and middle, with a sentinel before each.

Intervals of the axis are marked, not documents: for a rate of p/q, interval j is marked if
``((j + 1) p) // q > (j p) // q``. So ``(j p) // q`` intervals before interval j are marked, and the axis has
a closed form: interval j begins at the sum of the lengths before it, plus three sentinels for each marked
interval before it. Which document fills a marked interval changes each epoch.

A document of l tokens in a marked interval is cut at a and b, ``0 <= a <= b <= m``, where m is l less the
tokens that stay at the end. Its interval holds, one after another,

    the prefix sentinel, [0, a), the suffix sentinel, [b, m), the middle sentinel, [a, b), [m, l)

and that is each token of the document once, and three sentinels: ``l + 3`` tokens, whatever a and b are. The
axis depends on nothing else. So the windows of an epoch tile it as they do without sentinels, they may cut it
anywhere, and each token still comes once an epoch. The order that puts the suffix first (SPM) is the same
with a = 0: its last range is prefix and middle together.

The cuts follow from the seed, the epoch and the document alone. Both are uniform, as in Bavarian et al.,
"Efficient Training of Language Models to Fill in the Middle", 2022.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, final

import numpy as np

from seekable._arguments import check_distinct, checked_count, checked_fraction
from seekable.order.keys import U64, derive, derive_each, kind_key
from seekable.packing.order.sample_pieces import LITERAL, Pieces

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable._typing import Int64s

    Uint64s = NDArray[np.uint64]
    Booleans = NDArray[np.bool_]

__all__ = ["SENTINELS", "Fim", "Marks", "Rearranged"]

_FIM = kind_key("pack-fim")

SENTINELS = 3
"""The number of sentinels of a rearranged document."""

_LARGEST = 10**6
"""The largest denominator of a rate, so that products with a number of documents stay below 2**63."""

_HALF = 1 << 63
_LOW, _HALF_WORD = U64((1 << 32) - 1), U64(32)


@final
@dataclass(frozen=True, slots=True)
class Fim:
    """The rearrangement of documents by ``pack`` for fill-in-the-middle.

    Args:
        rate: the share of the documents that are rearranged, from 0 to 1; the nearest fraction with a
            denominator of up to a million.
        prefix: the token before the prefix.
        suffix: the token before the suffix.
        middle: the token before the middle.
        spm: the share of the rearranged documents whose suffix comes first: prefix sentinel, suffix
            sentinel, suffix, middle sentinel, prefix and middle. The others have prefix, suffix and middle
            in this order, each after its sentinel.
        end_tokens: the number of tokens at the end of each document that stay there; 1 keeps an
            end-of-document token after the middle.

    Raises:
        WrongType: a share is no number, or another argument no integer.
        InvalidArgument: a share is not from 0 to 1, another argument is negative, or sentinels are equal.

    Example:
        >>> Fim(rate=0.5, prefix=1, suffix=2, middle=3)
        Fim(rate=0.5, prefix=1, suffix=2, middle=3, spm=0.5, end_tokens=0)
    """

    rate: float
    prefix: int
    suffix: int
    middle: int
    spm: float = 0.5
    end_tokens: int = 0

    def __post_init__(self) -> None:
        for name in ("rate", "spm"):
            checked_fraction(name, getattr(self, name))
            object.__setattr__(self, name, float(getattr(self, name)))
        for name in ("prefix", "suffix", "middle", "end_tokens"):
            object.__setattr__(self, name, checked_count(name, getattr(self, name), least=0))
        check_distinct({"prefix": self.prefix, "suffix": self.suffix, "middle": self.middle})

    @property
    def marks(self) -> Marks:
        """The intervals whose documents are rearranged."""
        return _marks(self.rate)

    @property
    def sentinels(self) -> tuple[int, int, int]:
        """The tokens before prefix, suffix and middle."""
        return self.prefix, self.suffix, self.middle

    @property
    def threshold(self) -> int:
        """The number of 63 bits below which a draw puts the suffix first."""
        return _threshold(self.spm)


@final
@dataclass(frozen=True, slots=True)
class Marks:
    """The marked intervals, spread evenly: ``share`` out of ``of``.

    Example:
        >>> marks = Marks(2, 3)
        >>> marks.each(np.arange(6)).tolist(), marks.sentinels_before(6)
        ([False, True, True, False, True, True], 12)
    """

    share: int
    of: int

    def sentinels_before(self, interval: int) -> int:
        """Return the number of sentinels in all intervals before one."""
        return interval * self.share // self.of * SENTINELS

    def sentinels_before_each(self, intervals: Int64s) -> Int64s:
        """Return ``sentinels_before`` of each interval."""
        return intervals * self.share // self.of * SENTINELS

    def sentinels_in(self, interval: int) -> int:
        """Return the number of sentinels in an interval: 3 or 0."""
        return self.sentinels_before(interval + 1) - self.sentinels_before(interval)

    def each(self, intervals: Int64s) -> Booleans:
        """Return True for each interval that is marked."""
        return self.sentinels_before_each(intervals + 1) > self.sentinels_before_each(intervals)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Rearranged:
    """The documents of all epochs, rearranged with one seed."""

    fim: Fim
    seed: int

    def pieces(self, slices: Pieces, lengths: Int64s, marked: Booleans, epochs: Int64s) -> Pieces:
        """Return the pieces of slices of intervals.

        Args:
            slices: slices of intervals; ``starts`` are counted from the start of the interval.
            lengths: the number of tokens of the document of each slice.
            marked: True for each slice of a marked interval.
            epochs: the epoch of each slice, or one epoch for all.
        """
        where = np.flatnonzero(marked)
        documents, starts, counts = (
            column[where][:, None] for column in (slices.documents, slices.starts, slices.counts)
        )
        first, sizes, literal = self._segments(
            documents[:, 0], lengths[where], epochs if epochs.size == 1 else epochs[where]
        )
        ends = np.cumsum(sizes, axis=1)
        begins = ends - sizes
        low, high = np.maximum(begins, starts), np.minimum(ends, starts + counts)
        kept = high > low
        # Each slice becomes one piece, or as many as a slice of a marked interval has segments in it.
        repeats = np.ones(marked.size, dtype=np.int64)
        repeats[where] = kept.sum(axis=1)
        at = np.append(0, np.cumsum(repeats))
        out_documents, out_starts, out_counts = (
            np.repeat(column, repeats) for column in (slices.documents, slices.starts, slices.counts)
        )
        inside = np.repeat(marked, repeats)
        out_documents[inside] = np.where(literal, LITERAL, documents)[kept]
        out_starts[inside] = (first + np.where(literal, 0, low - begins))[kept]
        out_counts[inside] = (high - low)[kept]
        joined = np.ones(at[-1], dtype=np.bool_)
        joined[at[:-1]] = False
        return Pieces(at[slices.bounds], out_documents, out_starts, out_counts, joined)

    def pieces_of_one(
        self, document: int, length: int, epoch: int, start: int, count: int
    ) -> list[tuple[int, int, int, bool]]:
        """Return the pieces of one slice of a marked interval, without arrays."""
        out: list[tuple[int, int, int, bool]] = []
        begin = 0
        for source, first, size in self.segments_of_one(document, length, epoch):
            low, high = max(begin, start), min(begin + size, start + count)
            if high > low:
                shift = 0 if source == LITERAL else low - begin
                out.append((source, first + shift, high - low, bool(out)))
            begin += size
        return out

    def segments_of_one(self, document: int, length: int, epoch: int) -> list[tuple[int, int, int]]:
        """Return what the interval of a document holds, in order: document or `LITERAL`, start, count."""
        key = derive(_FIM, self.seed, epoch, document)
        until = max(0, length - self.fim.end_tokens)
        one, other = (derive(key, draw) * (until + 1) >> 64 for draw in (0, 1))
        a, b = sorted((one, other))
        if derive(key, 2) >> 1 < self.fim.threshold:
            a = 0
        prefix, suffix, middle = ((LITERAL, token, 1) for token in self.fim.sentinels)
        ranges = ((document, 0, a), (document, b, until - b), (document, a, b - a))
        pairs = zip((prefix, suffix, middle), ranges, strict=True)
        return [segment for pair in pairs for segment in pair] + [(document, until, length - until)]

    def _segments(
        self, documents: Int64s, lengths: Int64s, epochs: Int64s
    ) -> tuple[Int64s, Int64s, Booleans]:
        """Return ``segments_of_one`` of several documents, as columns of seven segments.

        Returns:
            The starts and counts of shape (documents, 7), and which of the seven are literals: (7,).
        """
        seeded = np.array([derive(_FIM, self.seed)], dtype=np.uint64)
        keys = derive_each(derive_each(seeded, epochs.astype(U64)), documents.astype(U64))
        until = np.maximum(0, lengths - self.fim.end_tokens)
        one, other = (_scaled(_draw(keys, number), until + 1) for number in (0, 1))
        a, b = np.minimum(one, other), np.maximum(one, other)
        a[_draw(keys, 2) >> U64(1) < U64(self.fim.threshold)] = 0
        prefix, suffix, middle = (np.full_like(a, token) for token in self.fim.sentinels)
        single = np.ones_like(a)
        starts = np.stack([prefix, np.zeros_like(a), suffix, b, middle, a, until], axis=1)
        counts = np.stack([single, a, single, until - b, single, b - a, lengths - until], axis=1)
        return starts, counts, np.array([True, False, True, False, True, False, False])


@lru_cache(maxsize=64)
def _marks(rate: float) -> Marks:
    share = checked_fraction("rate", rate).limit_denominator(_LARGEST)
    return Marks(share.numerator, share.denominator)


@lru_cache(maxsize=64)
def _threshold(spm: float) -> int:
    share = checked_fraction("spm", spm)
    return share.numerator * _HALF // share.denominator


def _draw(keys: Uint64s, number: int) -> Uint64s:
    return derive_each(keys, np.array([number], dtype=np.uint64))


def _scaled(draws: Uint64s, sizes: Int64s) -> Int64s:
    """Return ``draw * size >> 64`` of each pair, exactly, for sizes below 2**63."""
    n = sizes.astype(U64)
    high, low = draws >> _HALF_WORD, draws & _LOW
    n_high, n_low = n >> _HALF_WORD, n & _LOW
    one, other = high * n_low, low * n_high
    carry = ((low * n_low >> _HALF_WORD) + (one & _LOW) + (other & _LOW)) >> _HALF_WORD
    product = high * n_high + (one >> _HALF_WORD) + (other >> _HALF_WORD) + carry
    scaled: Int64s = product.astype(np.int64)
    return scaled
