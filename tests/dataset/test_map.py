"""A function of each record, with or without randomness."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dataset.common import endless, flow, numbers

import seekable as sk
from seekable.nodes.map import ItemRandomness

if TYPE_CHECKING:
    from pathlib import Path


def squared(record: int) -> int:
    return record * record


def drawn(record: int, rng: np.random.Generator) -> tuple[int, int]:
    return record, int(rng.integers(2**62))


def picky(record: int) -> int:
    if record == 13:
        message = "not thirteen"
        raise LookupError(message)
    return record


def test_the_function_is_called_for_each_record_of_each_epoch() -> None:
    ds = numbers(9).shuffle(seed=1)
    assert flow(ds.map(squared), 27) == [record**2 for record in flow(ds, 27)]
    assert ds.map(squared)[3] == ds[3] ** 2


def test_it_is_called_when_a_record_is_read_and_not_before() -> None:
    calls: list[int] = []
    ds = numbers(9).map(calls.append, version=1)
    plan = ds._node.plan(np.arange(9))
    ds.locate(3)
    assert calls == []
    plan.slice(2, 4).read()
    assert calls == [2, 3]


def test_maps_of_maps() -> None:
    assert list(numbers(4).map(squared).map(str).map(len)) == [1, 1, 1, 1]


def test_none_is_a_record_like_any_other() -> None:
    assert list(numbers(3).map(lambda _: None)) == [None, None, None]


@given(st.integers(1, 20), st.lists(st.integers(0, 10**12), min_size=1, max_size=9))
def test_randomness_depends_on_the_position_and_nothing_else(n: int, positions: list[int]) -> None:
    ds = numbers(n).map(drawn, rng=True, seed=3)
    together = ds._node.fetch(np.array(positions))
    assert together == [ds._node.record(position) for position in positions]
    assert together == ds._node.fetch(np.array(positions[::-1]))[::-1]
    alone = ItemRandomness(3)
    assert together == [drawn(position % n, alone.rng(position)) for position in positions]


def test_each_epoch_draws_anew() -> None:
    ds = numbers(9).map(drawn, rng=True, seed=3)
    assert not ds._node.steady
    draws = [draw for _, draw in flow(ds, 900)]
    assert len(set(draws)) == 900


def test_seeds_draw_differently() -> None:
    first = {
        numbers(1).map(drawn, rng=True, seed=seed)[0] for seed in (0, 1, 2**32, 2**32 + 1, 2**63, 2**64 - 1)
    }
    assert len(first) == 6


def test_draws_are_even() -> None:
    """Of 20,000 first draws a share of 1/16 each, to five standard deviations of a binomial count."""
    draws = np.array([draw for _, draw in flow(numbers(1).map(drawn, rng=True, seed=7), 20_000)])
    counts = np.bincount(draws >> 58, minlength=16)
    assert (np.abs(counts - 1250) < 5 * np.sqrt(20_000 / 16 * 15 / 16)).all()
    # The lowest bits of neighbours agree in half of the cases.
    assert abs(int(((draws[1:] ^ draws[:-1]) & 1).sum()) - 10_000) < 5 * np.sqrt(5000)


def test_the_item_randomness_of_positions_and_tokens_is_of_their_json() -> None:
    randomness = ItemRandomness(5)
    tokens: list[Any] = [1, "1", [1], (1, 2), [1, 2], {"a": 1}]
    draws = [randomness.rng(token).random() for token in tokens]
    assert draws[3] == draws[4]
    assert len(set(draws)) == 5


def test_no_global_generator_is_touched() -> None:
    def state() -> tuple[Any, str]:
        return random.getstate(), repr(np.random.get_state())  # noqa: NPY002

    before = state()
    ds = numbers(50).shuffle(seed=1).map(drawn, rng=True, seed=2)
    list(sk.Loader(ds, batch_size=4, collate=list))
    list(sk.mix([ds, ds], weights=[1, 2], seed=3))
    list(ds.epoch(0).split({"a": 1}, seed=4)["a"])
    assert state() == before


def test_no_global_generator_is_read() -> None:
    def records() -> list[Any]:
        return list(numbers(50).shuffle(seed=1).map(drawn, rng=True, seed=2))

    random.seed(1)
    np.random.seed(1)  # noqa: NPY002 - it is the global one that is meant
    first = records()
    random.seed(2)
    np.random.seed(2)  # noqa: NPY002
    assert records() == first


@pytest.mark.parametrize("rows", [17, [3, 17, 2]], ids=["one", "several"])
def test_an_error_says_at_which_record(rows: Any) -> None:
    ds = numbers(20, "mine").select([*range(17, 20), *range(17)]).map(picky)
    # Record 13 comes after three others: at row 16.
    at = 16 if isinstance(rows, int) else [3, 16, 2]
    with pytest.raises(LookupError, match="not thirteen") as raised:
        ds[at]
    (note,) = raised.value.__notes__
    assert "picky" in note
    assert "position 16" in note
    assert "<builtins.range mine>" in note
    assert "row=13" in note


def test_an_error_of_a_map_below_a_map_is_said_once() -> None:
    with pytest.raises(LookupError) as raised:
        list(numbers(20).map(picky).map(squared))
    assert len(raised.value.__notes__) == 1


def test_endless_data_is_mapped_without_end() -> None:
    ds = endless().map(squared)
    assert ds._node.size is None
    assert flow(ds, 50) == [record**2 for record in flow(endless(), 50)]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"fn": "abs"}, TypeError, r"function.*\(got 'abs'"),
        ({"fn": squared, "rng": True}, ValueError, r"needs seed=.*\(got rng=True, seed=None\)"),
        ({"fn": squared, "seed": 1}, ValueError, r"\(got rng=False, seed=1\)"),
        ({"fn": drawn, "rng": True, "seed": -1}, ValueError, r"seed must be at least 0 \(got -1\)"),
        ({"fn": [].append}, ValueError, "version="),
    ],
    ids=["no function", "no seed", "no rng", "seed", "no name"],
)
def test_bad_arguments_are_named(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as raised:
        numbers(3).map(**arguments)
    assert isinstance(raised.value, sk.SeekableError)


def test_a_functions_own_error_is_raised_where_its_record_cannot_be_told(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("x\n" * 10)

    def changes_its_file_and_fails(record: str) -> str:
        path.write_text("y\n" * 11)
        raise LookupError(record)

    ds = sk.open(path).map(changes_its_file_and_fails)
    with pytest.raises(LookupError) as raised:
        ds[[3]]
    assert "place that cannot be told" in raised.value.__notes__[0]
