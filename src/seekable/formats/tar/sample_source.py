"""The source of samples in tar files, those of WebDataset, Energon and Lhotse Shar: how they are read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self, final

import numpy as np

from seekable._cached import cached
from seekable.errors import CorruptRecord, IndexStale, InvalidArgument, MissingColumn, MissingDependency
from seekable.formats.tar.field_decoders import FieldDecoders, check_fields
from seekable.formats.tar.header import BLOCK_BYTES, NAME_BYTES, member_name
from seekable.formats.tar.samples import split_name
from seekable.formats.tar.tar_words import MemberWords, TarSurveyor, sample_rule_of
from seekable.index.fileset import combine
from seekable.index.key_files import keys_of_samples
from seekable.index.location import Location
from seekable.nodes.files.leaf import OwnKeys, RunsLeaf
from seekable.nodes.graph import FileRanges, Origins, Plan, Reader, held, of_files
from seekable.nodes.key import SAMPLE_KEY, KeyIn
from seekable.nodes.map import Map
from seekable.state.functions import describe_function
from seekable.storage.memory import DiskActivity, disk_reads
from seekable.storage.ranges import merge_near

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.contract import OnError
    from seekable.formats.tar.samples import SampleRule
    from seekable.index.fileset import FileSet
    from seekable.index.finder import Finder
    from seekable.nodes.key import KeyOf, Keys
    from seekable.nodes.node import Node
    from seekable.storage.mapped import MappedFile, View

__all__ = ["FILE_COLUMN", "SampleSource", "check_columns"]


_GAP_BYTES = 4 << 10
"""Ranges of a file that are nearer than this are fetched in one go: two members with headers between them."""


FILE_COLUMN = "__url__"
"""The column that has the path of the file, where records are those of webdataset."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class SampleSource(RunsLeaf):
    """A source over indexed tar files: row ``r`` is sample ``r``, one file after another."""

    files: FileSet
    format: str
    decoders: FieldDecoders
    asked: str
    columns: tuple[str, ...] | None = None
    """The columns that the user named, in their order; None for the key and all fields of each sample."""
    needed: frozenset[str] | None = None
    """The columns that are used above; None for all. They are not part of the description."""
    fills: bool = False
    """True if a column of ``columns`` that a sample lacks is None."""
    version: str | int | None = None
    keys: Keys | None = None
    errors: OnError | None = None

    kind: ClassVar[str] = "samples"

    @cached
    def words(self) -> MemberWords:
        """The members of all samples."""
        return MemberWords(self.files)

    @cached
    def fields(self) -> tuple[str, ...]:
        """The names of the fields of all files, in the order in which they come first."""
        return tuple(dict.fromkeys(name for schema in self.words.schemas for name in schema.fields))

    @property
    def finder(self) -> Finder:
        """The surveyor that found the samples."""
        return TarSurveyor(self.format)

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the format, the decoding, the columns, and every file by name, size, records and digests."""
        columns = {} if self.columns is None else {"columns": list(self.columns)}
        missing = {"missing": "none"} if self.fills else {}
        decode = self.described_decode(describe_function)
        return {
            "format": self.format,
            "decode": decode,
            **columns,
            **missing,
            "files": self.files.described(),
        }

    def shown(self, children: Sequence[str]) -> str:
        """Return the call of ``sk.open``."""
        columns = "" if self.columns is None else f", columns={list(self.columns)}"
        missing = ", missing='none'" if self.fills else ""
        options = self.shown_options(SAMPLE_KEY)
        return f"open({self.asked}{columns}{_shown_decode(self.decoders)}{missing}{options})"

    @classmethod
    def reader(cls, nodes: Sequence[SampleSource]) -> Reader:
        """Return a reader that reads the files of all nodes as one source."""
        return _SamplesReader(nodes)

    def record_of(self, file: int, row: int) -> Any:
        """Return the sample of a row of a file.

        Raises:
            CorruptRecord: a field cannot be decoded or is missing, and the source has no ``errors``.
            IndexStale: the file has changed.
        """
        mapped = self.files.mapped(file)
        mapped.check()
        start, shape = self.files.range(file, row)[0], self.shapes[self._schema_of[file]]
        try:
            return _made_record(shape, mapped, start, self.words.of_sample(file, row))
        except _FieldError as error:
            return _recovered_sample(self.errors, error, mapped, start, row=row, rule=shape.rule)

    def described_decode(self, describe: Callable[..., dict[str, Any]]) -> Any:
        """Return what decides the fields of given bytes, JSON-safe."""
        return self.decoders.described(partial(describe, version=self.version))

    def own_keys(self) -> OwnKeys:
        """Return the keys of samples."""
        return _SampleKeys(self)

    def key_at(self, row: int) -> str:
        """Return the key of a row, whatever columns records have.

        Raises:
            IndexStale: the file has changed.
        """
        starts = self.files.starts
        file = int(starts.searchsorted(row, side="right")) - 1
        mapped = self.files.mapped(file)
        mapped.check()
        return _key_at(mapped.view, self.files.range(file, row - int(starts[file]))[0], self._rule)

    def key_hashes(self, rows: Int64s) -> NDArray[np.uint64]:
        """Return the hashes of the keys of rows; no data file is read."""
        files = self.files.starts.searchsorted(rows, side="right") - 1
        return self.words.key_hashes(files, rows - self.files.starts[files])

    def narrowed(self, columns: frozenset[str]) -> Self:
        """Return the source with fewer fields to read and decode."""
        needed = columns if self.needed is None else columns & self.needed
        return replace(self, needed=needed)

    def declared(self) -> Mapping[str, Any] | None:
        """Return the names of the columns; their types only records show. None without a sample."""
        if self.columns is not None:
            return dict.fromkeys(self.columns)
        return dict.fromkeys(self.there) if self.size else None

    @property
    def there(self) -> tuple[str, ...]:
        """The names of all columns that records can have."""
        file = (FILE_COLUMN,) if self.decoders.with_url else ()
        return (SAMPLE_KEY, *file, *self.fields)

    @property
    def reads_all_bytes(self) -> bool:
        """True if all fields are read."""
        return self.needed is None and self.columns is None

    @cached
    def shapes(self) -> list[_SampleShape]:
        """For each schema of the files, what its records are made of."""
        columns, needed = self.columns, self.needed
        if columns is not None and needed is not None:
            columns = tuple(name for name in columns if name in needed)
        wanted = needed if columns is None else frozenset(columns)
        of = self.decoders.of
        return [
            _SampleShape(
                names=schema.fields,
                decoders=tuple(
                    of(name).decode if wanted is None or name in wanted else None for name in schema.fields
                ),
                keyed=wanted is None or SAMPLE_KEY in wanted,
                with_file=self.decoders.with_url and (wanted is None or FILE_COLUMN in wanted),
                columns=columns,
                fills=self.fills,
                rule=self._rule,
            )
            for schema in self.words.schemas
        ]

    @cached
    def _rule(self) -> SampleRule:
        return sample_rule_of(self.format)

    @cached
    def _schema_of(self) -> list[int]:
        numbers: list[int] = self.words.schema_of.tolist()
        return numbers


@final
@dataclass(frozen=True, slots=True)
class _SampleKeys(OwnKeys):
    """The keys of samples, whose hashes the index has."""

    source: SampleSource

    @property
    def of(self) -> KeyOf:
        """The column of the key."""
        return SAMPLE_KEY

    def described(self) -> dict[str, Any]:
        """Return the format that finds samples."""
        return keys_of_samples(self.source.files.entry(0).format)

    def hashes(self, rows: Int64s) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Return the hashes of the index; each sample has a key."""
        return self.source.key_hashes(rows), np.ones(len(rows), np.bool_)

    def key_at(self, row: int) -> str:
        """Return the key of a row, which is read from the header of its first member."""
        return self.source.key_at(row)

    def alone(self, keys: Keys) -> Node:
        """Return the keys of samples whose fields are not read."""
        alone = replace(self.source, columns=(SAMPLE_KEY,), needed=frozenset([SAMPLE_KEY]))
        return Map(alone, KeyIn(SAMPLE_KEY), None, "keys")


