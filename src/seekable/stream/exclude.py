"""Rows that are left out of a run over a stream, from a step on.

They are left out where they are read: a lane reads on without them when it has given its last item before the
step, and what follows them moves up. Items that wait in buffers, open packs or open turns stay. They are made
again at the change, as after a resume: a row from the whole dataset, and a packed sample with padding in the
place of what is left out. At which of its rows a lane changes is a function of the lane alone, so that it is
the same on any ranks and in any workers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seekable.nodes import rows_to_exclude
from seekable.nodes.without import excluded
from seekable.state.journal import exclusions
from seekable.stream.from_dataset import FromDataset, stages_of
from seekable.stream.mix import MixBounded, MixItems

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seekable.nodes.node import Node
    from seekable.nodes.rows_to_exclude import Excludes
    from seekable.state.excluded_rows import ExcludedRows
    from seekable.state.journal import Journal
    from seekable.stream.lane import LaneIterator
    from seekable.stream.stage import Stage
    from seekable.stream.stream import Stream

__all__ = ["LaneExclusions", "excluded_rows_of", "leaves_out"]


def excluded_rows_of(stream: Stream, what: Excludes) -> ExcludedRows:
    """Return the rows of files that a user names to be left out of a stream.

    Args:
        stream: the stream.
        what: as of `seekable.nodes.rows_to_exclude.excluded_rows`.

    Raises:
        WrongType: it is nothing of these.
        DataNotFound: no dataset of the stream has a file of a name, or there is no file of rows.
        OutOfRange: a file has no row of a number.
        KeyNotFound: no record has a key.
        InvalidArgument: a name stands for several files, or the datasets have no keys, or nothing that is
            mixed has names.
    """
    streams = [
        (name, _datasets(part))
        for mix in stages_of(stream.stage)
        if isinstance(mix, MixItems | MixBounded)
        for name, part in zip(mix.names or (), mix.inputs, strict=False)
    ]
    return rows_to_exclude.rows_of_several(_datasets(stream.stage), what, streams=streams)


def leaves_out(stream: Stream, rows: ExcludedRows, before: Iterable[ExcludedRows]) -> bool:
    """Return True if a stream has any of some rows, besides those that are left out before.

    Raises:
        InvalidArgument: nothing would be kept of a dataset, or a record is made of several.
    """
    found = False
    for dataset in _datasets(stream.stage):
        kept = _without(dataset, before)
        found = _without(kept, [rows]) is not kept or found
    return found


class LaneExclusions:
    """The rows that lanes leave out from some slots on.

    Args:
        stage: the stage of the stream.
        journal: the entries, whose positions are slots.
    """

    def __init__(self, stage: Stage, journal: Journal) -> None:
        self._stage, self._entries = stage, exclusions(journal)
        self._made: dict[int, list[Stage]] = {}
        """The stages as they are after so many entries, in the order of a lane's states."""
        self._changed: dict[int, int] = {}
        """By lane, the number of entries that it knows."""

    def change(self, iterator: LaneIterator, slot: int) -> None:
        """Let a lane leave out the rows that are due before it gives the item of a slot."""
        due = sum(entry.position is not None and entry.position <= slot for entry in self._entries)
        if due == self._changed.get(iterator.number, 0):
            return
        # What was read ahead has the rows.
        iterator.pause()
        for each, stage in zip(iterator.walk(), self._stages_after(due), strict=True):
            each.stage = stage
        self._changed[iterator.number] = due

    def _stages_after(self, count: int) -> list[Stage]:
        if count not in self._made:
            rows = [entry.rows for entry in self._entries[:count]]
            self._made[count] = list(stages_of(_over_sources_without(self._stage, rows)))
        return self._made[count]


def _over_sources_without(stage: Stage, lists: Sequence[ExcludedRows]) -> Stage:
    """Return a stage over sources without some rows."""
    if isinstance(stage, FromDataset):
        return replace(stage, dataset=_without(stage.dataset, lists), whole=stage.dataset)
    below = [_over_sources_without(each, lists) for each in stage.inputs]
    return stage.with_inputs(below) if below else stage


def _datasets(stage: Stage) -> list[Node]:
    """Return the datasets that the sources of a stream read, in the order of a lane's states."""
    return [each.dataset for each in stages_of(stage) if isinstance(each, FromDataset)]


def _without(dataset: Node, lists: Iterable[ExcludedRows]) -> Node:
    """Return a dataset with more holes; no position has another row, because tokens are positions."""
    for rows in lists:
        dataset = excluded(dataset, rows, fill="hole", anew=False)
    return dataset
