"""Columns of lines of JSON, without a dict for each line.

Lines are decoded to structs whose fields have the types of the columns, so that a value of another type is
an error of the decoder. A column of floats may have integers too, and pyarrow refuses those that no float
equals. Whoever gets an error decodes the records one by one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from seekable._optional import optional
from seekable.formats.lines.json_fields import decode_lines
from seekable.nodes.columns.arrow_types import UnsupportedType, merged, type_of
from seekable.nodes.columns.decode_column import numpy_values
from seekable.nodes.columns.record_batches import with_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = ["arrays", "exact", "table"]

_EXACT: Final = 2.0**53
"""From here on an integer may be none of the floats: pyarrow looks at them."""


def exact(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return values as an array in some type, if it holds each value exactly.

    Raises:
        UnsupportedType: a value is of another type.
        ArrowException, OverflowError, ValueError: the type has no such value.

    Example:
        >>> import pyarrow as pa
        >>> exact([1, 2.5, None], pa.float64()).to_pylist()
        [1.0, 2.5, None]
    """
    found = type_of(values)
    if merged(kind, found) != kind:
        raise UnsupportedType(f"it is {found}")
    return pa.array(values, kind)


def table(views: Sequence[memoryview], schema: pa.Schema, *, only_these: bool) -> pa.RecordBatch:
    """Return lines as one record batch.

    Args:
        views: the ranges of the lines.
        schema: the columns.
        only_these: True if lines have no other fields.

    Raises:
        Exception: a line is no row of these columns, or may be none.
    """
    columns = _columns(views, schema, only_these=only_these)
    made = [_array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return with_rows(schema.names, made, len(views))


def arrays(views: Sequence[memoryview], schema: pa.Schema, *, only_these: bool) -> dict[str, Any]:
    """Return lines as a dict of arrays and lists, as ``numpy_batch`` makes them of a record batch.

    Args:
        views: the ranges of the lines.
        schema: the columns.
        only_these: True if lines have no other fields.

    Raises:
        Exception: as ``table``.
    """
    columns = _columns(views, schema, only_these=only_these)
    return {field.name: _numpy(values, field.type) for values, field in zip(columns, schema, strict=True)}


def _columns(views: Sequence[memoryview], schema: pa.Schema, *, only_these: bool) -> Sequence[Sequence[Any]]:
    """Return the values of each column."""
    structs = decode_lines(_decoder(schema, only_these=only_these), views, skips=not only_these)
    return list(zip(*map(msgspec.structs.astuple, structs), strict=True))


@lru_cache(maxsize=64)
def _decoder(schema: pa.Schema, *, only_these: bool) -> msgspec.json.Decoder[Any]:
    """Return a decoder of lines to structs.

    Raises:
        ValueError: msgspec takes no such names.
    """
    if not all(map(str.isascii, schema.names)):
        raise ValueError(schema.names)  # msgspec (0.22 for one) finds no other names.
    fields = [
        (f"field{number}", _type(field.type), msgspec.field(name=field.name, default=None))
        for number, field in enumerate(schema)
    ]
    kind = msgspec.defstruct("Line", fields, gc=False, forbid_unknown_fields=only_these)
    return msgspec.json.Decoder(kind)


def _type(kind: pa.DataType) -> Any:
    """Return the Python type of the values of a column; Any where pyarrow has to look at the values."""
    types = pa.types
    if types.is_null(kind):
        return None
    for belongs, plain in (
        (types.is_int64, int),
        (types.is_float64, int | float),
        (types.is_boolean, bool),
        (types.is_string, str),
    ):
        if belongs(kind):
            return plain | None
    if types.is_list(kind) and (inner := _type(kind.value_type)) is not Any:
        return list[inner] | None  # type: ignore[valid-type]  # the types are data
    return Any


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if (plain := _plain(values, kind)) is not None:
        return pa.array(plain)
    return exact(values, kind) if _type(kind) is Any else pa.array(values, kind)


def _numpy(values: Sequence[Any], kind: pa.DataType) -> Any:
    types = pa.types
    if types.is_string(kind):
        return list(values)
    if (plain := _plain(values, kind)) is not None:
        return plain
    if types.is_list(kind) and types.is_float64(kind.value_type) and None not in values:
        lists = [np.array(each, np.float64) for each in values]
        if _are_exact(np.concatenate(lists)):
            return lists
    made = numpy_values(_array(values, kind))
    return made.tolist() if made.dtype == object else made


def _plain(values: Sequence[Any], kind: pa.DataType) -> NDArray[Any] | None:
    """Return decoded integers, floats or bools as an array; None where pyarrow has to look at the values."""
    types, count = pa.types, len(values)
    if types.is_float64(kind):
        floats = np.fromiter(values, np.float64, count)
        return floats if _are_exact(floats) else None
    if not (types.is_int64(kind) or types.is_boolean(kind)) or None in values:
        return None
    return np.fromiter(values, kind.to_pandas_dtype(), count)


def _are_exact(floats: NDArray[np.float64]) -> bool:
    """Return True if no float was null, or an integer that it may not equal."""
    return not floats.size or bool(np.abs(floats).max() < _EXACT)
