"""The records of a step, and the bytes that they are read from; and the steps at which records come."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._arguments import checked_count, checked_epoch
from seekable.errors import InvalidArgument, WrongType
from seekable.index.location import Location
from seekable.nodes.display import preformatted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.loader.steps import Runs, StepCursor, Steps
    from seekable.nodes.node import Node
    from seekable.resume.placeholders import RowRef

__all__ = [
    "Coming",
    "FileReads",
    "PlannedRecord",
    "StepPlan",
    "comings",
    "own_bytes",
    "places_of",
    "plan_step",
    "reads_of",
    "searched_epochs",
]


@dataclass(frozen=True, slots=True)
class PlannedRecord:
    """One record of a batch."""

    position: int
    """The position on the endless axis of the dataset."""

    epoch: int
    """The epoch of the position; 0 if the dataset is endless."""

    rank: int
    """The rank that the record goes to."""

    place: Any
    """A ``Location``, or a ``RowRef`` where bytes are not known; nested as the record is."""


@dataclass(frozen=True, slots=True)
class StepPlan:
    """The records of one batch, in order."""

    step: int
    batch: int
    """The number of records in the step's batch over all ranks; the last batch of a run may have fewer."""
    world_size: int
    records: tuple[PlannedRecord, ...]

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the first records."""
        return preformatted(lambda: repr(self), self)


@dataclass(frozen=True, slots=True)
class FileReads:
    """The bytes of one file that some records are read from."""

    path: str
    records: int
    bytes: int | None
    """The number of bytes of the records, without line ends; None if it is not known. Rows of tables have the
    bytes of their groups, and each group counts once."""
    start: int | None
    """The offset of the first byte; None if it is not known."""
    stop: int | None
    """The offset after the last byte; None if it is not known."""


def plan_step(dataset: Node, steps: Steps, cursor: StepCursor, *, rank: int | None = None) -> StepPlan:
    """Return the records of the batch at a cursor, for all ranks or one.

    Raises:
        InvalidArgument: there is no such rank.
    """
    if rank is not None and rank >= steps.world_size:
        raise InvalidArgument(f"rank must be below world_size={steps.world_size} (got {rank})")
    positions, _ = steps.positions(cursor, 1, all_ranks=True)
    # A pad record takes the rank of the place that it fills: ranks follow places, not positions.
    ranks = (cursor.position + np.arange(positions.size)) % steps.world_size
    if rank is not None:
        positions, ranks = positions[ranks == rank], ranks[ranks == rank]
    epochs = positions // dataset.size if dataset.size else np.zeros_like(positions)
    columns = zip(
        positions.tolist(), epochs.tolist(), ranks.tolist(), dataset.plan(positions).locate(), strict=True
    )
    records = tuple(PlannedRecord(*record) for record in columns)
    return StepPlan(cursor.step, steps.size_at(cursor.step), steps.world_size, records)


def places_of(place: Any) -> Iterator[Location | RowRef]:
    """Yield the single places in a place, or in a nested list or tuple of places.

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


def own_bytes(place: Any) -> int | None:
    """Return the bytes that a place, or all places in a nested one, have for one record; None if not known.

    Example:
        >>> own_bytes([Location("/a", 3, offset=30, length=5), Location("/b", 0, 0, 9)])
        14
        >>> own_bytes(Location("/a.parquet", 3, offset=4, length=3134, is_shared=True)) is None
        True
    """
    lengths: list[int | None] = [
        place.length if isinstance(place, Location) and not place.is_shared else None
        for place in places_of(place)
    ]
    return None if None in lengths else sum(length or 0 for length in lengths)


