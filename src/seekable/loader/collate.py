"""A list of records as one batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from seekable.errors import InvalidArgument

__all__ = ["collate"]

_NUMBERS = (bool, int, float, complex, np.number, np.bool_)


def collate(records: list[Any]) -> Any:
    """Return a batch: dicts and tuples by their parts, numbers and arrays stacked, anything else as a list.

    Dicts become a dict of collated values, tuples of one length a tuple of collated parts, recursively.
    Numbers, and arrays of one shape, become an array with a first axis of ``len(records)``, record batches of
    Arrow become one. Everything else (strings, lists, arrays of different shapes, a mixture of types) stays
    the list it is.

    Raises:
        InvalidArgument: dicts with different keys; the message names them.

    Example:
        >>> collate([{"text": "a", "id": 1}, {"text": "b", "id": 2}])
        {'text': ['a', 'b'], 'id': array([1, 2])}
    """
    if not records:
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
    if not all(isinstance(record, _NUMBERS) for record in records):
        return records
    made = np.array(records)
    return made if _unchanged(made, records) else records


def _unchanged(made: Any, records: list[Any]) -> bool:
    """Tell whether numbers stayed what they are.

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
