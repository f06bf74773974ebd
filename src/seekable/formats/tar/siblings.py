"""Sibling archives: samples whose fields lie in several tar files, put together by their keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast, final

import numpy as np

from seekable._cached import cached
from seekable.errors import InvalidArgument, UnsupportedFormat, WrongType
from seekable.formats.tar.field_decoders import check_fields, checked_decode
from seekable.formats.tar.sample_source import FILE_COLUMN, SampleSource
from seekable.nodes.columns.names import checked_names
from seekable.nodes.compile import CompiledGraph, GatheredPlan
from seekable.nodes.display import describe_place
from seekable.nodes.graph import HOLE, Origins, Plan, Reader, held, of_places
from seekable.nodes.key import SAMPLE_KEY
from seekable.nodes.node import InnerNode, Node, RecordNode
from seekable.order.blocks import default_blocks_within

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.contract import Opening
    from seekable.formats.tar.field_decoders import FieldDecoders
    from seekable.nodes.graph import FileRanges, SearchRange
    from seekable.nodes.key import KeyOf

    UInt64s = NDArray[np.uint64]

__all__ = ["Siblings", "matched_rows", "open_siblings"]

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
    """The columns that are used above; None for all. They are not part of the description."""

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
        """For each side the columns by field, in the order of the fields."""
        return _columns_of_sides(self.archives, self.suffixes)

    @cached
    def matched(self) -> _SiblingRows:
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
        """The edges of blocks with 1,024 rows, int64; a block lies in one shard."""
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


def _columns_of_sides(sides: Sequence[SampleSource], suffixes: Sequence[str]) -> tuple[dict[str, str], ...]:
    """Return for each side the columns by field, in the order of the fields.

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


_WAY_OUT = "sk.join(sk.open(...), sk.open(...), on='__key__') matches samples by key between any shards"


@dataclass(frozen=True, slots=True, eq=False)
class _SiblingRows:
    """The rows of all sides that make each record."""

    counts: Int64s
    """The number of records of each shard: int64."""

    of_side: tuple[Int64s, ...] | None
    """For each side the row of each record, -1 where it lacks the record; None if row ``r`` is row ``r`` of
    every side."""


def matched_rows(sides: Sequence[SampleSource], names: Sequence[str], *, fills: bool) -> _SiblingRows:
    """Return the rows that go together; no data file is read, but for the keys that an error names.

    Args:
        sides: the archives.
        names: the name of each side, for messages.
        fills: True if a side may lack a record.

    Raises:
        UnsupportedFormat: the numbers of shards differ, a side lacks a record, or a shard whose rows are
            matched by key has a key twice.
    """
    _check_shards(sides, names)
    first, others = sides[0], sides[1:]
    if all(np.array_equal(side.files.records, first.files.records) for side in others) and all(
        np.array_equal(side.words.key_hashes_of(shard), first.words.key_hashes_of(shard))
        for shard in range(len(first.files))
        for side in others
    ):
        return _SiblingRows(first.files.records, None)
    found: list[list[Int64s]] = [[np.empty(0, np.int64)] for _ in sides]
    counts = np.zeros(len(first.files), np.int64)
    for shard in range(len(first.files)):
        matched = _matched_in_shard(sides, names, shard, fills=fills)
        counts[shard] = len(matched[0])
        for side, rows, all_rows in zip(sides, matched, found, strict=True):
            all_rows.append(np.where(rows < 0, rows, rows + int(side.files.starts[shard])))
    return _SiblingRows(counts, tuple(np.concatenate(rows) for rows in found))


def _check_shards(sides: Sequence[SampleSource], names: Sequence[str]) -> None:
    shards = [len(side.files) for side in sides]
    if len(set(shards)) > 1:
        counts = ", ".join(f"{name!r} has {count:,}" for name, count in zip(names, shards, strict=True))
        message = (
            f"sibling archives go together shard by shard, and their numbers of shards differ: {counts}. "
            f"{_WAY_OUT}"
        )
        raise UnsupportedFormat(message)


def _matched_in_shard(
    sides: Sequence[SampleSource], names: Sequence[str], shard: int, *, fills: bool
) -> list[Int64s]:
    """Return the rows of one shard for each side, counted in the shard; -1 where a side lacks a record."""
    hashes = [side.words.key_hashes_of(shard) for side in sides]
    if all(np.array_equal(each, hashes[0]) for each in hashes[1:]):
        return [np.arange(len(hashes[0]), dtype=np.int64)] * len(sides)
    for number, each in enumerate(hashes):
        _check_unique(sides[number], names[number], shard, each)
    together = hashes[0]
    for each in hashes[1:]:
        together = np.concatenate([together, each[~np.isin(each, together, kind="sort")]])
    matched = [_rows_of(together, each) for each in hashes]
    for number, rows in enumerate(matched):
        if not fills and (rows < 0).any():
            raise UnsupportedFormat(_lacking(sides, names, shard, matched, number))
    return matched


def _check_unique(side: SampleSource, name: str, shard: int, hashes: UInt64s) -> None:
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    again = np.flatnonzero(ordered[1:] == ordered[:-1])
    if not again.size:
        return
    rows = sorted(order[again[0] : again[0] + 2].tolist())
    key = side.key_at(int(side.files.starts[shard]) + rows[0])
    message = (
        f"{side.files.shown_path(shard)} ({name!r}): rows {rows[0]} and {rows[1]} have the key {key!r}. The "
        f"archives have other keys in this shard, or another order of them, so that samples are matched by "
        f"key: make the keys unique, or write the samples of all archives in one order"
    )
    raise UnsupportedFormat(message)


