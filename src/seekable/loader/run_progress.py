"""The cursor of a loader, which counts the batches delivered, and the moves of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from seekable._arguments import POSITIONS, checked_count, checked_epoch
from seekable.errors import EndlessDataset, InvalidArgument, TooManyHoles
from seekable.loader.batches import LastPieces
from seekable.loader.steps import StepCursor
from seekable.nodes.node import Node
from seekable.state.document import TrainerPass
from seekable.state.journal import Exclude, Steer, placed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seekable.loader.arguments import Resume
    from seekable.loader.batches import MadeBatch, Pieces
    from seekable.loader.states import PipelineState, Resumed
    from seekable.loader.steps import Steps

__all__ = ["RunProgress"]


@final
class RunProgress:
    """The only part of a loader that changes as batches are delivered.

    Args:
        steps: the division of the pipeline into runs and batches.
        state: the pipeline at its start.
        max_holes: the most records that may be holes; None for any number.

    Raises:
        InvalidArgument: a rank would have no record in the last batch of a run.
    """

    def __init__(self, steps: Steps, state: PipelineState, *, max_holes: int | None) -> None:
        self.steps = steps
        self.state = state
        """The pipeline, and the contents of a state of it besides the cursor."""
        self._max_holes = max_holes
        self.cursor = StepCursor()
        """The cursor after the batches that were delivered and skipped."""
        self.anchor = StepCursor()
        """The cursor from which the present batches are counted."""
        self.continues = True
        """True if the next iterator begins at the cursor, and not with the run after it."""
        self.trainer_pass: TrainerPass | None = None
        """The pass that a trainer has announced; None where none counts passes."""
        self._loaded_pass: TrainerPass | None = None
        """The pass in which the last state was taken, until the loader moves on from there."""
        self._last_pieces = LastPieces()
        self.resumed: Resumed | None = None
        """The sources where the last state was loaded; None before."""
        self.batches = self.records = self.holes = self.skipped = 0
        self.waited_seconds = 0.0
        steps.check_short(self.cursor)

    @property
    def continues_within_run(self) -> bool:
        """True if the next iterator begins between the first batch of a run and its last one."""
        begun = self.cursor.position > self.steps.start_of(self.cursor.epoch)
        return self.continues and begun and self.steps.left(self.cursor) != 0

    @property
    def is_over(self) -> bool:
        """True if the run of the trainer's pass had ended where a state was taken: nothing is left of it.

        So it is with the shorter of two loaders, where a trainer goes on with the longer one alone.
        """
        return (
            self._loaded_pass is not None
            and self.trainer_pass is self._loaded_pass
            and self.trainer_pass.over
        )

    @property
    def is_unmoved(self) -> bool:
        """True if nothing was delivered, skipped or loaded."""
        return self.cursor == StepCursor() and self.resumed is None

    def passes(self) -> float:
        """Return how often all records of the sources were read, for data without an end."""
        return self.state.passes(self.cursor)

    def begin(self) -> None:
        """Go to the next run, unless the next iterator begins at the cursor."""
        if not self.continues:
            cursor, self.state = self.state.next_run(self.steps, self.cursor)
            self.move(cursor)

    def deliver(self, batch: MadeBatch, *, waited_seconds: float) -> None:
        """Count a batch as delivered.

        Raises:
            TooManyHoles: there are more holes than ``max_holes`` with those of the batch; the batch does not
                count.
        """
        holes = self.holes + batch.holes
        if self._max_holes is not None and holes > self._max_holes:
            message = (
                f"max_holes={self._max_holes} records may be holes, and at step {batch.after.step} there "
                f"were {holes}: look at what errors= of sk.open is given, or allow more"
            )
            raise TooManyHoles(message)
        self.holes = holes
        self._place_entries(batch.after)
        self.state.deliver(batch)
        self.cursor = batch.after
        self._loaded_pass = None
        if self.trainer_pass is not None:
            self.trainer_pass = self.trainer_pass.with_batch()
        self.continues = False
        self.batches += 1
        self.records += batch.records
        self.waited_seconds += waited_seconds

    def end(self) -> None:
        """Go to the start of the next run, because the end of this one was seen."""
        if self.is_over:
            self._loaded_pass = None
            return
        self._loaded_pass = None
        if self.trainer_pass is not None:
            self.trainer_pass = self.trainer_pass.ended_once_more()
        self.cursor, self.state = self.state.next_run(self.steps, self.cursor)
        self.continues = True

    def skip(self, count: int) -> None:
        """Leave out ``count`` batches, at most to the end of the run."""
        after = self.state.skip(self.steps, self.cursor, count)
        self._place_entries(after)
        self.skipped += after.step - self.cursor.step
        self.cursor, self._loaded_pass = after, None

    def _place_entries(self, after: StepCursor) -> None:
        """Note the positions of those entries of the journal that begin before a later cursor."""
        journal, before = self.state.journal, self.cursor
        if journal and any(before.step <= entry.at < after.step for entry in journal):
            kinds = (Steer,) if isinstance(self.state.pipeline, Node) else (Steer, Exclude)
            self.state.journal = placed(
                journal,
                lambda at: self.steps.after(before, at - before.step).position,
                before=after.step,
                kinds=kinds,
            )

    def move(self, cursor: StepCursor) -> None:
        """Begin at a cursor to which the batches so far do not lead."""
        self.cursor = self.anchor = cursor
        self.continues, self._loaded_pass = True, None

    def cursor_of_epoch(self, epoch: int) -> StepCursor | None:
        """Return the cursor at which an epoch begins; None if the next iterator begins there anyway.

        Raises:
            InvalidArgument: ``epoch`` is not an integer of at least 0.
            EndlessDataset: an endless dataset has no epochs but 0.
        """
        steps, cursor = self.steps, self.cursor
        epoch = checked_epoch(epoch, steps.size)
        if steps.size is None:
            if epoch:
                message = f"an endless dataset has no epochs to set (got epoch={epoch})"
                raise EndlessDataset(message)
            return None
        if self.continues and epoch == cursor.epoch:
            return None
        return steps.run_at(cursor.step, epoch)

    def epoch_of_run(self, number: int) -> int | None:
        """Return the first epoch of run ``number``; None if the runs have no numbers, being without end.

        Raises:
            InvalidArgument: ``number`` is not an integer of at least 0, or a loaded state lies within
                another run.
        """
        number = checked_count("epoch", number, least=0)
        if self.steps.total is None or self.steps.epochs is None:
            return None
        epoch = number * self.steps.epochs
        if epoch != self.cursor.epoch and self.continues_within_run:
            raise InvalidArgument(self._within_run(number))
        return epoch

    def announce(self, number: int) -> None:
        """Note the number of the pass that a trainer begins, or goes on with."""
        if self._loaded_pass is None or self._loaded_pass.number != number:
            self.trainer_pass, self._loaded_pass = TrainerPass(number), None

    def resumes_pass(self, number: int) -> bool:
        """Go to the run for a pass that a trainer announces, where the pass of a loaded state decides it.

        In the pass of the state the run goes on there, whichever number it has. For a later pass it is the
        run that would have come without a resume, if what is left here is known not to be missed: a shorter
        loader was begun anew within the pass, and is left in the middle of a run; or the data has no end.

        Returns:
            False where the state decides nothing, and nothing changes.
        """
        loaded = self._loaded_pass
        if loaded is None or number < loaded.number:
            return False
        if number == loaded.number:
            self.trainer_pass = loaded
            return True
        epochs = self.steps.epochs
        if self.steps.total is not None and epochs is not None:
            if not loaded.ended:
                return False
            self.move(self.steps.run_at(self.cursor.step, number * epochs))
            return True
        if not loaded.ended and not self.state.endless:
            return False
        if not loaded.over:
            cursor, self.state = self.state.next_run(self.steps, self.cursor)
            self.move(cursor)
        return True

    def cursor_of(self, step: int) -> StepCursor:
        """Return the cursor at which the batch of a step begins, counted with the present batches.

        Raises:
            InvalidArgument: a step from before the batches changed, or one that never comes.
        """
        if step < self.anchor.step:
            message = f"step must be at least {self.anchor.step}, where the batches changed (got {step})"
            raise InvalidArgument(message)
        cursor = self.steps.ahead(self.anchor, step)
        if cursor.position + self.steps.size_at(step) >= POSITIONS:
            message = f"step must begin at a position below 2**63 (got {step}, at {cursor.position})"
            raise InvalidArgument(message)
        return cursor

    def pieces(self, step: int | None = None) -> Pieces:
        """Return the datasets of the steps that are known.

        Args:
            step: the last step that is asked for; None for all.
        """
        before = None if step is None else step + 1
        known = placed(self.state.journal, lambda at: self.cursor_of(at).position, before=before)
        return self._last_pieces.of(self.state.pipeline, known)

    def document(
        self, cursor: StepCursor | None = None, *, partial: bool = False, rows: bool = True
    ) -> dict[str, Any]:
        """Return the state document at the cursor, or at another one: a new dict, JSON-safe.

        Raises:
            NotResumable: a stage could not go on from it, or this is the share of one rank and ``partial`` is
                false.
        """
        at = self.cursor if cursor is None else cursor
        of_trainer = (self.trainer_pass or self._loaded_pass) if cursor is None else None
        return self.state.document(self.steps, at, of_trainer, partial=partial, rows=rows)

    def load(self, document: Mapping[str, Any], *, resume: Resume) -> Resumed:
        """Go to where a state was taken, and return the sources there; nothing changes if that fails.

        Raises:
            StateMismatch: the document is of another pipeline, or of other data.
            CorruptState: the document is not a state.
            InvalidArgument: a rank would have no record in the last batch; or with ``resume="rows"``, the
                rows that each source delivered are not known.
        """
        loaded = self.state.loaded(self.steps, document, resume)
        cursor, state = loaded.cursor, loaded.state
        self.steps.check_short(cursor)
        self.state, self.resumed = state, loaded.resumed
        self.move(cursor)
        self.trainer_pass, self._loaded_pass = None, loaded.trainer_pass
        if not state.by_rows and self._is_regular(cursor):
            self.anchor = StepCursor()
        return loaded.resumed

    def _is_regular(self, cursor: StepCursor) -> bool:
        """Return True if the present batches lead to a cursor from the start of epoch 0."""
        steps, start = self.steps, StepCursor()
        reached = steps.reached(start, cursor.step)
        if not cursor.step or reached is None:
            return (cursor.epoch, cursor.position) == (0, 0)
        ended = steps.after(steps.ahead(start, cursor.step - 1), 1)
        return (cursor.epoch, cursor.position) in [(at.epoch, at.position) for at in (reached, ended)]

    def _within_run(self, number: int) -> str:
        epochs, left = self.steps.epochs or 1, self.steps.left(self.cursor)
        return (
            f"the state lies in pass {self.cursor.epoch // epochs} over the data, {left} batches before "
            f"its end, and pass {number} was announced: going there would leave those out. Where the trainer "
            f"cuts passes short (limit_train_batches=, or a shorter loader beside this one), let the loader "
            f"do so: with steps= of a pass's batches this checkpoint loads. Where the trainer "
            f"stopped within a pass (max_steps=), resume from a checkpoint of a step (every_n_train_steps=), "
            f"not of the end"
        )
