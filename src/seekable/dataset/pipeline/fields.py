"""The fields of nodes in a pipeline file: their types, the values and functions of users, and chosen rows.

A field is written and read by its type, which its annotation names. What JSON has is written as it is, and
values of the user by `value_as_json`; ``node_json`` has the ways of the other types. Functions and sequences
are written by name, and the caller gives them again.

Rows that were chosen by content lie in files beside the pipeline file: little-endian uint64 and nothing else.
The files of ``pipeline.json`` lie in ``pipeline.rows``, each named by the digest of its bytes, so that a file
never changes. They are written before the pipeline file that names them. Those of an earlier save stay: a
copy of the pipeline file may name them.
"""

from __future__ import annotations

import base64
import binascii
import functools
import math
import os
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

import msgspec
import numpy as np
import xxhash

from seekable._optional import optional
from seekable._typing import Int64s
from seekable.errors import CorruptState, DataNotFound, InvalidArgument, WrongType
from seekable.formats.contract import Format, OnError
from seekable.index.fileset import FileSet
from seekable.index.finder import TableIndexer
from seekable.nodes.columns.choose import Missing
from seekable.nodes.columns.decode_column import DecodeTable
from seekable.nodes.columns.partitions import KeyType
from seekable.nodes.files.decoders import Decoder
from seekable.nodes.key import Keys
from seekable.nodes.node import Node
from seekable.nodes.saved_rows import ROW_BYTES, KeptRows
from seekable.state.canonical import plain_json
from seekable.state.functions import NamedFunction, describe_function
from seekable.storage.addresses import shown
from seekable.storage.paths import output_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

else:
    pa = optional("pyarrow", extra="parquet")

