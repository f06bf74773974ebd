r"""Places within a record, as they stand in addresses: ``audio.bytes``, ``images[2].bytes``.

Keys stand between dots, elements of lists are numbers in brackets, and a dot, bracket or backslash of a key
has a backslash before it. An empty key is ``\0``. The record itself is at ``[record]``.
"""

from __future__ import annotations

import re
from typing import Any

from seekable.errors import InvalidArgument, KeyNotFound
from seekable.viewer.facts.key_paths import RECORD

_SPECIAL = re.compile(r"[\\.\[]")
_EMPTY = "\\0"
_PART = re.compile(
    r"\[(0|[1-9][0-9]{0,17})\]|(?:^|(?<!^)\.)(\\0|(?:[^\\.\[]|\\[\\.\[])+)", re.ASCII | re.DOTALL
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def child_place(place: str, part: str | int) -> str:
    r"""Return the place of a key or an element of what is at a place; the first place is empty.

    Example:
        >>> child_place(child_place("", "turns"), 0), child_place("meta", "a.b")
        ('turns[0]', 'meta.a\\.b')
    """
    if isinstance(part, int):
        return f"{place}[{part}]"
    key = _SPECIAL.sub(lambda found: "\\" + found[0], part) if part else _EMPTY
    return f"{place}.{key}" if place else key


def value_at(record: Any, place: str) -> Any:
    """Return the value at a place of a record.

    Raises:
        InvalidArgument: the place cannot be read.
        KeyNotFound: the record has no such place.

    Example:
        >>> value_at({"turns": [{"text": "hello"}]}, "turns[0].text")
        'hello'
    """
    value = record
    for part in _parts(place):
        value = _child(value, part, place)
    return value


def _child(value: Any, part: str | int, place: str) -> Any:
    if isinstance(part, str) and isinstance(value, dict) and part in value:
        return value[part]
    if isinstance(part, int) and isinstance(value, list | tuple) and part < len(value):
        return value[part]
    missing = f"key {part!r}" if isinstance(part, str) else f"element {part:,}"
    message = f"the record has nothing at {place!r}: there is no {missing}"
    raise KeyNotFound(message)


def _parts(place: str) -> tuple[str | int, ...]:
    if place == RECORD:
        return ()
    parts: list[str | int] = []
    at = 0
    while at < len(place) or not parts:
        found = _PART.match(place, at)
        if found is None:
            message = (
                f"a place of a record is written as audio.bytes or images[2].bytes, with a backslash before "
                f"dots and brackets of keys (got {place!r}, which cannot be read from {place[at:]!r} on)"
            )
            raise InvalidArgument(message)
        if found[1] is not None:
            parts.append(int(found[1]))
        else:
            parts.append("" if found[2] == _EMPTY else _ESCAPED.sub(r"\1", found[2]))
        at = found.end()
    return tuple(parts)
