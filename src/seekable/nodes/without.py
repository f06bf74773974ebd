"""Rows that are left out of a dataset, while all others keep their positions.

An exclusion stands over a *domain*: a steady node, found from the top of the graph down. Through nodes that
only order records, or make one record of one, it goes further down; what chose rows by content or number
(filter, split, slices ...), and what puts records together (zip, join), is a domain itself. So the row that
comes in the place of another was chosen as that one was: it passed the same filter, and is of the same split.

The rows of a domain that are left out are found by the inverses of the nodes below it. No record is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast, final

import numpy as np

from seekable._cached import cached
from seekable._log import LOG
from seekable.errors import InvalidArgument
from seekable.nodes.bases import ONE_CHILD, EachRouter, InMemoryPlan, UnaryNode, leaves_of
from seekable.nodes.compile import CompiledGraph, GatheredPlan
from seekable.nodes.graph import (
    HOLE,
    Plan,
    Reader,
    Router,
    SearchRange,
    each_once,
    known_size,
    with_children,
)
from seekable.nodes.node import Node, OrderNode, RecordNode
from seekable.order.exclusion import Exclusion, row_set
from seekable.state.excluded_rows import ExcludedFile, ExcludedRows, described_rows, rows_of_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.nodes.graph import Origins
    from seekable.nodes.node import LeafNode
    from seekable.order.exclusion import RowSet

__all__ = ["ExcludedRows", "Fill", "LeavesOut", "WithHoles", "Without", "excluded"]

Fill = Literal["replace", "hole"]
"""What comes in the place of a row: another row of its domain, or a hole."""

_AT_ONCE = 1 << 18
"""The number of rows whose places in a domain are looked for together."""

_ORDER_UNKNOWN = "the description has a digest of the rows that were left out, and not the rows"


class LeavesOut(UnaryNode):
    """A node over a domain some of whose rows are left out."""

    child: Node
    rows: Int64s
    """The rows of the child that are left out: int64, ascending and distinct."""

    @property
    def size(self) -> int:
        """The number of rows of the child, which are as many as without the exclusion."""
        return known_size(self.child, "without()")

    @property
    def steady(self) -> bool:
        """False: what comes in the place of a row is another row in each epoch."""
        return False

    @property
    def blocks(self) -> Int64s:
        """The blocks of the child."""
        return self.child.blocks

    @property
    def lanes(self) -> int:
        """The lanes of the child."""
        return self.child.lanes

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the number and the digest of the rows; few rows themselves, of many the child's length."""
        described = described_rows(self.rows)
        return described if "list" in described else {**described, "count": self.size}

    @classmethod
    def decides_order(cls, arguments: Mapping[str, Any]) -> bool:
        """Return True if the rows stand in the description."""
        return "list" in arguments

    def child_range(self, slot: int, start: int, stop: int | None) -> tuple[int, int | None]:
        """Return the range widened to whole epochs of the child."""
        size = max(1, self.size)
        return start // size * size, None if stop is None else -(-stop // size) * size

    @property
    def _share(self) -> str:
        return f"{self.rows.size:,} of {self.size:,} rows left out"


