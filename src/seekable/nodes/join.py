"""Joins: records of two datasets that have the same key, put together.

Rows are matched by the hash of each key of the right first, then by the keys themselves.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, final

import numpy as np
import xxhash

from seekable._cached import cached
from seekable.errors import AmbiguousKey, BadKey, BadValue, InvalidArgument, KeyNotFound, WrongType
from seekable.index.digest import key_hash
from seekable.nodes.columns.names import checked_names, must_have
from seekable.nodes.compile import CompiledGraph, GatheredPlan
from seekable.nodes.display import describe_place
from seekable.nodes.evaluated import check_seen
from seekable.nodes.graph import HOLE, JointPlan, Plan, Reader, held, known_size, must_be_steady
from seekable.nodes.key import is_key
from seekable.nodes.node import InnerNode, Node, RecordNode
from seekable.nodes.readahead import read_rows
from seekable.nodes.saved_rows import KeptRows, keep_unnamed
from seekable.order.arrays import present
from seekable.parallel.map_ranges import execution_options, map_ranges
from seekable.parallel.progress import watched

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from concurrent.futures import Executor

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.nodes.graph import Origins, SearchRange
    from seekable.parallel.map_ranges import ExecutionOptions
    from seekable.parallel.progress import ProgressChoice

    UInt64s = NDArray[np.uint64]

__all__ = ["Duplicates", "How", "Join", "Matching", "RightKeys", "joined", "right_keys"]

How = Literal["inner", "left"]
Duplicates = Literal["error", "first", "all"]
Key = tuple[str | int, ...]

_AT_ONCE = 4096
"""The number of keys that are looked up together."""


@dataclass(frozen=True, slots=True)
class RightKeys:
    """The keys of the right dataset, sorted by hash."""

    hashes: UInt64s
    """The hash of each key: uint64, ascending."""

    rows: Int64s
    """The row of each key: int64, ascending among equal hashes."""

    columns: tuple[str, ...]
    """All columns of the right's records, in the order of their first appearance."""


def right_keys(
    right: Node, on: tuple[str, ...], size: int, *, using: ExecutionOptions, columns: bool
) -> RightKeys:
    """Read the keys of all records of the right and return them sorted by hash.

    Args:
        right: the right dataset.
        on: the columns of the key.
        size: the number of records of ``right``.
        using: the processes or executor that read the records.
        columns: True to collect the names of all columns too.

    Raises:
        BadKey: a key is neither a str nor an int.
    """
    must_have(right, "join()", on)
    declared = right.declared()
    job = _RightHashing(right if columns and declared is None else right.narrowed(frozenset(on)), on)
    hashes, rows, names = [np.empty(0, dtype=np.uint64)], [np.empty(0, dtype=np.int64)], dict[str, None]()
    with contextlib.closing(map_ranges(job, size, using=using)) as runs:
        for _, (some_hashes, some_rows, some_names) in runs:
            hashes.append(some_hashes)
            rows.append(some_rows)
            names |= dict.fromkeys(some_names)
    together, of_rows = np.concatenate(hashes), np.concatenate(rows)
    order = np.argsort(together, kind="stable")
    return RightKeys(together[order], of_rows[order], tuple(names if declared is None else declared))


@dataclass(frozen=True, slots=True)
class _RightHashing:
    """A picklable job that hashes the keys of a range of rows and leaves out records without a key."""

    dataset: Node
    on: tuple[str, ...]

    def __call__(self, start: int, stop: int) -> tuple[UInt64s, Int64s, tuple[str, ...]]:
        hashes: list[int] = []
        rows: list[int] = []
        names: dict[str, None] = {}
        for first, records in read_rows(self.dataset, np.arange(start, stop, dtype=np.int64)):
            for row, record in enumerate(records, start=start + first):
                key = _key(self.dataset, record, self.on, row)
                if record is not HOLE:
                    names.update(dict.fromkeys(record))
                if key is not None:
                    hashes.append(_hash(key))
                    rows.append(row)
        return np.array(hashes, dtype=np.uint64), np.array(rows, dtype=np.int64), tuple(names)


