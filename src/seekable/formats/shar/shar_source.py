"""The source of Shar: cuts as JSON lines, and files of their fields beside them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast, final

import numpy as np

from seekable._cached import cached
from seekable._lazy import lazy
from seekable.errors import MissingDependency, WrongType
from seekable.formats.shar.cut import CUSTOM, held_by_cut
from seekable.formats.shar.discovery import CUTS
from seekable.formats.shar.shar_fields import LineReader, SharFields
from seekable.formats.shar.shar_pairs import Failed, PairReader
from seekable.nodes.compile import GatheredPlan
from seekable.nodes.files.byte_source import FileSource
from seekable.nodes.files.leaf import FilesLeaf, undecodable
from seekable.nodes.graph import Plan, Reader, held
from seekable.nodes.node import Leaf, Node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from seekable._typing import Int64s
    from seekable.formats.contract import OnError
    from seekable.formats.shar import lhotse_cuts
    from seekable.index.fileset import FileSet
    from seekable.nodes.files.leaf import Bad
    from seekable.nodes.graph import FileRanges, Origins
    from seekable.nodes.key import Keys
else:
    lhotse_cuts = lazy("seekable.formats.shar.lhotse_cuts")

__all__ = ["DataSource", "SharSource"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class SharSource(Leaf):
    """A source over a Shar: row ``r`` is cut ``r`` with row ``r`` of each field.

    Its rows are the rows of the files of cuts. Fields that no one uses are not read.
    """

    cuts: Node
    """The source of the cuts."""
    sources: tuple[Node, ...]
    """The source of each field, with as many rows in each file as the cuts have."""
    fields: tuple[str, ...]
    """The name of each field."""
    asked: str
    columns: tuple[str, ...] | None = None
    """The keys of cuts that records have, in their order, and names of custom fields; None for all."""
    needed: frozenset[str] | None = None
    """The keys of records that are used above; None for all. They are no part of the description."""
    errors: OnError | None = None
    as_cuts: bool = False
    """True if records are Cut objects of Lhotse."""

    kind: ClassVar[str] = "shar"

    @property
    def format(self) -> str:
        """The name of the format."""
        return "shar"

    @property
    def files(self) -> FileSet:
        """The files of the cuts."""
        return self.lines.files

    @property
    def lines(self) -> FileSource:
        """The source of the cuts."""
        return cast("FileSource", self.cuts)

    @property
    def parts(self) -> tuple[Leaf, ...]:
        """The source of the cuts, then that of each field."""
        return cast("tuple[Leaf, ...]", (self.cuts, *self.sources))

    @property
    def named_parts(self) -> list[tuple[str, Any]]:
        """The names ``"cuts"`` and those of the fields, each with its source."""
        return list(zip((CUTS, *self.fields), self.parts, strict=True))

    @property
    def size(self) -> int:
        """The number of records, which is that of the cuts in all shards."""
        return self.lines.size

    @property
    def blocks(self) -> Int64s:
        """The blocks of the cuts."""
        return self.cuts.blocks

    @property
    def cache_bytes(self) -> int:
        """The bytes that the operating system can cache."""
        return self.cuts.cache_bytes

    @property
    def keys(self) -> Keys | None:
        """The keys of the cuts."""
        return self.lines.keys

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the files of the cuts, the columns, and each field with its decoding and its files."""
        columns = {} if self.columns is None else {"columns": list(self.columns)}
        fields = [
            {"field": name, **source.arguments(upto)}
            for name, source in zip(self.fields, self.sources, strict=True)
        ]
        objects = {"records": "lhotse"} if self.as_cuts else {}
        return {**self.cuts.arguments(upto), **columns, **objects, "fields": fields}

    def shown(self, children: Sequence[str]) -> str:
        """Return the call of ``sk.open``."""
        columns = "" if self.columns is None else f", columns={list(self.columns)}"
        decode = ", decode='lhotse'" if self.as_cuts else ""
        return f"open({self.asked}{columns}{decode})"

    @classmethod
    def reader(cls, nodes: Sequence[SharSource]) -> Reader:
        """Return a reader that reads each Shar by itself, as each has fields of its own."""
        return _SharReader([node.reading for node in nodes])

    def record(self, position: int) -> Any:
        """Return the record at a position; positions go on over the epochs.

        Raises:
            CorruptRecord: the cut or a field cannot be read, or they are of different cuts, and the source
                has no ``errors``.
            IndexStale: a file has changed.
        """
        return self.reading.record(position % self.size)

    def rows_of(self, path: str, row: int) -> list[int]:
        """Return the rows, counted over all files, of a row in each file of that path, of cuts or a field."""
        return sorted({found for part in self.parts for found in part.rows_of(path, row)})

    def close(self) -> None:
        """Close the files of the source. They are opened again when a record is read."""
        for part in self.parts:
            part.close()

    def bad_rows(self, start: int, stop: int) -> Bad:
        """Return the records of some rows that cannot be decoded; any process can call it."""
        return undecodable(self, start, stop)

    def narrowed(self, columns: frozenset[str]) -> Self:
        """Return the source that reads only the fields that are below some keys of the cuts."""
        if self.as_cuts:
            return self
        needed = columns if self.needed is None else columns & self.needed
        return replace(self, needed=needed)

    def is_read(self, field: str) -> bool:
        """Return True if the files of a field are read."""
        held = held_by_cut(field)
        chosen = self.columns is None or not {field, held}.isdisjoint(self.columns)
        return chosen and (self.needed is None or held in self.needed)

    @cached
    def reading(self) -> Reading:
        """The cuts and the fields that are used, as they are read."""
        used = [
            LineReader(name, source)
            if isinstance(source, FileSource)
            else PairReader(name, cast("Any", source))
            for name, source in zip(self.fields, self.sources, strict=True)
            if self.is_read(name)
        ]
        lines = replace(self.lines, errors=Failed)
        make = lhotse_cuts.cut_from_record if self.as_cuts else None
        return Reading(lines, SharFields(lines, tuple(used)), self.columns, self.errors, make)


