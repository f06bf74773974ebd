"""Runs of a mixture: of parts that make runs (`MixedRuns`), and of datasets read together (`MixedSources`).

The records of several datasets are read together, whichever part they are of. Then the order of thousands of
draws is resolved by a few array operations over all parts, where each part alone would take some for each of
its hundreds.
"""

from __future__ import annotations

import operator
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, final

import numpy as np

from seekable.nodes.bases import calls_functions, leaves_of
from seekable.nodes.compile import CompiledGraph
from seekable.nodes.files.leaf import FilesLeaf
from seekable.nodes.graph import nodes_of
from seekable.nodes.readahead import reads_ahead
from seekable.order.lane_rows import num_lane_rows
from seekable.stream.from_dataset import FIRST_READ, MOST_READ, FromDataset
from seekable.stream.runs import END, Run, RunLength, Runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seekable._typing import Int64s
    from seekable.nodes.graph import Plan
    from seekable.stream.runs import StageValues
    from seekable.stream.stage import Lane, Stage
    from seekable.stream.token import Token

    Labels = Callable[[dict[str, Any], int, int, int], Int64s | None]
    Draws = Callable[[dict[str, Any], int, int, int], tuple[Int64s, Int64s] | None]
    """`MixItems.labels` and `MixItems.draws`."""

__all__ = ["FIRST_DRAWS", "MOST_DRAWS", "JointRead", "MixedRuns", "MixedSources"]

_Stop = Literal["first", "all"]
"""The parts whose ends end a mixture."""

_HOLES: Final = "with_holes"
"""The kind of the nodes that leave records out, and holes in their place."""

FIRST_DRAWS, MOST_DRAWS = 1024, 4096
"""_Draws that are labelled together. The first array is smaller, so that the first item comes soon."""


@final
class _Draws:
    """Counts the draws of a mixture, and keeps the last of them for states."""

    def __init__(self, stop: _Stop, lane: Lane) -> None:
        self._stop = stop
        kept = ("ended", "since", "steered")
        self._begun = {name: lane.state[name] for name in kept if name in lane.state}
        self._ends: list[tuple[int, int]] = []
        """The parts that have ended since, each with the number of draws before its end."""
        self.count: int = lane.state.get("draw", 0)
        self._last: list[int] = []
        """The parts of the last draws."""
        self.ended_by: int | None = None
        """The part that ended the mixture, where the end of the first part does."""

    def keep(self, behind: int) -> None:
        """Forget all but the last draws."""
        del self._last[: len(self._last) - behind]

    def add(self, labels: list[int]) -> None:
        """Add draws, each by its part."""
        self._last += labels
        self.count += len(labels)

    def end(self, label: int) -> None:
        """Note that the next draw found no item in a part."""
        if self._stop == "first":
            self.ended_by = label
        else:
            self._ends.append((self.count, label))

    def last(self, count: int) -> list[int]:
        """Return the parts of the last draws."""
        return self._last[len(self._last) - count :]

    def behind(self, label: int) -> int:
        """Return how many of the last draws are of a part."""
        return self._last.count(label)

    def values(self, behind: int) -> dict[str, Any]:
        """Return the values of the mixture: the draws, the ended parts, and the draws before the last end."""
        count, ends = self.count - max(behind, 0), self._ends_before(behind)
        values = {"draw": count} if count else {}
        if not ends:
            return values | self._begun
        ended = [*self._begun.get("ended", ()), *(label for _, label in ends)]
        return {**values, **self._begun, "ended": ended, "since": ends[-1][0]}

    def ended(self, behind: int) -> list[int]:
        """Return the parts whose ends were seen here when so many draws were not made yet."""
        ended = [label for _, label in self._ends_before(behind)]
        return [*ended, self.ended_by] if behind == END and self.ended_by is not None else ended

    def _ends_before(self, behind: int) -> list[tuple[int, int]]:
        count = self.count - max(behind, 0)
        return [end for end in self._ends if end[0] < count or behind == END]


