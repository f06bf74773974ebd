"""The order of an old pipeline over the sources and functions of the present one.

The rest of a begun epoch comes in its old order, but its records are made by the present pipeline. So the two
pipelines are gone through side by side, from the top down:

    described                present                  transplanted
    shuffle(seed=1)          shuffle(seed=2)          shuffle(seed=1)       what orders rows is the old node
      map(old function)        map(new function)        map(new function)   what makes records is the new one
        files a, b               files a, b, c            files a, b        the old rows of the present source
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from seekable.errors import StateMismatch
from seekable.nodes.bases import ElementwiseNode, UnaryNode
from seekable.nodes.batch import Batch
from seekable.nodes.concat import Concat
from seekable.nodes.contract import Leaf, RecordNode
from seekable.nodes.flatten import Flatten
from seekable.nodes.repeat import Repeat
from seekable.nodes.zip import Zip
from seekable.packing.lengths.row_lengths import row_lengths
from seekable.packing.nodes.blend import MegatronBlend
from seekable.packing.nodes.pack import Pack
from seekable.packing.nodes.packed_node import PackedNode
from seekable.packing.nodes.sample_cut import SampleCut
from seekable.packing.nodes.windows import Windows
from seekable.resume.from_description import UNKNOWN_ROWS, rebuild_loosely
from seekable.resume.match_rows import matching_rows, selected_rows
from seekable.resume.placeholders import PlaceholderSource
from seekable.resume.sources import with_child
from seekable.state.canonical import canonical_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from seekable.nodes.contract import Node

    Rule = Callable[[Any, Any], Node | None]

__all__ = ["transplanted"]

_MAKERS = frozenset({Flatten.kind, Pack.kind, Windows.kind})
"""The kinds of nodes that make records of several, or several of one, and choose no rows."""


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
    """Return True for a node that chose rows of one child; a join has two, and must be what it was."""
    kind = old.described["kind"]
    return kind in UNKNOWN_ROWS and kind not in _MAKERS and len(old.described["of"]) == 1


def _nodes_above_core(new: Node) -> tuple[list[Node], Node]:
    """Return the nodes over one child, outermost first, and the first node that is none of these."""
    nodes: list[Node] = []
    while _is_over_one(new):
        nodes.append(new)
        new = new.child
    return nodes, new


def _is_over_one(node: Node) -> TypeGuard[UnaryNode]:
    return isinstance(node, UnaryNode) and not isinstance(node, Batch | Flatten | PackedNode)


def _transplanted_core(old: Node, new: Node) -> Node:
    """Return the rows of a source, or of a node over several children, by the rule for these two kinds."""
    if _are_same(old, new):
        return new
    rule = _RULES.get((type(old), Leaf if isinstance(new, Leaf) else type(new)))
    made = rule(old, new) if rule else None
    if made is None:
        was = old.described["kind"] if isinstance(old, PlaceholderSource) else old.kind
        message = f"what was {was}, {old!r}, is {new.kind} now, {new!r}: its rows cannot be told there"
        raise StateMismatch(message)
    return made


def _rows_of_leaf(old: PlaceholderSource, new: Node) -> Node | None:
    return None if "of" in old.described else matching_rows(old.described, new)


def _rows_of_one_part(old: PlaceholderSource, new: Concat) -> Node | None:
    return None if "of" in old.described else _first_match(old, new.parts)


def _each_part(old: Concat, new: Concat) -> Node:
    """Return each old part over the new part in its place, or over the first other one that has its rows."""
    made = []
    for slot, part in enumerate(old.parts):
        others = [other for number, other in enumerate(new.parts) if number != slot]
        made.append(_first_match(part, [*new.parts[slot : slot + 1], *others]))
    return Concat(tuple(made))


def _all_parts_of_leaf(old: Concat, new: Node) -> Node:
    return Concat(tuple(transplanted(part, new) for part in old.parts))


def _zipped(old: Zip, new: Zip) -> Node | None:
    if len(old.parts) != len(new.parts):
        return None
    return Zip(tuple(transplanted(*pair) for pair in zip(old.parts, new.parts, strict=True)))


def _blended(old: MegatronBlend, new: MegatronBlend) -> Node | None:
    if len(old.parts) != len(new.parts):
        return None
    parts = tuple(transplanted(*pair) for pair in zip(old.parts, new.parts, strict=True))
    return MegatronBlend(parts, old.weights, old.draws)


def _batched(old: Batch, new: Batch) -> Node:
    return Batch(transplanted(old.child, new.child), old.length)


def _flattened(old: PlaceholderSource, new: Flatten) -> Node | None:
    if old.described["kind"] != Flatten.kind:
        return None
    below = transplanted(rebuild_loosely(old.described["of"][0], old.row_files), new.child)
    return selected_rows(old.described, below, [new], path=old.row_files.get(old.described["rows"]))


def _packed(old: PlaceholderSource, new: PackedNode) -> Node | None:
    """Return the old samples: cut as they were, with the columns of the present ones."""
    tree = old.described
    if tree["kind"] not in (Pack.kind, Windows.kind):
        return None
    below = transplanted(rebuild_loosely(tree["of"][0], old.row_files), new.child)
    form, lengths = new.form, new.rows
    if lengths is not None and below is not new.child:
        lengths = row_lengths(below, form.key, align=form.align, call="resume='rows'")
    if lengths is not None and tree.get("lengths") not in (None, lengths.digest):
        message = (
            f"the documents of {old!r} have other lengths now: their samples cannot be cut as they were. "
            f"Go on with the data that the run began with"
        )
        raise StateMismatch(message)
    kind = Pack if tree["kind"] == Pack.kind else Windows
    return kind(below, SampleCut.from_description(tree), form, lengths, new.only)


_RULES: Mapping[tuple[type, type], Rule] = {
    (PlaceholderSource, Leaf): _rows_of_leaf,
    (PlaceholderSource, Concat): _rows_of_one_part,
    (PlaceholderSource, Flatten): _flattened,
    (PlaceholderSource, Pack): _packed,
    (MegatronBlend, MegatronBlend): _blended,
    (PlaceholderSource, Windows): _packed,
    (Concat, Concat): _each_part,
    (Concat, Leaf): _all_parts_of_leaf,
    (Zip, Zip): _zipped,
    (Batch, Batch): _batched,
}
"""For the kinds of an old and a new node, what makes the old rows of the new one; None if nothing can."""


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
