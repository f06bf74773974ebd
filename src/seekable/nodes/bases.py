"""Bases of nodes, plans, readers and routers.

Nodes: over one child, with its rows in another order, with some of its rows in ascending order, or with the
positions of all children. Routers: ``EachRouter`` loops over nodes whose arithmetic does not fit one table.
"""

from __future__ import annotations

import operator
import os
from abc import abstractmethod
from dataclasses import dataclass
from math import lcm
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, final

import numpy as np

from seekable._arguments import checked_path
from seekable._cached import cached
from seekable.nodes.compile import CompiledGraph
from seekable.nodes.graph import (
    ChildPlan,
    Plan,
    Reader,
    Router,
    SearchRange,
    each_once,
    known_size,
    nodes_of,
    part_of,
    with_children,
)
from seekable.nodes.node import InnerNode, LeafNode, OrderNode, RecordNode
from seekable.order.arrays import present
from seekable.order.blocks import default_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.index.fileset import FileSet
    from seekable.nodes.conditions import Where
    from seekable.nodes.graph import FileRanges, Origins
    from seekable.nodes.node import Node
    from seekable.storage.access import CacheChoice

__all__ = [
    "ONE_CHILD",
    "Ascending",
    "ChosenRows",
    "EachRecordNode",
    "EachRouter",
    "ElementwiseNode",
    "InMemoryPlan",
    "PassOn",
    "PermutationNode",
    "UnaryNode",
    "UnaryPlan",
    "UnaryReader",
    "caches_of",
    "calls_functions",
    "int64s",
    "integer_of",
    "leaves_of",
    "positions_of_row",
    "reads_objects",
    "records_of_sources",
    "replaced",
    "with_leaves",
]


class UnaryNode(InnerNode):
    """A node over one child."""

    child: Node

    @property
    def children(self) -> tuple[Node, ...]:
        """A tuple of the one child."""
        return (self.child,)


class PermutationNode(UnaryNode):
    """A node whose rows, in each epoch, are the child's of that epoch in another order."""

    @cached
    def size(self) -> int:
        """The number of records of an epoch, equal to the child's."""
        return known_size(self.child, self.kind)

    @property
    def blocks(self) -> Int64s:
        """The default blocks of ``size`` rows: neighbours come from different blocks of the child."""
        return default_blocks(self.size)

    def child_range(self, slot: int, start: int, stop: int | None) -> tuple[int, int | None]:
        """Return the range widened to whole epochs of the child."""
        size = max(1, self.size)
        return start // size * size, None if stop is None else -(-stop // size) * size


class InMemoryPlan(Plan):
    """A plan whose records are read from no file."""

    @property
    def paths(self) -> set[str]:
        """An empty set: no file is read."""
        return set()

    @property
    def bytes(self) -> int:
        """0: no byte of a file is read."""
        return 0

    @property
    def from_stores(self) -> bool:
        """True if files are objects of stores; no file is read here."""
        return False

    def ranges(self) -> Iterator[FileRanges]:
        """Yield the ranges of bytes that are read: none."""
        return iter(())

    def advise(self) -> None:
        """Do nothing: the records are in memory already."""


@dataclass(frozen=True, slots=True)
class UnaryPlan(ChildPlan):
    """A plan of many nodes that makes each record from one record of another plan."""

    nodes: Sequence[Any]
    which: Int64s
    """The index of the node of each position, or one index for all positions."""
    positions: Int64s
    child: Plan

    def __len__(self) -> int:
        """Return the number of records."""
        return self.positions.size

    def slice(self, start: int, stop: int) -> Self:
        """Return the plan of some of the records."""
        which = part_of(self.which, start, stop)
        return type(self)(self.nodes, which, self.positions[start:stop], self.child.slice(start, stop))

    def locate(self) -> list[Any]:
        """Return the locations of the child's records."""
        return self.child.locate()

    def origins(self) -> Origins:
        """Return the origins of the child's records."""
        return self.child.origins()

    def left_out(self) -> NDArray[np.bool_] | None:
        """Return which of the child's records were left out."""
        return self.child.left_out()


@final
class UnaryReader(Reader):
    """Plans the children of many nodes together, and wraps that plan in one of the nodes."""

    def __init__(
        self, nodes: Sequence[Any], plan: Callable[[Sequence[Any], Int64s, Int64s, Plan], Plan]
    ) -> None:
        """Compile the children.

        Args:
            nodes: nodes with a ``child`` each.
            plan: returns the nodes' plan, given the nodes, ``which``, positions and the children's plan.
        """
        self._nodes = nodes
        self._plan = plan
        self._children = CompiledGraph([node.child for node in nodes])

    def plan(self, which: Int64s, positions: Int64s) -> Plan:
        """Return the plan of the nodes over the plan of their children."""
        return self._plan(self._nodes, which, positions, self._children.plan(which, positions))


