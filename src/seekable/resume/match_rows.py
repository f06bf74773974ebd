"""Rows that were chosen by content, of which a description has a digest alone, found again."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import InvalidArgument
from seekable.nodes.bases import Aligned, OverOne
from seekable.nodes.concat import Concat
from seekable.nodes.contract import Leaf, RecordNode
from seekable.nodes.filter.kept import KeptRows, keep_unnamed
from seekable.nodes.filter.node import Filter
from seekable.nodes.select import Select
from seekable.nodes.slice import Slice

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from seekable.dataset.base import Dataset

    Int64s = NDArray[np.int64]

__all__ = ["with_chosen_rows"]


def with_chosen_rows(
    described: Mapping[str, Any], child: Dataset, nodes: Sequence[Dataset], *, path: str | None
) -> Dataset:
    """Return the chosen rows of a dataset, if the present pipeline chooses the same, or a file has them.

    Args:
        described: the node that chose, as it was described.
        child: what it chose from, in the old order.
        nodes: those of the present pipeline, among which is the one that chooses now.
        path: the file that the rows were kept in, if the user named one.

    Raises:
        InvalidArgument: no present node has these rows, and there is no file with them.
    """
    for node in nodes:
        if not isinstance(node, Filter | Select) or node.kind != described["kind"]:
            continue
        chosen = node.arguments(None)
        if all(chosen[key] == described[key] for key in ("count", "rows")):
            return replace(node, child=child)
        if isinstance(node, Filter):
            kept = keep_unnamed(_kept_of(node, child))
            if (kept.count, kept.digest) == (described["count"], described["rows"]):
                return replace(node, child=child, rows=kept)
    if path is not None and os.path.isabs(path) and os.path.exists(path):
        kept = KeptRows(path, described["count"], described["rows"], named=True)
        kept.check()
        return Filter(child, kept, os.path.basename(path))
    message = (
        f"the begun epoch was over {described['count']:,} rows that a {described['kind']} had chosen, and "
        f"the present pipeline does not choose these: a state knows them by their digest alone. Finish the "
        f"epoch with the {described['kind']} that it began with; or keep rows in files of their own, which "
        f"stay, with ds.filter(fn, save=); or let a stream filter: ds.stream().filter(fn)"
    )
    raise InvalidArgument(message)


def _kept_of(node: Filter, child: Dataset) -> Iterator[Int64s]:
    """Yield which rows of an older child a filter keeps, where it chooses from the same sources."""
    there = list(_runs(node.child))
    kept = node.rows.array
    before = 0
    for leaf, first, count in _runs(child):
        at = 0
        for other, start, size in there:
            low, high = max(first, start), min(first + count, start + size)
            if other is leaf and low < high:
                place = at + low - start
                lo, hi = np.searchsorted(kept, (place, place + high - low))
                yield kept[lo:hi] - place + before + low - first
                break
            at += size
        before += count


def _runs(node: Dataset) -> Iterator[tuple[Dataset, int, int]]:
    """Yield what a dataset's rows are, in natural order: a source, the first row there, and how many."""
    if isinstance(node, Leaf):
        yield node, 0, node.size
    elif isinstance(node, Slice) and node.step == 1:
        left, skipped = node.count or 0, node.start
        for leaf, first, count in _runs(node.child):
            taken = max(0, min(count - skipped, left))
            if taken:
                yield leaf, first + skipped, taken
            skipped, left = max(0, skipped - count), left - taken
    elif isinstance(node, Concat):
        for part in node.parts:
            yield from _runs(part)
    elif isinstance(node, OverOne) and isinstance(node, Aligned) and isinstance(node, RecordNode):
        yield from _runs(node.child)