def reads_of(records: Iterable[PlannedRecord]) -> list[FileReads]:
    """Return for each file the bytes that some records are read from, in the order of the records.

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
        sum(length for _, length in {(place.offset, place.length) for place in located if place.is_shared})
        + sum(place.length for place in located if not place.is_shared),
        min(place.offset for place in located),
        max(place.offset + place.length for place in located),
    )


@dataclass(frozen=True, slots=True)
class Coming:
    """One place in a run at which a record comes."""

    step: int
    """The index of the batch, from 0."""

    position: int
    """The position on the endless axis of the dataset."""

    epoch: int
    """The epoch of the position; 0 if the dataset is endless."""

    rank: int
    """The rank that the record goes to."""


def comings(steps: Steps, anchor: StepCursor, positions: Int64s) -> list[Coming]:
    """Return the places at which some positions come, from a cursor on and over all ranks, in their order.

    A position of a batch that is left out (``end="drop"``, ``steps=``) has none, and one that fills a last
    batch (``end="pad"``) has one more.

    Args:
        steps: the division into runs and batches.
        anchor: the cursor from which steps are counted; nothing before it is returned.
        positions: int64, one dimension, at least 0.

    Example:
        >>> from seekable.loader.steps import StepCursor, Steps
        >>> steps = Steps(size=10, epochs=1, batch=4, end="pad", limit=None, rank=0, world_size=2)
        >>> [(at.step, at.rank) for at in comings(steps, StepCursor(), np.array([1, 9]))]
        [(0, 1), (2, 1), (2, 1)]
    """
    if not steps.total:
        positions = positions[positions >= anchor.position] if steps.total is None else positions[:0]
        numbers = anchor.step + steps.batches_of(anchor.step, positions - anchor.position)
        return _in_order(steps, numbers, positions, positions)
    positions = positions[positions >= steps.start_of(anchor.epoch)]
    numbers = (positions // (steps.size or 1) - anchor.epoch) // (steps.epochs or 1)
    last = numbers.max(initial=-1)
    found = [
        _comings_in(steps, anchor, runs, positions[_are_in(runs, numbers)], numbers[_are_in(runs, numbers)])
        for runs in itertools.takewhile(lambda runs: runs.first <= last, steps.runs(anchor))
    ]
    columns = [np.concatenate(column) for column in zip(*found, strict=True)] or [positions] * 3
    return _in_order(steps, *columns)


def _are_in(runs: Runs, numbers: Int64s) -> NDArray[np.bool_]:
    """Return which numbers of runs are among some runs."""
    return (numbers >= runs.first) & ((runs.many is None) | (numbers < runs.first + (runs.many or 0)))


def _comings_in(
    steps: Steps, anchor: StepCursor, runs: Runs, positions: Int64s, numbers: Int64s
) -> tuple[Int64s, Int64s, Int64s]:
    """Return the steps, positions and places at which positions of some runs come.

    Args:
        steps: the division into runs and batches.
        anchor: the cursor from which runs are counted.
        runs: the runs.
        positions: the positions.
        numbers: the number of the run that each position is in.
    """
    total = steps.total or 0
    start = steps.start_of(anchor.epoch) + numbers * total
    first = start if runs.first else np.full_like(start, anchor.position)
    begun = 0 if runs.first else anchor.position - steps.start_of(anchor.epoch)
    padded = max(0, begun + steps.records(runs.step, runs.batches) - total) if steps.end == "pad" else 0
    # Places after the end of a run hold its records again, from the first one on.
    places = positions + np.arange(1 - (-padded // total))[:, None] * total
    batch = steps.batches_of(runs.step, np.maximum(places - first, 0))
    comes = (places >= first) & (batch < runs.batches)
    began = np.broadcast_to(runs.step + (numbers - runs.first) * runs.batches, places.shape)
    return (began + batch)[comes], np.broadcast_to(positions, places.shape)[comes], places[comes]


def searched_epochs(epochs: int | range | None, steps: Steps, anchor: StepCursor) -> range:
    """Return the epochs to search: by default those of a cursor's run, or epoch 0 of endless data.

    Raises:
        WrongType: ``epochs`` is neither a number nor a range.
        InvalidArgument: an epoch is below 0, or its positions would be 2**63 or more.
    """
    if epochs is None:
        return range(anchor.epoch, anchor.epoch + (steps.epochs or 1))
    if isinstance(epochs, bool) or not isinstance(epochs, int | range):
        message = f"epochs must be a number of epochs from epoch 0 on, or a range of epochs (got {epochs!r})"
        raise WrongType(message)
    searched = epochs if isinstance(epochs, range) else range(checked_count("epochs", epochs, least=0))
    # The ends alone: a search through a range of 10**12 epochs would take hours.
    ends = (searched[0], searched[-1]) if searched else (0, 0)
    checked_count("epochs", min(ends), least=0)
    checked_epoch(max(ends), steps.size)
    return searched


def _in_order(steps: Steps, numbers: Int64s, positions: Int64s, places: Int64s) -> list[Coming]:
    order = np.argsort(places, kind="stable")
    order = order[np.argsort(numbers[order], kind="stable")]
    epochs = positions // steps.size if steps.size else np.zeros_like(positions)
    ranks = places % steps.world_size
    columns = zip(*(each[order].tolist() for each in (numbers, positions, epochs, ranks)), strict=True)
    return [Coming(*column) for column in columns]
