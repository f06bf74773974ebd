"""Records in the order of a key: that of Python's sorted, kept as rows of a filter are."""

from __future__ import annotations

import datetime as dt
import json
import math
import pickle
import tracemalloc
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dataset.common import endless, flow, numbers
from tests.killing import KILLED, Killer
from tests.thrift import sample

import seekable as sk
from seekable.nodes import sort as sort_node

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RANGE = "<builtins.range>"
TEXTS = st.text("ab\0é\uffff\U0001f600", max_size=9)
KEYS: list[st.SearchStrategy[Any]] = [
    st.integers(-3, 3) | st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-(2**64), 2**64) | st.integers() | st.sampled_from([2**200, -(2**200), -(2**200) - 1]),
    st.integers(-(2**53), 2**53) | st.floats() | st.sampled_from([math.inf, -0.0, 0.0, math.nan]),
    st.sampled_from([1, 2.5, np.int64(2), np.float32(0.5), np.bool_(1), np.float64("nan")]),
    TEXTS,
    TEXTS.map(lambda text: "https://example.com/" + text),
    st.text(max_size=3) | st.sampled_from(["\ud800", "\udfff", "\ue000"]),
    st.binary(max_size=20),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.sampled_from([dt.UTC, dt.timezone(dt.timedelta(hours=2))])),
    st.times(),
    st.timedeltas(),
]


def key_of(record: tuple[Any, int]) -> Any:
    return record[0]


def rank_of(key: Any) -> int:
    """Return 0 for a key, and then the order of those without."""
    if key is None or key is sk.HOLE:
        return 2 + (key is sk.HOLE)
    return int(isinstance(key, float | np.floating) and math.isnan(key))


def sorted_model(records: list[Any], *, reverse: bool) -> list[Any]:
    with_key = [record for record in records if not rank_of(key_of(record))]
    in_order = sorted(with_key, key=key_of, reverse=reverse)
    return in_order + [record for rank in (1, 2) for record in records if rank_of(key_of(record)) == rank]


@given(
    data=st.data(),
    kind=st.sampled_from(KEYS),
    reverse=st.booleans(),
    together=st.sampled_from([2, 1 << 18]),
)
def test_the_order_is_that_of_python(
    data: st.DataObject, kind: st.SearchStrategy[Any], *, reverse: bool, together: int
) -> None:
    keys = data.draw(st.lists(kind | st.none(), max_size=40))
    records = [(key, row) for row, key in enumerate(keys)]
    with pytest.MonkeyPatch.context() as patch:
        # Long spans of equal beginnings, and many blocks, without many records.
        patch.setattr(sort_node, "_TIED_AT_ONCE", together)
        patch.setattr(sort_node, "_ROWS_AT_ONCE", together + 1)
        ds = sk.from_sequence(records).sort(key_of, reverse=reverse, jobs=1)
    in_order = [row for _, row in sorted_model(records, reverse=reverse)]
    assert [row for _, row in ds] == in_order
    assert [ds[i][1] for i in range(len(ds))] == in_order
    assert [row for _, row in flow(ds, 2 * len(ds))] == in_order * 2
    for place, row in enumerate(in_order[:5]):
        assert ds.find("<builtins.list>", row, epoch=1) == [len(ds) + place]


def test_many_texts_with_one_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sort_node, "_TIED_AT_ONCE", 100)
    texts = [f"https://example.com/{(row * 7919) % 1000:0{row % 20}}" for row in range(3000)]
    assert list(sk.from_sequence(texts).sort(str)) == sorted(texts)
    assert list(sk.from_sequence(texts).sort(str, reverse=True)) == sorted(texts, reverse=True)


def test_integers_of_any_size_are_compared_exactly() -> None:
    large = [2**64, 2**63, -(2**63) - 1, 2**64 - 1, 2**200, -(2**200)]
    # Read in several ranges: of small integers alone, and with large ones among them.
    keys = [*range(500), *large, *range(1000), *(-key for key in large), 2**64]
    records = [(key, row) for row, key in enumerate(keys)]
    for reverse in (False, True):
        ds = sk.from_sequence(records).sort(key_of, reverse=reverse, jobs=1)
        assert list(ds) == sorted(records, key=key_of, reverse=reverse)


def test_the_order_does_not_depend_on_who_reads_the_keys() -> None:
    ds = sk.from_sequence([(row * 7919) % 1000 for row in range(3000)])
    ways: list[Callable[[Any], Any]] = [str, abs]
    for by in sample(ways, of=2):
        one, two = ds.sort(by, jobs=1), ds.sort(by, jobs=2)
        assert one.fingerprint == two.fingerprint
        assert list(two) == sorted(ds, key=by)


