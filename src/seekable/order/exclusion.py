"""Rows that are left out, and the rows that come in their places: arithmetic, forward and inverse.

Of ``n`` rows ``k`` are left out, and ``K = n - k`` are kept. Where the ``j``-th row that is left out would
come in an epoch, a kept row comes: with ``c, t = divmod(j, K)`` it is the kept row with the number that a
keyed permutation of ``range(K)`` sends ``t`` to, under a key of its own for each epoch and ``c``. So in an
epoch the replacements are distinct as long as ``k <= K``; beyond that each kept row is a replacement
``k // K`` times, or once more. All other rows stay where they are.

The rows that are left out are a sorted list, or, where they are more than one in 64, a bitmap with a running
count for each 512 bits. In both forms one bit decides for nearly all rows that they are kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Final, final

import numpy as np

from seekable._cached import cached
from seekable.order.arrays import divided, united
from seekable.order.keys import U64, derive, derive_each, kind_key
from seekable.order.permutation import permute, permute_one, unpermute

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]

__all__ = ["Exclusion", "RowBitmap", "RowList", "RowSet", "row_set"]

_KEY: Final = derive(kind_key("without"), 0)

_SPARSE = 64
"""Of how many rows one may be left out at most for a list: then a list is no longer than a bitmap."""

_WORD_SHIFT, _BLOCK_SHIFT = 6, 9
_WORD, _BLOCK = 1 << _WORD_SHIFT, 1 << _BLOCK_SHIFT
_WORDS = _BLOCK // _WORD
"""The words of 64 bits in a block, which has one running count."""

_WORD_STARTS = np.arange(0, _BLOCK, _WORD, dtype=np.int64)
_ALL_ONES = (1 << _WORD) - 1

_AT_ONCE = 1 << 18
"""The number of places that the inverse looks at together."""


class RowSet(ABC):
    """Some of ``size`` rows, with their ranks: how many of them come before a row."""

    size: int
    """The number of all rows."""

    count: int
    """The number of rows in the set."""

    @abstractmethod
    def holding(self, rows: Int64s) -> NDArray[np.intp]:
        """Return the indices of those of some rows that are in the set, ascending."""

    @abstractmethod
    def holds_one(self, row: int) -> bool:
        """Return True if a row is in the set."""

    @abstractmethod
    def rank(self, rows: Int64s) -> Int64s:
        """Return how many rows of the set are below each of some rows."""

    @abstractmethod
    def rank_one(self, row: int) -> int:
        """Return how many rows of the set are below one row."""

    @abstractmethod
    def select(self, numbers: Int64s) -> Int64s:
        """Return the rows of the set with some numbers, from 0, in ascending order of the rows."""

    @abstractmethod
    def select_others(self, numbers: Int64s) -> Int64s:
        """Return the rows outside the set with some numbers."""

    @abstractmethod
    def select_other(self, number: int) -> int:
        """Return the row outside the set with one number."""


def row_set(rows: Int64s, size: int) -> RowSet:
    """Return some rows in the form that takes fewer bytes.

    Args:
        rows: the rows, ascending and distinct, from 0 to ``size - 1``.
        size: the number of all rows.

    Example:
        >>> few = row_set(np.array([5, 6, 999]), 1000)
        >>> type(few).__name__, few.rank(np.array([0, 6, 1000])).tolist(), few.select_other(5)
        ('RowList', [0, 1, 3], 7)
        >>> type(row_set(np.arange(0, 1000, 3), 1000)).__name__
        'RowBitmap'
    """
    return RowBitmap(rows, size) if rows.size * _SPARSE >= size else RowList(rows, size)


@final
class RowList(RowSet):
    """Rows as a sorted list: 8 bytes each, as many again for the others, and up to 16 for the bits."""

    def __init__(self, rows: Int64s, size: int) -> None:
        """Keep ascending distinct rows of ``range(size)``."""
        self.size, self.count = size, int(rows.size)
        self._rows = np.ascontiguousarray(rows, dtype=np.int64)
        self._before = self._rows - np.arange(self.count, dtype=np.int64)
        # One bit for each run of 2**shift rows; there are at most 128 bits for each row of the set.
        self._shift = 0
        while size >> self._shift > max(_WORD, 2 * _SPARSE * self.count):
            self._shift += 1
        runs = self._rows >> self._shift
        words = _bits(runs[np.diff(runs, prepend=-1) > 0], (size >> self._shift) + 1)
        self._bytes = words.view(np.uint8)

    def holding(self, rows: Int64s) -> NDArray[np.intp]:
        """Return the indices of the rows in the set: those whose run has a bit are looked up in the list."""
        maybe = np.flatnonzero(_bit(self._bytes, rows >> self._shift if self._shift else rows))
        if not maybe.size or not self._shift:
            return maybe
        some = rows[maybe]
        found = np.minimum(np.searchsorted(self._rows, some), self.count - 1)
        return np.compress(self._rows[found] == some, maybe)

    def holds_one(self, row: int) -> bool:
        """Return True if a row is in the set."""
        run = row >> self._shift
        if not self._byte_view[run >> 3] >> (run & 7) & 1:
            return False
        if not self._shift:
            return True
        at = bisect_left(self._row_view, row)
        return at < self.count and self._row_view[at] == row

    def rank(self, rows: Int64s) -> Int64s:
        """Return how many rows of the set are below each of some rows."""
        return np.searchsorted(self._rows, rows)

    def rank_one(self, row: int) -> int:
        """Return how many rows of the set are below one row."""
        return bisect_left(self._row_view, row)

    def select(self, numbers: Int64s) -> Int64s:
        """Return the rows of the set with some numbers."""
        return self._rows[numbers]

    def select_others(self, numbers: Int64s) -> Int64s:
        """Return the rows outside the set with some numbers."""
        return numbers + np.searchsorted(self._before, numbers, side="right")

    def select_other(self, number: int) -> int:
        """Return the row outside the set with one number."""
        return number + bisect_right(self._before_view, number)

    @cached
    def _row_view(self) -> memoryview:
        return self._rows.data

    @cached
    def _before_view(self) -> memoryview:
        return self._before.data

    @cached
    def _byte_view(self) -> memoryview:
        return self._bytes.data


@final
class RowBitmap(RowSet):
    """Rows as one bit for each of all rows, and a running count for each block of 512 bits."""

    def __init__(self, rows: Int64s, size: int) -> None:
        """Set the bits of ascending distinct rows of ``range(size)``."""
        self.size, self.count = size, int(rows.size)
        blocks = (size >> _BLOCK_SHIFT) + 1
        self._words = _bits(rows, blocks * _BLOCK)
        self._bytes = self._words.view(np.uint8)
        edges = np.arange(blocks + 1, dtype=np.int64) << _BLOCK_SHIFT
        self._counts = np.searchsorted(rows, edges).astype(np.int64)
        """The number of rows of the set before each block, then of all."""
        # Beyond the last row all bits are 0, so that there are numbers of others that no caller asks for.
        self._other_counts = edges - self._counts
        ones = _ones(self._words[: blocks * _WORDS]).reshape(-1, _WORDS)
        self._within = np.zeros((blocks, _WORDS), dtype=np.uint16)
        """The number of rows of the set in each block that come before each of its words."""
        np.cumsum(ones[:, :-1], axis=1, out=self._within[:, 1:])

    def holding(self, rows: Int64s) -> NDArray[np.intp]:
        """Return the indices of the rows whose bit is set."""
        return np.flatnonzero(_bit(self._bytes, rows))

    def holds_one(self, row: int) -> bool:
        """Return True if the bit of a row is set."""
        return bool(self._byte_view[row >> 3] >> (row & 7) & 1)

    def rank(self, rows: Int64s) -> Int64s:
        """Return the count of the row's block, and of the bits below the row in it."""
        words = rows >> _WORD_SHIFT
        below = (U64(1) << (rows & (_WORD - 1)).astype(np.uint64)) - U64(1)
        ranks: Int64s = self._counts[rows >> _BLOCK_SHIFT] + _ones(self._words[words] & below)
        ranks += self._within.reshape(-1)[words]
        return ranks

    def rank_one(self, row: int) -> int:
        """Return how many rows of the set are below one row."""
        first = row >> _BLOCK_SHIFT << (_BLOCK_SHIFT - 3)
        bits = int.from_bytes(self._byte_view[first : first + _BLOCK // 8], "little")
        below = bits & ((1 << (row & (_BLOCK - 1))) - 1)
        return int(self._count_view[row >> _BLOCK_SHIFT]) + below.bit_count()

    def select(self, numbers: Int64s) -> Int64s:
        """Return the rows of the set with some numbers."""
        block = np.searchsorted(self._counts, numbers, side="right") - 1
        return self._selected(
            block, numbers - self._counts[block], self._within[block].astype(np.int64), U64(0)
        )

    def select_others(self, numbers: Int64s) -> Int64s:
        """Return the rows outside the set with some numbers."""
        block = np.searchsorted(self._other_counts, numbers, side="right") - 1
        within = _WORD_STARTS - self._within[block]
        return self._selected(block, numbers - self._other_counts[block], within, ~U64(0))

    def select_other(self, number: int) -> int:
        """Return the row outside the set with one number."""
        block = bisect_right(self._other_count_view, number) - 1
        left, first = number - self._other_count_view[block], block << (_BLOCK_SHIFT - 3)
        for word in range(first, first + _BLOCK // 8, 8):
            bits = ~int.from_bytes(self._byte_view[word : word + 8], "little") & _ALL_ONES
            if left < (ones := bits.bit_count()):
                for _ in range(left):
                    bits &= bits - 1
                return (word << 3) + (bits & -bits).bit_length() - 1
            left -= ones
        raise AssertionError(number)

    def _selected(self, block: Int64s, left: Int64s, within: Int64s, flip: np.uint64) -> Int64s:
        """Return the rows that have some numbers in their blocks, of those whose bits are 1 once flipped.

        Args:
            block: the block of each row.
            left: its number in the block.
            within: the number of rows before each word of the block.
            flip: what the bits are combined with by exclusive or.
        """
        number = (within <= left[:, None]).sum(axis=1) - 1
        word = block * _WORDS + number
        left = left - within[np.arange(left.size), number]
        rows: Int64s = (word << _WORD_SHIFT) + _place_in_word(self._words[word] ^ flip, left)
        return rows

    @cached
    def _byte_view(self) -> memoryview:
        return self._bytes.data

    @cached
    def _count_view(self) -> memoryview:
        return self._counts.data

    @cached
    def _other_count_view(self) -> memoryview:
        return self._other_counts.data


def _bits(rows: Int64s, size: int) -> NDArray[np.uint64]:
    """Return little-endian words in which the bits at some rows, ascending and distinct, are set."""
    words = np.zeros((size >> _WORD_SHIFT) + 1, dtype="<u8")
    if rows.size:
        of_rows = rows >> _WORD_SHIFT
        firsts = np.flatnonzero(np.diff(of_rows, prepend=-1))
        ones = U64(1) << (rows & (_WORD - 1)).astype(np.uint64)
        words[of_rows[firsts]] = np.bitwise_or.reduceat(ones, firsts)
    return words


def _bit(packed: NDArray[np.uint8], rows: Int64s) -> NDArray[np.bool_]:
    """Return a bool array of the bits of some rows."""
    low = rows.astype(np.uint8)  # The last bits alone count.
    low &= np.uint8(7)
    found = packed.take(rows >> 3)
    found >>= low
    found &= np.uint8(1)
    return found.view(np.bool_)


_MASKS = tuple(map(U64, (0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F, 0x0101010101010101)))


def _ones(words: NDArray[np.uint64]) -> Int64s:
    """Return the number of bits that are 1 in each word."""
    pairs, fours, eights, sums = _MASKS
    words = words - ((words >> U64(1)) & pairs)
    words = (words & fours) + ((words >> U64(2)) & fours)
    words = (words + (words >> U64(4))) & eights
    return ((words * sums) >> U64(56)).astype(np.int64)


def _place_in_word(words: NDArray[np.uint64], left: Int64s) -> Int64s:
    """Return the place of the bit in each word that is 1 and has ``left`` such bits below it."""
    parts = words.view(np.uint8).reshape(-1, 8)
    ends = np.cumsum(_ONES_OF_BYTE[parts], axis=1)
    byte = (ends <= left[:, None]).sum(axis=1)
    each = np.arange(left.size)
    found = parts[each, byte]
    left = left - (ends[each, byte] - _ONES_OF_BYTE[found])
    places: Int64s = (byte << 3) + _PLACES_IN_BYTE[found, left]
    return places


_BITS_OF_BYTE = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
_ONES_OF_BYTE = _BITS_OF_BYTE.sum(axis=1).astype(np.int64)
_PLACES_IN_BYTE = np.argsort(1 - _BITS_OF_BYTE.astype(np.int8), axis=1, kind="stable")
"""For each byte the places of its bits that are 1, ascending, and then the others."""


@final
class Exclusion:
    """The rows that come at each position of ``size`` rows, epoch after epoch, if some are left out.

    Example:
        >>> out = Exclusion(np.array([5, 6, 7, 500, 999]), 1000)
        >>> out.forward(np.array([4, 5, 6, 1005])).tolist(), out.forward_one(5)
        ([4, 695, 544, 1031], 695)
        >>> out.inverse(np.array([695, 5])).tolist()
        [695, 5]
    """

    def __init__(self, rows: Int64s, size: int) -> None:
        """Leave out ascending distinct rows of ``range(size)``, of which not all may be left out.

        Raises:
            ValueError: no row is kept.
        """
        self.size = size
        self.out = row_set(rows, size)
        """The rows that are left out."""
        self.kept = size - self.out.count
        """The number of rows that are kept."""
        if self.kept < 1:
            message = f"of {size:,} rows {self.out.count:,} are left out, and none is kept"
            raise ValueError(message)

    def forward(self, positions: Int64s) -> Int64s:
        """Return the positions of the rows that come at some positions: of kept rows, in the same epoch."""
        epochs, rows = divided(positions, self.size)
        at = self.out.holding(rows)
        if not at.size:
            return positions
        epochs = united(epochs[at])
        chunks, numbers = divided(self.out.rank(rows[at]), self.kept)
        keys = self._keys(epochs, united(chunks))
        moved = positions.copy()
        moved[at] = epochs * self.size + self.out.select_others(permute(numbers, self.kept, keys))
        return moved

    def forward_one(self, position: int) -> int:
        """Return ``forward`` of one position, without arrays."""
        epoch, row = divmod(position, self.size)
        if not self.out.holds_one(row):
            return position
        chunk, number = divmod(self.out.rank_one(row), self.kept)
        number = permute_one(number, self.kept, derive(_KEY, epoch, chunk))
        return epoch * self.size + self.out.select_other(number)

    def inverse(self, positions: Int64s) -> Int64s:
        """Return the positions at which the rows at some positions come, in no order; none for rows left out.

        A kept row comes at its own position, and wherever it is a replacement.
        """
        epochs, rows = np.divmod(positions, self.size)
        is_kept = np.ones(rows.size, dtype=np.bool_)
        is_kept[self.out.holding(rows)] = False
        epochs, rows = epochs[is_kept], rows[is_kept]
        found = [positions[is_kept]]
        numbers = rows - self.out.rank(rows)
        chunks = -(-self.out.count // self.kept)
        some = max(1, _AT_ONCE // max(1, chunks))
        for first in range(0, numbers.size, some):
            there = slice(first, first + some)
            found += self._replaced_by(epochs[there], numbers[there], chunks)
        return np.concatenate(found)

    def _replaced_by(self, epochs: Int64s, numbers: Int64s, chunks: int) -> list[Int64s]:
        """Return arrays of the positions at which the kept rows with some numbers are replacements."""
        found = []
        for first in range(0, chunks, _AT_ONCE):
            chunk = np.arange(first, min(first + _AT_ONCE, chunks), dtype=np.int64)
            places = unpermute(numbers[:, None], self.kept, self._keys(epochs[:, None], chunk))
            places += chunk * self.kept
            is_there = places < self.out.count
            own = np.broadcast_to(epochs[:, None], places.shape)[is_there]
            found.append(own * self.size + self.out.select(places[is_there]))
        return found

    def _keys(self, epochs: Int64s, chunks: Int64s) -> NDArray[np.uint64]:
        of_epochs = derive_each(np.array([_KEY], dtype=np.uint64), epochs.astype(np.uint64))
        return derive_each(of_epochs, chunks.astype(np.uint64))
