"""JSON for people: what fits into a line stands in one, and the rest is indented."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["json_text"]

_WIDTH = 110
_MOST = 240
"""The most characters of a line that has a whole object: a data file, say."""


def json_text(document: Any) -> bytes:
    r"""Return a document as JSON text with a line end; the same document gives the same bytes.

    Example:
        >>> json_text({"a": [1, 2]})
        b'{"a": [1, 2]}\n'
    """
    text = f"{_lines(document, 0)}\n"
    try:
        return text.encode()
    except UnicodeEncodeError:  # A file name that is no UTF-8: it is written in escapes.
        return f"{_lines(document, 0, ascii_only=True)}\n".encode()


def _lines(value: Any, indent: int, *, ascii_only: bool = False) -> str:
    line = json.dumps(value, ensure_ascii=ascii_only, allow_nan=False)
    if not isinstance(value, dict | list) or not value or len(line) + indent <= _WIDTH:
        return line
    if isinstance(value, dict) and len(line) <= _MOST and not any(map(_is_nested, value.values())):
        return line
    inner = " " * (indent + 2)
    if isinstance(value, dict):
        opening, closing = "{", "}"
        parts = [
            f"{json.dumps(key, ensure_ascii=ascii_only)}: {_lines(held, indent + 2, ascii_only=ascii_only)}"
            for key, held in value.items()
        ]
    else:
        opening, closing = "[", "]"
        parts = [_lines(held, indent + 2, ascii_only=ascii_only) for held in value]
    joined = f",\n{inner}".join(parts)
    return f"{opening}\n{inner}{joined}\n{' ' * indent}{closing}"


def _is_nested(value: Any) -> bool:
    return isinstance(value, dict | list)
