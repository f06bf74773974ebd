"""Makes the batches of a run: the order is resolved ahead in blocks, records are read batch by batch."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seekable.dataset.ahead import Ahead
from seekable.dataset.hole import HOLE
from seekable.errors import NothingPassed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seekable.dataset.base import Dataset
    from seekable.loader.steps import Cursor, Steps

__all__ = ["Made", "produce"]

_AHEAD, _MOST_AHEAD = 4096, 16384
"""Positions whose order is resolved in one go: fewer at first, so that nobody waits for the rest."""


@dataclass(frozen=True, slots=True)
class Made:
    """A batch, of how many records it is, how many more were holes, and the cursor after it."""

    batch: Any
    records: int
    holes: int
    after: Cursor


def produce(
    dataset: Dataset, steps: Steps, cursor: Cursor, collate: Callable[[list[Any]], Any] | None
) -> Iterator[Made]:
    """Yield the batches from a cursor to the end of its run; without ``collate`` each is a single record."""
    # The first block is one batch, so that the first batch after a restart waits for the order of no more.
    wanted, positions_wanted = 1, _AHEAD
    left = steps.left(cursor)
    while left != 0:
        count = wanted if left is None else min(wanted, left)
        positions, bounds = steps.positions(cursor, count, all_ranks=False)
        plan = dataset.plan(positions)
        edges, ahead = bounds.tolist(), Ahead(plan)
        for start, stop in itertools.pairwise(edges):
            ahead.read_to(stop)
            records = plan.slice(start, stop).read()
            here, cursor = cursor, steps.after(cursor, 1)
            there = [record for record in records if record is not HOLE]
            if not there:
                raise NothingPassed(_only_holes(here, len(records)))
            batch = there[0] if collate is None else collate(there)
            yield Made(batch, len(there), len(records) - len(there), cursor)
        left = steps.left(cursor)
        wanted = max(1, -(-positions_wanted * steps.world_size // steps.batch))
        positions_wanted = _MOST_AHEAD


def _only_holes(here: Cursor, records: int) -> str:
    what = "the only record is a hole" if records == 1 else f"all {records} records are holes"
    return (
        f"nothing to deliver at step {here.step} (position {here.position}): {what}. Take a larger batch, "
        f"leave this one out with skip_batches(1), or let errors= of sk.open return other records"
    )
