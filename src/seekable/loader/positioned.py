"""The position of a loader: how far its run has come, its states, and the moves to other positions.

`Loader` has its methods from here and from `seekable.loader.loader`, where batches are made and delivered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import structs

from seekable._arguments import POSITIONS, checked_count
from seekable._lazy import lazy
from seekable.dataset.dataset import Dataset
from seekable.errors import CorruptState, InvalidArgument, NotResumable, OutOfRange
from seekable.loader.arguments import checked_resume, no_loader
from seekable.loader.iteration import NOT_RESTORED, READ_AHEAD, REPLACED, BatchIterator, EpochSetter
from seekable.loader.states import Resumed, log_anew
from seekable.loader.steps import StepCursor
from seekable.nodes.node import Node
from seekable.state.document import StreamState, has_row_offsets

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seekable.loader import step_plan
    from seekable.loader.arguments import Resume
    from seekable.loader.run_progress import RunProgress
    from seekable.loader.steps import Steps
    from seekable.resume import row_offsets
    from seekable.stream.stream import Stream
else:
    row_offsets = lazy("seekable.resume.row_offsets")
    step_plan = lazy("seekable.loader.step_plan")

__all__ = [
    "Positioned",
    "first_step",
    "go_to_run",
    "loader_of",
    "move_silently",
    "pass_setter",
    "pipeline_made_with",
    "pipeline_of_state",
    "position_of",
    "regular_step",
    "resumed_of",
    "size_at",
    "sizes_of",
    "state_from_sample_index",
    "state_sources",
    "step_of",
]


class Positioned:
    """The base of ``Loader`` that knows its position, and moves it."""

    def __init__(self, progress: RunProgress, *, single: bool) -> None:
        """Begin at the start of a run, without an iterator; ``single`` records are no batches."""
        self._progress, self._single = progress, single
        self._live: Callable[[], BatchIterator | None] = _nothing

    @property
    def dataset(self) -> Any:
        """The Dataset or the Stream that is delivered."""
        return _face(self._progress.state.pipeline)

    @property
    def step(self) -> int:
        """The number of batches delivered and skipped so far."""
        return self._progress.cursor.step

    @property
    def steps_left(self) -> int | None:
        """The number of batches left of the present run; None without end."""
        return self._progress.steps.left(self._progress.cursor)

    @property
    def epoch(self) -> int:
        """The first epoch of the present run; it moves on when the end of the run was seen."""
        return self._progress.cursor.epoch

    @property
    def rank(self) -> int:
        """The number of this process among ``world_size``, from 0."""
        return self._progress.steps.rank

    @property
    def world_size(self) -> int:
        """The number of processes that share the batches."""
        return self._progress.steps.world_size

    @property
    def batch_size(self) -> int | None:
        """The number of records in a batch of this rank; None where the records themselves are delivered.

        Where it follows the step, it is that of the next batch.
        """
        return None if self._single else self.global_batch_size // self._progress.steps.world_size

    @property
    def global_batch_size(self) -> int:
        """The number of records in a batch, over all ranks; where it follows the step, in the next batch."""
        return self._progress.steps.size_at(self.step)

    @property
    def sampler(self) -> EpochSetter:
        """An object whose ``set_epoch(k)`` lets run ``k`` come next; trainers look for this name."""
        return EpochSetter(self._set_run)

    @property
    def batch_sampler(self) -> None:
        """Always None: Lightning reads this name where there is a ``sampler``, before it validates."""
        return

    def state_dict(self, *, partial: bool = False, rows: bool = True) -> dict[str, Any]:
        """Return the state after the batches delivered so far: a new dict, JSON-safe.

        Batches that were made ahead do not count. The state loads on any number of ranks, with any batch
        size. The state of a dataset is the same on all ranks.

        Args:
            partial: return this rank's share of the state, where ranks have different ones: those of a stream
                have lanes of their own, which ``sk.save_state`` and ``sk.load_state`` put together.
            rows: add the description of the pipeline, with the names of its files, as one string. Another
                pipeline needs it to load the state with ``resume="rows"``. The string is made once for a
                pipeline. Without it the state of a dataset has fewer than 200 bytes.

        Raises:
            NotResumable: a stage of a stream could not go on from it; or this is a share and ``partial`` is
                false.
        """
        return self._progress.document(partial=partial, rows=rows)

    def sources(self) -> list[dict[str, Any]]:
        """Return how far each source has come, after the batches delivered so far; nothing is read.

        A source is the largest part of the pipeline that has an order of its own: what is mixed. Where a
        shuffle or a zip stands above a mixture, that node is the one source.

        Returns:
            For each source, in the order of the mixtures, a JSON-safe dict with

            - ``spec``: the argument of ``sk.open``, as it was written; several joined by commas,
            - ``name``: its name in the mixture, of mixtures of mixtures joined by dots; else empty,
            - ``epoch``: the index of the epoch that was begun last, from 0,
            - ``rows``: the rows of that epoch that were consumed: delivered at least in part, or skipped,
            - ``of``: the rows in an epoch; None for a source without end,
            - ``consumed``: the rows of all epochs that were consumed, or passed over by ``set_epoch`` or
              ``start=``; None if they had different lengths, after ``resume="rows"``,
            - ``in_flight``: the rows that wait in buffers or open packs, which do not count as consumed,
            - ``shard`` and ``row_offset``: the file that has the row that is read next, below the folder that
              was opened, and the index of the row in it. In natural order all rows before it were read. Of a
              shuffled source it is the next row all the same, and says nothing of the rows before it.

            What is not known is None: the rows of a stream with ``repeat()`` or without rows, and those of
            a stream on one of several ranks, whose other lanes are not known there.

        Example:
            >>> import seekable as sk
            >>> loader = sk.Loader(sk.from_sequence("abcdef", version=1), batch_size=4, prefetch=0)
            >>> batch = next(iter(loader))
            >>> (source,) = loader.sources()
            >>> source["rows"], source["of"], source["shard"], source["row_offset"]
            (4, 6, '<builtins.str 1>', 4)
        """
        return self._progress.state.resumed(self._progress.steps, self._progress.cursor).sources

    def resume_state(self) -> dict[str, Any]:
        """Return the shard and row after which each source goes on, for checkpoints that hold nothing else.

        Rows in flight are not part of it, nor is the index of the epoch; for exact resumes there is
        ``state_dict``. ``load_state_dict`` takes it, of any pipeline over the same sources.

        Returns:
            ``{"resume_state": {"datasets": [{"spec": ..., "shard": ..., "row_offset": ...}, ...]}}``, JSON-
            safe. The first ``row_offset`` rows of the shard, and all shards before it, were read. A shard is
            the name of the file below the folder that was opened; for ``txt:`` its path.

        Raises:
            NotResumable: a source is shuffled, so that rows are not read in their order; or how much
                each source delivered is not known.

        Example:
            >>> import seekable as sk
            >>> loader = sk.Loader(sk.from_sequence("abcdef", version=1), batch_size=4, prefetch=0)
            >>> batch = next(iter(loader))
            >>> loader.resume_state()["resume_state"]["datasets"]
            [{'spec': 'from_sequence(<builtins.str of 6>)', 'shard': '<builtins.str 1>', 'row_offset': 4}]
        """
        resumed = self._progress.state.resumed(self._progress.steps, self._progress.cursor)
        try:
            return row_offsets.resume_state_of(resumed.progress())
        except (CorruptState, InvalidArgument) as error:
            raise NotResumable(str(error)) from error

    def load_state_dict(self, state: Mapping[str, Any], *, resume: Resume = "exact") -> None:
        """Go on where a state was taken: the next batches are those that would have followed.

        Nothing changes if this raises an error. The log has a line for each source, at level INFO.

        Args:
            state: what ``state_dict`` returned, also after a JSON round trip; it is not changed. ``{}``
                stands for no state and changes nothing. A live iterator moves there too. A checkpoint without
                such a state goes on by its ``resume_state`` (see ``resume_state()``), after these rows in
                each source; one without that too by its ``sample_index``, the number of samples delivered.
            resume: ``"exact"``, the order continues record for record. With ``"rows"`` the state may be of
                another pipeline over the same sources, or fewer files of them: each source gives what was in
                flight, then the rest of its begun epoch in its old order, then its next epoch in the new one.

        Raises:
            StateMismatch: the state is of another pipeline, or of other data; by rows, of sources that are
                not there any more, or the state carries no description of its pipeline.
            CorruptState: the document is not a state.
            InvalidArgument: by rows, something above a mixture hides how many rows each source gave, or rows
                were chosen by content that is not known any more; by ``resume_state``, a source is shuffled.
            OutOfRange: by ``sample_index``, the stream has fewer items in a run.

        Example:
            >>> import seekable as sk
            >>> words = sk.from_sequence("abcdef")
            >>> loader = sk.Loader(words, batch_size=2, collate=list, prefetch=0)
            >>> next(iter(loader))
            ['a', 'b']
            >>> again = sk.Loader(words.map(str.upper).shuffle(seed=1), batch_size=3, collate=list)
            >>> again.load_state_dict(loader.state_dict(), resume="rows")
            >>> list(again)
            [['C', 'D', 'E'], ['F']]
        """
        resume = checked_resume(resume)
        if state == {}:
            if not self.step:
                log_anew("an empty state")
            return
        resumed = self._move_to(self._without_sample_index(state), resume=resume)
        resumed.log()

    def skip_batches(self, count: int) -> None:
        """Leave out the next ``count`` batches, at most to the end of the run; they count as steps.

        Raises:
            InvalidArgument: ``count`` is not an integer of at least 0.
        """
        count = checked_count("count", count, least=0)
        if self._live() is None:
            self._progress.begin()
        self._progress.skip(count)
        self._restart_live()

    def set_epoch(self, epoch: int) -> None:
        """Let the next run begin with an epoch; nothing changes if it does anyway.

        An iterator that has delivered batches ends.

        Raises:
            EndlessDataset: an endless dataset has no epochs but 0.
        """
        cursor = self._progress.cursor_of_epoch(epoch)
        if cursor is not None:
            if not self._progress.continues:
                self._stop_live(REPLACED)
            self._progress.move(cursor)
            self._restart_live()

    def _set_run(self, number: int) -> None:
        """Let run ``number`` come next; see `EpochSetter`.

        Raises:
            NotResumable: whoever counts passes could take no checkpoint: a stage of a stream could not go on
                from it, or it would have the share of one rank.
        """
        is_stream = not isinstance(self._progress.state.pipeline, Node)
        if is_stream and self.world_size > 1:
            raise NotResumable(
                f"a trainer that announces passes saves the state of its loader, and rank {self.rank} of "
                f"{self.world_size} has the state of its own lanes of the stream alone: give the trainer "
                f"loader.stateful(), whose state is of all ranks"
            )
        if is_stream:
            self._progress.document(rows=False)
        self._announce(number)

    def _announce(self, number: int) -> None:
        """Let run ``number`` come next, as pass ``number`` of a trainer."""
        progress = self._progress
        before = progress.cursor
        if progress.resumes_pass(checked_count("epoch", number, least=0)):
            if progress.is_over or progress.cursor is not before:
                self._restart_live()
        else:
            self._go_to_run(number)
        progress.announce(number)

    def _go_to_run(self, number: int) -> None:
        """Let run ``number`` come next, for callers that count no passes of a trainer."""
        progress = self._progress
        epoch = progress.epoch_of_run(number)
        if epoch is not None:
            self.set_epoch(epoch)
        elif number and progress.is_unmoved and progress.state.endless and self._live() is not None:
            raise InvalidArgument(NOT_RESTORED.format(number=number))
        elif not progress.continues:
            self._stop_live(READ_AHEAD)
        elif progress.steps.left(progress.cursor) == 0:
            progress.end()
            self._restart_live()

    def _without_sample_index(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a state, made of the number of samples if the document has nothing else."""
        if _has_sample_index(state):
            return _state_after(self._progress, state["sample_index"])
        return state

    def _at(self, state: Mapping[str, Any]) -> Resumed:
        """Return the sources as they were where a state was taken; the loader does not move."""
        progress = self._progress
        return progress.state.loaded(progress.steps, self._without_sample_index(state), "exact").resumed

    def _move_to(self, state: Mapping[str, Any], *, resume: Resume) -> Resumed:
        """Go to where a state was taken, and return the sources as they are there."""
        resumed = self._progress.load(state, resume=resume)
        self._restart_live()
        return resumed

    def _stop_live(self, why: str) -> None:
        iterator = self._live()
        if iterator is not None:
            iterator.stop(why)
            self._live = _nothing

    def _restart_live(self) -> None:
        iterator = self._live()
        if iterator is not None:
            iterator.restart()


