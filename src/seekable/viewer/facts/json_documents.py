"""JSON documents, and what they hold: paths, places of records, values, counts in words."""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import decimal
import enum
import json
import math
import re
import uuid
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from seekable.index.integrity import VerificationProblem
    from seekable.index.verification import Verification

SCHEMA = 1
"""The version of all JSON documents: it grows when a field is removed or changes its meaning."""

_NOT_BYTES = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Surrogates that do not stand for a byte."""

_SHOWN_BYTES = 16
_DEEPEST = 200
_NOT_SCALAR: Any = object()

_WITH_A_TEXT = (dt.date, dt.time, dt.timedelta, decimal.Decimal, uuid.UUID)
"""Types that have a usual text in JSON."""


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
    # Text with a lone surrogate is not UTF-8, but JSON can escape it. What is already encoded stays as it is.
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
    return _NOT_BYTES.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode("utf-8", "surrogateescape")


def json_safe(path: str) -> str:
    r"""Return a path as JSON can hold it: bytes that are not UTF-8 become ``\xNN``."""
    return text_bytes(path).decode("utf-8", "backslashreplace")


def place_as_json(place: Any) -> Any:
    """Return a location, or a row whose bytes are not known, as JSON; a list of them as a list.

    A document of a token store has a ``source``: the place of the record that it was made of. ``is_shared``
    says that the bytes hold other records too, such as the rest of a group of rows.
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


def json_value(  # noqa: PLR0911 - a case for each kind of value
    value: Any, *, whole_bytes: bool = False, depth: int = 0
) -> Any:
    """Return any value in types that JSON has, for a document that people read.

    Arrays become lists; NaN, infinities and keys become texts, and bytes a text with their number and the
    first of them. Levels below 200 are left out.

    Args:
        value: any value.
        whole_bytes: True for all of the bytes, as text in base64.
        depth: the level of the value in its record.

    Example:
        >>> json_value({"a": (1, float("nan")), 2: b"abc"})
        {'a': [1, 'nan'], '2': "<3 bytes: b'abc'>"}
    """
    plain = _scalar(value, whole_bytes=whole_bytes)
    if plain is not _NOT_SCALAR:
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


def _scalar(value: Any, *, whole_bytes: bool) -> Any:  # noqa: PLR0911 - a case for each kind of value
    """Return a value without parts in a type that JSON has; ``_NOT_SCALAR`` for other values."""
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
    return _NOT_SCALAR


def _note(value: bytes | bytearray | memoryview) -> str:
    """Return a text with the number of bytes and the first of them."""
    data = bytes(value[:_SHOWN_BYTES])
    more = "..." if len(value) > _SHOWN_BYTES else ""
    return f"<{len(value):,} bytes: {data!r}{more}>"


def verification_document(path: str, found: Verification, *, deep: bool, decode: bool) -> dict[str, Any]:
    """Return what a comparison of files with their index found, JSON-safe."""
    problems = [_problem_as_json(problem) for problem in found.problems]
    return {
        "path": json_safe(path),
        "good": not problems,
        "deep": deep,
        "decoded": decode,
        "files": found.files,
        "records": found.records,
        "bytes": found.bytes,
        "index_folders": [json_safe(folder) for folder in found.folders],
        **({"from_other_indexes": found.unread} if found.unread else {}),
        "problems": problems,
        "first_bad": problems[0] if problems else None,
    }


def _problem_as_json(problem: VerificationProblem) -> dict[str, Any]:
    return {
        "kind": problem.kind,
        "path": json_safe(problem.path),
        "message": json_safe(problem.message),
        "row": problem.row,
        "offset": problem.offset,
    }
