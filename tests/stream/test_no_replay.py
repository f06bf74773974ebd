"""Restoring reads what is in flight, and not what came before: counted on the records that are asked for."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest
from tests.stream.common import through_json

import seekable as sk

BUFFER = 2_000
AHEAD = 300
"""Records that a source reads together, and a buffer restores together."""
FOLLOWING = 300
"""Items that are compared."""


class Counted(list[int]):
    """Numbers that know which of them were asked for."""

    def __init__(self, n: int) -> None:
        super().__init__(range(n))
        self.asked: list[int] = []

    def __getitem__(self, row: Any) -> Any:
        self.asked.append(row)
        return super().__getitem__(row)


def shuffled(stream: sk.Stream) -> sk.Stream:
    return stream.shuffle(buffer=BUFFER, seed=1)


def text(number: int) -> Any:
    return np.full(3 + number % 5, number)


PIPELINES: dict[str, Any] = {
    "alone": shuffled,
    "filter": lambda stream: shuffled(stream.filter(is_odd)),
    "filter above": lambda stream: shuffled(stream).filter(is_odd),
    "flatten": lambda stream: shuffled(stream.flatten(twice)),
    "pack": lambda stream: shuffled(stream).map(text).pack(16, method="best_fit", bins=8),
    "mix": lambda stream: sk.mix(
        [shuffled(stream), stream.skip(5).batch(2).flatten()], weights=[2, 1], seed=0
    ),
    "all": lambda stream: (
        sk.mix([shuffled(stream.filter(is_odd).flatten(twice)), stream.map(negated)], weights=[2, 1], seed=0)
        .map(text)
        .pack(16, method="best_fit", bins=8)
    ),
}


def is_odd(number: int) -> bool:
    return number % 2 == 1


def twice(number: int) -> list[int]:
    return [number, number]


def negated(number: int) -> int:
    return -number


@pytest.mark.parametrize("name", PIPELINES)
@pytest.mark.parametrize("position", [0, 1, 2_400])
def test_the_first_item_after_a_restore_reads_little(name: str, position: int) -> None:
    data = Counted(20_000)
    stream = PIPELINES[name](sk.from_sequence(data).stream())
    iterator = iter(stream)
    for _ in range(position):
        next(iterator)
    state = through_json(iterator.state_dict())
    wanted = list(itertools.islice(iterator, FOLLOWING))

    data.asked.clear()
    again = iter(stream)
    again.load_state_dict(state)
    assert data.asked == []
    found = [next(again)]
    if position:
        # An item of these is made of several, from anywhere in the buffer.
        assert len(data.asked) <= AHEAD * {"pack": 3, "mix": 2, "all": 4}.get(name, 1)
    found += itertools.islice(again, FOLLOWING - 1)
    assert laid_out(found) == laid_out(wanted)


def laid_out(items: list[Any]) -> Any:
    return [item["tokens"].tolist() if isinstance(item, dict) else item for item in items]


def test_all_that_a_restored_buffer_reads_is_what_is_in_it() -> None:
    data = Counted(6_000)
    stream = shuffled(sk.from_sequence(data).stream(epochs=1))
    iterator = iter(stream)
    for _ in range(2_345):
        next(iterator)
    state = iterator.state_dict()
    in_flight = state["lanes"]["0"][0]["buffer"]
    assert len(in_flight) == BUFFER

    data.asked.clear()
    again = iter(stream)
    again.load_state_dict(state)
    assert sum(1 for _ in again) == 6_000 - 2_345
    # What waited, and what had not come: each once.
    assert sorted(data.asked) == sorted([*in_flight, *range(2_345 + BUFFER, 6_000)])


@pytest.mark.parametrize("position", [10, 5_000, 9_000])
def test_a_stage_without_a_buffer_reads_nothing_again(position: int) -> None:
    data = Counted(10_000)
    stream = sk.from_sequence(data).stream(epochs=1).filter(is_odd).flatten(twice).batch(2)
    iterator = iter(stream)
    iterator.load_state_dict(iterator.state_dict())
    for _ in range(position // 2):
        next(iterator)
    state = iterator.state_dict()
    data.asked.clear()
    again = iter(stream)
    again.load_state_dict(state)
    next(again)
    # The outer item that was gone through last, then what comes.
    assert min(data.asked) >= position - 1
    assert len(data.asked) <= AHEAD


def test_a_state_of_a_full_buffer_has_few_bytes_an_item() -> None:
    data = Counted(20_000)
    iterator = iter(shuffled(sk.from_sequence(data).stream()))
    empty = len(json.dumps(iterator.state_dict()))
    next(iterator)
    assert len(json.dumps(iterator.state_dict())) - empty < 8 * BUFFER