@final
@dataclass(frozen=True, eq=False, repr=False)
class Without(LeavesOut, OrderNode):
    """In the place of a row that is left out comes a kept one, by `seekable.order.exclusion`."""

    child: Node
    rows: Int64s

    kind: ClassVar[str] = "without"
    counted: ClassVar[bool] = True
    order_unknown: ClassVar[str] = _ORDER_UNKNOWN

    @cached
    def order(self) -> Exclusion:
        """The rows that come at each position."""
        return Exclusion(self.rows, self.size)

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any], children: tuple[Node, ...]) -> Without | None:
        """Return the node with these arguments over a child; None if the rows are not among them."""
        return cls(children[0], rows_of_text(arguments["list"])) if "list" in arguments else None

    def shown(self, children: Sequence[str]) -> str:
        """Return the call of ``without``, with the number of the rows."""
        return f"{children[0]}.without(<{self.rows.size:,} rows>)"

    def remark(self) -> str:
        """Return a text with the number of random reads that the replacements cost."""
        return f", {self._share}; {self.rows.size:,} random reads an epoch in their places"

    @classmethod
    def router(cls, nodes: Sequence[Without]) -> Router:
        """Return a router that routes the positions of each node separately."""
        return EachRouter(nodes)

    def route(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Return slot 0 and the positions, of a kept row where a row is left out."""
        return ONE_CHILD, self.order.forward(positions)

    def route_one(self, position: int) -> tuple[int, int]:
        """Return slot 0 and one position, of a kept row if its row is left out."""
        return 0, self.order.forward_one(position)

    def inverse(self, slot: int, positions: Int64s, within: SearchRange) -> Int64s:
        """Return the places of kept rows of the child: their own, and those that they fill."""
        return self.order.inverse(positions)


@final
@dataclass(frozen=True, eq=False, repr=False)
class WithHoles(LeavesOut, RecordNode):
    """In the place of a row that is left out comes a hole, also where it fills another's; nothing is read."""

    child: Node
    rows: Int64s

    kind: ClassVar[str] = "with_holes"
    counted: ClassVar[bool] = True
    order_unknown: ClassVar[str] = _ORDER_UNKNOWN

    @property
    def steady(self) -> bool:
        """True if the child is steady."""
        return self.child.steady

    @cached
    def out(self) -> RowSet:
        """The rows that are left out."""
        return row_set(self.rows, self.size)

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any], children: tuple[Node, ...]) -> WithHoles | None:
        """Return the node with these arguments over a child; None if the rows are not among them."""
        return cls(children[0], rows_of_text(arguments["list"])) if "list" in arguments else None

    def shown(self, children: Sequence[str]) -> str:
        """Return the call of ``without``, with the number of the rows."""
        return f"{children[0]}.without(<{self.rows.size:,} rows>, fill='hole')"

    def remark(self) -> str:
        """Return a text with the number of holes."""
        return f", {self._share}: holes in their places"

    @classmethod
    def reader(cls, nodes: Sequence[WithHoles]) -> Reader:
        """Return a reader that plans the kept rows of each node separately."""
        return _HolesReader(nodes)

    def record(self, position: int) -> Any:
        """Read the record at one position; return a hole if its row, or what fills it, is left out."""
        is_out = self.out.holds_one(position % self.size)
        if not is_out and self._filling is not None:
            is_out = self.out.holds_one(self._filling.forward_one(position) % self.size)
        return HOLE if is_out else self.child.record(position)

    def holes(self, positions: Int64s) -> Int64s:
        """Return the indices of the positions at which holes come, ascending."""
        at = self.out.holding(positions % self.size)
        if self._filling is None:
            return at
        return np.union1d(at, self.out.holding(self._filling.forward(positions) % self.size))

    def narrowed(self, columns: frozenset[str]) -> Self:
        """Return the same holes over a narrowed child."""
        child = self.child.narrowed(columns)
        return self if child is self.child else with_children(self, {id(self.child): child})

    def declared(self) -> Mapping[str, Any] | None:
        """Return the columns of the child."""
        return self.child.declared()

    def first_of(self, position: int) -> tuple[Node, int] | None:
        """Return the child and the same position."""
        return self.child, position

    def inverse(self, slot: int, positions: Int64s, within: SearchRange) -> Int64s:
        """Return the positions of rows that are not left out."""
        is_kept = np.ones(positions.size, dtype=np.bool_)
        is_kept[self.holes(positions)] = False
        return positions[is_kept]

    @cached
    def _filling(self) -> Exclusion | None:
        """What fills places of the child, if rows that are left out here may come there."""
        if not isinstance(self.child, Without) or np.isin(self.rows, self.child.rows).all():
            return None
        return self.child.order


