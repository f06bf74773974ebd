"""Records of indexed tables: Parquet row groups, Arrow record batches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, final

import numpy as np

from seekable._arguments import checked_columns, checked_flag, checked_word, explains_fields
from seekable._cached import cached
from seekable._lazy import lazy
from seekable._optional import optional
from seekable.errors import InvalidArgument
from seekable.formats.contract import Format, check_partitions
from seekable.formats.table import card_named
from seekable.formats.tables.table_files import (
    ColumnMapping,
    OpenTables,
    RowBlocks,
    RowPlaces,
    read_schemas,
    unified,
)
from seekable.formats.tables.table_format import TableFormat  # noqa: TC001 - pipeline files read the type
from seekable.formats.tables.table_reading import UNPACKED, RowReader, TableReading, TablesReader
from seekable.nodes.columns.decode_column import DECODED, DECODERS
from seekable.nodes.files.leaf import FilesLeaf
from seekable.parallel.progress import watched

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    import pyarrow as pa

    from seekable._typing import Int64s
    from seekable.formats.contract import Card, Hive, OnError, Reading
    from seekable.formats.tables.arrow import arrow_format
    from seekable.formats.tables.parquet import parquet_format
    from seekable.index.fileset import FileSet
    from seekable.index.finder import Finder
    from seekable.nodes.columns.decode_column import DecodeTable
    from seekable.nodes.conditions import Bounds, Where
    from seekable.nodes.graph import Reader
    from seekable.nodes.key import Keys
    from seekable.nodes.node import BatchForm
    from seekable.parallel.progress import ProgressChoice
else:
    pa = optional("pyarrow", extra="parquet")
    arrow_format = lazy("seekable.formats.tables.arrow.arrow_format")
    parquet_format = lazy("seekable.formats.tables.parquet.parquet_format")

__all__ = ["TableSource", "Tables"]

_KINDS: tuple[Literal["parquet"], Literal["arrow"]] = ("parquet", "arrow")


@final
@dataclass(frozen=True, eq=False, repr=False)
class TableSource(FilesLeaf):
    """A source over indexed tables: row ``r`` is row ``r`` of the files, one file after another."""

    files: FileSet
    form: TableFormat
    decode: DecodeTable
    asked: str
    columns: tuple[str, ...] | None = None
    """The columns that the user named, in their order; None for all."""
    needed: frozenset[str] | None = None
    """The columns that are used above; None for all. They are not part of the description."""
    strict: bool = False
    version: str | int | None = None
    """Stands for the code of a function of keys."""
    keys: Keys | None = None
    errors: OnError | None = None

    kind: ClassVar[str] = "table"
    in_runs: ClassVar[bool] = False

    @property
    def format(self) -> str:
        """The name of the format."""
        return self.form.name

    @property
    def blocks(self) -> Int64s:
        """The edges of blocks, int64: groups of rows, cut into equal runs where over 8,192 rows."""
        return self.row_blocks.edges

    @property
    def finder(self) -> Finder:
        """The format, which reads the footers of files."""
        return self.form

    def described_decode(self, describe: Callable[..., dict[str, Any]]) -> Any:
        """Return the form of records."""
        return self.decode

    @property
    def decodes_itself(self) -> bool:
        """True: a function of records goes into ``map``."""
        return True

    @cached
    def row_blocks(self) -> RowBlocks:
        """The groups and the blocks of the rows."""
        return RowBlocks.of(self.files)

    @cached
    def schema(self) -> pa.Schema:
        """The columns of records and their types.

        Raises:
            UnsupportedFormat: a column has types without a common one.
            InvalidArgument: no file has a column that the user named.
        """
        schemas, _ = self._schemas
        if not schemas:
            return pa.schema([])
        only = None if self.columns is None else frozenset(self.columns)
        whole = unified(schemas, examples=self._examples, strict=self.strict, only=only)
        if self.columns is None:
            return whole
        there = dict.fromkeys(name for schema in schemas for name in schema.names)
        return pa.schema([_field(whole, name, there) for name in self.columns])

    def check_schema(self) -> None:
        """Check that the files have common types, and the columns that the user named.

        Raises:
            UnsupportedFormat: a column has types without a common one.
            InvalidArgument: no file has a column that the user named.
        """
        _ = self.schema

    @cached
    def wanted(self) -> pa.Schema:
        """The columns that are read from the files, with their types."""
        if self.needed is None:
            return self.schema
        return pa.schema([field for field in self.schema if field.name in self.needed])

    @property
    def batch_form(self) -> BatchForm:
        """The form that ``decode`` names; ``"python"`` where a function may replace corrupt records."""
        return "python" if self.errors is not None else self.decode

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the format, the decoding, the columns, and every file by name, size, records and digests."""
        columns = {} if self.columns is None else {"columns": list(self.columns)}
        return {"format": self.form.name, "decode": self.decode, **columns, "files": self.files.described()}

    def shown(self, children: Sequence[str]) -> str:
        """Return the call of ``sk.open``."""
        columns = "" if self.columns is None else f", columns={list(self.columns)}"
        decode = "" if self.decode == "python" else f", decode={self.decode!r}"
        return f"open({self.asked}{columns}{decode})"

    @classmethod
    def reader(cls, nodes: Sequence[TableSource]) -> Reader:
        """Return a reader that reads each source by itself, as each has columns of its own."""
        return TablesReader([node.tables for node in nodes])

    @property
    def cache_bytes(self) -> int:
        """The bytes of files whose decoded blocks fit into the cache."""
        return DECODED.most_bytes // UNPACKED

    @cached
    def tables(self) -> TableReading:
        """The reader of the rows of the files."""
        schemas, of_file = self._schemas
        opened = OpenTables(self.files, self.form)
        places = RowPlaces(self.files, self.row_blocks, opened)
        columns = tuple(ColumnMapping.of(self.wanted, schema) for schema in schemas)
        return TableReading(places, RowReader(places, columns, of_file, self.errors), self.decode)

    def record(self, position: int) -> Any:
        """Return the record at a position; positions go on over the epochs.

        Raises:
            CorruptRecord: the record cannot be decoded, and the source has no ``errors``.
            IndexStale: the file has changed.
        """
        return self.tables.record(position % self.size)

    def narrowed(self, columns: frozenset[str]) -> Self:
        """Return the source with fewer columns to read."""
        needed = columns if self.needed is None else columns & self.needed
        return replace(self, needed=needed)

    def may_match(self, where: Where) -> Int64s:
        """Return the runs of rows that may pass, by the statistics of groups and pages."""
        return self.may_match_knowing(where, [{}] * len(self.files))

    def may_match_knowing(self, where: Where, known: Sequence[Mapping[str, Bounds]]) -> Int64s:
        """Return the runs of rows that may pass, where bounds of some columns are known without the files.

        Statistics count only for columns with the type that they have in the file: converted values may
        compare otherwise.

        Args:
            where: the conditions.
            known: for each file the known bounds; a file that these rule out is not opened.
        """
        schemas, of_file = self._schemas
        same = [
            tuple(
                field.name
                for field in self.schema
                if field.name in where.columns and field.name in schema.names
                if schema.field(field.name).type == field.type
            )
            for schema in schemas
        ]
        return self.tables.may_match(where, [same[number] for number in of_file.tolist()], known)

    def walk(self, *, progress: ProgressChoice = None) -> None:
        """Find the places of the pages of all files, and keep them beside the index.

        Args:
            progress: a function that is called as it goes on; False for none. By default a bar on a terminal.

        Raises:
            CorruptRecord: a file is damaged.
        """
        with watched(progress, task="finding pages", rows=len(self.files)) as watch:
            for file in range(len(self.files)):
                self.tables.places.open.get(file).walk()
                watch(file + 1)

    def declared(self) -> Mapping[str, Any] | None:
        """Return the Arrow types of all columns by name."""
        return {field.name: field.type for field in self.schema}

    def declared_by_file(self) -> list[tuple[str, str, Mapping[str, Any]]]:
        """Return for each file its path, its name below the opened folder, and the columns that it has."""
        schemas, of_file = self._schemas
        only = None if self.columns is None else frozenset(self.columns)
        chosen = [
            {field.name: field.type for field in schema if only is None or field.name in only}
            for schema in schemas
        ]
        return [
            (self.files.shown_path(file), name, chosen[schema])
            for file, (name, schema) in enumerate(zip(self.files.names(), of_file.tolist(), strict=True))
        ]

    @cached
    def _schemas(self) -> tuple[list[pa.Schema], Int64s]:
        schemas, of_file = self.files.schemas()
        return read_schemas(schemas), of_file

    @property
    def _examples(self) -> list[str]:
        _, of_file = self._schemas
        _, firsts = np.unique(of_file, return_index=True)
        return [self.files.shown_path(file) for file in firsts.tolist()]


