"""Tables of every type that pyarrow writes to Parquet, with nulls, empty lists and values that repeat."""

from __future__ import annotations

import datetime as dt
import decimal
import functools
import uuid
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from tests.thrift import some

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = some(150, of=2)


def _numbers(bits: int, *, signed: bool) -> Callable[[int], int]:
    low = -(2 ** (bits - 1)) if signed else 0
    return lambda row: low + (row * 2654435761) % 2**bits


def _decimal(digits: int) -> Callable[[int], decimal.Decimal]:
    return lambda row: decimal.Decimal((row * 7919 - 1000) % 10**digits).scaleb(-2)


def _text(row: int) -> str:
    return f"row {row} " + "é€𝄞"[row % 3] * (row % 7)


FLAT: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "bool": (pa.bool_(), lambda row: row % 3 == 0),
    **{f"int{b}": (getattr(pa, f"int{b}")(), _numbers(b, signed=True)) for b in (8, 16, 32, 64)},
    **{f"uint{b}": (getattr(pa, f"uint{b}")(), _numbers(b, signed=False)) for b in (8, 16, 32, 64)},
    "float16": (pa.float16(), lambda row: np.float16(row / 8)),
    "float32": (pa.float32(), lambda row: float("nan") if row % 50 == 9 else row / 7),
    "float64": (pa.float64(), lambda row: float("-inf") if row % 50 == 9 else row / 7),
    "decimal_short": (pa.decimal128(7, 2), _decimal(7)),
    "decimal_long": (pa.decimal128(15, 2), _decimal(15)),
    "decimal_wide": (pa.decimal256(50, 2), _decimal(40)),
    "string": (pa.string(), _text),
    "binary": (pa.binary(), lambda row: bytes([row % 256]) * (row % 5)),
    "large_string": (pa.large_string(), _text),
    "large_binary": (pa.large_binary(), lambda row: bytes(row % 9)),
    "fixed": (pa.binary(5), lambda row: row.to_bytes(5, "big")),
    "date32": (pa.date32(), lambda row: dt.date(1960, 1, 1) + dt.timedelta(row * 31)),
    "date64": (pa.date64(), lambda row: dt.date(1960, 1, 1) + dt.timedelta(row * 31)),
    "time32_s": (pa.time32("s"), lambda row: row * 97 % 86400),
    "time32_ms": (pa.time32("ms"), lambda row: row * 97001 % 86400000),
    "time64_us": (pa.time64("us"), lambda row: row * 97000001 % 86400000000),
    "time64_ns": (pa.time64("ns"), lambda row: row * 97000000 % 86400000000000),
    **{
        f"timestamp_{unit}": (pa.timestamp(unit), lambda row: row * 10**6 - 10**8)
        for unit in ("s", "ms", "us", "ns")
    },
    "timestamp_zone": (pa.timestamp("us", tz="Europe/Berlin"), lambda row: row * 10**12),
    **{f"duration_{unit}": (pa.duration(unit), lambda row: row * 1000 - 7) for unit in ("s", "ns")},
    "null": (pa.null(), lambda _: None),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), lambda row: f"kind {row % 11}"),
    "uuid": (pa.uuid(), lambda row: uuid.UUID(int=row * 2**90).bytes),
}

_WORDS = [None, "a", "bc", "", "defg"]

NESTED: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "list": (pa.list_(pa.int64()), lambda row: [row + i if i % 4 else None for i in range(row % 6)]),
    "list_long": (pa.list_(pa.int32()), lambda row: list(range(700 if row % 90 == 5 else row % 2))),
    "list_string": (pa.list_(pa.string()), lambda row: _WORDS[: row % 6]),
    "list_fixed": (pa.list_(pa.float32(), 3), lambda row: [row, row / 2, -row]),
    "list_large": (pa.large_list(pa.int16()), lambda row: [row % 100] * (row % 3)),
    "list_list": (pa.list_(pa.list_(pa.string())), lambda row: [_WORDS[: i % 3] for i in range(row % 4)]),
    "list_bool": (pa.list_(pa.bool_()), lambda row: [i % 3 == 0 for i in range(row % 20)]),
    "list_decimal": (pa.list_(pa.decimal128(20, 2)), lambda row: [_decimal(18)(row)] * (row % 3)),
    "list_needed": (pa.list_(pa.field("it", pa.int64(), nullable=False)), lambda row: [row] * (row % 4)),
    "struct_one": (pa.struct([("x", pa.int32())]), lambda row: {"x": None if row % 3 == 0 else row}),
    "struct_two": (
        pa.struct([("x", pa.int32()), ("y", pa.string())]),
        lambda row: {"x": row, "y": _text(row)},
    ),
    "list_struct_one": (
        pa.list_(pa.struct([("x", pa.string())])),
        lambda row: [{"x": _text(row)}] * (row % 3),
    ),
    "list_struct": (
        pa.list_(pa.struct([("a", pa.int8()), ("b", pa.list_(pa.int8()))])),
        lambda row: [{"a": i, "b": [i] * i} for i in range(row % 4)],
    ),
    "map": (pa.map_(pa.string(), pa.int64()), lambda row: [(f"k{i}", row) for i in range(row % 3)]),
}


@functools.cache
def column(kind: pa.DataType, make: Callable[[int], Any], rows: int, nulls: int) -> pa.Array:
    """Return a column, every ``nulls``-th of its values being null; 0 is none."""
    values = [None if nulls and row % nulls == nulls - 1 else make(row) for row in range(rows)]
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type))
    return pa.array(values, kind)


def table(
    kinds: dict[str, tuple[pa.DataType, Callable[[int], Any]]],
    rows: int = ROWS,
    nulls: int = 7,
    *,
    needed: bool = False,
) -> pa.Table:
    """Return a table with a column of each kind; ``needed`` columns are declared to have no nulls."""
    made = {
        name: column(kind, make, rows, 0 if needed else nulls)
        for name, (kind, make) in kinds.items()
        if not (needed and name == "null")
    }
    fields = [pa.field(name, array.type, nullable=not needed) for name, array in made.items()]
    return pa.table(list(made.values()), pa.schema(fields))
