"""What functions return as streams: three ways to resume, and errors for what cannot."""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any

import pytest
from tests.stream.common import check_cuts, delivered, resumed, through_json
from tests.stream.functions import Kept, counted

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Iterator


class Calls:
    """A function of items that counts how often it is begun, and how many items it gives."""

    def __init__(self, items: list[Any]) -> None:
        self.items, self.begun, self.given = items, 0, 0

    def __call__(self) -> Iterator[Any]:
        self.begun += 1
        for item in self.items:
            self.given += 1
            yield item


class Resumable:
    """An iterable whose state is its own, and not its iterator's; such are those of Hugging Face."""

    def __init__(self) -> None:
        self.done = 0

    def __iter__(self) -> Iterator[int]:
        for number in range(self.done, 20):
            self.done = number + 1
            yield number

    def state_dict(self) -> dict[str, Any]:
        return {"deep": {"done": [self.done]}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.done = state["deep"]["done"].pop()


def test_without_a_state_nothing_can_be_resumed_and_that_is_told_at_once() -> None:
    stream = sk.from_iterable(functools.partial(counted, 5, 0, 1))
    assert (stream.checkpointable, stream.constant_time, stream.indexed) == (False, False, False)
    iterator = iter(stream)
    next(iterator)
    with pytest.raises(
        sk.errors.NotResumable, match=r"from_iterable\(.*counted\).*state_dict\(\).*replay=True"
    ):
        iterator.state_dict()
    with pytest.raises(sk.errors.NotResumable, match="from_iterable"):
        iter(stream.map(str).batch(2)).state_dict()
    with pytest.raises(sk.errors.BadToken, match="replay=True"):
        stream[0, 0]


def test_a_state_of_the_iterators_own_is_constant_time() -> None:
    stream = sk.from_iterable(functools.partial(Kept, 10), lanes=2)
    assert (stream.checkpointable, stream.constant_time, stream.indexed) == (True, False, False)
    check_cuts(stream)
    with pytest.raises(sk.errors.NotResumable, match="items wait in"):
        iter(stream.shuffle(buffer=3, seed=1)).state_dict()


def test_a_state_of_the_iterables_own_counts_too() -> None:
    stream = sk.from_iterable(Resumable)
    assert delivered(stream) == [((0, number), number) for number in range(20)]
    check_cuts(stream)


def test_replay_counts_and_skips() -> None:
    calls = Calls(list("abcdefgh"))
    stream = sk.from_iterable(calls, replay=True, version=1)
    assert (stream.checkpointable, stream.constant_time, stream.indexed) == (True, False, True)
    iterator = iter(stream)
    assert [next(iterator) for _ in range(5)] == list("abcde")
    calls.given = 0
    again = resumed(stream, iterator.state_dict())
    assert calls.given == 0, "nothing is read before the next item is wanted"
    assert next(again) == "f"
    assert calls.given == 6


def test_one_pass_gives_all_items_that_waited() -> None:
    calls = Calls(list(range(1000)))
    stream = sk.from_iterable(calls, replay=True, version=1).shuffle(buffer=50, seed=3)
    iterator = iter(stream)
    some = list(itertools.islice(iterator, 100))
    state, rest = iterator.state_dict(), list(iterator)
    assert sorted(some + rest) == list(range(1000))
    calls.begun = 0
    assert list(resumed(stream, state)) == rest
    assert calls.begun == 2, "once to skip, and once for the 50 that waited"


def test_items_of_one_token_are_not_one_object() -> None:
    stream = sk.from_iterable(Calls([[1], [2]]), replay=True, version=1)
    first, second = stream.stage.read([(0, 1), (0, 1)])  # type: ignore[attr-defined]
    assert first == second == [2]
    assert first is not second


def test_lanes_are_the_functions_own() -> None:
    stream = sk.from_iterable(functools.partial(counted, 7), lanes=3, replay=True)
    assert [item for _, item in delivered(stream)] == [("counted", number) for number in range(7)]
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"3 lanes need a function that is called as fn\(lane, lanes\)"
    ):
        sk.from_iterable(list, lanes=3)
    with pytest.raises(sk.errors.InvalidArgument, match=r"as fn\(\) or as fn\(lane, lanes\)"):
        sk.from_iterable(lambda one: [one])
    assert list(sk.from_iterable(lambda lane, lanes: [(lane, lanes)], lanes=2)) == [(0, 2), (1, 2)]
    assert list(sk.from_iterable(lambda start=3, stop=5: range(start, stop))) == [3, 4]
    assert list(sk.from_iterable(dict)) == []


