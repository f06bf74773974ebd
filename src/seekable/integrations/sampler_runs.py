"""The runs of a batch sampler: lists of positions, and a state after each list.

A torch loader requests batches from its sampler before it delivers them, and does not report deliveries. So a
sampler has two positions: the start of its present iterator, and the batch that was requested last. The batch
that was delivered last lies between, and is known in some cases only.
"""

from __future__ import annotations

import itertools
import sys
from threading import get_ident
from typing import TYPE_CHECKING, Any, final

from seekable.dataset.position import NotedPosition, Position, Positions
from seekable.errors import DeliveryUnknown, InvalidArgument, StateMismatch, StoppedIterator
from seekable.loader.positioned import go_to_run, move_silently
from seekable.loader.steps import StepCursor
from seekable.state.document import WITH_JOURNAL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from torch.utils.data import Sampler

    from seekable.loader.loader import Loader
    from seekable.loader.steps import Steps

__all__ = ["MOVED", "RunIterator", "SamplerRuns"]

_MOST_BATCHES = 256
"""The most batches whose positions are computed at once: 8,192 positions in batches of 32."""

_MOST_SAMPLERS = 8
"""The most samplers around a batch sampler that are looked through."""

_UNKNOWN = (
    "{count} batches were requested from this sampler, and it is not known how many of them were delivered. "
    "Count the batches that you train on, and call state_dict(delivered=count); or read a torch DataLoader "
    "through sampler.counting(loader), which counts them; or give the sampler to torchdata's "
    "StatefulDataLoader, and save the state of that loader; or read from sk.Loader"
)
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
        self._last: Positions | NotedPosition | None = None
        self._taken: int | None = None
        self._taker: int | None = None
        self._next_run: int | None = None

    def __len__(self) -> int:
        """Return the number of batches of a whole run.

        Raises:
            EndlessDataset: a run has no end.
        """
        count = self._steps.count(self.place)
        return len(self._loader) if count is None else count

    @property
    def epoch(self) -> int:
        """The first epoch of the present run; of the next one if this one is exhausted and not counted."""
        is_over = self.is_exhausted and self.delivered is None
        return self._loader.epoch + (self._steps.epochs or 0) * is_over

    @property
    def place(self) -> StepCursor:
        """The start of the present iterator; of the next one if this one is exhausted and not counted."""
        start, steps = self._start, self._steps
        if not self.is_exhausted or self.delivered is not None:
            return start
        return steps.next_run(steps.after(start, steps.left(start) or 0))

    def begin(self) -> Iterator[Any]:
        """Return an iterator over the next run, or over the present one if nothing of it was delivered.

        Raises:
            StoppedIterator: from the iterator, a later one was begun, or the sampler was moved.
            DeliveryUnknown: from the iterator, a run over data without an end was left before.
        """
        number = self._next_run
        self._leave()
        if number is not None:
            go_to_run(self._loader, number)
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
            del state["check"]  # another state than the one that was taken
            move_silently(self._loader, {**state, "began": state["step"]})
        self._restart()

    def requested_state(self) -> dict[str, Any]:
        """Return the state after the batches requested, and note that a loader has taken it here."""
        if self.is_exhausted:
            self.end()
        self._taken, self._taker = self.requested, get_ident()
        return self.state_after(self.requested, rows=False)

    def delivered_state(self, sampler: Sampler[Any], *, rows: bool) -> dict[str, Any]:
        """Return the state after the batches delivered.

        Args:
            sampler: the sampler of these runs.
            rows: add the description of the pipeline.

        Raises:
            DeliveryUnknown: the number of delivered batches is not known.
        """
        count = self._known(sampler)
        if count is None:
            raise DeliveryUnknown(_UNKNOWN.format(count=self.requested))
        if self.delivered is None and self.is_exhausted and count == self.requested:
            self.end()
            count = self.requested
        return self.state_after(count, rows=rows)

    def _known(self, sampler: Sampler[Any]) -> int | None:
        """Return the number of delivered batches, or None.

        The number is known

        - while batches are counted;
        - to torchdata with workers, which calls this once, right after it took the state of the iterator: it
          needs the state after the batches requested, and returns it when the last of them was delivered;
        - while the calling thread has read the last batch itself. A loader of Accelerate has then read one
          batch more than it has delivered: one that keeps a state took it just before that batch.
        """
        taker, self._taker = self._taker, None
        if self.delivered is not None or not self.requested:
            return self.delivered or 0
        if taker == get_ident() and self._taken == self.requested:
            return self.requested
        if self._last is None or self._last.reader != get_ident():
            return None
        loader = _prepared_loader(sampler)
        if loader is None:
            return self.requested
        return self._taken or 0 if hasattr(loader.base_dataloader, "state_dict") else None

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
            move_silently(self._loader, start)

    def load(self, state: Mapping[str, Any]) -> None:
        """Go to where a state was taken.

        Raises:
            StateMismatch: the state is of another pipeline, or of other data; or its run has a journal.
            CorruptState: the document is not a state.
        """
        if state.get("seekable") == WITH_JOURNAL:
            raise StateMismatch(
                "the run of this state was steered, or leaves records out (its 'journal'), and a "
                "BatchSampler gives positions of the dataset as it was declared: go on with sk.Loader"
            )
        self._loader.load_state_dict(state)
        self._restart()

    def skip_from(self, state: Mapping[str, Any], count: int) -> None:
        """Go to a state of these runs, and ``count`` batches further."""
        move_silently(self._loader, state)
        self._loader.skip_batches(count)
        self._restart()

    def set_run(self, number: int) -> None:
        """Let run ``number`` come next; nothing changes if it does anyway.

        An iterator of this run goes on if a loader keeps its state: Accelerate sets the number of a run after
        torchdata has begun it to take its state.

        Raises:
            InvalidArgument: a loaded state lies in the middle of another run.
        """
        if self._is_kept and self._loader.epoch == number * (self._steps.epochs or 0):
            self._next_run = number
            return
        if self.delivered != 0:
            self.end()
        before = self._loader.state_dict(rows=False)
        go_to_run(self._loader, number)
        if before != self._loader.state_dict(rows=False):
            self._restart()

    @property
    def _is_kept(self) -> bool:
        """True if a loader keeps the state of the present iterator, and workers may read what it requests."""
        is_read = self._last is None or self._last.reader is not None
        return not (self._taken is None or is_read or self.is_exhausted)

    @property
    def _start(self) -> StepCursor:
        """The cursor at which the present iterator begins."""
        state = self._loader.state_dict(rows=False)
        return StepCursor(state["step"], state["epoch"], state["position"], state.get("began", 0))

    def _leave(self) -> None:
        """Go to the next run, or to the start of this one if it is counted and nothing was delivered."""
        if self.delivered == 0:
            self._restart()
        else:
            self.end()

    def _restart(self) -> None:
        """Stop the present iterator: the next one begins at the loader's cursor."""
        self.requested, self.delivered, self.is_exhausted = 0, None, False
        self._last = self._taken = self._taker = self._next_run = None
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
                numbers = places[start:stop].tolist()
                batch = NotedPosition(numbers[0]) if self._single else Positions(map(Position, numbers))
                self._last = batch
                yield batch
            cursor = self._steps.after(cursor, count)
        self.is_exhausted = self.is_exhausted or generation == self.generation