def check_columns(source: SampleSource) -> None:
    """Check that some file has each column, and that each can be decoded.

    Raises:
        InvalidArgument: no file has a column, or ``decode`` has a name that fits no field.
        UnsupportedFormat: a column is pickled.
        MissingDependency: the decoder of a column needs a package that is not installed.
    """
    for name in source.columns or ():
        if name not in source.there and source.size:
            message = f"no sample has a field {name!r}; there are {', '.join(map(repr, source.there))}"
            raise InvalidArgument(message)
    wanted = [name for name in source.fields if source.columns is None or name in source.columns]
    check_fields(wanted, source.decoders, fields=source.fields, where=source.asked)


def _shown_decode(decoders: FieldDecoders) -> str:
    if decoders.by_field:
        return f", decode={{{', '.join(repr(field) for field, _ in decoders.by_field)}: ...}}"
    if decoders.every is None:
        return ""
    return f", decode={getattr(decoders.every, '__qualname__', repr(decoders.every))}"


class _SamplesReader(Reader):
    """Reads many sources as one, with the files of all in one sequence."""

    def __init__(self, nodes: Sequence[SampleSource]) -> None:
        """Combine the files of sources."""
        self.files: FileSet = combine([node.files for node in nodes]) if len(nodes) > 1 else nodes[0].files
        self.words = MemberWords(self.files) if len(nodes) > 1 else nodes[0].words
        self.shapes = [shape for node in nodes for shape in node.shapes]
        """The shapes of all sources."""
        counts = np.array([len(node.shapes) for node in nodes], np.int64)
        firsts = (np.cumsum(counts) - counts).tolist()
        of_nodes = [first + node.words.schema_of for first, node in zip(firsts, nodes, strict=True)]
        self.shape_of: Int64s = np.concatenate(of_nodes)
        """The index of each file's shape, int64."""
        self.errors = [node.errors for node in nodes for _ in range(len(node.files))]
        self.keyed = np.array([shape.keyed for shape in self.shapes], np.bool_)
        """True for each shape whose records have the key."""
        self._wanted = _table([shape.wanted for shape in self.shapes])
        self.activity = DiskActivity()
        self.from_stores = self.files.has_objects
        self._lengths = np.array([node.files.starts[-1] for node in nodes], np.int64)
        self._first_rows = np.cumsum(self._lengths) - self._lengths
        self.starts = self.files.starts

    def plan(self, which: Int64s, positions: Int64s) -> Plan:
        """Return the plan to read samples, with the places of all members that it reads."""
        rows = self._first_rows[which] + positions % self._lengths[which]
        files = np.searchsorted(self.starts, rows, side="right") - 1
        within = rows - self.starts[files]
        starts, _ = self.files.words(files, within)
        edges, payloads, sizes, fields = self._members(files, within)
        return _SamplesPlan(self, rows, files, starts, edges, payloads, sizes, fields)

    def _members(
        self, files: Int64s, rows: Int64s
    ) -> tuple[Int64s, NDArray[np.uint64], NDArray[np.uint64], Int64s]:
        """Return the members that are read: their edges by sample, first bytes, sizes and fields."""
        if not self._wanted.any():
            none = np.zeros(0, np.uint64)
            return np.zeros(len(rows) + 1, np.int64), none, none, np.zeros(0, np.int64)
        first, behind = self.words.first_members(files, rows)
        counts = behind - first
        ends = np.cumsum(counts)
        total = int(ends[-1]) if ends.size else 0
        of = np.repeat(files, counts)
        numbers = np.arange(total) + np.repeat(first - (ends - counts), counts)
        payloads, sizes, fields = self.words.members(of, numbers)
        edges = np.concatenate([np.zeros(1, np.int64), ends])
        kept = self._wanted[self.shape_of[of], fields]
        if kept.all():
            return edges, payloads, sizes, fields
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])
        return before[edges], payloads[kept], sizes[kept], fields[kept]


