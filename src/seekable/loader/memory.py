"""What a course has to remember besides its cursor, and what its states are made of."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, final

from seekable._lazy import lazy
from seekable.errors import CorruptState, StateMismatch
from seekable.loader.matching import check_pipeline
from seekable.loader.steps import Cursor
from seekable.order.remaining import Remaining
from seekable.resume.by_rows import dataset_by_rows
from seekable.resume.continued import simplified
from seekable.resume.serialize import dataset_from_rows, rows_of_dataset
from seekable.state.description_text import Description, text_of
from seekable.state.document import RunState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seekable.loader.arguments import Resume
    from seekable.loader.produce import Made
    from seekable.loader.steps import Steps
    from seekable.nodes.contract import Node
    from seekable.nodes.filter import node as filters
    from seekable.stream.stream import Stream
else:
    filters = lazy("seekable.nodes.filter.node")

__all__ = ["Memory", "OfDataset"]


class Memory(Protocol):
    """What is remembered of what was delivered."""

    pipeline: Any
    """What is delivered: the Dataset or the Stream, or what goes on by rows in its place."""

    @property
    def by_rows(self) -> bool:
        """Whether something goes on by rows in the pipeline's place."""
        ...

    def of_state(self, cursor: Cursor) -> Node | Stream:
        """Return what a state at a cursor is of."""
        ...

    def next_run(self, steps: Steps, cursor: Cursor) -> Cursor:
        """Go to where the run after the cursor's begins, and return that."""
        ...

    def delivered(self, made: Made) -> None:
        """Remember a batch."""
        ...

    def skipped(self, steps: Steps, cursor: Cursor, count: int) -> Cursor:
        """Leave out batches, at most to the end of the run, and return the cursor after them."""
        ...

    def document(self, steps: Steps, cursor: Cursor, *, partial: bool, rows: bool) -> dict[str, Any]:
        """Return the state at a cursor: new, and JSON-safe.

        Args:
            steps: how batches are cut.
            cursor: what was delivered.
            partial: whether one rank's share of it will do, where ranks remember different things.
            rows: whether others are to go on from it by rows, without anything else.
        """
        ...

    def load(
        self, steps: Steps, document: Mapping[str, Any], *, resume: Resume
    ) -> tuple[Cursor, Callable[[], None]]:
        """Return the cursor of a state, and what makes this remember what the state says.

        Raises:
            StateMismatch: it is of another pipeline, or of other data.
            CorruptState: the document is not a state.
            InvalidArgument: it is to go on by rows, and how much each source gave cannot be told.
        """
        ...


@final
class OfDataset:
    """Nothing: the cursor says it all, and is the same on all ranks."""

    def __init__(self, dataset: Node) -> None:
        """Know the dataset that states are of."""
        self._plain = dataset
        self.pipeline = dataset
        self._settled = (0, dataset)

    @property
    def by_rows(self) -> bool:
        """Whether something goes on by rows in the dataset's place."""
        return self.pipeline is not self._plain

    def of_state(self, cursor: Cursor) -> Node:
        """Return what a state at a cursor is of: the plain dataset, where older orders have come."""
        position, dataset = self._settled
        if self.by_rows and position != cursor.position:
            # What has come will not come again, unless the cursor has gone back.
            begun = dataset if position < cursor.position else self.pipeline
            dataset = simplified(begun, Remaining((), cursor.position))
            self._settled = cursor.position, dataset
        return dataset

    def next_run(self, steps: Steps, cursor: Cursor) -> Cursor:
        """Count on."""
        return steps.next_run(cursor)

    def delivered(self, made: Made) -> None:
        """Do nothing."""

    def skipped(self, steps: Steps, cursor: Cursor, count: int) -> Cursor:
        """Count on."""
        return steps.after(cursor, count)

    def document(self, steps: Steps, cursor: Cursor, *, partial: bool, rows: bool) -> dict[str, Any]:
        """Return the position, and what is left of older orders."""
        dataset, position = self.of_state(cursor), cursor.position
        return RunState(
            fingerprint=dataset.fingerprint_at(position),
            step=cursor.step,
            epoch=cursor.epoch,
            position=position,
            began=None if steps.limit is None else cursor.began,
            rows=rows_of_dataset(dataset) or None if self.by_rows else None,
            pipeline=text_of(dataset, functools.partial(_described, dataset)) if rows else None,
        ).document()

    def load(
        self, steps: Steps, document: Mapping[str, Any], *, resume: Resume
    ) -> tuple[Cursor, Callable[[], None]]:
        """Return where the state was taken.

        Raises:
            StateMismatch: it is of another pipeline, or of other data.
            CorruptState: the document is not a state, or its position lies before its epoch.
            InvalidArgument: it is to go on by rows, and how much each source gave cannot be told.
        """
        state = RunState.parse(document)
        dataset = self._plain
        try:
            if state.rows:
                dataset = dataset_from_rows(state.rows, self._plain)
            check_pipeline(dataset, state)
        except StateMismatch:
            if resume != "rows":
                raise
            dataset, state = dataset_by_rows(self._plain, state)
        if dataset is self._plain and state.position < steps.start_of(state.epoch):
            message = f"a state lies in its epoch (got position {state.position}, epoch {state.epoch})"
            raise CorruptState(message)
        cursor = Cursor(state.step, state.epoch, state.position, state.began or 0)
        stop, size = steps.stop_of(cursor), steps.size
        if stop is not None and size and cursor.position > stop:
            # Runs have fewer epochs than when the state was taken: the epoch in hand becomes a run's first.
            cursor = replace(cursor, epoch=cursor.position // size)
        return cursor, functools.partial(self._go, dataset, cursor.position)

    def _go(self, dataset: Node, position: int) -> None:
        self.pipeline, self._settled = dataset, (position, dataset)
        if self.by_rows:
            self._settled = (position, simplified(dataset, Remaining((), position)))


def _described(dataset: Node) -> Description:
    """Return the description that states of a dataset carry: with all weights, also of later positions."""
    return Description(dataset.describe(None), filters.row_files_of(dataset))
