"""Strided ranges and remaining positions, compared with plain lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seekable.order.positions import PositionList, StridedRange, ranges_of
from seekable.order.remaining import Remaining

END = 80

drawn = st.lists(st.integers(0, 6), min_size=1, max_size=6)
remainings = st.builds(Remaining.after, st.integers(0, 9), drawn)


def listed_positions(remaining: Remaining) -> list[int]:
    return [*remaining.stragglers.tolist(), *range(remaining.frontier, END)]


@given(st.integers(0, 9), drawn)
def test_positions_that_lanes_have_not_taken_remain(base: int, taken: list[int]) -> None:
    lanes = len(taken)
    remaining = Remaining.after(base, taken)
    wanted = [x for x in range(base, END) if (x - base) // lanes >= taken[(x - base) % lanes]]
    assert listed_positions(remaining) == wanted
    assert remaining.first == wanted[0]
    assert remaining.frontier == base or remaining.frontier - 1 not in wanted


@given(st.integers(1, 12), st.integers(0, 30), drawn)
def test_lanes_are_dealt_out_anew_in_each_epoch(size: int, first: int, taken: list[int]) -> None:
    lanes = len(taken)
    rows = [[x for x in range(first, 20 * END) if x % size % lanes == lane] for lane in range(lanes)]
    # A lane without rows delivers none.
    delivered = [count if own else 0 for count, own in zip(taken, rows, strict=True)]
    remaining = Remaining.after_epochs(first, delivered, size)
    wanted = sorted(x for own, count in zip(rows, delivered, strict=True) for x in own[count:] if x < END)
    assert [x for x in listed_positions(remaining) if x < END] == wanted


@given(remainings, st.data())
def test_positions_are_put_back(remaining: Remaining, data: st.DataObject) -> None:
    delivered = sorted(set(range(remaining.frontier)) - set(remaining.stragglers.tolist()))
    again = sorted(data.draw(st.sets(st.sampled_from(delivered)))) if delivered else []
    more = remaining.including(np.array(again, dtype=np.int64))
    assert listed_positions(more) == sorted(listed_positions(remaining) + again)
    assert not more.ranges or more.frontier - 1 not in more.stragglers


@given(remainings, st.integers(0, END))
def test_positions_that_remain_below_a_position(remaining: Remaining, stop: int) -> None:
    assert [x for one in remaining.before(stop) for x in one] == [
        x for x in listed_positions(remaining) if x < stop
    ]


@given(remainings)
def test_indices_and_counts_are_those_of_the_list(remaining: Remaining) -> None:
    positions, listed = PositionList(remaining.ranges), remaining.stragglers.tolist()
    assert positions.size == len(listed)
    assert positions.at(np.arange(positions.size))[1].tolist() == listed
    assert [positions.at_one(index)[1] for index in range(positions.size)] == listed
    counts, listed_too = positions.count_before(np.arange(END))
    for x in range(END):
        wanted = sum(y < x for y in listed), x in listed
        assert (counts[x], listed_too[x]) == positions.count_before_one(x) == wanted
    for which, one in enumerate(positions.ranges):
        indices = positions.indices_in(which, np.arange(END)).tolist()
        assert [x for x in range(END) if indices[x] >= 0] == list(one)
        assert [index for index in indices if index >= 0] == [listed.index(x) for x in one]


@given(remainings, st.integers(0, 40))
def test_a_range_without_its_first_positions(remaining: Remaining, count: int) -> None:
    for one in remaining.ranges:
        assert [x for part in one.without_first(count) for x in part] == list(one)[count:]


@given(remainings)
def test_ranges_are_written_and_read(remaining: Remaining) -> None:
    assert tuple(StridedRange.from_json(one.as_json()) for one in remaining.ranges) == remaining.ranges


@given(st.lists(st.integers(0, 30), unique=True))
def test_any_positions_in_their_order(positions: list[int]) -> None:
    assert [x for one in ranges_of(np.array(positions, dtype=np.int64)) for x in one] == positions


@pytest.mark.parametrize(
    "numbers",
    [[3], [3, 0], [-1, 2], [3, 2, 4, []], [3, 2, 2, [0, 2]], [3, 2, 4, [1, 0]], [3, "2"], [True, 1]],
)
def test_values_of_no_range_are_refused(numbers: list[object]) -> None:
    with pytest.raises(ValueError, match=r"no set of positions|not enough values"):
        StridedRange.from_json(numbers)
