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
    with pytest.raises(sk.errors.NothingPassed):
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
    with pytest.raises(sk.errors.NothingPassed, match=told):
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


def odd(number: int) -> bool:
    return number % 2 == 1


def odd_alone(number: int) -> list[int]:
    return [number] if odd(number) else []


def odd_or_hole(number: int) -> Any:
    return number if odd(number) else sk.HOLE


def odd_documents(number: int) -> list[int]:
    return [number, number] if odd(number) else []


SPARSE = {
    "filter": lambda stream: stream.filter(odd),
    "filter above shuffle": lambda stream: stream.shuffle(buffer=3, seed=1).filter(odd),
    "flatten": lambda stream: stream.flatten(odd_alone),
    "pack": lambda stream: stream.map(odd_documents).pack(2).map(lambda sample: int(sample["tokens"][0])),
    "filter of filters": lambda stream: stream.filter(bool).filter(odd),
}


@pytest.mark.parametrize("name", SPARSE)
def test_a_lane_in_which_nothing_passes_leaves_its_slots_empty(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Lanes 0 and 2 have the even numbers. The others go on, and a resume is exact."""
    stream = SPARSE[name](endless(8, lanes=4))
    wanted = list(itertools.islice(stream, 10))
    assert set(wanted) == {1, 3, 5, 7}
    assert "lane 0 of 4 gets no record that passes" in caplog.text
    first, again = iter(stream), iter(SPARSE[name](endless(8, lanes=4)))
    begun = [next(first) for _ in range(3)]
    again.load_state_dict(first.state_dict())
    assert begun + list(itertools.islice(again, 7)) == wanted


def test_other_ways_to_a_lane_without_an_item() -> None:
    holes = sk.from_sequence(range(8)).map(odd_or_hole).stream(lanes=4)
    assert list(itertools.islice(holes, 5)) == [1, 3, 5, 7, 1]
    repeated = sk.from_sequence(range(8)).stream(lanes=4, epochs=1).filter(odd).repeat()
    assert list(itertools.islice(repeated, 5)) == [1, 3, 5, 7, 1]
    estimated = endless(8, lanes=4).filter(odd).bucket(float, max_cost=3, seed=0, buffer=4)
    assert {number for batch in itertools.islice(estimated, 9) for number in batch} == {1, 3, 5, 7}


def test_a_lane_that_gets_other_rows_each_epoch_waits_for_those_that_pass() -> None:
    shuffled = sk.from_sequence(range(16)).shuffle(seed=1).stream(lanes=4).filter(lambda number: number == 3)
    assert list(itertools.islice(shuffled, 8)) == [3] * 8
    assert {shuffled.locate(token)[0].row for token in tokens_of(shuffled, 8)} == {3}
    assert len({token % 4 for token in tokens_of(shuffled, 8)}) == 4


def tokens_of(stream: sk.Stream, count: int) -> list[Any]:
    run = iter(stream)
    return [run.token for _ in itertools.islice(run, count)]


def test_a_loader_leaves_the_slots_out_and_refuses_whole_batches_of_them() -> None:
    made = endless(8, lanes=4).filter(odd)
    batches = sk.Loader(made, batch_size=4, collate=list, prefetch=0, steps=3)
    assert list(batches) == [[1, 3], [5, 7], [1, 3]]
    with pytest.raises(sk.errors.NothingPassed, match=r"lane 0 of 4 gives nothing.*end='drop'"):
        next(iter(sk.Loader(made, batch_size=4, end="drop", prefetch=0)))
    with pytest.raises(sk.errors.NothingPassed, match="all lanes of rank 0 of 4 are empty"):
        next(iter(sk.Loader(made, global_batch_size=4, rank=0, world_size=4, prefetch=0)))
