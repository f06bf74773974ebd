"""Sibling archives: samples whose fields lie in several tar files, put together by their keys."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast, final

import numpy as np

from seekable._cached import cached
from seekable.errors import InvalidArgument, WrongType
from seekable.formats.tar.sample_records import FILE_COLUMN
from seekable.formats.tar.sample_source import SampleSource
from seekable.formats.tar.sibling_rows import SiblingRows, matched_rows
from seekable.nodes.compile import CompiledGraph, GatheredPlan
from seekable.nodes.display import describe_place
from seekable.nodes.graph import HOLE, Origins, Plan, Reader, held, of_places
from seekable.nodes.key import SAMPLE_KEY
from seekable.nodes.node import InnerNode, Node, RecordNode
from seekable.order.blocks import default_blocks_within

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.nodes.graph import FileRanges, SearchRange
    from seekable.nodes.key import KeyOf

__all__ = ["Siblings", "columns_of_sides"]

_ONLY_ROOT = np.zeros(1, dtype=np.int64)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Siblings(InnerNode, RecordNode):
    """Record ``r`` has the fields of all sides, for the key of its row.

    Which rows go together is computed from the index of the sides, and is neither pickled nor described.
    """

    sides: tuple[Node, ...]
    """The archives, each a `SampleSource`."""

    names: tuple[str, ...]
    """The name of each side, as the caller gave it."""

    suffixes: tuple[str, ...]
    """What is appended to a field of each side that another side has too; empty for nothing."""

    columns: tuple[str, ...] | None
    """The columns that the caller named, in their order; None for the key and all fields."""

    fills: bool
    """True if fields of a side that lacks a sample are None."""

    only: frozenset[str] | None = None
    """The columns that are used above; None for all. They are no part of the description."""

    kind: ClassVar[str] = "siblings"
    order_unknown: ClassVar[str] = (
        "the description has a digest of each archive, and not the rows that were matched"
    )

    def __post_init__(self) -> None:
        """Check that the sides are archives, and that no two columns have one name.

        Raises:
            InvalidArgument: a side is something else, or two columns have one name.
        """
        for side in self.sides:
            if not isinstance(side, SampleSource):
                message = f"sibling archives must be tar files of samples (got {side!r})"
                raise InvalidArgument(message)
        seen: dict[str, str] = {}
        for name, called in zip(self.names, self.called, strict=True):
            for field, column in called.items():
                wanted = self.columns is None or column in self.columns
                if wanted and seen.setdefault(column, name) != name:
                    message = (
                        f"{seen[column]!r} and {name!r} both have a field {field!r}, which would be the "
                        f"column {column!r}: say "
                        f"sk.formats.Tar(suffix={{{name!r}: '_{name}'}}) (another one), or leave the "
                        f"column out with columns="
                    )
                    raise InvalidArgument(message)

    @property
    def archives(self) -> tuple[SampleSource, ...]:
        """The sides as sources of samples, in their order."""
        return cast("tuple[SampleSource, ...]", self.sides)

    @property
    def children(self) -> tuple[Node, ...]:
        """The sides, in their order."""
        return self.sides

    @cached
    def called(self) -> tuple[dict[str, str], ...]:
        """For each side the column of each of its fields, in the order of the fields."""
        return columns_of_sides(self.archives, self.suffixes)

    @cached
    def matched(self) -> SiblingRows:
        """The rows that go together."""
        return matched_rows(self.archives, self.names, fills=self.fills)

    @cached
    def size(self) -> int:
        """The number of records, one for each group of rows that go together."""
        return int(self.matched.counts.sum())

    @property
    def steady(self) -> bool:
        """True: the rows that go together are the same in every epoch."""
        return True

    @cached
    def blocks(self) -> Int64s:
        """The edges of blocks of 1,024 rows, int64; no block holds rows of two shards."""
        return default_blocks_within(self.matched.counts)

    @property
    def lanes(self) -> int:
        """1: the order of the archives is the natural one."""
        return 1

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the sides by name, the suffixes, the columns, the rule for missing samples, and the size."""
        return {
            "sides": list(self.names),
            "suffixes": list(self.suffixes),
            "columns": None if self.columns is None else list(self.columns),
            "missing": "none" if self.fills else "error",
            "count": self.size,
        }

    def shown(self, children: Sequence[str]) -> str:
        """Return the call of ``sk.open``."""
        sides = ", ".join(
            f"{name!r}: {side.asked}" for name, side in zip(self.names, self.archives, strict=True)
        )
        columns = "" if self.columns is None else f", columns={list(self.columns)}"
        return f"open({{{sides}}}{columns}{', missing=' + repr('none') if self.fills else ''})"

    @classmethod
    def reader(cls, nodes: Sequence[Siblings]) -> Reader:
        """Return a reader that plans the sides of each node separately."""
        return _SiblingsReader(nodes)

    def record(self, position: int) -> Any:
        """Read one record of each side that is used, and put them together.

        Raises:
            CorruptRecord: a field cannot be decoded or is missing, and the side has no ``errors``.
            IndexStale: a file has changed.
        """
        row = position % self.size
        parts: list[Any] = []
        for number, side in enumerate(self.reading):
            below = self.row_of(number, row)
            parts.append(None if side is None or below < 0 else side.record(below))
        return self.together(parts, row)

    def row_of(self, number: int, row: int) -> int:
        """Return the row of a side that a record has; -1 if the side lacks it."""
        of_side = self.matched.of_side
        return row if of_side is None else int(of_side[number][row])

    @cached
    def reading(self) -> tuple[SampleSource | None, ...]:
        """The sides, narrowed to the fields that are used; None for a side of which nothing is."""
        found: list[SampleSource | None] = []
        for number, side in enumerate(self.archives):
            fields = {field for field, column in self.called[number].items() if self.has(column)}
            # Where row r is row r of every side, the first one has the keys of all.
            if self.has(SAMPLE_KEY) and (number == 0 or self.matched.of_side is not None):
                fields.add(SAMPLE_KEY)
            if side.decoders.with_url and self.has(FILE_COLUMN):
                fields.add(FILE_COLUMN)
            found.append(side.narrowed(frozenset(fields)) if fields else None)
        return tuple(found)

    def has(self, column: str) -> bool:
        """Return True if records have a column, and it is used above."""
        return (self.columns is None or column in self.columns) and (self.only is None or column in self.only)

    def together(self, parts: Sequence[Any], row: int) -> Any:
        """Return one record made of those of the sides; None for a side that is not read or lacks it.

        Raises:
            WrongType: ``errors`` gave something else than a dict for a sample.
        """
        made: dict[Any, Any] = {SAMPLE_KEY: None} if self.has(SAMPLE_KEY) else {}
        for part, called, nothing in zip(parts, self.called, self._nothing, strict=True):
            if part is HOLE:
                return HOLE
            if part is None:
                made.update(nothing)
            elif isinstance(part, dict):
                made.update({called.get(name, name): value for name, value in part.items()})
            else:
                message = f"{describe_place(self, row)}: errors= must give a dict or sk.HOLE (got {part!r})"
                raise WrongType(message)
        if self.columns is None:
            return made
        return {name: made[name] for name in self.columns if name in made}

    def first_of(self, position: int) -> tuple[Node, int] | None:
        """Return the first side that has a record of a row, and the row there."""
        rows = [self.row_of(number, position % self.size) for number in range(len(self.sides))]
        number = next(number for number, row in enumerate(rows) if row >= 0)
        return self.sides[number], rows[number]

    def child_range(self, slot: int, start: int, stop: int | None) -> tuple[int, int | None]:
        """Return the range of one epoch of the side, because all its epochs are equal."""
        return 0, self.children[slot].size

    def inverse(self, slot: int, positions: Int64s, within: SearchRange) -> Int64s:
        """Return the positions of the records that have the given rows, in each epoch."""
        of_side = self.matched.of_side
        if of_side is not None:
            order = np.argsort(of_side[slot], kind="stable").astype(np.int64)
            positions = order[np.searchsorted(of_side[slot], positions, sorter=order)]
        return within.in_each_epoch(np.sort(positions), self.size)

    def narrowed(self, columns: frozenset[str]) -> Self:
        """Return the node for some columns; a side of which no field is used is not read."""
        only = columns if self.only is None else columns & self.only
        return self if only == self.only else self._with(only=only)

    def keys_alone(self) -> tuple[Node, KeyOf]:
        """Return the node for keys alone, for which no field is read, whatever columns the caller named."""
        key = (SAMPLE_KEY,)
        sides = tuple(replace(side, columns=key, needed=None) for side in self.archives)
        return self._with(sides=sides, columns=key, only=None), SAMPLE_KEY

    def _with(self, **fields: Any) -> Self:
        """Return a node with other fields whose records are made of the same rows."""
        made = replace(self, **fields)
        vars(made)["matched"] = self.matched
        return made

    def declared(self) -> Mapping[str, Any] | None:
        """Return the names of the columns; their types only records show. None without a sample."""
        if self.columns is not None:
            return dict.fromkeys(self.columns)
        if not self.size:
            return None
        with_file = any(side.decoders.with_url for side in self.archives)
        columns = [column for called in self.called for column in called.values()]
        return dict.fromkeys([SAMPLE_KEY, *([FILE_COLUMN] if with_file else []), *columns])

    @cached
    def _nothing(self) -> tuple[dict[str, None], ...]:
        """For each side the columns of a sample that it lacks, each None; none for a side without a gap."""
        of_side = self.matched.of_side
        return tuple(
            dict.fromkeys(column for column in called.values() if of_side is not None and self.has(column))
            for called in self.called
        )