class ElementwiseNode(InnerNode):
    """A node that makes the record at position ``p`` from the records at ``p`` of all children."""

    @cached
    def lanes(self) -> int:
        """The least common multiple of the children's lanes."""
        return lcm(*(child.lanes for child in each_once(self.children)))

    def child_range(self, slot: int, start: int, stop: int | None) -> tuple[int, int | None]:
        """Return the same range for every child."""
        return start, stop

    def inverse(self, slot: int, positions: Int64s, within: SearchRange) -> Int64s:
        """Return the same positions for every child."""
        return positions

    def first_of(self, position: int) -> tuple[Node, int] | None:
        """Return the first child and the same position."""
        return self.children[0], position


class EachRecordNode(UnaryNode, ElementwiseNode, RecordNode):
    """A node that makes one record from each record of the child."""

    apart: ClassVar[bool] = True

    @property
    def size(self) -> int | None:
        """The number of records of the child."""
        return self.child.size

    @property
    def steady(self) -> bool:
        """True if the child is steady."""
        return self.child.steady

    @property
    def blocks(self) -> Int64s:
        """The blocks of the child."""
        return self.child.blocks


ONE_CHILD = np.zeros(1, dtype=np.int64)
"""The slot of the only child, for all positions: int64, shape (1,)."""


