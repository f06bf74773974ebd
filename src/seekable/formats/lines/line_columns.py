"""Lines as columns of one schema, which the first records decide: ``decode="numpy"`` and ``"arrow"``.

A record is what its line is, and the columns are made of records without a change of a value: a value of
another type than its column's, a number that the type cannot hold, or a field that is no column, makes the
record one that cannot be decoded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from seekable._optional import optional
from seekable.errors import InvalidArgument, UnsupportedFormat
from seekable.formats.lines import csv_columns, json_columns
from seekable.formats.lines.csv import csv_records, dialect_of
from seekable.nodes.columns.arrow_types import UnsupportedType, check_name, merged, type_of
from seekable.nodes.columns.decode_column import DECODERS
from seekable.nodes.columns.record_batches import with_rows
from seekable.nodes.display import describe_place
from seekable.nodes.files.decoders import ColumnsDecoder
from seekable.nodes.graph import HOLE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from seekable.formats.lines.csv import CsvRecords
    from seekable.nodes.columns.decode_column import DecodeTable
    from seekable.nodes.files.byte_source import FileSource
    from seekable.nodes.files.decoders import Decoder
    from seekable.nodes.saving import Saving
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = ["FORMS", "LineColumns", "columns_of"]

FORMS: Final = ("numpy", "arrow")
"""The ``decode=`` of records as columns."""

_FIRST: Final = 1000
"""The number of records that decide the columns and their types."""


@final
@dataclass(frozen=True, slots=True)
class LineColumns(ColumnsDecoder):
    """Decodes lines of JSON, or records of CSV, as rows of columns."""

    name: str
    """The form of records, ``"numpy"`` or ``"arrow"``."""

    lines: Decoder
    """The decoder of the lines to dicts."""

    schema: pa.Schema
    """All columns, with their types."""

    needed: frozenset[str] | None = None
    """The only columns that are made; None for all."""

    records: CsvRecords | None = None
    """The records of one file of CSV, once its header is known."""

    asked: tuple[str, ...] | None = None
    """The columns that the user named, in their order, if any; the schema has these alone."""

    function: Callable[[bytes], Any] | None = None

    @property
    def form(self) -> DecodeTable:
        """The form of records."""
        return "arrow" if self.name == "arrow" else "numpy"

    @property
    def headed(self) -> bool:
        """True for CSV."""
        return self.lines.headed

    def for_head(self, head: bytes) -> LineColumns:
        """Return the decoder for the records in one CSV file.

        Args:
            head: the bytes before the file's first record.
        """
        records = csv_records(head, dialect_of(self.lines.name))
        return replace(self, lines=self.lines.for_head(head), records=records)

    def in_form(self, form: DecodeTable) -> LineColumns:
        """Return the decoder of the same columns to records of another form."""
        return replace(self, name=form)

    def span(self, view: memoryview) -> int:
        """Return the length of the record at the start of its range, without its line end."""
        return self.lines.span(view)

    def narrowed(self, columns: frozenset[str]) -> LineColumns:
        """Return a decoder that makes no other columns."""
        return replace(self, needed=columns if self.needed is None else columns & self.needed)

    def declared(self) -> Mapping[str, Any]:
        """Return the types of all columns."""
        return {field.name: field.type for field in self.schema}

    def as_json(self, into: Saving) -> dict[str, Any]:
        """Return the form, and the columns that the user named; the files have their types."""
        return {"decode": into.named(self.name), **self.described_besides()}

    def described_besides(self) -> dict[str, Any]:
        """Return the columns that the user named."""
        return {} if self.asked is None else {"columns": list(self.asked)}

    def fast(self, view: memoryview) -> Any:
        """Return the record of a range: a row of the columns.

        Raises:
            ValueError: it is none.
        """
        return self._row(self.lines.fast(view))

    def recover(self, record: bytes) -> Any:
        """Return the record of a line that ``fast`` raised for.

        Raises:
            ValueError: what is wrong with it.
        """
        again = self.lines.recover
        return self._row(self.lines.fast(memoryview(record)) if again is None else again(record))

    def table(self, views: Sequence[memoryview], may_be_torn: Sequence[int]) -> pa.RecordBatch:
        """Return many records as one record batch; see ``ColumnsDecoder``."""
        wanted = self._wanted
        if not views:
            return pa.RecordBatch.from_pylist([], schema=wanted)
        if self.lines.name == "json":
            return json_columns.table(views, wanted, only_these=self._is_whole)
        assert self.records is not None
        found = csv_columns.table(views, self.records, last=may_be_torn)
        if self._is_whole and (more := set(found.schema.names).difference(wanted.names)):
            raise ValueError(_no_columns(more, wanted))
        arrays = [
            found.column(name) if name in found.schema.names else pa.nulls(len(views), pa.string())
            for name in wanted.names
        ]
        return with_rows(wanted.names, arrays, len(views))

    def arrays(self, views: Sequence[memoryview]) -> dict[str, Any] | None:
        """Return many records of JSON as a dict of arrays and lists; see ``ColumnsDecoder``."""
        return json_columns.arrays(views, self._wanted, only_these=self._is_whole)

    @property
    def _is_whole(self) -> bool:
        """True if records have no other fields than those that are made."""
        return self.needed is None and self.asked is None

    @property
    def _wanted(self) -> pa.Schema:
        if self.needed is None:
            return self.schema
        return pa.schema([field for field in self.schema if field.name in self.needed])

    def _row(self, record: Any) -> Any:
        """Return a row that holds a record.

        Raises:
            ValueError: it does not fit the columns.
        """
        if not isinstance(record, dict):
            message = f"it is no object but {type(record).__name__}, and columns are made of objects"
            raise ValueError(message)  # noqa: TRY004 - it is the data that is wrong
        wanted = self._wanted
        if self._is_whole and (more := record.keys() - set(wanted.names)):
            raise ValueError(_no_columns(more, wanted))
        arrays = [_one(record.get(field.name), field) for field in wanted]
        return DECODERS[self.form](with_rows(wanted.names, arrays, 1)).records((0,))[0]


def _no_columns(more: set[str], schema: pa.Schema) -> str:
    return (
        f"it has {', '.join(sorted(map(repr, more)))}, and the columns are "
        f"{', '.join(map(repr, schema.names)) or 'none'}, as in the first {_FIRST} records. Read the records "
        f"as dicts, or name the columns, columns="
    )


def _one(value: Any, field: pa.Field) -> pa.Array:
    """Return an array of a value.

    Raises:
        ValueError: the type of the column does not hold it.
    """
    try:
        return json_columns.exact([value], field.type)
    except (UnsupportedType, pa.ArrowException, OverflowError, ValueError) as error:
        message = (
            f"column {field.name!r} is {field.type}, as in the first {_FIRST} records, and this record has "
            f"{value!r:.100} there: {error}. Read the records as dicts, or leave the column out with columns="
        )
        raise ValueError(message) from None


def columns_of(source: FileSource, form: DecodeTable, asked: Sequence[str] | None) -> LineColumns:
    """Return the decoder of the records of a source as columns, whose types its first records decide.

    Args:
        source: the source of the same records as dicts.
        form: the form of records.
        asked: the names of the only columns, in their order; None for all.

    Raises:
        UnsupportedFormat: records are not objects, or values of a field have no common type.
        InvalidArgument: the first records have no such column.
    """
    decoder: Any = source.decoder
    if asked is not None:
        source = source.narrowed(frozenset(asked))
    count = min(_FIRST, source.size)
    plan = replace(source, errors=lambda _: HOLE).plan(np.arange(count))
    records = plan.read() if count else []
    found: dict[str, pa.DataType] = {}
    try:
        found = _with(found, [record for record in records if record is not HOLE], asked)
    except UnsupportedType:
        for row, record in enumerate(records):
            try:
                found = found if record is HOLE else _with(found, [record], asked)
            except UnsupportedType as error:
                message = (
                    f"{describe_place(source, row)}: {error}; decode={form!r} makes columns of one type "
                    f"each, of objects: read the records as dicts"
                )
                raise UnsupportedFormat(message) from None
    if asked is None:
        return LineColumns(form, decoder, pa.schema(list(found.items())))
    if lacking := [name for name in asked if name not in found]:
        message = (
            f"none of the first {count} records has a column {lacking[0]!r}; there are "
            f"{', '.join(map(repr, found)) or 'none'}"
        )
        raise InvalidArgument(message)
    schema = pa.schema([(name, found[name]) for name in asked])
    return LineColumns(form, decoder, schema, asked=tuple(asked))


def _with(
    found: Mapping[str, pa.DataType], records: Sequence[Any], asked: Sequence[str] | None
) -> dict[str, pa.DataType]:
    """Return types that hold the values of more records too.

    Args:
        found: the types so far.
        records: the records.
        asked: the names of the only columns that are looked at; None for all.

    Raises:
        UnsupportedType: there are none.
    """
    for record in records:
        if not isinstance(record, dict):
            raise UnsupportedType(f"the record is no object but {type(record).__name__}")
    both = dict(found)
    for name in dict.fromkeys(chain.from_iterable(records)):
        if asked is not None and name not in asked:
            continue
        try:
            check_name(name)
            values = [record[name] for record in records if name in record]
            both[name] = merged(found.get(name, pa.null()), type_of(values))
        except UnsupportedType as error:
            raise UnsupportedType(f"field {name!r}: {error}") from None
    return both
