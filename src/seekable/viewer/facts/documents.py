"""Values in JSON documents: paths, the places of records, and counts in words."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SCHEMA", "document", "in_words", "json_safe", "place_as_json", "text_bytes"]

_NO_BYTES = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Surrogates that stand for no byte."""

SCHEMA = 1
"""The version of all JSON documents: it grows when a field is removed or changes its meaning."""


def document(fields: Mapping[str, Any]) -> bytes:
    r"""Return a JSON document on a line of its own: keys sorted, the schema's version among them.

    Example:
        >>> document({"records": 3, "files": 1})
        b'{"files":1,"records":3,"schema":1}\n'
    """
    whole = {"schema": SCHEMA, **fields}
    try:
        return msgspec.json.encode(whole, order="sorted") + b"\n"
    except UnicodeEncodeError:
        pass
    # Text with a lone surrogate is no UTF-8, but JSON can escape it; what is encoded already stays as it is.
    escaped = {
        name: value
        if isinstance(value, msgspec.Raw)
        else msgspec.Raw(json.dumps(value, sort_keys=True, separators=(",", ":")).encode())
        for name, value in whole.items()
    }
    return msgspec.json.encode(escaped, order="sorted") + b"\n"


def text_bytes(text: str) -> bytes:
    r"""Return text as bytes for people: names that are not UTF-8 as their bytes, other surrogates escaped.

    Example:
        >>> text_bytes("caf\udce9"), text_bytes("\ud800")
        (b'caf\xe9', b'\\ud800')
    """
    return _NO_BYTES.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode("utf-8", "surrogateescape")


def json_safe(path: str) -> str:
    r"""Return a path as JSON can hold it: bytes that are no UTF-8 become ``\xNN``."""
    return text_bytes(path).decode("utf-8", "backslashreplace")


def place_as_json(place: Any) -> Any:
    """Return a location, or a row whose bytes are not known, as JSON; a list of them as a list.

    Of a document of a token store it says, as ``source``, where the record lies that it was made of; and, as
    ``is_shared``, where the bytes hold other records too, as those of a group of rows.
    """
    if isinstance(place, list | tuple):
        return [place_as_json(part) for part in place]
    has_bytes = hasattr(place, "offset") and not place.path.startswith("<")
    source = getattr(place, "source", None)
    return {
        "path": json_safe(place.path),
        "row": place.row,
        "offset": place.offset if has_bytes else None,
        "length": place.length if has_bytes else None,
        **({"is_shared": True} if getattr(place, "is_shared", False) else {}),
        **({} if source is None else {"source": place_as_json(source)}),
    }


def in_words(count: int, noun: str) -> str:
    """Return a count with its noun.

    Example:
        >>> in_words(1, "file"), in_words(12345, "record")
        ('1 file', '12,345 records')
    """
    return f"{count:,} {noun}{'s' * (count != 1)}"