def columns_of_sides(sides: Sequence[SampleSource], suffixes: Sequence[str]) -> tuple[dict[str, str], ...]:
    """Return for each side the column of each of its fields, in the order of the fields.

    Args:
        sides: the archives.
        suffixes: what is appended to a field of each side that another side has too.
    """
    fields = [side.fields for side in sides]
    shared = {name for own in fields for name in own if sum(name in other for other in fields) > 1}
    return tuple(
        {name: name + suffix if name in shared else name for name in own}
        for own, suffix in zip(fields, suffixes, strict=True)
    )


class _SiblingsReader(Reader):
    def __init__(self, nodes: Sequence[Siblings]) -> None:
        self._nodes = nodes
        self._sides = [
            [None if side is None else CompiledGraph([side]) for side in node.reading] for node in nodes
        ]

    def plan(self, which: Int64s, positions: Int64s) -> Plan:
        if which.size == 1:
            return self._planned(int(which[0]), positions)
        places = [(int(i), np.flatnonzero(which == i)) for i in np.unique(which)]
        return GatheredPlan(positions.size, tuple((at, self._planned(i, positions[at])) for i, at in places))

    def _planned(self, i: int, positions: Int64s) -> Plan:
        node = self._nodes[i]
        rows = positions % node.size
        sides = [
            None if side is None else _planned_side(node, number, side, rows)
            for number, side in enumerate(self._sides[i])
        ]
        return _SiblingsPlan(node, rows, tuple(sides))


