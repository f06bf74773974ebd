"""Makes the batches of a run: the order is resolved ahead in blocks, records are read batch by batch."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._lazy import lazy
from seekable.errors import NothingPassed
from seekable.loader.collate import collate as default_collate
from seekable.nodes.hole import HOLE
from seekable.nodes.readahead import ReadAhead

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from seekable.loader.steps import Cursor, Steps
    from seekable.loader.streams.lanes import LaneChanges
    from seekable.nodes.contract import Node
    from seekable.nodes.sources import table_batches as tables

    Int64s = NDArray[np.int64]
else:
    tables = lazy("seekable.nodes.sources.table_batches")

__all__ = ["Made", "Stretch", "produce", "stretches"]

_AHEAD, _MOST_AHEAD = 4096, 16384
"""Positions whose order is resolved in one go: fewer at first, so that nobody waits for the rest."""


@dataclass(frozen=True, slots=True)
class Made:
    """A batch, of how many records it is, how many more were holes, and the cursor after it."""

    batch: Any
    records: int
    holes: int
    after: Cursor
    changes: tuple[LaneChanges, ...] = ()
    """What became of a stream's lanes by it."""


def produce(
    dataset: Node,
    steps: Steps,
    cursor: Cursor,
    collate: Callable[[list[Any]], Any] | None,
    *,
    number: int = 0,
    of: int = 1,
) -> Iterator[Made]:
    """Yield the batches from a cursor to the end of its run, or those of steps ``t % of == number``.

    Without ``collate`` each is a single record.
    """
    for stretch in stretches(steps, cursor, number=number, of=of):
        plan = dataset.plan(stretch.positions)
        decode = dataset.batch_form if collate is default_collate else "python"
        ahead = ReadAhead(plan)
        for start, stop, before, after in stretch.batches(steps):
            ahead.read_to(stop)
            if decode != "python":
                yield Made(tables.batch_of(plan.slice(start, stop), decode), stop - start, 0, after)
                continue
            records = plan.slice(start, stop).read()
            there = [record for record in records if record is not HOLE]
            if not there:
                raise NothingPassed(_only_holes(before, len(records)))
            made = there[0] if collate is None else collate(there)
            yield Made(made, len(there), len(records) - len(there), after)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some of the next batches of a run: their positions, one after another."""

    cursor: Cursor
    """Where the stretch begins."""
    numbers: range
    """The batches, counted from there."""
    positions: Int64s
    edges: list[int]
    """Where each batch begins among the positions, and the end of the last."""

    def batches(self, steps: Steps) -> Iterator[tuple[int, int, Cursor, Cursor]]:
        """Yield for each batch its bounds among the positions, and the cursors before and after it."""
        for number, (start, stop) in zip(self.numbers, itertools.pairwise(self.edges), strict=True):
            yield start, stop, steps.after(self.cursor, number), steps.after(self.cursor, number + 1)


def stretches(steps: Steps, cursor: Cursor, *, number: int = 0, of: int = 1) -> Iterator[Stretch]:
    """Cut what follows a cursor in its run, the batches of steps ``t % of == number``, into stretches.

    The first one is one batch, so that the first batch after a restart waits for the order of no more.
    """
    wanted, positions_wanted = of, _AHEAD
    left = steps.left(cursor)
    while left != 0:
        count = wanted if left is None else min(wanted, left)
        mine = range((number - cursor.step) % of, count, of)
        yield Stretch(cursor, mine, *_positions(steps, cursor, count, mine))
        cursor = steps.after(cursor, count)
        left = steps.left(cursor)
        wanted = of * max(1, -(-positions_wanted * steps.world_size // steps.batch))
        positions_wanted = _MOST_AHEAD


def _positions(steps: Steps, cursor: Cursor, count: int, mine: range) -> tuple[Int64s, list[int]]:
    """Return the positions of some of the next batches, and the edges between these batches."""
    positions, bounds = steps.positions(cursor, count, all_ranks=False)
    if len(mine) == count:
        return positions, bounds.tolist()
    lengths = np.diff(bounds)
    own = np.zeros(count, dtype=np.bool_)
    own[mine.start : mine.stop : mine.step] = True
    return positions[np.repeat(own, lengths)], [0, *np.cumsum(lengths[own]).tolist()]


def _only_holes(here: Cursor, records: int) -> str:
    what = "the only record is a hole" if records == 1 else f"all {records} records are holes"
    return (
        f"nothing to deliver at step {here.step} (position {here.position}): {what}. Take a larger batch, "
        f"leave this one out with skip_batches(1), or let errors= of sk.open return other records"
    )
