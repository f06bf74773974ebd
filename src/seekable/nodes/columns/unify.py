"""The columns of several datasets as those of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable._optional import optional

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = ["in_one"]


def in_one(declared: Sequence[Mapping[str, Any] | None]) -> Mapping[str, Any] | None:
    """Return the columns of all datasets, each with a type that holds all of its values.

    Args:
        declared: the Arrow types of some datasets' columns; None where they are not known.

    Returns:
        The types, None for a column whose types differ too much to have one in common; None for the whole if
        one of the datasets does not know its columns.

    Example:
        >>> import pyarrow as pa
        >>> dict(in_one([{"n": pa.int8()}, {"n": pa.int64(), "text": pa.string()}]))
        {'n': DataType(int64), 'text': DataType(string)}
    """
    first = declared[0]
    if first is None or len(declared) == 1 or all(other is first for other in declared):
        return first
    found: dict[str, Any] = {}
    for columns in declared:
        if columns is None:
            return None
        for name, kind in columns.items():
            found[name] = kind if name not in found else _common(found[name], kind)
    return found


def _common(one: Any, other: Any) -> Any:
    if one is None or other is None or one.equals(other):
        return one if other is not None else None
    schemas = [pa.schema([("column", kind)]) for kind in (one, other)]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field("column").type
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        return None
