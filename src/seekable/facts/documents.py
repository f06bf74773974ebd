"""Values in JSON documents: paths, the places of records, and counts in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SCHEMA", "document", "in_words", "json_safe", "place_as_json"]

SCHEMA = 1
"""The version of all JSON documents: it grows when a field is removed or changes its meaning."""


def document(fields: Mapping[str, Any]) -> bytes:
    r"""Return a JSON document on a line of its own: keys sorted, the schema's version among them.

    Example:
        >>> document({"records": 3, "files": 1})
        b'{"files":1,"records":3,"schema":1}\n'
    """
    return msgspec.json.encode({"schema": SCHEMA, **fields}, order="sorted") + b"\n"


def json_safe(path: str) -> str:
    r"""Return a path as JSON can hold it: bytes that are no UTF-8 become ``\xNN``."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


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