def _table(rows: Sequence[Sequence[bool]]) -> NDArray[np.bool_]:
    """Return rows of different lengths as one table, False where a row has ended."""
    table = np.zeros((len(rows), max(map(len, rows), default=0)), np.bool_)
    for number, row in enumerate(rows):
        table[number, : len(row)] = row
    return table


@dataclass(frozen=True, slots=True)
class _SamplesPlan(Plan):
    reader: _SamplesReader
    rows: Int64s
    """Counted over all files, so that sorting by row is sorting by file and offset."""
    files: Int64s
    starts: NDArray[np.uint64]
    edges: Int64s
    """For each sample the index of its first member that is read; then their count."""
    payloads: NDArray[np.uint64]
    sizes: NDArray[np.uint64]
    fields: Int64s

    def __len__(self) -> int:
        return self.rows.size

    def slice(self, start: int, stop: int) -> Plan:
        at, edges = slice(start, stop), self.edges[start : stop + 1]
        members = slice(int(edges[0]), int(edges[-1]))
        return _SamplesPlan(
            self.reader,
            self.rows[at],
            self.files[at],
            self.starts[at],
            edges - edges[0],
            self.payloads[members],
            self.sizes[members],
            self.fields[members],
        )

    def read(self) -> list[Any]:
        """Read file by file in the order of offsets; return the records in the order of the positions."""
        with held(self):
            return self._read()

    def _read(self) -> list[Any]:
        reader, fileset = self.reader, self.reader.files
        before = disk_reads()
        if reader.activity.may_wait:
            self._advise()
        order = np.argsort(self.rows)
        members = list(zip(self.payloads.tolist(), self.sizes.tolist(), self.fields.tolist(), strict=True))
        firsts, ends = self.edges[:-1][order].tolist(), self.edges[1:][order].tolist()
        files, starts = self.files[order].tolist(), self.starts[order].tolist()
        out: list[Any] = [None] * order.size
        current = -1
        for place, file, start, first, end in zip(order.tolist(), files, starts, firsts, ends, strict=True):
            if file != current:
                current, mapped, shape = file, fileset.mapped(file), reader.shapes[reader.shape_of[file]]
                mapped.check()
            try:
                out[place] = _made_record(shape, mapped, start, members[first:end])
            except _FieldError as error:
                row = int(self.rows[place] - fileset.starts[file])
                out[place] = _recovered_sample(
                    reader.errors[file], error, mapped, start, row=row, rule=shape.rule
                )
        reader.activity.note(disk_reads() - before)
        return out

    @property
    def paths(self) -> set[str]:
        return {self.reader.files.shown_path(file) for file in np.unique(self.files).tolist()}

    @property
    def from_stores(self) -> bool:
        return self.reader.from_stores

    def ranges(self) -> Iterator[FileRanges]:
        yield FileRanges(self.reader.files, *self._ranges())

    def advise(self) -> None:
        activity = self.reader.activity
        if activity.may_wait:
            before = disk_reads()
            self._advise()
            activity.note(disk_reads() - before)

    def _advise(self) -> None:
        """Advise the system to fetch the bytes of the members that are read."""
        files, starts, ends = self._ranges()
        order = np.lexsort((starts, files))
        merged = merge_near(files[order], starts[order], ends[order], gap=_GAP_BYTES)
        for file, start, end in zip(*(column.tolist() for column in merged), strict=True):
            self.reader.files.mapped(file).advise(start, end)

    def _ranges(self) -> tuple[Int64s, NDArray[np.uint64], NDArray[np.uint64]]:
        """Return the file and the bytes of all members that are read, and of the headers with the keys."""
        keyed = self.reader.keyed[self.reader.shape_of[self.files]]
        files = np.concatenate([np.repeat(self.files, np.diff(self.edges)), self.files[keyed]])
        starts = np.concatenate([self.payloads, self.starts[keyed]])
        ends = np.concatenate([self.payloads + self.sizes, self.starts[keyed] + np.uint64(NAME_BYTES)])
        return files, starts, ends

    @property
    def bytes(self) -> int:
        keyed = self.reader.keyed[self.reader.shape_of[self.files]]
        return int(self.sizes.sum()) + NAME_BYTES * int(np.count_nonzero(keyed))

    def origins(self) -> Origins:
        return of_files(self.reader.files, self.files, self.rows)

    def locate(self) -> list[Any]:
        fileset, words = self.reader.files, self.reader.words
        located = []
        for row, file, start in zip(
            self.rows.tolist(), self.files.tolist(), self.starts.tolist(), strict=True
        ):
            mapped = fileset.mapped(file)
            mapped.check()
            within = row - int(fileset.starts[file])
            # The payload of a hard link lies before its sample.
            ends = (payload + size for payload, size, _ in words.of_sample(file, within) if payload >= start)
            end = max(ends, default=start + BLOCK_BYTES)
            located.append(Location(mapped.name, within, start, end - start))
        return located


