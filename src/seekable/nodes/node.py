"""The contract of a node of a dataset's graph.

A node is a frozen dataclass. It may be shared, pickled, and used from any thread. Every concrete node is an
``OrderNode``, which sends positions on to its children, or a ``RecordNode``, which makes records; a
``LeafNode`` is a record node without children.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self, runtime_checkable

import numpy as np

from seekable._cached import cached
from seekable._lazy import lazy
from seekable._typing import Value
from seekable.errors import InvalidArgument
from seekable.nodes.compile import CompiledGraph
from seekable.nodes.graph import (
    Graph,
    Read,
    Routed,
    SearchRange,
    described,
    each_once,
    nodes_of,
    with_children,
)
from seekable.nodes.key import source_of_keys
from seekable.state.canonical import fingerprint_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from seekable._typing import Int64s
    from seekable.nodes.columns import arrow_types as column_types
    from seekable.nodes.conditions import Where
    from seekable.nodes.graph import Plan
    from seekable.nodes.key import KeyOf, Keys

    RowsOf = Callable[["LeafNode"], Sequence[int]]
    Taking = Callable[["Node | Mapping[str, Any]", "Node"], "Node"]
else:
    column_types = lazy("seekable.nodes.columns.arrow_types")

__all__ = [
    "BatchForm",
    "HoldsNode",
    "InnerNode",
    "LeafNode",
    "NamedFiles",
    "Node",
    "OrderNode",
    "RecordNode",
    "node_of",
]

BatchForm = Literal["python", "numpy", "arrow"]
"""The form of a batch of records: a list, a dict of arrays, or a ``pyarrow.RecordBatch``."""

_ONLY_ROOT = np.zeros(1, dtype=np.int64)

_MOST_FOUND = 1 << 23
"""The most positions that a search returns: 64 MiB."""

_MOST_CHARACTERS = 20_000
"""The most characters of the expression of a pipeline."""


class Node(Graph):
    """A node of a dataset's graph."""

    # Reading: its records.

    @abstractmethod
    def record(self, position: int) -> Any:
        """Read the record at one position; like ``plan``, but without arrays."""

    def plan(self, positions: Int64s) -> Plan:
        """Return the plan to read some positions: int64, one dimension, at least 0, of any epochs."""
        return self._compiled.plan(_ONLY_ROOT, positions)

    def fetch(self, positions: Int64s) -> list[Any]:
        """Return the records at some positions (a 1-D array, values at least 0), in the same order."""
        return self.plan(positions).read()

    @cached
    def _compiled(self) -> CompiledGraph:
        if not self.children:
            return CompiledGraph([self])
        # A reader holds its nodes. If this one held itself so, its files would stay open until the garbage
        # collector runs, so a twin stands for it.
        twin = object.__new__(type(self))
        vars(twin).update(vars(self))
        return CompiledGraph([twin])

    # Description: the JSON document that decides the records and their order, and its fingerprint.

    kind: ClassVar[str]
    """The node's name in fingerprints and random keys: changing it is a breaking change."""

    order_unknown: ClassVar[str] = ""
    """The reason why a description of such a node does not decide its order; empty if it does."""

    counted: ClassVar[bool] = False
    """True if arguments were made of the records or the lengths of the children, and are wrong for others."""

    @abstractmethod
    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return, JSON-safe, the arguments that decide records or order before the position ``upto``."""

    @abstractmethod
    def shown(self, children: Sequence[str]) -> str:
        """Return the expression that makes the node, given those of its children."""

    def remark(self) -> str:
        """Return a text that ``explain`` appends to the line of the node; empty by default."""
        return ""

    @abstractmethod
    def describe(self, upto: int | None) -> dict[str, Any]:
        """Return, JSON-safe, all that decides records and order before the position ``upto``."""

    @property
    @abstractmethod
    def scheduled(self) -> bool:
        """True if this node, or one below it, has weights that change at given positions."""

    @abstractmethod
    def schedule_key(self, upto: int) -> tuple[str, ...]:
        """Return a cheap key that differs where the descriptions before two positions differ."""

    @cached
    def fingerprint(self) -> str:
        """The digest of all that decides the records and their order."""
        return fingerprint_of(self.describe(None))

    def fingerprint_at(self, position: int) -> str:
        """Return the digest of what decides the records before a position.

        It differs from ``fingerprint`` only where a mixture's schedule changes weights after the position.
        """
        if not self.scheduled:
            return self.fingerprint
        stage = self.schedule_key(position)
        if stage not in self._fingerprints:
            self._fingerprints[stage] = fingerprint_of(self.describe(position))
        return self._fingerprints[stage]

    @cached
    def _fingerprints(self) -> dict[tuple[str, ...], str]:
        return {}

    # Locality: the runs of rows that are cheap to read together.

    @property
    @abstractmethod
    def blocks(self) -> Int64s:
        """The edges of the runs of rows that are cheap to read together; see `seekable.order.blocks`.

        Raises:
            EndlessDataset: the node has no length.
        """

    @property
    @abstractmethod
    def cache_bytes(self) -> int:
        """The size of the caches of files and decoded blocks, in bytes."""

    @property
    @abstractmethod
    def lanes(self) -> int:
        """The number of lanes that the order is made for; row ``r`` belongs to lane ``r % lanes``."""

    # Search: the positions at which rows of the sources come.

    @abstractmethod
    def find_within(self, rows_of: RowsOf, within: SearchRange) -> Int64s:
        """Return the positions of a range at which some rows of the sources come.

        Args:
            rows_of: a function that returns the rows to find in a source.
            within: the range of positions to search.
        """

    # Columns: their names and types.

    def narrowed(self, columns: frozenset[str]) -> Self:
        """Return a node of the same description for a caller that uses only some columns of its records.

        The records may lack the other columns, which then need not be read.
        """
        return self

    def may_match(self, where: Where) -> Int64s:
        """Return runs of rows among which are all that pass some conditions, without reading a record.

        The node must be steady and have a length.

        Returns:
            An array of shape (runs, 2): the first row of each run and the row after its last, ascending.
        """
        return np.array([[0, self.size or 0]], dtype=np.int64)

    def declared(self) -> Mapping[str, Any] | None:
        """Return the columns and their Arrow types, as the files declare them; no record is read.

        Returns:
            For each column a ``pyarrow.DataType``, or None where only records show it; None for the whole if
            only records show which columns there are.
        """
        return None

    @property
    def batch_form(self) -> BatchForm:
        """The form of a batch: that of the tables below if these are alike, else ``"python"``."""
        return "python"

    # The graph.

    apart: ClassVar[bool] = False
    """True if a record of a child decides no record but its own, and may be left out below this node."""

    masks: ClassVar[bool] = False
    """True if a record holds parts of many records of the child, and what is left out is masked in it."""

    def masked(self, rows: Int64s) -> Node:
        """Return this node with some rows of the child masked in its records; only where ``masks`` is True.

        Args:
            rows: rows of the child: int64, ascending and distinct.

        Raises:
            InvalidArgument: the records have nothing that says what counts.
        """
        raise NotImplementedError

    @property
    @abstractmethod
    def children(self) -> tuple[Node, ...]:
        """The nodes that this one takes records from."""

    @classmethod
    def decides_order(cls, arguments: Mapping[str, Any]) -> bool:
        """Return True if a description with these arguments decides the order of such a node."""
        return not cls.order_unknown

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any], children: tuple[Node, ...]) -> Node | None:
        """Return the node with these ``arguments`` over some children: the inverse of ``arguments``.

        Args:
            arguments: what ``arguments(None)`` returned, also after a JSON round trip; maybe more.
            children: nodes in the order of those that were described.

        Returns:
            The node; None, by default, if the arguments lack what makes its records, such as a function of
            the user.

        Raises:
            LookupError, TypeError, ValueError, SeekableError: no such node has these arguments.
        """
        return None

    def first_of(self, position: int) -> tuple[Node, int] | None:
        """Return the child and the position there of the first record that one record is made of.

        It is None, by default, for records that are made of none, or where it is not known.
        """
        return None

    def taking(self, old: Node, go: Taking) -> Node | None:
        """Return the order of an old node over the records of this one; None, by default, if there is no way.

        Args:
            old: a node of the pipeline of which an epoch was begun.
            go: does the same for a child, or the description of one, of the old node and a child of this one.

        Raises:
            StateMismatch: the children of this node lack some of the old rows.
        """
        return None

    def keys_alone(self) -> tuple[Node, KeyOf] | None:
        """Return a node of the same rows for their keys alone, and what the key of its records is.

        Of the records little is read besides their keys. None, by default, stands for the children's keys.

        Raises:
            InvalidArgument: the records of a source have no keys.
        """
        return None

    def saved_form(self, children: Sequence[str]) -> str:
        """Return ``shown`` as pipeline files have it, so that a pipeline is the same file for ever."""
        return self.shown(children)

    def expression(self, *, saved: bool = False) -> str:
        """Return the expression that makes the node, with the expressions of its children.

        Of a child's expression that is very long, the middle is left out.

        Args:
            saved: True for the form in pipeline files, which keeps the words of the first ones.
        """
        texts: dict[int, str] = {}
        for node in nodes_of(self):
            shown = node.saved_form if saved else node.shown
            text = shown([texts[id(child)] for child in node.children])
            half = _MOST_CHARACTERS // 2
            texts[id(node)] = text if len(text) <= _MOST_CHARACTERS else f"{text[:half]}...{text[-half:]}"
        return texts[id(self)]

    def in_words(self) -> str:
        """Return the number of records and the expression that makes the node."""
        records = "endless" if self.size is None else f"{self.size:,} record{'s' * (self.size != 1)}"
        return f"{records}: {self.expression()}"

    def __repr__(self) -> str:
        """Show the dataset that this is the root of, as errors name it."""
        return f"<Dataset, {self.in_words()}>"

    def __getstate__(self) -> dict[str, Any]:
        """Return the description alone: no handles, offsets or anything that was compiled."""
        described = fields(self)  # type: ignore[arg-type]  # every concrete node is a dataclass
        return {field.name: getattr(self, field.name) for field in described}


@runtime_checkable
class HoldsNode(Protocol):
    """An object that holds the root of a dataset's graph; rooms before ``dataset`` use this protocol."""

    @property
    def _node(self) -> Node:
        """The root node of the graph."""
        ...


