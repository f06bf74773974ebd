"""The pipeline that a loader delivers, its state besides the cursor, and its sources where it resumed.

Of a dataset that is nothing. Of a stream it is the states of its lanes (`seekable.loader.lanes_state`). The
pipeline is the one that the loader was made with, or after ``resume="rows"`` the one that first delivers the
rest of older orders.
"""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING, Any, Protocol, Self, final

from msgspec import structs

from seekable._cached import cached
from seekable._lazy import lazy
from seekable._log import LOG
from seekable._typing import Value
from seekable.errors import CorruptState, SeekableError, StateMismatch
from seekable.loader.steps import StepCursor
from seekable.nodes.bases import reads_objects, records_of_sources
from seekable.nodes.node import InnerNode, Node
from seekable.order.remaining import Remaining
from seekable.state.canonical import plain_json
from seekable.state.document import RunState, has_row_offsets, other_kind, parse_state
from seekable.state.journal import described_upto, exclusions, joined, steers, without_steers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from seekable.loader.arguments import Resume
    from seekable.loader.batches import MadeBatch
    from seekable.loader.steps import Steps
    from seekable.nodes import evaluated, mix, steer
    from seekable.resume import by_rows, consumed, continued, from_description, report, row_offsets, serialize
    from seekable.resume.consumed import DatasetProgress
    from seekable.resume.report import SourceReport
    from seekable.state import descriptions
    from seekable.state.document import State, TrainerPass
    from seekable.state.journal import Journal
    from seekable.stream.stream import Stream
else:
    evaluated = lazy("seekable.nodes.evaluated")
    mix = lazy("seekable.nodes.mix")
    steer = lazy("seekable.nodes.steer")
    by_rows = lazy("seekable.resume.by_rows")
    consumed = lazy("seekable.resume.consumed")
    continued = lazy("seekable.resume.continued")
    row_offsets = lazy("seekable.resume.row_offsets")
    serialize = lazy("seekable.resume.serialize")
    descriptions = lazy("seekable.state.descriptions")
    report = lazy("seekable.resume.report")
    from_description = lazy("seekable.resume.from_description")

__all__ = [
    "DatasetState",
    "LoadedState",
    "PipelineState",
    "Resumed",
    "described",
    "log_anew",
]


@final
class Resumed:
    """The sources of a run where it resumed: true, and as text one line for each source.

    Nothing is computed until it is needed.

    Args:
        pipeline: the node of the dataset, or the Stream, that is delivered.
        progress: returns how far each dataset was read; what it returns never changes.
    """

    def __init__(self, pipeline: Node | Stream, progress: Callable[[], list[DatasetProgress]]) -> None:
        self._pipeline = pipeline
        self._progress = progress

    @property
    def sources(self) -> list[dict[str, Any]]:
        """The progress of each source, as ``loader.sources()`` returned it there: new dicts, JSON-safe."""
        return [each.document() for each in self._reports]

    def progress(self) -> list[DatasetProgress]:
        """Return how far each dataset was read.

        Raises:
            InvalidArgument: a stage hides how many rows each source delivered.
            CorruptState: lanes of other ranks are not known here.
        """
        return self._progress()

    def log(self) -> None:
        """Log one line for each source, at level INFO."""
        if LOG.isEnabledFor(logging.INFO):
            for each in self._reports:
                LOG.info("%s", each.line())

    def __str__(self) -> str:
        """Return the lines of the log: ``resume: spec=... sample_row=... shard=... offset=...``."""
        return "\n".join(each.line() for each in self._reports)

    def __repr__(self) -> str:
        """Show the number of sources."""
        return f"<Resumed: {len(self._reports)} sources>"

    @cached
    def _reports(self) -> list[SourceReport]:
        try:
            return report.report_progress(self._progress())
        except SeekableError:
            # Rows that cannot be counted are left out, and never keep a run from resuming.
            pipeline = self._pipeline
            if isinstance(pipeline, Node):
                return report.report_unknown_dataset(pipeline)
            return report.report_unknown_stream(pipeline.stage)


