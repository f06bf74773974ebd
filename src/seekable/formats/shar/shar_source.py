"""The source of Shar: cuts as JSON lines, and their fields from the files beside them."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import repeat
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, cast, final

import msgspec
import numpy as np

from seekable._cached import cached
from seekable._lazy import lazy
from seekable.errors import CorruptRecord, IndexStale, MissingDependency, WrongType
from seekable.formats.shar.shar_layout import (
    CUSTOM,
    CUTS,
    DATA,
    MANIFEST,
    NO_DATA,
    NO_MANIFEST,
    held_by_cut,
    set_field,
)
from seekable.formats.tar.field_decoders import field_decoder
from seekable.index.digest import key_hash
from seekable.nodes.compile import GatheredPlan
from seekable.nodes.files.byte_source import FileSource
from seekable.nodes.files.leaf import FilesLeaf, undecodable
from seekable.nodes.graph import Plan, Reader, held
from seekable.nodes.node import LeafNode, NamedFiles, Node
from seekable.storage.memory import DiskActivity, disk_reads
from seekable.storage.ranges import merge_near

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from seekable._typing import Int64s
    from seekable.formats.contract import OnError
    from seekable.formats.shar import lhotse_cuts
    from seekable.formats.tar.sample_source import SampleSource
    from seekable.index.fileset import FileSet
    from seekable.nodes.files.leaf import Bad
    from seekable.nodes.graph import FileRanges, Origins
    from seekable.nodes.key import Keys
    from seekable.storage.mapped import MappedFile

    Decode = Callable[[memoryview], Any]
    Members = Sequence[tuple[int, int, int]]
else:
    lhotse_cuts = lazy("seekable.formats.shar.lhotse_cuts")

__all__ = ["DataSource", "SharSource"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class SharSource(LeafNode):
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
    """The keys of records that are used above; None for all. They are not part of the description."""
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
    def parts(self) -> tuple[LeafNode, ...]:
        """The source of the cuts, then that of each field."""
        return cast("tuple[LeafNode, ...]", (self.cuts, *self.sources))

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
        """Return the rows over all files that a row in the files of a path is, cuts or a field."""
        return sorted({found for part in self.parts for found in part.rows_of(path, row)})

    def named_files(self) -> NamedFiles:
        """Return the files of the cuts as fingerprints know them."""
        return self.lines.named_files()

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
    def reading(self) -> _SharParts:
        """The cuts and the fields that are used, as they are read."""
        used = [
            _LineReader(name, source)
            if isinstance(source, FileSource)
            else _PairReader(name, cast("Any", source))
            for name, source in zip(self.fields, self.sources, strict=True)
            if self.is_read(name)
        ]
        lines = replace(self.lines, errors=_FailedValue)
        make = lhotse_cuts.cut_from_record if self.as_cuts else None
        return _SharParts(lines, _SharFields(lines, tuple(used)), self.columns, self.errors, make)


DataSource = FilesLeaf | SharSource
"""A source of data files, as ``sk.open`` makes it: of one set of files, or of the files of a Shar."""


@dataclass(frozen=True, slots=True, eq=False)
class _SharParts:
    """The parts of a Shar that are read, and what records are made of them."""

    lines: FileSource
    fields: _SharFields
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
        if type(made) is _FailedValue:
            if self.errors is None:
                raise made.error
            return self.errors(made.error)
        return made

    def _made(self, cut: Any, row: int) -> Any:
        """Return the record of a whole cut, or the failure of a cut that Lhotse does not take."""
        if type(cut) is _FailedValue:
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
    def __init__(self, readings: Sequence[_SharParts]) -> None:
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
    reading: _SharParts
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


@final
class _LineReader:
    """Reads the lines of one field; a value is the object of a line, or a `_FailedValue`."""

    def __init__(self, field: str, source: FileSource) -> None:
        """Take the source of a field; nothing is read."""
        self.field = field
        self.source = replace(source, errors=_FailedValue)

    def one(self, row: int) -> tuple[Any, None]:
        """Return the object of a row, counted over all files, and None: the object has the id itself."""
        return self.source.record(row), None

    def values(self, rows: Int64s) -> list[Any]:
        """Return the objects of some rows."""
        return self.source.fetch(rows)


@dataclass(frozen=True, eq=False)
class _SharFields:
    """The fields of a Shar that are read."""

    lines: FileSource
    """The source of the cuts."""

    readers: tuple[_PairReader | _LineReader, ...]
    """The reader of each field."""

    def one(self, row: int) -> list[tuple[Any, int | None]]:
        """Return the value of each field in a row, and the hash of the id that it has there."""
        return [reader.one(row) for reader in self.readers]

    def values(self, rows: Int64s) -> Iterable[Sequence[tuple[Any, int | None]]]:
        """Return what `one` does, for each of some rows."""
        if not self.readers:
            return repeat((), rows.size)
        columns = [
            zip(
                reader.values(rows),
                reader.hashes(rows) if isinstance(reader, _PairReader) else repeat(None, rows.size),
                strict=True,
            )
            for reader in self.readers
        ]
        return zip(*columns, strict=True)

    def put(self, cut: Any, values: Sequence[tuple[Any, int | None]], row: int) -> Any:
        """Return a cut with the values of its fields, or the `_FailedValue` of what is wrong.

        Args:
            cut: the cut, or a `_FailedValue`.
            values: what `one` returns for the row.
            row: the row of all of them, counted over all files.
        """
        if not values or type(cut) is _FailedValue:
            return cut
        if not isinstance(cut, dict) or not isinstance(cut.get("id"), str):
            return self.failed(self.lines, row, ValueError(f"expected a cut with an id (found {cut!r:.80})"))
        hashed = key_hash(cut["id"])
        for reader, (value, wanted) in zip(self.readers, values, strict=True):
            if wanted is not None and wanted != hashed:
                return self._of_another(reader, cut["id"], row)
            if type(value) is _FailedValue:
                return value
            try:
                if wanted is None:
                    self._put_line(cut, reader.field, value)
                elif value is not None:
                    set_field(cut, reader.field, value)
            except ValueError as error:
                return self.failed(reader.source, row, error)
        return cut

    def _put_line(self, cut: dict[str, Any], field: str, line: Any) -> None:
        """Put the value in a line of JSON into a cut; a line without a value changes nothing.

        Raises:
            ValueError: the line is of another cut.
        """
        name = cut["id"]
        of = line.get("cut_id") if isinstance(line, dict) else None
        if of != name:
            message = (
                f"the field {field!r} has a line of the cut {of!r}, and the cut of this row is {name!r}: the "
                f"files do not belong together, or lack a line"
            )
            raise ValueError(message)
        value = line.get(field)
        if value is not None:
            set_field(cut, field, value)

    def _of_another(self, reader: Any, name: str, row: int) -> _FailedValue:
        """Return the failure for a pair that belongs to another cut."""
        of = reader.source.key_at(row)
        (place,) = self.lines.plan(np.array([row], np.int64)).locate()
        what = (
            f"the field {reader.field!r} has a pair of the cut {of!r}, and the cut of this row is {name!r} "
            f"({place.path}: record {place.row} at byte {place.offset}): the files do not belong "
            f"together, or lack a pair"
        )
        return self.failed(reader.source, row, ValueError(what))

    def failed(self, source: Any, row: int, cause: Exception) -> _FailedValue:
        """Return the failure of a record of one source, with its place."""
        (place,) = source.plan(np.array([row], np.int64)).locate()
        error = CorruptRecord(
            place.path, place.row, offset=place.offset, length=place.length, preview=b"", cause=cause
        )
        error.__cause__ = cause
        return _FailedValue(error)


_PREVIEW_BYTES: Final = 80

_GAP_BYTES: Final = 64 << 10
"""Ranges of a file that are nearer than this are fetched in one go."""

_AS_MANIFEST: Final = msgspec.json.Decoder().decode
_LOOSELY: Final = field_decoder(MANIFEST).decode
"""Decodes what the standard of JSON does not know and Python's module reads, such as NaN."""


