"""Batches of the records of a dataset: order is resolved ahead in blocks, records are read batch by batch.

A run with a journal has *pieces*, each of them the dataset that makes the batches of some steps. A piece is
chosen by the step, never by the position: a record that fills a last batch has an old position, and
``set_epoch`` can go back.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, final

import numpy as np

from seekable._lazy import lazy
from seekable._typing import Value
from seekable.errors import NothingPassed
from seekable.loader.collate import takes_columns
from seekable.nodes.graph import HOLE
from seekable.nodes.readahead import reads_ahead
from seekable.state.journal import Exclude
from seekable.storage.far import far

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from seekable._typing import Int64s
    from seekable.loader.steps import StepCursor, Steps
    from seekable.nodes import steer, without
    from seekable.nodes.columns import record_batches as tables
    from seekable.nodes.graph import Plan
    from seekable.nodes.node import Node
    from seekable.state.journal import Entry, Journal
    from seekable.stream.lane import StageDelta

    Collate = Callable[[list[Any]], Any] | None
else:
    steer = lazy("seekable.nodes.steer")
    tables = lazy("seekable.nodes.columns.record_batches")
    without = lazy("seekable.nodes.without")

__all__ = [
    "LaneDeltas",
    "LastPieces",
    "MadeBatch",
    "Pieces",
    "dataset_batches",
    "fetched_ahead",
]

_AHEAD, _MOST_AHEAD = 4096, 16384
"""Positions whose order is resolved at once: fewer at first, so that the first batches do not wait long."""


class LaneDeltas(Value, frozen=True):
    """The changes of some lanes of a stream by one batch."""

    stages: Mapping[int, Sequence[StageDelta]]
    """For each lane the changes of its stages, in the order of the graph."""
    ended: frozenset[int]
    """The lanes that ended within the batch and began anew."""
    given: Mapping[int, Sequence[tuple[int, int]]]
    """By lane, the rows that the items of the batch are of, where a state has to hold these."""


class MadeBatch(Value, frozen=True):
    """A batch that was made, and the changes that its delivery makes."""

    value: Any
    """The batch itself: whatever ``collate`` returned, or a single record."""
    records: int
    """The number of records, or items of a stream, in it."""
    holes: int
    """The number of records that failed and were left out; those that ``without`` leaves out do not count."""
    after: StepCursor
    """The cursor after the batch."""
    deltas: tuple[LaneDeltas, ...] = ()
    """The changes of the lanes of a stream."""


@final
class Pieces:
    """The datasets of a run, each from the step on at which an entry of the journal begins.

    Args:
        dataset: the dataset without a journal.
        journal: the entries. Those that are needed have positions.
        before: earlier pieces of the run, of which those before the first other entry need not be made again:
            a controller may steer thousands of times.

    Example:
        >>> import seekable as sk
        >>> from seekable.nodes.node import node_of
        >>> from seekable.state.journal import Steer
        >>> mixture = sk.mix([sk.from_sequence("ab"), sk.from_sequence("cd")], seed=1, stop="never")
        >>> ds = node_of(mixture)
        >>> pieces = Pieces(ds, (Steer(5, (0, 1), position=20),))
        >>> pieces.at(4) is ds, pieces.at(5) is ds, pieces.until(4), pieces.until(5)
        (True, False, 5, None)
    """

    def __init__(self, dataset: Node, journal: Journal = (), *, before: Pieces | None = None) -> None:
        self._journal = journal
        self._datasets = [dataset]
        """The dataset with none of the entries, with the first one, and so on as far as it was asked for."""
        if before is not None and before.at(-1) is dataset:
            self._datasets = before.common_with(journal)

    def common_with(self, journal: Journal) -> list[Node]:
        """Return the datasets that another journal has in common with this one, as far as they were made."""
        pairs = zip(journal, self._journal, strict=False)
        same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
        return self._datasets[: 1 + same]

    def at(self, step: int) -> Node:
        """Return the dataset that makes the batch of a step."""
        count = sum(entry.at <= step for entry in self._journal)
        while len(self._datasets) <= count:
            entry = self._journal[len(self._datasets) - 1]
            self._datasets.append(_changed(self._datasets[-1], entry))
        return self._datasets[count]

    def until(self, step: int) -> int | None:
        """Return the first step after one that another dataset makes; None if there is none."""
        return min((entry.at for entry in self._journal if entry.at > step), default=None)

    def from_step(self, step: int) -> Iterator[tuple[Node, int, int | None]]:
        """Yield the datasets that make the batches from a step on, and the bounds of the steps of each."""
        first: int | None = step
        while first is not None:
            until = self.until(first)
            yield self.at(first), first, until
            first = until


def _changed(dataset: Node, entry: Entry) -> Node:
    if isinstance(entry, Exclude):
        return without.excluded(dataset, entry.rows, fill=entry.fill)
    return steer.changed(dataset, (entry,))


@final
class LastPieces:
    """The pieces that were made last, which the next ones begin with."""

    def __init__(self) -> None:
        self._last: Pieces | None = None

    def of(self, dataset: Node, journal: Journal) -> Pieces:
        """Return the pieces of a run."""
        self._last = made = Pieces(dataset, journal, before=self._last)
        return made

    def __reduce__(self) -> tuple[type[LastPieces], tuple[()]]:
        return LastPieces, ()


def dataset_batches(
    pieces: Pieces,
    steps: Steps,
    cursor: StepCursor,
    collate: Collate,
    *,
    number: int = 0,
    of: int = 1,
    fetches_ahead: bool = True,
) -> Iterator[MadeBatch]:
    """Yield the batches of a dataset from a cursor to the end of its run, made in this thread.

    Args:
        pieces: the dataset, or those of a run with a journal.
        steps: the division of positions into batches.
        cursor: the place of the first batch.
        collate: makes a batch of a list of records; None delivers single records.
        number: yield the batches of those steps ``t`` only for which ``t % of == number``.
        of: the number of shares.
        fetches_ahead: False if another process fetches what is read next of objects of stores.

    Raises:
        NothingPassed: all records of a batch are holes, or samples of nothing but padding.
    """
    columnar = collate is not None and takes_columns(collate)
    planned = _planned_stretches(pieces, steps, cursor, number=number, of=of)
    for stretch, plan, ahead in reads_ahead(planned, fetches=fetches_ahead):
        decode = stretch.dataset.batch_form if columnar else "python"
        left_out = plan.left_out()
        for index, start, stop in stretch.batches():
            ahead.read_to(stop)
            part, after = plan.slice(start, stop), steps.after(stretch.cursor, index + 1)
            if left_out is not None and left_out[start:stop].all():
                _check_any_left(stretch.dataset, steps, steps.after(stretch.cursor, index))
            if collate is not None and columnar:
                columns: Any = part.arrays() if decode == "python" else tables.batch_of(part, decode)
                if columns is not None:
                    yield MadeBatch(collate(columns), stop - start, 0, after)
                    continue
            records = part.read()
            there = [record for record in records if record is not HOLE]
            holes = len(records) - len(there)
            # A hole that was asked for is none of the holes that say that data is damaged.
            wanted = 0
            if holes and left_out is not None:
                wanted = sum(records[at] is HOLE for at in np.flatnonzero(left_out[start:stop]).tolist())
            if not there:
                raise NothingPassed(_only_holes(steps.after(stretch.cursor, index), holes, wanted))
            value = there[0] if collate is None else collate(there)
            yield MadeBatch(value, len(there), holes - wanted, after)


class _Stretch(Value, frozen=True):
    """The positions of some next batches of a run."""

    dataset: Node
    """The dataset that they are positions of."""
    cursor: StepCursor
    """The cursor at which the stretch begins."""
    numbers: range
    """The indices of the batches, counted from the cursor."""
    positions: Int64s
    """The positions of all of these batches, one batch after the other."""
    edges: list[int]
    """For each batch its first index in ``positions``, and the end of the last one."""

    def batches(self) -> Iterator[tuple[int, int, int]]:
        """Return the index of each batch, counted from the cursor, and its bounds in ``positions``."""
        return zip(self.numbers, self.edges[:-1], self.edges[1:], strict=True)


def _planned_stretches(
    pieces: Pieces, steps: Steps, cursor: StepCursor, *, number: int = 0, of: int = 1
) -> Iterator[tuple[_Stretch, Plan]]:
    """Yield the rest of a run after a cursor, in stretches, each with the plan to read it.

    A stretch has the batches of the steps ``t % of == number`` in one piece of the run. The first one is one
    batch: a restarted run resolves no more of the order before its first batch.
    """
    wanted, positions_wanted = of, _AHEAD
    left = steps.left(cursor)
    while left != 0:
        count = wanted if left is None else min(wanted, left)
        dataset, until = pieces.at(cursor.step), pieces.until(cursor.step)
        count = count if until is None else min(count, until - cursor.step)
        mine = range((number - cursor.step) % of, count, of)
        if mine:  # A piece may be so short that all of its steps are others'.
            stretch = _Stretch(dataset, cursor, mine, *_positions(steps, cursor, count, mine))
            yield stretch, dataset.plan(stretch.positions)
        cursor = steps.after(cursor, count)
        left = steps.left(cursor)
        wanted = max(of, steps.batches(cursor.step, of * positions_wanted * steps.world_size))
        positions_wanted = _MOST_AHEAD


def _positions(steps: Steps, cursor: StepCursor, count: int, mine: range) -> tuple[Int64s, list[int]]:
    """Return the positions of some of the next batches, and the edges between these batches."""
    positions, bounds = steps.positions(cursor, count, all_ranks=False)
    if len(mine) == count:
        return positions, bounds.tolist()
    lengths = np.diff(bounds)
    own = np.zeros(count, dtype=np.bool_)
    own[mine.start : mine.stop : mine.step] = True
    return positions[np.repeat(own, lengths)], [0, *np.cumsum(lengths[own]).tolist()]


def _check_any_left(dataset: Node, steps: Steps, here: StepCursor) -> None:
    """Raise NothingPassed if all records of a step, over all ranks, were left out.

    So each rank finds it, and a rank whose own samples are padding goes on with the others.
    """
    plan = dataset.plan(steps.positions(here, 1, all_ranks=True)[0])
    left_out = plan.left_out()
    if left_out is None or not left_out.all():
        return
    holes = sum(record is HOLE for record in plan.read())
    if holes:
        raise NothingPassed(_only_holes(here, len(plan), holes))
    message = (
        f"nothing to deliver at step {here.step} (position {here.position}): all {len(plan)} samples are "
        f"padding, because the documents in them were left out. Take a larger batch, or leave this one out "
        f"with skip_batches(1)"
    )
    raise NothingPassed(message)


def _only_holes(here: StepCursor, records: int, left_out: int) -> str:
    what = "the only record is a hole" if records == 1 else f"all {records} records are holes"
    way = "let errors= of sk.open return other records"
    if left_out:
        what += f", {left_out} of them rows that without() left out" if records > 1 else ": it was left out"
        way = "let without(fill='replace') put other records there"
    return (
        f"nothing to deliver at step {here.step} (position {here.position}): {what}. Take a larger batch, "
        f"leave this one out with skip_batches(1), or {way}"
    )


def fetched_ahead(
    batches: Iterator[MadeBatch], pieces: Pieces, steps: Steps, cursor: StepCursor
) -> Iterator[MadeBatch]:
    """Yield batches that other processes make, and fetch meanwhile what the next of them are read from.

    The main process of a rank alone has the order of all batches. It fetches what they need into the cache on
    disk; the workers read the cache, and fetch only what is missing.

    Args:
        batches: the batches of a run, from a cursor on.
        pieces: the dataset that they are of, or those of a run with a journal.
        steps: the division of its positions into batches.
        cursor: the place of the first batch.
    """
    plans = far().reads.ahead(_planned_stretches(pieces, steps, cursor))
    for stretch, _ in plans:
        for _, _, stop in stretch.batches():
            plans.read_to(stop)
            batch = next(batches, None)
            if batch is None:
                return
            yield batch
