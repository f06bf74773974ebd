"""StageTests pass for stages that keep the contract, and fail for each way to break it."""

from __future__ import annotations

import inspect
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from tests.testing.differences import Differences
from tests.thrift import ALL

import seekable as sk
from seekable.testing import StageTests

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.stream import Lane, Token

pytestmark = pytest.mark.usefixtures("forked_programs")


def numbers(n: int = 20, lanes: int = 1, epochs: int | None = 1) -> sk.Stream:
    return sk.from_sequence(range(n)).shuffle(seed=1).stream(lanes=lanes, epochs=epochs)


class TestDifferences(StageTests):
    most: ClassVar[int] = 100 if ALL else 16

    def streams(self) -> list[sk.Stream]:
        sources = [numbers(11, 3), numbers(0), numbers(7, 2, epochs=None)]
        if ALL:
            sources += [numbers(12), numbers(1, 4)]
        return [source.then(Differences()) for source in sources]


class TestOurOwn(StageTests):
    most: ClassVar[int] = 30 if ALL else 12

    def streams(self) -> list[sk.Stream]:
        source = numbers(24, 2, epochs=2).flatten(lambda n: [n] * (n % 3)).shuffle(buffer=5, seed=1)
        return [source.batch(2), sk.mix([source, numbers(9, 2)], weights=[2, 1], seed=0, stop="all")]


class TestOneThatCannotBeResumed(StageTests):
    def stream(self) -> sk.Stream:
        return sk.from_iterable(lambda: iter("abcdef"))


def test_each_test_is_documented() -> None:
    for name, test in inspect.getmembers(StageTests, inspect.isfunction):
        assert inspect.getdoc(test) or name.startswith("_")


def failures(stage: type[Differences], *names: str) -> set[str]:
    """Return those of all tests, or of some, that a stage fails."""

    class Tests(StageTests):
        def stream(self) -> sk.Stream:
            return numbers(12).then(stage())

    failed = set()
    for name in names or [name for name in dir(Tests) if name.startswith("test_")]:
        try:
            getattr(Tests(), name)()
        except Exception:  # noqa: BLE001 - what breaks the contract may raise anything
            failed.add(name)
    return failed


def only(name: str) -> list[str]:
    """Return a test that must fail; in nightly none, for all: the others must pass."""
    return [] if ALL else [name]


def test_a_good_stage_fails_none() -> None:
    assert failures(Differences) == set()


def test_a_memory_outside_the_flow_is_found() -> None:
    @dataclass(frozen=True, eq=False, repr=False)
    class Forgetful(Differences):
        def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
            last: list[Token] = []
            for token, item in lane.inputs[0]:
                yield (token, *last), item - (self.input_item(last[0]) if last else 0)
                last = [token]

    assert failures(Forgetful, "test_it_resumes_exactly_at_every_cut")


def test_a_memory_that_is_written_too_late_is_found() -> None:
    @dataclass(frozen=True, eq=False, repr=False)
    class Late(Differences):
        def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
            for token, item in lane.inputs[0]:
                last = lane.state.get("last", [])
                yield (token, *last), item - (self.input_item(last[0]) if last else 0)
                lane.state["last"] = [token]

    assert failures(Late, "test_it_resumes_exactly_at_every_cut")


def test_a_memory_of_the_stage_is_found() -> None:
    @dataclass(frozen=True, eq=False, repr=False)
    class Shared(Differences):
        last: ClassVar[list[int]] = []

        def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
            for token, item in lane.inputs[0]:
                last, self.last[:] = list(self.last), [token]
                yield (token, *last), item - (self.input_item(last[0]) if last else 0)

    assert failures(Shared, "test_iterators_do_not_disturb_each_other")


def test_another_item_for_a_token_is_found() -> None:
    @dataclass(frozen=True, eq=False, repr=False)
    class Wrong(Differences):
        def remake(self, token: Token, items: Sequence[Any]) -> Any:
            return items[0]

    assert failures(Wrong, "test_tokens_rebuild_their_items")


def test_an_error_of_pythons_for_a_bad_token_is_found() -> None:
    @dataclass(frozen=True, eq=False, repr=False)
    class Careless(Differences):
        @staticmethod
        def origins(token: Token) -> Sequence[tuple[int, Token]]:
            return [(0, each) for each in token]

    name = "test_a_token_that_was_changed_is_an_item_or_an_error"
    assert failures(Careless, *only(name)) == {name}


def test_a_memory_that_json_cannot_hold_is_found() -> None:
    @dataclass(frozen=True, eq=False, repr=False)
    class Complex(Differences):
        def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
            lane.state["seen"] = 1j
            return super().items(lane)

    assert failures(Complex, "test_states_depend_on_nothing_but_what_was_delivered")


def test_a_state_that_counts_restores_is_found() -> None:
    @dataclass(frozen=True, eq=False, repr=False)
    class Counting(Differences):
        def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
            lane.state["begun"] = lane.state.get("begun", 0) + 1
            return super().items(lane)

    name = "test_states_depend_on_nothing_but_what_was_delivered"
    assert failures(Counting, *only(name)) == {name}


def test_a_class_without_a_stream_says_what_is_missing() -> None:
    with pytest.raises(sk.errors.WrongType, match="stream"):
        StageTests().test_a_copy_is_the_same_stream()


def test_items_that_change_are_found() -> None:
    @dataclass(frozen=True, eq=False, repr=False)
    class Restless(Differences):
        calls: ClassVar[Any] = itertools.count()

        def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
            return ((token, item + next(self.calls)) for token, item in super().items(lane))

    assert failures(Restless, "test_it_resumes_exactly_at_every_cut")
