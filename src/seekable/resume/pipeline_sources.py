"""The sources of a dataset: the largest parts of its graph that contain no mixture.

``resume="rows"`` counts by source. A source has an order of its own, and delivers each of its rows once in
an epoch. Above the sources stand mixtures, and nodes that leave positions as they are or put them in batches:

    batch
      mix             draws each position from one of the children
        shuffle       a source, named "web"
          files
        concat        a source, named "code"
          files
          files

The functions here lead from positions of the whole dataset to positions of each source.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from seekable.errors import InvalidArgument
from seekable.nodes.bases import ElementwiseNode, UnaryNode
from seekable.nodes.batch import Batch
from seekable.nodes.mix import Mix
from seekable.nodes.slice import Slice
from seekable.order.remaining import Remaining

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from seekable._typing import Int64s
    from seekable.nodes.node import Node


__all__ = [
    "Name",
    "NamedSource",
    "counted_sources",
    "keeps_positions",
    "positions_by_source",
    "remaining_by_source",
    "sources_of",
    "with_child",
    "with_sources",
]

Name = tuple[str | int, ...]
"""The names that lead to a source through mixtures, outermost first; numbers where a mixture has none."""


@dataclass(frozen=True, slots=True)
class NamedSource:
    """One source of a dataset."""

    name: Name
    dataset: Node

    @property
    def label(self) -> str:
        """The name as messages have it: its parts, joined by dots."""
        return ".".join(map(str, self.name)) or "the dataset"


def sources_of(root: Node, name: Name = ()) -> list[NamedSource]:
    """Return the sources of a dataset, in the order of its mixtures.

    Args:
        root: the whole dataset.
        name: the first part of the name of each source.

    Raises:
        InvalidArgument: a node above a mixture moves positions, so that the count of each source is unknown.

    Example:
        >>> import seekable as sk
        >>> a, b = sk.from_sequence("abc").shuffle(seed=1), sk.from_sequence("xyz")
        >>> ds = sk.mix({"a": a, "b": b}, seed=1).map(str.upper)
        >>> [source.name for source in sources_of(ds._node)]
        [('a',), ('b',)]
    """
    sources = counted_sources(root, name)
    for source in sources:
        if _contains_mixture(source.dataset):
            message = (
                f"resume='rows' cannot tell how much each source gave: {source.dataset.kind} stands above a "
                f"mixture. Shuffle each source, then mix"
            )
            raise InvalidArgument(message)
    return sources


def counted_sources(root: Node, name: Name = ()) -> list[NamedSource]:
    """Return the sources of a dataset; a node that moves positions above a mixture counts as one source.

    Args:
        root: the whole dataset.
        name: the first part of the name of each source.

    Example:
        >>> import seekable as sk
        >>> ds = sk.mix({"a": sk.from_sequence("abc"), "b": sk.from_sequence("xyz")}, seed=1)
        >>> [source.name for source in counted_sources(ds.shuffle(seed=1)._node)]
        [()]
    """
    if isinstance(root, Mix):
        names: Sequence[str | int] = root.names or range(len(root.parts))
        return [
            source
            for own, child in zip(names, root.parts, strict=True)
            for source in counted_sources(child, (*name, own))
        ]
    if keeps_positions(root):
        return counted_sources(_child(root), name)
    return [NamedSource(name, root)]


def keeps_positions(node: Node) -> bool:
    """Return True if a node has one child, and its positions are those of the child or batches of them."""
    if isinstance(node, Slice):
        return node.child.size is None and (node.start, node.step) == (0, 1)
    return isinstance(node, Batch) or (isinstance(node, UnaryNode) and isinstance(node, ElementwiseNode))


def with_sources(root: Node, sources: Iterable[Node]) -> Node:
    """Return a dataset with other sources in the places of its own.

    Args:
        root: the dataset.
        sources: as many as ``sources_of`` returns, in that order and of the same lengths. Nodes above those
            that stay the same are not made anew.
    """
    return _with_next(root, iter(sources))


def _with_next(node: Node, sources: Iterator[Node]) -> Node:
    """Return a node over the next sources, one for each source that it is over now."""
    if isinstance(node, Mix):
        parts = tuple(_with_next(child, sources) for child in node.parts)
        same = all(made is child for made, child in zip(parts, node.parts, strict=True))
        return node if same else replace(node, parts=parts)
    if keeps_positions(node):
        made = _with_next(_child(node), sources)
        return node if made is _child(node) else with_child(node, made)
    return next(sources)


def remaining_by_source(root: Node, remaining: Remaining) -> Iterator[tuple[Node, Remaining]]:
    """Yield each source, and its positions that remain where ``remaining`` remains of the whole dataset.

    Example:
        >>> import seekable as sk
        >>> ds = sk.mix([sk.from_sequence("abc"), sk.from_sequence("xyz")], weights=[1, 1], seed=1)
        >>> [left.frontier for _, left in remaining_by_source(ds._node, Remaining((), 4))]
        [2, 2]
    """
    if isinstance(root, Mix):
        for slot, child in enumerate(root.parts):
            yield from remaining_by_source(child, _remaining_of_part(root, slot, remaining))
    elif keeps_positions(root):
        below = _remaining_in_batches(root, remaining) if isinstance(root, Batch) else remaining
        yield from remaining_by_source(_child(root), below)
    else:
        yield root, remaining


def positions_by_source(root: Node, positions: Int64s) -> Iterator[tuple[Node, Int64s]]:
    """Yield each source, and its positions that some positions of the whole dataset lead to, in their order.

    Args:
        root: the whole dataset.
        positions: 1-D int64 positions of it; of a batch, all rows in it count.
    """
    if isinstance(root, Mix):
        slots, below = root.route(positions)
        for slot, child in enumerate(root.parts):
            yield from positions_by_source(child, below[slots == slot])
    elif keeps_positions(root):
        if isinstance(root, Batch):
            positions = _rows_in_batches(root, positions)
        yield from positions_by_source(_child(root), positions)
    else:
        yield root, positions


def _remaining_of_part(mix: Mix, slot: int, remaining: Remaining) -> Remaining:
    """Return what remains of a part of a mixture: what no lane has drawn, and what the stragglers lead to."""
    below = Remaining.after(*mix.drawn_by_lanes(slot, remaining.frontier))
    stragglers = remaining.stragglers
    if not stragglers.size:
        return below
    slots, positions = mix.route(stragglers)
    return below.including(positions[slots == slot])


def _remaining_in_batches(batch: Batch, remaining: Remaining) -> Remaining:
    """Return the rows that remain where some batches do."""
    rows = _rows_in_batches(batch, remaining.stragglers)
    return Remaining((), batch.start_of(remaining.frontier)).including(rows)


def _rows_in_batches(batch: Batch, positions: Int64s) -> Int64s:
    """Return the positions of the rows that some batches are made of."""
    rows = [np.arange(*batch.rows_of_one(position), dtype=np.int64) for position in positions.tolist()]
    return np.concatenate([np.empty(0, dtype=np.int64), *rows])


def with_child(node: Node, child: Node) -> Node:
    """Return a node over one child with another child in its place."""
    made: Node = replace(node, child=child)  # type: ignore[type-var]  # nodes are dataclasses
    return made


def _child(node: Node) -> Node:
    child: Node = node.children[0]
    return child


def _contains_mixture(node: Node) -> bool:
    return isinstance(node, Mix) or any(map(_contains_mixture, node.children))
