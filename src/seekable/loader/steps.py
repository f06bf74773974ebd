"""The division of positions into runs and batches: pure arithmetic.

A run is ``epochs`` epochs of ``n`` records from epoch ``e`` on: the positions ``e * n`` to ``(e + epochs) *
n``. They are cut into batches, across the inner ends of epochs; only the last can be incomplete. The batch of
step ``s`` has ``size_at(s)`` records over all ranks: the same number for all steps, or the one that a ramp
has there. Steps count over all runs. Position ``p`` belongs to rank ``p % world_size``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from msgspec import structs

from seekable._typing import Value
from seekable.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from seekable.loader.ramp import Ramp

    Int64s = NDArray[np.int64]

__all__ = ["End", "Runs", "StepCursor", "Steps"]

End = Literal["short", "drop", "pad"]


class StepCursor(Value, frozen=True):
    """The place of a batch: the batches before it were delivered or skipped."""

    step: int = 0
    """The number of batches delivered and skipped."""
    epoch: int = 0
    """The first epoch of the run."""
    position: int = 0
    """The next position of the dataset; of a stream, the next slot."""
    began: int = 0
    """The step at which the run began."""


class Runs(Value, frozen=True):
    """Some runs that follow one another and have equally many batches, cut at the same places."""

    first: int
    """The number of the first of them; the run of a cursor has number 0."""
    many: int | None
    """The number of runs; None without end."""
    step: int
    """The step at which the first of them begins."""
    batches: int
    """The number of batches in each."""


class Steps(Value, frozen=True):
    """The division of a dataset's positions, or a stream's slots, into runs and batches.

    Example:
        >>> steps = Steps(size=10, epochs=1, batch=4, end="short", limit=None, rank=0, world_size=1)
        >>> steps.count(StepCursor()), [steps.after(StepCursor(), k).position for k in range(4)]
        (3, [0, 4, 8, 10])
    """

    size: int | None
    """The number of records in an epoch; None without end."""
    epochs: int | None
    """The number of epochs in a run; None without end."""
    batch: int | Ramp
    """The number of records in a batch, over all ranks; a ramp where it follows the step."""
    end: End
    limit: int | None
    """The most batches in a run; None without a bound."""
    rank: int
    world_size: int
    total: int | None = None
    """The number of records in a run; None without end. It is computed, as the next one is."""
    _count: int | None = None
    """The number of batches in a run from step 0 on; None without end."""

    def __post_init__(self) -> None:
        # A loader asks for both again and again: they are computed once.
        total = None if self.size is None or self.epochs is None else self.size * self.epochs
        structs.force_setattr(self, "total", total)
        count = self.limit if total is None else self._cut(0, total, self.limit)
        structs.force_setattr(self, "_count", count)

    @property
    def notes_began(self) -> bool:
        """True if a state notes the step at which its run began, which nothing else in it tells."""
        return self.limit is not None or not isinstance(self.batch, int)

    def size_at(self, step: int) -> int:
        """Return the number of records in the batch of a step, over all ranks."""
        return self.batch if isinstance(self.batch, int) else self.batch.size_at(step)

    def records(self, step: int, batches: int) -> int:
        """Return the number of records in ``batches`` whole batches from a step on."""
        if isinstance(self.batch, int):
            return batches * self.batch
        return self.batch.before(step + batches) - self.batch.before(step)

    def whole_batches(self, step: int, records: int) -> int:
        """Return how many batches from a step on are whole in so many records."""
        if isinstance(self.batch, int):
            return records // self.batch
        return self.batch.step_of(self.batch.before(step) + records) - step

    def batches(self, step: int, records: int) -> int:
        """Return how many batches from a step on so many records make; the last may be incomplete."""
        if isinstance(self.batch, int):
            return -(-records // self.batch)
        whole = self.whole_batches(step, records)
        return whole + (self.records(step, whole) < records)

    def began(self, step: int, records: int) -> int:
        """Return the last step from which on the batches before ``step`` have so many records; at least 0."""
        if isinstance(self.batch, int):
            return max(0, step - -(-records // self.batch))
        return self.batch.step_of(max(0, self.batch.before(step) - records))

    def _cut(self, step: int, records: int, limit: int | None) -> int:
        """Return how many batches so many records make, the last as ``end`` says, and at most ``limit``."""
        batches = self.whole_batches(step, records) if self.end == "drop" else self.batches(step, records)
        return batches if limit is None else min(batches, limit)

    def start_of(self, epoch: int) -> int:
        """Return the first position of an epoch."""
        return epoch * (self.size or 0)

    def stop_of(self, cursor: StepCursor) -> int | None:
        """Return the position after the run of a cursor; None without end."""
        return None if self.total is None else cursor.epoch * (self.size or 0) + self.total

    def count(self, cursor: StepCursor) -> int | None:
        """Return the number of batches in the whole run of a cursor, from its first one; None without end."""
        left = None if isinstance(self.batch, int) or self.total is None else self.left(cursor)
        return self._count if left is None else cursor.step - cursor.began + left

    def left(self, cursor: StepCursor) -> int | None:
        """Return the number of batches left of a cursor's run; None without end."""
        left = None if self.limit is None else max(0, cursor.began + self.limit - cursor.step)
        stop = self.stop_of(cursor)
        return left if stop is None else self._cut(cursor.step, max(0, stop - cursor.position), left)

    def after(self, cursor: StepCursor, batches: int) -> StepCursor:
        """Return the cursor ``batches`` later, at most at the end of the run."""
        if self.limit is not None:
            batches = min(batches, max(0, cursor.began + self.limit - cursor.step))
        position, stop = cursor.position + self.records(cursor.step, batches), self.stop_of(cursor)
        if stop is not None and position > stop:
            last = max(stop, cursor.position)
            batches = min(batches, self._cut(cursor.step, last - cursor.position, None))
            position = min(cursor.position + self.records(cursor.step, batches), last)
        return StepCursor(cursor.step + batches, cursor.epoch, position, cursor.began)

    def spans(self, cursor: StepCursor) -> Iterator[tuple[int, int]]:
        """Yield the bounds of one batch after another from a cursor on, as if the run had no end."""
        step, first = cursor.step, cursor.position
        while True:
            stop = first + self.size_at(step)
            yield first, stop
            step, first = step + 1, stop

    def next_run(self, cursor: StepCursor) -> StepCursor:
        """Return the cursor of the next run; without an end, it begins where this one is left."""
        if self.total is None:
            return StepCursor(cursor.step, cursor.epoch, cursor.position, cursor.step)
        return self.run_at(cursor.step, cursor.epoch + (self.epochs or 0))

    def run_at(self, step: int, epoch: int) -> StepCursor:
        """Return the cursor of a run that begins at a step, with an epoch."""
        return StepCursor(step, epoch, self.start_of(epoch), step)

    def runs(self, cursor: StepCursor) -> Iterator[Runs]:
        """Yield the rest of a cursor's run, and the runs after it, of data with an end.

        Of each size there are at most two `Runs`: those in which nothing changes, and the one in which the
        next size comes.
        """
        left = self.left(cursor) or 0
        yield Runs(0, 1, cursor.step, left)
        number, step, total = 1, cursor.step + left, self.total or 0
        while not isinstance(self.batch, int) and (change := self.batch.end_at(step)) is not None:
            size = self.batch.size_at(step)
            batches = total // size if self.end == "drop" else -(-total // size)
            batches = batches if self.limit is None else min(batches, self.limit)
            if not batches:
                break
            # What is too little for a batch at the end of a run may be enough for a smaller one.
            many = (change - step - (self.end == "drop")) // batches
            if not many:
                many, batches = 1, self._cut(step, total, self.limit)
            yield Runs(number, many, step, batches)
            number, step = number + many, step + many * batches
        yield Runs(number, None, step, self._cut(step, total, self.limit))

    def ahead(self, cursor: StepCursor, step: int) -> StepCursor:
        """Return the cursor of a later step, in this run or a later one.

        Raises:
            InvalidArgument: the step never comes, because runs have no batch.
        """
        found = self.reached(cursor, step)
        if found is None:
            message = f"step {step} never comes: a run of this loader has no batch"
            raise InvalidArgument(message)
        return found

    def reached(self, cursor: StepCursor, step: int) -> StepCursor | None:
        """Return the cursor of a later step, in this run or a later one; None if it never comes."""
        gone = step - cursor.step
        if self.total is None:
            position = cursor.position + self.records(cursor.step, gone)
            return StepCursor(step, cursor.epoch, position, cursor.began)
        if gone < (self.left(cursor) or 0):
            return self.after(cursor, gone)
        for runs in self.runs(cursor):
            if runs.many is None and not runs.batches:
                return None
            if runs.first and (runs.many is None or step < runs.step + runs.many * runs.batches):
                before, rest = divmod(step - runs.step, runs.batches)
                epoch = cursor.epoch + (runs.first + before) * (self.epochs or 0)
                return self.after(self.run_at(step - rest, epoch), rest)
        return None

    def run_number(self, number: int) -> StepCursor:
        """Return the cursor at which a run begins, counted from step 0 on; of data with an end.

        Example:
            >>> steps = Steps(size=10, epochs=2, batch=4, end="short", limit=None, rank=0, world_size=1)
            >>> steps.run_number(3)
            StepCursor(step=15, epoch=6, position=60, began=15)
        """
        step = 0
        for runs in self.runs(StepCursor()):
            if runs.many is None or number < runs.first + runs.many:
                step = runs.step + (number - runs.first) * runs.batches
                break
        return self.run_at(step, number * (self.epochs or 0))

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
        last = cursor.position + self.records(cursor.step, batches)
        if stop is not None and self.end != "pad":
            last = min(last, stop)
        world_size, rank = (1, 0) if all_ranks else (self.world_size, self.rank)
        places = np.arange(
            cursor.position + (rank - cursor.position) % world_size, last, world_size, dtype=np.int64
        )
        if isinstance(self.batch, int):
            edges = np.arange(batches + 1) * self.batch
        else:
            edges = self.batch.shifted(cursor.step).edges(batches)
        bounds = np.searchsorted(places, cursor.position + edges)
        if stop is not None and last > stop:
            start = self.start_of(cursor.epoch)
            # A pad record takes the rank of the place it fills.
            places = np.where(places < stop, places, start + (places - stop) % max(1, stop - start))
        return places, bounds

    def batches_of(self, step: int, records: Int64s) -> Int64s:
        """Return in which batch from a step on records lie: the inverse of the bounds of ``positions``.

        Args:
            step: the step of batch 0.
            records: the numbers of the records from the first one of batch 0 on: int64, at least 0.
        """
        if isinstance(self.batch, int):
            return records // self.batch
        return self.batch.shifted(step).steps_of(records)

    def check_short(self, cursor: StepCursor) -> None:
        """Refuse a last batch, of a cursor's run or a later one, that has no record for some rank.

        Raises:
            InvalidArgument: ``end="short"`` and a run's last batch has fewer records than there are ranks.
        """
        if self.end != "short" or self.world_size == 1 or (stop := self.stop_of(cursor)) is None:
            return
        for runs in self.runs(cursor):
            records = (self.total or 0) if runs.first else stop - cursor.position
            rest = records - self.records(runs.step, runs.batches - 1) if runs.batches else 0
            if 0 < rest < self.world_size:
                where = f" of the run that begins at step {runs.step:,}" if runs.first else ""
                message = (
                    f"end='short' would leave {self.world_size - rest} of {self.world_size} ranks without a "
                    f"record in the last batch{where}, which has {rest}: use end='drop' or end='pad'"
                )
                raise InvalidArgument(message)