@final
class RunIterator:
    """An iterator over the batches of one run, with a state for loaders that keep one themselves.

    torchdata's ``StatefulDataLoader`` takes this state with each batch that it requests from workers, and
    returns the one of the batch that it has delivered last.
    """

    def __init__(self, runs: SamplerRuns) -> None:
        self._runs, self._batches = runs, runs.begin()

    def __iter__(self) -> RunIterator:
        """Return this object, which is its own iterator."""
        return self

    def __next__(self) -> Any:
        """Return the positions of the next batch.

        Raises:
            StoppedIterator: a later iterator was begun, or the sampler was moved.
            DeliveryUnknown: a run over data without an end was left before.
        """
        return next(self._batches)

    def state_dict(self) -> dict[str, Any]:
        """Return the state after the batches requested; after the end, that of the start of the next run."""
        return self._runs.requested_state()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where a state was taken.

        Raises:
            StateMismatch: the state is of another pipeline, or of other data.
            CorruptState: the document is not a state.
        """
        self._runs.load(state)
        self._batches = self._runs.begin()


def _prepared_loader(sampler: Sampler[Any]) -> Any:
    """Return the loader of Accelerate that is read now and requests from a sampler; None if there is none.

    Such a loader reads one batch ahead of what it delivers, in the same thread.
    """
    accelerate = sys.modules.get("accelerate.state")
    if accelerate is None:
        return None
    loaders = accelerate.GradientState().dataloader_references
    return next((loader for loader in loaders if _requests_from(loader, sampler)), None)


def _requests_from(loader: Any, sampler: Sampler[Any]) -> bool:
    """Return True if a loader requests from a sampler, directly or through samplers around it."""
    for _ in range(_MOST_SAMPLERS):
        if loader is None or loader is sampler:
            break
        around = getattr(loader, "batch_sampler", None)
        loader = getattr(loader, "sampler", None) if around is None else around
    return loader is sampler
