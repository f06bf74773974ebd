"""Rows left out: golden values, a model of plain lists, forward and inverse, both forms of the rows."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.order import models

from seekable.order.exclusion import Exclusion, RowBitmap, RowList, RowSet, row_set


@st.composite
def sets(draw: st.DrawFn) -> tuple[list[int], int]:
    """Rows of up to three blocks of a bitmap, few or many, of which at least one is not in the set."""
    size = draw(st.sampled_from([1, 2, 3, 10, 63, 64, 65, 200, 511, 512, 513, 1300]))
    share = draw(st.sampled_from([0, 1, 3, size // 65, size // 2, size - 1]))
    seed = draw(st.integers(0, 2**32))
    rows = np.random.default_rng(seed).permutation(size)[: min(share, size - 1)]
    return sorted(rows.tolist()), size


def as_rows(rows: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(rows, dtype=np.int64)


@pytest.mark.parametrize("form", [RowList, RowBitmap])
@given(sets())
def test_both_forms_are_a_plain_set(form: type[RowSet], case: tuple[list[int], int]) -> None:
    rows, size = case
    made = form(as_rows(rows), size)  # type: ignore[call-arg]  # both forms take these
    everything, others = np.arange(size), [row for row in range(size) if row not in set(rows)]
    assert (made.size, made.count) == (size, len(rows))
    assert made.holding(everything).tolist() == rows
    assert made.holding(everything[::-1]).tolist() == [size - 1 - row for row in reversed(rows)]
    ranks = [sum(each < row for each in rows) for row in range(size)]
    assert made.rank(everything).tolist() == ranks == [made.rank_one(row) for row in range(size)]
    assert [row for row in range(size) if made.holds_one(row)] == rows
    assert made.select(np.arange(len(rows))).tolist() == rows
    assert made.select_others(np.arange(len(others))).tolist() == others
    assert [made.select_other(number) for number in range(len(others))] == others


def test_the_smaller_form_is_taken() -> None:
    rows = np.arange(100, dtype=np.int64)
    assert type(row_set(rows, 6401)) is RowList
    assert type(row_set(rows, 6400)) is RowBitmap
    assert type(row_set(rows[:0], 0)) is RowBitmap


@given(sets(), st.sampled_from([0, 1, 5, 2**40]))
def test_it_is_its_model(case: tuple[list[int], int], epoch: int) -> None:
    rows, size = case
    out = Exclusion(as_rows(rows), size)
    positions = epoch * size + np.arange(size)
    expected = [epoch * size + row for row in models.without(rows, size, epoch)]
    assert out.forward(positions).tolist() == expected
    assert [out.forward_one(int(position)) for position in positions] == expected


@given(sets(), st.sampled_from([0, 1, 5]))
def test_each_kept_row_comes_once_and_is_a_replacement_equally_often(
    case: tuple[list[int], int], epoch: int
) -> None:
    rows, size = case
    kept = size - len(rows)
    counts = Counter(Exclusion(as_rows(rows), size).forward(epoch * size + np.arange(size)).tolist())
    assert set(counts) == {epoch * size + row for row in range(size) if row not in set(rows)}
    assert set(counts.values()) <= {1 + len(rows) // kept, 1 + -(-len(rows) // kept)}


@given(sets(), st.sampled_from([0, 3]))
def test_the_inverse_is_a_search(case: tuple[list[int], int], epoch: int) -> None:
    rows, size = case
    out = Exclusion(as_rows(rows), size)
    two = epoch * size + np.arange(2 * size)
    comes = out.forward(two)
    for position in two[:: max(1, size // 20)]:
        found = np.sort(out.inverse(np.array([position])))
        assert found.tolist() == two[comes == position].tolist()
    assert np.sort(out.inverse(two)).tolist() == two.tolist()


def test_what_is_looked_at_together_makes_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    out = Exclusion(as_rows([row for row in range(60) if row % 7]), 60)
    whole = np.sort(out.inverse(np.arange(60)))
    monkeypatch.setattr("seekable.order.exclusion._AT_ONCE", 2)
    assert np.sort(out.inverse(np.arange(60))).tolist() == whole.tolist() == list(range(60))


def test_replacements_differ_between_epochs() -> None:
    out = Exclusion(np.arange(0, 4000, 40), 4000)
    replaced = [out.forward(epoch * 4000 + np.arange(0, 4000, 40)) % 4000 for epoch in range(3)]
    assert all((a != b).mean() > 0.9 for a, b in itertools.pairwise(replaced))


def test_positions_stay_one_array_where_nothing_is_left_out_among_them() -> None:
    positions = np.arange(6)
    assert Exclusion(as_rows([7]), 100).forward(positions) is positions
    assert Exclusion(as_rows([]), 100).forward(positions) is positions
    moved = Exclusion(as_rows([3]), 100).forward(positions)
    assert positions.tolist() == list(range(6)) != moved.tolist()


def test_nothing_kept_is_refused() -> None:
    with pytest.raises(ValueError, match="of 3 rows 3 are left out, and none is kept"):
        Exclusion(as_rows([0, 1, 2]), 3)


def test_golden_values_of_few() -> None:
    out = Exclusion(as_rows([5, 6, 7, 500, 999]), 1000)
    positions = [5, 6, 7, 500, 999, 1005, 1006, 1007, 1500, 1999, 8, 2005]
    assert out.forward(as_rows(positions)).tolist() == [
        *(695, 544, 510, 786, 741),
        *(1031, 1910, 1844, 1967, 1540),
        *(8, 2122),
    ]


def test_golden_values_of_most() -> None:
    out = Exclusion(as_rows([0, 2, 3, 4, 6, 8, 9]), 10)
    assert out.forward(np.arange(20)).tolist() == [
        *(1, 1, 7, 5, 5, 5, 1, 7, 7, 5),
        *(11, 11, 15, 17, 11, 15, 17, 17, 15, 11),
    ]
    places = [np.sort(out.inverse(as_rows([row]))).tolist() for row in (1, 5, 7)]
    assert places == [[0, 1, 6], [3, 4, 5, 9], [2, 7, 8]]
