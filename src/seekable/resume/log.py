"""Where sources go on by rows, for whoever reads the log."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.nodes.contract import Leaf
from seekable.order.positions import Left
from seekable.resume.continued import Continued
from seekable.resume.sources import lefts, parts_of

if TYPE_CHECKING:
    from seekable.dataset.base import Dataset
    from seekable.nodes.contract import Node
    from seekable.resume.by_rows import Resumed

__all__ = ["tell"]

_LOG = logging.getLogger("seekable")


def tell(went: Resumed) -> None:
    """Log where each source goes on: what was opened, rows gone of the begun epoch, the file and row next."""
    if not _LOG.isEnabledFor(logging.INFO):
        return
    left = lefts(went.dataset, Left((), went.position))
    for part, (dataset, rows), taken in zip(parts_of(went.dataset), left, went.taken, strict=True):
        place = _next_place(dataset, rows)
        _LOG.info(
            "resume: spec=%s sample_row=%d shard=%s offset=%s",
            _spec(part.dataset),
            taken,
            "-" if place is None else place.path,
            "-" if place is None else place.row,
        )


def _next_place(dataset: Dataset, left: Left) -> Any:
    if not dataset.size:
        return None
    place = dataset.plan(np.array([left.first], dtype=np.int64)).locate()[0]
    while isinstance(place, list | tuple):
        place = place[0]
    return place


def _spec(node: Node) -> str:
    """Return what was asked of ``sk.open``, for each source below a node; of others, what stands for them."""
    if isinstance(node, Continued):
        node = node.new
    if isinstance(node, Leaf):
        return str(getattr(node, "asked", node.shown([]))).strip("'\"")
    return ",".join(dict.fromkeys(map(_spec, node.children)))