def node_of(dataset: HoldsNode) -> Node:
    """Return the root of a dataset's graph: what rooms work with; users never see it.

    Example:
        >>> import seekable as sk
        >>> node_of(sk.from_sequence("abc").take(2)).size
        2
    """
    return dataset._node  # noqa: SLF001 - the one door to it


class NamedFiles(Value, frozen=True):
    """The files of a source in the order of its rows: those in the first file come first."""

    names: Sequence[str]
    """The path of each file below the folder that was opened; in angle brackets for a sequence."""

    head_tails: Sequence[str]
    """The digest of the head and the tail of each file; empty for a sequence."""

    records: Int64s
    """The number of records of each file: int64."""


class InnerNode(Node):
    """A node with children, from which all of its records come."""

    @abstractmethod
    def child_range(self, slot: int, start: int, stop: int | None) -> tuple[int, int | None]:
        """Return the range of a child's positions that covers a range of this node's positions."""

    @abstractmethod
    def inverse(self, slot: int, positions: Int64s, within: SearchRange) -> Int64s:
        """Return the positions, among those searched, at which given positions of a child come.

        Each of the child's positions comes at none, one or several of these.
        """

    @cached
    def cache_bytes(self) -> int:
        """The largest cache of any child, in bytes."""
        return min(child.cache_bytes for child in each_once(self.children))

    def find_within(self, rows_of: RowsOf, within: SearchRange) -> Int64s:
        """Search the children and convert the found positions to positions of this node."""
        found = [np.empty(0, dtype=np.int64)]
        searched: dict[tuple[int, int, int | None], Int64s] = {}  # One child may stand in many slots.
        for slot, child in enumerate(self.children):
            start, stop = self.child_range(slot, within.start, within.stop)
            if (place := (id(child), start, stop)) not in searched:
                searched[place] = child.find_within(rows_of, SearchRange(start, stop, within.epochs))
            if searched[place].size:
                found.append(self.inverse(slot, searched[place], within))
        positions = np.sort(np.concatenate(found), kind="stable")  # np.unique takes ten times as long.
        positions = positions[np.diff(positions, prepend=-1) > 0]
        if positions.size > _MOST_FOUND:
            message = (
                f"the record stands at more than {_MOST_FOUND:,} positions of {self.in_words()[:200]}: "
                f"search in the dataset that is repeated there"
            )
            raise InvalidArgument(message)
        return positions[within.holds(positions)]

    def describe(self, upto: int | None) -> dict[str, Any]:
        """Return the node's kind and arguments, and its children's; see `described`."""
        return described(self, upto)

    @cached
    def scheduled(self) -> bool:
        """True if the arguments of this node, or of one below it, depend on the position."""
        for child in each_once(self.children):  # A generator would be one call more for each node of a chain.
            if child.scheduled:
                return True
        return self.arguments(0) != self.arguments(None)

    def schedule_key(self, upto: int) -> tuple[str, ...]:
        """Return a digest of the node's own arguments, then what the scheduled children return."""
        stages = [fingerprint_of(self.arguments(upto))]
        for slot, child in enumerate(self.children):
            last = self.child_range(slot, 0, upto)[1]
            if child.scheduled and last is not None:
                stages.extend(child.schedule_key(last))
        return tuple(stages)


