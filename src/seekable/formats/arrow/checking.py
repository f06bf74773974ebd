"""Making sure that some rows of an Arrow array can be read: what no library checks on its own.

Offsets and indices in a damaged file may point anywhere, and reading through them ends the process. They are
checked for the rows that are wanted and no others, so that the first row of a large batch costs no more than
that. Offsets of lists are gone through here; what has no children is checked by pyarrow, text as UTF-8 too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["check_rows"]


Place = tuple[int, ...]
"""Where the buffers of an array lie in memory."""


def check_rows(array: pa.Array[Any], start: int, stop: int, *, path: str, sound: set[Place]) -> None:
    """Make sure that some rows can be read.

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
    import pyarrow as pa
    from pyarrow import types

    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        check_rows(array.storage, start, stop, path=path, sound=sound)
    elif isinstance(array, pa.DictionaryArray):
        _check_dictionary(array, start, stop, path, sound)
    elif isinstance(array, pa.StructArray):
        array.slice(start, stop - start).validate()
        for number in range(kind.num_fields):
            inner = f"{path}.{kind.field(number).name}"
            check_rows(array.field(number), start, stop, path=inner, sound=sound)
    elif types.is_fixed_size_list(kind):
        size, first = kind.list_size, array.offset + start
        check_rows(array.values, first * size, (first + stop - start) * size, path=f"{path}[]", sound=sound)
    elif types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
        first, last = _checked_offsets(array, start, stop, path)
        check_rows(array.values, first, last, path=f"{path}[]", sound=sound)
    else:
        array.slice(start, stop - start).validate(full=True)


def _checked_offsets(array: Any, start: int, stop: int, path: str) -> tuple[int, int]:
    """Return where the values of some lists begin and end."""
    if start == stop:
        return 0, 0
    offsets = array.slice(start, stop - start).offsets.to_numpy()
    first, last, values = int(offsets[0]), int(offsets[-1]), len(array.values)
    if first < 0 or last > values or (offsets[1:] < offsets[:-1]).any():
        message = f"{path}: the offsets of lists {start} to {stop - 1} go from {first} to {last}, over "
        raise ValueError(message + f"{values} values" + (", and back" if first <= last <= values else ""))
    return first, last


def _check_dictionary(
    array: pa.DictionaryArray[Any, Any], start: int, stop: int, path: str, sound: set[Place]
) -> None:
    values = array.dictionary
    place = tuple(buffer.address if buffer else 0 for buffer in values.buffers())
    if place not in sound:
        values.validate(full=True)
        sound.add(place)
    indices = array.indices.slice(start, stop - start).drop_null().to_numpy()
    if len(indices) and not (indices.min() >= 0 and indices.max() < len(values)):
        message = f"{path}: an index of rows {start} to {stop - 1} is outside of {len(values)} values"
        raise ValueError(message)
