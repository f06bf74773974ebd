"""The least and the greatest value in a column: row groups and pages say them without reading values.

Statistics of row groups are read by pyarrow. Those of pages are in the ColumnIndex, where a writer has left
one. They are used for types that are ordered in the file as their values are in Python; anything odd is
ignored, so that more rows are read, and never fewer.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._optional import optional
from seekable.formats.tables.parquet.thrift import ThriftError, read_struct
from seekable.formats.tables.table_format import Bounds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from seekable.formats.tables.table_format import Int64s, RangeSource
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = ["ColumnPages", "bounds_of_group", "page_bounds", "runs_of"]

_NULL_PAGES, _LEAST, _GREATEST, _NULL_COUNTS = 1, 2, 3, 5


def bounds_of_group(chunk: Any, kind: pa.DataType) -> Bounds | None:
    """Return the bounds of a column in a group, from the footer; None if it has no usable ones.

    Args:
        chunk: the column's metadata, as pyarrow has it.
        kind: the type that the column is read as.
    """
    statistics = chunk.statistics if chunk.is_stats_set else None
    if statistics is None or not _ordered(kind):
        return None
    nulls = statistics.null_count if statistics.has_null_count else None
    values = nulls is None or nulls < chunk.num_values
    least = greatest = None
    if statistics.has_min_max and values:
        least, greatest = statistics.min, statistics.max
    return Bounds(least, greatest, nulls=nulls != 0, values=values, exact=False)


@dataclass(frozen=True, slots=True)
class ColumnPages:
    """The pages of a column in a group, and the bounds of each."""

    first: Int64s
    """The first row of each page, and the number of rows."""

    bounds: tuple[Bounds, ...]


def page_bounds(
    source: RangeSource, place: tuple[int, int], kind: pa.DataType, pages: int
) -> list[Bounds] | None:
    """Return the bounds of each page of a column, from the ColumnIndex; None if it has no usable ones.

    Args:
        source: the file.
        place: where the ColumnIndex lies, and how many bytes it has.
        kind: the type that the column is read as.
        pages: how many pages the column has.
    """
    start, size = place
    if not _ordered(kind) or not 0 < start <= start + size <= source.size:
        return None
    try:
        found, _ = read_struct(bytes(source.range(start, start + size)))
        empty, lows, highs = found[_NULL_PAGES], found[_LEAST], found[_GREATEST]
        counts = found.get(_NULL_COUNTS)
        if {len(empty), len(lows), len(highs)} != {pages} or (counts is not None and len(counts) != pages):
            return None
        least = _decoded([low for low, none in zip(lows, empty, strict=True) if not none], kind)
        greatest = _decoded([high for high, none in zip(highs, empty, strict=True) if not none], kind)
    except (ThriftError, KeyError, TypeError, ValueError, struct.error):
        return None
    bounds = []
    ends = iter(zip(least, greatest, strict=True))
    for page, none in enumerate(empty):
        low, high = (None, None) if none else next(ends)
        nulls = counts is None or counts[page] != 0
        bounds.append(Bounds(low, high, nulls=bool(none) or nulls, values=not none, exact=False))
    return bounds


def runs_of(
    rows: int, groups: Mapping[str, Bounds], pages: Mapping[str, ColumnPages]
) -> list[tuple[int, int, Mapping[str, Bounds]]]:
    """Return a group's rows in runs, cut where a page of any column ends, each with its known bounds.

    Example:
        >>> known = Bounds(0, 9, nulls=False, values=True)
        >>> runs_of(5, {"a": known}, {})
        [(0, 5, {'a': Bounds(least=0, greatest=9, nulls=False, values=True, exact=True)})]
    """
    edges: NDArray[np.int64] = np.unique(
        np.concatenate([[0, rows], *(some.first for some in pages.values())])
    )
    places = {
        name: (np.searchsorted(some.first, edges[:-1], side="right") - 1).tolist()
        for name, some in pages.items()
    }
    return [
        (start, stop, {**groups, **{name: pages[name].bounds[at[run]] for name, at in places.items()}})
        for run, (start, stop) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    ]


def _ordered(kind: pa.DataType) -> bool:
    """Tell whether values of a type are ordered in the file as they are in Python."""
    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_date32(kind)
        or types.is_timestamp(kind)
    )


def _decoded(values: Sequence[bytes], kind: pa.DataType) -> list[Any]:
    """Return values as Python has them, of bytes as PLAIN has them.

    Raises:
        ValueError, TypeError, struct.error: they are not of this type.
    """
    types = pa.types
    if types.is_string(kind) or types.is_large_string(kind):
        # What was cut off in the middle of a character is not text: nothing is known then.
        return [value.decode() for value in values]
    if types.is_boolean(kind):
        return [struct.unpack("<?", value)[0] for value in values]
    if types.is_floating(kind):
        if kind.bit_width < 32:  # noqa: PLR2004 - half floats are bytes in the file
            raise TypeError
        found = [struct.unpack("<f" if kind.bit_width == 32 else "<d", value)[0] for value in values]  # noqa: PLR2004
        if any(number != number for number in found):  # noqa: PLR0124 - NaN is no bound
            raise ValueError
        return found
    numbers = [struct.unpack("<i" if len(value) == 4 else "<q", value)[0] for value in values]  # noqa: PLR2004
    if types.is_unsigned_integer(kind):
        return [number % (1 << (8 * len(value))) for number, value in zip(numbers, values, strict=True)]
    if types.is_integer(kind):
        return numbers
    if types.is_timestamp(kind) and kind.unit in ("s", "ns"):
        raise TypeError  # kept in another unit, or beyond what Python's times have
    width = pa.int32() if types.is_date32(kind) else pa.int64()
    times: list[Any] = pa.array(numbers, width).cast(kind).to_pylist()
    return times
