"""Arrow types of columns: the common types of several datasets, and values for columns by type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable._optional import optional
from seekable.errors import WrongType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = ["common_types", "fill_values"]


def common_types(declared: Sequence[Mapping[str, Any] | None]) -> Mapping[str, Any] | None:
    """Return the columns of all datasets, each with a type that holds its values in all of them.

    Args:
        declared: for each dataset the Arrow types of its columns; None if they are unknown.

    Returns:
        The types by column; None as the type of a column whose types have no common one. None instead of the
        dict if the columns of a dataset are unknown.

    Example:
        >>> import pyarrow as pa
        >>> dict(common_types([{"n": pa.int8()}, {"n": pa.int64(), "text": pa.string()}]))
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


_NAMES: dict[str, tuple[str, ...]] = {
    "int": ("int", "uint"),
    "float": ("float", "double", "halffloat"),
    "str": ("string", "large_string", "string_view"),
    "bool": ("bool",),
    "bytes": ("binary", "large_binary"),
    "list": ("list", "large_list", "fixed_size_list"),
    "dict": ("struct",),
}

_ZEROS: dict[str, Any] = {"int": 0, "float": 0.0, "str": "", "bool": False}

_DIGITS = "0123456789"


def fill_values(
    schema: pa.Schema,
    *,
    types: Mapping[Any, Any] | None,
    auto: bool,
    default: Any,
    columns: Mapping[str, Any],
) -> dict[str, Any]:
    """Return a value for each column that has one: by its name, else its type, else the default.

    Args:
        schema: the columns and their types.
        types: values by type: int, float, str, bool, bytes, list, dict, or the name that Arrow has for one
            (``"int64"``, ``"string"``).
        auto: True to fill numbers with 0, texts with ``""`` and bools with False.
        default: the value for columns of any other type; None to leave them out.
        columns: values by name.

    Raises:
        WrongType: a key of ``types`` is none of these.

    Example:
        >>> import pyarrow as pa
        >>> schema = pa.schema({"n": pa.int64(), "text": pa.string(), "at": pa.date32()})
        >>> fill_values(schema, types={str: "?"}, auto=True, default=None, columns={})
        {'n': 0, 'text': '?'}
    """
    by_type = {_name(kind): value for kind, value in (types or {}).items()}
    found: dict[str, Any] = {}
    for field in schema:
        kind = field.type
        dictionary = getattr(kind, "value_type", None) if str(kind).startswith("dictionary") else None
        exact = str(dictionary or kind)
        family = _family(exact)
        if exact in by_type:
            found[field.name] = by_type[exact]
        elif family in by_type:
            found[field.name] = by_type[family]
        elif auto and family in _ZEROS:
            found[field.name] = _ZEROS[family]
        elif default is not None:
            found[field.name] = default
    return {**found, **columns}


def _family(exact: str) -> str | None:
    """Return the name of the Python type of the values of an Arrow type; None if there is none."""
    bare = exact.partition("<")[0].partition("[")[0].rstrip(_DIGITS)
    return next((family for family, names in _NAMES.items() if bare in names), None)


def _name(kind: object) -> str:
    if isinstance(kind, type) and kind.__name__ in _NAMES:
        return kind.__name__
    if isinstance(kind, str) or type(kind).__module__.startswith("pyarrow"):
        return str(kind)
    message = f"a type is {', '.join(_NAMES)} or one of Arrow's, such as 'int64' (got {kind!r})"
    raise WrongType(message)
