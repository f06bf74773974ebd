"""Flattening: no item, one item or several items made of each record, which are counted once."""

from __future__ import annotations

import contextlib
import threading
from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from seekable._cached import cached
from seekable.errors import BadValue, WrongType
from seekable.index.location import shared
from seekable.nodes.compile import CompiledGraph, GatheredPlan
from seekable.nodes.display import add_place, describe_place
from seekable.nodes.evaluated import Evaluated, Evaluation, evaluated_rows
from seekable.nodes.graph import HOLE, ChildPlan, Origins, Plan, Reader
from seekable.nodes.node import Node, RecordNode
from seekable.nodes.readahead import read_rows
from seekable.order.arrays import present
from seekable.parallel.map_ranges import map_ranges
from seekable.state.functions import code_digest, describe_function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.nodes.evaluated import EvaluationOptions
    from seekable.nodes.graph import SearchRange
    from seekable.nodes.saved_rows import KeptRows
    from seekable.parallel.map_ranges import ExecutionOptions
    from seekable.parallel.progress import Watch

    ToItems = Callable[[Any], Iterable[Any]] | None

__all__ = ["FlattenNode", "flattened"]

_ONLY_ROOT = np.zeros(1, dtype=np.int64)


def flattened(child: Node, fn: ToItems, version: str | int | None, running: EvaluationOptions) -> Node:
    """Return a node of the items of all records; see ``Dataset.flatten``."""
    items = _FlatItems(child, fn, version)
    code = None if fn is None or version is not None or running.save is None else code_digest(fn)
    question = Evaluation("flatten", "flattening", {"name": None, **items.function}, code)

    def find(size: int, using: ExecutionOptions, watch: Watch) -> Iterator[Int64s]:
        before = 0
        with contextlib.closing(map_ranges(items, size, using=using)) as found:
            for done, counts in found:
                watch(done)
                yield np.repeat(np.arange(before, done, dtype=np.int64), counts)
                before = done

    return FlattenNode(child, fn, version, evaluated_rows(child, question, find, running))


@dataclass(frozen=True, slots=True)
class _FlatItems:
    """The items of records; as a picklable job it counts the items in a range of rows."""

    child: Node
    fn: ToItems
    version: str | int | None

    @property
    def function(self) -> dict[str, Any]:
        """The name and version of the function, JSON-safe; empty without a function."""
        return {} if self.fn is None else describe_function(self.fn, self.version)

    @property
    def call(self) -> str:
        """The expression of the call of ``flatten``."""
        return f"flatten({self.function.get('name', '')})"

    def __call__(self, start: int, stop: int) -> NDArray[Any]:
        counts: list[int] = []
        for before, records in read_rows(self.child, np.arange(start, stop, dtype=np.int64)):
            counts += [len(self.of(record, start + before + i)) for i, record in enumerate(records)]
        # In the fewest bytes, because workers send them.
        return np.array(counts, dtype=np.min_scalar_type(max(counts, default=0)))

    def of(self, record: Any, row: int) -> list[Any]:
        """Return the items of a record, as a list that must not be changed; a hole is its own item.

        Raises:
            WrongType: the function's result, or without a function the record, is not iterable.
        """
        if record is HOLE:
            return [record]
        try:
            made = record if self.fn is None else self.fn(record)
            if type(made) is list:
                return made
            if hasattr(made, "__iter__") or hasattr(made, "__getitem__"):
                return list(made)
        except Exception as error:
            add_place(error, f"{self.call} of {self.child!r}", self.child, row)
            raise
        message = (
            f"{describe_place(self.child, row)}: {self.call} must make a list of items of a record, or "
            f"anything iterable (got {made!r:.60} of type {type(made).__name__})"
        )
        raise WrongType(message)


