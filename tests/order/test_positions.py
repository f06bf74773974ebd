"""Sets of positions as combs, held to plain lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seekable.order.positions import Comb, Combs, Left, combs_of

END = 80

drawn = st.lists(st.integers(0, 6), min_size=1, max_size=6)
lefts = st.builds(Left.behind, st.integers(0, 9), drawn)


def those_left(left: Left) -> list[int]:
    return [*left.lagging.tolist(), *range(left.tail, END)]


@given(st.integers(0, 9), drawn)
def test_what_lanes_have_not_taken_is_left(base: int, taken: list[int]) -> None:
    lanes = len(taken)
    left = Left.behind(base, taken)
    wanted = [x for x in range(base, END) if (x - base) // lanes >= taken[(x - base) % lanes]]
    assert those_left(left) == wanted
    assert left.first == wanted[0]
    assert left.tail == base or left.tail - 1 not in wanted


@given(lefts, st.data())
def test_positions_are_put_back(left: Left, data: st.DataObject) -> None:
    gone = sorted(set(range(left.tail)) - set(left.lagging.tolist()))
    back = sorted(data.draw(st.sets(st.sampled_from(gone)))) if gone else []
    more = left.with_more(np.array(back, dtype=np.int64))
    assert those_left(more) == sorted(those_left(left) + back)
    assert not more.combs or more.tail - 1 not in more.lagging


@given(lefts, st.integers(0, END))
def test_what_is_left_below_a_position(left: Left, stop: int) -> None:
    assert [x for comb in left.below(stop) for x in comb] == [x for x in those_left(left) if x < stop]


@settings(max_examples=200)
@given(lefts)
def test_numbers_and_ranks_are_those_of_the_list(left: Left) -> None:
    combs, listed = Combs(left.combs), left.lagging.tolist()
    assert combs.size == len(listed)
    assert combs.at(np.arange(combs.size))[1].tolist() == listed
    assert [combs.at_one(number)[1] for number in range(combs.size)] == listed
    ranks, there = combs.rank(np.arange(END))
    for x in range(END):
        wanted = sum(y < x for y in listed), x in listed
        assert (ranks[x], there[x]) == combs.rank_one(x) == wanted
    for which, comb in enumerate(combs.combs):
        numbers = combs.numbers_in(which, np.arange(END)).tolist()
        assert [x for x in range(END) if numbers[x] >= 0] == list(comb)
        assert [number for number in numbers if number >= 0] == [listed.index(x) for x in comb]


@given(lefts, st.integers(0, 40))
def test_a_comb_without_its_first_positions(left: Left, count: int) -> None:
    for comb in left.combs:
        assert [x for part in comb.behind(count) for x in part] == list(comb)[count:]


@given(lefts)
def test_combs_are_written_and_read(left: Left) -> None:
    assert tuple(Comb.of(comb.numbers()) for comb in left.combs) == left.combs


@given(st.lists(st.integers(0, 30), unique=True))
def test_any_positions_in_their_order(positions: list[int]) -> None:
    assert [x for comb in combs_of(np.array(positions, dtype=np.int64)) for x in comb] == positions


@pytest.mark.parametrize(
    "numbers",
    [[3], [3, 0], [-1, 2], [3, 2, 4, []], [3, 2, 2, [0, 2]], [3, 2, 4, [1, 0]], [3, "2"], [True, 1]],
)
def test_what_is_no_comb_is_refused(numbers: list[object]) -> None:
    with pytest.raises(ValueError, match=r"no set of positions|not enough values"):
        Comb.of(numbers)
