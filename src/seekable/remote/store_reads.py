"""The requests that reading a dataset sends to object stores, in words: their sizes, and the open blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable.nodes.shuffle import Shuffle
from seekable.nodes.windowed import WindowedShuffle
from seekable.order.blocks import BLOCK_ROWS
from seekable.storage.memory import bytes_in_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.index.fileset import FileSet
    from seekable.nodes.node import Node

__all__ = ["store_reads"]

_LEAST_REQUEST = 1_000_000
"""The bytes of a request below which its latency costs more than its bytes."""

_MOST_REQUEST = 8 << 20


def store_reads(node: Node) -> Iterator[str]:
    """Yield a line for each source of a dataset in an object store, and one with advice if there is some."""
    pending: list[tuple[Node, Node | None]] = [(node, None)]
    seen: set[int] = set()
    while pending:
        below, order = pending.pop()
        if isinstance(below, Shuffle | WindowedShuffle) and order is None:
            order = below
        pending += [(child, order) for child in reversed(below.children)]
        for part in getattr(below, "parts", ()):
            files = getattr(part, "files", None)
            if files is not None and id(part) not in seen and files.has_objects:
                seen.add(id(part))
                yield from _of_source(files, order)


def _of_source(files: FileSet, order: Node | None) -> Iterator[str]:
    """Yield the lines of a source, given the shuffle that decides the order of its rows, if any."""
    size, records = int(files.data_sizes.sum()), int(files.starts[-1])
    if not records:
        return
    each = size / records
    place = f"{files.shown_path(0)}{' and others' * (len(files) > 1)}, {bytes_in_words(size)}"
    if isinstance(order, Shuffle):
        yield (
            f"from {place}: records of {bytes_in_words(round(each))} in any order; each is a request, unless "
            f"the cache on disk has room for all"
        )
        return
    if order is None:
        request = min(_MOST_REQUEST, size // len(files))
        yield f"from {place}: in the order of the files, about {bytes_in_words(request)} a request"
        return
    assert isinstance(order, WindowedShuffle)
    rows = order.size / max(1, order.order.edges.size - 1)
    request = round(min(_MOST_REQUEST, rows * each))
    yield (
        f"from {place}: blocks of {rows:,.0f} records, about {bytes_in_words(request)} a request; "
        f"{bytes_in_words(order.open_bytes)} are open at a time"
    )
    if request < _LEAST_REQUEST < size:
        better = -(-_LEAST_REQUEST // max(1, round(each) * BLOCK_ROWS)) * BLOCK_ROWS
        yield (
            f"  a request of less than 1 MB costs more in latency than in bytes: take block_rows={better} in "
            f"shuffle(window=), or more lanes"
        )