@explains_fields("sk.formats.Tables")
@dataclass(frozen=True, slots=True, kw_only=True)
class Tables(Format):
    """Parquet and Arrow.

    Args:
        strict: True if all files must have the same columns of the same types. Else records have the columns
            of all files, None where a file lacks one, in types that hold all values.
        partitions: ``"hive"`` if folders ``year=2024/lang=de/`` are columns of the records below them: int64
            where all values of a key are integers, else str; None for ``__HIVE_DEFAULT_PARTITION__``, and in
            a file that lies in no folder of the key. ``filter(where=)`` opens no file that they rule out.
        kind: ``"parquet"`` or ``"arrow"``; by default what the names of the files say.

    Raises:
        InvalidArgument: ``partitions`` or ``kind`` is another word.
        WrongType: ``strict`` is not a bool.

    Example:
        >>> import seekable as sk
        >>> sk.formats.Tables(strict=True)
        Tables(strict=True, partitions=None, kind=None)
    """

    card: ClassVar[Card] = card_named("parquet")
    raw: ClassVar[Any] = "python"

    strict: bool = False
    partitions: Hive | None = None
    kind: Literal["parquet", "arrow"] | None = None

    def __post_init__(self) -> None:
        """Check the types and words that the options have."""
        checked_flag("strict", self.strict)
        check_partitions(self.partitions)
        checked_word("kind", self.kind, _KINDS)

    @property
    def name(self) -> str:
        """The kind of the files; Parquet where nothing says it."""
        return self.kind or self.card.name

    def with_name(self, name: str) -> Self:
        """Return the format of the kind that a name says.

        Raises:
            InvalidArgument: there is no such kind.
        """
        for kind in _KINDS:
            if name == kind:
                return self if self.kind is not None else replace(self, kind=kind)
        message = f"format {name!r} is not known; tables are {' or '.join(map(repr, _KINDS))}"
        raise InvalidArgument(message)

    @property
    def finder(self) -> TableFormat:
        """The format that reads the footers of the files, and the files too."""
        if self.name == "arrow":
            return arrow_format.ArrowFormat(self.name)
        return parquet_format.ParquetFormat(self.name)

    def check(self, reading: Reading) -> None:
        """Check the columns and their decoding.

        Raises:
            InvalidArgument: an argument breaks a rule.
            WrongType: one is of the wrong type.
        """
        decode = reading.decode
        if decode is not None and (not isinstance(decode, str) or decode not in DECODERS):
            message = (
                f"decode must be one of {', '.join(map(repr, DECODERS))} for tables (got {decode!r}); a "
                f"function of records goes into ds.map"
            )
            raise InvalidArgument(message)
        if reading.columns is not None:
            checked_columns(reading.columns)
        checked_flag("strict", self.strict)

    def leaf(self, files: FileSet, reading: Reading) -> TableSource:
        """Return the source of the rows of indexed files.

        Raises:
            UnsupportedFormat: the files do not go together.
            InvalidArgument: no file has one of the columns.
        """
        made = TableSource(
            files,
            self.finder,
            decode=reading.decode or "python",
            asked=reading.shown,
            columns=None if reading.columns is None else checked_columns(reading.columns),
            strict=self.strict,
            version=reading.version,
            errors=reading.errors,
        )
        made.check_schema()
        return made

    def found_again(self, files: FileSet, described: Mapping[str, Any], shown: str) -> TableSource:
        """Return the source of files, without a check that they go together."""
        return TableSource(files, self.finder, "python", asked=shown)


def _field(schema: pa.Schema, name: str, there: Collection[str]) -> pa.Field:
    """Return a column of a schema.

    Raises:
        InvalidArgument: it is none of the columns that are there.
    """
    if name not in there:
        message = f"no file has a column {name!r}; there are {', '.join(map(repr, there)) or 'none'}"
        raise InvalidArgument(message)
    return schema.field(name)
