"""Runs of a mixture whose parts make runs."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, final

from seekable.stream.draws import FIRST_DRAWS, MOST_DRAWS, Draws
from seekable.stream.runs import END, RunLength, Runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seekable.stream.draws import Labels, Stop
    from seekable.stream.runs import Pairs
    from seekable.stream.stage import Lane
    from seekable.stream.token import Token

__all__ = ["MixedRuns"]


@final
class MixedRuns(Runs):
    """The items of a mixture in one lane: each is the next one of a part's run."""

    def __init__(self, labels_of: Labels, stop: Stop, lane: Lane) -> None:
        self._labels_of, self._number, self._parts = labels_of, lane.number, lane.inputs
        self._draws = Draws(stop, lane)
        self._labels: list[int] = []
        """The parts of the next draws, from number ``_next`` on."""
        self._next = 0
        self._count = FIRST_DRAWS
        self._lengths = [RunLength() for _ in self._parts]
        self._left: list[Iterator[tuple[Token, Any]]] = [iter(())] * len(self._parts)
        """The items of each part's last run that are not drawn yet."""
        self._nexts: list[Callable[[], tuple[Token, Any]]] = [left.__next__ for left in self._left]
        self._error: Exception | None = None

    def take(self, count: int, behind: int) -> Pairs:
        """Draw each item from the part that the mixture's order names."""
        self._draws.keep(behind)
        pairs: Pairs = []
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
        return [((label, token), item) for label, (token, item) in zip(labels, pairs, strict=True)]

    def values(self, behind: int) -> dict[str, Any]:
        """Return the number of draws, and the parts that have ended."""
        return self._draws.values(behind)

    def below(self, behind: int) -> list[int]:
        """Return of each part the items of its last run that are not drawn, and those that are behind."""
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
            pairs = self._lengths[label].take(self._parts[label].take, self._draws.behind(label))
        except Exception as error:  # noqa: BLE001 - a user's function raises anything; raised in its turn
            self._error = error
            return
        self._left[label] = iter(pairs)
        self._nexts[label] = self._left[label].__next__
        if not pairs:
            self._labels, self._next = [], 0
            self._draws.end(label)
