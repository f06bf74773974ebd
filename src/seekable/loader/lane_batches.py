"""Batches of a stream's items: lanes are read slot by slot, and the items of one batch are put together.

A `LaneReader` runs some lanes and returns their items for the slots of one batch after another. The lanes of
a rank may have several readers, in threads or in worker processes; `merge_lanes` makes batches of the items
of all readers. Lanes do not depend on each other, so batches do not depend on the number of readers.
"""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, final

from msgspec import structs

from seekable._lazy import lazy
from seekable.errors import NothingPassed
from seekable.loader.batches import LaneDeltas, MadeBatch
from seekable.nodes.graph import HOLE
from seekable.stream.lane import LaneIterator, StageState, apply_deltas
from seekable.stream.lineage import splitting_lineage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from seekable.loader.steps import StepCursor, Steps
    from seekable.state.journal import Journal
    from seekable.stream import exclude, steer
    from seekable.stream.stream import Stream

    Collate = Callable[[list[Any]], Any] | None
else:
    exclude = lazy("seekable.stream.exclude")
    steer = lazy("seekable.stream.steer")

__all__ = [
    "LaneItems",
    "LaneReader",
    "LaneStates",
    "lane_batches",
    "merge_lanes",
    "with_slots",
]


_END: Final = object()


@dataclass(slots=True)
class LaneStates:
    """The states of all stages of some lanes."""

    stages: dict[int, list[StageState]] = field(default_factory=dict)
    """For each lane the states of its stages, in the order of the graph."""
    ended: set[int] = field(default_factory=set)
    """The lanes that have ended and begun anew (``end="pad"``)."""

    @classmethod
    def fresh(cls, stream: Stream, lanes: Sequence[int]) -> LaneStates:
        """Return the states of some lanes of a stream at their start."""
        return cls({lane: LaneIterator(stream.stage, lane).states() for lane in lanes})

    @classmethod
    def parse(cls, lanes: Mapping[int, Sequence[Any]], ended: Sequence[int]) -> LaneStates:
        """Return the states that a document holds for some lanes.

        Raises:
            CorruptState: the state of a stage is not such an object.
        """
        return cls(
            {lane: [StageState.parse(stage) for stage in stages] for lane, stages in lanes.items()},
            set(ended),
        )

    def document(self) -> dict[int, list[dict[str, Any]]]:
        """Return the states of each lane as new JSON-safe values."""
        return {lane: [state.document() for state in stages] for lane, stages in self.stages.items()}

    def only(self, lanes: Sequence[int]) -> LaneStates:
        """Return the states of some lanes, which change with these."""
        return LaneStates({lane: self.stages[lane] for lane in lanes}, self.ended & set(lanes))

    def copy_of(self, lanes: Sequence[int]) -> LaneStates:
        """Return a copy of some lanes' states, which does not change with these."""
        stages = {lane: [state.copy() for state in self.stages[lane]] for lane in lanes}
        return LaneStates(stages, self.ended & set(lanes))

    def apply(self, deltas: LaneDeltas) -> None:
        """Change the states as one batch changed the lanes."""
        for lane, stages in deltas.stages.items():
            apply_deltas(self.stages[lane], stages)
        self.ended |= deltas.ended


@dataclass(frozen=True, slots=True)
class LaneItems:
    """The items of some lanes for the slots of one batch."""

    items: list[tuple[int, Any]]
    """Pairs of a slot and its item, in the order of the slots; slots of lanes that have ended are missing."""
    fresh: int
    """The number of items that are not padding."""
    holes: int
    """The number of records that were holes, which the sources left out."""
    over: bool
    """True if all of the lanes have ended."""
    deltas: LaneDeltas


