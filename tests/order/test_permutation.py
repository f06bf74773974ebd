"""A permutation is one at every size, and the same one however it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.thrift import sample

from seekable.order.keys import derive_each, kind_key
from seekable.order.permutation import permute, permute_one, unpermute, unpermute_one

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST = 1 << 62
KEYS = st.integers(0, 2**64 - 1)
SIZES = st.one_of(st.integers(1, 40), st.integers(1, 10**6), st.integers(1, LARGEST))

POWERS = sorted({2**k + d for k in range(1, 41) for d in (-1, 0, 1)})


def keys_of(numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
    return derive_each(np.full(numbers.size, kind_key("test"), dtype=np.uint64), numbers.astype(np.uint64))


@pytest.mark.parametrize("first", [0, *sample(range(100, 5001, 100), of=7)])
def test_every_size_up_to_5000_is_permuted_one_to_one(first: int) -> None:
    sizes = np.arange(first, min(first + 100, 5001))
    n = np.repeat(sizes, sizes)
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    x = np.arange(n.size) - starts
    keys = np.repeat(keys_of(sizes), sizes)
    y = permute(x, n, keys)
    assert (y >= 0).all()
    assert (y < n).all()
    assert (np.bincount(starts + y, minlength=n.size) == 1).all()
    assert (unpermute(y, n, keys) == x).all()


@pytest.mark.parametrize("n", [65_535, 65_536, 65_537, 262_143, 262_144, 262_145])
@pytest.mark.parametrize("key", [0, 1, 2**64 - 1])
def test_sizes_at_which_other_networks_fail_are_permuted_one_to_one(n: int, key: int) -> None:
    y = permute(np.arange(n), n, key)
    assert (np.sort(y) == np.arange(n)).all()
    assert (unpermute(y, n, key) == np.arange(n)).all()


@pytest.mark.parametrize("n", [*POWERS, 2**52 + 1, LARGEST - 1, LARGEST])
def test_large_sizes_are_inverted(n: int) -> None:
    ends = [x for x in (0, 1, 2, n // 2, n - 2, n - 1) if 0 <= x < n]
    x = np.unique(np.append(np.random.default_rng(n).integers(0, n, 300), ends))
    for key in (0, 7, 2**64 - 1):
        y = permute(x, n, key)
        assert (y >= 0).all()
        assert (y < n).all()
        assert np.unique(y).size == x.size
        assert (unpermute(y, n, key) == x).all()
        # The other way round too: what comes at x is somewhere.
        assert (permute(unpermute(x, n, key), n, key) == x).all()


@given(SIZES, KEYS, st.lists(st.integers(0, LARGEST), min_size=1, max_size=8))
def test_one_number_is_permuted_as_in_an_array(n: int, key: int, numbers: list[int]) -> None:
    numbers = [x % n for x in numbers]
    forward, back = permute(np.array(numbers), n, key), unpermute(np.array(numbers), n, key)
    assert [permute_one(x, n, key) for x in numbers] == forward.tolist()
    assert [unpermute_one(x, n, key) for x in numbers] == back.tolist()


@given(st.lists(st.tuples(SIZES, KEYS, st.integers(0, LARGEST)), min_size=1, max_size=12))
def test_sizes_and_keys_may_differ_from_number_to_number(cases: list[tuple[int, int, int]]) -> None:
    n = np.array([n for n, _, _ in cases])
    keys = np.array([key for _, key, _ in cases], dtype=np.uint64)
    x = np.array([x % n for n, _, x in cases])
    each = [permute_one(int(a), int(b), int(c)) for a, b, c in zip(x, n, keys, strict=True)]
    assert permute(x, n, keys).tolist() == each
    assert unpermute(np.array(each), n, keys).tolist() == x.tolist()
    # One size or one key for all stands for as many equal ones.
    size, key = int(n[0]), int(keys[0])
    x %= size
    alike = permute(x, size, key)
    assert (permute(x, np.full(x.size, size), key) == alike).all()
    assert (permute(x, size, np.full(x.size, key, dtype=np.uint64)) == alike).all()
    assert (permute(x, np.array([size]), np.array([key], dtype=np.uint64)) == alike).all()


@given(st.integers(1, 2000), KEYS)
def test_the_arguments_stay_as_they_are(n: int, key: int) -> None:
    x, sizes, keys = np.arange(n), np.full(n, n), np.full(n, key, dtype=np.uint64)
    permute(x, sizes, keys)
    unpermute(x, sizes, keys)
    assert (x == np.arange(n)).all()
    assert (sizes == n).all()
    assert (keys == np.uint64(key)).all()


@pytest.mark.parametrize("n", [0, 1, 5, 1000])
def test_nothing_is_permuted_to_nothing(n: int) -> None:
    assert permute(np.empty(0, dtype=np.int64), n, 1).tolist() == []
    assert unpermute(np.empty(0, dtype=np.int64), n, 1).tolist() == []


def test_another_key_is_another_order() -> None:
    orders = {tuple(permute(np.arange(50), 50, key).tolist()) for key in range(200)}
    assert len(orders) == 200


def test_numbers_sizes_and_keys_broadcast() -> None:
    sizes = np.array([3, 16, 17, 1000, 65_537])
    keys = np.array([1, 2, 3, 2**64 - 1, 5], dtype=np.uint64)
    x = np.array([0, 1, 2])
    each = [[permute_one(int(i), int(n), int(k)) for i in x] for n, k in zip(sizes, keys, strict=True)]
    assert permute(x[None, :], sizes[:, None], keys[:, None]).tolist() == each
    assert unpermute(np.array(each), sizes[:, None], keys[:, None]).tolist() == [x.tolist()] * 5
    assert permute(x[:, None], 1000, keys[None, :]).shape == (3, 5)


def test_keys_of_a_column_permute_a_row_of_numbers() -> None:
    """A broadcast array of numbers has no C order, and numbers that are walked on are written into it."""
    keys = np.arange(5, dtype=np.uint64)[:, None]
    each = [permute(np.arange(1003), 1003, key).tolist() for key in range(5)]
    assert permute(np.arange(1003), 1003, keys).tolist() == each