class OrderNode(InnerNode, Routed):
    """A node that sends each position on to one child."""

    @abstractmethod
    def route_one(self, position: int) -> tuple[int, int]:
        """Return the slot of a child and the position there; like the router, but without arrays."""

    def record(self, position: int) -> Any:
        """Read the record of the child and position that a position is routed to."""
        slot, position = self.route_one(position)
        return self.children[slot].record(position)

    def first_of(self, position: int) -> tuple[Node, int] | None:
        """Return the child and position that a position is routed to."""
        slot, below = self.route_one(position)
        return self.children[slot], below

    def narrowed(self, columns: frozenset[str]) -> Self:
        """Return the same order over narrowed children."""
        below = {id(child): child.narrowed(columns) for child in each_once(self.children)}
        if all(below[id(child)] is child for child in self.children):
            return self
        return with_children(self, below)

    def declared(self) -> Mapping[str, Any] | None:
        """Return the columns of all children, each with a type that holds the values of every child."""
        return column_types.common_types([child.declared() for child in each_once(self.children)])

    @cached
    def batch_form(self) -> BatchForm:
        """The form of a batch of the children's records, or ``"python"`` if the children differ."""
        children = self.children
        if len(children) == 1:
            return children[0].batch_form
        forms = {child.batch_form for child in each_once(children)}
        return forms.pop() if len(forms) == 1 else "python"