@dataclass(frozen=True, slots=True)
class _SampleShape:
    """The fields, decoders and columns from which the records of one schema are made."""

    names: tuple[str, ...]
    """The name of each field, by its index."""

    decoders: tuple[Callable[[memoryview], Any] | None, ...]
    """The decoder of each field, by its index; None for a field that is not read."""

    keyed: bool
    """True if records have the key."""

    with_file: bool
    """True if records have the path of their file."""

    columns: tuple[str, ...] | None
    """The columns that each record has, in their order; None for the key and the fields of the sample."""

    fills: bool
    """True if a column that a sample lacks is None; else that is an error."""

    rule: SampleRule
    """The rule by which the name of a member has a key."""

    @property
    def wanted(self) -> list[bool]:
        """True for each field that is read, by its index."""
        return [decoder is not None for decoder in self.decoders]


def _key_at(view: View, start: int, rule: SampleRule) -> str:
    """Return the key of a sample, from the header of its first member."""
    found = split_name(member_name(view, start), rule)
    if found is None:
        message = f"the member at byte {start:,} is part of no sample; the file was changed"
        raise IndexStale(message)
    return str(found[0], "utf-8", "surrogateescape")


def _made_record(
    shape: _SampleShape, mapped: MappedFile, start: int, members: Sequence[tuple[int, int, int]]
) -> dict[str, Any]:
    """Return the record of a sample.

    Args:
        shape: the fields that are read.
        mapped: the file.
        start: the first byte of the sample.
        members: the first byte, the size and the field's index of each member that is read.

    Raises:
        _FieldError: a field cannot be decoded, or is missing.
    """
    view, names, decoders = mapped.view, shape.names, shape.decoders
    record: dict[str, Any] = {SAMPLE_KEY: _key_at(view, start, shape.rule)} if shape.keyed else {}
    if shape.with_file:
        record[FILE_COLUMN] = mapped.name
    payload = size = field = 0
    try:
        for payload, size, field in members:
            decoder = decoders[field]
            if decoder is not None:
                record[names[field]] = decoder(view[payload : payload + size])
    except Exception as error:  # noqa: BLE001 - a user's function may raise anything; its cause is kept
        raise _FieldError(payload, size, names[field], error) from None
    if shape.columns is None:
        return record
    return _in_columns(record, shape, start)


