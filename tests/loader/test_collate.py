"""What becomes of a list of records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import seekable as sk
from seekable.loader.collate import collate
from seekable.testing.same import same

BIG = 2**53 + 1


@pytest.mark.parametrize(
    ("records", "batch"),
    [
        ([], []),
        ([1, 2], np.array([1, 2])),
        ([1.5, 2], np.array([1.5, 2.0])),
        ([True, False], np.array([True, False])),
        ([1j, 2], np.array([1j, 2])),
        ([np.float32(1), np.float32(2)], np.array([1, 2], dtype=np.float32)),
        (["a", "bc"], ["a", "bc"]),
        ([b"a", b"b"], [b"a", b"b"]),
        ([None, None], [None, None]),
        ([1, None], [1, None]),
        ([1, "a"], [1, "a"]),
        ([[1], [2]], [[1], [2]]),
        ([2**70, 1], [2**70, 1]),
        ([2**63, 1], [2**63, 1]),
        ([2**63, -1], [2**63, -1]),
        ([True, 2], [True, 2]),
        ([BIG, 0.5], [BIG, 0.5]),
        ([(1, "a"), (2, "b")], (np.array([1, 2]), ["a", "b"])),
        ([(1,), (2, 3)], [(1,), (2, 3)]),
        ([{"x": 1, "y": "a"}, {"y": "b", "x": 2}], {"x": np.array([1, 2]), "y": ["a", "b"]}),
        ([{"x": {"y": (1, [2])}}] * 2, {"x": {"y": (np.array([1, 1]), [[2], [2]])}}),
        ([{}, {}], {}),
        ([{"x": 1}, None], [{"x": 1}, None]),
    ],
    ids=repr,
)
def test_records_become_a_batch(records: list[Any], batch: Any) -> None:
    assert same(collate(records), batch)


def test_arrays_of_one_shape_are_stacked() -> None:
    ones = [np.ones((2, 3), dtype=np.float32)] * 4
    made = collate(ones)
    assert made.shape == (4, 2, 3)
    assert made.dtype == np.float32


def test_arrays_of_different_shapes_stay_a_list() -> None:
    arrays = [np.ones(2), np.ones(3)]
    assert same(collate(arrays), arrays)


def test_arrays_beside_other_things_stay_a_list() -> None:
    records = [np.ones(2), [1.0, 1.0]]
    assert same(collate(records), records)


def test_keys_must_agree() -> None:
    with pytest.raises(sk.InvalidArgument, match=r"beside record 0, record 1 lacks 'a' and adds 'b'"):
        collate([{"a": 1}, {"b": 1}])
    with pytest.raises(ValueError, match=r"record 2 lacks 'y'"):
        collate([{"x": {"y": 1}}, {"x": {"y": 1}}, {"x": {}}])


def test_a_batch_of_one_is_a_batch() -> None:
    assert same(collate([{"x": 1}]), {"x": np.array([1])})


def test_the_loader_collates_by_default() -> None:
    records = [{"id": i, "text": str(i)} for i in range(3)]
    loader = sk.Loader(sk.from_sequence(records), batch_size=2)
    wanted = [
        {"id": np.array([0, 1]), "text": ["0", "1"]},
        {"id": np.array([2]), "text": ["2"]},
    ]
    assert same(list(loader), wanted)
