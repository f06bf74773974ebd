"""Runs of a mixture of datasets whose records are read together, whichever part they are of.

The order of thousands of draws is resolved by a few array operations over all parts. That of each part by
itself would take some for each of hundreds.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

import numpy as np

from seekable.nodes.bases import calls_functions, leaves_of
from seekable.nodes.compile import CompiledGraph
from seekable.nodes.files.leaf import FilesLeaf
from seekable.nodes.readahead import reads_ahead
from seekable.order.lane_rows import num_lane_rows
from seekable.stream.draws import FIRST_DRAWS, MOST_DRAWS, Draws
from seekable.stream.runs import END, Runs
from seekable.stream.source import FIRST_READ, MOST_READ, FromDataset

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable._typing import Int64s
    from seekable.nodes.graph import Plan
    from seekable.stream.draws import Labels, Stop
    from seekable.stream.runs import Cut, Pairs
    from seekable.stream.stage import Lane, Stage

__all__ = ["JointRead", "MixedSources"]

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
    """Draws whose order is resolved: their parts and positions, and the part that ends before the next."""

    labels: list[int]
    positions: list[int]
    ended: int | None


@final
class MixedSources(Runs):
    """The records of several datasets in one lane."""

    def __init__(self, joint: JointRead, lane: Lane, *, labels_of: Labels, stop: Stop) -> None:
        self._joint, self._lane = joint, lane.number
        self._labels_of, self._stop = labels_of, stop
        self._draws = Draws(stop, lane)
        self._begun = [below.cut(0)[0] for below in lane.inputs]
        self._taken = Counter({part: values.get("at", 0) for part, values in enumerate(self._begun)})
        """The number of records that were taken of each part, over all epochs."""
        self._reads = self._read()
        self._labels: list[int] = []
        self._pairs: Pairs = []
        """Records that were read together, from number ``_next`` on those that are not taken."""
        self._next = 0

    def take(self, count: int, behind: int) -> Pairs:
        """Return the next records; what was read together is given out in parts."""
        self._draws.keep(behind)
        while self._next == len(self._pairs):
            ended, self._labels, self._pairs = next(self._reads, (None, [], []))
            self._next = 0
            if ended is not None:
                self._draws.end(ended)
            elif not self._pairs:
                return []
        stop = self._next + count
        pairs, labels = self._pairs[self._next : stop], self._labels[self._next : stop]
        self._next += len(pairs)
        self._draws.add(labels)
        self._taken.update(labels)
        return pairs

    def values(self, behind: int) -> dict[str, Any]:
        """Return the number of draws, and the parts that have ended."""
        return self._draws.values(behind)

    def below(self, behind: int) -> list[Cut]:
        """Return the values of each part: the number of its records that were taken and are not behind."""
        taken = self._taken.copy()
        taken.subtract(self._draws.last(max(behind, 0)))
        return [
            [{**begun, "at": taken[part]} if taken[part] else begun] for part, begun in enumerate(self._begun)
        ]

    def _read(self) -> Iterator[tuple[int | None, list[int], Pairs]]:
        """Yield the parts of some draws and their records with tokens, and each part that has ended."""
        at_once = FIRST_READ
        for planned, plan, ahead in reads_ahead(self._planned()):
            tokens = list(zip(planned.labels, planned.positions, strict=True))
            first = 0
            while first < len(tokens):
                last = min(first + at_once, len(tokens))
                ahead.read_to(last)
                records = plan.slice(first, last).read()
                yield None, planned.labels[first:last], list(zip(tokens[first:last], records, strict=True))
                first, at_once = last, min(2 * at_once, MOST_READ)
            if planned.ended is not None:
                yield planned.ended, [], []

    def _planned(self) -> Iterator[tuple[_Planned, Plan]]:
        """Yield the draws from now on, and their plans, each up to the end of a part."""
        taken = [self._taken[part] for part in range(len(self._begun))]
        numbers = _Numbers(self._joint.sources, self._lane, taken)
        state, draw, count = self._draws.values(END), self._draws.count, FIRST_DRAWS
        while (labels := self._labels_of(state, self._lane, draw, count)) is not None:
            which, positions, ended = numbers.next(labels)
            draw += which.size
            yield (
                _Planned(which.tolist(), positions.tolist(), ended),
                self._joint.graph.plan(which, positions),
            )
            if ended is not None and self._stop == "first":
                return
            if ended is not None:
                state = {**state, "ended": [*state.get("ended", ()), ended], "since": draw}
            count = MOST_DRAWS


@final
class _Numbers:
    """Counts the rows of one lane in several datasets, and finds their positions."""

    def __init__(self, sources: Sequence[FromDataset], lane: int, taken: Sequence[int]) -> None:
        sizes = [source.dataset.size for source in sources]
        rows = [
            _ENDLESS if size is None else num_lane_rows(size, source.lanes, lane)
            for source, size in zip(sources, sizes, strict=True)
        ]
        bounds = np.array([source.bounds(lane) for source in sources], dtype=np.int64)
        self._lanes, self._lane = sources[0].lanes, lane
        self._sizes = np.array([size or 0 for size in sizes], dtype=np.int64)
        self._rows = np.array(rows, dtype=np.int64)
        self._next = bounds[:, 0] + np.array(taken, dtype=np.int64)
        self._ends = np.where(self._rows == 0, self._next, bounds[:, 1])

    def next(self, labels: Int64s) -> tuple[Int64s, Int64s, int | None]:
        """Return the next draws and their positions, up to one of a part that has ended, and that part."""
        numbers = self._next[labels] + _ranks(labels)
        over = np.flatnonzero(numbers >= self._ends[labels])
        ended = int(labels[over[0]]) if over.size else None
        if over.size:
            labels, numbers = labels[: over[0]], numbers[: over[0]]
        self._next += np.bincount(labels, minlength=self._next.size)
        epochs, turns = np.divmod(numbers, self._rows[labels])
        return labels, epochs * self._sizes[labels] + turns * self._lanes + self._lane, ended


def _ranks(labels: Int64s) -> Int64s:
    """Return how many equal labels are before each one.

    Example:
        >>> _ranks(np.array([5, 7, 5, 5, 7])).tolist()
        [0, 0, 1, 2, 1]
    """
    order = np.argsort(labels, kind="stable")
    ordered = labels[order]
    begins = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if labels.size else order
    ranks = np.empty_like(labels)
    ranks[order] = np.arange(labels.size) - np.repeat(begins, np.diff(np.r_[begins, labels.size]))
    return ranks


def _is_plain(source: FromDataset) -> bool:
    dataset = source.dataset
    if calls_functions(dataset) or (dataset.size == 0 and source.endless):
        return False
    return all(isinstance(part, FilesLeaf) for leaf in leaves_of(dataset) for part in leaf.parts)
