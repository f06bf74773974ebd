"""Batches of a dataset, in its order, resumed at any point."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from seekable._arguments import checked_count, checked_flag
from seekable.dataset.dataset import Dataset
from seekable.errors import InvalidArgument
from seekable.loader.arguments import checked_seconds, checked_steps
from seekable.loader.collate import collate as default_collate
from seekable.loader.course import Course
from seekable.loader.courses import course_of
from seekable.loader.makers import Making, WorkerType
from seekable.loader.plan import plan_step
from seekable.loader.resumable import Resumable
from seekable.loader.runs import Runs, RunSetter
from seekable.nodes.contract import Node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from seekable.loader.plan import StepPlan
    from seekable.loader.steps import End
    from seekable.stream.stream import Stream

__all__ = ["Loader"]


class Loader(Resumable[Course]):
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
        prefetch: batches made ahead by a thread, or by each worker; 0 makes each when it is asked for, with
            workers one each.
        max_holes: how many records may be holes (``sk.HOLE``), which are left out of batches and counted in
            ``report()``, before that is an error; None for any number.
        workers: how many processes make batches; 0 for none. Neither batches nor order depend on it.
        worker_type: ``"process"``, or ``"thread"`` where decoding lets other threads run.
        timeout: how many seconds to wait for a batch of a worker process; None for as long as it takes.
        restart_workers: whether a worker process that dies is replaced; no batch is lost or comes twice.
        prefetch_bytes: how many bytes, about, the batches that worker processes make ahead may have.

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
        dataset: Dataset | Stream,
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
        max_holes: int | None = None,
        workers: int = 0,
        worker_type: WorkerType = "process",
        timeout: float | None = None,
        restart_workers: bool = False,
        prefetch_bytes: int = 1 << 30,
    ) -> None:
        single = batch_size is None and global_batch_size is None
        how = Making(
            prefetch=checked_count("prefetch", prefetch, least=0),
            prefetch_bytes=checked_count("prefetch_bytes", prefetch_bytes, least=1),
            workers=checked_count("workers", workers, least=0),
            worker_type=worker_type,
            timeout=checked_seconds("timeout", timeout),
            restart=checked_flag("restart_workers", restart_workers),
        )
        self._course = course_of(
            dataset.node if isinstance(dataset, Dataset) else dataset,
            checked_steps(
                dataset,
                batch_size=batch_size,
                global_batch_size=global_batch_size,
                rank=rank,
                world_size=world_size,
                end=end,
                epochs=epochs,
                steps=steps,
            ),
            None if single else collate,
            how,
            max_holes=None if max_holes is None else checked_count("max_holes", max_holes, least=0),
        )
        self._runs = Runs(self._course)

    def __iter__(self) -> Iterator[Any]:
        """Begin the next run, or go on where a loaded state was taken; an earlier iterator ends."""
        return self._runs.begin()

    def set_epoch(self, epoch: int) -> None:
        """Let the next run begin with an epoch; where that is the one to go on in, nothing changes.

        An iterator that has delivered nothing yet moves along; another one ends, if anything changes.

        Raises:
            EndlessDataset: an endless dataset has no epochs but 0.
        """
        self._runs.set_epoch(epoch)

    @property
    def sampler(self) -> RunSetter:
        """What trainers look for: its ``set_epoch(k)`` lets the next run be the ``k``-th."""
        return RunSetter(self._runs)

    @property
    def batch_sampler(self) -> RunSetter:
        """The same as ``sampler``: some trainers look for the one, some for both."""
        return RunSetter(self._runs)

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
        return [record.place for record in self.plan(step=step).records]

    def plan(self, *, step: int) -> StepPlan:
        """Return which records make a batch, over all ranks: positions, ranks and places; nothing is read.

        Args:
            step: as of ``locate``.

        Raises:
            InvalidArgument: a step from before, or one that never comes.
        """
        step = checked_count("step", step, least=0)
        pipeline = self._course.dataset
        if not isinstance(pipeline, Node):
            message = (
                "which records make a step of a stream depends on what the records are: stream.locate(token) "
                "tells where an item came from"
            )
            raise InvalidArgument(message)
        return plan_step(pipeline, self._course.steps, self._course.cursor_of(step))

    def report(self) -> dict[str, Any]:
        """Return what this loader has delivered since it was made.

        Returns:
            ``batches`` and ``records`` (this rank's) delivered, the ``holes`` that were left out of
            them, batches ``skipped``, and the ``wait_seconds`` spent waiting for batches to be ready.
        """
        return {**self._course.counts, "wait_seconds": self._course.waited_seconds}

    def close(self) -> None:
        """End the present iterator, its thread and the workers; the state stays."""
        self._runs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        """Show the batches and the dataset."""
        steps = self._course.steps
        ranks = "" if steps.world_size == 1 else f", rank {steps.rank} of {steps.world_size}"
        return f"<Loader at step {self.step}: batches of {steps.batch}{ranks}, of {self.dataset!r}>"
