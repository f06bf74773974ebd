"""The columns of Ray's blocks: one schema for a whole dataset, and the conversion of records to tables.

Columns of records that are arrays of numpy become Ray's tensors, which come back as one array of a batch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from ray.data.extensions import (
    ArrowTensorArray,
    ArrowVariableShapedTensorArray,
    ArrowVariableShapedTensorType,
    get_arrow_extension_tensor_types,
)

from seekable.errors import InvalidArgument, WrongType
from seekable.formats.file_format import UnwritableRecord
from seekable.formats.tables.arrow_table import Columns, check_names, inferred_schema
from seekable.nodes.columns.arrow_types import UnsupportedType
from seekable.nodes.graph import HOLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Previewed = tuple[Sequence[Any], Callable[[int], str]]

__all__ = ["ITEM", "WAY_OUT", "BlockColumns", "columns_of"]

ITEM = "item"
"""The column of records that are no dicts; Ray's own name for it."""

WAY_OUT = (
    "the files, or the records looked at first, say so: give sk_source(..., schema=) what all columns hold, "
    "or make the records fit with map()"
)


@dataclass(frozen=True, eq=False)
class BlockColumns:
    """The columns of all blocks. Picklable."""

    names: tuple[str, ...]
    """All columns, in their order."""

    plain: Columns
    """The columns that are no tensors."""

    tensors: Mapping[str, Any]
    """The types of Ray for the columns of arrays."""

    boxed: bool
    """True if records are no dicts, so that each is the value of the one column `ITEM`."""

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types."""
        kinds = {field.name: field.type for field in self.plain.schema} | dict(self.tensors)
        return pa.schema([(name, kinds[name]) for name in self.names])

    def only(self, names: Iterable[str]) -> BlockColumns:
        """Return some of the columns, in the order of ``names``."""
        chosen = tuple(name for name in names if name in self.names)
        fields = [field for field in self.plain.schema if field.name in chosen]
        tensors = {name: kind for name, kind in self.tensors.items() if name in chosen}
        return replace(
            self, names=chosen, plain=replace(self.plain, schema=pa.schema(fields)), tensors=tensors
        )

    def of_records(self, records: Sequence[Any], *, narrowed: bool) -> pa.Table:
        """Return records as a table.

        Args:
            records: the records, without holes.
            narrowed: True if records may have other columns, which are left out.

        Raises:
            UnwritableRecord: a record does not fit into the columns.
        """
        rows = [{ITEM: record} for record in records] if self.boxed else records
        _check_dicts(rows, None if narrowed else frozenset(self.names))
        others = [name for name in self.names if name not in self.tensors]
        plain = self.plain.table([_part(row, others) for row in rows]) if others else pa.table({})
        columns = {name: self._tensors(name, rows) for name in self.tensors}
        columns |= {name: plain.column(name) for name in others}
        if not columns:
            return pa.table({"none": pa.nulls(len(rows))}).select([])
        return pa.table({name: columns[name] for name in self.names})

    def of_batch(self, batch: pa.RecordBatch) -> pa.Table:
        """Return a record batch as a table; columns that have their type already are not copied.

        Raises:
            WrongType: a column has another type, which does not fit.
        """
        there = set(batch.schema.names)
        arrays = [
            _fitting(batch.column(field.name), field)
            if field.name in there
            else pa.nulls(len(batch), field.type)
            for field in self.schema
        ]
        if not arrays:
            return pa.table({"none": pa.nulls(len(batch))}).select([])
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def _tensors(self, name: str, rows: Sequence[Mapping[str, Any]]) -> pa.Array:
        """Return the arrays of a column as tensors of Ray.

        Raises:
            UnwritableRecord: a value is no array of the column's shape and type.
        """
        kind, values = self.tensors[name], [row.get(name) for row in rows]
        for place, value in enumerate(values):
            if not _is_tensor_of(kind, value):
                why = f"column {name!r}: it has {_shown(value)}, and the column holds {kind}"
                raise UnwritableRecord(len(values) - place, why)
        return _tensor_array(values, variable=isinstance(kind, ArrowVariableShapedTensorType))


def columns_of(
    previewed: Iterable[Previewed], *, declared: Mapping[str, Any] | None, given: Any
) -> BlockColumns:
    """Return the columns of all records.

    Args:
        previewed: some records, in lists, each with a function of an index that names a record. They are read
            only where nothing else decides.
        declared: the columns that the files declare, if they do.
        given: the ``pyarrow.Schema`` of the user; None for none.

    Raises:
        WrongType: ``given`` is no schema, or records have no common columns.
        InvalidArgument: a column is there twice.
    """
    if given is not None:
        return _of_schema(_checked_schema(given), boxed=_is_boxed(previewed))
    if declared is not None and None not in declared.values():
        return _of_schema(pa.schema(list(declared.items())), boxed=False)
    chunks = [(list(records), name) for records, name in previewed]
    kept = [record for records, _ in chunks for record in records if record is not HOLE]
    boxed = bool(kept) and not isinstance(kept[0], dict)
    if boxed:
        kept = [{ITEM: record} for record in kept]
        chunks = [
            ([record if record is HOLE else {ITEM: record} for record in records], name)
            for records, name in chunks
        ]
    tensors = _tensor_types([record for record in kept if isinstance(record, dict)])
    others = [([_without(record, tensors) for record in records], name) for records, name in chunks]
    try:
        schema = inferred_schema(others)
    except WrongType as error:
        message = f"{error}; {WAY_OUT}"
        raise WrongType(message) from None
    names = dict.fromkeys(name for record in kept for name in record)
    return BlockColumns(tuple(names), Columns(schema, inferred=True), tensors, boxed)


def _of_schema(schema: pa.Schema, *, boxed: bool) -> BlockColumns:
    kinds = get_arrow_extension_tensor_types()
    tensors = {field.name: field.type for field in schema if isinstance(field.type, kinds)}
    plain = pa.schema([field for field in schema if field.name not in tensors])
    return BlockColumns(tuple(schema.names), Columns(plain, inferred=False), tensors, boxed)


def _checked_schema(schema: Any) -> pa.Schema:
    if not isinstance(schema, pa.Schema):
        message = f"schema must be a pyarrow.Schema (got {schema!r} of type {type(schema).__name__})"
        raise WrongType(message)
    if twice := sorted({name for name in schema.names if schema.names.count(name) > 1}):
        message = f"a schema has each column once (got {', '.join(map(repr, twice))} several times)"
        raise InvalidArgument(message)
    return schema


def _is_boxed(previewed: Iterable[Previewed]) -> bool:
    """Return True if the first record is no dict."""
    records = (record for records, _ in previewed for record in records if record is not HOLE)
    return not isinstance(next(records, {}), dict)


def _check_dicts(rows: Sequence[Any], names: frozenset[str] | None) -> None:
    """Raise `UnwritableRecord` for a record that is no dict, or has a name that is not among ``names``."""
    try:
        check_names(rows, names)
    except UnsupportedType:
        for place, row in enumerate(rows):
            try:
                check_names([row], names)
            except UnsupportedType as error:
                raise UnwritableRecord(len(rows) - place, str(error)) from None


def _part(row: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: row[name] for name in names if name in row}


def _without(record: Any, names: Mapping[str, Any]) -> Any:
    if not isinstance(record, dict):
        return record
    return {name: value for name, value in record.items() if name not in names}


def _tensor_types(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the types of the columns that are arrays of numbers, of one dtype, in all records.

    Arrays of one dimension and of different lengths are lists, which a batch can hold as such.
    """
    names = dict.fromkeys(name for record in records for name in record)
    found = {}
    for name in names:
        values: list[Any] = [record.get(name) for record in records]
        if not all(isinstance(value, np.ndarray) and value.dtype.kind in "biuf" for value in values):
            continue
        if len({(value.dtype, value.ndim) for value in values}) > 1 or not values[0].ndim:
            continue
        variable = len({value.shape for value in values}) > 1
        if not variable or values[0].ndim > 1:
            found[name] = _tensor_array(values[:1], variable=variable).type
    return found


