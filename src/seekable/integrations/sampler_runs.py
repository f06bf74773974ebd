"""The runs of a batch sampler: lists of positions, and the state after any number of them.

A torch loader requests batches from its sampler before it delivers them, and does not report deliveries. So a
sampler has two positions: the start of its present iterator, and the batch that was requested last.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, final

from seekable.dataset.position import Position, Positions
from seekable.errors import DeliveryUnknown, InvalidArgument, StoppedIterator
from seekable.loader.steps import Cursor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seekable.loader.loader import Loader
    from seekable.loader.steps import Steps

__all__ = ["MOVED", "SamplerRuns", "StatefulBatches"]

_MOST_BATCHES = 256
"""The most batches whose positions are computed at once: 8,192 positions in batches of 32."""

_LEFT = (
    "a run over data without an end was left, and it is not known how many of its {count} requested batches "
    "were delivered: load the state after the last of these, state_dict(delivered=count), or bound runs with "
    "steps="
)
MOVED = (
    "this iterator was ended by a later iter() over the batch sampler, or because the sampler was moved by "
    "load_state_dict(), skip_batches() or set_epoch(): call iter() again"
)


@final
class SamplerRuns:
    """The batches of one run after another, and how many of the present run were requested.

    Args:
        loader: delivers nothing; its cursor is the start of the present iterator.
        steps: how the loader cuts its dataset into runs and batches.
        single: give the one position of each batch instead of a list.

    Example:
        >>> import seekable as sk
        >>> from seekable.loader.steps import Steps
        >>> steps = Steps(size=3, epochs=1, batch=2, end="short", limit=None, rank=0, world_size=1)
        >>> runs = SamplerRuns(sk.Loader(sk.from_sequence("abc"), batch_size=2), steps, single=False)
        >>> [*runs.begin()], [*runs.begin()]
        ([[Position(0), Position(1)], [Position(2)]], [[Position(3), Position(4)], [Position(5)]])
        >>> runs.state_after(1, rows=False)["position"]
        5
    """

    def __init__(self, loader: Loader, steps: Steps, *, single: bool) -> None:
        self._loader, self._steps, self._single = loader, steps, single
        self.requested = 0
        """The number of batches that the present iterator has given."""
        self.delivered: int | None = None
        """The number of them that were delivered; None while nothing counts these."""
        self.is_exhausted = False
        """True if the end of the present run was requested."""
        self.generation = 0
        """Grows with each iterator and each move; an iterator of an earlier generation is stopped."""

    def __len__(self) -> int:
        """Return the number of batches of a whole run.

        Raises:
            EndlessDataset: a run has no end.
        """
        return len(self._loader)

    @property
    def of_state(self) -> Any:
        """The pipeline that states belong to."""
        return self._loader.of_state

    @property
    def epoch(self) -> int:
        """The first epoch of the present run; of the next one if this one is exhausted and not counted."""
        is_over = self.is_exhausted and self.delivered is None
        return self._loader.epoch + (self._steps.epochs or 0) * is_over

    def begin(self) -> Iterator[Any]:
        """Return an iterator over the next run, or over the present one if nothing of it was delivered.

        Raises:
            StoppedIterator: from the iterator, a later one was begun, or the sampler was moved.
            DeliveryUnknown: from the iterator, a run over data without an end was left before.
        """
        self._leave()
        self.delivered = None
        self.generation += 1
        return self._requests(self.generation)

    def end(self) -> None:
        """Go to the start of the next run, if anything of this one was requested.

        The batches of this run that are left count as skipped. Without an end and without a count of
        deliveries it is not known where the next run starts: then nothing changes.
        """
        if not (self.requested or self.is_exhausted):
            return
        count = self._steps.left(self._start) if self.delivered is None else self.delivered
        if count is None:
            return
        self._loader.skip_batches(count)
        state = self._loader.state_dict(rows=False)
        if self._steps.total is not None:
            self._loader.set_epoch(state["epoch"] + (self._steps.epochs or 0))
        elif self._steps.limit is not None:
            self._loader.load_state_dict({**state, "began": state["step"]})
        self._restart()

    def state_after(self, count: int, *, rows: bool) -> dict[str, Any]:
        """Return the state ``count`` batches after the start of the present iterator.

        Raises:
            InvalidArgument: fewer batches were requested.
        """
        if count > self.requested:
            message = (
                f"delivered must be at most {self.requested}, the number of batches that were requested "
                f"since the present iterator began (got {count})"
            )
            raise InvalidArgument(message)
        start = self._loader.state_dict(rows=False)
        self._loader.skip_batches(count)
        try:
            return self._loader.state_dict(rows=rows)
        finally:
            self._loader.load_state_dict(start)

    def load(self, state: Mapping[str, Any], *, skip: int = 0) -> None:
        """Go to where a state was taken, or ``skip`` batches further.

        Raises:
            StateMismatch: the state is of another pipeline, or of other data.
            CorruptState: the document is not a state.
        """
        self._loader.load_state_dict(state)
        self._loader.skip_batches(skip)
        self._restart()

    def set_run(self, number: int) -> None:
        """Let run ``number`` come next; nothing changes if it does anyway.

        Raises:
            InvalidArgument: a loaded state lies in the middle of another run.
        """
        self._leave()
        before = self._loader.state_dict(rows=False)
        self._loader.sampler.set_epoch(number)
        if before != self._loader.state_dict(rows=False):
            self._restart()

    @property
    def _start(self) -> Cursor:
        """The cursor at which the present iterator begins."""
        state = self._loader.state_dict(rows=False)
        return Cursor(state["step"], state["epoch"], state["position"], state.get("began", 0))

    def _leave(self) -> None:
        """Go to the next run, or to the start of this one if it is counted and nothing was delivered."""
        if self.delivered == 0:
            self._restart()
        else:
            self.end()

    def _restart(self) -> None:
        """Stop the present iterator: the next one begins at the loader's cursor."""
        self.requested, self.delivered, self.is_exhausted = 0, None, False
        self.generation += 1

    def _requests(self, generation: int) -> Iterator[Any]:
        """Yield the batches of the present run, and count them as requested."""
        if generation == self.generation and (self.requested or self.is_exhausted):
            raise DeliveryUnknown(_LEFT.format(count=self.requested))
        cursor = self._start
        while (left := self._steps.left(cursor)) != 0:
            count = _MOST_BATCHES if left is None else min(left, _MOST_BATCHES)
            places, bounds = self._steps.positions(cursor, count, all_ranks=False)
            for start, stop in itertools.pairwise(bounds.tolist()):
                if generation != self.generation:
                    raise StoppedIterator(MOVED)
                self.requested += 1
                positions = Positions(map(Position, places[start:stop].tolist()))
                yield positions[0] if self._single else positions
            cursor = self._steps.after(cursor, count)
        self.is_exhausted = self.is_exhausted or generation == self.generation


