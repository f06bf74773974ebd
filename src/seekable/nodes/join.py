"""Joins: records of two datasets that have the same key, put together."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, final

import numpy as np

from seekable._cached import cached
from seekable.errors import BadValue, InvalidArgument
from seekable.nodes.cluster_files import check_seen
from seekable.nodes.columns.names import checked_names, must_have
from seekable.nodes.compile import CompiledGraph, GatheredPlan
from seekable.nodes.display import describe_place
from seekable.nodes.graph import Plan, Reader, held, known_size, must_be_steady
from seekable.nodes.hole import HOLE
from seekable.nodes.join_matching import Duplicates, How, Matching, right_keys
from seekable.nodes.node import InnerNode, Node, RecordNode
from seekable.nodes.saved_rows import KeptRows, keep_unnamed
from seekable.parallel.map_ranges import execution_options, map_ranges
from seekable.parallel.progress import watched

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from concurrent.futures import Executor

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.nodes.graph import FileRanges, SearchRange
    from seekable.nodes.provenance import Origins
    from seekable.parallel.progress import ProgressHook


__all__ = ["Join", "joined"]

_ONLY_ROOT = np.zeros(1, dtype=np.int64)


def joined(  # noqa: PLR0913 - what `sk.join` is given, all of it required
    left: Node,
    right: Node,
    *,
    on: str | Sequence[str],
    how: How,
    duplicates: Duplicates,
    missing: Literal["allow", "error"],
    suffix: str | None,
    jobs: int | None,
    executor: Executor | None,
    progress: ProgressHook | None,
) -> Join:
    """Read the keys of two nodes and return the pairs of rows that match; see ``sk.join``."""
    names = checked_names("join(on=)", [on] if isinstance(on, str) else on)
    _check(left, right, names, how=how, duplicates=duplicates, missing=missing, suffix=suffix)
    for side in (left, right):
        must_have(side, "join()", names)
    using = execution_options(jobs, executor, at_once=True)
    check_seen(executor, left, right)
    size = known_size(left, "join()")
    keys = right_keys(right, names, known_size(right, "join()"), using=using, columns=how == "left")
    only = frozenset(names)
    job = Matching(
        left.narrowed(only), right.narrowed(only), names, keys, how, duplicates, missing == "error"
    )
    lefts, rights = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    with (
        watched(progress, task="joining", rows=size) as watch,
        contextlib.closing(map_ranges(job, size, using=using)) as runs,
    ):
        for done, (some, matched) in runs:
            watch(done)
            lefts.append(some)
            rights.append(matched)
    columns = tuple(name for name in keys.columns if name not in names) if how == "left" else ()
    return Join(left, right, names, how, suffix, keep_unnamed(lefts), keep_unnamed(rights), columns)


def _check(
    left: Node,
    right: Node,
    on: tuple[str, ...],
    *,
    how: object,
    duplicates: object,
    missing: object,
    suffix: object,
) -> None:
    for side in (left, right):
        known_size(side, "join()")
        must_be_steady(side, "join()")
    if not on:
        message = "join(on=) needs at least one column (got none)"
        raise InvalidArgument(message)
    if suffix is not None and (not isinstance(suffix, str) or not suffix):
        message = f"join(suffix=) must be a text that is not empty (got {suffix!r})"
        raise InvalidArgument(message)
    for name, value, allowed in (
        ("how", how, ("inner", "left")),
        ("duplicates", duplicates, ("error", "first", "all")),
        ("missing", missing, ("allow", "error")),
    ):
        if value not in allowed:
            message = f"join({name}=) must be one of {', '.join(map(repr, allowed))} (got {value!r})"
            raise InvalidArgument(message)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Join(InnerNode, RecordNode):
    """Row ``r`` is row ``rows[r]`` of the left, with the columns of row ``matched[r]`` of the right added."""

    left: Node
    right: Node
    on: tuple[str, ...]
    how: How
    suffix: str | None
    rows: KeptRows
    matched: KeptRows
    """Row numbers of the right; 2**64 - 1, which reads as -1, for a row of the left without a match."""
    columns: tuple[str, ...]
    """The columns that are None in records of the left without a match."""

    kind: ClassVar[str] = "join"
    counted: ClassVar[bool] = True
    order_unknown: ClassVar[str] = (
        "the description has a digest of the rows that were matched, and not the rows"
    )

    @property
    def children(self) -> tuple[Node, ...]:
        """The left node, then the right node."""
        return self.left, self.right

    @property
    def size(self) -> int:
        """The number of pairs of rows."""
        return self.rows.count

    @property
    def steady(self) -> bool:
        """True: the pairs are the same in every epoch."""
        return True

    @property
    def blocks(self) -> Int64s:
        """The blocks of the left, with the pairs of their rows."""
        return np.unique(np.searchsorted(self.rows.array, self.left.blocks))

    @property
    def lanes(self) -> int:
        """1: pairs come from any lane of the left."""
        return 1

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the key, the added columns, and the pairs by count and digest."""
        return {
            "on": list(self.on),
            "how": self.how,
            "suffix": self.suffix,
            "columns": list(self.columns),
            "count": self.size,
            "rows": self.rows.digest,
            "matched": self.matched.digest,
        }

    def shown(self, children: Sequence[str]) -> str:
        """Return the expression of the call of ``join``."""
        on = repr(self.on[0]) if len(self.on) == 1 else repr(list(self.on))
        return f"join({children[0]}, {children[1]}, on={on}, how={self.how!r})"

    @classmethod
    def reader(cls, nodes: Sequence[Join]) -> Reader:
        """Return a reader that plans both sides of each node separately."""
        return _JoinReader(nodes)

    def record(self, position: int) -> Any:
        """Read one record of each side and join them."""
        row = position % self.size
        matched = int(self.matched.array[row])
        left = self.left.record(self.rows.view[row])
        return self.joined(left, None if matched < 0 else self.right.record(matched), position)

    def joined(self, left: Any, right: Any, position: int) -> Any:
        """Return one record made of two; ``right`` is None for a row of the left without a match.

        Raises:
            BadValue: both records have a column of one name, and there is no suffix.
        """
        if left is HOLE or right is HOLE:
            return HOLE
        made = dict(left)
        for name, value in (self._nothing if right is None else right).items():
            if name in self.on:
                continue
            called = name if name not in left or self.suffix is None else name + self.suffix
            if called in made:
                place = describe_place(self.left, int(self.rows.view[position % self.size]))
                message = (
                    f"{place}: both sides of join() have a column {called!r}: say suffix= "
                    f"(another one), or rename or drop the column of one side"
                )
                raise BadValue(message)
            made[called] = value
        return made

    def first_of(self, position: int) -> tuple[Node, int] | None:
        """Return the left dataset and the row of it that a record has."""
        return self.children[0], int(self.rows.view[position % self.size])

    def child_range(self, slot: int, start: int, stop: int | None) -> tuple[int, int | None]:
        """Return the range of one epoch of the child, because all its epochs are equal."""
        return 0, self.children[slot].size

    def inverse(self, slot: int, positions: Int64s, within: SearchRange) -> Int64s:
        """Return the positions of all pairs that hold the given rows, in each epoch."""
        order, found = self._sorted_left if slot == 0 else self._sorted_right
        first = np.searchsorted(found, positions, side="left")
        counts = np.searchsorted(found, positions, side="right") - first
        offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return within.in_each_epoch(order[np.repeat(first, counts) + offsets], self.size)

    def narrowed(self, columns: frozenset[str]) -> Self:
        """Return the join of both sides narrowed to the used columns and the key."""
        suffix = self.suffix or ""
        bare = {name.removesuffix(suffix) for name in columns if suffix and name.endswith(suffix)}
        below = columns.union(self.on, bare)
        left, right = self.left.narrowed(below), self.right.narrowed(below)
        if left is self.left and right is self.right:
            return self
        return replace(self, left=left, right=right)

    def declared(self) -> Mapping[str, Any] | None:
        """Return the declared columns of both sides; None if one side declares none."""
        left, right = self.left.declared(), self.right.declared()
        if left is None or right is None:
            return None
        called = {name: f"{name}{self.suffix or ''}" if name in left else name for name in right}
        return {**left, **{called[name]: kind for name, kind in right.items() if name not in self.on}}

    @cached
    def _nothing(self) -> dict[str, None]:
        return dict.fromkeys(self.columns)

    @cached
    def _sorted_left(self) -> tuple[Int64s, Int64s]:
        return np.arange(self.size, dtype=np.int64), self.rows.array

    @cached
    def _sorted_right(self) -> tuple[Int64s, Int64s]:
        order = np.argsort(self.matched.array, kind="stable").astype(np.int64)
        return order, self.matched.array[order]


