"""Values as other types: what fits is exactly that value, and what does not fit is never another one."""

from __future__ import annotations

import datetime as dt
import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seekable as sk
from seekable.nodes.columns.cast import target_of

DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize(
    ("value", "to", "wanted"),
    [
        ("12", int, 12),
        (" 7 ", int, 7),
        (3.0, int, 3),
        (True, int, 1),
        ("1.5", float, 1.5),
        (3, float, 3.0),
        (3, str, "3"),
        (b"\xc3\xa9", str, "\u00e9"),
        (dt.date(2024, 1, 2), str, "2024-01-02"),
        ("False", bool, False),
        (0, bool, False),
        (1.0, bool, True),
        (3, "float32", np.float32(3)),
        ("4", np.uint8, np.uint8(4)),
        (0.1, np.dtype("float16"), np.float16(0.1)),
        (True, "bool", True),
        ("2024-01-02", "datetime64[D]", np.datetime64("2024-01-02")),
        (5, "U", np.str_("5")),
        ("2024-01-02", pa.date32(), dt.date(2024, 1, 2)),
        ("12", pa.int8(), 12),
        ([1, 2], pa.list_(pa.float32()), [1.0, 2.0]),
        (7, lambda value: value + 1, 8),
    ],
    ids=itertools.count(),
)
def test_what_fits_is_that_value(value: Any, to: Any, wanted: Any) -> None:
    made = sk.from_sequence([{"v": value}, {"v": None}]).cast({"v": to})
    assert made[0]["v"] == wanted
    assert type(made[0]["v"]) is type(wanted)
    assert made[1]["v"] is None


@pytest.mark.parametrize(
    ("value", "to"),
    [
        (3.7, int),
        ("3.7", int),
        ("x", int),
        (float("nan"), int),
        (float("inf"), int),
        (b"1", int),
        ([1], int),
        (2**53 + 1, float),
        (10**400, float),
        ("x", float),
        ([1], str),
        ({"a": 1}, str),
        (b"\xff", str),
        ("yes", bool),
        (2, bool),
        (0.5, bool),
        ([], bool),
        (300, "int8"),
        (-1, "uint8"),
        (2.5, "int16"),
        (1e300, "float32"),
        (1e6, "float16"),
        ([1, 300], "int8"),
        ([1.5], "int32"),
        ([1, "x", None], "int32"),
        ("x", "datetime64[D]"),
        ("x", pa.int8()),
        (300, pa.int8()),
        (1.5, pa.int8()),
        (object(), pa.int8()),
    ],
    ids=itertools.count(),
)
def test_what_does_not_fit_is_refused(value: Any, to: Any) -> None:
    made = sk.from_sequence([{"v": value}]).cast({"v": to})
    with pytest.raises(
        sk.errors.BadValue, match=r"<builtins.list> row 0: cast: the column 'v' has .* cannot be cast to"
    ):
        made[0]


@given(value=st.integers(-(2**65), 2**65) | st.floats() | st.booleans(), dtype=st.sampled_from(DTYPES))
def test_integers_of_numpy_are_equal_or_refused(value: Any, dtype: str) -> None:
    bounds = np.iinfo(dtype)
    fits = value == value and value not in (float("inf"), float("-inf"))  # noqa: PLR0124 - NaN
    fits = fits and value == int(value) and bounds.min <= value <= bounds.max
    try:
        made = target_of(dtype).cast(value)
    except (ValueError, TypeError, OverflowError):
        assert not fits
    else:
        assert fits
        assert int(made) == value
        assert made.dtype == dtype


def test_arrays_are_cast_whole() -> None:
    made = sk.from_sequence([{"v": [1, 2]}, {"v": np.array([[0.5]])}]).cast({"v": "float32"})
    assert made[0]["v"].tolist() == [1.0, 2.0]
    assert made[1]["v"].dtype == np.float32
    assert made[1]["v"].shape == (1, 1)
