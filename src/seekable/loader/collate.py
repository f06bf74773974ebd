"""One batch of a list of records, or of columns.

A collate function gets the list of the records of a batch. One with an attribute ``columnar`` that is true
gets columns instead, where the dataset decodes tables as ``"numpy"`` (a dict of arrays and lists) or
``"arrow"`` (a record batch), which are made without making records first. The default collate function is
such a one, and so is a function that ``functools.wraps`` or ``functools.partial`` makes of it. Any other
function around the default gets records, and returns batches of the same types.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["collate", "takes_columns"]

_NUMBERS = (bool, int, float, complex, np.number, np.bool_)
_TIMES = (np.datetime64, np.timedelta64)


def collate(records: Any) -> Any:
    """Return a batch: dicts and tuples by their parts, numbers and arrays stacked, anything else as a list.

    Dicts become a dict of collated values, tuples of one length a tuple of collated parts, recursively.
    Numbers, and arrays of one shape, become an array with a first axis of ``len(records)``, record batches of
    Arrow become one. Everything else (strings, lists, arrays of different shapes, a mixture of types) stays
    the list it is.

    Args:
        records: a list of records; or columns: a record batch of Arrow, which is the batch, or a dict of
            arrays and lists, of which the lists are collated.

    Raises:
        InvalidArgument: dicts with different keys; the message names them.

    Example:
        >>> collate([{"text": "a", "id": 1}, {"text": "b", "id": 2}])
        {'text': ['a', 'b'], 'id': array([1, 2])}
    """
    if isinstance(records, dict):
        return {
            name: collate(column) if isinstance(column, list) else column for name, column in records.items()
        }
    if not isinstance(records, list) or not records:
        return records
    first = records[0]
    if isinstance(first, dict) and all(isinstance(record, dict) for record in records):
        return _collate_dicts(records)
    if type(first).__name__ == "RecordBatch" and type(first).__module__.startswith("pyarrow"):
        import pyarrow as pa

        return pa.concat_batches(records)
    if type(first) is tuple and all(
        type(record) is tuple and len(record) == len(first) for record in records
    ):
        return tuple(collate(list(part)) for part in zip(*records, strict=True))
    return _stacked(records)


collate.columnar = True  # type: ignore[attr-defined]


def takes_columns(function: Callable[[Any], Any]) -> bool:
    """Return True if a collate function declares that it takes columns: its ``columnar`` is true.

    Example:
        >>> takes_columns(collate), takes_columns(functools.partial(collate)), takes_columns(list)
        (True, True, False)
    """
    while isinstance(function, functools.partial):
        function = function.func
    return bool(getattr(function, "columnar", False))


def _collate_dicts(records: list[dict[Any, Any]]) -> dict[Any, Any]:
    keys = records[0].keys()
    for i, record in enumerate(records):
        if record.keys() != keys:
            missing, extra = sorted(map(repr, keys - record.keys())), sorted(map(repr, record.keys() - keys))
            differs = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"adds {', '.join(extra)}"] * bool(
                extra
            )
            message = (
                f"the records of a batch must have the same keys to be collated: beside record 0, record {i} "
                f"{' and '.join(differs)}; map them to the same keys, or pass collate=list"
            )
            raise InvalidArgument(message)
    return {key: collate([record[key] for record in records]) for key in keys}


def _stacked(records: list[Any]) -> Any:
    first = records[0]
    if isinstance(first, str | bytes):
        return records
    if isinstance(first, np.ndarray):
        alike = all(isinstance(record, np.ndarray) and record.shape == first.shape for record in records)
        return np.stack(records) if alike else records
    if isinstance(first, _TIMES) and all(type(record) is type(first) for record in records):
        times = np.array(records)
        # Of two units numpy takes the finer one, in which a time may not fit.
        return times if all(record.dtype == times.dtype for record in records) else records
    if not all(isinstance(record, _NUMBERS) for record in records):
        return records
    made = np.array(records)
    return made if _unchanged(made, records) else records


def _unchanged(made: Any, records: list[Any]) -> bool:
    """Return True if numpy changed no number.

    Integers beyond 64 bits become objects, those beyond 63 become floats, those beyond 2**53 beside a float
    lose digits, and booleans beside numbers become numbers.
    """
    if made.dtype == object or len({isinstance(record, bool | np.bool_) for record in records}) > 1:
        return False
    if made.dtype.kind != "f":
        return True
    if all(isinstance(record, int | np.integer) for record in records):
        return False
    changed = (isinstance(record, int) and int(made[i]) != record for i, record in enumerate(records))
    return not any(changed)
