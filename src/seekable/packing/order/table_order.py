"""Packing by a table, and by exchange.

The table: each epoch permutes all documents and adds up their lengths. This is an order as good as any, for
corpora whose documents are few enough to be permuted at once. The tables of several epochs are laid end to
end on one axis, so that small corpora need no loop over epochs. The table of very many documents keeps the
first token of each 64th interval alone. Those between are added up when they are needed, from the lengths of
64 permuted documents. So the table of 10**8 documents takes 12.5 MB instead of 1.2 GB, and samples take
several times as long.

The exchange: each epoch permutes the documents of equal length, and turns the cuts. That moves no boundary
between documents. So the boundaries of every epoch are the offsets of the documents in natural order, and a
sample is found by two searches in them, whatever the epoch: nothing is made for an epoch.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import numpy as np

from seekable.order.keys import U64, derive, derive_each, kind_key
from seekable.order.permutation import permute, permute_one, unpermute_one
from seekable.packing.order.axis import Axis, MarkedAxis, OffsetsAxis
from seekable.packing.order.concatenation import Concatenation, Filling, keys_of_epochs
from seekable.packing.order.fill_in_middle import SENTINELS
from seekable.packing.order.length_order import number_type, offsets_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.packing.order.fill_in_middle import Marks
    from seekable.packing.order.length_order import LengthOrder, Numbers

__all__ = ["Exchange", "TableOrder"]


_TABLE = kind_key("pack-table")

_TOGETHER = 1 << 12
"""Epochs are put into one table until it has more entries than this."""

_KEPT = 2
"""The number of tables that are kept: a batch may begin in one epoch and end in the next."""


_EACH = 64
"""The number of intervals from one kept begin to the next."""

_AT_ONCE = 1 << 14
"""The runs of intervals that are added up together when a table is made."""


class _KeptTables:
    """The tables that were used last, each with its index; a copy in another process begins with none."""

    def __init__(self) -> None:
        self.tables: tuple[tuple[int, Filling], ...] = ()

    def __reduce__(self) -> tuple[type[_KeptTables], tuple[()]]:
        return _KeptTables, ()


@final
@dataclass(frozen=True, slots=True, eq=False)
class TableOrder(Concatenation):
    """Concatenation of all documents in an order of their own in each epoch.

    Example:
        >>> packing = TableOrder(np.array([0, 3, 8, 10, 13, 18, 21]), stride=4, seed=7)
        >>> packing.samples, len(packing.pieces_of_one(0, epoch=0))
        (5, 1)
    """

    offsets: Int64s
    """The number of tokens before each document, then the number of all tokens: (N + 1,)."""

    fine: int = 1 << 20
    """The most documents for which the first token of every interval is kept; of more, that of each 64th."""

    _kept: _KeptTables = field(init=False, repr=False, default_factory=_KeptTables)

    @property
    def documents(self) -> int:
        """The number of documents of an epoch."""
        return self.offsets.size - 1

    @property
    def tokens(self) -> int:
        """The number of tokens of an epoch."""
        sentinels = self.fim.marks.sentinels_before(self.documents) if self.fim else 0
        return int(self.offsets[-1]) + sentinels

    def facts(self) -> dict[str, int | float | str]:
        """Return the tail of an epoch."""
        return self.concat_facts()

    def _fillings(self, epochs: Int64s) -> Sequence[tuple[NDArray[Any] | slice, Filling]]:
        tables = epochs // self._together
        return [
            (np.flatnonzero(tables == table), self._filling(table * self._together))
            for table in np.unique(tables).tolist()
        ]

    def _filling(self, epoch: int) -> Filling:
        number = epoch // self._together
        kept = dict(self._kept.tables)
        if number not in kept:
            # One assignment replaces all tables, because other threads may read them.
            kept = {**dict(self._kept.tables[1 - _KEPT :]), number: self._made(number)}
            self._kept.tables = tuple(kept.items())
        return kept[number]

    @property
    def _together(self) -> int:
        """The number of epochs in a table."""
        return 1 if self.documents > self.fine else max(1, _TOGETHER // max(1, self.documents))

    def _made(self, number: int) -> Filling:
        """Return the table of a group of epochs."""
        first = number * self._together
        if self.documents > self.fine:
            key = derive(_TABLE, self.seed, number)
            return _coarse_table(self.offsets, key, self.fim.marks if self.fim else None, self.seed)
        keys = keys_of_epochs(_TABLE, self.seed, first + np.arange(self._together))
        order = permute(np.arange(self.documents), self.documents, keys[:, None]).reshape(-1)
        widths = np.diff(self.offsets)[order]
        if self.fim:
            widths += self.fim.marks.each(np.arange(order.size) % self.documents) * SENTINELS
        axis = OffsetsAxis.of(offsets_of(widths))
        documents = order.astype(number_type(self.documents))
        return _EpochTable(axis, self.seed, documents, first, self.documents)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _EpochTable(Filling):
    """The documents of some epochs, permuted, epoch after epoch."""

    order: Numbers
    """The document in each interval."""
    first: int
    """The first of the epochs."""
    size: int
    """The number of documents of an epoch."""

    def begins(self, tokens: Int64s, epochs: Int64s) -> Int64s:
        return tokens + (epochs - self.first) * self._tokens

    def begin_one(self, token: int, epoch: int) -> int:
        return token + (epoch - self.first) * self._tokens

    def documents(self, intervals: Int64s, lengths: Int64s, epochs: Int64s) -> Int64s:
        documents: Int64s = self.order[intervals].astype(np.int64)
        return documents

    def document_one(self, interval: int, length: int, epoch: int) -> int:
        return int(self.order[interval])

    def interval_of(self, document: int, epoch: int) -> int:
        place = unpermute_one(document, self.size, derive(_TABLE, self.seed, epoch))
        return (epoch - self.first) * self.size + place

    @property
    def _tokens(self) -> int:
        """The number of tokens of an epoch."""
        return self.axis.end * self.size // self.axis.intervals


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Permutation:
    """The documents of an epoch, in the order of their intervals."""

    offsets: Int64s
    """The number of tokens before each document in natural order."""
    key: int
    marks: Marks | None

    def widths(self, runs: Int64s) -> Int64s:
        """Return the widths of the 64 intervals in each run; 0 after the last interval."""
        size = self.offsets.size - 1
        places = runs[:, None] * _EACH + np.arange(_EACH)
        documents = permute(np.minimum(places, size - 1), size, self.key)
        widths: Int64s = self.offsets[documents + 1] - self.offsets[documents]
        if self.marks:
            widths += self.marks.each(places) * SENTINELS
        widths[places >= size] = 0
        return widths


@final
@dataclass(frozen=True, slots=True, eq=False)
class _CoarseAxis(Axis):
    """The intervals of one epoch."""

    permutation: _Permutation
    begins: Int64s
    """The first token of each 64th interval, then the number of all tokens."""

    @property
    def intervals(self) -> int:
        """The number of intervals on the axis."""
        return self.permutation.offsets.size - 1

    @property
    def end(self) -> int:
        """The number of tokens on the axis."""
        return int(self.begins[-1])

    def at(self, tokens: Int64s) -> Int64s:
        """Return the interval of each token: a search for its run, then a sum over the run."""
        run = np.searchsorted(self.begins, tokens, side="right") - 1
        ends = self.begins[run][:, None] + np.cumsum(self.permutation.widths(run), axis=1)
        found: Int64s = run * _EACH + (ends <= tokens[:, None]).sum(axis=1)
        return found

    def at_one(self, token: int) -> int:
        """Return the interval of one token."""
        return int(self.at(np.array([token]))[0])

    def edges(self, intervals: Int64s) -> Int64s:
        """Return the first token of each interval; each run is added up once."""
        runs, which = np.unique(intervals // _EACH, return_inverse=True)
        widths = self.permutation.widths(runs)
        before = np.cumsum(widths, axis=1) - widths
        edges: Int64s = self.begins[runs][which] + before[which, intervals % _EACH]
        return edges

    def edge_one(self, interval: int) -> int:
        """Return the first token of one interval."""
        return int(self.edges(np.array([interval]))[0])


@final
@dataclass(frozen=True, slots=True, eq=False)
class _CoarseTable(Filling):
    """The documents of one epoch, permuted."""

    key: int
    """The key of the permutation."""

    def begins(self, tokens: Int64s, epochs: Int64s) -> Int64s:
        """Return the tokens themselves: the axis begins with the epoch."""
        return tokens

    def begin_one(self, token: int, epoch: int) -> int:
        """Return the token itself, as `begins` does."""
        return token

    def documents(self, intervals: Int64s, lengths: Int64s, epochs: Int64s) -> Int64s:
        """Return the permuted indices of the intervals."""
        return permute(intervals, self.axis.intervals, self.key)

    def document_one(self, interval: int, length: int, epoch: int) -> int:
        """Return the document in one interval."""
        return permute_one(interval, self.axis.intervals, self.key)

    def interval_of(self, document: int, epoch: int) -> int:
        """Return the interval of a document."""
        return unpermute_one(document, self.axis.intervals, self.key)


def _coarse_table(offsets: Int64s, key: int, marks: Marks | None, seed: int) -> _CoarseTable:
    """Make the table of an epoch; it takes a few megabytes more than what it keeps.

    Args:
        offsets: the number of tokens before each document, then of all; at least one document.
        key: the key of the permutation of the epoch.
        marks: the intervals with sentinels; None for none.
        seed: the seed of the packing.
    """
    permutation = _Permutation(offsets, key, marks)
    runs = -(-(offsets.size - 1) // _EACH)
    begins = np.zeros(runs + 1, dtype=np.int64)
    for first in range(0, runs, _AT_ONCE):
        some = np.arange(first, min(first + _AT_ONCE, runs))
        begins[some + 1] = permutation.widths(some).sum(axis=1)
    np.cumsum(begins, out=begins)
    return _CoarseTable(_CoarseAxis(permutation, begins), seed, key)


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