def state_sources(state: Mapping[str, Any], loader: Positioned) -> list[dict[str, Any]]:
    """Return how far each source had come where a state was taken.

    Args:
        state: what ``state_dict`` of a loader over the same pipeline returned, also after a JSON round trip.
            Of a stream on several ranks it is the state that has the lanes of all.
        loader: a loader of the pipeline; it does not move.

    Returns:
        What ``loader.sources()`` returned where the state was taken.

    Raises:
        StateMismatch: the state is of another pipeline, or of other data.
        CorruptState: the document is not a state.
        WrongType: ``loader`` is not a loader.

    Example:
        >>> import seekable as sk
        >>> loader = sk.Loader(sk.from_sequence(range(10)), batch_size=3, collate=list, prefetch=0)
        >>> batch, state = next(iter(loader)), loader.state_dict()
        >>> sk.state_sources(state, loader)[0]["rows"]
        3
    """
    if not isinstance(loader, Positioned):
        raise no_loader(loader)
    return loader._at(state).sources  # noqa: SLF001 - of this module


def state_from_sample_index(index: int, loader: Positioned) -> dict[str, Any]:
    """Return the state of a loader after some samples: for checkpoints that hold nothing but their number.

    Of a dataset it is arithmetic. A stream is run from its start, in this process, because nothing else gives
    the states of its stages: that takes as long as delivering the samples took.

    Args:
        index: the number of samples delivered, over all ranks and runs: records of a dataset, items of a
            stream.
        loader: a loader of the pipeline that delivered them.

    Returns:
        What ``state_dict`` would have returned: for ``load_state_dict`` of this loader, and with
        ``resume="rows"`` for one of another pipeline.

    Raises:
        OutOfRange: the stream has fewer items in a run.
        WrongType: ``loader`` is not a loader.

    Example:
        >>> import seekable as sk
        >>> loader = sk.Loader(sk.from_sequence(range(10)), batch_size=2, collate=list)
        >>> loader.load_state_dict(sk.state_from_sample_index(6, loader))
        >>> list(loader)
        [[6, 7], [8, 9]]
    """
    index = checked_count("index", index, least=0)
    if not isinstance(loader, Positioned):
        raise no_loader(loader)
    return _state_after(loader._progress, index)  # noqa: SLF001 - of this module


