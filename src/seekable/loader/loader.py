"""Batches of a dataset, in its order, resumed at any point."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Literal, Self

from seekable.dataset.arguments import checked_count
from seekable.dataset.base import Dataset
from seekable.errors import CorruptState, EndlessDataset, InvalidArgument, StateMismatch, WrongType
from seekable.loader.arguments import checked_batch, checked_epochs
from seekable.loader.collate import collate as default_collate
from seekable.loader.produce import Made, produce
from seekable.loader.ranks import checked_rank
from seekable.loader.run import Run
from seekable.loader.steps import Cursor, End, Steps
from seekable.state.difference import difference
from seekable.state.document import RunState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import TracebackType

__all__ = ["Loader"]

_ENDS = ("short", "drop", "pad")


class Loader:
    """Batches of a dataset; one ``iter(loader)`` is a run of ``epochs`` epochs, the next one the next run.

    Args:
        dataset: what to deliver, in its order.
        batch_size: records in a batch, while there is one rank; None delivers the records themselves.
        global_batch_size: records in a batch over all ranks; a multiple of ``world_size``.
        rank: which of ``world_size`` processes this one is.
        world_size: how many processes share the batches.
        collate: makes a batch of a list of records; by default dicts and tuples by their parts, numbers and
            arrays stacked (``seekable.loader.collate``).
        end: the last batch of a run is ``"short"``, is left out (``"drop"``), or is filled from the start of
            the run (``"pad"``).
        epochs: epochs of a run: 1, or without end where the dataset is.
        steps: the most batches of a run; what bounds a run over an endless dataset.
        prefetch: batches made ahead by a thread; 0 makes each when it is asked for.

    Raises:
        AmbiguousRank: the environment speaks of several ranks and ``rank`` was left out.
        InvalidArgument: an argument breaks a rule.

    Example:
        >>> import seekable as sk
        >>> loader = sk.Loader(sk.from_sequence(range(5)).shuffle(seed=0), batch_size=2, collate=list)
        >>> run = iter(loader)
        >>> first, state = next(run), loader.state_dict()
        >>> rest = list(run)
        >>> again = sk.Loader(sk.from_sequence(range(5)).shuffle(seed=0), batch_size=2, collate=list)
        >>> again.load_state_dict(state)
        >>> list(again) == rest
        True
    """

    def __init__(  # noqa: PLR0913 - the one public place that owns these defaults
        self,
        dataset: Dataset,
        *,
        batch_size: int | None = 1,
        global_batch_size: int | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        collate: Callable[[list[Any]], Any] = default_collate,
        end: End = "short",
        epochs: int | None = None,
        steps: int | None = None,
        prefetch: int = 2,
    ) -> None:
        if not isinstance(dataset, Dataset):
            message = f"a Loader takes a Dataset (got {type(dataset).__name__}): wrap it in sk.from_sequence"
            raise WrongType(message)
        if end not in _ENDS:
            message = f"end must be one of {', '.join(map(repr, _ENDS))} (got {end!r})"
            raise InvalidArgument(message)
        rank, world_size = checked_rank(rank, world_size)
        self._dataset = dataset
        self._collate = None if batch_size is None and global_batch_size is None else collate
        self._prefetch = checked_count("prefetch", prefetch, least=0)
        self._steps = Steps(
            size=dataset.size,
            epochs=checked_epochs(dataset, epochs),
            batch=checked_batch(batch_size, global_batch_size, world_size),
            end=end,
            limit=None if steps is None else checked_count("steps", steps, least=1),
            rank=rank,
            world_size=world_size,
        )
        self._cursor = Cursor()
        self._steps.check_short(self._cursor)
        self._anchor = self._cursor
        self._begins_here = True
        self._live: Callable[[], Run | None] = _nothing
        self._delivered = {"batches": 0, "records": 0, "skipped": 0}
        self._waited_seconds = 0.0

    @property
    def dataset(self) -> Dataset:
        """What is delivered."""
        return self._dataset

    @property
    def step(self) -> int:
        """Batches delivered and skipped so far."""
        return self._cursor.step

    @property
    def epoch(self) -> int:
        """The first epoch of the present run; it moves on when the run's end was seen."""
        return self._cursor.epoch

    @property
    def rank(self) -> int:
        """Which of the ranks this one is."""
        return self._steps.rank

    @property
    def world_size(self) -> int:
        """How many ranks share the batches."""
        return self._steps.world_size

    def __len__(self) -> int:
        """Return the number of batches of a whole run.

        Raises:
            EndlessDataset: a run has no end.
        """
        if self._steps.count is None:
            message = "a run over an endless dataset has no length: bound it with steps="
            raise EndlessDataset(message)
        return self._steps.count

    def __iter__(self) -> Iterator[Any]:
        """Begin the next run, or go on where a loaded state was taken; an earlier iterator ends."""
        self.close()
        if not self._begins_here:
            self._move(self._steps.next_run(self._cursor))
        run = Run(self)
        self._live = weakref.ref(run)
        return run

    def state_dict(self) -> dict[str, Any]:
        """Return the state after the batches delivered so far: a small, new, JSON-safe dict.

        Batches that were made ahead do not count. The state loads on any number of ranks, with any batch
        size.
        """
        cursor = self._cursor
        return RunState(
            fingerprint=self._dataset.fingerprint_at(cursor.position),
            step=cursor.step,
            epoch=cursor.epoch,
            position=cursor.position,
            began=None if self._steps.limit is None else cursor.began,
        ).document()

    def load_state_dict(self, state: Mapping[str, Any], *, resume: Literal["exact"] = "exact") -> None:
        """Go on where a state was taken: the next batches are those that would have followed.

        Args:
            state: what ``state_dict`` returned, also after a JSON round trip; it is not changed. An empty
                one changes nothing. A live iterator moves there too.
            resume: ``"exact"``, the order continues record for record.

        Raises:
            StateMismatch: the state is of another pipeline, or of other data.
            CorruptState: the document is not a state.
        """
        if resume != "exact":
            message = f"resume must be 'exact' (got {resume!r})"
            raise InvalidArgument(message)
        if state:
            self.load(RunState.parse(state), None)

    def skip_batches(self, count: int) -> None:
        """Leave out the next batches, at most to the end of the run; they count as steps.

        After a loss spike, say.
        """
        count = checked_count("count", count, least=0)
        if not self._begins_here and self._live() is None:
            self._move(self._steps.next_run(self._cursor))
        after = self._steps.after(self._cursor, count)
        self._delivered["skipped"] += after.step - self._cursor.step
        self._cursor = after
        self._restart_live()

    def set_epoch(self, epoch: int) -> None:
        """Let the next run begin with an epoch; where that is the one to go on in, nothing changes.

        Raises:
            EndlessDataset: an endless dataset has no epochs but 0.
        """
        epoch = checked_count("epoch", epoch, least=0)
        if self._steps.total is None and self._steps.size is None and epoch:
            message = f"an endless dataset has no epochs to set (got epoch={epoch})"
            raise EndlessDataset(message)
        if self._steps.size is None or (self._begins_here and epoch == self._cursor.epoch):
            return
        self.close()
        self._move(Cursor(self._cursor.step, epoch, self._steps.start_of(epoch), self._cursor.step))

    def locate(self, *, step: int) -> list[Any]:
        """Return where every record of a batch lies, over all ranks.

        Args:
            step: the batch's number, from 0: the next one is ``loader.step``. Steps of this and of coming
                runs can be asked for, and those gone by since the batch size last changed, an epoch was set
                or a run was broken off.

        Returns:
            A ``Location`` for each record of the batch, in order.

        Raises:
            InvalidArgument: a step from before, or one that never comes.
        """
        step = checked_count("step", step, least=0)
        if step < self._anchor.step:
            message = f"step must be at least {self._anchor.step}, where the batches changed (got {step})"
            raise InvalidArgument(message)
        cursor = self._steps.ahead(self._anchor, step)
        positions, _ = self._steps.positions(cursor, 1, all_ranks=True)
        return self._dataset.plan(positions).locate()

    def report(self) -> dict[str, Any]:
        """Return what this loader has delivered since it was made.

        Returns:
            ``batches`` and ``records`` (this rank's) delivered, batches ``skipped``, and the
            ``wait_seconds`` that were spent waiting for batches that were not ready.
        """
        run = self._live()
        waited = self._waited_seconds + (run.waited_seconds if run else 0.0)
        return {**self._delivered, "wait_seconds": waited}

    def close(self) -> None:
        """End the present iterator and its thread; the state stays."""
        run = self._live()
        if run is not None:
            run.stop()
            self._waited_seconds += run.waited_seconds
        self._live = _nothing

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        """Show the batches and the dataset."""
        steps = self._steps
        ranks = "" if steps.world_size == 1 else f", rank {steps.rank} of {steps.world_size}"
        return f"<Loader at step {self.step}: batches of {steps.batch}{ranks}, of {self._dataset!r}>"

    def source(self) -> Iterator[Made]:
        """Return the batches from the present cursor to the end of its run."""
        return produce(self._dataset, self._steps, self._cursor, self._collate)

    @property
    def prefetch(self) -> int:
        """How many batches are made ahead."""
        return self._prefetch

    def deliver(self, made: Made) -> None:
        """Count a batch as delivered."""
        self._cursor = made.after
        self._begins_here = False
        self._delivered["batches"] += 1
        self._delivered["records"] += made.records

    def end_run(self) -> None:
        """Move on to the next run, because the end of this one was seen."""
        self.close()
        self._cursor = self._steps.next_run(self._cursor)
        self._begins_here = True

    def load(self, state: RunState, description: dict[str, Any] | None) -> None:
        """Go on where a checked state was taken; its pipeline's description makes a mismatch readable."""
        _check_pipeline(self._dataset, state, description)
        if state.position < self._steps.start_of(state.epoch):
            message = (
                f"a state lies in its epoch or later (got position {state.position}, epoch {state.epoch})"
            )
            raise CorruptState(message)
        cursor = Cursor(state.step, state.epoch, state.position, state.began or 0)
        self._steps.check_short(cursor)
        self._cursor = cursor
        self._begins_here = True
        self._anchor = Cursor() if self._is_regular(cursor) else cursor
        self._restart_live()

    def _is_regular(self, cursor: Cursor) -> bool:
        """Tell whether the present batches lead from the very start to a cursor."""
        steps, start = self._steps, Cursor()
        if not cursor.step or steps.count == 0:
            return (cursor.epoch, cursor.position) == (0, 0)
        reached = (steps.ahead(start, cursor.step), steps.after(steps.ahead(start, cursor.step - 1), 1))
        return (cursor.epoch, cursor.position) in [(at.epoch, at.position) for at in reached]

    def _move(self, cursor: Cursor) -> None:
        """Begin elsewhere than where the batches so far lead to."""
        self._cursor = self._anchor = cursor
        self._begins_here = True

    def _restart_live(self) -> None:
        run = self._live()
        if run is not None:
            self._waited_seconds += run.waited_seconds
            run.restart()


def _nothing() -> None:
    """Stand for no live run."""


def _check_pipeline(dataset: Dataset, state: RunState, description: dict[str, Any] | None) -> None:
    present = dataset.fingerprint_at(state.position)
    if state.fingerprint == present:
        return
    changes = difference(description, dataset.describe(state.position)) if description else ""
    message = (
        f"the state is of another pipeline: its fingerprint is {state.fingerprint}, this one's is {present}. "
        f"{changes or 'With sk.save_state and sk.load_state the message says what changed.'}"
    )
    raise StateMismatch(message)
