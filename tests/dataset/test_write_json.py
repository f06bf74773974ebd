"""Lines of JSON give the records again, or an error names the value that JSON lacks."""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import enum
import json
import uuid
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seekable as sk
from seekable.formats.lines.jsonl_writer import Unencodable, json_text

if TYPE_CHECKING:
    from pathlib import Path

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(), below, max_size=4),
    max_leaves=12,
)


def equal(one: Any, other: Any) -> bool:
    """Compare values and types: 1, 1.0 and True are equal to Python."""
    return bool(one == other) and repr(one) == repr(other)


@given(record=VALUES)
def test_what_json_has_comes_back(record: Any) -> None:
    text = json_text(record)
    assert b"\n" not in text
    assert equal(json.loads(text), record)


@given(records=st.lists(VALUES, max_size=20))
def test_records_of_files_come_back(records: list[Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("out")
    sk.from_sequence(records).write_jsonl(folder, jobs=1)
    found = list(sk.open(folder))
    assert len(found) == len(records)
    # What only Python's own module writes, half a pair of surrogates, only that one reads.
    assert all(equal(one, other) for one, other in zip(found, records, strict=True))


class Colour(enum.Enum):
    RED = "red"


class Named(str, enum.Enum):  # noqa: UP042 - as older code has it
    RED = "red"


class Number(enum.IntEnum):
    ONE = 1


Pair = collections.namedtuple("Pair", "left right")  # noqa: PYI024 - as older code has it


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ((1, (2, 3)), [1, [2, 3]]),
        (np.int64(-5), -5),
        (np.float32(0.5), 0.5),
        (np.float64(0.1), 0.1),
        (np.True_, True),
        (np.str_("a"), "a"),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.array(["a"]), ["a"]),
        (np.array(5), 5),
        ([np.int8(1), 2, [np.float16(0.5)]], [1, 2, [0.5]]),
        (Named.RED, "red"),
        ({Named.RED: Number.ONE}, {"red": 1}),
        (collections.OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (collections.defaultdict(list, a=[1]), {"a": [1]}),
        (Pair(1, 2), [1, 2]),
        (2**200, 2**200),
    ],
    ids=lambda value: repr(value).partition(" at 0x")[0],
)
def test_what_means_the_same_is_written(value: Any, wanted: Any) -> None:
    for record, expected in ((value, wanted), ({"a": [value]}, {"a": [wanted]})):
        assert equal(json.loads(json_text(record)), expected)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (b"a", "is of type bytes"),
        (bytearray(b"a"), "is of type bytearray"),
        (dt.date(2024, 1, 1), "is of type date"),
        (dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "is of type datetime"),
        (dt.timedelta(1), "is of type timedelta"),
        (decimal.Decimal(1), "is of type Decimal"),
        (uuid.UUID(int=1), "is of type UUID"),
        ({1}, "is of type set"),
        (frozenset(), "is of type frozenset"),
        (float("nan"), "is nan, and JSON has no such number"),
        (float("-inf"), "is -inf, and JSON has no such number"),
        (np.float32("nan"), "is nan, and JSON has no such number"),
        (np.array([0.5, np.inf]), r"\[1\] is inf"),
        (np.datetime64("2024-01-01"), "is of type datetime64"),
        (np.array(["2024-01-01"], dtype="M8[D]"), "is of type ndarray"),
        (np.longdouble(1), "is of type longdouble"),
        (1j, "is of type complex"),
        (Colour.RED, "is of type Colour"),
        (object(), "is of type object"),
        ({1: 2}, "has the name 1 of type int, and in JSON names are strings"),
        ({None: 2}, "has the name None of type NoneType"),
        (msgspec.Raw(b"1"), "is of type Raw"),
    ],
    ids=lambda value: repr(value).partition(" at 0x")[0],
)
def test_what_json_lacks_is_named_wherever_it_is(value: Any, says: str) -> None:
    with pytest.raises(Unencodable, match=rf"^the record(\[|) {says}|^the value at {says}"):
        json_text(value)
    with pytest.raises(Unencodable, match=rf"^the value at \['a'\]\[1\]\['b'\].*{says}"):
        json_text({"a": [1, {"b": value, "c": "x"}]})
    with pytest.raises(Unencodable, match=says):
        json_text((1.5, value))


def test_what_holds_itself_is_refused() -> None:
    record: list[Any] = []
    record.append(record)
    with pytest.raises(Unencodable, match="holds itself"):
        json_text(record)


def test_the_row_and_the_place_are_named(tmp_path: Path) -> None:
    records: list[Any] = [{"n": number} for number in range(500)]
    records[321] = {"n": 1, "meta": {"when": dt.date(2024, 1, 1)}}
    with pytest.raises(
        sk.errors.WrongType, match=r"^row 321 \(.*the value at \['meta'\]\['when'\] is of type date"
    ):
        sk.from_sequence(records).write_jsonl(tmp_path, rows_per_file=100, jobs=1)
    records[320] = sk.HOLE
    with pytest.raises(sk.errors.WrongType, match=r"^row 321 \("):
        sk.from_sequence(records, version=2).write_jsonl(tmp_path, jobs=1, overwrite=True)


def test_half_a_pair_of_surrogates_is_escaped(tmp_path: Path) -> None:
    sk.from_sequence([{"a": "\ud83d", "b": "ä"}]).write_jsonl(tmp_path)
    assert (tmp_path / "part-00000-of-00001.jsonl").read_bytes() == b'{"a":"\\ud83d","b":"\\u00e4"}\n'
    assert list(sk.open(tmp_path)) == [{"a": "\ud83d", "b": "ä"}]
