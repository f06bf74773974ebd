"""Records as JSON documents can hold them: arrays as lists, bytes as a note, what is no number as text."""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import decimal
import enum
import math
import uuid
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec

__all__ = ["json_value"]

_SHOWN_BYTES = 16
_DEEPEST = 200

_WITH_A_TEXT = (
    *(dt.date, dt.time, dt.timedelta),
    *(decimal.Decimal, uuid.UUID),
)
"""Types that have a usual text in JSON."""


def json_value(  # noqa: PLR0911 - a case for each kind of value
    value: Any, *, whole_bytes: bool = False, depth: int = 0
) -> Any:
    """Return a value in types that JSON has, for a document that people read; there is one for any value.

    Bytes become a text with their number and the first of them, NaN and infinities texts, keys texts. Levels
    below 200 are left out.

    Args:
        value: any value.
        whole_bytes: True for all of the bytes, as text in base64.
        depth: the level of the value in its record.

    Example:
        >>> json_value({"a": (1, float("nan")), 2: b"abc"})
        {'a': [1, 'nan'], '2': "<3 bytes: b'abc'>"}
    """
    plain = _scalar(value, whole_bytes=whole_bytes)
    if plain is not _NO_SCALAR:
        return plain
    if depth > _DEEPEST:
        return "..."

    def inner(held: Any) -> Any:
        return json_value(held, whole_bytes=whole_bytes, depth=depth + 1)

    if isinstance(value, Mapping):
        return {key if type(key) is str else str(key): inner(each) for key, each in value.items()}
    if isinstance(value, list | tuple | AbstractSet):
        return [inner(each) for each in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: inner(getattr(value, field.name)) for field in dataclasses.fields(value)}
    for name in ("tolist", "to_pylist"):
        if hasattr(value, name) and type(found := getattr(value, name)()) is not type(value):
            return inner(found)
    return str(value)


_NO_SCALAR: Any = object()


def _scalar(value: Any, *, whole_bytes: bool) -> Any:  # noqa: PLR0911 - a case for each kind of value
    """Return a value without parts in types that JSON has; a mark for values of other types."""
    if isinstance(value, enum.Enum):
        return str(value) if not isinstance(value.value, str | int) else value.value
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode() if whole_bytes else _note(value)
    if isinstance(value, _WITH_A_TEXT):
        return msgspec.to_builtins(value)
    return _NO_SCALAR


def _note(value: bytes | bytearray | memoryview) -> str:
    """Return the number of bytes, and the first of them."""
    data = bytes(value[:_SHOWN_BYTES])
    more = "..." if len(value) > _SHOWN_BYTES else ""
    return f"<{len(value):,} bytes: {data!r}{more}>"
