"""The fields of nodes in a pipeline file: their types, and the values of users.

A field is written and read by its type, which its annotation names. What JSON has is written as it is, and
values of the user by `value_as_json`; ``node_json`` has the ways of the other types.
"""

from __future__ import annotations

import base64
import binascii
import math
import types
import typing
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

import msgspec

from seekable._optional import optional
from seekable._typing import Int64s
from seekable.errors import CorruptState, InvalidArgument
from seekable.formats.contract import Format, OnError
from seekable.index.fileset import FileSet
from seekable.index.surveyor import TableIndexer
from seekable.nodes.columns.choose import Missing
from seekable.nodes.columns.decode_column import DecodeTable
from seekable.nodes.columns.partitions import KeyType
from seekable.nodes.files.decoder import Decoder
from seekable.nodes.key import Keys
from seekable.nodes.node import Node
from seekable.nodes.saved_rows import KeptRows

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = [
    "NodeField",
    "checked",
    "fields_of",
    "pair_type",
    "value_as_json",
    "value_from_json",
]

_NAMES: dict[str, Any] = {
    "Callable": Callable,
    "DecodeTable": DecodeTable,
    "Decoder": Decoder,
    "FileSet": FileSet,
    "Int64s": Int64s,
    "KeptRows": KeptRows,
    "KeyType": KeyType,
    "Keys": Keys,
    "Missing": Missing,
    "Node": Node,
    "OnError": OnError,
    "ToItems": Callable[[Any], Any] | None,
}
"""The types of the core that modules of nodes import for type checkers alone."""


class NodeField(typing.NamedTuple):
    """A field of a class of nodes."""

    field: Field[Any]

    type: Any
    """The type by which its values are written."""

    optional: bool
    """True if a value may be None."""

    @property
    def required(self) -> bool:
        """True if every pipeline file has a value."""
        return self.field.default is MISSING

    def is_default(self, value: Any) -> bool:
        """Return True if a value is the default, and need not be written."""
        default = self.field.default
        return not self.required and (value is default or value == default)


@cache
def fields_of(kind: type[Node]) -> dict[str, NodeField]:
    """Return the fields of a class of nodes by name: texts and formats first.

    Other fields need these: how files are read depends on their format.

    Example:
        >>> from seekable.nodes.shuffle import Shuffle
        >>> {name: field.type for name, field in fields_of(Shuffle).items() if name != "child"}
        {'seed': <class 'int'>, 'fixed': <class 'bool'>}
    """
    resolved = typing.get_type_hints(kind, localns=_NAMES)
    declared = fields(kind)  # type: ignore[arg-type]  # every concrete node is a dataclass
    found = [NodeField(field, *_type_of(resolved[field.name])) for field in declared]
    found.sort(key=lambda each: not _is_format(each.type))
    return {each.field.name: each for each in found}


def _is_format(kind: Any) -> bool:
    return kind in (str, TableIndexer) or (isinstance(kind, type) and issubclass(kind, Format))


def _type_of(annotated: Any) -> tuple[Any, bool]:
    """Return the type by which values of a field are written, and if they may be None.

    It is ``Callable`` of all functions, and ``TableIndexer`` of formats of tables. Plain types keep None.
    """
    kinds = get_args(annotated) if get_origin(annotated) in (Union, types.UnionType) else (annotated,)
    kind = kinds[0]
    if get_origin(kind) is Callable:
        kind = Callable
    elif TableIndexer in getattr(kind, "__mro__", ()):
        kind = TableIndexer
    elif kind is not Keys and not hasattr(kind, "from_json"):
        kind = annotated
    return kind, types.NoneType in kinds


def pair_type(kind: Any) -> Any:
    """Return the type of the values of pairs with a name that JSON lacks; None for other types.

    Example:
        >>> pair_type(tuple[tuple[str, Any], ...]), pair_type(tuple[tuple[str, str], ...])
        (typing.Any, None)
    """
    if get_origin(kind) is not tuple or get_origin(pair := get_args(kind)[0]) is not tuple:
        return None
    value = get_args(pair)[-1]
    return value if value is Any or hasattr(value, "from_json") else None


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
        return _arrow_type_as_json(value)
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
        return _arrow_type_from_json(document, where)
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


def _arrow_type_as_json(kind: pa.DataType) -> dict[str, str]:
    """Return an Arrow type as its text, and as the schema of one column, which is read."""
    schema = pa.schema([("", kind)]).serialize().to_pybytes()
    return {"arrow": str(kind), "schema": base64.b64encode(schema).decode()}


def _arrow_type_from_json(document: Any, where: str) -> pa.DataType:
    """Return the Arrow type that `_arrow_type_as_json` wrote.

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
