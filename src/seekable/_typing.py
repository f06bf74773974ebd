"""Types that many modules name."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Int64s"]

Int64s = NDArray[np.int64]
"""An array of positions, rows, offsets or counts."""
