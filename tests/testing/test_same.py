"""Two records are the same if nobody could tell them apart."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from seekable.testing.resume import same

ALIKE: list[tuple[Any, Any]] = [
    (1, 1),
    ("a", "a"),
    (math.nan, math.nan),
    ([1, (2, {"x": math.nan})], [1, (2, {"x": math.nan})]),
    (np.array([1.0, np.nan]), np.array([1.0, np.nan])),
    (np.array(["a", None], dtype=object), np.array(["a", None], dtype=object)),
    (np.array([]), np.array([])),
]

DIFFERENT: list[tuple[Any, Any]] = [
    (1, 2),
    (1, True),
    (1, 1.0),
    ([1], (1,)),
    ([1], [1, 2]),
    ({"a": 1}, {"b": 1}),
    ({"a": 1}, {"a": 2}),
    (math.nan, 1.0),
    (np.array([1, 2]), np.array([1, 3])),
    (np.array([1, 2]), np.array([1.0, 2.0])),
    (np.array([1, 2]), np.array([[1, 2]])),
    (np.array([1, None], dtype=object), np.array([1, 2], dtype=object)),
]


@pytest.mark.parametrize(("one", "other"), ALIKE, ids=repr)
def test_alike(one: Any, other: Any) -> None:
    assert same(one, other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT, ids=repr)
def test_different(one: Any, other: Any) -> None:
    assert not same(one, other)
    assert not same(other, one)
