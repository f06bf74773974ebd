"""Records as Arrow columns: the schema, the conversion, and the values that a conversion would lose."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._cached import cached
from seekable.errors import WrongType
from seekable.formats.file_format import UnwritableRecord
from seekable.nodes.columns.arrow_types import UnsupportedType, check_name, merged, type_of
from seekable.nodes.graph import HOLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow as pa


__all__ = ["RecordColumns", "check_names", "inferred_schema", "loss"]


def loss(values: Iterable[Any], kind: pa.DataType) -> str | None:
    """Return a description of the loss if a column of type ``kind`` held some values, None without a loss.

    Example:
        >>> import pyarrow as pa
        >>> loss([{"a": 1, "b": 2}], pa.struct({"a": pa.int64()}))
        "it has 'b', and the column's struct has no field of that name"
    """
    from pyarrow import types

    if types.is_struct(kind):
        return _of_dicts([value for value in values if isinstance(value, dict)], kind)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _of_lists(list(values), kind)
    if types.is_dictionary(kind):
        return loss(values, kind.value_type)
    return _of_plain(values, kind)


def _of_dicts(dicts: list[dict[Any, Any]], kind: pa.DataType) -> str | None:
    names = {field.name for field in kind}
    if more := set(chain.from_iterable(dicts)) - names:
        told = ", ".join(sorted(map(repr, more)))
        return f"it has {told}, and the column's struct has no field of that name"
    for field in kind:
        held = [one[field.name] for one in dicts if field.name in one]
        if lost := loss(held, field.type):
            return lost
    return None


def _of_lists(values: list[Any], kind: pa.DataType) -> str | None:
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    samples = [value.dtype.type(0) for value in arrays if value.dtype.kind in "fiub"]
    objects = [value.tolist() for value in arrays if value.dtype.kind == "O"]
    lists = [value for value in values if isinstance(value, list | tuple)]
    return loss([*samples, *chain.from_iterable([*objects, *lists])], kind.value_type)


def _of_plain(values: Iterable[Any], kind: pa.DataType) -> str | None:
    from pyarrow import types

    kinds = set(map(type, values))
    if types.is_integer(kind) and any(issubclass(each, float | np.floating) for each in kinds):
        return f"it has a float, and the column holds {kind}"
    if types.is_date(kind) and any(issubclass(each, dt.datetime) for each in kinds):
        return f"it has a datetime, and the column holds {kind}"
    if types.is_timestamp(kind):
        for value in values:
            if isinstance(value, dt.datetime) and (value.tzinfo is None) != (kind.tz is None):
                has = "no time zone" if value.tzinfo is None else f"the time zone {value.tzinfo}"
                return f"it has a datetime with {has}, and the column holds {kind}"
    return None


@dataclass(frozen=True, eq=False)
class RecordColumns:
    """The columns of a file, and the conversion of records to tables with these columns. Picklable."""

    schema: pa.Schema
    """The names and types of the columns."""

    inferred: bool
    """True if the schema was inferred from some records: then a value must have exactly its column's type.
    Else a value is converted to its column's type, if nothing of it is lost."""

    def table(self, records: Sequence[Any]) -> pa.Table:
        """Return records as a table.

        Raises:
            UnwritableRecord: a record is not a dict, has a column that the schema lacks, or a value that
                does not fit its column.
        """
        try:
            return self._table(records)
        except UnsupportedType as error:
            for place, record in enumerate(records):
                try:
                    self._table([record])
                except UnsupportedType as why:
                    raise UnwritableRecord(len(records) - place, str(why)) from why
            raise UnwritableRecord(len(records), str(error)) from error

    def of_batch(self, batch: pa.RecordBatch) -> pa.Table:
        """Return a record batch as a table; columns that have their type already are not copied.

        Raises:
            UnwritableRecord: as ``table``.
        """
        import pyarrow as pa

        found = {field.name: field.type for field in batch.schema}
        is_same = all(field.nullable and found.get(field.name) in (None, field.type) for field in self.schema)
        if not is_same or not found.keys() <= self._names:
            return self.table(batch.to_pylist())
        arrays = [
            batch.column(field.name) if field.name in found else pa.nulls(batch.num_rows, field.type)
            for field in self.schema
        ]
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def _table(self, records: Sequence[Any]) -> pa.Table:
        import pyarrow as pa

        check_names(records, self._names)
        arrays = [self._array(field, [record.get(field.name) for record in records]) for field in self.schema]
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def _array(self, field: pa.Field, values: list[Any]) -> pa.Array:
        try:
            self._check(values, field.type)
            array = converted(values, field.type)
        except UnsupportedType as error:
            raise UnsupportedType(f"column {field.name!r}: {error}") from None
        if array.null_count and not field.nullable:
            raise UnsupportedType(f"column {field.name!r}: it has none, and the schema does not allow that")
        return array

    def _check(self, values: list[Any], kind: pa.DataType) -> None:
        if not self.inferred:
            if (lost := loss(values, kind)) is not None:
                raise UnsupportedType(lost)
        elif merged(kind, found := type_of(values)) != kind:
            raise UnsupportedType(f"it has {found}, and the column holds {kind}")

    @cached
    def _names(self) -> frozenset[str]:
        return frozenset(self.schema.names)

    def __getstate__(self) -> dict[str, Any]:
        """Return the schema and ``inferred``, without what was computed from them."""
        return {"schema": self.schema, "inferred": self.inferred}