def _planned_side(node: Siblings, number: int, side: CompiledGraph, rows: Int64s) -> _SidePlan:
    of_side = node.matched.of_side
    if of_side is None:
        return _SidePlan(side.plan(_ONLY_ROOT, rows), None)
    below = of_side[number][rows]
    there = np.flatnonzero(below >= 0)
    return _SidePlan(side.plan(_ONLY_ROOT, below[there]), there)


@dataclass(frozen=True, slots=True)
class _SidePlan:
    """The plan of one side, and the indices of the records that it has; None for all."""

    plan: Plan
    there: NDArray[np.intp] | None

    def slice(self, start: int, stop: int) -> _SidePlan:
        if self.there is None:
            return _SidePlan(self.plan.slice(start, stop), None)
        first, last = (int(at) for at in np.searchsorted(self.there, (start, stop)))
        return _SidePlan(self.plan.slice(first, last), self.there[first:last] - start)

    def spread(self, items: list[Any], count: int) -> list[Any]:
        """Return the items at their indices, None elsewhere."""
        if self.there is None:
            return items
        out: list[Any] = [None] * count
        for place, item in zip(self.there.tolist(), items, strict=True):
            out[place] = item
        return out


@dataclass(frozen=True, slots=True)
class _SiblingsPlan(Plan):
    node: Siblings
    rows: Int64s
    sides: tuple[_SidePlan | None, ...]
    """The plans of the sides; None for a side that is not read."""

    def __len__(self) -> int:
        return self.rows.size

    def slice(self, start: int, stop: int) -> Plan:
        sides = tuple(None if side is None else side.slice(start, stop) for side in self.sides)
        return _SiblingsPlan(self.node, self.rows[start:stop], sides)

    def read(self) -> list[Any]:
        count = len(self)
        with held(self):
            parts = [
                [None] * count if side is None else side.spread(side.plan.read(), count)
                for side in self.sides
            ]
        rows = self.rows.tolist()
        return [
            self.node.together(of_row, row)
            for row, of_row in zip(rows, zip(*parts, strict=True), strict=True)
        ]

    def locate(self) -> list[Any]:
        """Return a tuple for each record: the location of each side's sample, in the order of the sides."""
        parts = []
        for number, archive in enumerate(self.node.archives):
            side = _planned_side(self.node, number, CompiledGraph([archive]), self.rows)
            parts.append(side.spread(side.plan.locate(), len(self)))
        return [tuple(place for place in of_row if place is not None) for of_row in zip(*parts, strict=True)]

    def origins(self) -> Origins:
        """Return the origins of the samples of the first side that has each."""
        if self.node.matched.of_side is None:
            return self.node.archives[0].plan(self.rows).origins()
        return of_places([places[0] for places in self.locate()])

    @property
    def paths(self) -> set[str]:
        return set().union(*(side.plan.paths for side in self.sides if side is not None))

    @property
    def from_stores(self) -> bool:
        return any(side.plan.from_stores for side in self.sides if side is not None)

    def ranges(self) -> Iterator[FileRanges]:
        for side in self.sides:
            if side is not None:
                yield from side.plan.ranges()

    def advise(self) -> None:
        for side in self.sides:
            if side is not None:
                side.plan.advise()

    @property
    def bytes(self) -> int:
        return sum(side.plan.bytes for side in self.sides if side is not None)
