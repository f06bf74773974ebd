"""JSON of states and descriptions: one text for one value, digests of it, and any file name.

Python has the bytes of a name that is not UTF-8 as lone surrogates, which strict JSON refuses. The ``json``
of Python writes them as escapes, so that the document is ASCII, and reads them back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import xxhash

from seekable._lazy import lazy

if TYPE_CHECKING:
    import json
else:
    json = lazy("json")

_ENCODER = msgspec.json.Encoder(order="sorted")


def canonical_json(value: Any) -> bytes:
    r"""Return the JSON of a value with sorted keys and no spaces; tuples become lists.

    A value with the name of a file that is not UTF-8, which has lone surrogates, is escaped to ASCII.

    Example:
        >>> canonical_json({"b": (1, 2), "a": None})
        b'{"a":null,"b":[1,2]}'
        >>> import os
        >>> canonical_json({"name": os.fsdecode(b"caf\xe9")})
        b'{"name":"caf\\udce9"}'
    """
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")


def parsed_json(text: str) -> Any:
    r"""Return the value of a canonical JSON text, also of one with lone surrogates.

    Raises:
        ValueError: the text is not JSON.

    Example:
        >>> import os
        >>> parsed_json('{"name":"caf\\udce9"}') == {"name": os.fsdecode(b"caf\xe9")}
        True
    """
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return json.loads(text)


def plain_json(value: Any) -> Any:
    """Return a value as JSON has it, nothing of it shared: tuples become lists.

    Example:
        >>> plain_json({"b": (1, 2)})
        {'b': [1, 2]}
    """
    try:
        return msgspec.json.decode(msgspec.json.encode(value))
    except UnicodeEncodeError:
        return json.loads(json.dumps(value))


def fingerprint_of(description: Any) -> str:
    """Return the digest that names a description: ``xxh3:`` and 32 hexadecimal digits.

    Example:
        >>> fingerprint_of({"kind": "take", "count": 3})[:5]
        'xxh3:'
    """
    return f"xxh3:{xxhash.xxh3_128_hexdigest(canonical_json(description))}"


Kind = TypeVar("Kind")


def encode_names(document: Any, *, indented: bool) -> bytes:
    r"""Return a document as JSON, with a line end.

    Args:
        document: a ``msgspec.Struct``, or what JSON has.
        indented: True for a line for each value, False for one line.

    Example:
        >>> encode_names({"name": "bad\udcff"}, indented=False)
        b'{"name": "bad\\udcff"}\n'
    """
    try:
        data = msgspec.json.encode(document)
        return (msgspec.json.format(data) if indented else data) + b"\n"
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(document), indent=2 if indented else None).encode() + b"\n"


def decode_names(data: bytes, kind: type[Kind]) -> Kind:
    """Return a document that ``encode_names`` made.

    Raises:
        ValueError: the bytes are not JSON, or not of this kind.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except (ValueError, RecursionError):
        pass
    try:
        return msgspec.convert(json.loads(data), kind, str_keys=True)
    except RecursionError as error:
        message = f"it has more levels, one in the other, than Python reads: {error}"
        raise ValueError(message) from None