def test_by_a_column_of_any_format(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": row, "n": (row * 37) % 10, "text": f"t{row % 3}"} for row in range(50)
    ]
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "table").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "table" / "a.parquet", row_group_size=7)
    for folder in ("lines", "table"):
        ds = sk.open(tmp_path / folder)
        assert list(ds.sort("n")) == sorted(rows, key=lambda row: row["n"])
        assert list(ds.sort("text", reverse=True)) == sorted(rows, key=lambda row: row["text"], reverse=True)
        two = ds.sort("n").sort("text")
        assert list(two) == sorted(rows, key=lambda row: (row["text"], row["n"]))
        assert two.locate(0).row == two[0]["id"]
        assert list(two.select_columns(["id"])) == [{"id": row["id"]} for row in two]
        assert list(ds.sort("n").filter(lambda row: row["n"] > 8)) == [row for row in rows if row["n"] == 9]


def test_columns_of_nanoseconds(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    whens = [5_000_000_003, None, -1, 5_000_000_001, 5_000_000_002, None, 0]
    in_order = [2, 6, 3, 4, 0, 1, 5]
    for zone in (None, "Europe/Berlin"):
        table = pa.table({"id": range(7), "when": pa.array(whens, pa.timestamp("ns", zone))})
        pq.write_table(table, tmp_path / f"{zone is None}.parquet")
        ds = sk.open(tmp_path / f"{zone is None}.parquet")
        assert [row["id"] for row in ds.sort("when")] == in_order
        assert [row["id"] for row in ds.sort("when", reverse=True)] == [*in_order[4::-1], 1, 5]
    with pytest.raises(
        sk.errors.WrongType, match="this one is a timestamp of pandas with a time zone, and that"
    ):
        sk.concat([sk.open(tmp_path / "True.parquet"), sk.open(tmp_path / "False.parquet")]).sort("when")


def test_holes_and_missing_keys_come_last() -> None:
    records = [sk.HOLE, (None, 1), (math.nan, 2), (2.5, 3), sk.HOLE, (math.nan, 5), (1, 6), (None, 7)]
    in_order = [(1, 6), (2.5, 3), records[2], records[5], (None, 1), (None, 7), sk.HOLE, sk.HOLE]
    ds = sk.from_sequence(records).sort(key_of)
    assert [place.row for place in ds.locate(list(range(8)))] == [6, 3, 2, 5, 1, 7, 0, 4]
    assert list(ds)[4:] == in_order[4:]
    backwards = sk.from_sequence(records).sort(key_of, reverse=True)
    assert [place.row for place in backwards.locate(list(range(8)))] == [3, 6, 2, 5, 1, 7, 0, 4]
    assert list(sk.from_sequence([None, None]).sort(lambda _: None)) == [None, None]
    assert list(sk.from_sequence([]).sort(abs)) == []


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            [1, "a"],
            r"list> row 1: sort\(.*\) needs keys of one kind: this one is a text, and .* row 0 is a number",
        ),
        (
            [None, dt.date(2024, 1, 1), dt.datetime(2024, 1, 1)],  # noqa: DTZ001 - a time without a zone
            r"row 2: .*this one is a date with a time, and that of <builtins.list> row 1 is a date",
        ),
        ([b"", ""], r"row 1: .*this one is a text, and that of .* row 0 is bytes"),
        ([0] * 5000 + [""], r"row 5000: .*this one is a text, and that of .* is a number"),
        ([(1, 2)], r"row 0: sort\(.*\) sorts by numbers, texts, .* \(got \(1, 2\) of type tuple\)"),
        ([1, Decimal(1)], r"row 1: .*\(got Decimal\('1'\) of type Decimal\): a function as by= can"),
        ([0.5, 2**63], r"row 1: .*compare the key 9223372036854775808 exactly with floats"),
        ([0.5] * 5000 + [2**70, 2**80], r"row 500\d: .*compare the key \d{22,25} exactly with floats"),
        ([0.5, -(2**53) - 1], r"row 1: .*compare the key -9007199254740993 exactly with floats"),
        ([2**60] * 5000 + [0.5], r"row \d+: .*compare the key 1152921504606846976 exactly with floats"),
    ],
    ids=[*"abcdefghij"],
)
def test_keys_without_an_order_are_named(keys: list[Any], message: str) -> None:
    with pytest.raises(sk.errors.WrongType, match=message):
        sk.from_sequence([(key, 0) for key in keys]).sort(key_of, jobs=1)


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"n": 1}\n{"m": 1}\n')
    message = r"a\.jsonl row 1: sort\('n'\): there is no column 'n'; .* give a function: by=lambda"
    with pytest.raises(sk.errors.MissingColumn, match=message):
        sk.open(tmp_path).sort("n")
    with pytest.raises(sk.errors.WrongType, match=r"row 0: sort\('n'\): a record with columns is a dict"):
        numbers(3).sort("n")
    with pytest.raises(sk.errors.WrongType, match="by must be the name of a column or a function"):
        numbers(3).sort(["n"])  # type: ignore[arg-type]  # what a user might try
    with pytest.raises(sk.errors.WrongType, match="reverse must be True or False"):
        numbers(3).sort(abs, reverse=1)  # type: ignore[arg-type]  # what a user might try
    with pytest.raises(sk.errors.InvalidArgument, match="put it before shuffle"):
        numbers(3).shuffle(seed=1).sort(abs)
    with pytest.raises(sk.errors.EndlessDataset, match=r"sort\(\) needs a length"):
        endless().sort(abs)


