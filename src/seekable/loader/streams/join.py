"""Batches put together of what lanes had for them, to the end of a run."""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from seekable.errors import NothingPassed
from seekable.loader.produce import Made
from seekable.nodes.hole import HOLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from seekable.loader.steps import Cursor, Steps
    from seekable.loader.streams.lanes import LaneChanges
    from seekable.loader.streams.pull import Pulled
    from seekable.stream.stream import Stream

    Collate = Callable[[list[Any]], Any] | None

__all__ = ["joined"]


def joined(
    pulls: Iterable[Sequence[Pulled]], stream: Stream, steps: Steps, cursor: Cursor, collate: Collate
) -> Iterator[Made]:
    """Yield the batches of a run from a cursor on.

    Args:
        pulls: what each worker's lanes had for the slots of one batch after another, from the cursor on.
        stream: whose items they are.
        steps: how slots are cut into batches.
        cursor: where the first of them begins.
        collate: makes a batch of items; None where items are delivered as they are.

    Raises:
        NothingPassed: there is no item in a stream without end, or in a batch.
    """
    made = _batches(pulls, stream, steps, cursor, collate)
    whole = _in_whole_rounds(made, stream.lanes) if steps.end == "drop" else _there(made)
    return itertools.islice(whole, steps.left(cursor))


def _batches(
    pulls: Iterable[Sequence[Pulled]], stream: Stream, steps: Steps, cursor: Cursor, collate: Collate
) -> Iterator[tuple[Made | None, int | None]]:
    """Yield batches, or None for one without items, and the first empty slot of each, if any.

    The last one has an item that is no padding.
    """
    changes: list[LaneChanges] = []
    holes = 0
    padded: list[tuple[Made, int | None]] = []
    for parts in pulls:
        items = sorted((item for part in parts for item in part.items), key=itemgetter(0))
        changes += [part.changes for part in parts]
        holes += sum(part.holes for part in parts)
        first, stop = cursor.position, cursor.position + steps.batch
        cursor = replace(cursor, position=stop)
        fresh = any(part.fresh for part in parts)
        if not fresh and all(part.over for part in parts):
            if stream.endless:
                raise NothingPassed(_only_empty_lanes(stream, steps))
            return
        if not items:
            yield None, first
            continue
        cursor = replace(cursor, step=cursor.step + 1)
        there = [item for _, item in items if item is not HOLE]
        if not there:
            message = f"all {len(items)} items of step {cursor.step - 1} are holes: take a larger batch"
            raise NothingPassed(message)
        batch = there[0] if collate is None else collate(there)
        slots = range(first + (steps.rank - first) % steps.world_size, stop, steps.world_size)
        made = Made(batch, len(there), holes + len(items) - len(there), cursor, tuple(changes))
        padded.append((made, _first_empty(slots, items)))
        changes, holes = [], 0
        if fresh:
            # What is only padding counts where another lane goes on after it.
            yield from padded
            padded = []


def _there(made: Iterator[tuple[Made | None, int | None]]) -> Iterator[Made]:
    return (batch for batch, _ in made if batch is not None)


def _first_empty(slots: range, items: Sequence[tuple[int, Any]]) -> int | None:
    if len(items) == len(slots):
        return None
    filled = (slot for slot, _ in items)
    return next(slot for slot, there in itertools.zip_longest(slots, filled) if slot != there)


def _in_whole_rounds(made: Iterator[tuple[Made | None, int | None]], lanes: int) -> Iterator[Made]:
    """Leave out what comes from the first round with an empty slot on, a slot of each lane being a round."""
    waiting: deque[Made] = deque()
    for batch, empty in made:
        if batch is not None and empty is None:
            waiting.append(batch)
            whole = batch.after.position // lanes * lanes
        else:
            whole = (empty or 0) // lanes * lanes
        while waiting and waiting[0].after.position <= whole:
            yield waiting.popleft()
        if empty is not None:
            return


def _only_empty_lanes(stream: Stream, steps: Steps) -> str:
    ranks = "" if steps.world_size == 1 else f" of rank {steps.rank} of {steps.world_size}"
    return (
        f"a stream without end has ended: all lanes{ranks} are empty in {stream!r}. Are there fewer records "
        f"than lanes, or does a stage pass nothing?"
    )