@final
class _HolesReader(Reader):
    def __init__(self, nodes: Sequence[WithHoles]) -> None:
        self._nodes = nodes
        self._children = CompiledGraph([node.child for node in nodes])

    def plan(self, which: Int64s, positions: Int64s) -> Plan:
        left_out = self._left_out(which, positions)
        if not left_out.size:
            return self._children.plan(which, positions)
        is_kept = np.ones(positions.size, dtype=np.bool_)
        is_kept[left_out] = False
        kept = np.flatnonzero(is_kept)
        holes = _HolesPlan(self._below(which, positions, left_out))
        if not kept.size:
            return holes
        return GatheredPlan(positions.size, ((kept, self._below(which, positions, kept)), (left_out, holes)))

    def _below(self, which: Int64s, positions: Int64s, at: Int64s) -> Plan:
        return self._children.plan(which if which.size == 1 else which[at], positions[at])

    def _left_out(self, which: Int64s, positions: Int64s) -> Int64s:
        """Return the indices of the positions whose rows are left out."""
        found = []
        for number in np.unique(which).tolist():
            node = self._nodes[number]
            own = np.arange(positions.size) if which.size == 1 else np.flatnonzero(which == number)
            found.append(own[node.holes(positions[own])])
        return np.sort(np.concatenate(found))


@final
@dataclass(frozen=True, slots=True)
class _HolesPlan(InMemoryPlan):
    """Holes in the places of records, which are not read."""

    child: Plan

    def __len__(self) -> int:
        return len(self.child)

    def slice(self, start: int, stop: int) -> Plan:
        return _HolesPlan(self.child.slice(start, stop))

    def read(self) -> list[Any]:
        return [HOLE] * len(self)

    def left_out(self) -> NDArray[np.bool_]:
        return np.ones(len(self), dtype=np.bool_)

    def locate(self) -> list[Any]:
        return self.child.locate()

    def origins(self) -> Origins:
        return self.child.origins()


def excluded(node: Node, rows: ExcludedRows, *, fill: Fill = "replace", anew: bool = True) -> Node:
    """Return a dataset without some rows: all other records stay at their positions.

    Rows that are left out already stay so, and the places of all are filled anew. So one call for each of
    several lists gives the same node as one call for all of them.

    Args:
        node: the dataset.
        rows: the rows of files to leave out. Those that the dataset does not have are no error.
        fill: what comes in their places.
        anew: False for holes alone: what fills the places of rows that are left out already stays, or is a
            hole too.

    Returns:
        The dataset; ``node`` itself if it has none of the rows.

    Raises:
        InvalidArgument: no row of a domain would be kept; records are made of several datasets in an order
            of their own each, by ``zip`` for instance; or samples have nothing that masks a token.

    Example:
        >>> import seekable as sk
        >>> words = sk.from_sequence("abcdef", version=1)
        >>> rows = ExcludedRows.of([(ExcludedFile("<builtins.str 1>"), np.array([2]))])
        >>> excluded(words.shuffle(seed=1)._node, rows)
        <Dataset, 6 records: from_sequence(<builtins.str of 6>).without(<1 rows>).shuffle(seed=1)>
    """
    return _Exclusions(rows, fill, anew=anew).over(node)


