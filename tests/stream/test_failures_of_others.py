"""Failures that are known of others' sequential pipelines, each with a test that it is none of this one.

docs/design/known-failures.md is this list for people; tests/docs holds the two together.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.stream.common import check_cuts, delivered, following, resumed, run_of, through_json

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Callable


def numbers(n: int = 50, **given: Any) -> sk.Stream:
    return sk.from_sequence(range(n)).stream(**{"epochs": 1, **given})


def shuffled(n: int = 50, seed: int = 7) -> sk.Stream:
    return numbers(n).shuffle(buffer=10, seed=seed)


def items_of(stream: sk.Stream, most: int | None = None) -> list[Any]:
    return [item for _, item in delivered(stream, most)]


def is_odd(number: int) -> bool:
    return number % 2 == 1


def with_noise(number: int, rng: np.random.Generator) -> tuple[int, float]:
    return number, rng.random()


def state_after(stream: sk.Stream, count: int) -> dict[str, Any]:
    iterator = iter(stream)
    following(iterator, count)
    state: dict[str, Any] = through_json(iterator.state_dict())
    return state


def test_lhotse_a_chain_needs_no_lengths() -> None:
    """In Lhotse a chain over a filter or a repeater raised TypeError at its first item."""
    stream = sk.concat([numbers(10).filter(is_odd), numbers(3).repeat(2), numbers(2)])
    assert items_of(stream) == [1, 3, 5, 7, 9, 0, 1, 2, 0, 1, 2, 0, 1]
    check_cuts(stream)


def test_lhotse_a_state_of_mixed_streams_survives_json() -> None:
    """In Lhotse the state of a multiplexer of streams could not be loaded from JSON, and was 7.6 kB of it."""
    stream = sk.mix([numbers(500), numbers(500).filter(is_odd)], weights=[2, 1], seed=3)
    state = state_after(stream, 100)
    without_description = {key: value for key, value in state.items() if key != "pipeline"}
    assert len(json.dumps(without_description)) < 400
    assert len(json.dumps(state)) < 1000
    rest = items_of(stream)[100:]
    assert [item for _, item in following(resumed(stream, state))] == rest


def test_lhotse_another_stream_is_noticed() -> None:
    """In Lhotse a state of other sources, weights, seeds or buffers was accepted."""
    mixed = sk.mix([numbers(), numbers(60)], weights=[2, 1], seed=3)
    state = state_after(mixed.batch(2), 5)
    for other in (
        sk.mix([numbers(), numbers(61)], weights=[2, 1], seed=3),
        sk.mix([numbers(), numbers(60)], weights=[1, 2], seed=3),
        sk.mix([numbers(), numbers(60)], weights=[2, 1], seed=4),
        sk.mix([numbers(), numbers(60), numbers(60)], weights=[2, 1, 0], seed=3),
        sk.mix([numbers(), numbers(60)], weights=[2, 1], seed=3, stop="all"),
        sk.mix([numbers(), numbers(60).filter(is_odd)], weights=[2, 1], seed=3),
        sk.mix([numbers(), numbers(60, epochs=2)], weights=[2, 1], seed=3),
        sk.mix([numbers(lanes=2), numbers(60, lanes=2)], weights=[2, 1], seed=3),
    ):
        with pytest.raises(sk.StateMismatch):
            iter(other.batch(2)).load_state_dict(state)
    with pytest.raises(sk.StateMismatch):
        iter(mixed.batch(3)).load_state_dict(state)
    with pytest.raises(sk.StateMismatch):
        iter(shuffled(seed=2)).load_state_dict(state_after(shuffled(seed=1), 5))


def test_lhotse_one_stream_may_be_in_two_branches() -> None:
    """In Lhotse one source in two branches had one cursor: a restored run gave 61 items instead of 50."""
    source = shuffled()
    for stream in (
        sk.zip([source, source.filter(is_odd)]),
        sk.mix([source, source.map(str)], weights=[1, 1], seed=0, stop="all"),
        sk.concat([source, source]),
    ):
        check_cuts(stream)
    assert items_of(sk.concat([source, source])) == 2 * items_of(source)
    first, second = iter(source), iter(source)
    following(first, 20)
    assert [item for _, item in following(second)] == items_of(source)


def test_lhotse_a_subset_does_not_depend_on_the_ranks() -> None:
    """In Lhotse a slice of a stream was cut after ranks had parted it, and was another for each number."""
    for lanes in (1, 2, 4):
        stream = sk.from_sequence(range(100)).stream(lanes=lanes, epochs=1)
        assert items_of(stream.take(30)) == list(range(30))
        assert items_of(stream.skip(32).take(9)) == list(range(32, 41))
        # An item stays in its lane, so that these come in another order where lanes do not divide the number.
        assert sorted(items_of(stream.skip(30))) == list(range(30, 100))


def test_lhotse_an_item_is_whatever_it_is() -> None:
    """In Lhotse items that hold no attributes lost their tokens, and one object given twice kept one."""
    shared = {"one": "object"}
    made: list[Any] = ["text", b"bytes", 7, (1, 2), {"a": 1}, np.arange(3), None, shared, shared, shared]
    stream = numbers(10).map(made.__getitem__, version=1).shuffle(buffer=4, seed=1)
    pairs = delivered(stream)
    assert [item for _, item in pairs] == [made[token] for token, _ in pairs]
    assert sorted(token for token, _ in pairs) == list(range(10))
    check_cuts(stream)


def test_lhotse_none_is_no_end() -> None:
    """In Lhotse a shuffle buffer took None for its end: [1, None, 2, 3, None, 4] gave [3, 1, 2]."""
    odd = [1, None, 2, 3, None, 4]
    stream = numbers(6).map(odd.__getitem__, version=1)
    found = items_of(stream.shuffle(buffer=3, seed=1))
    assert sorted(map(str, found)) == sorted(map(str, odd))
    assert items_of(stream.batch(4).flatten()) == odd


def test_lhotse_a_chain_in_a_chain_keeps_its_order() -> None:
    """In Lhotse a chain in another was taken apart, and its own shuffle and seed were lost."""
    inner = sk.concat([numbers(20), numbers(20)]).shuffle(buffer=40, seed=5)
    outer = sk.concat([numbers(3), inner])
    assert items_of(outer) == [0, 1, 2, *items_of(inner)]
    assert items_of(inner) != items_of(sk.concat([numbers(20), numbers(20)]))


def test_lhotse_stages_have_seeds_of_64_bits() -> None:
    """In Lhotse seeds 1 and 2**32 + 1 of a stage were the same."""
    builders: list[Callable[[int], sk.Stream]] = [
        lambda seed: shuffled(seed=seed),
        lambda seed: sk.mix([numbers(), numbers().map(str)], weights=[1, 1], seed=seed),
        lambda seed: numbers().map(with_noise, rng=True, seed=seed),
        lambda seed: numbers().bucket(float, max_cost=50, boundaries=[10, 20, 30], seed=seed, buffer=40),
        lambda seed: numbers().overlay(
            sk.from_sequence("abc"), lambda *given: given[:2], prob=0.5, seed=seed
        ),
    ]
    for build in builders:
        runs = {str(items_of(build(seed))) for seed in (1, 2**32 + 1, 2**63 + 1)}
        assert len(runs) == 3


def test_lhotse_buckets_resume_with_and_without_synchrony() -> None:
    """In Lhotse buckets that were not synchronised between ranks could be saved, and failed when resumed."""
    for lanes in (1, 3):
        check_cuts(
            numbers(40, lanes=lanes).bucket(float, max_cost=60, boundaries=[10, 25], buffer=12, seed=2)
        )


def test_lhotse_what_cannot_be_resumed_says_so_when_it_is_saved() -> None:
    """In Lhotse any error while a state was taken was swallowed, and the checkpoint had none."""
    forward = sk.from_iterable(lambda: iter(range(5)), version=1)
    held = sk.from_iterable(Stateful, version=1).shuffle(buffer=2, seed=1)
    for stream, named in (
        (forward, "replay=True"),
        (forward.map(str).batch(2), "replay=True"),
        (held, "items wait in"),
        (sk.mix([numbers(), forward], weights=[1, 1], seed=0), "replay=True"),
    ):
        iterator = iter(stream)
        next(iterator)
        with pytest.raises(sk.errors.NotResumable, match=named):
            iterator.state_dict()
    check_cuts(sk.from_iterable(Stateful, version=1).filter(is_odd).batch(2))


class Stateful:
    def __init__(self) -> None:
        self.at = 0

    def __iter__(self) -> Stateful:
        return self

    def __next__(self) -> int:
        if self.at == 20:
            raise StopIteration
        self.at += 1
        return self.at

    def state_dict(self) -> dict[str, int]:
        return {"at": self.at}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.at = state["at"]


def test_lhotse_an_item_that_waits_keeps_the_noise_of_its_round() -> None:
    """In Lhotse items of one round that waited in a buffer were restored with the noise of the next one."""
    repeated = numbers(8).repeat(3).map(with_noise, rng=True, seed=1)
    stream = repeated.shuffle(buffer=12, seed=4)
    noise = dict(delivered(repeated))
    assert len({value for _, value in noise.values()}) == 24
    pairs, states = run_of(stream)
    assert dict(pairs) == noise
    for at, state in enumerate(states):
        assert following(resumed(stream, state)) == pairs[at:]


def test_lhotse_randomness_and_weights_are_no_hidden_state() -> None:
    """In Lhotse the generators of transforms, and weights given as tensors, were in no state."""
    weights = np.array([0.7, 0.3])
    parts = [numbers(90).map(with_noise, rng=True, seed=1), shuffled().map(with_noise, rng=True, seed=1)]
    stream = sk.mix(parts, weights=weights.tolist(), seed=2)
    first = items_of(stream, 40)
    np.random.default_rng(0).random(9)
    assert items_of(stream, 40) == first
    check_cuts(stream, cuts=[0, 7, 33])


def test_lhotse_a_state_of_a_stream_may_be_loaded_twice() -> None:
    """In Lhotse loading a state took parts out of it, and it could not be loaded again."""
    stream = shuffled().flatten(lambda number: [number] * 2).batch(3)
    state = state_after(stream, 4)
    before = through_json(state)
    iterator = iter(stream)
    runs = []
    for _ in range(3):
        iterator.load_state_dict(state)
        runs.append([item for _, item in following(iterator)])
    assert runs[0] == runs[1] == runs[2] == items_of(stream)[4:]
    assert state == before
