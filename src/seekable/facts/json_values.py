"""Records as JSON documents can hold them: arrays as lists, bytes as a note, what is no number as text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["json_value"]

_SHOWN_BYTES = 16
_DEEPEST = 200


def json_value(value: Any, *, depth: int = 0) -> Any:  # noqa: PLR0911 - a case for each kind of value
    """Return a value in types that JSON has, for a document that people read.

    Bytes become a text with their number and the first of them, NaN and infinities texts, keys texts. Levels
    below 200 are left out.

    Example:
        >>> json_value({"a": (1, float("nan")), 2: b"abc"})
        {'a': [1, 'nan'], '2': "<3 bytes: b'abc'>"}
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth > _DEEPEST:
        return "..."
    if isinstance(value, Mapping):
        return {str(key): json_value(each, depth=depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(each, depth=depth + 1) for each in value]
    if isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value[:_SHOWN_BYTES])
        more = "..." if len(value) > _SHOWN_BYTES else ""
        return f"<{len(value):,} bytes: {data!r}{more}>"
    for name in ("tolist", "to_pylist"):
        if hasattr(value, name):
            return json_value(getattr(value, name)(), depth=depth + 1)
    return str(value)
