"""Batch sizes that follow the step: arithmetic on the few segments of a ramp, never a loop over steps."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from seekable._arguments import POSITIONS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]

__all__ = ["Ramp"]


@dataclass(frozen=True, slots=True)
class Ramp:
    """The records of a batch, over all ranks, from some steps on.

    Example:
        >>> ramp = Ramp((0, 3), (4, 10))
        >>> [ramp.size_at(step) for step in range(5)], [ramp.before(step) for step in range(6)]
        ([4, 4, 4, 10, 10], [0, 4, 8, 12, 22, 32])
        >>> [ramp.step_of(record) for record in (0, 11, 12, 21, 22)]
        [0, 2, 3, 3, 4]
    """

    starts: tuple[int, ...]
    """The steps from which on the sizes hold, ascending; the first is 0."""
    sizes: tuple[int, ...]
    """A size for each start, at least 1."""
    offsets: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """The records of all batches before each start."""

    def __post_init__(self) -> None:
        offsets = [0]
        for (start, stop), size in zip(pairwise(self.starts), self.sizes, strict=False):
            offsets.append(offsets[-1] + (stop - start) * size)
        object.__setattr__(self, "offsets", tuple(offsets))

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The steps and their sizes, as ``global_batch_size=`` takes them."""
        return list(zip(self.starts, self.sizes, strict=True))

    def size_at(self, step: int) -> int:
        """Return the records of a step's batch."""
        return self.sizes[bisect_right(self.starts, step) - 1]

    def end_at(self, step: int) -> int | None:
        """Return the next step at which the size changes; None if it does not change any more."""
        after = bisect_right(self.starts, step)
        return self.starts[after] if after < len(self.starts) else None

    def before(self, step: int) -> int:
        """Return the records of all batches before a step."""
        at = bisect_right(self.starts, step) - 1
        return self.offsets[at] + (step - self.starts[at]) * self.sizes[at]

    def step_of(self, record: int) -> int:
        """Return the step whose batch has a record, counted from the first record of step 0: the inverse."""
        at = bisect_right(self.offsets, record) - 1
        return self.starts[at] + (record - self.offsets[at]) // self.sizes[at]

    def shifted(self, step: int) -> Ramp:
        """Return the same sizes, with steps counted from ``step`` on."""
        first = bisect_right(self.starts, step) - 1
        starts = (0, *(start - step for start in self.starts[first + 1 :]))
        return Ramp(starts, self.sizes[first:])

    def edges(self, batches: int) -> Int64s:
        """Return the records before each of the first batches, and after the last of them.

        Returns:
            int64, one dimension, ``batches + 1`` long.
        """
        starts, sizes, offsets = self._columns()
        steps = np.arange(batches + 1)
        at = np.searchsorted(starts, steps, side="right") - 1
        edges: Int64s = offsets[at] + (steps - starts[at]) * sizes[at]
        return edges

    def steps_of(self, records: Int64s) -> Int64s:
        """Return `step_of` of each of some records.

        Args:
            records: int64, at least 0, of any shape.
        """
        starts, sizes, offsets = self._columns()
        at = np.searchsorted(offsets, records, side="right") - 1
        steps: Int64s = starts[at] + (records - offsets[at]) // sizes[at]
        return steps

    def _columns(self) -> tuple[Int64s, Int64s, Int64s]:
        # No record has a number of 2**63 or more, nor a step: what begins there is never reached.
        columns = zip(self.starts, self.sizes, self.offsets, strict=True)
        reached = [column for column in columns if max(column) < POSITIONS]
        starts, sizes, offsets = np.array(reached, dtype=np.int64).T
        return starts, sizes, offsets
