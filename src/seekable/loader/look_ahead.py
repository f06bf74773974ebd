"""The look-ahead of a rank over object stores, where worker processes make its batches.

The main process of the rank alone has the order of all batches. It fetches what they need into the cache on
disk, ahead of the batches that are delivered; the workers read the cache, and fetch only what is missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable.loader.batches import planned_stretches
from seekable.nodes.object_bytes import PlansAhead
from seekable.remote.cache.disk_cache import disk_cache

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.loader.batches import Batch
    from seekable.loader.steps import Cursor, Steps
    from seekable.nodes.contract import Node

__all__ = ["fetched_ahead", "is_shared"]


def is_shared() -> bool:
    """Return True if the processes of this machine share what they fetch, in a cache on disk."""
    return disk_cache() is not None


def fetched_ahead(batches: Iterator[Batch], dataset: Node, steps: Steps, cursor: Cursor) -> Iterator[Batch]:
    """Yield batches that other processes make, and fetch meanwhile what the next of them are read from.

    Args:
        batches: the batches of a run, from a cursor on.
        dataset: the dataset that they are of.
        steps: the division of its positions into batches.
        cursor: the place of the first batch.
    """
    plans = PlansAhead(planned_stretches(dataset, steps, cursor))
    for stretch, _ in plans:
        for _, stop, _, _ in stretch.batches(steps):
            plans.read_to(stop)
            batch = next(batches, None)
            if batch is None:
                return
            yield batch
