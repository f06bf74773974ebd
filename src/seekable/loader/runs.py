"""The runs over a course: one live iterator at a time, and the ways to go elsewhere."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seekable.dataset.arguments import checked_count, checked_epoch
from seekable.errors import EndlessDataset
from seekable.loader.matching import check_pipeline
from seekable.loader.run import Run
from seekable.loader.steps import Cursor
from seekable.state.document import RunState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seekable.loader.course import Course

__all__ = ["RunSetter", "Runs"]


class Runs:
    """Begins, moves and ends the iterators of one loader, of which one at a time is live."""

    def __init__(self, course: Course) -> None:
        """Have none yet."""
        self._course = course
        self._live: Callable[[], Run | None] = _nothing

    def begin(self) -> Run:
        """Begin the next run, or go on where a loaded state was taken; an earlier iterator ends."""
        self._end_live()
        self._course.begin()
        run = Run(self._course)
        self._live = weakref.ref(run)
        return run

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on where a state was taken, also with a live iterator; an empty one changes nothing.

        Raises:
            StateMismatch: the state is of another pipeline, or of other data.
            CorruptState: the document is not a state.
        """
        if not state:
            return
        parsed = RunState.parse(state)
        check_pipeline(self._course.dataset, parsed, saved=None)
        self._course.restore(parsed)
        self._restart_live()

    def skip(self, count: int) -> None:
        """Leave out the next batches, at most to the end of the run."""
        if self._live() is None:
            self._course.begin()
        self._course.skip(count)
        self._restart_live()

    def set_epoch(self, epoch: int) -> None:
        """Let the next run begin with an epoch; where that is the one to go on in, nothing changes.

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
            self._end_live()
            course.move(Cursor(cursor.step, epoch, steps.start_of(epoch), cursor.step))

    def set_run(self, number: int) -> None:
        """Let the next run be a certain one; where that is the one to go on in, nothing changes.

        Runs without end, and those of an endless dataset, follow one another whatever their number.
        """
        steps, cursor = self._course.steps, self._course.cursor
        if steps.total is not None and steps.epochs is not None:
            self.set_epoch(checked_count("epoch", number, least=0) * steps.epochs)
        elif steps.left(cursor) == 0:
            self._course.end()

    def close(self) -> None:
        """End the live iterator, its thread and the workers; the state stays."""
        self._end_live()
        self._course.maker.close()

    def _end_live(self) -> None:
        run = self._live()
        if run is not None:
            run.stop()
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


def _nothing() -> None:
    """Stand for no live run."""
