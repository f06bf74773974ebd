"""Which records make a batch, and which bytes of which files those are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import InvalidArgument
from seekable.index.location import Location

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seekable.loader.steps import Cursor, Steps
    from seekable.nodes.contract import Node
    from seekable.resume.placeholders import RowRef

__all__ = ["FileReads", "PlannedRecord", "StepPlan", "places_of", "plan_step", "reads_of"]


@dataclass(frozen=True, slots=True)
class PlannedRecord:
    """One record of a batch."""

    position: int
    """On the dataset's endless axis."""

    epoch: int
    """The dataset's epoch that the position lies in; 0 where there is no end."""

    rank: int
    """Which rank it goes to."""

    place: Any
    """A ``Location``, or a ``RowRef`` where bytes are not known; nested as the record is."""


@dataclass(frozen=True, slots=True)
class StepPlan:
    """The records of one batch, in order."""

    step: int
    batch: int
    """Records of a batch over all ranks; the last of a run may have fewer."""
    world_size: int
    records: tuple[PlannedRecord, ...]

    def of_rank(self, rank: int) -> StepPlan:
        """Return the records of one rank.

        Raises:
            InvalidArgument: there is no such rank.
        """
        if not 0 <= rank < self.world_size:
            message = f"rank must be below world_size={self.world_size} (got {rank})"
            raise InvalidArgument(message)
        return replace(self, records=tuple(record for record in self.records if record.rank == rank))


@dataclass(frozen=True, slots=True)
class FileReads:
    """What some records read of one file."""

    path: str
    records: int
    bytes: int | None
    """How many bytes the records have, line ends not counted; None where that is not known."""
    start: int | None
    """Where the first of them starts."""
    stop: int | None
    """Where the last of them ends."""


def plan_step(dataset: Node, steps: Steps, cursor: Cursor) -> StepPlan:
    """Return the records of the batch that begins at a cursor, over all ranks."""
    positions, _ = steps.positions(cursor, 1, all_ranks=True)
    # A pad record takes the rank of the place it fills, so ranks are told from places and not from positions.
    ranks = (cursor.position + np.arange(positions.size)) % steps.world_size
    epochs = positions // dataset.size if dataset.size else np.zeros_like(positions)
    columns = zip(
        positions.tolist(), epochs.tolist(), ranks.tolist(), dataset.plan(positions).locate(), strict=True
    )
    records = tuple(PlannedRecord(*record) for record in columns)
    return StepPlan(cursor.step, steps.batch, steps.world_size, records)


def places_of(place: Any) -> Iterator[Location | RowRef]:
    """Yield the single places in what may be a list or a tuple of them, or of those.

    Example:
        >>> from seekable.resume.placeholders import RowRef
        >>> [place.row for place in places_of([RowRef("a", 1), (RowRef("a", 2), RowRef("b", 3))])]
        [1, 2, 3]
    """
    if isinstance(place, list | tuple):
        for part in place:
            yield from places_of(part)
    else:
        yield place


def reads_of(records: Iterable[PlannedRecord]) -> list[FileReads]:
    """Return what some records read of each file, in the order in which files first come.

    Example:
        >>> record = PlannedRecord(0, 0, 0, [Location("/a", 3, offset=30, length=5), Location("/a", 0, 0, 9)])
        >>> reads_of([record])
        [FileReads(path='/a', records=2, bytes=14, start=0, stop=35)]
    """
    by_path: dict[str, list[Location | RowRef]] = {}
    for record in records:
        for place in places_of(record.place):
            by_path.setdefault(place.path, []).append(place)
    return [_reads(path, places) for path, places in by_path.items()]


def _reads(path: str, places: list[Location | RowRef]) -> FileReads:
    located = [place for place in places if isinstance(place, Location)]
    if len(located) < len(places) or path.startswith("<"):
        return FileReads(path, len(places), None, None, None)
    return FileReads(
        path,
        len(places),
        sum(place.length for place in located),
        min(place.offset for place in located),
        max(place.offset + place.length for place in located),
    )
