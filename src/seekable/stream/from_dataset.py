"""The records of a dataset as the source of a stream."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from operator import is_
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from seekable.errors import BadToken, NothingPassed
from seekable.nodes.bases import records_of_sources
from seekable.nodes.graph import HOLE
from seekable.nodes.readahead import reads_ahead
from seekable.order.lane_rows import lane_positions, num_lane_rows, num_lane_rows_before
from seekable.stream.runs import ConsumedCounts, Run, Runs
from seekable.stream.stage import Leaf
from seekable.stream.stall import StallDetector

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from seekable.nodes.graph import Plan
    from seekable.nodes.node import Node
    from seekable.stream.runs import StageValues
    from seekable.stream.stage import Lane, Stage
    from seekable.stream.token import Token

__all__ = ["FIRST_READ", "MOST_READ", "FromDataset", "passes_of", "stages_of"]

_FIRST_POSITIONS, _MOST_POSITIONS = 256, 4096
"""Positions whose order is computed together. The first array is small, so that the first item comes soon."""

FIRST_READ, MOST_READ = 16, 128
"""Records that are read together. The first reads are small, because each of many sources in a mixture would
hold records long before it delivers them; later reads stay small enough for the processor's cache."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class FromDataset(Leaf):
    """The records of a dataset: lane ``l`` has rows ``r % lanes == l`` of an epoch. A token is a position."""

    dataset: Node
    lane_count: int
    """The number of lanes."""

    epochs: int | None
    """The number of epochs; None for a stream that never ends."""

    start: int
    """The position from which epochs are counted; the first position unless ``begin`` is given."""

    begin: int | None = None
    """The first position after a resume by rows; epochs are still counted from ``start``."""

    whole: Node | None = None
    """The dataset before a run left rows of it out: items of these rows that wait are made of it."""

    kind: ClassVar[str] = "dataset"

    @property
    def lanes(self) -> int:
        """The number of lanes that was asked for."""
        return self.lane_count

    @property
    def endless(self) -> bool:
        """True without a number of epochs."""
        return self.epochs is None

    @property
    def repeats(self) -> bool:
        """True if the dataset has the same order in each epoch, so that each lane gets the same rows."""
        return self.dataset.steady

    @property
    def indexed(self) -> bool:
        """True: the record at a position can be read at any time."""
        return True

    @property
    def checkpointable(self) -> bool:
        """True: the state is one number."""
        return True

    @property
    def constant_time(self) -> bool:
        """True: a resume begins to read at a position."""
        return True

    @property
    def datasets(self) -> tuple[Node, ...]:
        """The dataset that the records come from."""
        return (self.dataset,)

    def arguments(self) -> dict[str, Any]:
        """Return the number of epochs and the first position."""
        begin = {} if self.begin is None else {"begin": self.begin}
        return {"epochs": self.epochs, "start": self.start, **begin}

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the call of ``Dataset.stream``."""
        given = [f"lanes={self.lane_count}"] if self.lane_count != self.dataset.lanes else []
        given += [f"epochs={self.epochs}"] if self.epochs is not None else []
        given += [f"start={self.start}"] if self.start else []
        return f"{self.dataset.expression()}.stream({', '.join(given)})"

    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        """Return the iterator over the lane's records; holes are left out, and counted in the state."""
        return lane.in_runs(_Records(self, lane))

    def epochs_done(self, lane: Lane) -> int:
        """Return the number of times that the lane went through its rows."""
        per_epoch = self._rows(lane.number)
        return int(lane.state.get("at", 0)) // per_epoch if per_epoch else 0

    def read(self, tokens: Sequence[Token]) -> list[Any]:
        """Return the records at some positions, read together.

        Raises:
            BadToken: a token is not a position of the stream, or the record there is a hole now.
        """
        positions = np.array([self._position(token) for token in tokens], dtype=np.int64)
        records = self.dataset.fetch(positions)
        if self.whole is not None and (left_out := [at for at, each in enumerate(records) if each is HOLE]):
            for at, record in zip(left_out, self.whole.fetch(positions[left_out]), strict=True):
                records[at] = record
        for token, record in zip(tokens, records, strict=True):
            if record is HOLE:
                raise BadToken(f"position {token} of {self.dataset!r} is a hole now: it was a record once")
        return records

    def places(self, token: Token) -> list[Any]:
        """Return the ``Location`` of the record at a position."""
        return self.dataset.plan(np.array([self._position(token)], dtype=np.int64)).locate()

    @property
    def first(self) -> int:
        """The first position that the stream reads."""
        return self.start if self.begin is None else self.begin

    def reads(self, lane: int, done: int) -> Iterator[tuple[list[int], list[Any], NDArray[np.bool_] | None]]:
        """Yield positions, their records and which of these were left out, from number ``done`` of a lane on.

        Raises:
            NothingPassed: the stream never ends, and the dataset is empty.
        """
        if self.dataset.size == 0 and self.endless:
            raise NothingPassed(f"a stream without end needs records, and there are none in {self.dataset!r}")
        at_once = FIRST_READ
        for tokens, plan, ahead in reads_ahead(self._planned(lane, done)):
            first = 0
            while first < len(tokens):
                last = min(first + at_once, len(tokens))
                ahead.read_to(last)
                part = plan.slice(first, last)
                yield tokens[first:last], part.read(), part.left_out()
                first, at_once = last, min(2 * at_once, MOST_READ)

    def _planned(self, lane: int, done: int) -> Iterator[tuple[list[int], Plan]]:
        """Yield the positions of a lane from number ``done`` on, and their plans."""
        size, (begin, end) = self.dataset.size, self.bounds(lane)
        at, count = begin + done, _FIRST_POSITIONS
        while at < end and self._rows(lane) != 0:
            numbers = np.arange(at, min(end, at + count), dtype=np.int64)
            positions = lane_positions(numbers, size, self.lanes, lane)
            yield positions.tolist(), self.dataset.plan(positions)
            at += len(positions)
            count = min(2 * count, _MOST_POSITIONS)

    def _rows(self, lane: int) -> int | None:
        """Return the number of a lane's rows in an epoch; None where epochs have no end."""
        size = self.dataset.size
        return None if size is None else num_lane_rows(size, self.lanes, lane)

    def bounds(self, lane: int) -> tuple[int, int]:
        """Return the first of a lane's own numbers, and the one after the last."""
        size = self.dataset.size
        begin = num_lane_rows_before(self.first, size, self.lanes, lane)
        if self.epochs is None or size is None:
            return begin, np.iinfo(np.int64).max
        return begin, num_lane_rows_before(self.start + self.epochs * size, size, self.lanes, lane)

    def _position(self, token: Token) -> int:
        size = self.dataset.size
        stop = None if self.epochs is None or size is None else self.start + self.epochs * size
        if not isinstance(token, int) or token < self.first or (stop is not None and token >= stop):
            last = "" if stop is None else f" and below {stop}"
            message = f"a token of {self!r} is a position of at least {self.first}{last} (got {token!r})"
            raise BadToken(message)
        return token