def broken(number: int) -> int:
    return 1 // (number - 432)


def test_an_error_tells_of_its_record() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        numbers(900).sort(broken, jobs=1)
    assert "row=432" in "\n".join(caught.value.__notes__)


def last_digit(number: int) -> int:
    return number % 10


def test_the_order_is_saved_as_the_rows_of_a_filter_are(tmp_path: Path) -> None:
    save = tmp_path / "order.u64"
    first = numbers(30).sort(last_digit, save=save)
    again = numbers(30).sort(last_digit, save=save)
    assert list(first) == list(again) == sorted(range(30), key=last_digit)
    assert first.fingerprint == again.fingerprint == numbers(30).sort(lambda n: n % 10).fingerprint
    assert np.fromfile(save, "<u8").tolist() == list(first)
    described = json.loads((tmp_path / "order.u64.json").read_text())
    assert (described["operation"], described["records"], described["count"]) == ("sort", 30, 30)
    with pytest.raises(sk.StateMismatch, match="the dataset was"):
        numbers(31).sort(last_digit, save=save)
    with pytest.raises(sk.StateMismatch, match="the function was"):
        numbers(30).sort(last_digit, save=save, reverse=True)
    with pytest.raises(sk.StateMismatch, match="the function was"):
        numbers(30).sort(abs, save=save)
    with pytest.raises(sk.StateMismatch, match=r"found by sort\(\), and here by filter\(\)"):
        numbers(30).filter(last_digit, save=save)
    sk.from_sequence([{"n": 1}]).sort("n", save=tmp_path / "column.u64")
    with pytest.raises(sk.StateMismatch, match="the function was the column 'n', is the column 'm'"):
        sk.from_sequence([{"n": 1}]).sort("m", save=tmp_path / "column.u64")


@pytest.mark.exhaustive
@pytest.mark.parametrize("by", [abs, "https://example.com/{:09}".format], ids=["numbers", "texts"])
def test_sorting_takes_a_few_bytes_of_memory_a_record(by: Any) -> None:
    """All keys as Python's objects would take 50 to 100 bytes a record."""
    ds = sk.from_sequence(range(800_000, 0, -1))
    ds[:1000].sort(by, version=1, jobs=1)
    tracemalloc.start()
    ds.sort(by, version=1, jobs=1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The keys of one range of records are there as Python's objects. NumPy's work space is not traced.
    assert peak < 12 * 800_000 + (35 << 20)


def sort_into(save: Path) -> None:
    numbers(2000).sort(last_digit, save=save, jobs=1)


@pytest.mark.exhaustive
def test_killed_at_any_file_operation_the_next_run_has_the_order(tmp_path: Path) -> None:
    with Killer() as killer:
        (tmp_path / "all").mkdir()
        kinds = killer.operations(tmp_path / "all", sort_into, tmp_path / "all" / "order.u64")
        for number in range(1, len(kinds) + 1):
            folder = tmp_path / str(number)
            folder.mkdir()
            assert killer.kill_at(number, folder, sort_into, folder / "order.u64") == KILLED
            ds = numbers(2000).sort(last_digit, save=folder / "order.u64")
            assert list(ds) == sorted(range(2000), key=last_digit)
            names = {file.name for file in folder.iterdir()}
            assert names == {"order.u64", "order.u64.json", "order.u64.lock"}


def test_it_is_an_order_as_others_are() -> None:
    ds = numbers(2500).sort(last_digit)
    assert ds._node.steady
    assert list(pickle.loads(pickle.dumps(ds))) == list(ds)
    assert ds._node.blocks.tolist() == [0, 1024, 2048, 2500]
    assert sorted(ds.shuffle(seed=1, window=1, lanes=2)) == list(range(2500))
    assert list(ds.stream(lanes=1, epochs=1)) == list(ds)
    assert list(ds.epoch(3)) == list(ds)
    assert ".sort(last_digit, reverse=True)" in repr(numbers(3).sort(last_digit, reverse=True))
    assert ds.find(RANGE, 1) == [250]


def test_durations_of_any_length_are_sorted() -> None:
    lengths = [3, -106_751_992, 106_751_992, 999_999_999, 0, -999_999_999]
    days = [dt.timedelta(days=length) for length in lengths]
    # Two ranges: the first has small keys alone.
    durations = [dt.timedelta(days=number % 7) for number in range(5000)] + days
    assert list(sk.from_sequence(durations).sort(by=lambda key: key)) == sorted(durations)
