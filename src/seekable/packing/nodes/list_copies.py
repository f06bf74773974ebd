"""The copying of pieces of lists: of any records that have a list of tokens, or are one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import BadValue
from seekable.nodes.display import describe_place
from seekable.nodes.graph import SlicedPlan
from seekable.packing.nodes.lists import NotAList, lists_in, lists_of
from seekable.packing.order.pieces import LITERAL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.nodes.graph import Plan
    from seekable.packing.nodes.lists import Lists
    from seekable.packing.nodes.sample_maker import SampleMaker
    from seekable.packing.nodes.sample_segments import Placed

    Out = Mapping[str, NDArray[Any]]

__all__ = ["copy_planned", "copy_records", "copy_sliced"]


def copy_sliced(plan: Plan, pieces: Placed, stored: Int64s, out: Out) -> None:
    """Copy pieces into arrays of samples from a plan that has a document for each of them.

    Args:
        plan: a plan of slices; one of no document may be of another kind.
        pieces: the pieces of the samples.
        stored: the numbers of the pieces that are of documents.
        out: an array of each column that is wanted, of shape (samples, width).
    """
    if stored.size:
        assert isinstance(plan, SlicedPlan)
        rows, at = pieces.sample_of[stored], pieces.at[stored]
        plan.copy_into(out, rows, at, pieces.starts[stored], pieces.counts[stored])


def copy_planned(
    maker: SampleMaker, plan: Plan, pieces: Placed, stored: Int64s, records: Int64s, out: Out
) -> None:
    """Copy pieces into arrays of samples from the records of a plan; each record is read once.

    Args:
        maker: the making of the samples.
        plan: the plan of the records.
        pieces: the pieces of the samples.
        stored: the numbers of the pieces that are of documents.
        records: for each of these the number of its record in the plan.
        out: an array of each column that is wanted, of shape (samples, width).

    Raises:
        BadValue: a list is shorter than it was when lengths were counted.
        MissingColumn, WrongType: a record has no list any more.
    """
    _copy(maker, lambda names: lists_of(plan, names, maker.form.align), pieces, stored, records, out)


def copy_records(maker: SampleMaker, pieces: Placed, out: Out) -> None:
    """Copy pieces into arrays of samples; each document is read by itself.

    Of documents of token files the pieces alone are read.

    Args:
        maker: the making of the samples.
        pieces: the pieces of the samples.
        out: as of `copy_planned`.

    Raises:
        BadValue, MissingColumn, WrongType: as of `copy_planned`.
    """
    stored = np.flatnonzero(pieces.documents != LITERAL)
    if maker.is_sliced:
        copy_sliced(maker.child.plan(pieces.documents[stored]), pieces, stored, out)
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


def _copy(
    maker: SampleMaker,
    read: Callable[[Sequence[str | None]], list[Lists]],
    pieces: Placed,
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
