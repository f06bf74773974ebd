"""A shuffle is a permutation, another one each epoch, and the same one everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dataset.common import endless, flow, numbers

import seekable as sk

SEEDS = st.integers(0, 2**64 - 1)


@given(st.integers(1, 300), SEEDS, st.sampled_from([0, 1, 10**6, 2**31, 2**40]))
def test_every_epoch_is_a_permutation(n: int, seed: int, epoch: int) -> None:
    ds = numbers(n).shuffle(seed=seed)
    assert sorted(flow(ds, n, start=epoch * n)) == list(range(n))
    assert flow(ds, n, start=epoch * n) == list(ds.epoch(epoch))


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    orders = {
        tuple(numbers(50).shuffle(seed=seed).epoch(epoch))
        for seed in (0, 1, 2, 2**32, 2**32 + 1, 2**63, 2**64 - 1)
        for epoch in range(20)
    }
    assert len(orders) == 7 * 20


def test_a_seed_of_one_is_not_a_seed_of_two_to_the_32_plus_one() -> None:
    """Another library takes seeds modulo 2**32."""
    assert list(numbers(50).shuffle(seed=1)) != list(numbers(50).shuffle(seed=2**32 + 1))


def test_seed_and_epoch_are_not_added() -> None:
    assert list(numbers(50).shuffle(seed=1).epoch(0)) != list(numbers(50).shuffle(seed=0).epoch(1))


def test_the_order_depends_on_seed_and_length_and_not_on_the_place_in_the_graph() -> None:
    x, y = numbers(50), sk.from_sequence([str(i) for i in range(50)])
    aligned = sk.zip([x.shuffle(seed=7), y.map(int).take(50).shuffle(seed=7)])
    for epoch in range(3):
        assert all(a == b for a, b in aligned.epoch(epoch))


def test_a_shuffle_of_a_shuffle_is_another_order() -> None:
    once, twice = numbers(50).shuffle(seed=1), numbers(50).shuffle(seed=1).shuffle(seed=1)
    assert sorted(twice) == sorted(once)
    assert list(twice) != list(once)
    assert list(twice) != list(range(50))


def test_concat_of_shuffles_keeps_each_of_them() -> None:
    """Another library drops the shuffles of chains inside chains."""
    inner = sk.concat([numbers(20).shuffle(seed=1), numbers(20).shuffle(seed=2)])
    outer = sk.concat([inner, numbers(20)])
    assert list(outer) == [*numbers(20).shuffle(seed=1), *numbers(20).shuffle(seed=2), *range(20)]


def test_it_is_not_steady() -> None:
    assert not numbers(5).shuffle(seed=1)._node.steady
    assert numbers(5).shuffle(seed=1).epoch(2)._node.steady


@pytest.mark.parametrize("n", [0, 1])
def test_few_records_are_shuffled_too(n: int) -> None:
    assert list(numbers(n).shuffle(seed=1)) == list(range(n))


@pytest.mark.parametrize(
    ("seed", "error", "message"),
    [
        (-1, ValueError, r"seed must be at least 0 \(got -1\)"),
        (2**64, ValueError, r"seed must be below 2\*\*64 \(got 18446744073709551616\)"),
        (1.0, TypeError, r"seed must be an integer \(got 1.0"),
        (None, TypeError, r"seed must be an integer \(got None"),
        (True, TypeError, r"seed must be an integer \(got True"),
    ],
)
def test_bad_seeds_are_named(seed: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        numbers(5).shuffle(seed=seed)


def test_a_seed_must_be_given() -> None:
    with pytest.raises(TypeError, match="seed"):
        numbers(5).shuffle()  # type: ignore[call-arg]


def test_an_endless_dataset_has_no_permutation() -> None:
    with pytest.raises(sk.errors.EndlessDataset, match=r"shuffle\(\) needs a length"):
        endless().shuffle(seed=1)


def test_shuffles_that_are_permuted_one_after_the_other_have_their_orders() -> None:
    """Thousands of positions of a few shuffles go another way than some of each."""
    parts = [sk.from_sequence(range(900 + number)).shuffle(number, fixed=number == 1) for number in range(3)]
    mixed = sk.mix(parts, weights=[5, 3, 1], seed=4, stop="never")._node
    wanted = [record for first in range(0, 8000, 50) for record in mixed.fetch(np.arange(first, first + 50))]
    assert mixed.fetch(np.arange(8000)) == wanted
    assert [mixed.record(position) for position in range(7000, 7050)] == wanted[7000:7050]