def move_silently(loader: Positioned, state: Mapping[str, Any]) -> None:
    """Go to where a state was taken, without a line in the log: for moves that do not resume a run."""
    loader._move_to(state, resume="exact")  # noqa: SLF001 - of this module


def pass_setter(loader: Positioned) -> EpochSetter:
    """Return the object by which a trainer announces passes that saves the state of all ranks."""
    return EpochSetter(loader._announce)  # noqa: SLF001 - of this module


def go_to_run(loader: Positioned, number: int) -> None:
    """Let run ``number`` come next, without a note of the pass of a trainer in later states."""
    loader._go_to_run(number)  # noqa: SLF001 - of this module


def loader_of(saved: object) -> Positioned:
    """Return the loader whose states an object saves: a loader itself, or the one of a batch sampler.

    Raises:
        WrongType: the object has none.
    """
    loader = saved if isinstance(saved, Positioned) else getattr(saved, "_loader", None)
    if not isinstance(loader, Positioned):
        raise no_loader(saved)
    return loader


def pipeline_of_state(loader: Positioned) -> Node | Stream:
    """Return the node of the dataset, or the Stream, that a state taken now is of.

    After ``resume="rows"`` it first delivers the rest of older orders.
    """
    progress = loader._progress  # noqa: SLF001 - of this module
    return progress.state.of_state(progress.cursor)