@final
class LaneReader:
    """Runs some lanes of a stream.

    Args:
        stream: the stream.
        lanes: the lanes, and the states in which they begin; these are not changed.
        pad: begin a lane anew when it has ended, to fill its slots.
        journal: what is changed in the run, and at which slots.
    """

    def __init__(self, stream: Stream, lanes: LaneStates, *, pad: bool, journal: Journal = ()) -> None:
        self._stream, self._pad = stream, pad
        self._changes: list[steer.LaneSteers | exclude.LaneExclusions] = []
        if journal:
            self._changes.append(steer.LaneSteers(stream.stage, journal))
            self._changes.append(exclude.LaneExclusions(stream.stage, journal))
        self._iterators = {lane: LaneIterator(stream.stage, lane) for lane in lanes.stages}
        for lane, iterator in self._iterators.items():
            iterator.load(lanes.stages[lane])
        self._holes = 0
        """The number of holes that were reported so far."""
        self._ended = set(lanes.ended)
        self._lineage = splitting_lineage(stream.stage)
        self._given: dict[int, list[tuple[int, int]]] = {}
        self._over: set[int] = set()

    def read(self, first: int, stop: int) -> LaneItems:
        """Return the items of those slots from ``first`` to before ``stop`` that belong to these lanes.

        Raises:
            NothingPassed: a lane has no item at all to fill its slots with.
        """
        count, fresh = self._stream.lanes, 0
        items: list[tuple[int, Any]] = []
        before = frozenset(self._ended)
        slots = {lane: range(first + (lane - first) % count, stop, count) for lane in self._iterators}
        touched = [lane for lane, wanted in slots.items() if wanted and lane not in self._over]
        for lane in touched:
            for each in self._changes:
                each.change(self._iterators[lane], first)
            fresh += self._fill(lane, slots[lane], items)
        items.sort(key=itemgetter(0))
        stages = {lane: self._iterators[lane].deltas() for lane in touched}
        given, self._given = self._given, {}
        return LaneItems(
            items,
            fresh,
            self._holes_since(),
            self._ended | self._over >= self._iterators.keys(),
            LaneDeltas(stages, frozenset(self._ended) - before, given),
        )

    def _holes_since(self) -> int:
        before, self._holes = self._holes, sum(iterator.holes for iterator in self._iterators.values())
        return self._holes - before

    def _fill(self, lane: int, slots: range, items: list[tuple[int, Any]]) -> int:
        """Add the items for the slots of a lane, and return how many of them are not padding."""
        fresh = 0
        if lane not in self._ended and self._lineage is None:
            found = list(itertools.islice(self._iterators[lane].items, len(slots)))
            items += zip(slots, found, strict=False)
            fresh = len(found)
        for slot in slots[fresh:]:
            item = self._next(lane)
            if item is _END:
                break
            items.append((slot, item))
            fresh += lane not in self._ended
        return fresh

    def _next(self, lane: int) -> Any:
        """Return the next item of a lane, or of its padding; `_END` if the lane has ended."""
        iterator = self._iterators[lane]
        for item in iterator.items:
            if self._lineage is not None and lane not in self._ended:
                self._given.setdefault(lane, []).extend(self._lineage.rows(iterator.token))
            return item
        if not self._pad:
            self._over.add(lane)
            return _END
        self._ended.add(lane)
        iterator.restart()
        for item in iterator.items:
            return item
        raise NothingPassed(
            f"lane {lane} of {self._stream.lanes} has no item to fill its slots with: use fewer lanes, or "
            f"end='drop'"
        )


def lane_batches(
    stream: Stream,
    steps: Steps,
    cursor: StepCursor,
    lanes: LaneStates,
    collate: Collate,
    *,
    journal: Journal = (),
) -> Iterator[MadeBatch]:
    """Yield the batches of a stream from a cursor to the end of its run, made in this thread.

    Args:
        stream: the stream.
        steps: the division of slots into batches.
        cursor: the place of the first batch.
        lanes: the lanes of this rank, and their states at the cursor; these are not changed.
        collate: makes a batch of a list of items; None delivers the items as they are.
        journal: what is changed in the run.
    """
    journal = with_slots(journal, steps, cursor)
    reader = LaneReader(stream, lanes, pad=steps.end == "pad", journal=journal)
    reads = ([reader.read(first, stop)] for first, stop in steps.spans(cursor))
    return merge_lanes(reads, stream, steps, cursor, collate)


def with_slots(journal: Journal, steps: Steps, cursor: StepCursor) -> Journal:
    """Return the entries that begin in the rest of a run, each with the slot from which lanes heed it.

    What began before holds from the cursor on. What begins in a later run is left out: its slots are its own.

    Args:
        journal: what is changed in the run.
        steps: the division of slots into batches.
        cursor: the place of the next batch.
    """
    left, found = steps.left(cursor), []
    for entry in journal:
        steps_to = max(0, entry.at - cursor.step)
        if not steps_to or left is None or steps_to < left:
            position = cursor.position + steps.records(cursor.step, steps_to)
            found.append(structs.replace(entry, position=position))
    return tuple(found)


def merge_lanes(
    reads: Iterable[Sequence[LaneItems]], stream: Stream, steps: Steps, cursor: StepCursor, collate: Collate
) -> Iterator[MadeBatch]:
    """Yield the batches of a run from a cursor on.

    Args:
        reads: for one batch after another, from the cursor on, the items of each reader's lanes.
        stream: the stream that the items are of.
        steps: the division of slots into batches.
        cursor: the place of the first batch.
        collate: makes a batch of a list of items; None delivers the items as they are.

    Raises:
        NothingPassed: a stream without end has no item, or all items of a batch are holes.
    """
    rounds = _rounds(reads, stream, steps, cursor)
    rounds = _in_whole_rounds(rounds, stream) if steps.end == "drop" else _without_padding(rounds)
    left, counts_all = steps.left(cursor), not isinstance(steps.batch, int)
    if counts_all:
        # Readers know the sizes by the number of rounds alone: one without items is a step too.
        rounds = itertools.islice(rounds, left)
    return itertools.islice(_collated(rounds, cursor, collate, counts_all=counts_all), left)


