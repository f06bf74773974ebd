"""The runs over a course: one live iterator at a time, and the ways to go elsewhere."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seekable._arguments import checked_count, checked_epoch
from seekable.errors import EndlessDataset, InvalidArgument
from seekable.loader.run import Run
from seekable.loader.steps import Cursor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seekable.loader.arguments import Resume
    from seekable.loader.course import Course

__all__ = ["RunSetter", "Runs"]

_REPLACED = "this iterator was ended by a later iter(loader), by set_epoch() or by close()"

_READ_AHEAD = (
    "this iterator had delivered batches before loader.sampler.set_epoch() announced a new pass, and no "
    "iter(loader) came since. Who announces passes so reads ahead, as Lightning does of a loader without a "
    "length: its checkpoints would count a batch that it has not trained on, which a resumed run would lose. "
    "Give the loader a length with steps=, or set limit_train_batches= of Lightning's Trainer"
)


class Runs:
    """Begins, moves and ends the iterators of one loader, of which one at a time is live."""

    def __init__(self, course: Course, run: Callable[[], Run] | None = None) -> None:
        """Have none yet; ``run`` makes an iterator that begins at the course's cursor."""
        self._course = course
        self._run: Callable[[], Run] = (lambda: Run(course)) if run is None else run
        self._live: Callable[[], Run | None] = _nothing

    def begin(self) -> Run:
        """Begin the next run, or go on where a loaded state was taken; an earlier iterator ends."""
        self._end_live()
        self._course.begin()
        run = self._run()
        self._live = weakref.ref(run)
        return run

    def load(self, state: Mapping[str, Any], *, resume: Resume = "exact") -> None:
        """Go on where a state was taken, also with a live iterator; ``{}`` changes nothing.

        Raises:
            StateMismatch: the state is of another pipeline, or of other data.
            CorruptState: the document is not a state.
            InvalidArgument: it is to go on by rows, and how much each source gave cannot be told.
        """
        if state == {}:
            return
        self._course.load(state, resume=resume)
        self._restart_live()

    def skip(self, count: int) -> None:
        """Leave out the next batches, at most to the end of the run."""
        if self._live() is None:
            self._course.begin()
        self._course.skip(count)
        self._restart_live()

    def set_epoch(self, epoch: int) -> None:
        """Let the next run begin with an epoch; where that is the one to go on in, nothing changes.

        A live iterator that has delivered nothing yet moves along; another one ends, if anything changes.

        Raises:
            EndlessDataset: an endless dataset has no epochs but 0.
        """
        course = self._course
        steps, cursor = course.steps, course.cursor
        epoch = checked_epoch(epoch, steps.size)
        if steps.size is None:
            if epoch:
                message = f"an endless dataset has no epochs to set (got epoch={epoch})"
                raise EndlessDataset(message)
        elif not course.begins_here or epoch != cursor.epoch:
            if not course.begins_here:
                self._end_live()
            course.move(Cursor(cursor.step, epoch, steps.start_of(epoch), cursor.step))
            self._restart_live()

    def set_run(self, number: int) -> None:
        """Let the next run be a certain one; where that is the one to go on in, nothing changes.

        Runs of an endless dataset follow one another whatever their number: a live iterator that has
        delivered something ends.

        Raises:
            InvalidArgument: a loaded state lies in the middle of another run.
        """
        steps, course = self._course.steps, self._course
        number = checked_count("epoch", number, least=0)
        if steps.total is not None and steps.epochs is not None:
            epoch = number * steps.epochs
            if epoch != course.cursor.epoch and course.goes_on_within_run:
                raise InvalidArgument(_within_run(course, number))
            self.set_epoch(epoch)
        elif not course.begins_here:
            self._end_live(_READ_AHEAD)
        elif steps.left(course.cursor) == 0:
            course.end()
            self._restart_live()

    def close(self) -> None:
        """End the live iterator, its thread and the workers; the state stays."""
        self._end_live()
        self._course.maker.close()

    def _end_live(self, why: str = _REPLACED) -> None:
        run = self._live()
        if run is not None:
            run.stop(why)
        self._live = _nothing

    def _restart_live(self) -> None:
        run = self._live()
        if run is not None:
            run.restart()


@dataclass(frozen=True, slots=True)
class RunSetter:
    """Takes what trainers say about epochs.

    A trainer that counts its own epochs calls ``loader.sampler.set_epoch(k)`` before its ``k``-th pass, which
    is the ``k``-th run of the loader, of however many epochs.
    """

    _runs: Runs

    def set_epoch(self, epoch: int) -> None:
        """Let the next run be the ``epoch``-th; where that is the one to go on in, nothing changes."""
        self._runs.set_run(epoch)


def _within_run(course: Course, number: int) -> str:
    cursor, epochs = course.cursor, course.steps.epochs or 1
    left = course.steps.left(cursor)
    return (
        f"the state lies in pass {cursor.epoch // epochs} over the data, {left} batches before its end, and "
        f"pass {number} was announced: going there would leave those out. Where the trainer cuts passes "
        f"short (limit_train_batches=), let the loader do so, with steps=; where it stopped within a pass "
        f"(max_steps=), resume from a checkpoint of a step (every_n_train_steps=), not of the end"
    )


def _nothing() -> None:
    """Stand for no live run."""