class RecordNode(Node, Read):
    """A node that makes records of its own."""


class LeafNode(RecordNode):
    """A node that reads records from outside the graph; its epochs are all the same."""

    in_runs: ClassVar[bool] = True
    """True if blocks are runs of 1,024 rows that cross no file, so that a description alone has them."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of records of the source."""

    @property
    @abstractmethod
    def keys(self) -> Keys | None:
        """The keys of the records; None if the source was opened without any."""

    def keys_alone(self) -> tuple[Node, KeyOf]:
        """Return the source for the keys of its records alone, and what they are."""
        if self.keys is None:
            message = (
                f"keys() needs to know what the key of a record is, and {self!r} was opened without one: "
                f'sk.open(..., key="id"), or a function of the record'
            )
            raise InvalidArgument(message)
        of = self.keys.of
        source = source_of_keys(self.parts[0], of)
        return source.narrowed(frozenset([of])) if isinstance(of, str) else source, of

    @property
    def decodes_itself(self) -> bool:
        """True if no function of the user is called to make a record, unless it is corrupt."""
        return False

    @property
    def blocks_known(self) -> bool:
        """True if ``blocks`` are those of the records, which a description may lack."""
        return True

    @property
    def parts(self) -> tuple[LeafNode, ...]:
        """The sources that this one is made of, first that whose rows and keys it has; itself by default."""
        return (self,)

    @abstractmethod
    def rows_of(self, path: str, row: int) -> list[int]:
        """Return the rows of this source that are row ``row`` of the file ``path``."""

    @abstractmethod
    def named_files(self) -> NamedFiles:
        """Return the files whose rows are those of this source, as fingerprints know them."""

    @abstractmethod
    def close(self) -> None:
        """Close the files of the source. They are opened again when a record is read."""

    @property
    def children(self) -> tuple[Node, ...]:
        """An empty tuple: the records come from outside the graph."""
        return ()

    @property
    def steady(self) -> bool:
        """True: a source has one order."""
        return True

    @property
    def lanes(self) -> int:
        """1: the order of a source is the natural one."""
        return 1

    def describe(self, upto: int | None) -> dict[str, Any]:
        """Return the node's kind and arguments."""
        return {"kind": self.kind, **self.arguments(upto)}

    @property
    def scheduled(self) -> bool:
        """False: a source has no schedule."""
        return False

    def schedule_key(self, upto: int) -> tuple[str, ...]:
        """Return an empty key: a source has one description."""
        return ()

    def find_within(self, rows_of: RowsOf, within: SearchRange) -> Int64s:
        """Return the positions of the rows to find, in each epoch that the range touches."""
        return within.in_each_epoch(np.array(rows_of(self), dtype=np.int64), self.size)