@dataclass(frozen=True, slots=True)
class _FailedValue:
    """Stands for a record that cannot be read."""

    error: CorruptRecord


class _BadPair(Exception):
    """Carries the member that cannot be decoded to where the file and the row are known."""

    def __init__(self, cause: Exception, offset: int, size: int) -> None:
        super().__init__(cause)
        self.cause, self.offset, self.size = cause, offset, size


@final
class _PairReader:
    """Reads the pairs of one field; never changed, safe from threads.

    A value is a manifest with the payload in it, None where a cut has no value, or a `_FailedValue`. Rows are
    counted over all files.
    """

    def __init__(self, field: str, source: SampleSource) -> None:
        """Take the source of a field, whose decoders and files are used; nothing is read."""
        self.field = field
        self.source = source
        self._files, self._words = source.files, source.words
        self._activity = DiskActivity()
        self._starts = source.files.starts.data
        self._schema_of: list[int] = source.words.schema_of.tolist()
        self._decoders = [
            tuple(_decoder_of(source, suffix) for suffix in schema.fields) for schema in source.words.schemas
        ]
        self._suffixes = [schema.fields for schema in source.words.schemas]

    def hashes(self, rows: Int64s) -> list[int]:
        """Return for each row the hash of the id of its pair; no data file is read."""
        found: list[int] = self.source.key_hashes(rows).tolist()
        return found

    def one(self, row: int) -> tuple[Any, int]:
        """Return a row's value, and the hash of its pair's id.

        Raises:
            IndexStale: the file has changed.
        """
        file = bisect_right(self._starts, row) - 1
        within = row - self._starts[file]
        mapped = self._files.mapped(file)
        mapped.check()
        value = self._value(file, within, mapped, self._words.of_sample(file, within))
        return value, self._words.key_hash(file, within)

    def values(self, rows: Int64s) -> list[Any]:
        """Return the values of ``rows`` in their order; files are read from start to end.

        Raises:
            IndexStale: a file has changed.
        """
        order = np.argsort(rows)
        ordered = rows[order]
        starts = self._files.starts
        files = np.searchsorted(starts, ordered, side="right") - 1
        within = ordered - starts[files]
        first, behind = self._words.first_members(files, within)
        if (behind - first != 2).any():  # noqa: PLR2004 - the members of a pair
            found = {row: self.one(row)[0] for row in set(rows.tolist())}
            return [found[row] for row in rows.tolist()]
        payloads, manifests = (self._words.members(files, first + number) for number in (0, 1))
        before = disk_reads()
        if self._activity.may_wait:
            merged = merge_near(files, payloads[0], manifests[0] + manifests[1], gap=_GAP_BYTES)
            for file, start, end in zip(*(column.tolist() for column in merged), strict=True):
                self._files.mapped(file).advise(start, end)
        members = [
            zip(*(column.tolist() for column in columns), strict=True) for columns in (payloads, manifests)
        ]
        out: list[Any] = [None] * rows.size
        current = -1
        for place, file, row, *pair in zip(
            order.tolist(), files.tolist(), within.tolist(), *members, strict=True
        ):
            if file != current:
                current, mapped = file, self._files.mapped(file)
                mapped.check()
            out[place] = self._value(file, row, mapped, pair)
        self._activity.note(disk_reads() - before)
        return out

    def _value(self, file: int, row: int, mapped: MappedFile, members: Members) -> Any:
        """Return the value of a pair, given the first byte, the size and the suffix of each member."""
        try:
            return self._decoded(self._schema_of[file], mapped.view, members)
        except _BadPair as bad:
            if isinstance(bad.cause, IndexStale | MissingDependency):
                raise bad.cause from None
            preview = bytes(mapped.view[bad.offset : bad.offset + min(bad.size, _PREVIEW_BYTES)])
            error = CorruptRecord(
                mapped.name, row, offset=bad.offset, length=bad.size, preview=preview, cause=bad.cause
            )
            error.__cause__ = bad.cause
            return _FailedValue(error)

    def _decoded(self, schema: int, view: Any, members: Members) -> Any:
        """Return the manifest of a pair with its payload in it; None for a pair that stands for no value.

        Raises:
            _BadPair: a member cannot be decoded, or is another one than a pair has.
        """
        if len(members) != 2:  # noqa: PLR2004 - the members of a pair
            return self._without_value(schema, members)
        (payload, size, number), (start, length, last) = members
        decode = self._decoders[schema][number]
        if decode is None or self._suffixes[schema][last] != MANIFEST:
            return self._without_value(schema, members)
        try:
            manifest = _manifest(view[start : start + length])
        except Exception as error:  # noqa: BLE001 - the cause is kept
            raise _BadPair(error, start, length) from None
        try:
            data = view[payload : payload + size]
            manifest[DATA] = decode.on(data, manifest) if isinstance(decode, _WithFrames) else decode(data)
        except Exception as error:  # noqa: BLE001 - a user's function may raise anything; its cause is kept
            raise _BadPair(error, payload, size) from None
        return manifest

    def _without_value(self, schema: int, members: Members) -> None:
        """Check that a pair stands for no value.

        Raises:
            _BadPair: its members are others than ``.nodata`` and ``.nometa``.
        """
        suffixes = [self._suffixes[schema][number] for _, _, number in members]
        if suffixes == [NO_DATA, NO_MANIFEST]:
            return
        message = (
            f"expected a payload and its manifest, .json, or .nodata and .nometa; found "
            f"{', '.join(f'.{suffix}' for suffix in suffixes) or 'no member'}"
        )
        start, size, _ = members[0] if members else (0, 0, 0)
        raise _BadPair(ValueError(message), start, size)


