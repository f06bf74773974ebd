"""Nodes that choose rows by their records go below nodes that leave rows out.

``ds.without(rows).filter(fn)`` is ``ds.filter(fn).without(rows)``: each other record stays where
``ds.filter(fn)`` has it, and what comes in the place of a row has passed the filter too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from seekable.errors import InvalidArgument
from seekable.nodes.epoch import Epoch
from seekable.nodes.graph import nodes_of, with_children
from seekable.nodes.rows_to_exclude import rows_left_out
from seekable.nodes.without import LeavesOut, WithHoles, Without, excluded

if TYPE_CHECKING:
    from collections.abc import Callable

    from seekable.nodes.node import Node
    from seekable.nodes.without import Fill
    from seekable.state.excluded_rows import ExcludedRows

__all__ = ["set_aside"]


def set_aside(node: Node, call: str) -> tuple[Node, Callable[[Node], Node]]:
    """Return a dataset without its exclusions, and a function that leaves the same rows out of another one.

    Args:
        node: the dataset.
        call: what chooses rows of it, for the error.

    Returns:
        The two; the dataset itself where one epoch of it was taken, whose records are what they are.

    Raises:
        InvalidArgument: rows were left out of a part of the dataset, and their files have them in another
            part too, so that the two cannot be told apart afterwards.

    Example:
        >>> import seekable as sk
        >>> words = sk.from_sequence("abcdef", version=1)
        >>> plain, again = set_aside(words.without([words.locate(2)])._node, "take()")
        >>> plain, again(words[1:]._node)
        (<Dataset, 6 records: from_sequence(<builtins.str of 6>)>, \
<Dataset, 5 records: from_sequence(<builtins.str of 6>)[1:6].without(<1 rows>)>)
    """
    lists = _lists(node)
    if not lists:
        return node, lambda made: made
    plain = _plain(node)

    def again(made: Node) -> Node:
        for fill, rows in lists:
            made = excluded(made, rows, fill=fill)
        return made

    if again(plain).describe(None) != node.describe(None):
        message = (
            f"{call} cannot go below without() here: rows are left out of a part of {node.in_words()[:200]}, "
            f"and not wherever their files stand in it. Call without() after it"
        )
        raise InvalidArgument(message)
    return plain, again


def _lists(node: Node) -> list[tuple[Fill, ExcludedRows]]:
    """Return the rows of files that each exclusion in a graph leaves out."""
    found: list[tuple[Fill, ExcludedRows]] = []
    holes: dict[int, WithHoles] = {}
    nodes = nodes_of(node)
    if any(isinstance(each, Epoch) for each in nodes):
        return found
    for each in reversed(nodes):
        if isinstance(each, WithHoles):
            holes[id(each.child)] = each
            domain = each.child.child if isinstance(each.child, Without) else each.child
            found.append(("hole", rows_left_out(domain, each.rows)))
        elif isinstance(each, Without):
            above = holes.get(id(each))
            rows = each.rows if above is None else np.setdiff1d(each.rows, above.rows, assume_unique=True)
            found.append(("replace", rows_left_out(each.child, rows)))
    return found


def _plain(node: Node) -> Node:
    """Return a graph without its exclusions."""
    below: dict[int, Node] = {}
    for each in nodes_of(node):
        if isinstance(each, LeavesOut):
            below[id(each)] = below.get(id(each.child), each.child)
        elif any(id(child) in below for child in each.children):
            below[id(each)] = with_children(each, below)
    return below.get(id(node), node)
