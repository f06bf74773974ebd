"""A record as JSON that gives the record again, or an error that names the value that JSON lacks.

msgspec writes more than JSON has, in a form that reads as something else: bytes and dates as strings, NaN as
null. So values are looked at before they are written.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Unencodable", "json_text"]

_PLAIN = frozenset({str, int, bool, type(None)})
_JUST_STR = {str}

_BASES: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (dict, dict),
    (list, list),
    (tuple, list),
    (str, str.__str__),  # that of an Enum would be its name
    (int, int),
    (float, float),
)
"""The types whose subclasses are written as they are, and what makes a plain one of a value."""


class Unencodable(Exception):
    """A value that JSON lacks; the message says where in the record it is."""


def json_text(record: Any) -> bytes:
    r"""Return a record as JSON, in one line.

    Tuples become lists, and numbers and arrays of numpy become those of Python.

    Raises:
        Unencodable: JSON has no such value.

    Example:
        >>> json_text({"text": "ä", "tokens": np.array([1, 2])})
        b'{"text":"\xc3\xa4","tokens":[1,2]}'
    """
    try:
        encodable = _checked(record, ())
    except RecursionError:
        raise Unencodable("the record holds itself, or is nested too deep") from None
    try:
        return msgspec.json.encode(encodable)
    except UnicodeEncodeError:
        # Half a surrogate pair, which is no UTF-8 but can be escaped.
        return json.dumps(encodable, separators=(",", ":"), allow_nan=False).encode()


def _checked(value: Any, path: tuple[str | int, ...]) -> Any:
    """Return a value as msgspec writes it, which is mostly the value itself."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is float:
        if math.isfinite(value):
            return value
        raise Unencodable(f"{_at(path)} is {value}, and JSON has no such number")
    if kind is dict:
        return _checked_dict(value, path)
    if kind is list or kind is tuple:
        return _checked_list(value, path)
    return _checked_other(value, path)


def _checked_dict(value: dict[Any, Any], path: tuple[str | int, ...]) -> dict[Any, Any]:
    if value and set(map(type, value)) != _JUST_STR:
        for name in value:
            if not isinstance(name, str):
                raise Unencodable(
                    f"{_at(path)} has the name {name!r} of type {type(name).__name__}, and in JSON names are "
                    f"strings"
                )
        value = {str.__str__(name): held for name, held in value.items()}
    if set(map(type, value.values())) <= _PLAIN:
        return value
    changed = {}
    for name, held in value.items():
        kind = type(held)
        if kind not in _PLAIN and (checked := _checked(held, (*path, name))) is not held:
            changed[name] = checked
    return {**value, **changed} if changed else value


def _checked_list(value: Any, path: tuple[str | int, ...]) -> Any:
    kinds = set(map(type, value))
    if kinds <= _PLAIN or (kinds == {float} and all(map(math.isfinite, value))):
        return value
    checked = [_checked(held, (*path, place)) for place, held in enumerate(value)]
    return checked if any(new is not old for new, old in zip(checked, value, strict=True)) else value


def _checked_other(value: Any, path: tuple[str | int, ...]) -> Any:
    """Make a value of another type one of those that JSON has."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufUO":
        return _checked(value.tolist(), path)
    # More digits than Python's numbers have would stay what they are.
    if isinstance(value, np.bool_ | np.integer | np.floating) and not isinstance(value, np.longdouble):
        return _checked(value.item(), path)
    for base, plain in _BASES:
        if isinstance(value, base):
            return _checked(plain(value), path)
    raise Unencodable(f"{_at(path)} is of type {type(value).__name__}, which JSON lacks")


def _at(path: tuple[str | int, ...]) -> str:
    """Return where in a record a value is.

    Example:
        >>> _at(("meta", "times", 3)), _at(())
        ("the value at ['meta']['times'][3]", 'the record')
    """
    return "the value at " + "".join(f"[{step!r}]" for step in path) if path else "the record"
