"""The filters and orders of rows, against plain Python; and what cannot be read."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seekable as sk
from seekable.errors import InvalidArgument
from seekable.viewer.facts import filtered_rows as room
from seekable.viewer.facts.filtered_rows import FilteredRows, filtered_rows, is_quick, is_small
from seekable.viewer.facts.row_conditions import RowCondition, conditions_of, order_of, subject_text

if TYPE_CHECKING:
    from pathlib import Path

VALUES = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-3, 3) | st.sampled_from(["", "a", "B", "ab"])
)
RECORDS = st.lists(st.dictionaries(st.sampled_from(["n", "a b", "-x"]), VALUES, max_size=3), max_size=12)
NAN = float("nan")


def last(work: Any) -> FilteredRows:
    *_, found = work
    assert isinstance(found, FilteredRows)
    return found


def rows_of(records: list[Any], where: str = "", sort: str = "") -> list[int]:
    node = sk.from_sequence(records)._node
    found = last(filtered_rows(node, conditions_of(where), order_of(sort) if sort else None))
    assert found.found == len(found.rows)
    return [int(row) for row in found.rows]


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@given(
    RECORDS,
    st.sampled_from(["n", "a b", "-x"]),
    st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
    st.integers(-3, 3),
)
def test_numbers_are_compared_as_python_does(records: list[Any], key: str, op: str, value: int) -> None:
    expected = [
        row
        for row, record in enumerate(records)
        if is_number(record.get(key)) and eval(f"{record[key]!r} {op} {value}")
    ]
    assert rows_of(records, f"{subject_text((key,))} {op} {value}") == expected


def test_regular_expressions_of_texts_and_bytes() -> None:
    records = [
        {"u": "HTTPS://a.wiki/x"},
        {"u": "http://b/ wiki"},
        {"u": 5},
        {},
        {"u": b"http://wiki"},
        "wiki",
    ]
    where = 'u matches "^https?://[^/]*wiki" and u is not missing'
    assert [str(each) for each in conditions_of(where)] == [
        'u matches "^https?://[^/]*wiki"',
        "u is not missing",
    ]
    assert rows_of(records, where) == [0, 4]
    assert rows_of(records, r"u matches \bWIKI$ and u contains b") == [1]
    assert rows_of(records, "[record] matches ^w.k") == [5]
    parts = [{"t": [{"r": "x"}, {"r": "tool_7"}]}, {"t": [{"r": "tool"}]}]
    assert rows_of(parts, r"t[].r matches tool_\d") == [0]
    with pytest.raises(InvalidArgument, match="is no regular expression"):
        rows_of(records, "u matches (")


@given(RECORDS, st.sampled_from(["n", "a b"]))
def test_rows_without_a_value_texts_and_lengths(records: list[Any], key: str) -> None:
    subject = subject_text((key,))
    values = [record.get(key) for record in records]
    missing = [row for row, value in enumerate(values) if value is None]
    assert rows_of(records, f"{subject} is missing") == missing
    assert rows_of(records, f"{subject} is not missing") == sorted(set(range(len(records))) - set(missing))
    texts = [(row, value) for row, value in enumerate(values) if isinstance(value, str)]
    assert rows_of(records, f"{subject} contains b") == [row for row, text in texts if "b" in text.lower()]
    long = subject_text((key,), of_length=True)
    assert rows_of(records, f"{long} >= 1") == [row for row, text in texts if text]
    assert rows_of(records, f'{subject} in ["a", "ab"]') == [
        row for row, text in texts if text in ("a", "ab")
    ]


@given(records=RECORDS, down=st.booleans())
def test_rows_are_sorted_numbers_then_texts_and_those_without_a_value_last(
    records: list[Any], *, down: bool
) -> None:
    def key(row: int) -> Any:
        return records[row].get("n")

    rows = range(len(records))
    numbers = sorted((row for row in rows if isinstance(key(row), int | float)), key=key, reverse=down)
    texts = sorted((row for row in rows if isinstance(key(row), str)), key=key, reverse=down)
    rest = [row for row in rows if key(row) is None]
    assert rows_of(records, sort="-n" if down else "n") == [
        *(texts + numbers if down else numbers + texts),
        *rest,
    ]


def test_values_that_have_no_place_come_last() -> None:
    day = dt.date(2026, 1, 2)
    records = [
        {"n": NAN},
        {"n": 10**30},
        {"n": [1]},
        {"n": -1.5},
        {},
        {"n": day},
        {"n": b"x"},
        7,
        {"n": np.float32(2)},
    ]
    assert rows_of(records, sort="n") == [3, 8, 1, 5, 6, 0, 2, 4, 7]
    assert rows_of(records, "length(n) == 1") == [2, 6]
    assert rows_of(records, "n > 1") == [1, 8]
    assert last(filtered_rows(sk.from_sequence(records)._node, conditions_of("n > 1"))).others == 3


def test_elements_of_lists_and_dots_in_keys() -> None:
    records = [{"m": [{"r": "u"}, {"r": "t"}]}, {"m": []}, {"m": [{"r": "u"}]}, {"a.b": 1}]
    assert rows_of(records, "m[].r == t") == [0]
    assert rows_of(records, "length(m) == 0") == [1]
    assert rows_of(records, "a\\.b = 1") == [3]


@given(
    st.lists(
        st.builds(
            RowCondition,
            st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=2).map(tuple),
            st.just(value=False),
            st.sampled_from(["==", "<", ">="]),
            st.text(max_size=5) | st.integers() | st.floats(allow_nan=False),
        ),
        max_size=3,
    )
)
def test_what_is_written_is_read(conditions: list[RowCondition]) -> None:
    assert list(conditions_of(" and ".join(map(str, conditions)))) == conditions


@pytest.mark.parametrize(
    "where",
    [
        *("x", "a ==", "a < b < c", "a in 5", "a == [1]", "a = null", 'a == "', "length(a"),
        *('length(a) == "x"', "x y", r'"a\q" == 1', r'a == "\q"', "a in [1,]"),
        *("a == 1 and", "a == 1 b == 2", "a[ == 1", "== 1", "a == 1" + " and a == 1" * 20),
    ],
)
def test_what_cannot_be_read_says_how_filters_are_written(where: str) -> None:
    with pytest.raises(InvalidArgument, match=r"write conditions as|a key is written as"):
        conditions_of(where)


def test_a_filter_reads_the_columns_that_it_needs_and_the_groups_that_may_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table({"n": list(range(1000)), "image": [b"x" * 10] * 1000})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=100)
    read: list[set[str]] = []
    monkeypatch.setattr(
        room,
        "read_rows",
        lambda node, rows: [read.append(set(each)) or each for each in node.fetch(rows)],  # type: ignore[func-returns-value]
    )
    found = last(
        filtered_rows(sk.open(tmp_path)._node, conditions_of("n >= 250 and n < 255"), order_of("-n"))
    )
    assert found.rows.tolist() == [254, 253, 252, 251, 250]
    assert (found.done, found.size) == (100, 1000)
    assert read == [{"n"}] * 100


def test_memory_is_bounded_and_results_come_while_the_work_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "MOST_KEPT", 5)
    monkeypatch.setattr("seekable.viewer.facts.reading.PIECE_ROWS", 10)
    monkeypatch.setattr("seekable.viewer.facts.reading.ResultPace.due", lambda _: True)
    lines = [json.dumps({"n": (row * 37) % 100}) for row in range(100)]
    (tmp_path / "a.jsonl").write_text("\n".join([*lines[:50], "{", *lines[50:]]) + "\n")
    node = sk.open(tmp_path)._node
    results = list(filtered_rows(node, conditions_of("n >= 10"), order_of("n")))
    assert [each.done for each in results] == [*range(10, 101, 10), 101]
    assert results[0].made_of == "from the first 10 of 101 rows"
    final = results[-1]
    assert (final.found, final.corrupt, final.made_of) == (90, 1, "exact, from all 101 rows")
    assert [node.record(row)["n"] for row in final.rows.tolist()] == [10, 11, 12, 13, 14]
    unsorted = last(filtered_rows(node, conditions_of("n >= 10")))
    assert (unsorted.found, unsorted.rows.size) == (90, 5)


def test_small_data_is_that_of_eight_megabytes(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("{}\n" * 5)
    assert is_small(sk.open(tmp_path)._node)
    assert is_quick(sk.open(tmp_path)._node)
    for columns, quick in ((10, True), (51, False)):
        pq.write_table(pa.table({str(n): np.zeros(2_000) for n in range(columns)}), tmp_path / "w.parquet")
        wide = sk.open(tmp_path / "w.parquet")._node
        assert (is_small(wide), is_quick(wide)) == (True, quick)
    (tmp_path / "w.parquet").unlink()
    assert is_small(sk.from_sequence(range(10_000))._node)
    assert not is_small(sk.from_sequence(range(10_001))._node)
    (tmp_path / "a.jsonl").write_text(json.dumps("x" * 9_000_000) + "\n")
    assert not is_small(sk.open(tmp_path)._node)


@given(st.text('ab"\\[]{}().,=<>! \t\nisngmcot0123eE+-_\u00e9\ud800', max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (conditions_of, order_of):
        with contextlib.suppress(InvalidArgument):
            read(text)