def pipeline_made_with(loader: Positioned) -> Dataset | Stream:
    """Return the Dataset or the Stream that a loader was made with.

    After ``resume="rows"`` it is not what the loader delivers first, the rest of older orders.
    """
    return _face(loader._progress.state.plain)  # noqa: SLF001 - of this module


def resumed_of(loader: Positioned) -> Resumed | None:
    """Return the sources as they were where the last state was loaded; None if none was."""
    return loader._progress.resumed  # noqa: SLF001 - of this module


def first_step(loader: Positioned) -> int:
    """Return the first step whose records are known: 0, or the one at which the batches last changed."""
    return loader._progress.anchor.step  # noqa: SLF001 - of this module


def position_of(loader: Positioned, step: int) -> int:
    """Return the position in the order at which a batch begins, over all ranks.

    Where each batch is full it is ``step`` times the batch; a run that ends has a short last batch.

    Args:
        loader: a loader over a dataset.
        step: the index of the batch, as of ``Loader.locate``.

    Raises:
        InvalidArgument: a step from before, or one that never comes; or the loader is over a stream.

    Example:
        >>> import seekable as sk
        >>> loader = sk.Loader(sk.from_sequence(range(10)), batch_size=4)
        >>> [position_of(loader, step) for step in range(5)]
        [0, 4, 8, 10, 14]
    """
    progress = loader._progress  # noqa: SLF001 - of this module
    if not isinstance(progress.state.pipeline, Node):
        raise InvalidArgument("the items of a stream have no positions before they are made")
    return progress.cursor_of(checked_count("step", step, least=0)).position


