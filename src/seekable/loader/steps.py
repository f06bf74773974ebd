"""The division of positions into runs and batches: pure arithmetic.

A run is ``epochs`` epochs of ``n`` records from epoch ``e`` on: the positions ``e * n`` to ``(e + epochs) *
n``. They are cut into batches of ``batch`` records over all ranks, across the inner ends of epochs; only the
last can be incomplete. Position ``p`` belongs to rank ``p % world_size``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from seekable.errors import InvalidArgument

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]

__all__ = ["End", "StepCursor", "Steps"]

End = Literal["short", "drop", "pad"]


@dataclass(frozen=True, slots=True)
class StepCursor:
    """The place of a batch: the batches before it were delivered or skipped."""

    step: int = 0
    """The number of batches delivered and skipped."""
    epoch: int = 0
    """The first epoch of the run."""
    position: int = 0
    """The next position of the dataset; of a stream, the next slot."""
    began: int = 0
    """The step at which the run began."""


@dataclass(frozen=True, slots=True)
class Steps:
    """The division of a dataset's positions, or a stream's slots, into runs and batches.

    Example:
        >>> steps = Steps(size=10, epochs=1, batch=4, end="short", limit=None, rank=0, world_size=1)
        >>> steps.count, [steps.after(StepCursor(), k).position for k in range(4)]
        (3, [0, 4, 8, 10])
    """

    size: int | None
    """The number of records in an epoch; None without end."""
    epochs: int | None
    """The number of epochs in a run; None without end."""
    batch: int
    """The number of records in a batch, over all ranks."""
    end: End
    limit: int | None
    """The most batches in a run; None without a bound."""
    rank: int
    world_size: int

    @property
    def total(self) -> int | None:
        """The number of records in a run; None without end."""
        return None if self.size is None or self.epochs is None else self.size * self.epochs

    @property
    def count(self) -> int | None:
        """The number of batches in a whole run; None without end."""
        if self.total is None:
            return self.limit
        count = self.total // self.batch if self.end == "drop" else -(-self.total // self.batch)
        return count if self.limit is None else min(count, self.limit)

    def start_of(self, epoch: int) -> int:
        """Return the first position of an epoch."""
        return epoch * (self.size or 0)

    def stop_of(self, cursor: StepCursor) -> int | None:
        """Return the position after the run of a cursor; None without end."""
        return None if self.total is None else self.start_of(cursor.epoch) + self.total

    def left(self, cursor: StepCursor) -> int | None:
        """Return the number of batches left of a cursor's run; None without end."""
        left = None if self.limit is None else max(0, cursor.began + self.limit - cursor.step)
        stop = self.stop_of(cursor)
        if stop is not None:
            records = max(0, stop - cursor.position)
            batches = records // self.batch if self.end == "drop" else -(-records // self.batch)
            left = batches if left is None else min(left, batches)
        return left

    def after(self, cursor: StepCursor, batches: int) -> StepCursor:
        """Return the cursor ``batches`` later, at most at the end of the run."""
        left = self.left(cursor)
        batches = batches if left is None else min(batches, left)
        position = cursor.position + batches * self.batch
        stop = self.stop_of(cursor)
        position = position if stop is None else min(position, max(stop, cursor.position))
        return StepCursor(cursor.step + batches, cursor.epoch, position, cursor.began)

    def next_run(self, cursor: StepCursor) -> StepCursor:
        """Return the cursor of the next run; without an end, it begins where this one is left."""
        if self.total is None:
            return StepCursor(cursor.step, cursor.epoch, cursor.position, cursor.step)
        epoch = cursor.epoch + (self.epochs or 0)
        return StepCursor(cursor.step, epoch, self.start_of(epoch), cursor.step)

    def ahead(self, cursor: StepCursor, step: int) -> StepCursor:
        """Return the cursor of a later step, in this run or a later one.

        Raises:
            InvalidArgument: the step never comes, because runs have no batch.
        """
        if self.total is None:
            gone = step - cursor.step
            return StepCursor(step, cursor.epoch, cursor.position + gone * self.batch, cursor.began)
        left = self.left(cursor) or 0
        beyond = step - cursor.step - left
        if beyond < 0:
            return self.after(cursor, step - cursor.step)
        if not self.count:
            message = f"step {step} never comes: a run of this loader has no batch"
            raise InvalidArgument(message)
        runs, rest = divmod(beyond, self.count)
        epoch = cursor.epoch + (1 + runs) * (self.epochs or 0)
        began = step - rest
        return self.after(StepCursor(began, epoch, self.start_of(epoch), began), rest)

    def positions(self, cursor: StepCursor, batches: int, *, all_ranks: bool) -> tuple[Int64s, Int64s]:
        """Return the positions of a run's next batches, and the bounds of each batch in them.

        Args:
            cursor: the place of the first batch.
            batches: the number of batches, at most as many as are left.
            all_ranks: return the positions of all ranks instead of those of this one.

        Returns:
            A one-dimensional int64 array of positions, and ``batches + 1`` bounds in it.
        """
        stop = self.stop_of(cursor)
        last = cursor.position + batches * self.batch
        if stop is not None and self.end != "pad":
            last = min(last, stop)
        world_size, rank = (1, 0) if all_ranks else (self.world_size, self.rank)
        places = np.arange(
            cursor.position + (rank - cursor.position) % world_size, last, world_size, dtype=np.int64
        )
        bounds = np.searchsorted(places, cursor.position + np.arange(batches + 1) * self.batch)
        if stop is not None and last > stop:
            start = self.start_of(cursor.epoch)
            # A pad record takes the rank of the place it fills.
            places = np.where(places < stop, places, start + (places - stop) % max(1, stop - start))
        return places, bounds

    def check_short(self, cursor: StepCursor) -> None:
        """Refuse a last batch that has no record for some rank.

        Raises:
            InvalidArgument: ``end="short"`` and the run's last batch has fewer records than there are ranks.
        """
        stop = self.stop_of(cursor)
        if stop is None or self.end != "short" or stop <= cursor.position:
            return
        rest = (stop - cursor.position) % self.batch
        if 0 < rest < self.world_size and self.left(cursor) == -(-(stop - cursor.position) // self.batch):
            message = (
                f"end='short' would leave {self.world_size - rest} of {self.world_size} ranks without a "
                f"record in the last batch, which has {rest}: use end='drop' or end='pad'"
            )
            raise InvalidArgument(message)
