"""One dataset after another."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dataset.common import endless, flow, numbers

import seekable as sk


@given(st.lists(st.integers(0, 12), min_size=1, max_size=6))
def test_an_epoch_is_an_epoch_of_each(sizes: list[int]) -> None:
    parts = [numbers(n, str(i)).shuffle(seed=i) for i, n in enumerate(sizes)]
    ds = sk.concat(parts)
    total = sum(sizes)
    assert len(ds) == total
    for epoch in range(3):
        wanted = [record for part in parts for record in part.epoch(epoch)]
        assert list(ds.epoch(epoch)) == flow(ds, total, start=epoch * total) == wanted


def test_one_dataset_may_come_several_times() -> None:
    ds = numbers(3)
    assert list(sk.concat([ds, ds])) == [0, 1, 2, 0, 1, 2]
    assert sk.concat([ds, ds]).find("<builtins.range>", 1, epoch=1) == [7, 10]


def test_what_has_no_length_of_its_own_class_can_stand_in_it() -> None:
    """In another library a chain over a filtered or repeated part breaks at its first item."""
    ds = sk.concat([numbers(2).repeat(2), numbers(5)[1::2], endless().take(2)])
    assert list(ds) == [0, 1, 0, 1, 1, 3, endless()[0], endless()[1]]


def test_it_is_steady_where_every_part_is() -> None:
    assert sk.concat([numbers(2), numbers(3)])._node.steady
    assert not sk.concat([numbers(2), numbers(3).shuffle(seed=1)])._node.steady


def test_any_iterable_of_datasets_will_do() -> None:
    assert list(sk.concat(numbers(n) for n in (1, 2))) == [0, 0, 1]


@pytest.mark.parametrize(
    ("parts", "error", "message"),
    [
        ([], ValueError, r"concat\(\) needs at least one dataset \(got none\)"),
        ([numbers(2), [1]], TypeError, r"concat\(\) takes Datasets \(got a list at 1\).*from_sequence"),
        ([endless()], TypeError, r"concat\(\) needs a length"),
    ],
    ids=["none", "a list", "endless"],
)
def test_bad_parts_are_named(parts: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        sk.concat(parts)


def test_a_sum_is_a_concat() -> None:
    one, other = numbers(3).shuffle(seed=1), numbers(2)
    both = one + other
    assert both.fingerprint == sk.concat([one, other]).fingerprint
    assert list(both) == [*one, *other]
    streams = one.stream(lanes=2, epochs=1), other.stream(lanes=2, epochs=1)
    summed = streams[0] + streams[1]
    assert summed.fingerprint == sk.concat(streams).fingerprint
    assert list(summed) == list(sk.concat(streams))


def test_a_sum_of_other_things_is_refused() -> None:
    ds, stream = numbers(3), numbers(3).stream(lanes=2)
    for other in ([1], stream, None):
        with pytest.raises(TypeError, match=r"a Dataset \+ takes another Dataset \(got a"):
            ds + other  # type: ignore[operator]  # what a user might try
    for another in ([1], ds, 5):
        with pytest.raises(TypeError, match=r"a Stream \+ takes another Stream \(got a"):
            stream + another  # type: ignore[operator]  # what a user might try
    with pytest.raises(sk.errors.EndlessDataset):
        endless() + ds
    with pytest.raises(sk.errors.InvalidArgument, match="lanes"):
        stream + numbers(3).stream(lanes=3)
