"""Weights of a mixture as integers: the exact ratio where it fits, else rounded by largest remainder."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LARGEST_TOTAL", "apportion", "whole_weights"]

LARGEST_TOTAL = 1 << 31
"""Integer weights sum to at most this, so that 64-bit products in the mixture cannot overflow."""


def whole_weights(weights: Sequence[float]) -> list[int]:
    """Return integers in the ratio of ``weights``, with no common factor and a sum of at most 2**31.

    A float counts as the decimal that Python prints for it, so ``[0.7, 0.3]``, ``[7, 3]`` and ``[70, 30]``
    are the same weights on every machine.

    Raises:
        ValueError: a weight is negative or not finite, all are 0, or a positive one is so small beside the
            others that it rounds to 0.

    Example:
        >>> whole_weights([0.7, 0.3]), whole_weights([70, 30]), whole_weights([2, 0, 4])
        ([7, 3], [7, 3], [1, 0, 2])
    """
    exact = [_fraction(weight) for weight in weights]
    total = sum(exact)
    if total == 0:
        message = f"weights must have a positive sum (got {list(weights)!r})"
        raise ValueError(message)
    scale = math.lcm(*(weight.denominator for weight in exact))
    whole = [int(weight * scale) for weight in exact]
    common = math.gcd(*whole)
    whole = [weight // common for weight in whole]
    if sum(whole) <= LARGEST_TOTAL:
        return whole
    rounded = apportion(exact, LARGEST_TOTAL)
    for weight, share in zip(weights, rounded, strict=True):
        if weight and not share:
            message = (
                f"a weight must be 0 or at least 2**-31 of the sum of all (got {weight!r} of "
                f"{float(total)!r}); give it 0, or give the others less"
            )
            raise ValueError(message)
    return rounded


def apportion(shares: Sequence[Fraction], total: int) -> list[int]:
    """Share out ``total`` units in proportion, by largest remainder; of equal remainders the first wins.

    Example:
        >>> apportion([Fraction(1), Fraction(1), Fraction(1)], 100)
        [34, 33, 33]
    """
    whole = sum(shares)
    exact = [share * total / whole for share in shares]
    counts = [math.floor(share) for share in exact]
    by_remainder = sorted(range(len(shares)), key=lambda i: (counts[i] - exact[i], i))
    for i in by_remainder[: total - sum(counts)]:
        counts[i] += 1
    return counts


def _fraction(weight: float) -> Fraction:
    try:
        number = math.nan if isinstance(weight, str | bytes) else float(weight)
    except (TypeError, ValueError, OverflowError):  # the last of an integer beyond what a float holds
        number = math.nan
    if not math.isfinite(number) or number < 0:
        message = f"a weight must be a finite number of at least 0 (got {weight!r})"
        raise ValueError(message)
    return Fraction(weight) if isinstance(weight, int) else Fraction(repr(number))