DataSource = FilesLeaf | SharSource
"""A source of data files, as ``sk.open`` makes it: of one set of files, or of the files of a Shar."""


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """The parts of a Shar that are read, and what records are made of them."""

    lines: FileSource
    fields: SharFields
    columns: tuple[str, ...] | None
    errors: OnError | None
    make: Callable[[dict[str, Any]], Any] | None
    """Makes the record of the dict of a cut; None if that is the record."""

    def record(self, row: int) -> Any:
        """Return the record of a row."""
        return self.made(self.lines.record(row), self.fields.one(row), row)

    def alone(self, cut: Any, row: int) -> Any:
        """Return the record of a cut where no field is read."""
        if type(cut) is dict and self.make is None:
            return cut if self.columns is None else self._chosen(cut)
        return self.made(cut, (), row)

    def made(self, cut: Any, values: Sequence[tuple[Any, int | None]], row: int) -> Any:
        """Return the record of a cut and the values of its fields; what ``errors`` returns, if that fails.

        Args:
            cut: the cut, or a failure.
            values: what the fields have in the row.
            row: the row of all of them.

        Raises:
            CorruptRecord: there is a failure, and no ``errors``.
        """
        made = self._made(self.fields.put(cut, values, row), row)
        if type(made) is Failed:
            if self.errors is None:
                raise made.error
            return self.errors(made.error)
        return made

    def _made(self, cut: Any, row: int) -> Any:
        """Return the record of a whole cut, or the failure of a cut that Lhotse does not take."""
        if type(cut) is Failed:
            return cut
        if self.columns is not None:
            cut = self._chosen(cut)
        if self.make is None:
            return cut
        try:
            return self.make(cut)
        except (MissingDependency, WrongType):
            raise
        except Exception as error:  # noqa: BLE001 - Lhotse raises errors of many types; the cause is kept
            return self.fields.failed(self.lines, row, error)

    def _chosen(self, cut: Mapping[str, Any]) -> dict[str, Any]:
        """Return the chosen columns of a cut, and its chosen custom fields below ``custom``."""
        columns = self.columns or ()
        found: dict[str, Any] = {}
        for name in columns:
            if name in cut:
                found[name] = cut[name]
            elif CUSTOM not in columns and name in (custom := cut.get(CUSTOM) or {}):
                found.setdefault(CUSTOM, {})[name] = custom[name]
        return found


class _SharReader(Reader):
    def __init__(self, readings: Sequence[Reading]) -> None:
        self._readings = readings

    def plan(self, which: Int64s, positions: Int64s) -> Plan:
        if which.size == 1:
            return self._plan(int(which[0]), positions)
        places = [(int(i), np.flatnonzero(which == i)) for i in np.unique(which)]
        return GatheredPlan(positions.size, tuple((at, self._plan(i, positions[at])) for i, at in places))

    def _plan(self, number: int, positions: Int64s) -> Plan:
        reading = self._readings[number]
        rows = positions % reading.lines.size
        fields = tuple(reader.source.plan(rows) for reader in reading.fields.readers)
        return _SharPlan(reading, rows, reading.lines.plan(rows), fields)


@dataclass(frozen=True, slots=True)
class _SharPlan(Plan):
    reading: Reading
    rows: Int64s
    lines: Plan
    fields: tuple[Plan, ...]
    """The plans of the fields, which say where their bytes are."""

    def __len__(self) -> int:
        return self.rows.size

    def slice(self, start: int, stop: int) -> Plan:
        fields = tuple(plan.slice(start, stop) for plan in self.fields)
        return _SharPlan(self.reading, self.rows[start:stop], self.lines.slice(start, stop), fields)

    def read(self) -> list[Any]:
        with held(self):
            return self._read()

    def _read(self) -> list[Any]:
        reading = self.reading
        cuts = self.lines.read()
        if not self.fields:
            return [reading.alone(cut, row) for cut, row in zip(cuts, self.rows.tolist(), strict=True)]
        values = reading.fields.values(self.rows)
        return [
            reading.made(cut, value, row)
            for cut, value, row in zip(cuts, values, self.rows.tolist(), strict=True)
        ]

    def locate(self) -> list[Any]:
        return self.lines.locate()

    def origins(self) -> Origins:
        return self.lines.origins()

    @property
    def paths(self) -> set[str]:
        return set().union(self.lines.paths, *(plan.paths for plan in self.fields))

    @property
    def from_stores(self) -> bool:
        return any(plan.from_stores for plan in (self.lines, *self.fields))

    def ranges(self) -> Iterator[FileRanges]:
        for plan in (self.lines, *self.fields):
            yield from plan.ranges()

    def advise(self) -> None:
        for plan in (self.lines, *self.fields):
            plan.advise()

    @property
    def bytes(self) -> int:
        return self.lines.bytes + sum(plan.bytes for plan in self.fields)
