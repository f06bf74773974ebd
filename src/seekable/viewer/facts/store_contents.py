"""Facts on data in stores: its published index, what is kept of it on disk, and the requests of records."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.index.catalog import CATALOG
from seekable.index.location import shown_path
from seekable.remote.cache.contents import is_chosen
from seekable.remote.cache.disk_cache import disk_caches, remote_folder
from seekable.remote.fetching.fetcher import fetcher
from seekable.remote.object_bytes import wants
from seekable.remote.published import PublishedFolder
from seekable.storage.addresses import is_address
from seekable.storage.memory import bytes_in_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seekable.index.fileset import FileSet
    from seekable.nodes.contract import Node

__all__ = ["requests_of", "stores_found", "stores_in_words"]


def stores_found(files: Iterable[FileSet], *, refresh: bool) -> dict[str, Any] | None:
    """Return the published indexes of data in stores, and the bytes of it on disk; None for local data.

    Args:
        files: the files of the data.
        refresh: True to ask the stores for published indexes, one request a folder.
    """
    roots = list(dict.fromkeys(root for each in files for root, _, _ in each.runs if is_address(root)))
    if not roots:
        return None
    objects = itertools.chain.from_iterable(cache.contents() for cache in disk_caches())
    shown = [shown_path(root) for root in roots]
    kept = sum(each.kept_bytes for each in objects if is_chosen(each.address, shown))
    published = (
        [folder.shown for folder in map(PublishedFolder, roots) if folder.stat(CATALOG)] if refresh else None
    )
    return {"folders": shown, "published": published, "cache_folder": remote_folder(), "kept_bytes": kept}


def stores_in_words(found: dict[str, Any]) -> dict[str, str]:
    """Return the facts on stores for people, by name."""
    published = found["published"]
    facts = {"kept on disk": f"{bytes_in_words(found['kept_bytes'])} in {found['cache_folder']}"}
    if published is None:
        return facts
    return {"published index": ", ".join(published) or "none; seekable index --publish writes it", **facts}


def requests_of(dataset: Node, positions: Sequence[int]) -> dict[str, int] | None:
    """Return the requests that fetch some records where none is in the cache; None for local data.

    It is also None for a pipeline that was rebuilt from a saved state, which reads no records.

    Returns:
        ``count``, the number of requests, their ``bytes``, and ``record_bytes``, those of the records.
    """
    plan = dataset.plan(np.array(positions, np.int64))
    if not plan.from_stores:
        return None
    needed = wants(plan.ranges())
    requests = fetcher().plan(needed)
    return {
        "count": len(requests),
        "bytes": sum(each.stop - each.start for each in requests),
        "record_bytes": int((needed.stops - needed.starts).sum()),
    }
