"""Documents cut into pieces no longer than a sample, by the length of the pieces.

A document of l tokens has l // C full pieces of C tokens, from its start on, and a rest of l modulo C tokens.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from seekable._typing import Int64s
    from seekable.packing.order.length_order import LengthClasses, LengthOrder

__all__ = ["Long", "PieceTable", "piece_table"]

Long = Literal["split", "truncate", "drop"]
"""The fate of documents longer than a sample: cut into pieces, cut off behind the first piece, left out."""


@dataclass(frozen=True, slots=True, eq=False)
class PieceTable:
    """The pieces of all documents, numbered by their length, then by document and place in it.

    A row stands for all pieces of one length of documents of one length.
    """

    distinct: Int64s
    """The distinct lengths of pieces, ascending."""
    counts: Int64s
    """The number of pieces of each of these lengths."""
    begins: Int64s
    """The number of the first piece of each of these lengths."""
    firsts: Int64s
    """The number of the first piece of each row."""
    places: Int64s
    """The place in ``by_length`` of the first document of each row."""
    each: Int64s
    """The number of pieces of each document of the row: 1, or all full pieces of a long document."""
    tokens: Int64s
    """The token of its document that the first piece of each begins with."""
    capacity: int

    @property
    def packed(self) -> int:
        """The number of tokens of all pieces."""
        return int((self.distinct * self.counts).sum())

    def classes_of(self, lengths: Int64s) -> tuple[Int64s, Int64s]:
        """Return for each length of a piece the first piece of that length, and the number of them."""
        at = np.searchsorted(self.distinct, lengths)
        return self.begins[at], self.counts[at]

    def class_of(self, length: int) -> tuple[int, int]:
        """Return ``classes_of`` of one length, without arrays."""
        at = bisect_left(self.distinct.data, length)
        return int(self.begins[at]), int(self.counts[at])

    def found(self, order: LengthOrder, numbers: Int64s) -> tuple[Int64s, Int64s]:
        """Return the document of each piece, and the token of it that the piece begins with."""
        row = np.searchsorted(self.firsts, numbers, side="right") - 1
        each = self.each[row]
        document, piece = np.divmod(numbers - self.firsts[row], each)
        documents: Int64s = order.by_length[self.places[row] + document].astype(np.int64)
        return documents, self.tokens[row] + piece * self.capacity

    def found_one(self, order: LengthOrder, number: int) -> tuple[int, int]:
        """Return ``found`` of one piece, without arrays."""
        row = bisect_right(self.firsts.data, number) - 1
        document, piece = divmod(number - int(self.firsts[row]), int(self.each[row]))
        document = int(order.by_length[int(self.places[row]) + document])
        return document, int(self.tokens[row]) + piece * self.capacity

    def pieces_of(self, order: LengthOrder, document: int) -> tuple[Int64s, Int64s]:
        """Return the numbers of the pieces of a document, and their lengths."""
        place = int(order.place[document])
        first = order.classes.starts[np.searchsorted(order.classes.starts, place, side="right") - 1]
        numbers = [
            self.firsts[row] + (place - first) * self.each[row] + np.arange(self.each[row])
            for row in np.flatnonzero(self.places == first)
        ]
        found = np.concatenate([np.empty(0, dtype=np.int64), *numbers])
        return found, self.distinct[np.searchsorted(self.begins, found, side="right") - 1]


def piece_table(classes: LengthClasses, capacity: int, long: Long) -> PieceTable:
    """Return the pieces of the documents of classes of equal length.

    Example:
        >>> from seekable.packing.order.length_order import length_classes
        >>> table = piece_table(length_classes(np.array([3, 9, 3, 7])), 4, "split")
        >>> table.distinct.tolist(), table.counts.tolist()
        ([1, 3, 4], [1, 3, 3])
    """
    lengths, counts = classes.lengths, classes.counts
    full = lengths // capacity
    rest = lengths - full * capacity
    if long != "split":
        too_long = lengths > capacity
        full = np.where(too_long, int(long == "truncate"), full)
        rest = np.where(too_long, 0, rest)
    rests, fulls = np.flatnonzero(rest), np.flatnonzero(full)
    rests = rests[np.argsort(rest[rests], kind="stable")]
    rows = np.concatenate([rests, fulls])
    each = np.concatenate([np.ones_like(rests), full[fulls]])
    pieces = counts[rows] * each
    distinct, at = np.unique(
        np.concatenate([rest[rests], np.full(fulls.size, capacity)]), return_inverse=True
    )
    sizes = np.zeros(distinct.size, dtype=np.int64)
    np.add.at(sizes, at, pieces)
    return PieceTable(
        distinct=distinct,
        counts=sizes,
        begins=np.cumsum(sizes) - sizes,
        firsts=np.cumsum(pieces) - pieces,
        places=classes.starts[rows],
        each=each,
        tokens=np.concatenate([full[rests] * capacity, np.zeros_like(fulls)]),
        capacity=capacity,
    )