def _manifest(view: memoryview) -> dict[str, Any]:
    """Return the object of a manifest.

    Raises:
        ValueError: it is not an object of JSON.
    """
    try:
        manifest = _AS_MANIFEST(view)
    except (msgspec.DecodeError, UnicodeDecodeError):
        manifest = _LOOSELY(view)
    if not isinstance(manifest, dict):
        message = f"expected the manifest of a value, an object (found {manifest!r:.80})"
        raise ValueError(message)  # noqa: TRY004 - it is the data that is wrong
    return manifest


def _decoder_of(source: SampleSource, suffix: str) -> Decode | _WithFrames | None:
    """Return the decoder of payloads of a suffix; None for members that are not payloads."""
    if suffix in {MANIFEST, NO_DATA, NO_MANIFEST}:
        return None
    decoder = source.decoders.of(suffix)
    return _WithFrames(decoder.decode) if decoder.ranged else decoder.decode


@dataclass(frozen=True, slots=True)
class _WithFrames:
    """A decoder of audio that refuses a payload with fewer frames than its manifest promises."""

    decode: Callable[..., Any]

    def on(self, view: memoryview, manifest: dict[str, Any]) -> Any:
        """Return the audio of a payload."""
        frames, rate = manifest.get("num_samples"), manifest.get("sampling_rate")
        if isinstance(frames, int) and isinstance(rate, int):
            return self.decode(view, frames=frames, rate=rate)
        return self.decode(view)