@final
class MixedRuns(Runs):
    """The items of a mixture in one lane: each is the next one of a part's run."""

    def __init__(self, labels_of: Labels, stop: _Stop, lane: Lane) -> None:
        self._labels_of, self._number, self._parts = labels_of, lane.number, lane.inputs
        self._draws = _Draws(stop, lane)
        self._labels: list[int] = []
        """The parts of the next draws, from number ``_next`` on."""
        self._next = 0
        self._count = FIRST_DRAWS
        self._lengths = [RunLength() for _ in self._parts]
        self._left: list[Iterator[Any]] = [iter(())] * len(self._parts)
        """The items of each part's last run that are not drawn yet."""
        self._nexts: list[Callable[[], tuple[Token, Any]]] = [left.__next__ for left in self._left]
        """The next pair of a token and an item of each part's last run."""
        self._error: Exception | None = None

    def take(self, count: int, behind: int) -> Run:
        """Draw each item from the part that the mixture's order names."""
        self._draws.keep(behind)
        pairs: list[tuple[Token, Any]] = []
        while len(pairs) < count and self._error is None and self._find_labels():
            labels = self._labels[self._next : self._next + count - len(pairs)]
            before = len(pairs)
            # A part without an item raises StopIteration, which ends this.
            pairs.extend(map(operator.call, map(self._nexts.__getitem__, labels)))
            drawn = len(pairs) - before
            self._draws.add(labels[:drawn])
            self._next += drawn
            if drawn < len(labels):
                self._next_run(labels[drawn])
        if self._error is not None and not pairs:
            raise self._error
        labels = self._draws.last(len(pairs))
        return Run(
            list(map(itemgetter(1), pairs)), lambda: zip(labels, map(itemgetter(0), pairs), strict=True)
        )

    def values(self, behind: int) -> dict[str, Any]:
        """Return the number of draws, and the parts that have ended."""
        return self._draws.values(behind)

    def below(self, behind: int) -> list[int]:
        """Return for each part how many items of its last run are not drawn, or are behind."""
        waiting = [operator.length_hint(left) for left in self._left]
        for label in self._draws.last(max(behind, 0)):
            waiting[label] += 1
        for label in self._draws.ended(behind):
            waiting[label] = END
        return waiting

    def _find_labels(self) -> bool:
        """Return True if there is a next draw; its label is found if it is not there."""
        if self._draws.ended_by is None and self._next == len(self._labels):
            state = self._draws.values(END)
            labels = self._labels_of(state, self._number, self._draws.count, self._count)
            self._labels, self._next, self._count = [] if labels is None else labels.tolist(), 0, MOST_DRAWS
        return self._next < len(self._labels)

    def _next_run(self, label: int) -> None:
        """Take the next run of a part; without one it has ended."""
        try:
            run = self._lengths[label].take(self._parts[label].take, self._draws.behind(label))
        except Exception as error:  # noqa: BLE001 - a user's function raises anything; raised in its turn
            self._error = error
            return
        self._left[label] = iter(run.items)
        self._nexts[label] = zip(run.tokens(), self._left[label], strict=False).__next__
        if not run.items:
            self._labels, self._next = [], 0
            self._draws.end(label)


_ENDLESS: Final = 1 << 62
"""Rows of an epoch that never ends."""


class JointRead(NamedTuple):
    """Datasets whose records are read together."""

    sources: Sequence[FromDataset]
    graph: CompiledGraph

    @classmethod
    def of(cls, parts: Sequence[Stage]) -> JointRead | None:
        """Return how the records of several parts are read together, or None where that cannot be.

        Each part must be a dataset of files whose records are never holes, so that the positions are known.
        """
        sources = [part for part in parts if isinstance(part, FromDataset) and _is_plain(part)]
        if len(sources) < len(parts):
            return None
        return cls(sources, CompiledGraph([source.dataset for source in sources]))


class _Planned(NamedTuple):
    """Draws whose order is resolved."""

    taken: Int64s
    """The number of records that were taken of each part before them, over all epochs."""

    labels: Int64s
    """The part of each draw."""

    positions: Int64s

    ended: int | None
    """The part that has ended when the next draw comes."""


class _Read(NamedTuple):
    """Draws whose records were read together."""

    planned: _Planned
    """Draws of which these are some."""

    first: int
    """The number of those before these; all of them in the place of a part that has ended."""

    labels: list[int]
    positions: list[int]
    records: list[Any]


