"""Validation of some rows of an Arrow array, which pyarrow offers for whole arrays only.

Offsets and indices of a damaged file may point anywhere, and reading through them ends the process. Only the
wanted rows are validated, so that the first row of a large batch does not cost a read of the whole batch.
Offsets of lists are validated here; arrays without children are validated by pyarrow, with their UTF-8.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from seekable._optional import optional

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = ["check_rows"]


Place = tuple[int, ...]
"""The addresses of the buffers of an array in memory."""

Check = Callable[[Any, int, int, str, set[Place]], None]


def check_rows(array: pa.Array[Any], start: int, stop: int, *, path: str, sound: set[Place]) -> None:
    """Check that some rows can be read.

    Args:
        array: what pyarrow's ``validate()`` has passed already.
        start: the first row.
        stop: the row behind the last one, not less than the first.
        path: names the array among those of a file.
        sound: the dictionaries that were found to be sound, to which others are added here; they must be
            alive as long as it is.

    Raises:
        ValueError: they cannot.

    Example:
        >>> import numpy as np
        >>> import pyarrow as pa
        >>> offsets = pa.py_buffer(np.array([0, 2, 9, 3], np.int32))
        >>> values = pa.nulls(3, pa.int8())
        >>> lists = pa.Array.from_buffers(pa.list_(pa.int8()), 3, [None, offsets], children=[values])
        >>> check_rows(lists, 0, 1, path="ids", sound=set())
        >>> check_rows(lists, 0, 2, path="ids", sound=set())
        Traceback (most recent call last):
        ...
        ValueError: ids: the offsets of lists 0 to 1 go from 0 to 9, over 3 values
    """
    if (check := _checks().get(array.type.id, _check_other)) is not None:
        check(array, start, stop, path, sound)


@cache
def _checks() -> dict[int, Check | None]:
    """Return the checks of types by their ids; None for types of which all bytes are valid."""
    safe = ("NA BOOL INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64 HALF_FLOAT FLOAT DOUBLE "
            "DATE32 TIMESTAMP DURATION INTERVAL_MONTH_DAY_NANO FIXED_SIZE_BINARY")  # fmt: skip
    by_name: dict[str, Check | None] = {
        **dict.fromkeys(safe.split()),
        **dict.fromkeys(("LIST", "LARGE_LIST", "MAP"), _check_lists),
        "FIXED_SIZE_LIST": _check_pieces,
        "STRUCT": _check_struct,
        "DICTIONARY": _check_dictionary,
    }
    return {getattr(pa.lib, f"Type_{name}"): check for name, check in by_name.items()}


def _check_other(array: Any, start: int, stop: int, path: str, sound: set[Place]) -> None:
    storage = getattr(array, "storage", None)  # of an extension type
    if storage is None:
        array.slice(start, stop - start).validate(full=True)
    else:
        check_rows(storage, start, stop, path=path, sound=sound)


def _check_struct(array: Any, start: int, stop: int, path: str, sound: set[Place]) -> None:
    for number in range(array.type.num_fields):
        inner = f"{path}.{array.type.field(number).name}"
        check_rows(array.field(number), start, stop, path=inner, sound=sound)


def _check_pieces(array: Any, start: int, stop: int, path: str, sound: set[Place]) -> None:
    size, first = array.type.list_size, array.offset + start
    check_rows(array.values, first * size, (first + stop - start) * size, path=f"{path}[]", sound=sound)


def _check_lists(array: Any, start: int, stop: int, path: str, sound: set[Place]) -> None:
    if start == stop:
        return
    offsets = array.slice(start, stop - start).offsets.to_numpy()
    first, last, values = int(offsets[0]), int(offsets[-1]), array.values
    if first < 0 or last > len(values) or (offsets[1:] < offsets[:-1]).any():
        message = f"{path}: the offsets of lists {start} to {stop - 1} go from {first} to {last}, over "
        raise ValueError(
            message + f"{len(values)} values" + (", and back" if first <= last <= len(values) else "")
        )
    check_rows(values, first, last, path=f"{path}[]", sound=sound)


def _check_dictionary(array: Any, start: int, stop: int, path: str, sound: set[Place]) -> None:
    values = array.dictionary
    place = tuple(buffer.address if buffer else 0 for buffer in values.buffers())
    if place not in sound:
        values.validate(full=True)
        sound.add(place)
    indices = array.indices.slice(start, stop - start).drop_null().to_numpy()
    if len(indices) and not (indices.min() >= 0 and indices.max() < len(values)):
        message = f"{path}: an index of rows {start} to {stop - 1} is outside of {len(values)} values"
        raise ValueError(message)