def step_of(loader: Positioned, position: int) -> int | None:
    """Return the step that a position is in; None where it is not known, or never comes.

    Args:
        loader: a loader over a dataset.
        position: the position on the endless axis of the dataset.

    Example:
        >>> import seekable as sk
        >>> loader = sk.Loader(sk.from_sequence(range(10)), batch_size=4, end="drop")
        >>> [step_of(loader, position) for position in (3, 4, 8, 10)]
        [0, 1, None, 2]
    """
    progress = loader._progress  # noqa: SLF001 - of this module
    found = step_plan.comings(progress.steps, progress.anchor, np.array([position], dtype=np.int64))
    return found[0].step if found and position >= progress.anchor.position else None


def regular_step(loader: Positioned, position: int) -> int:
    """Return the step that has a position, where all batches from position 0 on are whole.

    Example:
        >>> import seekable as sk
        >>> loader = sk.Loader(sk.from_sequence(range(10)), global_batch_size=[(0, 2), (3, 4)])
        >>> [regular_step(loader, position) for position in (0, 3, 6, 13, 14)]
        [0, 1, 3, 4, 5]
    """
    return loader._progress.steps.whole_batches(0, position)  # noqa: SLF001 - of this module


def sizes_of(loader: Positioned) -> int | list[tuple[int, int]]:
    """Return the records of a batch over all ranks, as ``global_batch_size=`` takes them.

    Example:
        >>> import seekable as sk
        >>> loader = sk.Loader(sk.from_sequence(range(10)), global_batch_size=[(0, 2), (3, 4)])
        >>> sizes_of(loader), size_at(loader, 5)
        ([(0, 2), (3, 4)], 4)
    """
    batch = loader._progress.steps.batch  # noqa: SLF001 - of this module
    return batch if isinstance(batch, int) else batch.pairs


def size_at(loader: Positioned, step: int) -> int:
    """Return the records of a step's batch over all ranks, where it is whole."""
    return loader._progress.steps.size_at(step)  # noqa: SLF001 - of this module


def _face(pipeline: Node | Stream) -> Dataset | Stream:
    """Return the public object of a pipeline."""
    return Dataset(pipeline) if isinstance(pipeline, Node) else pipeline


def _nothing() -> None:
    """Return None: there is no live iterator."""


def _has_sample_index(document: Mapping[str, Any]) -> bool:
    """Return True for a checkpoint with the number of samples delivered, and nothing else to resume from.

    Example:
        >>> _has_sample_index({"sample_index": 6}), _has_sample_index({"seekable": 1, "sample_index": 6})
        (True, False)
    """
    if not hasattr(document, "get") or has_row_offsets(document):
        return False
    return "seekable" not in document and document.get("sample_index") is not None


def _state_after(progress: RunProgress, index: int) -> dict[str, Any]:
    """Return the state of a run after some samples, counted over all ranks and runs.

    Raises:
        InvalidArgument: ``index`` is not an integer of at least 0 and below 2**63.
        OutOfRange: the stream has fewer items in a run.
    """
    index = checked_count("sample_index", index, least=0)
    if index >= POSITIONS:
        raise InvalidArgument(f"sample_index must be below 2**63, as positions are (got {index})")
    pipeline = progress.state.pipeline
    if isinstance(pipeline, Node):
        return progress.document(_cursor_after(progress.steps, index))
    run = iter(pipeline)
    for count in range(index):
        try:
            next(run)
        except StopIteration:
            message = f"the stream has {count:,} items in a run, and the sample index is {index:,}"
            raise OutOfRange(message) from None
    state = StreamState.parse(run.state_dict())
    began = 0 if progress.steps.notes_began else None
    return structs.replace(state, step=progress.steps.whole_batches(0, index), began=began).document()


def _cursor_after(steps: Steps, count: int) -> StepCursor:
    """Return the cursor of a loader after ``count`` records of all ranks."""
    if not steps.total:
        return StepCursor(steps.whole_batches(0, count), 0, count)
    runs, rest = divmod(count, steps.total)
    if count and not rest:
        # After the last record of a run, and before its end was seen.
        runs, rest = runs - 1, steps.total
    run = steps.run_number(runs)
    return StepCursor(run.step + steps.batches(run.step, rest), run.epoch, count, run.step)
