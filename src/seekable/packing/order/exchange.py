"""Packing by exchange: each epoch permutes the documents of equal length, and turns the cuts.

An exchange of documents of equal length moves no boundary between documents. So the boundaries of every epoch
are the offsets of the documents in natural order, and a sample is found by two searches in them, whatever the
epoch: nothing is made for an epoch.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import numpy as np

from seekable.order.keys import U64, derive, derive_each, kind_key
from seekable.order.permutation import permute, permute_one, unpermute_one
from seekable.packing.order.axis import MarkedAxis, OffsetsAxis
from seekable.packing.order.concatenation import Concatenation, Filling, keys_of_epochs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.packing.order.length_order import LengthOrder

__all__ = ["Exchange"]

_LENGTH = kind_key("pack-length")
_TURN = kind_key("pack-turn")
_ALL = slice(None)

_SHORT = 1 << 16
"""Lengths below this are looked up in a table."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Exchange(Concatenation):
    """Concatenation in natural order, in which documents of equal length change places each epoch.

    Example:
        >>> from seekable.packing.order.length_order import length_order
        >>> packing = Exchange(length_order(np.array([3, 5, 2, 3, 5, 3])), stride=4, overlap=1, seed=7)
        >>> packing.samples, [piece[:3] for piece in packing.pieces_of_one(0, epoch=0)]
        (5, [(4, 1, 4), (2, 0, 1)])
    """

    order: LengthOrder
    _class_of: NDArray[np.int32] = field(init=False, repr=False)
    """The class of each length below `_SHORT`; only those of lengths that occur are of use."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_class_of", _classes_of_short(self.order.classes.lengths))

    @property
    def documents(self) -> int:
        """The number of documents of an epoch."""
        return self.order.documents

    @property
    def tokens(self) -> int:
        """The number of tokens of an epoch."""
        return self._filling(0).axis.end

    def facts(self) -> dict[str, int | float | str]:
        """Return the tail, the classes, and the documents and tokens that never move."""
        return {**self.concat_facts(), **self.order.classes.facts()}

    def _fillings(self, epochs: Int64s) -> Sequence[tuple[NDArray[Any] | slice, Filling]]:
        return [(_ALL, self._filling(0))]

    def _filling(self, epoch: int) -> Filling:
        axis = OffsetsAxis(self.order.offsets, self.order.coarse)
        marked = MarkedAxis(axis, self.fim.marks) if self.fim else axis
        return _Exchanged(marked, self.seed, self.order, self._class_of)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Exchanged(Filling):
    """The intervals of the documents in natural order: those of all epochs."""

    order: LengthOrder
    class_of: NDArray[np.int32]

    def begins(self, tokens: Int64s, epochs: Int64s) -> Int64s:
        distinct, which = np.unique(epochs, return_inverse=True)
        turns = np.array([self._turn(epoch) for epoch in distinct.tolist()], dtype=np.int64)
        begins = tokens + turns[which]
        return begins - (begins >= self.axis.end) * self.axis.end

    def begin_one(self, token: int, epoch: int) -> int:
        return (self._turn(epoch) + token) % self.axis.end

    def documents(self, intervals: Int64s, lengths: Int64s, epochs: Int64s) -> Int64s:
        classes = self.order.classes
        number = self._classes(lengths)
        start = classes.starts[number]
        keys = derive_each(keys_of_epochs(_LENGTH, self.seed, epochs), lengths.astype(U64))
        places = self.order.place[intervals].astype(np.int64) - start
        places = permute(places, classes.counts[number], keys) + start
        documents: Int64s = self.order.by_length[places].astype(np.int64)
        return documents

    def document_one(self, interval: int, length: int, epoch: int) -> int:
        return self._moved(interval, length, epoch, permute_one)

    def interval_of(self, document: int, epoch: int) -> int:
        length = int(self.order.offsets[document + 1]) - int(self.order.offsets[document])
        return self._moved(document, length, epoch, unpermute_one)

    def _moved(self, number: int, length: int, epoch: int, move: Callable[[int, int, int], int]) -> int:
        """Return the document of equal length at another place of the class."""
        classes = self.order.classes
        row = bisect_left(classes.lengths.data, length)
        start = int(classes.starts[row])
        place = int(self.order.place[number]) - start
        place = move(place, int(classes.counts[row]), derive(_LENGTH, self.seed, epoch, length))
        return int(self.order.by_length[place + start])

    def _classes(self, lengths: Int64s) -> Int64s:
        """Return the class of each length: by a table, which is ten times as fast as a search."""
        found: Int64s = self.class_of[np.minimum(lengths, self.class_of.size - 1)].astype(np.int64)
        long = np.flatnonzero(lengths >= self.class_of.size)
        if long.size:
            found[long] = np.searchsorted(self.order.classes.lengths, lengths[long])
        return found

    def _turn(self, epoch: int) -> int:
        """Return the token that an epoch begins with; a product of 128 bits."""
        return (derive(_TURN, self.seed, epoch) * self.axis.end) >> 64


def _classes_of_short(lengths: Int64s) -> NDArray[np.int32]:
    """Return a table of the classes of all lengths below `_SHORT`, from the distinct lengths."""
    begins = np.zeros(min(_SHORT, int(lengths[-1]) + 1 if lengths.size else 1), dtype=np.int32)
    begins[lengths[: np.searchsorted(lengths, begins.size)]] = 1
    table = np.cumsum(begins, dtype=np.int32)
    table -= 1
    return table
