"""Nested columns, put together from their leaves.

Each leaf alone decodes to the column with one field: a list of pairs to a list of structs with the first
field, and to a list of structs with the second one. The lists have equal lengths, and nulls in the same rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._optional import optional
from seekable.formats.tables.parquet.thrift import ThriftError

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = ["leaves_of", "merged"]


def leaves_of(kind: pa.DataType) -> int:
    """Return the number of leaves of a type in Parquet; too few if it cannot be put together from leaves.

    An extension type over several leaves is such a type: pyarrow makes its values of all leaves alone.

    Example:
        >>> import pyarrow as pa
        >>> leaves_of(pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())])))
        2
    """
    count = sum(leaves_of(child) for child in children) if (children := _children(kind)) else 1
    return 0 if isinstance(kind, pa.BaseExtensionType) and count > 1 else count


def _children(kind: pa.DataType) -> list[pa.DataType]:
    if isinstance(kind, pa.BaseExtensionType):
        return [kind.storage_type]
    if pa.types.is_map(kind):
        return [_entries(kind)]
    if pa.types.is_struct(kind):
        return [field.type for field in kind]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [kind.value_type]
    return []


def _entries(kind: pa.MapType) -> pa.StructType:
    return pa.struct([kind.key_field, kind.item_field])


def merged(kind: pa.DataType, parts: list[Any]) -> pa.Array:
    """Return a column merged from its leaves.

    Args:
        kind: the column's type.
        parts: for each leaf the column as it is without the others.

    Raises:
        ThriftError: the parts do not fit together.
    """
    if len(parts) == 1 and parts[0].type == kind:
        return parts[0]
    if len({len(part) for part in parts}) != 1 or leaves_of(kind) != len(parts) or not _children(kind):
        raise ThriftError(f"values of {len(parts)} leaves do not make {kind}")
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(
            kind, merged(kind.storage_type, [_storage(part) for part in parts])
        )
    shape = parts[0]
    nulls = shape.is_valid().buffers()[1] if shape.null_count else None
    if pa.types.is_struct(kind):
        return pa.Array.from_buffers(kind, len(shape), [nulls], children=_fields(kind, parts))
    if pa.types.is_fixed_size_list(kind):
        size = kind.list_size
        inner = [part.values.slice(part.offset * size, len(part) * size) for part in parts]
        return pa.Array.from_buffers(kind, len(shape), [nulls], children=[merged(kind.value_type, inner)])
    (below,) = _children(kind)
    values = merged(below, [part.flatten() for part in parts])
    return pa.Array.from_buffers(kind, len(shape), [nulls, _offsets(kind, parts)], children=[values])


def _fields(kind: pa.StructType, parts: list[Any]) -> list[Any]:
    made, at = [], 0
    for field in kind:
        count = leaves_of(field.type)
        made.append(merged(field.type, [part.field(0) for part in parts[at : at + count]]))
        at += count
    return made


def _offsets(kind: pa.DataType, parts: list[Any]) -> pa.Buffer:
    """Return the offset of each list; a null has an empty one."""
    bounds = []
    for part in parts:
        lengths = np.diff(part.offsets.to_numpy())
        lengths[part.is_null().to_numpy(zero_copy_only=False)] = 0
        bounds.append(np.cumsum(np.append(0, lengths), dtype=np.int64))
    if any(not np.array_equal(bound, bounds[0]) for bound in bounds[1:]):
        raise ThriftError(f"lists of different lengths do not make {kind}")
    width = np.int64 if pa.types.is_large_list(kind) else np.int32
    return pa.py_buffer(bounds[0].astype(width))


def _storage(part: pa.Array) -> pa.Array:
    return part.storage if isinstance(part.type, pa.BaseExtensionType) else part