def _rows_of(wanted: UInt64s, hashes: UInt64s) -> Int64s:
    """Return the row of each wanted hash, -1 where there is none."""
    if not hashes.size:
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(hashes, kind="stable").astype(np.int64)
    places = np.minimum(np.searchsorted(hashes[order], wanted), len(hashes) - 1)
    return np.where(hashes[order[places]] == wanted, order[places], -1)


def _lacking(
    sides: Sequence[SampleSource], names: Sequence[str], shard: int, matched: Sequence[Int64s], number: int
) -> str:
    """Return the message for a side that lacks records of a shard."""
    lacks = np.flatnonzero(matched[number] < 0)
    other = next(at for at, rows in enumerate(matched) if rows[lacks[0]] >= 0)
    row = int(matched[other][lacks[0]])
    key = sides[other].key_at(int(sides[other].files.starts[shard]) + row)
    return (
        f"{sides[number].files.shown_path(shard)} ({names[number]!r}) lacks {len(lacks):,} "
        f"sample{'s' * (len(lacks) != 1)} of {sides[other].files.shown_path(shard)} ({names[other]!r}); the "
        f"first is row {row}, key {key!r}. sk.formats.Tar(missing='none') delivers None for the fields of a "
        f"sample that is missing; {_WAY_OUT}"
    )


def open_siblings(
    sources: Mapping[str, Any],
    opening: Opening,
    given: Any,
    *,
    suffix: str | Mapping[str, str] | None,
    fills: bool,
) -> Siblings:
    """Return the node whose records have the fields of several archives.

    Args:
        sources: the source of each side, by a name of the caller's choice.
        opening: opens each of them, with payloads that are bytes.
        given: the format of each side; None to find it.
        suffix: that option of ``sk.formats.Tar``.
        fills: True if fields that a sample lacks are None.

    Raises:
        InvalidArgument: a side is not a tar file of samples, two columns have one name, or there is no such
            column.
        UnsupportedFormat: samples of the sides do not go together, or a field is pickled.
        WrongType: an argument is of another type.
    """
    names, reading = _checked_sides(sources), opening.reading
    if opening.key is not None:
        message = f"key= is for one source, and samples of archives have the key {SAMPLE_KEY!r}: leave it out"
        raise InvalidArgument(message)
    suffixes = _suffixes(names, suffix)
    decoders = checked_decode(reading.decode)
    columns = None if reading.columns is None else checked_names("columns", reading.columns)
    sides = [_archive(name, opening.side(sources[name], given)) for name in names]
    made = _with_options(sides, _columns_of_sides(sides, suffixes), decoders, columns, fills=fills)
    node = Siblings(made, names, suffixes, columns, fills)
    # The number of records comes from matching the samples: those that do not go together are found here.
    if node.size:
        _check_fields(node, decoders)
    return node


def _checked_sides(sources: Mapping[Any, Any]) -> tuple[str, ...]:
    if not sources:
        message = "a dict of archives needs at least one (got an empty dict)"
        raise InvalidArgument(message)
    for name in sources:
        if not isinstance(name, str) or not name:
            message = f"the keys of a dict of archives must be names (got {name!r})"
            raise WrongType(message)
    return tuple(sources)


def _suffixes(names: tuple[str, ...], suffix: str | Mapping[str, str] | None) -> tuple[str, ...]:
    """Return the suffix of each side; a text is that of every side but the first."""
    if suffix is None:
        return ("",) * len(names)
    by_name = suffix if isinstance(suffix, Mapping) else dict.fromkeys(names[1:], suffix)
    if unknown := [name for name in by_name if name not in names]:
        message = f"suffix has {unknown[0]!r}, and the archives are {', '.join(map(repr, names))}"
        raise InvalidArgument(message)
    return tuple(by_name.get(name, "") for name in names)


def _archive(name: str, node: Node) -> SampleSource:
    if not isinstance(node, SampleSource):
        message = (
            f"a dict is for sibling archives, tar files of samples, and {name!r} is {node!r}: "
            f"sk.join(a, b, on=...) and sk.zip(a, b) put other data together"
        )
        raise InvalidArgument(message)
    return node


def _with_options(
    sides: Sequence[SampleSource],
    called: Sequence[Mapping[str, str]],
    decoders: FieldDecoders,
    columns: tuple[str, ...] | None,
    *,
    fills: bool,
) -> tuple[SampleSource, ...]:
    """Return the sides with the columns and the decoders that the caller asks for.

    Raises:
        InvalidArgument: no side has a column.
    """
    files = {FILE_COLUMN: FILE_COLUMN} if decoders.with_url else {}
    there = [SAMPLE_KEY, *files, *(column for own in called for column in own.values())]
    if lost := [name for name in columns or () if name not in there and any(side.size for side in sides)]:
        message = f"no sample has a field {lost[0]!r}; there are {', '.join(map(repr, there))}"
        raise InvalidArgument(message)
    made = []
    for number, (side, own) in enumerate(zip(sides, called, strict=True)):
        field_of = {column: field for field, column in own.items()} | {SAMPLE_KEY: SAMPLE_KEY}
        # The file of a record is that of the first side, and the other decoders are the same without it.
        own_decoders = checked_decode(None) if number and decoders.with_url else decoders
        if not number:
            field_of |= files
        names = None if columns is None else tuple(field_of[name] for name in columns if name in field_of)
        made.append(replace(side, columns=names, decoders=own_decoders, fills=fills))
    return tuple(made)


def _check_fields(node: Siblings, decoders: FieldDecoders) -> None:
    """Refuse fields that will not be decoded, and names in ``decode=`` that no side has."""
    fields = [field for side in node.archives for field in side.fields]
    for side, own in zip(node.archives, node.called, strict=True):
        wanted = [field for field, column in own.items() if node.has(column)]
        check_fields(wanted, decoders, fields=fields, where=side.asked)
