"""The order of an old pipeline over the sources and functions of the present one.

The rest of a begun epoch comes in its old order, but its records are made by the present pipeline. So the two
pipelines are gone through side by side, from the top down:

    described                present                  transplanted
    shuffle(seed=1)          shuffle(seed=2)          shuffle(seed=1)       what orders rows is the old node
      map(old function)        map(new function)        map(new function)   what makes records is the new one
        files a, b               files a, b, c            files a, b        the old rows of the present source
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeGuard

from seekable.errors import StateMismatch
from seekable.nodes.bases import ElementwiseNode, UnaryNode
from seekable.nodes.concat import Concat
from seekable.nodes.flatten import Flatten
from seekable.nodes.node import Leaf, Node, OrderNode, RecordNode
from seekable.nodes.repeat import Repeat
from seekable.resume.from_description import rebuild_loosely
from seekable.resume.match_rows import matching_rows, selected_rows
from seekable.resume.placeholders import PlaceholderSource
from seekable.resume.sources import with_child
from seekable.state.canonical import canonical_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["transplanted"]


def transplanted(old: Node, new: Node) -> Node:
    """Return a dataset in the order of ``old`` with the records of ``new``.

    Args:
        old: a source of the old pipeline, rebuilt from its description by `rebuild_loosely`.
        new: the source of the present pipeline that continues it.

    Raises:
        StateMismatch: the present sources lack some of the old rows, or are combined in another way.
        InvalidArgument: the old pipeline chose rows by content, and nothing has these rows any more.

    Example:
        >>> import seekable as sk
        >>> words = sk.from_sequence(["a", "b", "c"])
        >>> shuffled = words.shuffle(seed=1)
        >>> node = transplanted(rebuild_loosely(shuffled.node.describe(None)), words.map(str.upper).node)
        >>> [node.record(row) for row in range(3)] == [word.upper() for word in shuffled]
        True
    """
    if _are_same(old, new):
        return new
    orders, old_core = _orders_above_core(old)
    nodes, new_core = _nodes_above_core(new)
    made = _transplanted_core(old_core, new_core)
    for order in reversed(orders):
        if isinstance(order, PlaceholderSource):
            path = order.row_files.get(order.described["rows"])
            made = selected_rows(order.described, made, nodes, path=path)
        else:
            made = with_child(order, made)
    for node in reversed(nodes):
        if isinstance(node, RecordNode):
            made = with_child(node, made)
    if made.size != old.size:
        message = f"what was {old!r} has {made.size:,} records over the present sources: {made!r}"
        raise StateMismatch(message)
    return new if _are_same(made, new) else made


def _orders_above_core(old: Node) -> tuple[list[Node], Node]:
    """Return the nodes that order or choose rows, outermost first, and the first node that is none of these.

    Nodes over one child that neither order nor choose rows are left out: the new pipeline has its own. A node
    that made several records of one is a core, because what is below it must stay below.
    """
    orders: list[Node] = []
    while True:
        if isinstance(old, PlaceholderSource) and _has_selected(old):
            orders.append(old)
            old = rebuild_loosely(old.described["of"][0], old.row_files)
        elif _is_over_one(old):
            if not isinstance(old, ElementwiseNode) or isinstance(old, Repeat):
                orders.append(old)
            old = old.child
        else:
            return orders, old


def _has_selected(old: PlaceholderSource) -> bool:
    """Return True for a node that chose rows of one child, and makes no records."""
    return not old.is_source and issubclass(old.stands_for, OrderNode)


def _nodes_above_core(new: Node) -> tuple[list[Node], Node]:
    """Return the nodes over one child, outermost first, and the first node that is none of these."""
    nodes: list[Node] = []
    while _is_over_one(new):
        nodes.append(new)
        new = new.child
    return nodes, new


def _is_over_one(node: Node) -> TypeGuard[UnaryNode]:
    return isinstance(node, UnaryNode) and isinstance(node, OrderNode | ElementwiseNode)


def _transplanted_core(old: Node, new: Node) -> Node:
    """Return the rows of a source, or of a node over several children, by the rule for these two kinds."""
    if _are_same(old, new):
        return new
    made = _rows_of_sources(old, new)
    if made is None:
        made = new.taking(old, partial(_below, of=old))
    if made is None:
        was = old.described["kind"] if isinstance(old, PlaceholderSource) else old.kind
        message = f"what was {was}, {old!r}, is {new.kind} now, {new!r}: its rows cannot be told there"
        raise StateMismatch(message)
    return made


def _below(old: Node | Mapping[str, Any], new: Node, *, of: Node) -> Node:
    """Return the order of what was below an old node, which may be described, with the records of ``new``."""
    if isinstance(old, Node):
        return transplanted(old, new)
    return transplanted(
        rebuild_loosely(old, of.row_files if isinstance(of, PlaceholderSource) else None), new
    )


def _rows_of_sources(old: Node, new: Node) -> Node | None:
    """Return the rows of an old source, or of several that were concatenated; None for other nodes."""
    if isinstance(old, PlaceholderSource) and old.is_source:
        if isinstance(new, Concat):
            return _first_match(old, new.parts)
        return matching_rows(old.described, new) if isinstance(new, Leaf) else None
    if isinstance(old, Concat) and isinstance(new, Concat):
        return _each_part(old, new)
    if isinstance(old, Concat) and isinstance(new, Leaf):
        return Concat(tuple(transplanted(part, new) for part in old.parts))
    if isinstance(old, PlaceholderSource) and isinstance(new, Flatten) and old.stands_for is Flatten:
        below = _below(old.described["of"][0], new.child, of=old)
        return selected_rows(old.described, below, [new], path=old.row_files.get(old.described["rows"]))
    return None


def _each_part(old: Concat, new: Concat) -> Node:
    """Return each old part over the new part in its place, or over the first other one that has its rows."""
    made = []
    for slot, part in enumerate(old.parts):
        others = [other for number, other in enumerate(new.parts) if number != slot]
        made.append(_first_match(part, [*new.parts[slot : slot + 1], *others]))
    return Concat(tuple(made))


def _first_match(old: Node, parts: Sequence[Node]) -> Node:
    """Return the rows of an old node over the first of some parts that has them.

    Raises:
        StateMismatch: none of them has; the message is that of the first part.
    """
    failures: list[StateMismatch] = []
    for part in parts:
        try:
            return transplanted(old, part)
        except StateMismatch as error:
            failures.append(error)
    raise failures[0]


def _are_same(old: Node, new: Node) -> bool:
    return canonical_json(old.describe(None)) == canonical_json(new.describe(None))