class Routes(Protocol):
    """A node with a vectorised ``route`` of its own positions."""

    def route(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Return two int64 arrays: the slot of a child, and the position in that child, for each position."""
        ...


class PassOn(Router):
    """A router that sends every position to the same position of the only child."""

    def route(self, which: Int64s, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Return slot 0 and the positions unchanged."""
        return ONE_CHILD, positions


class EachRouter(Router):
    """A router that calls each node separately, for classes of which a graph holds few nodes."""

    def __init__(self, nodes: Sequence[Routes]) -> None:
        """Create a router of the given nodes."""
        self._nodes = nodes

    def route(self, which: Int64s, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Route the positions of each node by that node."""
        if which.size == 1:
            return self._nodes[int(which[0])].route(positions)
        slots, below = np.empty_like(positions), np.empty_like(positions)
        for i in present(which):
            at = which == i
            slots[at], below[at] = self._nodes[i].route(positions[at])
        return slots, below


def integer_of(arguments: Mapping[str, Any], name: str) -> int:
    """Return an argument of a described node that must be an integer.

    Raises:
        KeyError: there is no such argument.
        TypeError: it is something else.
    """
    value = arguments[name]
    if type(value) is not int:
        message = f"{name} must be an integer (got {value!r})"
        raise TypeError(message)
    return value


def int64s(values: Iterable[int | None]) -> Int64s:
    """Return an int64 array of one value for each node; None becomes 0.

    Example:
        >>> int64s([3, None]).tolist()
        [3, 0]
    """
    return np.array([value or 0 for value in values], dtype=np.int64)


class Ascending(UnaryNode, OrderNode):
    """A node whose rows are some rows of a steady child, in ascending order."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of rows of this node."""

    @abstractmethod
    def below(self, rows: Int64s) -> Int64s:
        """Return the child's rows that some rows of this node are."""

    @abstractmethod
    def before(self, rows: Int64s) -> Int64s:
        """Count this node's rows before each of some rows of the child."""

    @property
    def steady(self) -> bool:
        """True: the child is steady, and the rows are the same in every epoch."""
        return True

    @property
    def blocks(self) -> Int64s:
        """The child's blocks, cut down to the rows of this node."""
        return np.unique(self.before(self.child.blocks))

    @property
    def lanes(self) -> int:
        """1: rows come from any lane of the child."""
        return 1

    @classmethod
    def router(cls, nodes: Sequence[Any]) -> Router:
        """Return a router that routes the positions of each node separately."""
        return EachRouter(nodes)

    def route(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Return slot 0 and the child's positions."""
        epochs, rows = np.divmod(positions, self.size)
        return ONE_CHILD, epochs * self._child_size + self.below(rows)

    def child_range(self, slot: int, start: int, stop: int | None) -> tuple[int, int | None]:
        """Return the range of whole epochs of the child."""
        size, below = max(1, self.size), self._child_size
        return start // size * below, None if stop is None else -(-stop // size) * below

    def inverse(self, slot: int, positions: Int64s, within: SearchRange) -> Int64s:
        """Return at which positions this node has the child's rows, for those that it has."""
        epochs, rows = np.divmod(positions, self._child_size)
        places = self.before(rows)
        own: Int64s = (epochs * self.size + places)[self.before(rows + 1) > places]
        return own

    @property
    def _child_size(self) -> int:
        return known_size(self.child, self.kind)


class ChosenRows(Ascending):
    """A node whose rows are those of an array of the child's rows."""

    @property
    @abstractmethod
    def chosen(self) -> Int64s:
        """The chosen row numbers of the child: int64, distinct, ascending."""

    @abstractmethod
    def chosen_one(self, row: int) -> int:
        """Return the number in the child of the chosen row ``row``."""

    def below(self, rows: Int64s) -> Int64s:
        """Return the chosen rows at some places."""
        return self.chosen[rows]

    def before(self, rows: Int64s) -> Int64s:
        """Return the number of chosen rows before each of some rows."""
        return np.searchsorted(self.chosen, rows)

    def route_one(self, position: int) -> tuple[int, int]:
        """Return slot 0 and the child's position of one chosen row."""
        epoch, row = divmod(position, self.size)
        return 0, epoch * self._child_size + self.chosen_one(row)

    def may_match(self, where: Where) -> Int64s:
        """Return the child's runs, cut down to the chosen rows."""
        runs: Int64s = np.searchsorted(self.chosen, self.child.may_match(where)).astype(np.int64)
        return runs[runs[:, 0] < runs[:, 1]]


def leaves_of(node: Node) -> list[LeafNode]:
    """Return the sources of a dataset, each once."""
    return [each for each in nodes_of(node) if isinstance(each, LeafNode)]


_OWN_RECORDS = frozenset(
    {
        *("alias", "batch", "drop_columns", "fill", "partitions", "rename", "select_columns"),
        *("source_column", "with_holes", "zip"),
    }
)
"""The kinds of nodes that make records without a function of the user."""


def calls_functions(node: Node) -> bool:
    """Return True if reading a record may call a user's function, or a method of a user's object.

    What is not known to call none counts as calling one.

    Example:
        >>> import seekable as sk
        >>> ds = sk.from_sequence([3, 1, 2]).shuffle(seed=1)
        >>> calls_functions(ds._node), calls_functions(ds.map(abs).take(2)._node)
        (False, True)
    """
    for each in nodes_of(node):
        if isinstance(each, LeafNode):
            if not each.decodes_itself or getattr(each, "errors", None) is not None:
                return True
        elif not isinstance(each, OrderNode) and each.kind not in _OWN_RECORDS:
            return True
    return False


def reads_objects(node: Node) -> bool:
    """Return True if a source of a dataset has files that are objects of stores."""
    return any(map(operator.attrgetter("has_objects"), _files_of(node)))


def records_of_sources(node: Node) -> int:
    """Return the number of records of the datasets with an end that an endless one draws from."""
    return sum(map(records_of_sources, node.children)) if node.size is None else node.size


def caches_of(node: Node) -> set[CacheChoice | None]:
    """Return the caches on disk that the sources of a dataset have chosen; None for the shared one."""
    return {choice for files in _files_of(node) if files.has_objects for choice in files.caches}


def _files_of(node: Node) -> list[FileSet]:
    found = [getattr(part, "files", None) for leaf in leaves_of(node) for part in leaf.parts]
    return [files for files in found if files is not None]


def with_leaves(node: Node, change: Callable[[LeafNode], Node], *, past_records: bool) -> Node | None:
    """Return the order of a dataset over other sources; None if a node between makes records of its own.

    Args:
        node: the dataset.
        change: returns the node to put in the place of a source; it has as many records.
        past_records: True to leave out the nodes that make one record of one record, such as maps.
    """
    return replaced(
        node, lambda each: change(each) if isinstance(each, LeafNode) else None, past_records=past_records
    )


def replaced(node: Node, change: Callable[[Node], Node | None], *, past_records: bool) -> Node | None:
    """Return the order of a dataset over other nodes; None if a node above these makes records of its own.

    Args:
        node: the dataset.
        change: returns the node to put in the place of one; it has as many records. None to look below it.
        past_records: True to leave out the nodes that make one record of one record, such as maps.
    """
    if (made := change(node)) is not None:
        return made
    if past_records and isinstance(node, UnaryNode) and isinstance(node, ElementwiseNode):
        if isinstance(node, RecordNode):
            return replaced(node.child, change, past_records=True)
    elif not isinstance(node, OrderNode):
        return None
    below: dict[int, Node] = {}
    for child in each_once(node.children):
        if (made := replaced(child, change, past_records=past_records)) is None:
            return None
        below[id(child)] = made
    return with_children(node, below) if isinstance(node, OrderNode) else None


def positions_of_row(node: Node, path: str | os.PathLike[str], row: int, epochs: range) -> Int64s:
    """Return the sorted positions at which a row of a file comes in some epochs of a node.

    Consecutive epochs are one search: most of its cost is that of NumPy's calls, whatever their number.

    Args:
        node: the root of the graph to search.
        path: the file, as a path, an address, or the name in angle brackets of a sequence.
        row: the record's number in the file.
        epochs: the epochs of the node; of an endless node, epochs of the source.

    Raises:
        WrongType: the path is neither a text nor a path.
        InvalidArgument: there are more than 10 million such positions.
    """
    place = checked_path(path)
    place = place if place.startswith("<") or "://" in place else os.path.abspath(place)
    size = node.size
    runs = [epochs] if epochs.step == 1 else [range(epoch, epoch + 1) for epoch in epochs]
    found = []
    for run in runs:
        start, stop = (0, None) if size is None else (run.start * size, run.stop * size)
        found.append(node.find_within(lambda leaf: leaf.rows_of(place, row), SearchRange(start, stop, run)))
    return np.unique(np.concatenate([np.empty(0, dtype=np.int64), *found]))
