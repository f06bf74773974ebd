"""Numbers that have the byte of their type before them each, read and written in whole arrays.

An int32 and a float, each with its byte, take 5 bytes, and so does the size of a group of them. So an object
that is a list of groups is an array of records of 5 bytes, of which only the sizes have to be walked through.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from seekable.formats.kaldi.objects.basic_types import BASIC_TYPES, BasicType

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from seekable.formats.kaldi.objects.cursor import Cursor

__all__ = [
    "RECORD_BYTES",
    "Groups",
    "grouped_bytes",
    "marked_bytes",
    "read_groups",
    "read_marked",
    "skip_marked",
]

RECORD_BYTES = 5
"""The bytes of an int32 or a float with the byte of its type."""

_INT32 = BASIC_TYPES["int32"]
_FLOATS = {each.mark: each for each in (BASIC_TYPES["float"], BASIC_TYPES["double"])}
_NONE = np.empty(0, np.int32)
_MARK = bytes([_INT32.mark])
_FIRST_RECORDS, _RECORDS_OF_A_GROUP = 1 << 12, 8
"""The most records that are looked at first, and how many a group may have: more if these are good."""


class Groups(NamedTuple):
    """The records of a list of groups, and the result of the walk through their sizes."""

    found: Any
    raw: bytes
    """The bytes of the records, sizes included."""


def read_marked(cursor: Cursor, basic: BasicType, size: int) -> NDArray[Any]:
    """Return the next numbers as an array in memory of its own.

    Raises:
        CorruptObject: the file ends, or a number has another type.
    """
    start = cursor.position
    stored = _stored(cursor, basic, size)
    step = stored.marked.itemsize
    raw = cursor.take(size * step, f"{size} numbers of type {stored.name}")
    if not size:
        return np.empty(0, stored.dtype)
    marks = bytes(raw)[::step]
    if marks != bytes([stored.mark]) * size:
        first = next(at for at, mark in enumerate(marks) if mark != stored.mark)
        found = f"{marks[first]:#04x} before element {first}"
        raise cursor.error(f"the byte {stored.mark:#04x} of a {stored.name}", found, at=start + first * step)
    return np.ndarray(size, stored.dtype, raw, 1, (step,)).copy()


def skip_marked(cursor: Cursor, basic: BasicType, size: int) -> None:
    """Move past the next numbers; only the type of the first one is looked at."""
    stored = _stored(cursor, basic, size)
    cursor.skip(size * stored.marked.itemsize, f"{size} numbers of type {stored.name}")


def _stored(cursor: Cursor, basic: BasicType, size: int) -> BasicType:
    """Return the type of the numbers at a cursor; the first byte has the precision of floats."""
    mark = cursor.peek() if size else basic.mark
    if mark == basic.mark:
        return basic
    if basic.is_float and mark in _FLOATS:
        return _FLOATS[mark]
    if mark >= 0:
        raise cursor.error(f"the byte {basic.mark:#04x} of a {basic.name}")
    return basic


def marked_bytes(basic: BasicType, array: NDArray[Any]) -> bytes:
    """Return numbers in binary form."""
    records = np.empty(len(array), basic.marked)
    records["mark"] = basic.mark
    records["value"] = array
    return records.tobytes()


def grouped_bytes(sizes: list[int], records: NDArray[Any]) -> bytes:
    """Return groups in binary form, each with its size before it.

    Args:
        sizes: the size of each group, as it is written.
        records: int32 of shape (n,), the numbers of all groups (floats by their bits). Each unit of a size
            has as many numbers as each other one.
    """
    counts = np.array(sizes, np.int64)
    total = int(counts.sum())
    counts *= len(records) // total if total else 0
    found = np.empty(len(counts) + len(records), _INT32.marked)
    found["mark"] = _INT32.mark
    is_size = np.zeros(len(found), bool)
    is_size[np.cumsum(counts + 1) - counts - 1] = True
    values = found["value"]
    values[is_size] = sizes
    values[~is_size] = records
    return found.tobytes()


def read_groups(
    cursor: Cursor, groups: int, walk: Callable[[NDArray[np.int32], int], tuple[Any, int]]
) -> Groups | None:
    """Return the groups of int32 and floats at a cursor; None where the careful way must be taken.

    None is returned where there are no groups, a type differs, a size is wrong, or not all bytes have
    arrived. Then the cursor has not moved.

    Args:
        cursor: it stands behind the number of groups.
        groups: the number of groups.
        walk: is called with the numbers of the next records (floats as int32 with their bits) and the number
            of groups; returns what it makes of them, and the number of records that it has walked through:
            more than there are where there are too few, -1 where a size is wrong.
    """
    wanted = min(_RECORDS_OF_A_GROUP * groups + 1, _FIRST_RECORDS)
    while groups:
        size = RECORD_BYTES * wanted
        raw = cursor.ahead(size)
        while len(raw) < size and len(more := cursor.ahead(size)) > len(raw):  # a file, read by pieces
            raw = more
        there = len(raw) // RECORD_BYTES
        records = np.ndarray(there, _INT32.dtype, raw, 1, (RECORD_BYTES,)) if there else _NONE
        found, used = walk(records, groups)
        good = min(used, there)
        if used < 0 or raw[: RECORD_BYTES * good : RECORD_BYTES] != _MARK * good:
            return None
        if used <= there:
            cursor.skip(RECORD_BYTES * used, "the groups")
            return Groups(found, raw[: RECORD_BYTES * used])
        if there < wanted:
            return None
        wanted *= 2
    return None
