"""What a course has to remember besides its cursor, and what its states are made of."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, final

from seekable.errors import CorruptState
from seekable.loader.matching import check_pipeline
from seekable.loader.steps import Cursor
from seekable.state.document import RunState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seekable.dataset.base import Dataset
    from seekable.loader.produce import Made
    from seekable.loader.steps import Steps

__all__ = ["Memory", "OfDataset"]


class Memory(Protocol):
    """What is remembered of what was delivered."""

    def next_run(self, steps: Steps, cursor: Cursor) -> Cursor:
        """Go to where the run after the cursor's begins, and return that."""
        ...

    def delivered(self, made: Made) -> None:
        """Remember a batch."""
        ...

    def skipped(self, steps: Steps, cursor: Cursor, count: int) -> Cursor:
        """Leave out batches, at most to the end of the run, and return the cursor after them."""
        ...

    def document(self, steps: Steps, cursor: Cursor, *, partial: bool) -> dict[str, Any]:
        """Return the state at a cursor: new, and JSON-safe.

        Args:
            steps: how batches are cut.
            cursor: what was delivered.
            partial: whether one rank's share of it will do, where ranks remember different things.
        """
        ...

    def load(self, steps: Steps, document: Mapping[str, Any]) -> Cursor:
        """Remember what a state says, and return its cursor.

        Raises:
            StateMismatch: it is of another pipeline, or of other data.
            CorruptState: the document is not a state.
        """
        ...


@final
class OfDataset:
    """Nothing: the cursor says it all, and is the same on all ranks."""

    def __init__(self, dataset: Dataset) -> None:
        """Know the dataset that states are of."""
        self._dataset = dataset

    def next_run(self, steps: Steps, cursor: Cursor) -> Cursor:
        """Count on."""
        return steps.next_run(cursor)

    def delivered(self, made: Made) -> None:
        """Do nothing."""

    def skipped(self, steps: Steps, cursor: Cursor, count: int) -> Cursor:
        """Count on."""
        return steps.after(cursor, count)

    def document(self, steps: Steps, cursor: Cursor, *, partial: bool) -> dict[str, Any]:
        """Return the position."""
        return RunState(
            fingerprint=self._dataset.fingerprint_at(cursor.position),
            step=cursor.step,
            epoch=cursor.epoch,
            position=cursor.position,
            began=None if steps.limit is None else cursor.began,
        ).document()

    def load(self, steps: Steps, document: Mapping[str, Any]) -> Cursor:
        """Return where the state was taken.

        Raises:
            StateMismatch: it is of another pipeline, or of other data.
            CorruptState: the document is not a state, or its position lies before its epoch.
        """
        state = RunState.parse(document)
        check_pipeline(self._dataset, state, saved=None)
        if state.position < steps.start_of(state.epoch):
            message = f"a state lies in its epoch (got position {state.position}, epoch {state.epoch})"
            raise CorruptState(message)
        cursor = Cursor(state.step, state.epoch, state.position, state.began or 0)
        stop, size = steps.stop_of(cursor), steps.size
        if stop is not None and size and cursor.position > stop:
            # Runs have fewer epochs than when the state was taken: the epoch in hand becomes a run's first.
            cursor = replace(cursor, epoch=cursor.position // size)
        return cursor
