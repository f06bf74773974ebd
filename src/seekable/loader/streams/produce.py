"""Makes the batches of a stream in this process."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from seekable.loader.streams.join import joined
from seekable.loader.streams.pull import Puller

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seekable.loader.produce import Made
    from seekable.loader.steps import Cursor, Steps
    from seekable.loader.streams.lanes import Lanes
    from seekable.stream.stream import Stream

__all__ = ["produce_items"]


def produce_items(
    stream: Stream,
    steps: Steps,
    cursor: Cursor,
    lanes: Lanes,
    collate: Callable[[list[Any]], Any] | None,
) -> Iterator[Made]:
    """Yield the batches from a cursor to the end of its run.

    Args:
        stream: what runs.
        steps: how slots are cut into batches.
        cursor: where the first of them begins.
        lanes: what the lanes of this rank remember there; it is not changed.
        collate: makes a batch of items; None where items are delivered as they are.
    """
    puller = Puller(stream, lanes, pad=steps.end == "pad")
    starts = itertools.count(cursor.position, steps.batch)
    pulls = ([puller.pull(first, first + steps.batch)] for first in starts)
    return joined(pulls, stream, steps, cursor, collate)
