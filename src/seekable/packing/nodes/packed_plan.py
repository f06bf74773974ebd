"""Plans of packed samples: pieces are found for thousands of samples, and read a batch at a time.

A window of token files is one range of bytes, whatever documents it crosses.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, final

import numpy as np

from seekable._cached import cached
from seekable.errors import BadValue
from seekable.nodes.compile import CompiledGraph, GatheredPlan
from seekable.nodes.display import describe_place
from seekable.nodes.graph import Plan, Reader, SlicedPlan, held
from seekable.packing.nodes.lists import NotAList, lists_in, lists_of
from seekable.packing.nodes.sample_arrays import records_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.nodes.files.leaf import SlicedAxis
    from seekable.nodes.graph import FileRanges, Origins
    from seekable.packing.nodes.lists import Lists
    from seekable.packing.nodes.sample_arrays import PlacedPieces, SampleMaker

    Out = Mapping[str, NDArray[Any]]

__all__ = ["PackedReader", "WindowPlan", "copy_records", "spans_of_records"]

_ONLY_ROOT = np.zeros(1, dtype=np.int64)

_KEPT_BYTES = 16 << 20
"""The C library of Linux keeps twice as many freed bytes, so that the arrays of a batch take the memory of
earlier ones: fresh pages cost a third of the time of a batch."""


@final
class PackedReader(Reader):
    """Plans the samples of many packed nodes, each over a child of its own."""

    def __init__(self, makers: Sequence[SampleMaker]) -> None:
        """Compile the child of each node.

        Args:
            makers: the making of each node's samples.
        """
        self._makers = makers
        self._children = [CompiledGraph([maker.child]) for maker in makers]
        self._beside = [CompiledGraph([maker.beside]) if maker.beside else None for maker in makers]
        # What the library keeps grows with the largest block that it had to map and was given back.
        np.empty(_KEPT_BYTES, np.uint8)

    def plan(self, which: Int64s, positions: Int64s) -> Plan:
        """Return the plan of one node, or of several together."""
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
        stored = np.flatnonzero(pieces.documents >= 0)
        documents = pieces.documents[stored]
        below, spans = child.plan(_ONLY_ROOT, documents), self._beside[number]
        beside = None if spans is None else spans.plan(_ONLY_ROOT, documents)
        records = np.arange(documents.size)
        if documents.size and not isinstance(below, SlicedPlan):
            # Pieces of one document that follow one another are made of one record.
            first = np.concatenate([[True], documents[1:] != documents[:-1]])
            records = np.cumsum(first) - 1
            below = below if first.all() else child.plan(_ONLY_ROOT, documents[first])
        return _PackedPlan(maker, pieces, stored, records, below, beside)


@final
@dataclass(frozen=True, slots=True)
class _PackedPlan(Plan):
    maker: SampleMaker
    pieces: PlacedPieces
    stored: Int64s
    """The indices of the pieces that come from documents; others are literal tokens, or left out."""
    records: Int64s
    """For each of these the index of its document in ``child``."""
    child: Plan
    beside: Plan | None
    """The plan of the spans of the document of each of these pieces; None if no spans are read."""

    def __len__(self) -> int:
        return self.pieces.samples

    def slice(self, start: int, stop: int) -> Plan:
        edges = self.pieces.bounds[[start, stop]]
        first, last = np.searchsorted(self.stored, edges).tolist()
        records = self.records[first:last]
        low, high = (int(records[0]), int(records[-1]) + 1) if records.size else (0, 0)
        pieces, stored = self.pieces.slice(start, stop), self.stored[first:last] - edges[0]
        beside = None if self.beside is None else self.beside.slice(first, last)
        return _PackedPlan(self.maker, pieces, stored, records - low, self.child.slice(low, high), beside)

    def left_out(self) -> NDArray[np.bool_] | None:
        if self.maker.mark is None:
            return None
        gone = (self.pieces.held == 0) & (self.pieces.used > 0)
        return gone if gone.any() else None

    def arrays(self) -> dict[str, Any] | None:
        return self.maker.arrays(self.pieces, self._copy, self._spans) if len(self) else None

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
            _copy_sliced(self.child, pieces, stored, out)
        else:
            _copy_planned(self.maker, self.child, pieces, stored, self.records, out)

    def _spans(self) -> Sequence[Any]:
        """Return the spans of the document of each piece that has one, by name."""
        assert self.beside is not None
        return _checked_spans(self.maker, self.pieces.documents[self.stored], self.beside.read())


@final
@dataclass(frozen=True)
class WindowPlan(Plan):
    """The plan of windows that are copied from the axis of tokens; locations alone need their documents."""

    maker: SampleMaker
    axis: SlicedAxis
    positions: Int64s
    starts: Int64s
    """The first token of each window."""
    by_documents: Callable[[Int64s], Plan]
    """Returns the plan of positions by the pieces of their documents."""

    def __len__(self) -> int:
        """Return the number of windows."""
        return self.starts.size

    def slice(self, start: int, stop: int) -> WindowPlan:
        """Return the plan of some of the windows."""
        at = slice(start, stop)
        return WindowPlan(self.maker, self.axis, self.positions[at], self.starts[at], self.by_documents)

    def arrays(self) -> dict[str, Any] | None:
        """Return the columns of the windows, each of shape (windows, tokens); None without a window."""
        if not len(self):
            return None
        shape, dtypes = (len(self), self.maker.width), self.maker.dtypes
        out = {name: np.empty(shape, dtypes[name]) for name in self.maker.columns}
        if out:
            with held(self):
                self.axis.copy_into(out, self.starts)
        return out

    def read(self) -> list[Any]:
        """Return the windows as records."""
        made = self.arrays()
        return [] if made is None else records_of(made, len(self))

    def locate(self) -> list[Any]:
        """Return the locations of the pieces of each window."""
        return self._pieces.locate()

    def origins(self) -> Origins:
        """Raise an error, as for all records that are made of several."""
        return self._pieces.origins()

    @property
    def paths(self) -> set[str]:
        """The paths of the token files of the windows."""
        return self.axis.paths(self.starts, self.maker.width)

    @property
    def bytes(self) -> int:
        """The bytes that the arrays of the windows take."""
        sizes = (self.maker.dtypes[name].itemsize for name in self.maker.columns)
        return len(self) * self.maker.width * sum(sizes)

    @property
    def from_stores(self) -> bool:
        """True if token files are objects of stores."""
        return self.axis.from_stores

    def ranges(self) -> Iterator[FileRanges]:
        """Yield the ranges of bytes of the windows."""
        return self.axis.ranges(self.starts, self.maker.width, self.maker.columns)

    def advise(self) -> None:
        """Announce the reads to the operating system, if reads have waited for a disk."""
        if self.maker.reads:
            self.axis.advise(self.starts, self.maker.width)

    @cached
    def _pieces(self) -> Plan:
        return self.by_documents(self.positions)


def _copy_sliced(plan: Plan, pieces: PlacedPieces, stored: Int64s, out: Out) -> None:
    """Copy pieces into arrays of samples from a plan that has a document for each of them.

    Args:
        plan: a plan of slices; one of no document may be of another kind.
        pieces: the pieces of the samples.
        stored: the indices of the pieces that are of documents.
        out: an array of each column that is wanted, of shape (samples, width).
    """
    if stored.size:
        assert isinstance(plan, SlicedPlan)
        rows, at = pieces.sample_of[stored], pieces.at[stored]
        plan.copy_into(out, rows, at, pieces.starts[stored], pieces.counts[stored])


def _copy_planned(
    maker: SampleMaker, plan: Plan, pieces: PlacedPieces, stored: Int64s, records: Int64s, out: Out
) -> None:
    """Copy pieces into arrays of samples from the records of a plan; each record is read once.

    Args:
        maker: the making of the samples.
        plan: the plan of the records.
        pieces: the pieces of the samples.
        stored: the indices of the pieces that are of documents.
        records: for each of these the index of its record in the plan.
        out: an array of each column that is wanted, of shape (samples, width).

    Raises:
        BadValue: a list is shorter than it was when lengths were counted.
        MissingColumn, WrongType: a record has no list any more.
    """
    _copy(maker, lambda names: lists_of(plan, names, maker.form.align), pieces, stored, records, out)


def copy_records(maker: SampleMaker, pieces: PlacedPieces, out: Out) -> None:
    """Copy pieces into arrays of samples; each document is read by itself.

    Of documents of token files the pieces alone are read.

    Args:
        maker: the making of the samples.
        pieces: the pieces of the samples.
        out: see `_copy_planned`.

    Raises:
        BadValue, MissingColumn, WrongType: see `_copy_planned`.
    """
    stored = np.flatnonzero(pieces.documents >= 0)
    if maker.is_sliced:
        _copy_sliced(maker.child.plan(pieces.documents[stored]), pieces, stored, out)
        return
    documents, records = np.unique(pieces.documents[stored], return_inverse=True)
    read = [maker.child.record(document) for document in documents.tolist()]
    _copy(
        maker,
        lambda names: [lists_in(read, name, maker.form.align) for name in names],
        pieces,
        stored,
        records,
        out,
    )


def spans_of_records(maker: SampleMaker, pieces: PlacedPieces) -> Sequence[Any]:
    """Return the spans of the document of each piece that has one, by name; each document is read by itself.

    Raises:
        BadValue: a document is replaced, because it is corrupt.
    """
    assert maker.beside is not None
    documents = pieces.documents[pieces.documents >= 0]
    return _checked_spans(maker, documents, [maker.beside.record(row) for row in documents.tolist()])


def _checked_spans(maker: SampleMaker, documents: Int64s, records: Sequence[Any]) -> Sequence[Any]:
    for row, record in zip(documents.tolist(), records, strict=True):
        if not isinstance(record, dict):
            message = (
                f"{describe_place(maker.child, row)}: {maker.call} needs the spans of this document, and the "
                f"file is damaged there: write the store again, or leave the spans out of align="
            )
            raise BadValue(message)
    return records


def _copy(
    maker: SampleMaker,
    read: Callable[[Sequence[str | None]], list[Lists]],
    pieces: PlacedPieces,
    stored: Int64s,
    records: Int64s,
    out: Out,
) -> None:
    if not stored.size:
        return
    documents = pieces.documents[stored]
    try:
        found = read([maker.key_of(name) for name in out])
    except NotAList as error:
        row = int(documents[np.flatnonzero(records == error.record)[0]])
        raise error.placed(maker.child, row, maker.call) from None
    to = (pieces.sample_of * pieces.width + pieces.at)[stored]
    starts, counts = pieces.starts[stored], pieces.counts[stored]
    for array, lists in zip(out.values(), found, strict=True):
        short = np.flatnonzero(starts + counts > lists.lengths[records])
        if short.size:
            raise BadValue(_changed(maker, int(documents[short[0]])))
        for values, some in lists.by_array(records):
            begins = (lists.starts[records] + starts)[some]
            _copy_slices(array.reshape(-1), values, to[some], begins, counts[some])


def _copy_slices(
    target: NDArray[Any], source: NDArray[Any], to: Int64s, starts: Int64s, counts: Int64s
) -> None:
    """Copy slices of one flat array into another, which may be of a wider type."""
    into: Any = target
    of: Any = source
    if target.dtype == source.dtype:
        into, of = target.data, source.data
    columns = zip(to.tolist(), starts.tolist(), counts.tolist(), strict=True)
    for first, start, count in columns:
        into[first : first + count] = of[start : start + count]


def _changed(maker: SampleMaker, row: int) -> str:
    expected = int(maker.documents.lengths[row])
    return (
        f"{describe_place(maker.child, row)}: {maker.call} found {expected:,} tokens in this record when "
        f"lengths were counted, and there are fewer now: the records must be the same each time. Make the "
        f"packed dataset again"
    )