def test_less_data_on_replay_is_an_error() -> None:
    calls = Calls(list(range(9)))
    stream = sk.from_iterable(calls, replay=True, version=1)
    iterator = iter(stream)
    for _ in range(7):
        next(iterator)
    state = iterator.state_dict()
    calls.items = calls.items[:5]
    with pytest.raises(sk.StateMismatch, match=r"gave 7 items before .* ends after 5 now"):
        next(resumed(stream, state))
    with pytest.raises(sk.errors.BadToken, match="before its item 6"):
        stream[0, 6]


def test_a_state_of_its_own_needs_somebody_to_take_it() -> None:
    stateful = [True]

    def either() -> Any:
        return Kept(5, 0, 1) if stateful[0] else iter(range(5))

    iterator = iter(sk.from_iterable(either, replay=True))
    next(iterator)
    state = iterator.state_dict()
    stateful[0] = False
    with pytest.raises(sk.StateMismatch, match="has none"):
        next(resumed(sk.from_iterable(either, replay=True), state))


@pytest.mark.parametrize("bad", [(1, 2), {1: 2}, {"a": (1,)}, object(), b"bytes", float("nan")])
def test_states_that_json_would_change_are_refused(bad: Any) -> None:
    class Odd(Kept):
        def state_dict(self) -> Any:
            return bad

    with pytest.raises(sk.errors.WrongType, match=r"state_dict\(\) of Odd"):
        next(iter(sk.from_iterable(functools.partial(Odd, 3, 0, 1))))


def test_a_state_of_none_is_a_state() -> None:
    class Blank(Kept):
        def state_dict(self) -> Any:
            return None

        def load_state_dict(self, state: Any) -> None:
            assert state is None
            self.next = 2

    iterator = iter(sk.from_iterable(functools.partial(Blank, 5, 0, 1)))
    next(iterator)
    assert list(resumed(sk.from_iterable(functools.partial(Blank, 5, 0, 1)), iterator.state_dict())) == [
        ("kept", number) for number in (2, 3, 4)
    ]


def failing(after: int) -> Iterator[int]:
    yield from range(after)
    message = "the disk is gone"
    raise OSError(message)


def test_errors_say_where_they_came_up() -> None:
    iterator = iter(sk.from_iterable(functools.partial(failing, 2)))
    assert [next(iterator), next(iterator)] == [0, 1]
    with pytest.raises(OSError, match="the disk is gone") as caught:
        next(iterator)
    (note,) = caught.value.__notes__
    assert "lane 0, 2 items after it was begun" in note
    with pytest.raises(OSError, match="the disk is gone"):
        next(iterator)

    message = "no such folder"

    def cannot() -> list[int]:
        raise OSError(message)

    with pytest.raises(OSError, match="no such folder") as caught:
        next(iter(sk.from_iterable(cannot)))
    assert "was to begin" in caught.value.__notes__[0]
    with pytest.raises(sk.errors.WrongType, match="must return an iterable"):
        next(iter(sk.from_iterable(int)))  # type: ignore[arg-type]


def test_a_function_needs_a_name() -> None:
    with pytest.raises(sk.errors.InvalidArgument, match="version="):
        sk.from_iterable(Calls([]))
    with pytest.raises(sk.errors.WrongType, match="a function is needed"):
        sk.from_iterable([1, 2])  # type: ignore[arg-type]


def test_replay_is_no_part_of_what_a_stream_is() -> None:
    """A state is taken without, and goes on with it."""
    one, other = (
        sk.from_iterable(functools.partial(Kept, 5, 0, 1), replay=replay) for replay in (False, True)
    )
    iterator = iter(one)
    next(iterator)
    assert list(resumed(other, iterator.state_dict())) == list(iterator)


def first_after(stream: sk.Stream, state: dict[str, Any]) -> Any:
    iterator = iter(stream)
    iterator.load_state_dict(state)
    return next(iterator)


def test_states_that_were_tampered_with_are_refused() -> None:
    stream = sk.from_iterable(Calls(list(range(5))), replay=True, version=1)
    iterator = iter(stream)
    next(iterator)
    state = through_json(iterator.state_dict())
    for bad in (-1, "1", 2.5):
        state["lanes"]["0"][0]["count"] = bad
        with pytest.raises(sk.errors.CorruptState):
            first_after(stream, state)
    for token in (0, (0,), (1, 0), (0, -1), ("0", 0)):
        with pytest.raises(sk.errors.BadToken):
            stream[token]


def test_repeating_begins_anew() -> None:
    calls = Calls(list("ab"))
    stream = sk.from_iterable(calls, replay=True, version=1).repeat(3)
    assert [item for _, item in delivered(stream)] == list("ababab")
    check_cuts(stream)
