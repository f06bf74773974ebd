"""The plan of packed samples: pieces are found for thousands of samples, and read a batch at a time."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, final

import numpy as np

from seekable.nodes.compile import CompiledGraph, GatheredPlan
from seekable.nodes.graph import Plan, Reader, SlicedPlan
from seekable.packing.nodes.list_copies import copy_planned, copy_sliced
from seekable.packing.nodes.sample_arrays import records_of
from seekable.packing.nodes.window_plan import WindowPlan
from seekable.packing.order.pieces import LITERAL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.nodes.graph import FileRanges
    from seekable.packing.nodes.sample_maker import SampleMaker
    from seekable.packing.nodes.sample_segments import Placed

    class HasMaker(Protocol):
        """A node that makes samples."""

        @property
        def maker(self) -> SampleMaker:
            """The making of the samples."""


__all__ = ["PackedReader"]

_ONLY_ROOT = np.zeros(1, dtype=np.int64)

_KEPT_BYTES = 16 << 20
"""The C library of Linux keeps twice as many freed bytes, so that the arrays of a batch take the memory of
earlier ones: fresh pages cost a third of the time of a batch."""


@final
class PackedReader(Reader):
    """Plans the samples of many packed nodes, each over a child of its own."""

    def __init__(self, nodes: Sequence[HasMaker]) -> None:
        """Compile the child of each node.

        Args:
            nodes: the nodes.
        """
        self._makers = [node.maker for node in nodes]
        self._children = [CompiledGraph([maker.child]) for maker in self._makers]
        # What the library keeps grows with the largest block that it had to map and was given back.
        np.empty(_KEPT_BYTES, np.uint8)

    def plan(self, which: Int64s, positions: Int64s) -> Plan:
        """Return the plan of each node; of several together, if there are positions of several."""
        if which.size == 1:
            return self._planned(int(which[0]), positions)
        places = [(int(number), np.flatnonzero(which == number)) for number in np.unique(which)]
        if len(places) == 1:
            return self._planned(places[0][0], positions)
        parts = tuple((at, self._planned(number, positions[at])) for number, at in places)
        return GatheredPlan(positions.size, parts)

    def _planned(self, number: int, positions: Int64s) -> Plan:
        maker = self._makers[number]
        by_pieces = partial(self._of_pieces, number)
        if maker.axis is None:
            return by_pieces(positions)
        starts = positions % maker.packing.samples * maker.stride
        return WindowPlan(maker, maker.axis, positions, starts, by_pieces)

    def _of_pieces(self, number: int, positions: Int64s) -> Plan:
        maker, child = self._makers[number], self._children[number]
        epochs, rows = np.divmod(positions, maker.packing.samples)
        pieces = maker.pieces(rows, epochs)
        stored = np.flatnonzero(pieces.documents != LITERAL)
        documents = pieces.documents[stored]
        below = child.plan(_ONLY_ROOT, documents)
        records = np.arange(documents.size)
        if documents.size and not isinstance(below, SlicedPlan):
            # Pieces of one document that follow one another are made of one record.
            first = np.concatenate([[True], documents[1:] != documents[:-1]])
            records = np.cumsum(first) - 1
            below = below if first.all() else child.plan(_ONLY_ROOT, documents[first])
        return _PackedPlan(maker, pieces, stored, records, below)


@final
@dataclass(frozen=True, slots=True)
class _PackedPlan(Plan):
    maker: SampleMaker
    pieces: Placed
    stored: Int64s
    """The numbers of the pieces that are of documents, and no literal tokens."""
    records: Int64s
    """For each of these the number of its document in ``child``."""
    child: Plan

    def __len__(self) -> int:
        return self.pieces.samples

    def slice(self, start: int, stop: int) -> Plan:
        edges = self.pieces.bounds[[start, stop]]
        first, last = np.searchsorted(self.stored, edges).tolist()
        records = self.records[first:last]
        low, high = (int(records[0]), int(records[-1]) + 1) if records.size else (0, 0)
        pieces, stored = self.pieces.slice(start, stop), self.stored[first:last] - edges[0]
        return _PackedPlan(self.maker, pieces, stored, records - low, self.child.slice(low, high))

    def arrays(self) -> dict[str, Any] | None:
        return self.maker.arrays(self.pieces, self._copy) if len(self) else None

    def read(self) -> list[Any]:
        made = self.arrays()
        return [] if made is None else records_of(made, len(self))

    def locate(self) -> list[Any]:
        starts, counts = self.pieces.starts[self.stored], self.pieces.counts[self.stored]
        if isinstance(self.child, SlicedPlan):
            places = self.child.locate_slices(starts, counts)
        else:
            of_records = self.child.locate()
            places = [of_records[record] for record in self.records.tolist()]
        edges = np.searchsorted(self.stored, self.pieces.bounds).tolist()
        return [places[low:high] for low, high in itertools.pairwise(edges)]

    @property
    def paths(self) -> set[str]:
        return self.child.paths

    @property
    def bytes(self) -> int:
        if not isinstance(self.child, SlicedPlan):
            return self.child.bytes
        dtypes = self.maker.dtypes
        size = sum(dtypes[name].itemsize for name in self.maker.reads)
        return size * int(self.pieces.counts[self.stored].sum())

    @property
    def from_stores(self) -> bool:
        return self.child.from_stores

    def ranges(self) -> Iterator[FileRanges]:
        if not self.maker.reads:
            return iter(())
        if not isinstance(self.child, SlicedPlan):
            return self.child.ranges()
        starts, counts = self.pieces.starts[self.stored], self.pieces.counts[self.stored]
        return self.child.ranges_of_slices(starts, counts)

    def advise(self) -> None:
        if not self.maker.reads:
            return
        if isinstance(self.child, SlicedPlan):
            # A document may be much longer than the pieces that are read of it.
            starts, counts = self.pieces.starts[self.stored], self.pieces.counts[self.stored]
            self.child.advise_slices(starts, counts)
        else:
            self.child.advise()

    def _copy(self, out: Mapping[str, NDArray[Any]]) -> None:
        """Copy the pieces of documents into arrays of samples."""
        pieces, stored = self.pieces, self.stored
        if isinstance(self.child, SlicedPlan):
            copy_sliced(self.child, pieces, stored, out)
        else:
            copy_planned(self.maker, self.child, pieces, stored, self.records, out)
