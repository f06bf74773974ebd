"""JSON documents that hold names of files: also of files whose names are no UTF-8.

Python has the bytes of such a name as lone surrogates, which strict JSON refuses. The ``json`` of Python
writes them as escapes, so the document is ASCII, and reads them back.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

import msgspec

__all__ = ["decode_names", "encode_names"]

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
        ValueError: the bytes are no JSON, or none of this kind.
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