@final
@dataclass(frozen=True, eq=False, repr=False)
class FlattenNode(Evaluated, RecordNode):
    """Row ``r`` is item ``k`` of the child's row ``rows[r]``, where ``k`` equal rows come before ``r``."""

    child: Node
    fn: ToItems
    version: str | int | None
    rows: KeptRows

    kind: ClassVar[str] = "flatten"
    counted: ClassVar[bool] = True
    order_unknown: ClassVar[str] = (
        "the description has a digest of the rows that have items, and not the rows"
    )

    @property
    def size(self) -> int:
        """The number of items of all records."""
        return self.rows.count

    @property
    def steady(self) -> bool:
        """True: the child is steady, and its records have the same items in every epoch."""
        return True

    @property
    def blocks(self) -> Int64s:
        """The child's blocks, with the items of their records."""
        return np.unique(np.searchsorted(self.rows.array, self.child.blocks))

    @property
    def lanes(self) -> int:
        """1: records come from any lane of the child."""
        return 1

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the function's name, and the count and digest of the items' rows."""
        return {"fn": self.items.function or None, "count": self.size, "rows": self.rows.digest}

    def shown(self, children: Sequence[str]) -> str:
        """Return the expression of the call of ``flatten``."""
        return f"{children[0]}.{self.items.call}"

    @classmethod
    def reader(cls, nodes: Sequence[FlattenNode]) -> Reader:
        """Return a reader that plans the child of each node separately."""
        return _FlattenReader(nodes)

    def record(self, position: int) -> Any:
        """Return one item; its record is read unless an item before it was the last that this thread read."""
        place = position % self.size
        rows = self.rows.view
        row = rows[place]
        first = bisect_left(rows, row, hi=place)
        items = self.left_of(row, place - first)
        if items is None:
            items = self.items_of(row, bisect_right(rows, row, lo=place) - first)
        self.leave(row, place - first + 1, items)
        return items[place - first]

    def first_of(self, position: int) -> tuple[Node, int] | None:
        """Return the child and the row of it that an item is made of."""
        return self.children[0], int(self.rows.view[position % self.size])

    def child_range(self, slot: int, start: int, stop: int | None) -> tuple[int, int | None]:
        """Return the range of one epoch of the child, because all its epochs are equal."""
        return 0, self.child.size

    def inverse(self, slot: int, positions: Int64s, within: SearchRange) -> Int64s:
        """Return the positions of all items of the child's rows, in each epoch."""
        first = np.searchsorted(self.rows.array, positions, side="left")
        counts = np.searchsorted(self.rows.array, positions, side="right") - first
        numbers = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return within.in_each_epoch(np.repeat(first, counts) + numbers, self.size)

    @cached
    def items(self) -> _FlatItems:
        """The items of the child's records."""
        return _FlatItems(self.child, self.fn, self.version)

    def items_of(self, row: int, count: int) -> list[Any]:
        """Read a record of the child and return its items; see ``checked``."""
        return self.checked(self.items.of(self.child.record(row), row), row, count)

    def checked(self, items: list[Any], row: int, count: int) -> list[Any]:
        """Return the items of a record of the child, if they are as many as when all items were counted.

        Raises:
            BadValue: they are not.
        """
        if len(items) != count:
            message = (
                f"{describe_place(self.child, row)}: {self.items.call} made {count:,} items of this record "
                f"when items were counted, and makes {len(items):,} now: the function must make the same "
                f"items each time, of the same data. Flatten again, with another file as save="
            )
            raise BadValue(message)
        return items

    def left_of(self, row: int, number: int) -> list[Any] | None:
        """Return the items of a row if this thread read them last, and none from ``number`` on."""
        left: _Left | None = getattr(self._local, "left", None)
        return left.items if left is not None and left.row == row and left.first <= number else None

    def leave(self, row: int, first: int, items: list[Any]) -> None:
        """Keep the items of a row for this thread's next read, if those from ``first`` on are unread."""
        self._local.left = _Left(row, first, items) if first < len(items) else None

    @cached
    def _local(self) -> threading.local:
        return threading.local()


@dataclass(frozen=True, slots=True)
class _Left:
    """The items of a row that were made; each is given once, so that no two readers share one."""

    row: int
    first: int
    """The index of the first item that was not given."""
    items: list[Any]


class _FlattenReader(Reader):
    def __init__(self, nodes: Sequence[FlattenNode]) -> None:
        self._nodes = nodes
        self._children = [CompiledGraph([node.child]) for node in nodes]

    def plan(self, which: Int64s, positions: Int64s) -> Plan:
        if which.size == 1:
            return self._planned(int(which[0]), positions)
        places = [(i, np.flatnonzero(which == i)) for i in present(which)]
        return GatheredPlan(positions.size, tuple((at, self._planned(i, positions[at])) for i, at in places))

    def _planned(self, i: int, positions: Int64s) -> Plan:
        node, rows = self._nodes[i], self._nodes[i].rows.array
        numbers = positions % node.size
        below = rows[numbers]
        goes_on = (below[1:] == below[:-1]) & (numbers[1:] == numbers[:-1] + 1)
        starts = np.flatnonzero(np.concatenate([[True], ~goes_on]))
        below = below[starts]
        first = np.searchsorted(rows, below, side="left")
        last = numbers[np.append(starts[1:], positions.size) - 1] - first + 1
        return _FlattenPlan(
            node,
            [*starts.tolist(), positions.size],
            below.tolist(),
            (numbers[starts] - first).tolist(),
            last.tolist(),
            (np.searchsorted(rows, below, side="right") - first).tolist(),
            self._children[i].plan(_ONLY_ROOT, below),
        )