__all__ = [
    "Given",
    "Names",
    "NodeField",
    "RowFiles",
    "checked",
    "described",
    "fields_of",
    "int_rows",
    "kept_rows",
    "pair_type",
    "same_function",
    "stand_in",
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


def described(fn: Callable[..., Any]) -> dict[str, Any]:
    """Return the name of a function, and the arguments of a partial, JSON-safe.

    Example:
        >>> described(str.upper)
        {'name': 'builtins.str.upper'}
    """
    description: dict[str, Any] = plain_json(describe_function(fn, "any"))
    del description["version"]
    return description


@dataclass(frozen=True, slots=True)
class Names:
    """The names of different objects; a name that several of them have is numbered."""

    _known: list[tuple[Any, str]] = field(default_factory=list)

    def of(self, thing: Any, wanted: str) -> str:
        """Return the name of an object, the same each time.

        Args:
            thing: a function or a sequence.
            wanted: the name that it has by itself.

        Example:
            >>> names = Names()
            >>> one, two = (lambda: 1), (lambda: 2)
            >>> names.of(one, "f"), names.of(two, "f"), names.of(one, "f")
            ('f', 'f#2', 'f')
        """
        for known, name in self._known:
            if known is thing or (isinstance(thing, types.MethodType) and known == thing):
                return name
        taken = {name for _, name in self._known}
        numbers = (f"{wanted}#{number}" for number in range(2, len(taken) + 3))
        name = next(name for name in (wanted, *numbers) if name not in taken)
        self._known.append((thing, name))
        return name


class Given:
    """The functions, or the sequences, that the caller of ``load_pipeline`` gives for names of the file."""

    def __init__(self, argument: str, given: object) -> None:
        """Check the type of an argument.

        Args:
            argument: the name of the argument, for messages.
            given: the objects by name, or None.

        Raises:
            WrongType: ``given`` is not a mapping of names.
        """
        given = {} if given is None else given
        if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
            message = f"{argument} must be a dict of names and objects (got {given!r:.100})"
            raise WrongType(message)
        self.argument = argument
        self._given: dict[str, Any] = dict(given)

    def missing(self, names: Iterable[str]) -> list[str]:
        """Return the names for which nothing is given, in their order.

        Raises:
            InvalidArgument: a shortened name stands for several names.
        """
        names = list(names)
        return [name for name in names if self._key(name, names) is None]

    def get(self, name: str, names: Sequence[str]) -> Any:
        """Return the object for a name: that of the whole name, or of its last part or parts."""
        key = self._key(name, names)
        assert key is not None
        return self._given[key]

    def _key(self, name: str, names: Sequence[str]) -> str | None:
        if name in self._given:
            return name
        for key in self._given:
            meant = [each for each in names if each.endswith(f".{key}")]
            if name in meant and key not in names:
                if len(meant) > 1:
                    whole = ", ".join(map(repr, meant))
                    message = f"{self.argument}: {key!r} may be any of {whole}: give the whole names"
                    raise InvalidArgument(message)
                return key
        return None


def stand_in(description: Mapping[str, Any]) -> Callable[..., Any]:
    """Return a function with the description of one that is not there; a call of it raises an error."""
    arguments, named = description.get("arguments", ((), {}))
    function = (
        functools.partial(_not_there, *arguments, **named) if "arguments" in description else _not_there
    )
    return NamedFunction(function, str(description["name"]))


def _not_there(*_: object, **__: object) -> None:
    message = "a pipeline file was loaded for its order alone, and a record of it is read"
    raise InvalidArgument(message)


def same_function(name: str, description: Mapping[str, Any], given: Any) -> Callable[..., Any]:
    """Return a function under the name that it has in the file, so that the fingerprint stays the same.

    Args:
        name: the name in the file.
        description: what `described` returned when the file was written.
        given: the function of the caller.

    Raises:
        WrongType: it cannot be called.
        InvalidArgument: it is a partial with other arguments.
    """
    found = described(given)
    if found.get("arguments") != description.get("arguments"):
        message = (
            f"functions[{name!r}] must be {_in_words(description)}, as it was when the pipeline was saved "
            f"(got {_in_words(found)})"
        )
        raise InvalidArgument(message)
    function: Callable[..., Any] = given
    return function if found == description else NamedFunction(function, str(description["name"]))


def _in_words(description: Mapping[str, Any]) -> str:
    if "arguments" not in description:
        return "a function that is no partial"
    arguments, named = description["arguments"]
    given = [*map(repr, arguments), *(f"{name}={value!r}" for name, value in named.items())]
    return f"functools.partial({', '.join(['...', *given])})"


_SUFFIX = ".u64"
_MOST_INLINE = 64
"""The most rows of a selection that stand in the pipeline file itself."""


class RowFiles:
    """The row files of one pipeline file, which are written together."""

    def __init__(self, pipeline: str) -> None:
        """Write nothing yet.

        Args:
            pipeline: the absolute path of the pipeline file.
        """
        self._folder = f"{pipeline.removesuffix('.json')}.rows"
        self._rows: dict[str, memoryview] = {}

    def add(self, rows: KeptRows | Int64s) -> dict[str, Any]:
        """Return what stands in the pipeline file for some rows: their file, or a few rows of a selection.

        Raises:
            IndexStale, CorruptState: the file of chosen rows is gone, or has changed.
        """
        if isinstance(rows, KeptRows):
            rows.check()
            data = rows.view.cast("B") if rows.count else memoryview(b"")
        elif rows.size <= _MOST_INLINE:
            return {"rows": rows.tolist()}
        else:
            data = memoryview(rows.astype("<i8").tobytes())
        digest = xxhash.xxh3_64_hexdigest(data)
        self._rows[digest] = data
        return {
            "file": f"{os.path.basename(self._folder)}/{digest}{_SUFFIX}",
            "count": len(data) // ROW_BYTES,
            "digest": f"xxh3:{digest}",
        }

    def write(self) -> None:
        """Write the files, each whole or not at all.

        Raises:
            OSError: the folder cannot be written, or the disk is full.
        """
        if self._rows:
            output_of(self._folder).make_folder(self._folder)
        for digest, data in self._rows.items():
            output_of(self._folder).write(os.path.join(self._folder, f"{digest}{_SUFFIX}"), data)


class _RowFile(msgspec.Struct):
    file: str
    count: int
    digest: str


def kept_rows(document: Any, folder: str, where: str) -> KeptRows:
    """Return rows that were chosen by content, after a check of their file.

    Args:
        document: what `RowFiles.add` returned.
        folder: the folder of the pipeline file.
        where: the place in the pipeline file, for messages.

    Raises:
        DataNotFound: the file does not exist.
        CorruptState: it was cut or changed, or the document is no such thing.
    """
    said = checked(document, _RowFile, where)
    parts = said.file.split("/")
    if os.path.isabs(said.file) or not {"", ".", ".."}.isdisjoint(parts):
        message = f"{where}.file: expected a path below the folder of the pipeline file (got {said.file!r})"
        raise CorruptState(message)
    path = os.path.join(folder, said.file)
    size = output_of(path).size(path)
    if size is None:
        message = (
            f"{where}: there is no {shown(path)!r}, which holds the {said.count:,} rows that were chosen: "
            f"copy the folder {parts[0]!r} together with the pipeline file, or save the pipeline again"
        )
        raise DataNotFound(message)
    if size != said.count * ROW_BYTES:
        message = (
            f"{where}: {shown(path)!r} has {size:,} bytes, and {said.count:,} rows have "
            f"{said.count * ROW_BYTES:,}: it was cut or replaced; copy it again, or save the pipeline again"
        )
        raise CorruptState(message)
    rows = KeptRows(output_of(path).kept_local(path, size), said.count, said.digest, named=True)
    _check_digest(rows, where)
    return rows


def int_rows(document: Any, folder: str, where: str) -> Int64s:
    """Return the rows of a selection: those of its file, or those in the document.

    Raises:
        DataNotFound, CorruptState: as `kept_rows`.
    """
    if isinstance(document, dict) and document.keys() == {"rows"}:
        return np.array(checked(document["rows"], list[int], f"{where}.rows"), dtype=np.int64)
    return np.array(kept_rows(document, folder, where).array)


def _check_digest(rows: KeptRows, where: str) -> None:
    try:
        rows.check()
    except CorruptState:
        data = rows.view if rows.count else b""
        message = (
            f"{where}: {rows.path!r} has the digest xxh3:{xxhash.xxh3_64_hexdigest(data)}, and the pipeline "
            f"file says {rows.digest}: something changed it; copy it again, or save the pipeline again"
        )
        raise CorruptState(message) from None
