"""A run that its owner changes while it runs: the journal of a loader, and what adds entries to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from seekable._arguments import checked_count
from seekable._lazy import lazy
from seekable.errors import CorruptState, InvalidArgument, WrongType
from seekable.loader.positioned import Positioned
from seekable.nodes.node import Node
from seekable.state.journal import Steer, added, parse_journal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seekable.loader.run_progress import RunProgress
    from seekable.nodes import steer as steers
    from seekable.nodes.mix import Weights
    from seekable.state.journal import Entry, Journal
else:
    steers = lazy("seekable.nodes.steer")

__all__ = ["Steerable"]


class Steerable(Positioned):
    """The base of ``Loader`` that knows what was changed in its run."""

    def __init__(
        self, progress: RunProgress, *, single: bool, journal: Iterable[Entry | Mapping[str, Any]] | None
    ) -> None:
        """Begin with a journal, which is checked."""
        super().__init__(progress, single=single)
        if journal is not None:
            progress.state.journal = _checked_journal(progress, journal)

    @property
    def journal(self) -> tuple[Any, ...]:
        """What was changed in the run, as frozen entries in the order of their steps.

        An entry of ``steer`` has the step ``at``, the integer ``weights`` in the order of what is mixed, the
        number of the ``mixture``, and the ``position`` at which the step began, None until it has come. Give
        them to another loader, ``sk.Loader(..., journal=loader.journal)``, for the same run.
        """
        return self._progress.state.journal

    def steer(self, weights: Weights, *, at: int | None = None, mixture: str | int | None = None) -> None:
        """Give a mixture other weights from a step on, while the run goes on.

        Nothing changes in the steps before. Each source goes on in its order, and the new weights count from
        what was delivered. The loader notes it in its ``journal``, which its states carry. Batches that were
        made ahead are made again. On several ranks call it on each with the same arguments.

        Args:
            weights: a mapping from the names of what is mixed, or a list in its order, as of ``sk.mix``.
            at: the first step with these weights. By default it is the next batch that was not delivered; on
                several ranks it must be said.
            mixture: which mixture, where there are several: the name that it has in another one (names of
                several are joined by dots), or its number, from the top of the pipeline. It must be without
                end (``stop="never"``).

        Raises:
            InvalidArgument: there is no such mixture; or weights break a rule; or ``at`` is a step that was
                delivered, or never comes, or is missing on several ranks.
            WrongType: an argument has a wrong type.

        Example:
            >>> import seekable as sk
            >>> words = {"web": sk.from_sequence("abcdef"), "code": sk.from_sequence("123456")}
            >>> loader = sk.Loader(sk.mix(words, weights=[1, 0], seed=0, stop="never"), batch_size=3)
            >>> batches = iter(loader)
            >>> next(batches)
            ['a', 'b', 'c']
            >>> loader.steer({"web": 0, "code": 1})
            >>> next(batches), loader.journal[0].at
            (['1', '2', '3'], 1)
        """
        progress = self._progress
        step = _checked_step(progress, at)
        root = _steered_root(progress)
        number = steers.mixture_number(root, mixture)
        entry = Steer(step, steers.weights_for(root, number, weights), number)
        journal = progress.state.journal
        others = tuple(each for each in journal if (each.at, each.mixture) != (step, number))
        if entry.weights != steers.weights_before(root, others, entry):
            others = added(others, entry)
        if others != journal:
            progress.state.journal = others
            self._restart_live()


def _checked_step(progress: RunProgress, at: int | None) -> int:
    """Return the step of a new entry of the journal.

    Raises:
        InvalidArgument: the step was delivered, or never comes; or it was left out on several ranks.
    """
    step = progress.cursor.step
    if at is None:
        if progress.steps.world_size > 1:
            raise InvalidArgument(
                f"with several ranks at= must be said, because they are not all at one step: call it on each "
                f"rank with the same arguments, at={step + 100} say, before any of them comes to that step"
            )
        return step
    at = checked_count("at", at, least=0)
    if at < step:
        raise InvalidArgument(f"at must be a step that was not delivered, from {step} on (got {at})")
    progress.cursor_of(at)
    return at


def _steered_root(progress: RunProgress) -> Node:
    """Return the graph of the dataset that is delivered.

    Raises:
        InvalidArgument: a stream is delivered.
    """
    pipeline = progress.state.pipeline
    if isinstance(pipeline, Node):
        return pipeline
    raise InvalidArgument(
        "the loader is over a stream, and steer changes mixtures of datasets: give the loader the mixture "
        "itself, without .stream()"
    )


def _checked_journal(progress: RunProgress, journal: Iterable[Entry | Mapping[str, Any]]) -> Journal:
    """Return the ``journal=`` of a loader.

    Raises:
        InvalidArgument: an entry is none of this pipeline.
        WrongType: it holds something else than entries.
    """
    if isinstance(journal, str | bytes | Mapping) or not hasattr(journal, "__iter__"):
        message = f"journal must be that of another loader, or state['journal'] (got {journal!r:.100})"
        raise WrongType(message)
    entries = list(journal)
    for entry in entries:
        if not isinstance(entry, Steer | Mapping):
            message = f"journal must have the entries of loader.journal (got {entry!r:.100})"
            raise WrongType(message)
    try:
        found = parse_journal(
            [each.document() if isinstance(each, Steer) else dict(each) for each in entries]
        )
    except CorruptState as error:
        raise InvalidArgument(str(error)) from None
    root = _steered_root(progress) if found else None
    for entry in found:
        assert root is not None
        progress.cursor_of(entry.at)
        steers.weights_for(root, steers.mixture_number(root, entry.mixture), entry.weights)
    return found
