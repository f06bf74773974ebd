"""What passes nothing during a whole epoch of its sources is an error, and never a hang.

The records count how often they are asked for, and fail where a stream would go on for ever.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import seekable as sk

HANG = 60_000


class Patient(list[int]):
    """Numbers that are read so often and no more."""

    def __init__(self, n: int) -> None:
        super().__init__(range(n))
        self.left = HANG

    def __getitem__(self, row: Any) -> Any:
        self.left -= 1
        assert self.left, "this would go on for ever"
        return super().__getitem__(row)


def endless(n: int = 10, lanes: int = 1) -> sk.Stream:
    return sk.from_sequence(Patient(n)).stream(lanes=lanes)


def ending(n: int = 10, epochs: int = 1) -> sk.Stream:
    return sk.from_sequence(Patient(n)).stream(epochs=epochs)


def nothing(_: Any) -> bool:
    return False


def none_of(_: Any) -> list[Any]:
    return []


def is_late(number: Any) -> bool:
    return bool(number == 4999)


def empty(_: Any) -> list[int]:
    return []


def long(_: Any) -> list[int]:
    return [1] * 9


STARVING = {
    "filter": endless().filter(nothing),
    "filter of one record": endless(1).filter(nothing),
    "filter in lanes": endless(lanes=4).filter(nothing),
    "filter above flatten": endless().flatten(lambda number: [number] * 3).filter(nothing),
    "filter above mix": sk.mix([endless(), endless(30)], weights=[1, 2], seed=0).filter(nothing),
    "filter above a part of weight 0": sk.mix([endless(), endless(30)], weights=[1, 0], seed=0).filter(
        nothing
    ),
    "filter above a part that has ended": sk.mix(
        [ending(), endless(30)], weights=[1, 2], seed=0, stop="all"
    ).filter(nothing),
    "filter above a schedule": sk.mix(
        [endless(), endless(30)], weights=[(0, [1, 0]), (50, [0, 1])], seed=0
    ).filter(nothing),
    "filter above a chain": sk.concat([ending(), endless()]).filter(nothing),
    "filter above repeat": ending().repeat().filter(nothing),
    "filter above batch": endless().batch(3).filter(nothing),
    "filter above shuffle": endless().shuffle(buffer=50, seed=1).filter(nothing),
    "filter above zip": sk.zip([endless(), endless(30)]).filter(nothing),
    "filter above take": endless().take(5).repeat().filter(nothing),
    "filter above bucket": endless()
    .bucket(float, max_cost=9, seed=0, buffer=9, boundaries=[5])
    .filter(nothing),
    "filter above pack": endless().map(long).pack(4).filter(nothing),
    "filter above an empty epoch": sk.concat([endless().take(0), endless()]).filter(nothing),
    "filter below mix": sk.mix([endless().filter(nothing), endless()], weights=[1, 1], seed=0),
    "filter below batch": endless().filter(nothing).batch(3),
    "filter below repeat": ending().filter(nothing).repeat(),
    "flatten": endless().flatten(none_of),
    "flatten above mix": sk.mix([endless(), endless(30)], weights=[1, 2], seed=0).flatten(none_of),
    "flatten twice": endless().flatten(long).flatten(none_of),
    "repeat of nothing": ending(0).repeat(),
    "pack of empty documents": endless().map(empty).pack(4),
    "best fit of empty documents": endless().map(empty).pack(4, method="best_fit"),
    "pack of long documents": endless().map(long).pack(4, long="drop"),
    "best fit of long documents": endless().map(long).pack(4, method="best_fit", long="drop"),
    "an endless stream over nothing": endless(0),
    "holes alone": sk.from_sequence(Patient(10)).map(lambda _: sk.HOLE).stream(),
    "a bucket to be estimated from nothing": ending(0).bucket(float, max_cost=9, seed=0),
}


@pytest.mark.parametrize("name", STARVING)
def test_a_stream_that_starves_is_an_error(name: str) -> None:
    with pytest.raises(sk.NothingPassed):
        for _ in STARVING[name].take(1000):
            pass


PASSING = {
    "one of many": (endless(5000).filter(is_late), 3),
    "one of many, twice": (endless(5000).filter(is_late).batch(2).flatten(), 3),
    "a small source that passes nothing, and a large one": (
        sk.mix([endless(3), endless(5000)], weights=[1, 1], seed=0).filter(is_late),
        2,
    ),
    "a part that passes nothing before one that does": (
        sk.concat([ending(1500, epochs=3).filter(nothing), endless(3)]),
        5,
    ),
    "one that is passed over before one that is not": (
        sk.concat([ending(1500, epochs=3), endless(5000)]).filter(is_late),
        2,
    ),
    "a schedule that comes to it late": (
        sk.mix([endless(3), endless(5000)], weights=[(0, [1, 0]), (9000, [0, 1])], seed=0).filter(is_late),
        2,
    ),
    "large packs of small documents": (endless(3).map(lambda number: [number]).pack(5000), 2),
}


@pytest.mark.parametrize("name", PASSING)
def test_patience_is_not_lost_too_early(name: str) -> None:
    stream, count = PASSING[name]
    assert len(list(stream.take(count))) == count


def test_the_message_says_where_and_for_how_long() -> None:
    told = r"nothing passed <Stream.*filter.*> in lane 0 during a whole epoch of its sources \([\d,]+ items\)"
    with pytest.raises(sk.NothingPassed, match=told):
        next(iter(endless().filter(nothing)))


def test_what_ends_without_an_item_ends() -> None:
    for stream in (
        ending().filter(nothing),
        ending(0).batch(3),
        ending().flatten(none_of),
        ending(0).map(str),
    ):
        assert list(stream) == []
    assert list(sk.from_sequence([1, 2]).map(lambda _: sk.HOLE).stream(epochs=3)) == []


def test_lanes_without_records_are_empty_where_others_go_on() -> None:
    stream = sk.from_sequence("abc").stream(lanes=5)
    assert list(itertools.islice(stream, 7)) == list("abcabca")
    # The slots of lanes 3 and 4 are empty, and count.
    assert list(stream.take(13)) == list("abcabcabc")
