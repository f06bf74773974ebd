"""The number of units that a whole epoch touches, from the touches of a sample of its records.

In a full shuffle one of M nodes has touched ``1 - exp(-x r / M)`` of the units of ``r`` records each, after a
share ``x`` of an epoch. The number of times that a sample touches a unit follows Poisson's law; units that it
does not touch are not seen. From those that are seen the rate follows, and the number of all that can be.
"""

from __future__ import annotations

import math

__all__ = ["touched_units"]

_ROUNDS = 60


def touched_units(seen: int, touches: int, *, share: float, most: int) -> float:
    """Return the expected number of units that all records touch.

    Args:
        seen: the number of units that a sample of the records touches.
        touches: how often it touches them.
        share: the share of the records that are in the sample.
        most: the number of all units.

    Example:
        >>> round(touched_units(1000, 50_000, share=0.1, most=5000))
        1000
        >>> units, mean = 10_000, 0.5  # a tenth of a full shuffle on one node: 5 touches of each unit in all
        >>> seen = round(units * (1 - math.exp(-mean)))
        >>> round(touched_units(seen, round(units * mean), share=0.1, most=units) / units, 2)
        0.99
    """
    if not seen:
        return 0.0
    if touches <= seen:  # No unit was touched twice: each further record touches another one.
        return float(min(seen / share, most))
    mean = touches / seen
    rate = mean
    for _ in range(_ROUNDS):
        rate = mean * -math.expm1(-rate)
    units = min(seen / -math.expm1(-rate), most)
    return min(units * -math.expm1(-rate / share), most)
