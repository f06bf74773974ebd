"""StageTests pass for stages that keep the contract, and fail for each way to break it."""

from __future__ import annotations

import inspect
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

import seekable as sk
from seekable.stream import OneInput
from seekable.testing import StageTests

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.stream import Lane, Token


def numbers(n: int = 20, lanes: int = 1, epochs: int | None = 1) -> sk.Stream:
    return sk.from_sequence(range(n)).shuffle(seed=1).stream(lanes=lanes, epochs=epochs)


@dataclass(frozen=True, eq=False, repr=False)
class Differences(OneInput):
    """A stage as somebody would write it: each item less the one before it."""

    kind: ClassVar[str] = "differences"

    def arguments(self) -> dict[str, Any]:
        return {}

    def shown(self, inputs: Sequence[str]) -> str:
        return f"{inputs[0]}.then(Differences())"

    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        last = lane.state.get("last", [])
        for token, item in lane.inputs[0]:
            pair = (token, *last)
            before = self.input_item(last[0]) if last else 0
            lane.state["last"] = last = [token]
            yield pair, item - before

    def input_item(self, token: Token) -> Any:
        return sk.Stream(self.inputs[0])[token]

    @staticmethod
    def origins(token: Token) -> Sequence[tuple[int, Token]]:
        if not isinstance(token, tuple) or len(token) not in (1, 2):
            message = f"a token of Differences is one or two tokens (got {token!r})"
            raise sk.BadToken(message)
        return [(0, each) for each in token]

    def remake(self, token: Token, items: Sequence[Any]) -> Any:
        return items[0] - sum(items[1:])


class TestDifferences(StageTests):
    def streams(self) -> list[sk.Stream]:
        sources = [numbers(12), numbers(11, 3), numbers(0), numbers(1, 4), numbers(7, 2, epochs=None)]
        return [source.then(Differences()) for source in sources]


class TestOurOwn(StageTests):
    most: ClassVar[int] = 30

    def streams(self) -> list[sk.Stream]:
        source = numbers(24, 2, epochs=2).flatten(lambda n: [n] * (n % 3)).shuffle(buffer=5, seed=1)
        return [source.batch(2), sk.mix([source, numbers(9, 2)], weights=[2, 1], seed=0, stop="all")]


class TestOneThatCannotBeResumed(StageTests):
    def stream(self) -> sk.Stream:
        return sk.from_iterable(lambda: iter("abcdef"))


def test_each_test_is_documented() -> None:
    for name, test in inspect.getmembers(StageTests, inspect.isfunction):
        assert inspect.getdoc(test) or name.startswith("_")


def failures(stage: type[Differences]) -> set[str]:
    """Return the tests that a stage fails."""

    class Tests(StageTests):
        def stream(self) -> sk.Stream:
            return numbers(12).then(stage())

    failed = set()
    for name in dir(Tests):
        if name.startswith("test_"):
            try:
                getattr(Tests(), name)()
            except Exception:  # noqa: BLE001 - what breaks the contract may raise anything
                failed.add(name)
    return failed


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

    assert "test_it_resumes_exactly_at_every_cut" in failures(Forgetful)


def test_a_memory_that_is_written_too_late_is_found() -> None:
    @dataclass(frozen=True, eq=False, repr=False)
    class Late(Differences):
        def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
            for token, item in lane.inputs[0]:
                last = lane.state.get("last", [])
                yield (token, *last), item - (self.input_item(last[0]) if last else 0)
                lane.state["last"] = [token]

    assert "test_it_resumes_exactly_at_every_cut" in failures(Late)


def test_a_memory_of_the_stage_is_found() -> None:
    @dataclass(frozen=True, eq=False, repr=False)
    class Shared(Differences):
        last: ClassVar[list[int]] = []

        def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
            for token, item in lane.inputs[0]:
                last, self.last[:] = list(self.last), [token]
                yield (token, *last), item - (self.input_item(last[0]) if last else 0)

    assert "test_iterators_do_not_disturb_each_other" in failures(Shared)


def test_another_item_for_a_token_is_found() -> None:
    @dataclass(frozen=True, eq=False, repr=False)
    class Wrong(Differences):
        def remake(self, token: Token, items: Sequence[Any]) -> Any:
            return items[0]

    assert "test_tokens_rebuild_their_items" in failures(Wrong)


def test_an_error_of_pythons_for_a_bad_token_is_found() -> None:
    @dataclass(frozen=True, eq=False, repr=False)
    class Careless(Differences):
        @staticmethod
        def origins(token: Token) -> Sequence[tuple[int, Token]]:
            return [(0, each) for each in token]

    assert failures(Careless) == {"test_a_token_that_was_changed_is_an_item_or_an_error"}


def test_a_memory_that_json_cannot_hold_is_found() -> None:
    @dataclass(frozen=True, eq=False, repr=False)
    class Complex(Differences):
        def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
            lane.state["seen"] = 1j
            return super().items(lane)

    assert "test_states_depend_on_nothing_but_what_was_delivered" in failures(Complex)


def test_a_state_that_counts_restores_is_found() -> None:
    @dataclass(frozen=True, eq=False, repr=False)
    class Counting(Differences):
        def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
            lane.state["begun"] = lane.state.get("begun", 0) + 1
            return super().items(lane)

    assert failures(Counting) == {"test_states_depend_on_nothing_but_what_was_delivered"}


def test_a_class_without_a_stream_says_what_is_missing() -> None:
    with pytest.raises(sk.WrongType, match="stream"):
        StageTests().test_a_copy_is_the_same_stream()


def test_items_that_change_are_found() -> None:
    @dataclass(frozen=True, eq=False, repr=False)
    class Restless(Differences):
        calls: ClassVar[Any] = itertools.count()

        def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
            return ((token, item + next(self.calls)) for token, item in super().items(lane))

    assert "test_it_resumes_exactly_at_every_cut" in failures(Restless)
