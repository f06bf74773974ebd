"""Packing by a table: each epoch permutes all documents and adds up their lengths.

This is an order as good as any, for corpora whose documents are few enough to be permuted at once. The tables
of several epochs are laid behind each other on one axis, so that small corpora need no loop over epochs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import numpy as np

from seekable.order.keys import derive, kind_key
from seekable.order.permutation import permute, unpermute_one
from seekable.packing.order.axis import OffsetsAxis
from seekable.packing.order.coarse_table import coarse_table
from seekable.packing.order.concat import Concat, Filling, keys_of_epochs
from seekable.packing.order.fill_in_middle import SENTINELS
from seekable.packing.order.length_order import number_type, offsets_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.packing.order.length_order import Numbers

__all__ = ["Table"]

_TABLE = kind_key("pack-table")

_TOGETHER = 1 << 12
"""Epochs are put into one table until it has more entries than this."""

_KEPT = 2
"""The number of tables that are kept: a batch may begin in one epoch and end in the next."""


class _KeptTables:
    """The tables that were used last, each with its number; a copy in another process begins with none."""

    def __init__(self) -> None:
        self.tables: tuple[tuple[int, Filling], ...] = ()

    def __reduce__(self) -> tuple[type[_KeptTables], tuple[()]]:
        return _KeptTables, ()


@final
@dataclass(frozen=True, slots=True, eq=False)
class Table(Concat):
    """Concatenation of all documents in an order of their own in each epoch.

    Example:
        >>> packing = Table(np.array([0, 3, 8, 10, 13, 18, 21]), stride=4, seed=7)
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
            return coarse_table(self.offsets, key, self.fim.marks if self.fim else None, self.seed)
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
    """The documents of some epochs, permuted, one epoch behind the other."""

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