@final
class _Exclusions:
    """One call of `excluded`: each node below is gone through once."""

    def __init__(self, rows: ExcludedRows, fill: Fill, *, anew: bool) -> None:
        self._listed = dict(iter(rows))
        self._fill: Fill = fill
        self._anew = anew
        self._made: dict[int, Node] = {}
        self._of_leaves: dict[int, Int64s] = {}

    def over(self, node: Node) -> Node:
        """Return a node with the exclusion over each of its domains."""
        if id(node) not in self._made:
            self._made[id(node)] = self._over(node)
        return self._made[id(node)]

    def _over(self, node: Node) -> Node:
        if isinstance(node, LeavesOut):
            return self._more(node)
        if node.masks:
            rows = self._rows_in(node.children[0])
            return node.masked(rows) if rows.size else node
        if node.steady and not node.apart:
            return self._leaving_out(node, self._rows_in(node), *_NONE)
        if node.apart or isinstance(node, OrderNode):
            below = {id(child): self.over(child) for child in each_once(node.children)}
            return node if all(below[id(c)] is c for c in node.children) else with_children(node, below)
        if any(self._rows_of(leaf).size for leaf in leaves_of(node)):
            message = (
                f"a record of {node.in_words()[:200]} is made of several, each of which comes in an order of "
                f"its own, and none of them can be left out without the others: put them together first, "
                f"then shuffle (sk.zip([a, b]).shuffle(seed=...))"
            )
            raise InvalidArgument(message)
        return node

    def _more(self, node: LeavesOut) -> Node:
        """Return a node of which more rows are left out."""
        inner = node.child if isinstance(node, WithHoles) else node
        holes = node.rows if isinstance(node, WithHoles) else _NONE[0]
        domain, replaced = (inner.child, inner.rows) if isinstance(inner, Without) else (inner, _NONE[0])
        made = self._leaving_out(domain, self._rows_in(domain), holes, replaced)
        return node if made is domain else made

    def _leaving_out(self, domain: Node, rows: Int64s, holes: Int64s, replaced: Int64s) -> Node:
        """Return a domain without rows; those in ``holes`` and ``replaced`` are left out already.

        The places of holes are never filled, but a hole may fill no place either: so the rows that are
        replaced are chosen among those that are neither, where they are chosen anew.
        """
        rows = np.setdiff1d(rows, np.union1d(holes, replaced), assume_unique=True)
        if not rows.size:
            return domain
        if self._fill == "hole":
            holes = np.union1d(holes, rows)
        else:
            replaced = np.union1d(replaced, rows)
        out = np.union1d(holes, replaced)
        _check_kept(domain, out)
        filled = out if self._anew else replaced
        if replaced.size:
            _warn_of_repeats(domain, filled)
        made = Without(domain, filled) if replaced.size else domain
        return WithHoles(made, holes) if holes.size else made

    def _rows_in(self, domain: Node) -> Int64s:
        """Return the rows of a domain that are made of a row in the list: int64, ascending, distinct."""
        found = [_NONE[0]]
        for leaf in leaves_of(domain):
            own = self._rows_of(leaf)
            starts = range(0, own.size, _AT_ONCE)
            found += [_places(domain, leaf, own[start : start + _AT_ONCE]) for start in starts]
        return np.unique(np.concatenate(found))

    def _rows_of(self, leaf: LeafNode) -> Int64s:
        """Return the rows of a source that are in the list."""
        if id(leaf) not in self._of_leaves:
            self._of_leaves[id(leaf)] = np.concatenate([_NONE[0], *_rows_in_files(leaf, self._listed)])
        return self._of_leaves[id(leaf)]


_NONE = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))


def _places(domain: Node, leaf: LeafNode, rows: Int64s) -> Int64s:
    """Return the rows in a domain that some rows in one source lead to."""
    if domain is leaf:
        return rows
    within = SearchRange(0, known_size(domain, "without()"), range(1))
    return domain.find_within(lambda each: cast("Sequence[int]", rows) if each is leaf else (), within)


def _rows_in_files(leaf: LeafNode, listed: Mapping[ExcludedFile, Int64s]) -> Iterator[Int64s]:
    files, first = leaf.named_files(), 0
    for name, digest, count in zip(files.names, files.head_tails, files.records.tolist(), strict=True):
        rows = listed.get(ExcludedFile(name, digest))
        if rows is not None:
            yield rows[: int(np.searchsorted(rows, count))] + first
        first += count


def _check_kept(domain: Node, out: Int64s) -> None:
    """Raise InvalidArgument if nothing is kept of a domain."""
    size = known_size(domain, "without()")
    if out.size == size:
        message = (
            f"without() would leave out all {size:,} rows of {domain.in_words()[:200]}: leave the dataset "
            f"itself out, or keep a row of it"
        )
        raise InvalidArgument(message)


def _warn_of_repeats(domain: Node, out: Int64s) -> None:
    """Log that kept rows come more than twice in an epoch, if more rows are replaced than are kept."""
    size = known_size(domain, "without()")
    if out.size > size - out.size:
        most = 1 + -(-out.size // (size - out.size))
        LOG.warning(
            "without: %s of %s rows are left out, so that a kept row comes up to %d times in an epoch: %s",
            f"{out.size:,}",
            f"{size:,}",
            most,
            domain.in_words()[:200],
        )