@final
class StatefulBatches:
    """The batches of a ``BatchSampler`` for torchdata's ``StatefulDataLoader``, from ``sampler.stateful()``.

    The loader takes the state of the iterator over its batch sampler with each batch that it requests, and
    returns the one of the batch that it has delivered last: ``loader.state_dict()`` is exact. These batches
    have no other state, so that no other loader can count what it requested as delivered.
    """

    def __init__(self, runs: SamplerRuns) -> None:
        self._runs = runs

    def __len__(self) -> int:
        """Return the number of batches of a whole run.

        Raises:
            EndlessDataset: a run has no end.
        """
        return len(self._runs)

    def __iter__(self) -> _StatefulRun:
        """Begin the next run, or go on where a loaded state was taken."""
        return _StatefulRun(self._runs)

    def set_epoch(self, epoch: int) -> None:
        """Let the next run be number ``epoch``, as ``BatchSampler.set_epoch`` does."""
        self._runs.set_run(epoch)


@final
class _StatefulRun:
    """An iterator over the batches of one run; its state is that after the batches that it has given."""

    def __init__(self, runs: SamplerRuns) -> None:
        self._runs, self._batches = runs, runs.begin()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._batches)

    def state_dict(self) -> dict[str, Any]:
        """Return the state after the batches given; after the end, that of the start of the next run."""
        if self._runs.is_exhausted:
            self._runs.end()
        return self._runs.state_after(self._runs.requested, rows=False)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where a state was taken.

        Raises:
            StateMismatch: the state is of another pipeline, or of other data.
            CorruptState: the document is not a state.
        """
        self._runs.load(state)
        self._batches = self._runs.begin()
