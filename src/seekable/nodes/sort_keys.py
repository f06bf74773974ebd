"""The keys by which records are sorted, read in ranges of rows: as arrays of numbers, or as bytes.

Keys are numbers, texts, bytes, dates, times or durations; all keys of a dataset are of one kind. Integers are
kept exactly, and so are texts: the order of their UTF-8 is that of Python's strings. A range with integers
beyond 64 bits, or with a duration of so many microseconds, has bytes for each of its keys, in the same order.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import MissingColumn, WrongType
from seekable.nodes.by import By, value_by
from seekable.nodes.display import add_place, describe_place
from seekable.nodes.hole import HOLE
from seekable.nodes.readahead import read_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.nodes.node import Node

__all__ = ["EXACT_FLOAT", "NUMBER", "KeyRange", "ReadKeys", "bytes_of_integer", "integer_of_bytes"]

EXACT_FLOAT = 1 << 53
"""Integers up to this size are exact as 64-bit floats."""

NUMBER, _TEXT, _BYTES = "a number", "a text", "bytes"
_MOMENT, _MOMENT_IN_ZONE = "a date with a time", "a date with a time and a time zone"
_NANOSECONDS, _NANOSECONDS_IN_ZONE = "a timestamp of pandas", "a timestamp of pandas with a time zone"
_WITH_ZONE_OR_NOT = (_MOMENT, _MOMENT_IN_ZONE, _NANOSECONDS, _NANOSECONDS_IN_ZONE)
"""Kinds that the type of a key alone does not show."""

_MIDNIGHT = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - the origin of times without a time zone
_MICROSECOND = dt.timedelta(microseconds=1)

_TO_INTEGER: dict[str, Callable[[Any], int]] = {
    "a date": lambda key: key.toordinal(),
    "a time": lambda key: (dt.datetime.combine(_MIDNIGHT, key) - _MIDNIGHT) // _MICROSECOND,
    "a duration": lambda key: key // _MICROSECOND,
    _MOMENT: lambda key: (key - _MIDNIGHT) // _MICROSECOND,
    _NANOSECONDS: lambda key: key.value,
    _NANOSECONDS_IN_ZONE: lambda key: key.value,
    _MOMENT_IN_ZONE: lambda key: (key - _MIDNIGHT.replace(tzinfo=dt.UTC)) // _MICROSECOND,
}
"""For kinds of keys that are no numbers and no texts, their number of days, microseconds or nanoseconds."""

_TO_BYTES: dict[str, Callable[[Any], bytes]] = {
    _TEXT: lambda key: key.encode("utf-8", "surrogatepass"),
    _BYTES: bytes,
}
"""For texts and bytes, the bytes by which they are sorted."""

_KINDS: dict[type, str] = {
    dt.date: "a date",
    dt.time: "a time",
    dt.timedelta: "a duration",
}
_NUMBERS = (int, float, np.integer, np.floating, np.bool_)
_HEAD_BYTES = 4
"""The bytes of the size of an integer beyond 64 bits."""

_NEVER_MISSING = frozenset({int, bool, str, bytes, *_KINDS})


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The keys of a range of rows."""

    kind: str | None
    """The kind of the keys, in words; None if no row has a key."""

    rows: Int64s
    """The rows that have keys: ascending int64."""

    values: NDArray[Any]
    """The keys of these rows, int64 or float64; or, if ``text`` is given, the length of each there: int64."""

    text: bytes | None
    """The texts as UTF-8, the bytes, or those of `bytes_of_integer`, one after the other; else None."""

    missing: tuple[Int64s, Int64s, Int64s]
    """The rows whose keys are NaN, those whose keys are None, and those of holes: ascending int64."""

    @classmethod
    def of_kept(cls, kept: dict[str, Any]) -> KeyRange:
        """Return the keys that were kept of a finished range, as a dict of the fields."""
        return cls(**kept)


