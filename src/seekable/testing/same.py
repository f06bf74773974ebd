"""Equality of records of any type, arrays and NaN included."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["same"]


_PLAIN = frozenset({str, int, bool, bytes, type(None)})
"""Types without parts, whose equal values are the same."""


def same(one: Any, other: Any) -> bool:  # noqa: PLR0911 - one case a type
    """Return True if two values have the same type and are equal; arrays and NaN are compared by value.

    Example:
        >>> same({"x": np.array([1.0, np.nan])}, {"x": np.array([1.0, np.nan])}), same(1, True)
        (True, False)
    """
    kind = type(one)
    if kind is not type(other):
        return False
    if kind in _PLAIN:
        return bool(one == other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and _all_same([*one.values()], [other[key] for key in one])
    if isinstance(one, list | tuple):
        return len(one) == len(other) and _all_same([*one], [*other])
    if isinstance(one, np.ndarray):
        if one.dtype != other.dtype or one.shape != other.shape:
            return False
        if one.dtype == object:
            return same(one.tolist(), other.tolist())
        return bool(np.array_equal(one, other, equal_nan=one.dtype.kind in "fc"))
    if isinstance(one, float) and math.isnan(one):
        return math.isnan(other)
    return bool(one == other)


def _all_same(these: list[Any], others: list[Any]) -> bool:
    """Compare as many values of a kind, those without parts all at once."""
    kinds = [*map(type, these)]
    if _PLAIN.issuperset(kinds):
        return kinds == [*map(type, others)] and these == others
    return all(map(same, these, others))
