"""Keys tell apart what they are made of."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from seekable.order.keys import derive, derive_each, kind_key, mix_each, mix_one

WORDS = st.integers(0, 2**64 - 1)


@given(WORDS, st.lists(WORDS, min_size=1, max_size=10))
def test_arrays_give_the_same_keys_as_single_numbers(key: int, parts: list[int]) -> None:
    values = np.array(parts, dtype=np.uint64)
    assert mix_each(values).tolist() == [mix_one(part) for part in parts]
    derived = derive_each(np.full(len(parts), key, dtype=np.uint64), values)
    assert derived.tolist() == [derive(key, part) for part in parts]


@given(WORDS, WORDS, WORDS)
def test_two_parts_never_share_a_key(key: int, one: int, other: int) -> None:
    assert (derive(key, one) == derive(key, other)) == (one == other)


@given(WORDS, WORDS, WORDS)
def test_parts_are_absorbed_one_after_another(key: int, one: int, other: int) -> None:
    assert derive(key, one, other) == derive(derive(key, one), other)


def test_seeds_epochs_and_kinds_are_not_added_up() -> None:
    kinds = [kind_key("shuffle"), kind_key("mix"), kind_key("split")]
    numbers = [*range(40), 2**32, 2**32 + 1, 2**63, 2**64 - 1]
    keys = {derive(kind, seed, epoch) for kind in kinds for seed in numbers for epoch in numbers}
    assert len(keys) == len(kinds) * len(numbers) ** 2