def _in_columns(record: dict[str, Any], shape: _SampleShape, start: int) -> dict[str, Any]:
    columns = shape.columns or ()
    if len(record) == len(columns):
        return record if len(columns) == 1 else {name: record[name] for name in columns}
    if shape.fills:
        return {name: record.get(name) for name in columns}
    lacking = next(name for name in columns if name not in record)
    raise _FieldError(start, 0, lacking, MissingColumn(f"has no field {lacking!r}"))


class _FieldError(Exception):
    """Carries the member that could not be decoded to the place where the file and the row are known."""

    def __init__(self, payload: int, size: int, field: str, cause: Exception) -> None:
        super().__init__(payload, size, field)
        self.payload, self.size, self.field, self.cause = payload, size, field, cause


def _recovered_sample(
    errors: OnError | None, found: _FieldError, mapped: MappedFile, start: int, *, row: int, rule: SampleRule
) -> Any:
    """Return what is delivered instead of a sample that cannot be decoded.

    Raises:
        CorruptRecord: the source has no ``errors``.
        IndexStale: the file was changed.
        MissingDependency: the decoder needs a package that is not installed.
    """
    if isinstance(found.cause, IndexStale | MissingDependency):
        raise found.cause
    corrupt = CorruptRecord(
        mapped.name,
        row,
        offset=found.payload,
        length=found.size,
        preview=bytes(mapped.view[found.payload : found.payload + min(found.size, 80)]),
        cause=found.cause,
        key=_key_at(mapped.view, start, rule),
        field=found.field,
    )
    corrupt.__cause__ = found.cause
    if errors is None:
        raise corrupt
    return errors(corrupt)
