"""Stages of one's own: ``stream.then(stage)`` gives a stage its input, or says what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

import seekable as sk
from seekable.stream import Leaf, OneInput, SameItems

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.stream import Lane, Token


def numbers(n: int = 10) -> sk.Stream:
    return sk.from_sequence(range(n)).stream(lanes=1, epochs=1)


@dataclass(frozen=True, eq=False, repr=False)
class EveryNth(SameItems):
    n: int

    kind: ClassVar[str] = "tests.every-nth"

    def arguments(self) -> dict[str, Any]:
        return {"n": self.n}

    def shown(self, inputs: Sequence[str]) -> str:
        return f"{inputs[0]}.then({type(self).__name__}({self.n}))"

    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        count = lane.state.get("count", 0)
        for token, item in lane.inputs[0]:
            lane.state["count"] = count = count + 1
            if count % self.n == 0:
                yield token, item


def test_a_stage_becomes_the_last_one_of_the_stream() -> None:
    stream = numbers().then(EveryNth(2))
    assert list(stream) == [1, 3, 5, 7, 9]
    assert list(stream.then(EveryNth(2)).map(str)) == ["3", "7"]
    assert type(stream) is sk.Stream
    assert "then(EveryNth(2))" in repr(stream)


def test_one_stage_may_be_the_end_of_several_streams() -> None:
    stage = EveryNth(3)
    assert list(numbers(4).then(stage)) == [2]
    assert list(numbers(7).then(stage)) == [2, 5]
    assert stage.source is None


def test_arguments_of_a_stage_are_in_the_fingerprint() -> None:
    assert numbers().then(EveryNth(2)).fingerprint == numbers().then(EveryNth(2)).fingerprint
    assert numbers().then(EveryNth(2)).fingerprint != numbers().then(EveryNth(3)).fingerprint


@dataclass(frozen=True, eq=False, repr=False)
class Nameless(EveryNth):
    kind: ClassVar[Any] = None


@dataclass(frozen=True, eq=False, repr=False)
class OfTheLibrary(EveryNth):
    kind: ClassVar[str] = "filter"


class Undecorated(EveryNth):
    kind: ClassVar[str] = "tests.undecorated"


@pytest.mark.parametrize(
    ("stage", "error", "match"),
    [
        (EveryNth, sk.errors.WrongType, r"not its class: write then\(EveryNth\(\.\.\.\)\)"),
        (len, sk.errors.WrongType, "derived from seekable.stream.OneInput .*got builtin_function"),
        (numbers(), sk.errors.WrongType, "derived from seekable.stream.OneInput .*got Stream"),
        (Undecorated(2), sk.errors.WrongType, "put @dataclass.*above class Undecorated"),
        (Nameless(2), sk.errors.InvalidArgument, "kind: ClassVar"),
        (OfTheLibrary(2), sk.errors.InvalidArgument, "'filter' of OfTheLibrary is one of the library's"),
        (EveryNth(2, source=numbers().stage), sk.errors.InvalidArgument, "has an input already"),
    ],
)
def test_what_is_no_stage_is_refused(stage: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        numbers().then(stage)


def test_a_stage_without_an_input_says_how_it_gets_one() -> None:
    with pytest.raises(sk.errors.InvalidArgument, match=r"stream\.then\(EveryNth\(\.\.\.\)\) gives it one"):
        EveryNth(2).lanes  # noqa: B018 - the property raises


def test_a_stage_over_other_inputs_is_the_same_stage() -> None:
    mixed = sk.mix([numbers(3), numbers(5)], weights=[1, 1], seed=0, stop="all", open=1)
    for stream in (numbers().then(EveryNth(2)), mixed, sk.zip([numbers(3), numbers(3)])):
        again = stream.stage.with_inputs(stream.stage.inputs)
        assert sk.Stream(again).fingerprint == stream.fingerprint
        assert list(sk.Stream(again)) == list(stream)


def test_a_token_that_names_an_input_too_many_is_refused() -> None:
    zipped = sk.zip([numbers(), numbers()])
    for stream, token in (
        (sk.concat([numbers(), numbers()]), (2, 0)),
        (sk.mix([numbers(), numbers()], weights=[1, 1], seed=0), (-1, 0)),
        (zipped, (0, 1, 2)),
    ):
        with pytest.raises(sk.errors.BadToken, match="has 2 inputs"):
            stream[token]
        with pytest.raises(sk.errors.BadToken, match="has 2 inputs"):
            stream.locate(token)
    with pytest.raises(sk.errors.BadToken, match="tuple of 2 tokens"):
        zipped[(0,)]


def test_the_origins_of_a_token_need_no_stage() -> None:
    """A saved state has tokens, and of the stages there may be a description only."""
    assert issubclass(EveryNth, OneInput)
    assert list(EveryNth.origins(5)) == [(0, 5)]


@dataclass(frozen=True, eq=False, repr=False)
class Twice(EveryNth):
    """Gives each item twice, with one token; between the two come ``n`` others."""

    kind: ClassVar[str] = "tests.twice"

    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        waiting: list[tuple[Token, Any]] = []
        for token, item in lane.inputs[0]:
            waiting.append((token, -item))
            yield token, item
            if len(waiting) > self.n:
                yield waiting.pop(0)


@dataclass(frozen=True, eq=False, repr=False)
class SameRecord(Leaf):
    """A source whose items have one token, or one that is a list."""

    tokens: tuple[Any, ...]

    kind: ClassVar[str] = "tests.same-record"
    lanes = 1
    endless = indexed = checkpointable = constant_time = False

    def arguments(self) -> dict[str, Any]:
        return {}

    def shown(self, inputs: Sequence[str]) -> str:
        return "SameRecord()"

    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        return ((token, lane.number) for token in self.tokens)

    def read(self, tokens: Sequence[Token]) -> list[Any]:
        raise NotImplementedError

    def places(self, token: Token) -> list[Any]:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("stream", "match"),
    [
        (numbers().then(Twice(0)), r"Twice.*gave two items the token 0 in lane 0: .*\(token, 0\)"),
        (numbers(30).then(Twice(20)).shuffle(buffer=5, seed=1), "gave two items the token 0"),
        (sk.Stream(SameRecord(("a", "a"))).map(str), r"SameRecord.*gave two items the token 'a'"),
        (sk.Stream(SameRecord(([7],))), r"a token is an int.*\(got \[7\] of .*SameRecord"),
    ],
)
def test_a_token_of_two_items_is_refused_at_once(stream: sk.Stream, match: str) -> None:
    with pytest.raises(sk.errors.BadToken, match=match):
        list(stream)
    with pytest.raises(sk.errors.BadToken, match=match):
        list(sk.Loader(stream, batch_size=4, collate=list, workers=sk.Workers(2, type="thread")))
