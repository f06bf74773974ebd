"""Where a loader is: the one thing of it that changes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seekable.errors import CorruptState, InvalidArgument, TooManyHoles
from seekable.loader.steps import Cursor, Steps
from seekable.state.document import RunState

if TYPE_CHECKING:
    from seekable.dataset.base import Dataset
    from seekable.loader.makers import Maker
    from seekable.loader.produce import Made

__all__ = ["Course"]


class Course:
    """The way of one loader through a dataset's epochs, and how far it has come."""

    def __init__(
        self,
        dataset: Dataset,
        steps: Steps,
        *,
        maker: Maker,
        max_holes: int | None,
    ) -> None:
        """Stand before the first batch."""
        self.dataset = dataset
        self.steps = steps
        self.maker = maker
        self._max_holes = max_holes
        self.cursor = Cursor()
        """What was delivered."""
        self.anchor = Cursor()
        """From where on steps lead to batches by counting."""
        self.begins_here = True
        """Whether the next iterator goes on at the cursor, and not with the run after it."""
        self.counts = {"batches": 0, "records": 0, "holes": 0, "skipped": 0}
        self.waited_seconds = 0.0
        steps.check_short(self.cursor)

    @property
    def goes_on_within_run(self) -> bool:
        """Whether the next iterator goes on between a run's first batch and its last one."""
        begun = self.cursor.position > self.steps.start_of(self.cursor.epoch)
        return self.begins_here and begun and self.steps.left(self.cursor) != 0

    def begin(self) -> None:
        """Go on at the cursor if that was asked for, else with the next run."""
        if not self.begins_here:
            self.move(self.steps.next_run(self.cursor))

    def cursor_of(self, step: int) -> Cursor:
        """Return where the batch of a step begins, counted with the present batches.

        Raises:
            InvalidArgument: a step from before the batches changed, or one that never comes.
        """
        if step < self.anchor.step:
            message = f"step must be at least {self.anchor.step}, where the batches changed (got {step})"
            raise InvalidArgument(message)
        return self.steps.ahead(self.anchor, step)

    def deliver(self, made: Made, *, waited_seconds: float) -> None:
        """Count a batch as delivered.

        Raises:
            TooManyHoles: with its holes there are more than are allowed; it is not delivered.
        """
        holes = self.counts["holes"] + made.holes
        if self._max_holes is not None and holes > self._max_holes:
            message = (
                f"max_holes={self._max_holes} records may be holes, and at step {made.after.step} there were "
                f"{holes}: look at what errors= of sk.open is given, or allow more"
            )
            raise TooManyHoles(message)
        self.counts["holes"] = holes
        self.cursor = made.after
        self.begins_here = False
        self.counts["batches"] += 1
        self.counts["records"] += made.records
        self.waited_seconds += waited_seconds

    def end(self) -> None:
        """Go to the next run, because the end of this one was seen."""
        self.cursor = self.steps.next_run(self.cursor)
        self.begins_here = True

    def skip(self, count: int) -> None:
        """Leave out batches, at most to the end of the run."""
        after = self.steps.after(self.cursor, count)
        self.counts["skipped"] += after.step - self.cursor.step
        self.cursor = after

    def move(self, cursor: Cursor) -> None:
        """Begin elsewhere than where the batches so far lead to."""
        self.cursor = self.anchor = cursor
        self.begins_here = True

    def state(self, cursor: Cursor | None = None) -> RunState:
        """Return the state at the cursor, or at another one."""
        cursor = self.cursor if cursor is None else cursor
        return RunState(
            fingerprint=self.dataset.fingerprint_at(cursor.position),
            step=cursor.step,
            epoch=cursor.epoch,
            position=cursor.position,
            began=None if self.steps.limit is None else cursor.began,
        )

    def restore(self, state: RunState) -> None:
        """Go to where a state of this pipeline was taken.

        Raises:
            CorruptState: its position lies before its epoch.
        """
        if state.position < self.steps.start_of(state.epoch):
            message = f"a state lies in its epoch (got position {state.position}, epoch {state.epoch})"
            raise CorruptState(message)
        cursor = Cursor(state.step, state.epoch, state.position, state.began or 0)
        stop, size = self.steps.stop_of(cursor), self.steps.size
        if stop is not None and size and cursor.position > stop:
            # Runs have fewer epochs than when the state was taken: the epoch in hand becomes a run's first.
            cursor = replace(cursor, epoch=cursor.position // size)
        self.steps.check_short(cursor)
        self.move(cursor)
        if self._is_regular(cursor):
            self.anchor = Cursor()

    def _is_regular(self, cursor: Cursor) -> bool:
        """Tell whether the present batches lead from the very start to a cursor."""
        steps, start = self.steps, Cursor()
        if not cursor.step or steps.count == 0:
            return (cursor.epoch, cursor.position) == (0, 0)
        reached = (steps.ahead(start, cursor.step), steps.after(steps.ahead(start, cursor.step - 1), 1))
        return (cursor.epoch, cursor.position) in [(at.epoch, at.position) for at in reached]
