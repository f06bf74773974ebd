"""Whether two records are the same, whatever they are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["same"]


def same(one: Any, other: Any) -> bool:
    """Tell whether two values are of one type and equal, with arrays and NaN compared by value.

    Example:
        >>> same({"x": np.array([1.0, np.nan])}, {"x": np.array([1.0, np.nan])}), same(1, True)
        (True, False)
    """
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, np.ndarray):
        if one.dtype != other.dtype or one.shape != other.shape:
            return False
        if one.dtype == object:
            return same(one.tolist(), other.tolist())
        return bool(np.array_equal(one, other, equal_nan=one.dtype.kind in "fc"))
    if isinstance(one, float) and one != one:
        return bool(other != other)
    return bool(one == other)