def log_anew(why: str) -> None:
    """Log that a run begins anew, at level INFO."""
    LOG.info("resume: %s: the run begins anew", why)


class PipelineState(Protocol):
    """The pipeline that a loader delivers, and the contents of its states besides the cursor."""

    journal: Journal
    """What its owner changed in the run."""

    @property
    def pipeline(self) -> Any:
        """The node of the dataset, or the Stream, that is delivered, without a journal."""
        ...

    @property
    def plain(self) -> Any:
        """The node or the Stream that the loader was made with."""
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

    @property
    def way_to_an_end(self) -> str:
        """What would give the pipeline an end, for data that has none."""
        ...

    def passes(self, cursor: StepCursor) -> float:
        """Return how often all records of the sources were read at a cursor; 0 where that is not known."""
        ...

    def of_state(self, cursor: StepCursor) -> Node | Stream:
        """Return the pipeline that a state at a cursor is of: without those older orders that are over."""
        ...

    def deliver(self, batch: MadeBatch) -> None:
        """Change as the delivery of a batch changes the pipeline."""
        ...

    def skip(self, steps: Steps, cursor: StepCursor, count: int) -> StepCursor:
        """Leave out ``count`` batches, at most to the end of the run, and return the cursor after them."""
        ...

    def next_run(self, steps: Steps, cursor: StepCursor) -> tuple[StepCursor, Self]:
        """Return where the run after the cursor's begins: its cursor and its state."""
        ...

    def document(
        self, steps: Steps, cursor: StepCursor, trainer_pass: TrainerPass | None, *, partial: bool, rows: bool
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

    def resumed(self, steps: Steps, cursor: StepCursor) -> Resumed:
        """Return the sources as they are at a cursor."""
        ...

    def loaded(self, steps: Steps, document: Mapping[str, Any], resume: Resume) -> LoadedState:
        """Return what a document holds; this state does not change.

        Raises:
            StateMismatch: the document is of another pipeline, or of other data.
            CorruptState: the document is not a state.
            InvalidArgument: with ``resume="rows"``, the rows that each source delivered are not known.
        """
        ...


class LoadedState(Value, frozen=True):
    """The contents of a state document."""

    cursor: StepCursor
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
        journal: what was changed in the run.
    """

    def __init__(
        self, plain: Node, pipeline: Node | None = None, position: int = 0, journal: Journal = ()
    ) -> None:
        self.plain = plain
        self.journal = journal
        self.pipeline = plain if pipeline is None else pipeline
        self._settled = (position, self.pipeline)
        if self.pipeline is not plain:
            self._settled = (position, self._simplified(self.pipeline, position))

    @property
    def by_rows(self) -> bool:
        """True if the dataset delivers the rest of older orders first."""
        return self.pipeline is not self.plain

    @property
    def reads_objects(self) -> bool:
        """True if a source of the dataset has files that are objects of stores."""
        return reads_objects(self.pipeline)

    @property
    def endless(self) -> bool:
        """True if the dataset has no last epoch."""
        return self.plain.size is None

    @property
    def way_to_an_end(self) -> str:
        """What bounds a run, or gives the dataset epochs."""
        return "steps= of sk.Loader, or ds.take(n), which cuts epochs of n records,"

    def passes(self, cursor: StepCursor) -> float:
        """Return how often all records of the sources were read, if each is read as often."""
        return cursor.position / max(records_of_sources(self.plain), 1)

    def of_state(self, cursor: StepCursor) -> Node:
        """Return the dataset that a state at a cursor is of: the plain one, once older orders are over."""
        position, dataset = self._settled
        if self.by_rows and position != cursor.position:
            # What has come will not come again, unless the cursor has gone back.
            begun = dataset if position < cursor.position else self.pipeline
            dataset = self._simplified(begun, cursor.position)
            self._settled = cursor.position, dataset
        return dataset

    def _simplified(self, dataset: Node, position: int) -> Node:
        """Return a dataset without older orders that have come before a position."""
        delivered = steer.changed(dataset, self.journal) if self.journal else None
        return continued.simplified(dataset, Remaining((), position), delivered=delivered)

    def deliver(self, batch: MadeBatch) -> None:
        """Change nothing: the cursor says all."""

    def skip(self, steps: Steps, cursor: StepCursor, count: int) -> StepCursor:
        """Return the cursor ``count`` batches later, at most at the end of the run."""
        return steps.after(cursor, count)

    def next_run(self, steps: Steps, cursor: StepCursor) -> tuple[StepCursor, DatasetState]:
        """Return the cursor of the next run; the dataset stays."""
        return steps.next_run(cursor), self

    def document(
        self, steps: Steps, cursor: StepCursor, trainer_pass: TrainerPass | None, *, partial: bool, rows: bool
    ) -> dict[str, Any]:
        """Return the state document at a cursor; it is the same on all ranks."""
        dataset, position = self.of_state(cursor), cursor.position
        return RunState(
            fingerprint=fingerprint_of_state(dataset, position, self.journal),
            step=cursor.step,
            epoch=cursor.epoch,
            position=position,
            began=cursor.began if steps.notes_began else None,
            ramp=None if isinstance(steps.batch, int) else tuple(steps.batch.pairs),
            rows=serialize.rows_of_dataset(dataset) or None if self.by_rows else None,
            pipeline=descriptions.text_of(dataset, functools.partial(_described, dataset)) if rows else None,
            trainer_pass=trainer_pass,
            journal=self.journal,
        ).document()

    def resumed(self, steps: Steps, cursor: StepCursor) -> Resumed:
        """Return the sources as they are at a cursor."""
        return Resumed(self.pipeline, functools.partial(self._progress, cursor, self.journal))

    def _progress(self, cursor: StepCursor, journal: Journal) -> list[DatasetProgress]:
        delivered = steer.changed(self.pipeline, journal) if journal else self.pipeline
        return consumed.progress_of_dataset(delivered, cursor.position, first_epoch=cursor.epoch)

    def loaded(self, steps: Steps, document: Mapping[str, Any], resume: Resume) -> LoadedState:
        """Return the cursor and the dataset that a state document, or one of row offsets, has.

        Raises:
            StateMismatch: the document is of another pipeline, or of other data.
            CorruptState: the document is not a state, or its position lies before its epoch.
            InvalidArgument: with ``resume="rows"``, the rows that each source delivered are not known; or a
                source cannot be entered at a row.
        """
        dataset, state = self._parsed(document, resume)
        if dataset is self.plain and state.position < steps.start_of(state.epoch):
            message = f"a state lies in its epoch (got position {state.position}, epoch {state.epoch})"
            raise CorruptState(message)
        cursor = StepCursor(state.step, state.epoch, state.position, _began(state, steps))
        stop, size = steps.stop_of(cursor), steps.size
        if stop is not None and size and cursor.position > stop:
            # Runs have fewer epochs than when the state was taken: its epoch becomes the first one of a run.
            cursor = structs.replace(cursor, epoch=cursor.position // size)
        found = DatasetState(
            self.plain, dataset, cursor.position, joined(self.journal, state.journal, state.step)
        )
        return LoadedState(cursor, found, found.resumed(steps, cursor), state.trainer_pass)

    def _parsed(self, document: Mapping[str, Any], resume: Resume) -> tuple[Node, RunState]:
        """Return the dataset that a document is of, and the state of it there."""
        if has_row_offsets(document):
            return row_offsets.dataset_at_offsets(self.plain, document)
        state, dataset = parse_state(document), self.plain
        if not isinstance(state, RunState):
            if resume != "rows":
                raise other_kind(state)
            return _by_rows(self.plain, state)
        try:
            if state.rows:
                dataset = serialize.dataset_from_rows(state.rows, self.plain)
            # By rows nobody reads in what they differ, and to find it takes seconds where files are many.
            present = fingerprint_of_state(dataset, state.position, state.journal)
            differs = resume == "rows" and present != state.fingerprint
            if not differs:
                _check_pipeline(dataset, state)
        except StateMismatch:
            if resume != "rows":
                raise
            differs = True
        return _by_rows(self.plain, state) if differs else (dataset, state)


def _by_rows(plain: Node, state: State) -> tuple[Node, RunState]:
    """Return the dataset that resumes a saved run by rows, and the state of it there, without its steers."""
    if steers(state.journal):
        LOG.warning("%s", without_steers(state.journal))
    dataset, resumed = by_rows.dataset_by_rows(plain, state)
    journal = tuple(structs.replace(entry, position=None) for entry in exclusions(state.journal))
    return dataset, structs.replace(resumed, journal=journal)


def _began(state: RunState, steps: Steps) -> int:
    """Return the step at which the run of a state began; a loader without ``steps=`` or a ramp notes none."""
    if state.began is not None or steps.size is None:
        return state.began or 0
    records = max(0, state.position - steps.start_of(state.epoch))
    return steps.began(state.step, records)


def _described(dataset: Node) -> descriptions.PipelineDescription:
    """Return the description that states of a dataset carry: with all weights, also of later positions."""
    return descriptions.PipelineDescription(dataset.describe(None), evaluated.row_files_of(dataset))


def described(pipeline: Node | Stream, state: State) -> dict[str, Any]:
    """Return the description of a pipeline up to the position of a state."""
    if isinstance(pipeline, Node):
        return pipeline.describe(
            described_upto(state.position, state.journal) if isinstance(state, RunState) else None
        )
    return pipeline.describe()


def fingerprint_of_state(dataset: Node, position: int, journal: Journal) -> str:
    """Return the fingerprint of a dataset in a state of it at a position."""
    upto = described_upto(position, journal)
    return dataset.fingerprint if upto is None else dataset.fingerprint_at(upto)


def _check_pipeline(dataset: Node, state: RunState) -> None:
    """Refuse a state of another pipeline, or of other data.

    Raises:
        StateMismatch: the fingerprints differ; the message says in what, if the state carries a description.
    """
    upto = described_upto(state.position, state.journal)
    present, old, advice = fingerprint_of_state(dataset, state.position, state.journal), None, ""
    if state.fingerprint == present:
        return
    if state.pipeline is not None:
        old = descriptions.PipelineDescription.parse(state.pipeline).tree
        if upto is not None:
            old, advice = _described_before(old, upto)
    new = plain_json(dataset.describe(upto))
    raise descriptions.mismatch(state.fingerprint, present, old=old, new=new, advice=advice)


def _described_before(tree: Mapping[str, Any], position: int) -> tuple[Mapping[str, Any], str]:
    """Return the description under a state's fingerprint, without later weights; and advice on schedules.

    The advice says from which positions on the weights may change without losing a record.
    """
    if not from_description.has_schedule(tree):
        return tree, ""
    whole = from_description.rebuild_loosely(tree)
    advice = "".join(
        f"\nthe state lies at position {at} of the mixture of {_parts(mixture)}: a block of draws that "
        f"has begun cannot change, so its weights may change from position {mixture.free_from(at)} on"
        for mixture, at in _mixtures(whole, position)
    )
    return plain_json(whole.describe(position)), advice


def _parts(mixture: mix.Mix) -> str:
    return ", ".join(map(repr, mixture.names)) if mixture.names else f"{len(mixture.parts)} datasets"


def _mixtures(node: Node, position: int) -> Iterator[tuple[mix.Mix, int]]:
    """Yield each mixture with a schedule, and the count of its draws before a position of a node."""
    if isinstance(node, mix.Mix) and node.stop == "never":
        yield node, position
    if isinstance(node, InnerNode):
        for slot, child in enumerate(node.children):
            stop = node.child_range(slot, 0, position)[1]
            yield from _mixtures(child, stop or 0)