def converted(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Return values as an array of some type.

    Raises:
        UnsupportedType: a value cannot be converted to that type.
    """
    import pyarrow as pa

    try:
        is_coarse = pa.types.is_timestamp(kind) and kind.unit in ("s", "ms")
        if is_coarse and not any(isinstance(value, np.datetime64) for value in values):
            # A timestamp of this unit would drop the microseconds of a datetime.
            return pa.array(values, type=pa.timestamp("us", kind.tz)).cast(kind)
        return pa.array(values, type=kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise UnsupportedType(str(error)) from None


def check_names(records: Sequence[Any], names: frozenset[str] | None) -> None:
    """Raise an error for records that are not dicts, or that have names without a column.

    Args:
        records: the records.
        names: the columns; None for any.

    Raises:
        UnsupportedType: a record is not a dict, or a name in it is not a string or not a column.
    """
    for kind in set(map(type, records)):
        if not issubclass(kind, Mapping):
            raise UnsupportedType(
                f"it is a {kind.__name__}, and columns are made of dicts: make one of it first, as with "
                f'map(lambda record: {{"text": record}})'
            )
    found = set(chain.from_iterable(records))
    if names is not None and found <= names:
        return
    for name in found:
        check_name(name)
    if names is not None:
        more = ", ".join(map(repr, sorted(found - names)))
        raise UnsupportedType(f"it has {more}, and the schema has no column of that name")


_DIGITS = 38


def inferred_schema(chunks: Iterable[tuple[Sequence[Any], Callable[[int], str]]]) -> pa.Schema:
    """Return the schema of records, its names in the order in which they first come.

    Args:
        chunks: lists of records, each with a function of an index in the list that names the record.

    Raises:
        WrongType: a record is not a dict, or its values and those of other records have no common type.
    """
    import pyarrow as pa

    found: dict[str, pa.DataType] = {}
    for read, name in chunks:
        try:
            records = [record for record in read if record is not HOLE]
            found = _with(found, records)
        except UnsupportedType:
            place, why = _first_misfit(found, read)
            message = f"{name(place)} does not fit into columns with those before it: {why}"
            raise WrongType(message) from None
    return pa.schema([(column, _roomy(kind)) for column, kind in found.items()])


def _with(found: dict[str, pa.DataType], records: Sequence[Any]) -> dict[str, pa.DataType]:
    import pyarrow as pa

    check_names(records, None)
    names = dict.fromkeys(name for record in records for name in record)
    both = dict(found)
    for name in names:
        values = [record[name] for record in records if name in record]
        try:
            both[name] = merged(found.get(name, pa.null()), type_of(values))
        except UnsupportedType as error:
            raise UnsupportedType(f"column {name!r}: {error}") from None
    return both


def _first_misfit(found: dict[str, pa.DataType], read: Sequence[Any]) -> tuple[int, str]:
    """Return the index of the first record whose values do not fit to ``found``, and the reason."""
    for place, record in enumerate(read):
        try:
            found = found if record is HOLE else _with(found, [record])
        except UnsupportedType as error:
            return place, str(error)
    raise AssertionError(read)


def _roomy(kind: pa.DataType) -> pa.DataType:
    """Return a type with the most digits for decimals: records that were not read may have longer ones."""
    import pyarrow as pa

    if pa.types.is_decimal128(kind):
        return pa.decimal128(_DIGITS, kind.scale)
    return kind
