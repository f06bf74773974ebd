"""Rows of a source as rows of its shards, and back; a shard is a file, or a sequence in memory.

A source reads its shards in *natural order* if its rows ascend: shard after shard, row after row. Functions
over records, and nodes that choose some rows in ascending order, keep that order. A shuffle does not: then
the shard and row of the next record say nothing about the records before it.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from seekable.errors import InvalidArgument
from seekable.nodes.bases import Ascending, ElementwiseNode, UnaryNode
from seekable.nodes.concat import Concat
from seekable.nodes.epoch import Epoch
from seekable.nodes.files.leaf import FilesLeaf
from seekable.nodes.flatten import Flatten
from seekable.nodes.node import Leaf, OrderNode
from seekable.nodes.select import Select
from seekable.nodes.sequence_source import SequenceSource
from seekable.nodes.slice import Slice
from seekable.nodes.split import Split, StableSplit
from seekable.resume.placeholders import PlaceholderSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.nodes.node import Node

__all__ = [
    "LeafRow",
    "Shard",
    "ShardRow",
    "leaf_row",
    "leaves_of",
    "moves_rows",
    "rows_before",
    "shard_row",
    "shards_of",
]


class LeafRow(NamedTuple):
    """A row of a node that reads records from outside the graph."""

    leaf: Leaf
    row: int


class ShardRow(NamedTuple):
    """A row of a shard, by the names of the shard and the number of the row in it."""

    name: str
    """The path of the file below the opened folder; in angle brackets for a sequence in memory."""

    path: str
    """The absolute path of the file."""

    row: int


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard of a leaf: the rows of one file, or of one sequence in memory."""

    name: str
    path: str
    first: int
    """The row of the leaf with which the shard begins."""

    count: int
    """The number of rows of the shard."""


def shard_row(node: Node, position: int) -> ShardRow | None:
    """Return the shard and row of the record at a position; no record is read.

    For a record made of several, by ``zip`` or ``batch``, it is that of the first. The result is None if
    there is no record, or if a description does not decide which record it is.

    Example:
        >>> import seekable as sk
        >>> shard_row(sk.from_sequence("abc", version=1).map(str.upper).node, 4)
        ShardRow(name='<builtins.str 1>', path='<builtins.str 1>', row=1)
    """
    found = leaf_row(node, position)
    if found is None:
        return None
    try:
        origins = found.leaf.plan(np.array([found.row], dtype=np.int64)).origins()
    except InvalidArgument:
        return None
    file = int(origins.files[0])
    return ShardRow(origins.names[file], origins.paths[file], int(origins.rows[0]))


def leaf_row(node: Node, position: int) -> LeafRow | None:
    """Return the leaf and row of the record at a position; None where ``shard_row`` returns None."""
    while not isinstance(node, Leaf):
        below = None if node.size == 0 else node.first_of(position)
        if below is None:
            return None
        node, position = below
    if not node.size or (isinstance(node, PlaceholderSource) and not node.is_source):
        return None
    return LeafRow(node, position % node.size)


def leaves_of(node: Node) -> Iterator[Leaf]:
    """Yield the leaves below a node, in the order of its children."""
    if isinstance(node, Leaf):
        yield node
    for child in node.children:
        yield from leaves_of(child)


def moves_rows(node: Node) -> Node | None:
    """Return a node because of which the rows of a dataset are in no natural order; None if they are in it.

    Example:
        >>> import seekable as sk
        >>> words = sk.from_sequence("abc")
        >>> moves_rows(words[1:].map(str.upper).node), moves_rows(words.shuffle(seed=1).map(str.upper).node)
        (None, <Dataset, 3 records: from_sequence(<builtins.str of 3>).shuffle(seed=1)>)
    """
    if isinstance(node, Leaf):
        return None
    if isinstance(node, Concat):
        leaves = list(leaves_of(node))
        if len({id(leaf) for leaf in leaves}) < len(leaves):
            return node
    elif not (isinstance(node, UnaryNode) and _ascends(node)):
        return node
    return next(filter(None, map(moves_rows, node.children)), None)


def _ascends(node: UnaryNode) -> bool:
    """Return True for a node over one child whose rows are in the order of the child's."""
    if isinstance(node, Slice):
        return node.step > 0
    if isinstance(node, Select):
        return bool((np.diff(node.rows) > 0).all())
    return isinstance(node, Ascending | ElementwiseNode | Epoch | Flatten | Split | StableSplit)


def rows_before(node: Node, at: LeafRow) -> int | None:
    """Return the number of rows of an epoch that come before a row of a leaf, in natural order.

    The result is None if the leaf is not below the node. ``moves_rows(node)`` must be None.

    Example:
        >>> import seekable as sk
        >>> words = sk.from_sequence("abcdefgh")
        >>> rows_before(words[::3].node, LeafRow(words.node, 4))
        2
    """
    if isinstance(node, Leaf):
        return at.row if node is at.leaf else None
    if isinstance(node, Concat):
        before = 0
        for part in node.parts:
            own = rows_before(part, at)
            if own is not None:
                return before + own
            before += part.size or 0
        return None
    (child,) = node.children
    below = rows_before(child, at)
    if below is None or isinstance(node, ElementwiseNode | Epoch):
        return below
    if isinstance(node, Flatten):
        return bisect_left(node.rows.view, below)
    assert isinstance(node, OrderNode)
    rows: range = range(node.size or 0)
    return bisect_left(rows, below, key=lambda row: node.route_one(row)[1])


def shards_of(leaf: Leaf) -> list[Shard]:
    """Return the shards of a leaf, in the order of its rows.

    Raises:
        InvalidArgument: the leaf is of a kind that has no rows in shards.
    """
    if isinstance(leaf, SequenceSource):
        return [Shard(leaf.place, leaf.place, 0, leaf.size)]
    leaf = leaf.parts[0]
    if not isinstance(leaf, FilesLeaf):
        message = f"the rows of {leaf!r} are not counted by shard: use state_dict() for a run over it"
        raise InvalidArgument(message)
    files = leaf.files
    return [
        Shard(name, files.path(number), first, count)
        for number, (name, first, count) in enumerate(
            zip(files.plain_names(), files.starts.tolist(), files.records.tolist(), strict=False)
        )
    ]