@dataclass(frozen=True, slots=True)
class ReadKeys:
    """A picklable job that reads the keys of a range of rows."""

    dataset: Node
    by: By
    call: str
    """The call of ``sort``, for errors."""

    def __call__(self, start: int, stop: int) -> KeyRange:
        """Return the keys of the rows ``start`` to ``stop``.

        Raises:
            WrongType: the keys are of several kinds, or of one that has no order.
            MissingColumn: a record has no column of the name.
        """
        keys: list[Any] = []
        for _, records in read_rows(self.dataset, np.arange(start, stop, dtype=np.int64)):
            for record in records:
                keys.append(record if record is HOLE else self._key(record, start + len(keys)))
        missing = _missing(keys, start)
        there = np.ones(len(keys), dtype=np.bool_)
        for rows in missing:
            there[rows - start] = False
        rows = start + np.flatnonzero(there).astype(np.int64)
        if rows.size < len(keys):
            keys = [keys[row - start] for row in rows.tolist()]
        kind = self._kind(keys, rows)
        if kind is None:
            return KeyRange(None, rows, np.empty(0, dtype=np.int64), None, missing)
        if kind in _TO_BYTES:
            pieces = list(map(_TO_BYTES[kind], keys))
        else:
            to_integer = _TO_INTEGER.get(kind)
            values = _exact(list(map(to_integer, keys))) if to_integer else self._numbers(keys, rows)
            if values.dtype != np.object_:
                return KeyRange(kind, rows, values, None, missing)
            pieces = list(map(bytes_of_integer, values))
        lengths = np.array(list(map(len, pieces)), dtype=np.int64)
        return KeyRange(kind, rows, lengths, b"".join(pieces), missing)

    def refused(self, row: int, message: str) -> WrongType:
        """Return the error for the key of a row, whose message begins with the file and the row."""
        return WrongType(f"{describe_place(self.dataset, row)}: {self.call} {message}")

    def mixed(self, row: int, kind: str, other: int, other_kind: str) -> WrongType:
        """Return the error for two rows whose keys cannot be compared."""
        there = describe_place(self.dataset, other)
        message = f"needs keys of one kind: this one is {kind}, and that of {there} is {other_kind}"
        return self.refused(row, f"{message}. A function as by= can make them alike")

    def inexact(self, row: int, key: int) -> WrongType:
        """Return the error for a large integer among floats."""
        message = f"cannot compare the key {key} exactly with floats, because it is beyond 2**53"
        return self.refused(row, f"{message}: make all keys integers, or all floats")

    def _key(self, record: Any, row: int) -> Any:
        try:
            return value_by(record, self.by)
        except (MissingColumn, WrongType) as error:
            if callable(self.by):
                raise
            place = f"{describe_place(self.dataset, row)}: {self.call}"
            raise type(error)(f"{place}: {error}") from error
        except Exception as error:
            add_place(error, f"{self.call} of {self.dataset!r}", self.dataset, row)
            raise

    def _kind(self, keys: Sequence[Any], rows: Int64s) -> str | None:
        """Return the kind of all keys."""
        if not keys:
            return None
        first = _kind_of(keys[0])
        alike = len(set(map(type, keys))) == 1 and first not in (None, *_WITH_ZONE_OR_NOT)
        for key, row in [] if alike else zip(keys, rows.tolist(), strict=True):
            kind = _kind_of(key)
            if kind is None:
                message = (
                    f"sorts by numbers, texts, bytes, dates, times and durations (got {key!r:.60} of type "
                    f"{type(key).__name__}): a function as by= can make one of these. To sort by several "
                    f"keys, sort by the last first: equal keys stay in their order"
                )
                raise self.refused(row, message)
            if first is not None and kind != first:
                raise self.mixed(row, kind, int(rows[0]), first)
        return first

    def _numbers(self, keys: Sequence[Any], rows: Int64s) -> NDArray[Any]:
        """Return the keys as float64 if any is a float, else as int64, or as objects if one is too large."""
        whole = [not isinstance(key, float | np.floating) for key in keys]
        if all(whole):
            return _exact(list(map(int, keys)))
        for key, row, is_whole in zip(keys, rows.tolist(), whole, strict=True):
            if is_whole and abs(int(key)) > EXACT_FLOAT:
                raise self.inexact(row, int(key))
        return np.array(list(map(float, keys)), dtype=np.float64)


def _exact(integers: list[int]) -> NDArray[Any]:
    """Return integers as int64, or as objects if one is too large."""
    try:
        return np.array(integers, dtype=np.int64)
    except OverflowError:
        return np.array(integers, dtype=np.object_)


def bytes_of_integer(number: int) -> bytes:
    """Return bytes whose order is that of the integers: the size with the sign, then two's complement.

    Example:
        >>> keys = [-(2**70), -1, 0, 255, 256, 2**70]
        >>> sorted(reversed(keys), key=bytes_of_integer) == keys
        True
    """
    size = number.bit_length() // 8 + 1
    head = (1 << 31) + (size if number >= 0 else -size)
    return head.to_bytes(_HEAD_BYTES, "big") + number.to_bytes(size, "big", signed=True)


def integer_of_bytes(text: bytes) -> int:
    """Return the integer of which `bytes_of_integer` made these bytes."""
    return int.from_bytes(text[_HEAD_BYTES:], "big", signed=True)


def _missing(keys: Sequence[Any], start: int) -> tuple[Int64s, Int64s, Int64s]:
    """Return the rows whose keys are NaN, those whose keys are None, and those of holes."""
    found: tuple[list[int], list[int], list[int]] = ([], [], [])
    if not _NEVER_MISSING.issuperset(map(type, keys)):
        for row, key in enumerate(keys, start=start):
            if isinstance(key, float | np.floating) and key != key:  # noqa: PLR0124 - only NaN is unequal to itself
                found[0].append(row)
            elif key is None:
                found[1].append(row)
            elif key is HOLE:
                found[2].append(row)
    nans, nones, holes = (np.array(rows, dtype=np.int64) for rows in found)
    return nans, nones, holes


def _kind_of(key: Any) -> str | None:
    """Return the kind of a key in words; None for one that records cannot be sorted by."""
    if isinstance(key, _NUMBERS):
        return NUMBER
    if isinstance(key, str):
        return _TEXT
    if isinstance(key, bytes):
        return _BYTES
    if isinstance(key, dt.datetime):
        return _kind_of_moment(key)
    if type(key) is dt.time and key.tzinfo is not None:
        return None
    return _KINDS.get(type(key))


def _kind_of_moment(key: dt.datetime) -> str | None:
    """Return the kind of a date with a time; None for an unknown subclass, which may hold more than these."""
    in_zone = key.utcoffset() is not None
    if type(key) is dt.datetime:
        return _MOMENT_IN_ZONE if in_zone else _MOMENT
    # Columns of nanoseconds are read as pandas.Timestamp.
    if type(key).__name__ == "Timestamp" and hasattr(key, "nanosecond"):
        return _NANOSECONDS_IN_ZONE if in_zone else _NANOSECONDS
    return None
