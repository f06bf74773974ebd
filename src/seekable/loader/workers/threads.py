"""Worker threads of a loader: for decoding that lets others run, and for Python without its lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable.loader.prefetch import Prefetched
from seekable.loader.produce import produce

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from seekable.loader.produce import Made
    from seekable.loader.steps import Cursor, Steps
    from seekable.nodes.contract import Node

__all__ = ["in_threads"]


def in_threads(
    dataset: Node,
    steps: Steps,
    cursor: Cursor,
    collate: Callable[[list[Any]], Any] | None,
    *,
    threads: int,
    depth: int,
) -> Iterator[Made]:
    """Yield the batches of a run from a cursor on; batch ``t`` is made by thread ``t % threads``.

    Args:
        dataset: whose records they are of.
        steps: which positions make which batch.
        cursor: where to begin.
        collate: makes a batch of records.
        threads: how many.
        depth: how many batches each makes ahead.
    """
    made = [
        Prefetched(produce(dataset, steps, cursor, collate, number=number, of=threads), depth=depth)
        for number in range(threads)
    ]
    try:
        left = steps.left(cursor)
        while left != 0:
            batch = next(made[cursor.step % threads])
            yield batch
            cursor = batch.after
            left = steps.left(cursor)
    finally:
        for source in made:
            source.close()
