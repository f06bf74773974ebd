"""Duplicates against a count of all values."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seekable as sk
from seekable.viewer.facts import duplicates as room
from seekable.viewer.facts.duplicates import Duplicates, duplicates

if TYPE_CHECKING:
    from pathlib import Path


def last(work: Any) -> Duplicates:
    *_, found = work
    assert isinstance(found, Duplicates)
    return found


def check(found: Duplicates, values: list[Any]) -> None:
    """Compare with a count of the values, which are hashable; None is left out."""
    there = [value for value in values if value is not None]
    counts = Counter(there)
    assert (found.share.count, found.share.of) == (len(there) - len(counts), len(there))
    assert (found.classes, found.left_out) == (1, len(values) - len(there))
    groups = sorted((count for count in counts.values() if count > 1), reverse=True)
    assert [group.count for group in found.groups] == groups
    assert list(found.groups) == sorted(found.groups, key=lambda group: (-group.count, group.rows))
    for group in found.groups:
        rows = [row for row, value in enumerate(values) if value == values[group.rows[0]]]
        assert list(group.rows) == rows[:20]
    json.dumps(found.document())


@given(st.lists(st.sampled_from(["a", "b", "c", 1, "1", (1, 2)]), max_size=30))
def test_records_of_all_kinds(values: list[Any]) -> None:
    check(last(duplicates(sk.from_sequence(values)._node)), values)


@given(st.lists(st.sampled_from(["a", "b", "ä", None]), max_size=30))
def test_values_of_a_key(values: list[str | None]) -> None:
    records = [{"id": row} | ({} if value is None else {"text": value}) for row, value in enumerate(values)]
    check(last(duplicates(sk.from_sequence(records)._node, path=("text",))), values)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
def test_lines_of_several_files(tmp_path: Path, end: str) -> None:
    lines = [f'{{"id": {number}}}' for number in (1, 2, 1, 3, 2, 1)]
    (tmp_path / "a.jsonl").write_bytes((end.join(lines[:4]) + end).encode())
    (tmp_path / "b.jsonl").write_bytes(end.join(lines[4:]).encode())
    (tmp_path / "none.jsonl").write_bytes(b"")
    check(last(duplicates(sk.open(tmp_path)._node)), lines)


def test_arrays_are_compared_by_their_values() -> None:
    values = [np.array([1, 2]), np.array([1, 2]), np.array([1, 2], np.int8), np.array([[1, 2]])]
    found = last(duplicates(sk.from_sequence([{"x": value} for value in values])._node))
    assert [group.rows for group in found.groups] == [(0, 1)]


def test_of_many_rows_one_class_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_MOST_KEPT", 1000)
    values = [row // 2 if row < 8000 else row for row in range(20_000)]
    found = last(duplicates(sk.from_sequence(values)._node))
    assert found.classes in (16, 32, 64)
    assert found.kept <= 1000
    assert found.share.low < 0.2 < found.share.high
    assert found.made_of.startswith(f"from {found.kept:,} of all 20,000 rows")
    for group in found.groups:
        assert len({values[row] for row in group.rows}) == 1
        assert group.count == 2
    none = last(duplicates(sk.from_sequence(range(20_000))._node))
    assert none.share.count == 0
    assert 0 < none.share.high < 0.02


def test_the_bounds_hold_for_most_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_MOST_KEPT", 500)
    random, held = np.random.default_rng(0), 0
    for _ in range(40):
        values = random.integers(0, 1 << 40, 2000).tolist()
        values += values[:1000] + values[:500]
        share = last(duplicates(sk.from_sequence(values)._node)).share
        held += share.low <= 1500 / 3500 <= share.high
    assert held >= 34


def test_results_come_while_the_work_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seekable.viewer.facts.reading.ResultPace.due", lambda _: True)
    results = list(duplicates(sk.from_sequence(["a"] * 5000)._node))
    assert [each.done for each in results] == [*range(512, 5000, 512), 5000]
    assert results[0].made_of == "exact, from the first 512 of 5,000 rows"
    assert results[-1].share.count == 4999


def test_no_rows() -> None:
    found = last(duplicates(sk.from_sequence([])._node))
    assert (found.share.of, found.groups, found.made_of) == (0, (), "exact, from all 0 rows")
