r"""Paths within records, as text: ``messages[].role`` of many values, ``turns[2].text`` of one.

A path of keys is a tuple; None stands for the elements of a list. A place, as addresses have it, leads to one
value: elements are numbers in brackets. Keys stand between dots, and a dot, bracket or backslash within a key
has a backslash before it. An empty key is ``\0``. The record itself is ``[record]``.
"""

from __future__ import annotations

import re
from typing import Any

from seekable.errors import InvalidArgument, KeyNotFound

KeyPath = tuple[str | None, ...]

RECORD = "[record]"
"""The text of the empty path, that of the record itself: no key is written so."""

_SPECIAL = re.compile(r"[\\.\[]")
_EMPTY = "\\0"
"""The text of an empty key."""

_KEY = re.compile(r"\\0|(?:[^\\.\[]|\\[\\.\[])+")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_PART = re.compile(
    r"\[(0|[1-9][0-9]{0,17})\]|(?:^|(?<!^)\.)(\\0|(?:[^\\.\[]|\\[\\.\[])+)", re.ASCII | re.DOTALL
)


def path_text(path: KeyPath) -> str:
    r"""Return a path as text: keys between dots, ``[]`` for elements; dots within keys have a backslash.

    Example:
        >>> path_text(("messages", None, "role")), path_text(("a.b", "c")), path_text(())
        ('messages[].role', 'a\\.b.c', '[record]')
        >>> path_text(("", None)), path_text((None,))
        ('\\0[]', '[]')
    """
    if not path:
        return RECORD
    text = ""
    for at, part in enumerate(path):
        if part is None:
            text += "[]"
        else:
            text += ("." if at else "") + _key_text(part)
    return text


def path_of(text: str) -> KeyPath:
    r"""Return the path that a text stands for; the inverse of ``path_text``.

    Raises:
        InvalidArgument: a bracket or a backslash stands where none can.

    Example:
        >>> path_of("messages[].role"), path_of("a\\.b.c"), path_of("[record]")
        (('messages', None, 'role'), ('a.b', 'c'), ())
    """
    if text == RECORD:
        return ()
    parts: list[str | None] = []
    rest = text
    while rest:
        if rest.startswith("[]"):
            parts.append(None)
            rest = rest[2:]
            continue
        if parts and not rest.startswith("."):
            break
        found = _KEY.match(rest, 1 if parts else 0)
        if not found:
            break
        parts.append(_key_of(found[0]))
        rest = rest[found.end() :]
    if rest or not parts:
        message = (
            f"a key is written as meta.lang, or messages[].role for the elements of a list, with a backslash "
            f"before dots and brackets of its own (got {text!r}, which cannot be read from {rest!r} on)"
        )
        raise InvalidArgument(message)
    return tuple(parts)


def values_at(record: Any, path: KeyPath) -> list[Any]:
    """Return the values at a path of a record: none, one, or one for each element of the lists on the way.

    Example:
        >>> values_at({"messages": [{"role": "user"}, {}, {"role": None}]}, ("messages", None, "role"))
        ['user', None]
    """
    values = [record]
    for part in path:
        if part is None:
            values = [each for value in values if isinstance(value, list | tuple) for each in value]
        else:
            values = [value[part] for value in values if isinstance(value, dict) and part in value]
    return values


def child_place(place: str, part: str | int) -> str:
    r"""Return the place of a key or an element of what is at a place; the first place is empty.

    Example:
        >>> child_place(child_place("", "turns"), 0), child_place("meta", "a.b")
        ('turns[0]', 'meta.a\\.b')
    """
    if isinstance(part, int):
        return f"{place}[{part}]"
    return f"{place}.{_key_text(part)}" if place else _key_text(part)


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
            parts.append(_key_of(found[2]))
        at = found.end()
    return tuple(parts)


def _key_text(key: str) -> str:
    return _SPECIAL.sub(lambda found: "\\" + found[0], key) or _EMPTY


def _key_of(text: str) -> str:
    return "" if text == _EMPTY else _ESCAPED.sub(r"\1", text)
