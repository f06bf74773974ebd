"""Sets of positions as combs, held to plain lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seekable.order.positions import PositionList, StridedRange, ranges_of
from seekable.order.remaining import Remaining

END = 80

drawn = st.lists(st.integers(0, 6), min_size=1, max_size=6)
lefts = st.builds(Remaining.after, st.integers(0, 9), drawn)


def those_left(left: Remaining) -> list[int]:
    return [*left.stragglers.tolist(), *range(left.frontier, END)]


@given(st.integers(0, 9), drawn)
def test_what_lanes_have_not_taken_is_left(base: int, taken: list[int]) -> None:
    lanes = len(taken)
    left = Remaining.after(base, taken)
    wanted = [x for x in range(base, END) if (x - base) // lanes >= taken[(x - base) % lanes]]
    assert those_left(left) == wanted
    assert left.first == wanted[0]
    assert left.frontier == base or left.frontier - 1 not in wanted


@given(st.integers(1, 12), st.integers(0, 30), drawn)
def test_lanes_are_dealt_out_anew_in_each_epoch(size: int, first: int, taken: list[int]) -> None:
    lanes = len(taken)
    left = [[x for x in range(first, 20 * END) if x % size % lanes == lane] for lane in range(lanes)]
    # A lane without rows delivers none.
    delivered = [count if own else 0 for count, own in zip(taken, left, strict=True)]
    remaining = Remaining.after_epochs(first, delivered, size)
    wanted = sorted(x for own, count in zip(left, delivered, strict=True) for x in own[count:] if x < END)
    assert [x for x in those_left(remaining) if x < END] == wanted


@given(lefts, st.data())
def test_positions_are_put_back(left: Remaining, data: st.DataObject) -> None:
    gone = sorted(set(range(left.frontier)) - set(left.stragglers.tolist()))
    back = sorted(data.draw(st.sets(st.sampled_from(gone)))) if gone else []
    more = left.including(np.array(back, dtype=np.int64))
    assert those_left(more) == sorted(those_left(left) + back)
    assert not more.ranges or more.frontier - 1 not in more.stragglers


@given(lefts, st.integers(0, END))
def test_what_is_left_below_a_position(left: Remaining, stop: int) -> None:
    assert [x for comb in left.before(stop) for x in comb] == [x for x in those_left(left) if x < stop]


@given(lefts)
def test_numbers_and_ranks_are_those_of_the_list(left: Remaining) -> None:
    combs, listed = PositionList(left.ranges), left.stragglers.tolist()
    assert combs.size == len(listed)
    assert combs.at(np.arange(combs.size))[1].tolist() == listed
    assert [combs.at_one(number)[1] for number in range(combs.size)] == listed
    ranks, there = combs.count_before(np.arange(END))
    for x in range(END):
        wanted = sum(y < x for y in listed), x in listed
        assert (ranks[x], there[x]) == combs.count_before_one(x) == wanted
    for which, comb in enumerate(combs.ranges):
        numbers = combs.indices_in(which, np.arange(END)).tolist()
        assert [x for x in range(END) if numbers[x] >= 0] == list(comb)
        assert [number for number in numbers if number >= 0] == [listed.index(x) for x in comb]


@given(lefts, st.integers(0, 40))
def test_a_comb_without_its_first_positions(left: Remaining, count: int) -> None:
    for comb in left.ranges:
        assert [x for part in comb.without_first(count) for x in part] == list(comb)[count:]


@given(lefts)
def test_combs_are_written_and_read(left: Remaining) -> None:
    assert tuple(StridedRange.from_json(comb.as_json()) for comb in left.ranges) == left.ranges


@given(st.lists(st.integers(0, 30), unique=True))
def test_any_positions_in_their_order(positions: list[int]) -> None:
    assert [x for comb in ranges_of(np.array(positions, dtype=np.int64)) for x in comb] == positions


@pytest.mark.parametrize(
    "numbers",
    [[3], [3, 0], [-1, 2], [3, 2, 4, []], [3, 2, 2, [0, 2]], [3, 2, 4, [1, 0]], [3, "2"], [True, 1]],
)
def test_what_is_no_comb_is_refused(numbers: list[object]) -> None:
    with pytest.raises(ValueError, match=r"no set of positions|not enough values"):
        StridedRange.from_json(numbers)
