r"""Paths of keys within records: ``meta.lang``, ``messages[].role``.

A path is a tuple of keys; None stands for the elements of a list. The path of the record itself is empty.
An empty key is written ``\0``: elements of a list below it have another text than those of the record.
"""

from __future__ import annotations

import re
from typing import Any

from seekable.errors import InvalidArgument

Path = tuple[str | None, ...]

RECORD = "[record]"
"""The text of the empty path, that of the record itself: no key is written so."""

_SPECIAL = re.compile(r"[\\.\[]")
_EMPTY = "\\0"
"""The text of an empty key."""

_KEY = re.compile(r"\\0|(?:[^\\.\[]|\\[\\.\[])+")
_ESCAPED = re.compile(r"\\(.)")


def path_text(path: Path) -> str:
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
            key = _SPECIAL.sub(lambda found: "\\" + found[0], part) or _EMPTY
            text += ("." if at else "") + key
    return text


def path_of(text: str) -> Path:
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
        parts.append("" if found[0] == _EMPTY else _ESCAPED.sub(r"\1", found[0]))
        rest = rest[found.end() :]
    if rest or not parts:
        message = (
            f"a key is written as meta.lang, or messages[].role for the elements of a list, with a backslash "
            f"before dots and brackets of its own (got {text!r}, which cannot be read from {rest!r} on)"
        )
        raise InvalidArgument(message)
    return tuple(parts)


def values_at(record: Any, path: Path) -> list[Any]:
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
