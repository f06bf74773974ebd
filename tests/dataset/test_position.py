"""Positions reach every epoch where plain rows reach epoch 0."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dataset.common import endless, numbers

import seekable as sk
from seekable.dataset.position import NotedPosition, Position, Positions


@given(st.integers(1, 30), st.lists(st.integers(0, 60), max_size=8))
def test_positions_run_through_the_epochs(n: int, places: list[int]) -> None:
    ds = numbers(n).shuffle(seed=5)
    epochs = [record for epoch in range(61 // n + 1) for record in ds.epoch(epoch)]
    wanted = [epochs[place] for place in places]
    positions = list(map(Position, places))
    assert [ds[position] for position in positions] == wanted
    assert ds[positions] == ds[tuple(positions)] == wanted
    assert ds.__getitems__(positions) == ds._getitems(positions) == wanted


def test_positions_of_an_endless_dataset_are_its_rows() -> None:
    assert endless()[Position(12)] == endless()[12]
    assert endless()[[Position(12), Position(3)]] == endless()[[12, 3]]


def test_plain_rows_stay_those_of_epoch_0() -> None:
    ds = numbers(5)
    with pytest.raises(sk.errors.OutOfRange, match="row 7 is out of range"):
        ds[7]
    with pytest.raises(sk.errors.OutOfRange, match="row 7 is out of range"):
        ds[[7]]
    assert ds[Position(7)] == 2


def test_locate_takes_positions() -> None:
    ds = numbers(5).shuffle(seed=1)
    assert ds.locate(Position(7)) == ds.epoch(1).locate(2)
    assert ds.locate([Position(7)]) == [ds.locate(Position(7))]


@pytest.mark.parametrize("rows", [[Position(1), 2], [2, Position(1)], (Position(9), np.int64(1))])
def test_rows_among_positions_are_refused(rows: Any) -> None:
    with pytest.raises(sk.errors.WrongType, match="must all be positions, or none of them"):
        numbers(5)[rows]


@pytest.mark.parametrize("position", [Position(-1), Position(2**63), Position(10**30)])
def test_positions_are_numbers_of_64_bits(position: Position) -> None:
    for rows in (position, [Position(0), position]):
        with pytest.raises(sk.errors.OutOfRange, match=rf"position {int(position)} is out of range"):
            numbers(5)[rows]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("value", [Position(7), Positions(), Positions(map(Position, [0, 2**62, 2**63 - 1]))])
def test_positions_stay_positions_when_pickled(value: Any, protocol: int) -> None:
    copy = pickle.loads(pickle.dumps(value, protocol))
    assert (copy, type(copy)) == (value, type(value))
    if isinstance(copy, list):
        assert {type(position) for position in copy} <= {Position}


def test_a_part_of_a_list_of_positions_is_one() -> None:
    """Accelerate cuts batches into those of its processes."""
    part = pickle.loads(pickle.dumps(Positions(map(Position, range(8)))[2:4]))
    assert numbers(2)[part] == [0, 1]


def test_a_list_of_positions_is_small_in_a_pickle() -> None:
    assert len(pickle.dumps(Positions(map(Position, range(1000))))) < 8 * 1000 + 100


@pytest.mark.parametrize("method", ["__getitem__", "__getitems__"])
def test_what_was_read_is_noted_and_not_pickled(method: str) -> None:
    positions = Positions(map(Position, [3, 7]))
    assert positions.reader is None
    assert len(getattr(numbers(5), method)(positions)) == 2
    assert positions.reader == threading.get_ident()
    assert pickle.loads(pickle.dumps(positions)).reader is None


def test_a_noted_position_is_a_position() -> None:
    position = NotedPosition(7)
    assert numbers(5)[[position, Position(8)]] == numbers(5)[[Position(7), Position(8)]]
    assert position.reader is None
    assert numbers(5)[position] == numbers(5)[Position(7)]
    assert position.reader == threading.get_ident()
    assert type(pickle.loads(pickle.dumps(position))) is Position