def _tensor_array(values: list[Any], *, variable: bool) -> pa.Array:
    if variable:
        return ArrowVariableShapedTensorArray.from_numpy(values)
    return ArrowTensorArray.from_numpy(np.stack(values))


def _is_tensor_of(kind: Any, value: Any) -> bool:
    if not isinstance(value, np.ndarray) or value.dtype != _dtype_of(kind):
        return False
    if isinstance(kind, ArrowVariableShapedTensorType):
        return value.ndim == kind.ndim
    return bool(value.shape == tuple(kind.shape))


def _dtype_of(kind: Any) -> np.dtype[Any]:
    storage = kind.storage_type
    values = storage.field("data").type.value_type if pa.types.is_struct(storage) else storage.value_type
    dtype: np.dtype[Any] = np.dtype(values.to_pandas_dtype())
    return dtype


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of the shape {value.shape}"
    return "nothing" if value is None else f"a {type(value).__name__}"


def _fitting(array: pa.Array, field: pa.Field) -> pa.Array:
    if array.type == field.type:
        return array
    try:
        return array.cast(field.type)
    except pa.ArrowException as error:
        message = (
            f"column {field.name!r} is {array.type}, and {field.type} in other files: {error}; {WAY_OUT}"
        )
        raise WrongType(message) from None
