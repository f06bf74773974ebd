"""A column of each of Arrow's types, as values and within other types, with nulls and without."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import lib

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROWS = 120
"""How many rows each column has."""

UNREADABLE = frozenset({"INTERVAL_MONTHS", "INTERVAL_DAY_TIME"})
"""Types that pyarrow has no arrays of."""


class Unregistered(pa.ExtensionType):  # type: ignore[misc]  # pyarrow has no types
    """An extension type that a reader does not know."""

    def __init__(self, storage: pa.DataType) -> None:
        super().__init__(storage, "tests.unregistered")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, _: bytes) -> Unregistered:
        return cls(storage)


def _numbers() -> dict[str, tuple[pa.DataType, Callable[[int], Any]]]:
    return {
        **{f"int{bits}": (getattr(pa, f"int{bits}")(), lambda row: row - 60) for bits in (8, 16, 32, 64)},
        **{f"uint{bits}": (getattr(pa, f"uint{bits}")(), lambda row: row) for bits in (8, 16, 32, 64)},
        "bool": (pa.bool_(), lambda row: row % 3 == 0),
        "half": (pa.float16(), np.float16),
        "float": (pa.float32(), lambda row: row / 4),
        "double": (pa.float64(), lambda row: float("nan") if row == 50 else row / 7),
        **{
            f"decimal{kind.bit_width}": (kind, lambda row: decimal.Decimal(row - 50).scaleb(-2))
            for kind in (pa.decimal32(7, 2), pa.decimal64(15, 2), pa.decimal128(30, 2), pa.decimal256(60, 2))
        },
    }


def _times() -> dict[str, tuple[pa.DataType, Callable[[int], Any]]]:
    units = ("s", "ms", "us", "ns")
    return {
        **{f"timestamp_{unit}": (pa.timestamp(unit), lambda row: row * 10**6) for unit in units},
        **{f"zoned_{unit}": (pa.timestamp(unit, "Europe/Berlin"), lambda row: row * 10**6) for unit in units},
        "offset": (pa.timestamp("us", "+02:00"), lambda row: row * 10**9),
        **{f"duration_{unit}": (pa.duration(unit), lambda row: row * 1000 - 7000) for unit in units},
        "date32": (pa.date32(), lambda row: row * 31),
        "date64": (pa.date64(), lambda row: dt.date(1960, 1, 1) + dt.timedelta(row)),
        "time32_s": (pa.time32("s"), lambda row: row * 60),
        "time32_ms": (pa.time32("ms"), lambda row: row * 60),
        "time64_us": (pa.time64("us"), lambda row: row * 60),
        "time64_ns": (pa.time64("ns"), lambda row: row * 1000),
        "interval": (pa.month_day_nano_interval(), lambda row: pa.MonthDayNano([row, row + 1, row + 2])),
    }


def _texts() -> dict[str, tuple[pa.DataType, Callable[[int], Any]]]:
    texts = {"string": pa.string(), "large_string": pa.large_string(), "string_view": pa.string_view()}
    raw = {"binary": pa.binary(), "large_binary": pa.large_binary(), "binary_view": pa.binary_view()}
    return {
        **{name: (kind, lambda row: "é" * (row % 30)) for name, kind in texts.items()},
        **{name: (kind, lambda row: b"x" * (row % 30)) for name, kind in raw.items()},
        "fixed": (pa.binary(3), lambda _: b"abc"),
    }


def _nested() -> dict[str, tuple[pa.DataType, Callable[[int], Any]]]:
    of_numbers = {
        "list": pa.list_(pa.int16()),
        "large_list": pa.large_list(pa.int16()),
        "list_view": pa.list_view(pa.int16()),
        "large_list_view": pa.large_list_view(pa.int16()),
    }
    return {
        **{name: (kind, lambda row: list(range(row % 5))) for name, kind in of_numbers.items()},
        "pair": (pa.list_(pa.int8(), 2), lambda row: [row, 1]),
        "list_string_view": (pa.list_(pa.string_view()), lambda row: [str(row)] * (row % 3)),
        "list_view_string": (pa.list_view(pa.string()), lambda row: [str(row)] * (row % 3)),
        "list_date": (pa.list_(pa.date32()), lambda row: [row] * (row % 3)),
        "struct": (
            pa.struct({"a": pa.int64(), "b": pa.list_(pa.string())}),
            lambda row: {"a": row, "b": [str(row)]},
        ),
        "struct_of_none": (pa.struct({}), lambda _: {}),
        "map": (pa.map_(pa.string(), pa.int64()), lambda row: [("k", row)] * (row % 3)),
    }


def _repeated() -> dict[str, pa.Array]:
    """Return dictionaries, unions, runs and extensions."""
    rows = np.arange(ROWS)
    words = pa.array(["a" * 20, "b", None])
    numbers = pa.array(rows % 3, pa.int8(), mask=rows % 7 == 3)
    which = pa.array((rows % 2).astype(np.int8))
    pair = [pa.array(rows), pa.array(list(map(str, rows.tolist())))]
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([50, ROWS], pa.int32()), pa.array(["p", "q"]))
    sparse = pa.UnionArray.from_sparse(which, pair)
    interval = pa.array([pa.MonthDayNano([row, 1, 2]) for row in rows.tolist()])
    each = pa.array(np.arange(ROWS + 1), pa.int32())
    codes = pa.DictionaryArray.from_arrays(numbers, words)
    integers = [getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)]
    return {
        **{
            f"dictionary_{kind}": pa.DictionaryArray.from_arrays(numbers.cast(kind), words)
            for kind in integers
        },
        "dictionary_time": pa.DictionaryArray.from_arrays(numbers, pa.array([1, 2, 3], pa.timestamp("s"))),
        "dictionary_view": pa.DictionaryArray.from_arrays(numbers, words.cast(pa.string_view())),
        "dictionary_full": pa.DictionaryArray.from_arrays(numbers, pa.array(["x", "y", "z"])),
        "list_dictionary": pa.ListArray.from_arrays(each, codes),
        "sparse_union": sparse,
        "dense_union": pa.UnionArray.from_dense(which, pa.array(rows, pa.int32()), pair),
        "list_union": pa.ListArray.from_arrays(each, sparse),
        "runs": runs,
        "runs_null": pa.RunEndEncodedArray.from_arrays(pa.array([9, ROWS], pa.int16()), pa.array([1, None])),
        "runs_view": pa.RunEndEncodedArray.from_arrays(
            pa.array([9, ROWS], pa.int64()), pa.array(["p", "q"], pa.string_view())
        ),
        "runs_dictionary": pa.RunEndEncodedArray.from_arrays(
            pa.array([9, ROWS], pa.int32()),
            pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["x", "y"])),
        ),
        "struct_runs": pa.StructArray.from_arrays([runs], ["r"]),
        "struct_interval": pa.StructArray.from_arrays([interval], ["i"]),
        "list_interval": pa.ListArray.from_arrays(each, interval),
    }


def _extensions() -> dict[str, pa.Array]:
    rows = range(ROWS)
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([50, ROWS], pa.int32()), pa.array(["p", "q"]))
    tensor = pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.int8(), (2, 2)), pa.array([[1, 2, 3, 4]] * ROWS, pa.list_(pa.int8(), 4))
    )
    of: dict[str, tuple[Any, pa.Array]] = {
        "uuid": (pa.uuid(), pa.array([row.to_bytes(16, "big") for row in rows], pa.binary(16))),
        "json": (pa.json_(), pa.array(['{"a": 1}'] * ROWS)),
        "bool8": (pa.bool8(), pa.array([row % 2 for row in rows], pa.int8())),
        "opaque": (pa.opaque(pa.int32(), "t", "v"), pa.array(rows, pa.int32())),
        "opaque_runs": (pa.opaque(runs.type, "t", "v"), runs),
        "unregistered": (Unregistered(pa.int32()), pa.array(rows, pa.int32())),
        "unregistered_view": (
            Unregistered(pa.string_view()),
            pa.array([str(row) for row in rows], pa.string_view()),
        ),
    }
    each = pa.array(np.arange(ROWS + 1), pa.int32())
    return {
        **{name: pa.ExtensionArray.from_storage(kind, storage) for name, (kind, storage) in of.items()},
        "tensor": tensor,
        "list_tensor": pa.ListArray.from_arrays(each, tensor),
    }


def columns() -> dict[str, pa.Array]:
    """Return a column of each type; those that can have nulls come with some, and without any."""
    made: dict[str, pa.Array] = {"null": pa.nulls(ROWS)}
    for name, (kind, make) in (_numbers() | _times() | _texts() | _nested()).items():
        values = [make(row) for row in range(ROWS)]
        made[name] = pa.array([None if row % 7 == 3 else value for row, value in enumerate(values)], kind)
        made[f"{name}_full"] = pa.array(values, kind)
    return made | _repeated() | _extensions()


def type_ids(kind: pa.DataType) -> Iterator[int]:
    """Yield the ids of a type and of all types within it."""
    yield kind.id
    if isinstance(kind, pa.BaseExtensionType):
        yield from type_ids(kind.storage_type)
    elif pa.types.is_dictionary(kind):
        yield from type_ids(kind.index_type)
        yield from type_ids(kind.value_type)
    else:
        for number in range(kind.num_fields):
            yield from type_ids(kind.field(number).type)


def known_types() -> dict[str, int]:
    """Return the types that this pyarrow knows, by name."""
    names = (name for name in dir(lib) if name.startswith("Type_"))
    return {name.removeprefix("Type_"): getattr(lib, name) for name in names}