@dataclass(frozen=True, slots=True)
class Matching:
    """A picklable job that finds the pairs for a range of rows of the left.

    A row of the left without a match has -1. Rows of the left ascend, repeated once for each match.
    """

    left: Node
    right: Node
    """The left and right datasets, narrowed to the columns of the key."""

    on: tuple[str, ...]
    keys: RightKeys
    how: How
    duplicates: Duplicates
    must_match: bool

    def __call__(self, start: int, stop: int) -> tuple[Int64s, Int64s]:
        """Return the rows of the left and their matches on the right, for rows ``start`` to ``stop``."""
        left: list[int] = []
        right: list[int] = []
        for row, key, rows in self._candidates(start, stop):
            if not rows:
                if self.must_match and key is not HOLE:
                    raise KeyNotFound(self._not_found(row, key))
                if self.how == "left" or key is HOLE:
                    left.append(row)
                    right.append(-1)
                continue
            if len(rows) > 1 and self.duplicates == "error":
                raise AmbiguousKey(self._ambiguous(row, key, rows))
            matched = rows if self.duplicates == "all" else rows[:1]
            left += [row] * len(matched)
            right += matched
        return np.array(left, dtype=np.int64), np.array(right, dtype=np.int64)

    def _candidates(self, start: int, stop: int) -> Iterator[tuple[int, Any, list[int]]]:
        """Yield each row of the left, its key, and the rows of the right that have it.

        The key is None for a record without one, and ``HOLE`` for a hole.
        """
        for at in range(start, stop, _AT_ONCE):
            read = read_rows(self.left, np.arange(at, min(at + _AT_ONCE, stop), dtype=np.int64))
            records = [record for _, some in read for record in some]
            keys = [_key(self.left, record, self.on, row) for row, record in enumerate(records, start=at)]
            hashes = np.array([0 if key is None else _hash(key) for key in keys], dtype=np.uint64)
            lows = np.searchsorted(self.keys.hashes, hashes, side="left").tolist()
            highs = np.searchsorted(self.keys.hashes, hashes, side="right").tolist()
            rows = [
                [] if key is None else self.keys.rows[low:high].tolist()
                for key, low, high in zip(keys, lows, highs, strict=True)
            ]
            found = self._right_keys(sorted({row for some in rows for row in some}))
            for i, (key, some) in enumerate(zip(keys, rows, strict=True)):
                matched = HOLE if records[i] is HOLE else key
                yield at + i, matched, [row for row in some if found[row] == key]

    def _right_keys(self, rows: list[int]) -> dict[int, Key | None]:
        found: dict[int, Key | None] = {}
        for first, records in read_rows(self.right, np.array(rows, dtype=np.int64)):
            for row, record in zip(rows[first : first + len(records)], records, strict=True):
                found[row] = _key(self.right, record, self.on, row)
        return found

    def _not_found(self, row: int, key: Key | None) -> str:
        place = describe_place(self.left, row)
        if key is None:
            return f"{place} has no {self._names}, and join(missing='error') wants a match for each record"
        return f"{place}: no record of the right side has {self._names} {_shown(key)}"

    def _ambiguous(self, row: int, key: Key, rows: Sequence[int]) -> str:
        places = ", ".join(describe_place(self.right, some) for some in rows[:2])
        more = f" and {len(rows) - 2:,} more" if len(rows) > 2 else ""  # noqa: PLR2004 - two were named
        return (
            f"{describe_place(self.left, row)}: {len(rows):,} records of the right side have {self._names} "
            f"{_shown(key)}: {places}{more}. Say duplicates='first' to take the first of them, or 'all' for "
            f"a record with each"
        )

    @property
    def _names(self) -> str:
        return " and ".join(map(repr, self.on))


def _key(dataset: Node, record: Any, on: tuple[str, ...], row: int) -> Key | None:
    """Return the key of a record; None if one of its columns is absent or None."""
    if record is HOLE:
        return None
    if not isinstance(record, dict):
        message = (
            f"{describe_place(dataset, row)}: join() takes records that are dicts "
            f"(got a {type(record).__name__})"
        )
        raise WrongType(message)
    key = []
    for name in on:
        value = record.get(name)
        if value is None:
            return None
        if isinstance(value, np.integer):
            value = int(value)
        if not is_key(value):
            message = (
                f"{describe_place(dataset, row)}: the column {name!r} has {value!r} of type "
                f"{type(value).__name__}, and join() needs a str or an int there: cast it first"
            )
            raise BadKey(message)
        key.append(value)
    return tuple(key)


def _hash(key: Key) -> int:
    if len(key) == 1:
        return key_hash(key[0])
    return xxhash.xxh3_64_intdigest(b"".join(key_hash(part).to_bytes(8, "little") for part in key))


def _shown(key: Key) -> str:
    return " and ".join(map(repr, key))


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
    progress: ProgressChoice,
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
    """Row ``r`` is row ``rows[r]`` on the left, with the columns of row ``matched[r]`` on the right added."""

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
        places = [(i, np.flatnonzero(which == i)) for i in present(which)]
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
class _JoinPlan(JointPlan):
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
    def below(self) -> tuple[Plan, ...]:
        return self.left, self.right

    def _spread(self, items: list[Any]) -> list[Any]:
        out: list[Any] = [None] * len(self)
        for place, item in zip(self.there.tolist(), items, strict=True):
            out[place] = item
        return out
