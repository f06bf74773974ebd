"""The arguments of nodes in a pipeline file: a way to write, and to check and read, each type of argument.

The type is the annotation of the field in the node's class. What JSON has is written as it is (`PLAIN`), and
values of the user by `value_as_json`; ``write_nodes`` and ``read_nodes`` have the ways of the other types.
"""

from __future__ import annotations

import base64
import binascii
import math
from typing import TYPE_CHECKING, Any

import msgspec

from seekable._optional import optional
from seekable.errors import CorruptState, InvalidArgument
from seekable.nodes.columns.choose import Missing
from seekable.nodes.columns.decode_column import DecodeTable
from seekable.nodes.columns.hive_folders import KeyType
from seekable.nodes.join_matching import How
from seekable.nodes.mix import Stop
from seekable.packing.nodes.sample_cut import SampleCut
from seekable.packing.nodes.sample_form import SampleForm

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = [
    "PLAIN",
    "arrow_type_as_json",
    "arrow_type_from_json",
    "checked",
    "value_as_json",
    "value_from_json",
]

PLAIN: dict[str, Any] = {
    "bool": bool,
    "int": int,
    "int | None": int | None,
    "str": str,
    "str | None": str | None,
    "str | int | None": str | int | None,
    "tuple[float, ...] | None": tuple[float, ...] | None,
    "tuple[int, ...]": tuple[int, ...],
    "tuple[str, ...]": tuple[str, ...],
    "tuple[str, ...] | None": tuple[str, ...] | None,
    "tuple[tuple[str, str], ...]": tuple[tuple[str, str], ...],
    "tuple[tuple[str, tuple[tuple[str, str], ...]], ...]": tuple[
        tuple[str, tuple[tuple[str, str], ...]], ...
    ],
    "tuple[tuple[int, tuple[int, ...]], ...]": tuple[tuple[int, tuple[int, ...]], ...],
    "DecodeTable": DecodeTable,
    "SampleCut": SampleCut,
    "SampleForm": SampleForm,
    "How": How,
    "Missing": Missing,
    "tuple[tuple[str, KeyType], ...]": tuple[tuple[str, KeyType], ...],
    "Stop": Stop,
}
"""The types of arguments that JSON has, by their annotations."""


def checked(value: Any, kind: Any, where: str) -> Any:
    """Return a value of a pipeline file as a type; lists become the tuples that the type has.

    Args:
        value: the value, as JSON has it.
        kind: the type.
        where: the place of the value in the file, for the message.

    Raises:
        CorruptState: the value is of another type.

    Example:
        >>> checked([["a", "b"]], tuple[tuple[str, str], ...], "rename.names")
        (('a', 'b'),)
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        message = f"{where}: {str(error)[0].lower()}{str(error)[1:]} (got {_short(value)})"
        raise CorruptState(message) from None


def value_as_json(value: Any, where: str) -> Any:
    """Return a value of the user as JSON: what JSON lacks is an object that names the type.

    Raises:
        InvalidArgument: a pipeline file has no way to write the value.

    Example:
        >>> value_as_json([1, b"a", (None,)], "fill()")
        {'list': [1, {'bytes': '61'}, {'tuple': [None]}]}
    """
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if type(value) is bytes:
        return {"bytes": value.hex()}
    if type(value) in (list, tuple):
        return {type(value).__name__: [value_as_json(each, where) for each in value]}
    if type(value).__module__.partition(".")[0] == "pyarrow" and hasattr(value, "to_pandas_dtype"):
        return arrow_type_as_json(value)
    if type(value) is dict:
        pairs = [[value_as_json(part, where) for part in pair] for pair in value.items()]
        return {"dict": pairs}
    message = (
        f"{where} has a value of type {type(value).__name__}, {_short(value)}, and a pipeline file "
        f"holds None, bools, numbers, strings, bytes, lists, tuples, dicts and types of Arrow: make the "
        f"value in a function of map()"
    )
    raise InvalidArgument(message)


def value_from_json(document: Any, where: str) -> Any:
    """Return the value that `value_as_json` wrote.

    Raises:
        CorruptState: it wrote no such thing.
    """
    if not isinstance(document, dict):
        if isinstance(document, list):
            message = f"{where}: expected a value, or an object that names its type (got {_short(document)})"
            raise CorruptState(message)
        return document
    if "arrow" in document:
        return arrow_type_from_json(document, where)
    if len(document) == 1:
        ((name, held),) = document.items()
        if name in _VALUES:
            kind, make = _VALUES[name]
            try:
                return make(checked(held, kind, where), where)
            except (ValueError, TypeError) as error:
                message = f"{where}: no {name}: {error}"
                raise CorruptState(message) from None
    message = f"{where}: expected an object with one of {', '.join(_VALUES)} (got {_short(document)})"
    raise CorruptState(message)


def arrow_type_as_json(kind: pa.DataType) -> dict[str, str]:
    """Return an Arrow type as its text, and as the schema of one column, which is read."""
    schema = pa.schema([("", kind)]).serialize().to_pybytes()
    return {"arrow": str(kind), "schema": base64.b64encode(schema).decode()}


def arrow_type_from_json(document: Any, where: str) -> pa.DataType:
    """Return the Arrow type that `arrow_type_as_json` wrote.

    Raises:
        CorruptState: it wrote no such thing.
    """
    text = checked(document.get("schema"), str, f"{where}.schema")
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text, validate=True)))
        return schema.field(0).type
    except (pa.ArrowException, binascii.Error, OSError, LookupError) as error:
        message = f"{where}: no type of Arrow ({error})"
        raise CorruptState(message) from None


def _values(held: Any, where: str) -> list[Any]:
    return [value_from_json(each, where) for each in held]


_VALUES: dict[str, tuple[Any, Callable[[Any, str], Any]]] = {
    "float": (str, lambda held, _: float(held)),
    "bytes": (str, lambda held, _: bytes.fromhex(held)),
    "list": (list[Any], _values),
    "tuple": (list[Any], lambda held, where: tuple(_values(held, where))),
    "dict": (
        list[tuple[Any, Any]],
        lambda held, where: {
            value_from_json(key, where): value_from_json(value, where) for key, value in held
        },
    ),
}

_MOST_CHARACTERS = 80


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."
