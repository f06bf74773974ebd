"""Datasets side by side."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from tests.dataset.common import endless, flow, numbers

import seekable as sk


def test_records_of_one_position_come_together_in_every_epoch() -> None:
    parts = [numbers(5).shuffle(seed=i) for i in range(3)]
    ds = sk.zip(parts)
    assert flow(ds, 15) == list(zip(*(flow(part, 15) for part in parts), strict=True))
    assert [type(record) for record in ds] == [tuple] * 5


def test_one_part_gives_tuples_too() -> None:
    assert list(sk.zip([numbers(2)])) == [(0,), (1,)]


def test_shuffles_of_one_seed_stay_aligned() -> None:
    texts = sk.from_sequence([str(i) for i in range(99)])
    ds = sk.zip([numbers(99).shuffle(seed=4), texts.shuffle(seed=4)])
    for epoch in range(4):
        assert all(str(a) == b for a, b in ds.epoch(epoch))


def test_endless_parts_are_zipped_without_end() -> None:
    ds = sk.zip([endless(), endless().skip(1)])
    assert ds._node.size is None
    flat = flow(endless(), 51)
    assert flow(ds, 50) == list(itertools.pairwise(flat))


def test_a_batch_of_a_zip_and_a_zip_of_batches() -> None:
    a, b = numbers(5), numbers(5).map(str)
    assert list(sk.zip([a, b]).batch(3)) == [[(0, "0"), (1, "1"), (2, "2")], [(3, "3"), (4, "4")]]
    assert list(sk.zip([a.batch(3), b.batch(3)]))[1] == ([3, 4], ["3", "4"])


def test_places_nest_as_records_do() -> None:
    ds = sk.zip([numbers(4, "a"), numbers(4, "b").batch(1)])
    first, second = ds.locate(2)
    assert (first.path, first.row) == ("<builtins.range a>", 2)
    assert [(place.path, place.row) for place in second] == [("<builtins.range b>", 2)]


@pytest.mark.parametrize(
    ("parts", "error", "message"),
    [
        ([], ValueError, r"zip\(\) needs at least one dataset \(got none\)"),
        ([numbers(2), numbers(3)], ValueError, r"datasets of one length \(got 2, 3\).*take"),
        ([numbers(2), endless()], ValueError, r"datasets of one length \(got 2, endless\)"),
        ([numbers(2), range(2)], TypeError, r"zip\(\) takes Datasets \(got a range at 1\)"),
    ],
    ids=["none", "lengths", "endless", "a range"],
)
def test_bad_parts_are_named(parts: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        sk.zip(parts)
