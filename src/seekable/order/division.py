"""Positions divided by a length."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["divided", "united"]


def divided(values: NDArray[np.int64], by: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return ``np.divmod(values, by)``, several times as fast: numpy divides by one number without dividing.

    Example:
        >>> import numpy as np
        >>> [part.tolist() for part in divided(np.array([7, 8, 9]), 4)]
        [[1, 2, 2], [3, 0, 1]]
    """
    quotients = values // by
    return quotients, values - quotients * by


def united(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a single value where all are equal, which broadcasts and is cheaper to go on with.

    Example:
        >>> import numpy as np
        >>> united(np.array([3, 3, 3])).tolist(), united(np.array([3, 4])).tolist()
        ([3], [3, 4])
    """
    # The ends differ mostly where any do.
    same = values.size > 0 and values[0] == values[-1] and bool((values == values[0]).all())
    return values[:1] if same else values