@dataclass(frozen=True, slots=True)
class _FlattenPlan(ChildPlan):
    """Runs of consecutive items, each from one record; lists that are cheap to slice."""

    node: FlattenNode
    edges: list[int]
    """The place of the first item of each run, from any number on, then the place after the last item."""
    rows: list[int]
    """The child's row of each run."""
    first: list[int]
    """The number among its record's items of the first item of each run."""
    stops: list[int]
    """The number after that of the last item of each run."""
    counts: list[int]
    """The number of items of each run's record."""
    child: Plan
    """The plan of the record of each run."""

    def __len__(self) -> int:
        return self.edges[-1] - self.edges[0]

    def slice(self, start: int, stop: int) -> Plan:
        if start == stop:
            return _FlattenPlan(self.node, [0], [], [], [], [], self.child.slice(0, 0))
        start, stop = start + self.edges[0], stop + self.edges[0]
        low, high = bisect_right(self.edges, start) - 1, bisect_left(self.edges, stop)
        edges, first, stops = self.edges[low : high + 1], self.first[low:high], self.stops[low:high]
        first[0] += start - edges[0]
        stops[-1] -= edges[-1] - stop
        edges[0], edges[-1] = start, stop
        counts, child = self.counts[low:high], self.child.slice(low, high)
        return _FlattenPlan(self.node, edges, self.rows[low:high], first, stops, counts, child)

    def read(self) -> list[Any]:
        node, rows = self.node, self.rows
        if not rows:
            return []
        several, of = _Several(node, rows), node.items.of
        made = node.left_of(rows[0], self.first[0])
        items = [] if made is None else made[self.first[0] : self.stops[0]]
        begun = made is not None
        records = (self.child.slice(1, len(rows)) if begun else self.child).read()
        runs = zip(rows, self.first, self.stops, self.counts, strict=True)
        shared = several.rows
        for record, (row, first, stop, count) in zip(records, islice(runs, begun, None), strict=True):
            if shared and row in shared:
                made = None
                items += several.taken(record, row, count, range(first, stop))
                continue
            made = of(record, row)
            if len(made) != count:
                node.checked(made, row, count)
            items += made if stop - first == count else made[first:stop]
        node.leave(rows[-1], self.stops[-1], [] if made is None else made)
        return items

    def locate(self) -> list[Any]:
        lengths = map(int.__sub__, self.edges[1:], self.edges)
        places = map(shared, self.child.locate())
        return [place for place, n in zip(places, lengths, strict=True) for place in [place] * n]

    def origins(self) -> Origins:
        lengths, below = np.diff(self.edges), self.child.origins()
        files, rows = np.repeat(below.files, lengths), np.repeat(below.rows, lengths)
        return Origins(below.paths, below.names, files, rows)


class _Several:
    """The items of records that come in several runs of one read: each record's are made once.

    An item that is asked for twice is made twice, so that no two items are one object.
    """

    def __init__(self, node: FlattenNode, rows: list[int]) -> None:
        self._node = node
        self.rows = (
            frozenset(row for row, runs in Counter(rows).items() if runs > 1)
            if len(set(rows)) < len(rows)
            else frozenset[int]()
        )
        """The rows that come in several runs."""
        self._left: dict[int, dict[int, Any]] = {}
        """For each row the items that were made and not taken, by number."""

    def taken(self, record: Any, row: int, count: int, numbers: range) -> Iterator[Any]:
        """Yield items of a record, made from the given record or from the same record read again."""
        if row not in self._left:
            self._left[row] = dict(
                enumerate(self._node.checked(self._node.items.of(record, row), row, count))
            )
        for number in numbers:
            if number not in self._left[row]:
                self._left[row] = dict(enumerate(self._node.items_of(row, count)))
            yield self._left[row].pop(number)
