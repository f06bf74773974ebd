"""A run that its owner changes while it runs: the journal of a loader, and what adds entries to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from msgspec import structs

from seekable._arguments import POSITIONS, checked_choice, checked_count
from seekable._lazy import lazy
from seekable.errors import CorruptState, InvalidArgument, WrongType
from seekable.loader.positioned import Positioned
from seekable.nodes.node import Node
from seekable.state.journal import Exclude, Steer, added, exclusions, parse_journal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seekable.loader.run_progress import RunProgress
    from seekable.nodes import rows_to_exclude, without
    from seekable.nodes import steer as steers
    from seekable.nodes.mix import Weights
    from seekable.nodes.rows_to_exclude import Excludes
    from seekable.state.journal import Entry, Journal
    from seekable.stream import exclude as stream_excludes
    from seekable.stream import steer as stream_steers
else:
    rows_to_exclude = lazy("seekable.nodes.rows_to_exclude")
    steers = lazy("seekable.nodes.steer")
    stream_excludes = lazy("seekable.stream.exclude")
    stream_steers = lazy("seekable.stream.steer")
    without = lazy("seekable.nodes.without")

__all__ = ["Steerable", "checked_journal", "entries_at", "made_by"]


class Steerable(Positioned):
    """The base of ``Loader`` that knows what was changed in its run."""

    @property
    def journal(self) -> tuple[Any, ...]:
        """What was changed in the run, as frozen entries in the order of their steps.

        An entry of ``steer`` has the step ``at``, the integer ``weights`` in the order of what is mixed, the
        number of the ``mixture``, and the ``position`` at which the step began, None until it has come. One
        of ``exclude`` has ``at``, the ``rows`` by file, and ``fill``. Give them to another loader,
        ``sk.Loader(..., journal=loader.journal)``, for the same run.
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
        step, pipeline = _checked_step(progress, at), progress.state.pipeline
        asked: Any = steers if isinstance(pipeline, Node) else stream_steers
        number = asked.mixture_number(pipeline, mixture)
        entry = Steer(step, asked.weights_for(pipeline, number, weights), number)
        others = tuple(each for each in progress.state.journal if each.place != entry.place)
        if entry.weights != asked.weights_before(pipeline, others, entry):
            others = added(others, entry)
        self._change(others)

    def exclude(
        self, what: Excludes, *, at: int | None = None, fill: Literal["replace", "hole"] = "replace"
    ) -> None:
        """Leave out some records from a step on, while the run goes on; all others keep their places.

        What comes in their places is as of ``ds.without``. The loader notes it in its ``journal``, which its
        states carry, also to other pipelines (``resume="rows"``). Batches that were made ahead are made
        again. On several ranks call it on each with the same arguments. Over a stream the records are left
        out where they are read, so that what follows them moves up, whatever ``fill`` is; items that wait in
        buffers and open packs still come.

        Args:
            what: as of ``ds.without``: Locations, ``(path, row)`` pairs, keys, a dict of names and rows, a
                dataset, or the path of a file of JSON lines.
            at: the first step without the records. By default it is the next batch that was not delivered; on
                several ranks it must be said.
            fill: ``"hole"`` to leave their places empty, so that batches have fewer records.

        Raises:
            WrongType: an argument has a wrong type.
            DataNotFound: there is no such file in the dataset, or no such file of rows.
            OutOfRange: a file has no such row.
            KeyNotFound: no record has a key.
            InvalidArgument: nothing would be kept of a source; or ``at`` is a step that was delivered, or
                never comes, or is missing on several ranks.

        Example:
            >>> import seekable as sk
            >>> loader = sk.Loader(sk.from_sequence("abcdef", version=1), batch_size=2, collate=list)
            >>> batches = iter(loader)
            >>> next(batches)
            ['a', 'b']
            >>> loader.exclude([loader.locate(step=1)[0]])
            >>> [batch for batch in batches]
            [['a', 'd'], ['e', 'f']]
        """
        progress = self._progress
        checked_choice("fill", fill, ("replace", "hole"))
        step = _checked_step(progress, at)
        pipeline = progress.state.pipeline
        # It may have been left out already; and what cannot be done is said now.
        if isinstance(pipeline, Node):
            rows, made_by = rows_to_exclude.excluded_rows(pipeline, what), progress.pieces(step).at(step)
            is_new = without.excluded(made_by, rows, fill=fill) is not made_by
        else:
            rows = stream_excludes.excluded_rows_of(pipeline, what)
            before = [entry.rows for entry in exclusions(progress.state.journal) if entry.at <= step]
            is_new = stream_excludes.leaves_out(pipeline, rows, before)
        if is_new:
            self._change(added(progress.state.journal, Exclude(step, rows, fill)))

    def _change(self, journal: Journal) -> None:
        """Go on with another journal, if it is one; batches that were made ahead are made again."""
        if journal != self._progress.state.journal:
            self._progress.state.journal = journal
            self._restart_live()


def made_by(loader: Positioned, step: int | None = None) -> Node:
    """Return the graph of the dataset that makes the batch of a step: with the journal up to there.

    Args:
        loader: a loader over a dataset.
        step: the index of the batch; None for the last step of all.
    """
    progress = loader._progress  # noqa: SLF001 - of this room
    return progress.pieces(step).at(POSITIONS if step is None else step)


def entries_at(loader: Positioned, step: int) -> Journal:
    """Return the entries of the journal that hold at a step."""
    journal = loader._progress.state.journal  # noqa: SLF001 - of this room
    return tuple(entry for entry in journal if entry.at <= step)


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


def checked_journal(progress: RunProgress, journal: Iterable[Entry | Mapping[str, Any]]) -> Journal:
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
        if not isinstance(entry, Steer | Exclude | Mapping):
            message = f"journal must have the entries of loader.journal (got {entry!r:.100})"
            raise WrongType(message)
    try:
        found = parse_journal(
            [dict(each) if isinstance(each, Mapping) else each.document() for each in entries]
        )
    except CorruptState as error:
        raise InvalidArgument(str(error)) from None
    return tuple(_checked_entry(progress, entry) for entry in found)


def _checked_entry(progress: RunProgress, entry: Entry) -> Entry:
    """Return an entry of the journal that a loader is made with, whose step has not come.

    Raises:
        InvalidArgument: the pipeline has no such mixture or rows, or the step never comes.
    """
    pipeline = progress.state.pipeline
    progress.cursor_of(entry.at)
    if isinstance(entry, Exclude) and isinstance(pipeline, Node):
        without.excluded(pipeline, entry.rows, fill=entry.fill)
    elif isinstance(entry, Exclude):
        stream_excludes.leaves_out(pipeline, entry.rows, [])
    else:
        asked: Any = steers if isinstance(pipeline, Node) else stream_steers
        asked.weights_for(pipeline, asked.mixture_number(pipeline, entry.mixture), entry.weights)
    return structs.replace(entry, position=None)