def passes_of(stage: Stage, lanes: Sequence[StageValues]) -> float:
    """Return how often some lanes of a stream without an end have read all their rows of every source.

    Sources with an end do not count. Where the number of records of another one is not known, it is 0.

    Args:
        stage: the stage.
        lanes: the values of the stages of each lane, in the order of ``LaneIterator.walk``.
    """
    passes = []
    for number, each in enumerate(stages_of(stage)):
        if each.inputs or not each.endless:
            continue
        records = records_of_sources(each.dataset) if isinstance(each, FromDataset) else 0
        if not records:
            return 0.0
        read = sum(int(values[number].get("at", 0)) for values in lanes)
        passes.append(read * each.lanes / (len(lanes) * records))
    return min(passes, default=0.0)


def stages_of(stage: Stage) -> Iterator[Stage]:
    """Yield a stage and all below it, in the order of a lane's states: a stage before its inputs."""
    yield stage
    for below in stage.inputs:
        yield from stages_of(below)


@final
class _Records(Runs):
    """The records of one lane; holes are left out."""

    def __init__(self, source: FromDataset, lane: Lane) -> None:
        done, self._holes = lane.state.get("at", 0), lane.state.get("holes", 0)
        self._reads = source.reads(lane.number, done)
        self._consumed, self._failed = ConsumedCounts(done), ConsumedCounts(self._holes)
        self._lane, self._stall, self._holes_in_row = lane, StallDetector(source, lane), 0
        self._positions: list[Token] = []
        self._records: list[Any] = []
        """Records that were read together, holes among them."""
        self._left_out: NDArray[np.bool_] | None = None
        """Which of them are holes because they were left out; these do not count as holes."""
        self._next = 0

    def take(self, count: int, behind: int) -> Run:
        """Return the next records; what was read together is given out in parts."""
        self._consumed.keep(behind)
        self._failed.keep(behind)
        while not self._stall.over:
            if self._next == len(self._records):
                self._records, self._next = [], 0  # free before the next ones are read
                self._positions, self._records, self._left_out = next(self._reads, ([], [], None))
            first, self._next = self._next, min(self._next + count, len(self._records))
            records, positions = self._records[first : self._next], self._positions[first : self._next]
            run = self._without_holes(records, positions, first)
            if run.items or not records:
                return run
        return Run([], list)

    def _without_holes(self, records: list[Any], positions: list[Token], first: int) -> Run:
        """Return the records that are there, and note how many of all they are, and how many failed.

        Args:
            records: some of what was read together.
            positions: their positions.
            first: the index of the first of them in that.
        """
        taken, count = self._consumed.taken, len(records)
        if not any(map(is_, records, itertools.repeat(HOLE))):
            self._consumed.add(range(taken + 1, taken + count + 1), taken=taken + count)
            self._failed.add(itertools.repeat(self._holes, count), taken=self._holes)
            self._holes_in_row = 0
            return Run(records, lambda: positions)
        there, failed = list[int](), list[int]()
        for at, record in enumerate(records):
            if record is not HOLE:
                there.append(at)
                failed.append(self._holes)
            elif self._left_out is None or not self._left_out[first + at]:
                self._holes += 1
        self._consumed.add([taken + at + 1 for at in there], taken=taken + count)
        self._failed.add(failed, taken=self._holes)
        # The detector looks at the epochs that were read, and the state is settled only when records come.
        self._lane.state["at"] = self._consumed.taken
        self._holes_in_row = 0 if there else self._stall.after(self._holes_in_row, count)
        return Run([records[at] for at in there], lambda: [positions[at] for at in there])

    def values(self, behind: int) -> dict[str, Any]:
        """Return the number of the lane's records that were read, and how many of them failed."""
        read, holes = self._consumed.at(behind), self._failed.at(behind)
        assert isinstance(read, int)
        assert isinstance(holes, int)
        return {name: number for name, number in (("at", read), ("holes", holes)) if number}

    def below(self, behind: int) -> tuple[()]:
        """Return nothing: a source has no inputs."""
        return ()
