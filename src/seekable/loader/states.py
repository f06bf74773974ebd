"""The pipeline that a loader delivers, and the state of it besides the cursor.

Of a dataset that is nothing. Of a stream it is the states of its lanes (`seekable.loader.lanes_state`). The
pipeline is the one that the loader was made with, or after ``resume="rows"`` the one that first delivers the
rest of older orders.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, Self, final

from seekable._lazy import lazy
from seekable.errors import CorruptState, StateMismatch
from seekable.loader.resumed import Resumed
from seekable.loader.steps import Cursor
from seekable.nodes.bases import reads_objects
from seekable.order.remaining import Remaining
from seekable.state.document import RunState, has_row_offsets, other_kind, parse_state

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seekable.loader import compatibility
    from seekable.loader.arguments import Resume
    from seekable.loader.batches import Batch
    from seekable.loader.steps import Steps
    from seekable.nodes import evaluated
    from seekable.nodes.node import Node
    from seekable.resume import by_rows, consumed, continued, row_offsets, serialize
    from seekable.resume.consumed import DatasetProgress
    from seekable.state import descriptions
    from seekable.state.document import TrainerPass
    from seekable.stream.stream import Stream
else:
    compatibility = lazy("seekable.loader.compatibility")
    evaluated = lazy("seekable.nodes.evaluated")
    by_rows = lazy("seekable.resume.by_rows")
    consumed = lazy("seekable.resume.consumed")
    continued = lazy("seekable.resume.continued")
    row_offsets = lazy("seekable.resume.row_offsets")
    serialize = lazy("seekable.resume.serialize")
    descriptions = lazy("seekable.state.descriptions")

__all__ = ["DatasetState", "Loaded", "PipelineState"]


class PipelineState(Protocol):
    """The pipeline that a loader delivers, and the contents of its states besides the cursor."""

    @property
    def pipeline(self) -> Any:
        """The node of the dataset, or the Stream, that is delivered."""
        ...

    @property
    def by_rows(self) -> bool:
        """True if the pipeline delivers the rest of older orders first."""
        ...

    @property
    def reads_objects(self) -> bool:
        """True if the pipeline reads objects of stores."""
        ...

    @property
    def endless(self) -> bool:
        """True if the pipeline never ends, so that its runs follow one another."""
        ...

    def of_state(self, cursor: Cursor) -> Node | Stream:
        """Return the pipeline that a state at a cursor is of: without those older orders that are over."""
        ...

    def deliver(self, batch: Batch) -> None:
        """Change as the delivery of a batch changes the pipeline."""
        ...

    def skip(self, steps: Steps, cursor: Cursor, count: int) -> Cursor:
        """Leave out ``count`` batches, at most to the end of the run, and return the cursor after them."""
        ...

    def next_run(self, steps: Steps, cursor: Cursor) -> tuple[Cursor, Self]:
        """Return where the run after the cursor's begins: its cursor and its state."""
        ...

    def document(
        self, steps: Steps, cursor: Cursor, trainer_pass: TrainerPass | None, *, partial: bool, rows: bool
    ) -> dict[str, Any]:
        """Return the state document at a cursor: a new dict, JSON-safe.

        Args:
            steps: the division into batches.
            cursor: the batches that were delivered.
            trainer_pass: the pass of a trainer, if one counts passes.
            partial: return the share of this rank, where ranks have different ones.
            rows: add the description of the pipeline.

        Raises:
            NotResumable: a stage could not go on from it, or this is a share and ``partial`` is false.
        """
        ...

    def resumed(self, steps: Steps, cursor: Cursor) -> Resumed:
        """Return the sources as they are at a cursor."""
        ...

    def loaded(self, steps: Steps, document: Mapping[str, Any], resume: Resume) -> Loaded:
        """Return what a document holds; this state does not change.

        Raises:
            StateMismatch: the document is of another pipeline, or of other data.
            CorruptState: the document is no state.
            InvalidArgument: with ``resume="rows"``, the rows that each source delivered are not known.
        """
        ...


@dataclass(frozen=True, slots=True)
class Loaded:
    """The contents of a state document."""

    cursor: Cursor
    state: PipelineState
    resumed: Resumed
    """The sources of the run there; of a stream those of all ranks, if the document has all lanes."""
    trainer_pass: TrainerPass | None
    """The pass of a trainer in which the state was taken."""