@final
class MixedSources(Runs):
    """The records of several datasets in one lane."""

    def __init__(self, joint: JointRead, lane: Lane, *, draws_of: Draws, stop: _Stop) -> None:
        self._joint, self._lane = joint, lane.number
        self._draws_of, self._stop = draws_of, stop
        self._draws = _Draws(stop, lane)
        self._begun = [below.cut(0)[0] for below in lane.inputs]
        taken = np.array([values.get("at", 0) for values in self._begun], dtype=np.int64)
        none = np.empty(0, dtype=np.int64)
        self._last = _Read(_Planned(taken, none, none, None), 0, [], [], [])
        """The records that were read last, from number ``_next`` on those that are not taken."""
        self._next = 0
        self._reads = self._read()

    def take(self, count: int, behind: int) -> Run:
        """Return the next records; what was read together is given out in parts."""
        self._draws.keep(behind)
        while self._next == len(self._last.records):
            # Free before the next ones are read; and those before them count as taken.
            self._last = self._last._replace(first=self._last.first + self._next, records=[])
            self._next = 0
            last = next(self._reads, None)
            if last is None:
                return Run([], list)
            self._last = last
            if last.planned.ended is not None and last.first == last.planned.labels.size:
                self._draws.end(last.planned.ended)
        at = slice(self._next, self._next + count)
        records, labels, positions = self._last.records[at], self._last.labels[at], self._last.positions[at]
        self._next += len(records)
        self._draws.add(labels)
        return Run(records, lambda: zip(labels, positions, strict=True))

    def values(self, behind: int) -> dict[str, Any]:
        """Return the number of draws, and the parts that have ended."""
        return self._draws.values(behind)

    def below(self, behind: int) -> list[StageValues]:
        """Return the values of each part: how many of its records were taken and are not behind."""
        planned, parts = self._last.planned, len(self._begun)
        taken = planned.taken + np.bincount(planned.labels[: self._last.first + self._next], minlength=parts)
        left = np.array(self._draws.last(max(behind, 0)), dtype=np.int64)
        counts = (taken - np.bincount(left, minlength=parts)).tolist()
        return [
            [{**begun, "at": count} if count else begun]
            for begun, count in zip(self._begun, counts, strict=True)
        ]

    def _read(self) -> Iterator[_Read]:
        """Yield the records of some draws, and each part that has ended."""
        at_once = FIRST_READ
        for planned, plan, ahead in reads_ahead(self._planned()):
            labels, positions = planned.labels.tolist(), planned.positions.tolist()
            first = 0
            while first < len(labels):
                last = min(first + at_once, len(labels))
                ahead.read_to(last)
                at = slice(first, last)
                yield _Read(planned, first, labels[at], positions[at], plan.slice(first, last).read())
                first, at_once = last, min(2 * at_once, MOST_READ)
            if planned.ended is not None:
                yield _Read(planned, first, [], [], [])

    def _planned(self) -> Iterator[tuple[_Planned, Plan]]:
        """Yield the draws from now on, and their plans, each up to the end of a part."""
        rows = _LaneRows(self._joint.sources, self._lane, self._last.planned.taken)
        state, draw, count = self._draws.values(END), self._draws.count, FIRST_DRAWS
        while (draws := self._draws_of(state, self._lane, draw, count)) is not None:
            planned = rows.next(*draws)
            draw += planned.labels.size
            yield planned, self._joint.graph.plan(planned.labels, planned.positions)
            if planned.ended is not None and self._stop == "first":
                return
            if planned.ended is not None:
                ended = [*state.get("ended", ()), planned.ended]
                state = {**state, "ended": ended, "since": draw}
            count = MOST_DRAWS


@final
class _LaneRows:
    """Counts the rows of one lane in several datasets, and finds their positions."""

    def __init__(self, sources: Sequence[FromDataset], lane: int, taken: Int64s) -> None:
        sizes = [source.dataset.size for source in sources]
        rows = [
            _ENDLESS if size is None else num_lane_rows(size, source.lanes, lane)
            for source, size in zip(sources, sizes, strict=True)
        ]
        bounds = np.array([source.bounds(lane) for source in sources], dtype=np.int64)
        self._lanes, self._lane = sources[0].lanes, lane
        self._sizes = np.array([size or 0 for size in sizes], dtype=np.int64)
        self._rows = np.array(rows, dtype=np.int64)
        self._taken, self._first = taken, bounds[:, 0]
        self._ends = np.where(self._rows == 0, self._first + taken, bounds[:, 1])

    def next(self, labels: Int64s, numbers: Int64s) -> _Planned:
        """Return the next draws and their positions, up to one of a part that has ended.

        Args:
            labels: the part of each draw.
            numbers: the number of the draw among those of its part, from any number on.
        """
        taken, first = self._taken, np.zeros_like(self._taken)
        # Of the values for one index the last one is kept: that of the first draw of a part.
        first[labels[::-1]] = numbers[::-1]
        numbers = (self._first + taken - first)[labels] + numbers
        over = np.flatnonzero(numbers >= self._ends[labels])
        ended = int(labels[over[0]]) if over.size else None
        if over.size:
            labels, numbers = labels[: over[0]], numbers[: over[0]]
        self._taken = taken + np.bincount(labels, minlength=taken.size)
        epochs, turns = np.divmod(numbers, self._rows[labels])
        positions = epochs * self._sizes[labels] + turns * self._lanes + self._lane
        return _Planned(taken, labels, positions, ended)


def _is_plain(source: FromDataset) -> bool:
    dataset = source.dataset
    if calls_functions(dataset) or (dataset.size == 0 and source.endless):
        return False
    if any(node.kind == _HOLES for node in nodes_of(dataset)):
        return False
    return all(isinstance(part, FilesLeaf) for leaf in leaves_of(dataset) for part in leaf.parts)
