"""Paths of keys within records: ``meta.lang``, ``messages[].role``.

A path is a tuple of keys; None stands for the elements of a list. The path of the record itself is empty.
"""

from __future__ import annotations

import re
from typing import Any

from seekable.errors import InvalidArgument

__all__ = ["RECORD", "Path", "path_of", "path_text", "values_at"]

Path = tuple[str | None, ...]

RECORD = "[record]"
"""The text of the empty path, that of the record itself: no key is written so."""

_SPECIAL = re.compile(r"[\\.\[]")
_KEY = re.compile(r"(?:[^\\.\[]|\\[\\.\[])*")
_ESCAPED = re.compile(r"\\(.)")


def path_text(path: Path) -> str:
    r"""Return a path as text: keys between dots, ``[]`` for elements; dots within keys have a backslash.

    Example:
        >>> path_text(("messages", None, "role")), path_text(("a.b", "c")), path_text(())
        ('messages[].role', 'a\\.b.c', '[record]')
    """
    if not path:
        return RECORD
    text = ""
    for at, part in enumerate(path):
        if part is None:
            text += "[]"
        else:
            text += ("." if at else "") + _SPECIAL.sub(lambda found: "\\" + found[0], part)
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
    while rest or not parts:
        if rest.startswith("[]"):
            parts.append(None)
            rest = rest[2:]
            continue
        if parts:
            if not rest.startswith("."):
                break
            rest = rest[1:]
        found = _KEY.match(rest)
        end = found.end() if found else 0
        parts.append(_ESCAPED.sub(r"\1", rest[:end]))
        rest = rest[end:]
    if rest:
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