@final
class DatasetState:
    """The dataset that is delivered: the cursor says all else, and is the same on all ranks.

    Args:
        plain: the dataset that the loader was made with.
        pipeline: the dataset that is delivered after ``resume="rows"``; else ``plain``.
        position: the position at which ``pipeline`` goes on.
    """

    def __init__(self, plain: Node, pipeline: Node | None = None, position: int = 0) -> None:
        self._plain = plain
        self.pipeline = plain if pipeline is None else pipeline
        self._settled = (position, self.pipeline)
        if self.by_rows:
            self._settled = (position, continued.simplified(self.pipeline, Remaining((), position)))

    @property
    def by_rows(self) -> bool:
        """True if the dataset delivers the rest of older orders first."""
        return self.pipeline is not self._plain

    @property
    def reads_objects(self) -> bool:
        """True if a source of the dataset has files that are objects of stores."""
        return reads_objects(self.pipeline)

    @property
    def endless(self) -> bool:
        """True if the dataset has no last epoch."""
        return self._plain.size is None

    def of_state(self, cursor: Cursor) -> Node:
        """Return the dataset that a state at a cursor is of: the plain one, once older orders are over."""
        position, dataset = self._settled
        if self.by_rows and position != cursor.position:
            # What has come will not come again, unless the cursor has gone back.
            begun = dataset if position < cursor.position else self.pipeline
            dataset = continued.simplified(begun, Remaining((), cursor.position))
            self._settled = cursor.position, dataset
        return dataset

    def deliver(self, batch: Batch) -> None:
        """Change nothing: the cursor says all."""

    def skip(self, steps: Steps, cursor: Cursor, count: int) -> Cursor:
        """Return the cursor ``count`` batches later, at most at the end of the run."""
        return steps.after(cursor, count)

    def next_run(self, steps: Steps, cursor: Cursor) -> tuple[Cursor, DatasetState]:
        """Return the cursor of the next run; the dataset stays."""
        return steps.next_run(cursor), self

    def document(
        self, steps: Steps, cursor: Cursor, trainer_pass: TrainerPass | None, *, partial: bool, rows: bool
    ) -> dict[str, Any]:
        """Return the state document at a cursor; it is the same on all ranks."""
        dataset, position = self.of_state(cursor), cursor.position
        return RunState(
            fingerprint=dataset.fingerprint_at(position),
            step=cursor.step,
            epoch=cursor.epoch,
            position=position,
            began=None if steps.limit is None else cursor.began,
            rows=serialize.rows_of_dataset(dataset) or None if self.by_rows else None,
            pipeline=descriptions.text_of(dataset, functools.partial(_described, dataset)) if rows else None,
            trainer_pass=trainer_pass,
        ).document()

    def resumed(self, steps: Steps, cursor: Cursor) -> Resumed:
        """Return the sources as they are at a cursor."""
        return Resumed(self.pipeline, functools.partial(self._progress, cursor))

    def _progress(self, cursor: Cursor) -> list[DatasetProgress]:
        return consumed.progress_of_dataset(self.pipeline, cursor.position, first_epoch=cursor.epoch)

    def loaded(self, steps: Steps, document: Mapping[str, Any], resume: Resume) -> Loaded:
        """Return the cursor and the dataset of a state document, or of a document of row offsets.

        Raises:
            StateMismatch: the document is of another pipeline, or of other data.
            CorruptState: the document is no state, or its position lies before its epoch.
            InvalidArgument: with ``resume="rows"``, the rows that each source delivered are not known; or a
                source cannot be entered at a row.
        """
        dataset, state = self._parsed(document, resume)
        if dataset is self._plain and state.position < steps.start_of(state.epoch):
            message = f"a state lies in its epoch (got position {state.position}, epoch {state.epoch})"
            raise CorruptState(message)
        cursor = Cursor(state.step, state.epoch, state.position, _began(state, steps))
        stop, size = steps.stop_of(cursor), steps.size
        if stop is not None and size and cursor.position > stop:
            # Runs have fewer epochs than when the state was taken: its epoch becomes the first one of a run.
            cursor = replace(cursor, epoch=cursor.position // size)
        found = DatasetState(self._plain, dataset, cursor.position)
        return Loaded(cursor, found, found.resumed(steps, cursor), state.trainer_pass)

    def _parsed(self, document: Mapping[str, Any], resume: Resume) -> tuple[Node, RunState]:
        """Return the dataset that a document is of, and the state of it there."""
        if has_row_offsets(document):
            return row_offsets.dataset_at_offsets(self._plain, document)
        state, dataset = parse_state(document), self._plain
        if not isinstance(state, RunState):
            if resume != "rows":
                raise other_kind(state)
            return by_rows.dataset_by_rows(self._plain, state)
        try:
            if state.rows:
                dataset = serialize.dataset_from_rows(state.rows, self._plain)
            # By rows nobody reads in what they differ, and to find it takes seconds where files are many.
            differs = resume == "rows" and compatibility.fingerprint_at(dataset, state) != state.fingerprint
            if not differs:
                compatibility.check_pipeline(dataset, state)
        except StateMismatch:
            if resume != "rows":
                raise
            differs = True
        return by_rows.dataset_by_rows(self._plain, state) if differs else (dataset, state)


def _began(state: RunState, steps: Steps) -> int:
    """Return the step at which the run of a state began; a loader without ``steps=`` does not note it."""
    if state.began is not None or steps.size is None:
        return state.began or 0
    records = max(0, state.position - steps.start_of(state.epoch))
    return max(0, state.step - -(-records // steps.batch))


def _described(dataset: Node) -> descriptions.PipelineDescription:
    """Return the description that states of a dataset carry: with all weights, also of later positions."""
    return descriptions.PipelineDescription(dataset.describe(None), evaluated.row_files_of(dataset))
