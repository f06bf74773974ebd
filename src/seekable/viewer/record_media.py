r"""The bytes within a record, each with the address of its place: ``audio.bytes``, ``images[2].bytes``.

Keys stand between dots, elements of lists are numbers in brackets, and a dot, bracket or backslash of a key
has a backslash before it. An empty key is ``\0``. The record itself, if it is bytes, is at ``[record]``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seekable.errors import InvalidArgument, KeyNotFound, WrongType
from seekable.facts.key_paths import RECORD
from seekable.viewer.media_types import HEAD_BYTES, MediaType, media_type

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MediaValue", "bytes_at", "media_values", "value_at"]

Place = tuple[str | int, ...]

_SPECIAL = re.compile(r"[\\.\[]")
_EMPTY = "\\0"
_PART = re.compile(
    r"\[(0|[1-9][0-9]{0,17})\]|(?:^|(?<!^)\.)(\\0|(?:[^\\.\[]|\\[\\.\[])+)", re.ASCII | re.DOTALL
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)

_DEEPEST = 20
"""Bytes below more levels than this are not looked for, so that a record cannot exhaust the stack."""


@dataclass(frozen=True, slots=True)
class MediaValue:
    """Bytes that a record holds."""

    address: str
    """The place within the record, as ``bytes_at`` reads it."""

    type: MediaType
    """What the bytes are, by the first of them."""

    size: int
    """The number of bytes."""

    def document(self) -> dict[str, Any]:
        """Return the place, the type and the number of bytes, JSON-safe."""
        return {"at": self.address, "type": self.type.name, "kind": self.type.kind, "bytes": self.size}


def media_values(record: Any, *, most: int = 200) -> list[MediaValue]:
    r"""Return what bytes a record holds, in the order of its keys.

    Args:
        record: a decoded record.
        most: the number of values after which no more are looked for.

    Example:
        >>> found = media_values({"id": 1, "images": [b"GIF89a"], "a.b": b"text"})
        >>> [(value.address, value.type.name) for value in found]
        [('images[0]', 'image/gif'), ('a\\.b', 'application/octet-stream')]
    """
    found: list[MediaValue] = []
    for place, value in _bytes_within(record, ()):
        if len(found) == most:
            break
        view = memoryview(value).cast("B")
        found.append(MediaValue(_address(place), media_type(bytes(view[:HEAD_BYTES])), view.nbytes))
    return found


def bytes_at(record: Any, address: str) -> memoryview:
    """Return the bytes at a place of a record; they are not copied.

    Raises:
        InvalidArgument: the address cannot be read.
        KeyNotFound: the record has no such place.
        WrongType: the value there is no bytes.

    Example:
        >>> bytes(bytes_at({"audio": {"bytes": b"fLaC"}}, "audio.bytes"))
        b'fLaC'
    """
    value = value_at(record, address)
    if not isinstance(value, bytes | bytearray | memoryview):
        message = f"the value at {address!r} is of type {type(value).__name__}; only bytes are sent as media"
        raise WrongType(message)
    return memoryview(value).cast("B")


def value_at(record: Any, address: str) -> Any:
    """Return the value at a place of a record.

    Raises:
        InvalidArgument: the address cannot be read.
        KeyNotFound: the record has no such place.

    Example:
        >>> value_at({"turns": [{"text": "hello"}]}, "turns[0].text")
        'hello'
    """
    value = record
    for part in _place(address):
        value = _child(value, part, address)
    return value


def _child(value: Any, part: str | int, address: str) -> Any:
    if isinstance(part, str) and isinstance(value, dict) and part in value:
        return value[part]
    if isinstance(part, int) and isinstance(value, list | tuple) and part < len(value):
        return value[part]
    missing = f"key {part!r}" if isinstance(part, str) else f"element {part:,}"
    message = f"the record has nothing at {address!r}: there is no {missing}"
    raise KeyNotFound(message)


def _bytes_within(value: Any, place: Place) -> Iterator[tuple[Place, Any]]:
    if isinstance(value, bytes | bytearray | memoryview):
        yield place, value
    elif len(place) == _DEEPEST:
        return
    elif isinstance(value, dict):
        for key, each in value.items():
            if isinstance(key, str):
                yield from _bytes_within(each, (*place, key))
    elif isinstance(value, list | tuple):
        for number, each in enumerate(value):
            yield from _bytes_within(each, (*place, number))


def _address(place: Place) -> str:
    """Return the address of a place; the inverse of ``_place``."""
    if not place:
        return RECORD
    text = ""
    for at, part in enumerate(place):
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            key = _SPECIAL.sub(lambda found: "\\" + found[0], part) if part else _EMPTY
            text += ("." if at else "") + key
    return text


def _place(address: str) -> Place:
    if address == RECORD:
        return ()
    parts: list[str | int] = []
    at = 0
    while at < len(address) or not parts:
        found = _PART.match(address, at)
        if found is None:
            message = (
                f"a place of a record is written as audio.bytes or images[2].bytes, with a backslash before "
                f"dots and brackets of keys (got {address!r}, which cannot be read from {address[at:]!r} on)"
            )
            raise InvalidArgument(message)
        if found[1] is not None:
            parts.append(int(found[1]))
        else:
            parts.append("" if found[2] == _EMPTY else _ESCAPED.sub(r"\1", found[2]))
        at = found.end()
    return tuple(parts)
