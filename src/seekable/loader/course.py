"""Where a loader is: the one thing of it that changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.errors import InvalidArgument, TooManyHoles
from seekable.loader.steps import Cursor, Steps

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seekable.loader.arguments import Resume
    from seekable.loader.makers import Maker
    from seekable.loader.memory import Memory
    from seekable.loader.produce import Made
    from seekable.nodes.contract import Node
    from seekable.stream.stream import Stream

__all__ = ["Course"]


class Course:
    """The way of one loader through a dataset's epochs, or a stream, and how far it has come."""

    def __init__(
        self,
        steps: Steps,
        *,
        make: Callable[[Any], Maker],
        memory: Memory,
        max_holes: int | None,
    ) -> None:
        """Stand before the first batch; ``make`` returns what makes the batches of a pipeline."""
        self.steps = steps
        self._make = make
        self._memory = memory
        self._maker = make(memory.pipeline), memory.pipeline
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
    def dataset(self) -> Node | Stream:
        """What is delivered."""
        delivered: Node | Stream = self._memory.pipeline
        return delivered

    @property
    def of_state(self) -> Node | Stream:
        """What a state that is taken now is of."""
        return self._memory.of_state(self.cursor)

    @property
    def maker(self) -> Maker:
        """What makes the batches."""
        maker, pipeline = self._maker
        if pipeline is not self._memory.pipeline:
            maker.close()
            maker = self._make(self._memory.pipeline)
            self._maker = maker, self._memory.pipeline
        return maker

    @property
    def goes_on_within_run(self) -> bool:
        """Whether the next iterator goes on between a run's first batch and its last one."""
        begun = self.cursor.position > self.steps.start_of(self.cursor.epoch)
        return self.begins_here and begun and self.steps.left(self.cursor) != 0

    def begin(self) -> None:
        """Go on at the cursor if that was asked for, else with the next run."""
        if not self.begins_here:
            self.move(self._memory.next_run(self.steps, self.cursor))

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
        self._memory.delivered(made)
        self.cursor = made.after
        self.begins_here = False
        self.counts["batches"] += 1
        self.counts["records"] += made.records
        self.waited_seconds += waited_seconds

    def end(self) -> None:
        """Go to the next run, because the end of this one was seen."""
        self.cursor = self._memory.next_run(self.steps, self.cursor)
        self.begins_here = True

    def skip(self, count: int) -> None:
        """Leave out batches, at most to the end of the run."""
        after = self._memory.skipped(self.steps, self.cursor, count)
        self.counts["skipped"] += after.step - self.cursor.step
        self.cursor = after

    def move(self, cursor: Cursor) -> None:
        """Begin elsewhere than where the batches so far lead to."""
        self.cursor = self.anchor = cursor
        self.begins_here = True

    def document(
        self, cursor: Cursor | None = None, *, partial: bool = False, rows: bool = True
    ) -> dict[str, Any]:
        """Return the state at the cursor, or at another one: new, and JSON-safe."""
        at = self.cursor if cursor is None else cursor
        return self._memory.document(self.steps, at, partial=partial, rows=rows)

    def load(self, document: Mapping[str, Any], *, resume: Resume = "exact") -> None:
        """Go to where a state of this pipeline was taken, or go on by rows from that of another one.

        Raises:
            StateMismatch: it is of another pipeline, or of other data.
            CorruptState: the document is not a state.
            InvalidArgument: the last batch would have no record for some rank; or how much each source gave
                cannot be told.
        """
        cursor, go = self._memory.load(self.steps, document, resume=resume)
        self.steps.check_short(cursor)
        go()
        self.move(cursor)
        if not self._memory.by_rows and self._is_regular(cursor):
            self.anchor = Cursor()

    def _is_regular(self, cursor: Cursor) -> bool:
        """Tell whether the present batches lead from the very start to a cursor."""
        steps, start = self.steps, Cursor()
        if not cursor.step or steps.count == 0:
            return (cursor.epoch, cursor.position) == (0, 0)
        reached = (steps.ahead(start, cursor.step), steps.after(steps.ahead(start, cursor.step - 1), 1))
        return (cursor.epoch, cursor.position) in [(at.epoch, at.position) for at in reached]
