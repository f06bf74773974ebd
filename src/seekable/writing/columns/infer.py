"""The schema of a dataset, told by some of its records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import WrongType
from seekable.nodes.hole import HOLE
from seekable.nodes.readahead import read_rows
from seekable.writing.columns.kinds import Unfit, merged, type_of
from seekable.writing.columns.table import check_names
from seekable.writing.place import place_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from seekable.nodes.contract import Node

__all__ = ["inferred_schema", "looked_at"]

_FIRST, _SPREAD = 256, 768
_DIGITS = 38


def looked_at(records: int) -> NDArray[np.int64]:
    """Return the rows that tell the schema: all of up to 1,024; else the first 256, and others at even steps.

    Example:
        >>> rows = looked_at(1_000_000)
        >>> len(rows), rows[255:258].tolist(), rows[-1].item()
        (1024, [255, 1556, 2858], 999999)
    """
    if records <= _FIRST + _SPREAD:
        return np.arange(records, dtype=np.int64)
    steps = np.arange(1, _SPREAD + 1, dtype=object)
    spread = _FIRST - 1 + (records - _FIRST) * steps // _SPREAD
    return np.concatenate([np.arange(_FIRST, dtype=np.int64), spread.astype(np.int64)])


def inferred_schema(dataset: Node, rows: NDArray[np.int64]) -> pa.Schema:
    """Return the columns of some rows, in the order in which their names come first.

    Raises:
        WrongType: a record is no dict, or its values do not fit into columns with those of the others.
    """
    import pyarrow as pa

    found: dict[str, pa.DataType] = {}
    for first, read in read_rows(dataset, rows):
        try:
            records = [record for record in read if record is not HOLE]
            found = _with(found, records)
        except Unfit:
            place, why = _first_misfit(found, read)
            named = place_of(dataset, int(rows[first + place]))
            message = f"{named} does not fit into columns with those before it: {why}"
            raise WrongType(message) from None
    return pa.schema([(name, _roomy(kind)) for name, kind in found.items()])


def _with(found: dict[str, pa.DataType], records: Sequence[Any]) -> dict[str, pa.DataType]:
    import pyarrow as pa

    check_names(records, None)
    names = dict.fromkeys(name for record in records for name in record)
    both = dict(found)
    for name in names:
        values = [record[name] for record in records if name in record]
        try:
            both[name] = merged(found.get(name, pa.null()), type_of(values))
        except Unfit as error:
            raise Unfit(f"column {name!r}: {error}") from None
    return both


def _first_misfit(found: dict[str, pa.DataType], read: Sequence[Any]) -> tuple[int, str]:
    """Return which of some records is the first that cannot be added, and why; there is one."""
    for place, record in enumerate(read):
        try:
            found = found if record is HOLE else _with(found, [record])
        except Unfit as error:
            return place, str(error)
    raise AssertionError(read)


def _roomy(kind: pa.DataType) -> pa.DataType:
    """Return a type with room for decimals that are longer than those that were looked at."""
    import pyarrow as pa

    if pa.types.is_decimal128(kind):
        return pa.decimal128(_DIGITS, kind.scale)
    return kind
