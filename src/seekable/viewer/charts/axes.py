"""Round numbers for the ticks of an axis, and their texts."""

from __future__ import annotations

import math

_STEPS = (1, 2, 5, 10)


def ticks(low: float, high: float, *, most: int = 6, least: float = 0.0) -> list[float]:
    """Return round numbers between two bounds, ascending, at most so many and some.

    ``least`` is the least step from one to the next: 1 where only whole numbers mean something.

    Example:
        >>> ticks(0, 97)
        [0.0, 20.0, 40.0, 60.0, 80.0]
        >>> ticks(0, 2), ticks(0, 2, least=1)
        ([0.0, 0.5, 1.0, 1.5, 2.0], [0.0, 1.0, 2.0])
        >>> ticks(5, 5)
        [5.0]
    """
    if not high > low:
        return [float(low)]
    rough = max((high - low) / most, least)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(each * power for each in _STEPS if each * power >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]


def tick_text(value: float) -> str:
    """Return a number as the text of a tick: short, with k, M, G for thousands.

    Example:
        >>> [tick_text(value) for value in (0, 0.25, 12, 1500, 2_000_000, 3e9)]
        ['0', '0.25', '12', '1.5k', '2M', '3G']
    """
    for size, mark in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{mark}"
    return f"{value:.4g}"