class _JoinReader(Reader):
    def __init__(self, nodes: Sequence[Join]) -> None:
        self._nodes = nodes
        self._sides = [(CompiledGraph([node.left]), CompiledGraph([node.right])) for node in nodes]

    def plan(self, which: Int64s, positions: Int64s) -> Plan:
        if which.size == 1:
            return self._joined(int(which[0]), positions)
        places = [(int(i), np.flatnonzero(which == i)) for i in np.unique(which)]
        return GatheredPlan(positions.size, tuple((at, self._joined(i, positions[at])) for i, at in places))

    def _joined(self, i: int, positions: Int64s) -> Plan:
        node, (left, right) = self._nodes[i], self._sides[i]
        rows = positions % node.size
        matched = node.matched.array[rows]
        there = np.flatnonzero(matched >= 0)
        return _JoinPlan(
            node,
            positions,
            left.plan(_ONLY_ROOT, node.rows.array[rows]),
            there,
            right.plan(_ONLY_ROOT, matched[there]),
        )


@dataclass(frozen=True, slots=True)
class _JoinPlan(Plan):
    node: Join
    positions: Int64s
    left: Plan
    there: NDArray[np.intp]
    """The indices of the positions that have a match on the right."""
    right: Plan

    def __len__(self) -> int:
        return self.positions.size

    def slice(self, start: int, stop: int) -> Plan:
        first, last = (int(at) for at in np.searchsorted(self.there, (start, stop)))
        return _JoinPlan(
            self.node,
            self.positions[start:stop],
            self.left.slice(start, stop),
            self.there[first:last] - start,
            self.right.slice(first, last),
        )

    def read(self) -> list[Any]:
        with held(self):
            rights, lefts = self._spread(self.right.read()), self.left.read()
        positions = self.positions.tolist()
        return [
            self.node.joined(left, right, position)
            for left, right, position in zip(lefts, rights, positions, strict=True)
        ]

    def locate(self) -> list[Any]:
        rights = self._spread(self.right.locate())
        pairs = zip(self.left.locate(), rights, strict=True)
        return [(left,) if right is None else (left, right) for left, right in pairs]

    def origins(self) -> Origins:
        return self.left.origins()

    @property
    def paths(self) -> set[str]:
        return self.left.paths | self.right.paths

    @property
    def from_stores(self) -> bool:
        return self.left.from_stores or self.right.from_stores

    def ranges(self) -> Iterator[FileRanges]:
        yield from self.left.ranges()
        yield from self.right.ranges()

    def advise(self) -> None:
        self.left.advise()
        self.right.advise()

    @property
    def bytes(self) -> int:
        return self.left.bytes + self.right.bytes

    def _spread(self, items: list[Any]) -> list[Any]:
        out: list[Any] = [None] * len(self)
        for place, item in zip(self.there.tolist(), items, strict=True):
            out[place] = item
        return out
