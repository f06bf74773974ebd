"""The iterator that ``iter(loader)`` returns, and the object by which trainers announce passes."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, final

from seekable._lazy import lazy
from seekable._typing import Value
from seekable.errors import ForkUnsafe, StoppedIterator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seekable.loader.batches import MadeBatch
    from seekable.loader.producers import Producer
    from seekable.loader.run_progress import RunProgress
    from seekable.nodes import endless_run
else:
    endless_run = lazy("seekable.nodes.endless_run")

__all__ = ["NOT_RESTORED", "READ_AHEAD", "REPLACED", "BatchIterator", "EpochSetter"]

REPLACED = "this iterator was ended by a later iter(loader), by set_epoch() or by close()"

READ_AHEAD = (
    "this iterator had delivered batches before loader.sampler.set_epoch() announced a new pass, and no "
    "iter(loader) came since. A trainer that announces passes so reads ahead, as Lightning does of a loader "
    "without a length: its checkpoints would count a batch that it has not trained on, which a resumed run "
    "would lose. Give the loader a length with steps=, or set limit_train_batches= of Lightning's Trainer"
)

NOT_RESTORED = (
    "pass {number} over data without an end was announced, and this loader has delivered nothing and loaded "
    "no state, so that it would begin with the first record again. Lightning restores no loader from a "
    "checkpoint of the end of an epoch: resume from one of a step (every_n_train_steps=), or load its state "
    "before fit(), which is in checkpoint['loops']['fit_loop']['state_dict']['combined_loader']; and return "
    "the same loader each time, where loaders are asked for again"
)


@final
class BatchIterator:
    """Delivers the batches of one run, and counts each as delivered.

    Args:
        progress: the cursor of the loader, which moves with each batch.
        producer: makes the batches.
    """

    def __init__(self, progress: RunProgress, producer: Producer) -> None:
        self._progress, self._producer = progress, producer
        self._process = os.getpid()
        self._batches: Iterator[MadeBatch] = iter(())
        self._over: Exception | None = None
        """The reason why there is no next batch."""
        self._watch: endless_run.EndlessRunWatch | None = None
        """Looks at a run without an end."""
        if progress.steps.limit is None and progress.state.endless:
            self._watch = endless_run.EndlessRunWatch(progress.batches, progress.state.way_to_an_end)
        self.restart()

    def restart(self) -> None:
        """Drop the batches that were made ahead and go on at the cursor, unless the end was seen."""
        if not isinstance(self._over, StopIteration):
            self._open()
            self._over = None

    def stop(self, why: str) -> None:
        """End the production of batches; ``next`` raises ``StoppedIterator(why)`` from now on.

        An iterator at its end, or one that raised an error, goes on to raise that.
        """
        self._close()
        self._over = self._over or StoppedIterator(why)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if os.getpid() != self._process:
            message = "this iterator was made before a fork: call iter(loader) in the child"
            raise ForkUnsafe(message)
        if isinstance(self._over, StopIteration):
            raise StopIteration
        if self._over is not None:
            raise self._over
        if self._watch is not None and self._progress.batches >= self._watch.at:
            self._watch.look(self._progress.passes())
        began = time.perf_counter()
        try:
            batch = next(self._batches)
        except StopIteration:
            # A new one: the one that was raised holds frames, and with them all that is alive in these.
            self._over = StopIteration()
            self._progress.end()
            raise
        except Exception as error:
            # A generator that has raised an error would raise StopIteration from now on.
            self._over = error
            raise
        except BaseException:
            # An interrupt ends a generator, but not the run: the same batch comes next.
            if not getattr(self._batches, "outlives_interrupts", False):
                self._open()
            raise
        self._progress.deliver(batch, waited_seconds=time.perf_counter() - began)
        return batch.value

    def _open(self) -> None:
        self._close()
        progress = self._progress
        over = progress.is_over
        self._batches = iter(()) if over else self._producer.begin(progress.state, progress.cursor)

    def _close(self) -> None:
        close = getattr(self._batches, "close", None)
        if close is not None:
            close()


@final
class EpochSetter(Value, frozen=True):
    """The ``sampler`` of a loader, for trainers that count their own passes over the data.

    Such a trainer calls ``loader.sampler.set_epoch(k)`` before its pass ``k``, which is run ``k`` of the
    loader, of however many epochs.
    """

    _set_run: Callable[[int], None]

    def set_epoch(self, epoch: int) -> None:
        """Let run ``epoch`` come next; nothing changes if it does anyway.

        Runs over endless data follow one another whatever their number: a live iterator that has delivered
        something ends.

        Raises:
            InvalidArgument: ``epoch`` is not an integer of at least 0, or a loaded state lies within
                another run.
        """
        self._set_run(epoch)