@dataclass(frozen=True, slots=True)
class _Round:
    """The items of this rank's lanes for the slots of one batch."""

    items: list[Any]
    """The items in the order of their slots; none where all lanes of these slots have ended."""
    fresh: bool
    """True if an item is not padding."""
    holes: int
    """The number of records that were holes, which the sources left out."""
    deltas: list[LaneDeltas]
    stop: int
    """The slot after the batch."""
    empty: int | None
    """The first slot of this rank without an item; None if all have one."""


def _rounds(
    reads: Iterable[Sequence[LaneItems]], stream: Stream, steps: Steps, cursor: StepCursor
) -> Iterator[_Round]:
    """Yield the rounds from a cursor to the last one with an item that is not padding, or further."""
    for parts, (first, stop) in zip(reads, steps.spans(cursor), strict=False):
        items = sorted(itertools.chain.from_iterable(part.items for part in parts), key=itemgetter(0))
        fresh = any(part.fresh for part in parts)
        if not fresh and all(part.over for part in parts):
            if stream.endless:
                raise NothingPassed(_only_empty_lanes(stream, steps))
            return
        slots = range(first + (steps.rank - first) % steps.world_size, stop, steps.world_size)
        yield _Round(
            [item for _, item in items],
            fresh,
            sum(part.holes for part in parts),
            [part.deltas for part in parts],
            stop,
            _first_empty(slots, items),
        )


def _first_empty(slots: range, items: Sequence[tuple[int, Any]]) -> int | None:
    if len(items) == len(slots):
        return None
    filled = (slot for slot, _ in items)
    return next(slot for slot, there in itertools.zip_longest(slots, filled) if slot != there)


def _without_padding(rounds: Iterable[_Round]) -> Iterator[_Round]:
    """Leave out the rounds at the end of a run that have nothing but padding."""
    padding: list[_Round] = []
    for each in rounds:
        padding.append(each)
        if each.fresh:
            yield from padding
            padding = []


def _in_whole_rounds(rounds: Iterable[_Round], stream: Stream) -> Iterator[_Round]:
    """End before the first ``lanes`` slots, counted from a multiple of ``lanes``, of which one is empty.

    Raises:
        NothingPassed: the stream has no end, and a lane gives nothing.
    """
    lanes = stream.lanes
    waiting: deque[_Round] = deque()
    for each in rounds:
        if each.empty is None:
            waiting.append(each)
        whole = (each.stop if each.empty is None else each.empty) // lanes * lanes
        while waiting and waiting[0].stop <= whole:
            yield waiting.popleft()
        if each.empty is not None:
            if stream.endless:
                raise NothingPassed(_empty_lane(stream, each.empty % lanes))
            return


def _collated(
    rounds: Iterable[_Round], cursor: StepCursor, collate: Collate, *, counts_all: bool
) -> Iterator[MadeBatch]:
    """Yield a batch for each round with items; the changes of one without items go to the next batch.

    With ``counts_all`` a round without items counts as a step.
    """
    deltas: list[LaneDeltas] = []
    holes, step = 0, cursor.step
    for each in rounds:
        deltas += each.deltas
        holes += each.holes
        if not each.items:
            step += counts_all
            continue
        items = [item for item in each.items if item is not HOLE]
        if not items:
            raise NothingPassed(f"all {len(each.items)} items of step {step} are holes: take a larger batch")
        step += 1
        yield MadeBatch(
            items[0] if collate is None else collate(items),
            records=len(items),
            holes=holes + len(each.items) - len(items),
            after=structs.replace(cursor, step=step, position=each.stop),
            deltas=tuple(deltas),
        )
        deltas, holes = [], 0


def _empty_lane(stream: Stream, lane: int) -> str:
    return (
        f"lane {lane} of {stream.lanes} gives nothing in {stream!r}, which has no end, so that no batch is "
        f"whole, as end='drop' wants it: leave end= out, shuffle the dataset, or say another lanes= to "
        f"ds.stream()"
    )


def _only_empty_lanes(stream: Stream, steps: Steps) -> str:
    ranks = "" if steps.world_size == 1 else f" of rank {steps.rank} of {steps.world_size}"
    return (
        f"a stream without end has ended: all lanes{ranks} are empty in {stream!r}. Are there fewer records "
        f"than lanes, or does a stage pass nothing?"
    )
