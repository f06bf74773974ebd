"""The records of a dataset, one lane's after another's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from seekable.dataset.show import expression
from seekable.errors import BadToken, NothingPassed
from seekable.nodes.hole import HOLE
from seekable.nodes.readahead import Ahead
from seekable.order.lanes import lane_positions, num_lane_rows, num_lane_rows_before
from seekable.stream.base import Stream
from seekable.stream.contract import Leaf
from seekable.stream.starving import LOOK_EVERY, Hunger

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.dataset.base import Dataset
    from seekable.stream.contract import Token
    from seekable.stream.flow import Flow

__all__ = ["FromDataset"]

_FIRST, _MOST = 256, 4096
"""Positions whose order is resolved in one go: fewer at first, so that nobody waits for the rest."""

_FEW, _AT_ONCE = 16, 128
"""Records read together: fewer at first, because of many sources in a mixture each would hold what is not
wanted for long; and never so many that they leave the processor's cache before they are used."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class FromDataset(Stream, Leaf):
    """Lane ``l`` has the rows ``r % lanes == l`` of each epoch; tokens are positions of the dataset."""

    dataset: Dataset
    lane_count: int
    epochs: int | None
    start: int
    begin: int | None = None
    """Where it begins instead of at its start, if it goes on by rows: epochs are counted from the start."""

    kind: ClassVar[str] = "dataset"

    @property
    def lanes(self) -> int:
        """As many as asked for."""
        return self.lane_count

    @property
    def endless(self) -> bool:
        """Unless a number of epochs was given."""
        return self.epochs is None

    @property
    def indexed(self) -> bool:
        """Always."""
        return True

    @property
    def checkpointable(self) -> bool:
        """Always."""
        return True

    @property
    def constant_time(self) -> bool:
        """Always."""
        return True

    def arguments(self) -> dict[str, Any]:
        """Where it begins, and for how many epochs."""
        begin = {} if self.begin is None else {"begin": self.begin}
        return {"epochs": self.epochs, "start": self.start, **begin}

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the method call."""
        given = [f"lanes={self.lane_count}"] if self.lane_count != self.dataset.lanes else []
        given += [f"epochs={self.epochs}"] if self.epochs is not None else []
        given += [f"start={self.start}"] if self.start else []
        return f"{expression(self.dataset)}.stream({', '.join(given)})"

    def items(self, flow: Flow) -> Iterator[tuple[Token, Any]]:
        """Yield the lane's records; holes are left out, and counted."""
        memory, size = flow.memory, self.dataset.size
        if size == 0 and self.endless:
            message = f"a stream without end needs records, and there are none in {self.dataset!r}"
            raise NothingPassed(message)
        an_epoch = None if size is None else num_lane_rows(size, self.lanes, flow.lane)
        begin, end = self._bounds(flow.lane)
        at, count, at_once = begin + memory.get("at", 0), _FIRST, _FEW
        hunger, missing = Hunger(self, flow), 0
        while at < end and an_epoch != 0:
            numbers = np.arange(at, min(end, at + count), dtype=np.int64)
            positions = lane_positions(numbers, size, self.lanes, flow.lane)
            plan = self.dataset.plan(positions)
            ahead = Ahead(plan)
            tokens = positions.tolist()
            first = 0
            while first < len(tokens):
                last = min(first + at_once, len(tokens))
                ahead.read_to(last)
                pairs = zip(tokens[first:last], plan.slice(first, last).read(), strict=True)
                # The place is noted by the loop itself, which costs less than a statement for each record.
                for memory["at"], pair in enumerate(pairs, at - begin + 1):
                    if pair[1] is not HOLE:
                        missing = 0
                        yield pair
                        continue
                    memory["holes"] = memory.get("holes", 0) + 1
                    missing += 1
                    if not missing % LOOK_EVERY:
                        hunger.look(missing)
                at += last - first
                first, at_once = last, min(2 * at_once, _AT_ONCE)
            count = min(2 * count, _MOST)

    def gone_by(self, flow: Flow) -> int:
        """Return how often the lane went through its rows."""
        size = self.dataset.size
        an_epoch = 0 if size is None else num_lane_rows(size, self.lanes, flow.lane)
        return int(flow.memory.get("at", 0)) // an_epoch if an_epoch else 0

    def read(self, tokens: Sequence[Token]) -> list[Any]:
        """Read the records at some positions, together."""
        records = self.dataset.fetch(np.array([self._position(token) for token in tokens], dtype=np.int64))
        for token, record in zip(tokens, records, strict=True):
            if record is HOLE:
                message = f"position {token} of {self.dataset!r} is a hole now: it was a record once"
                raise BadToken(message)
        return records

    def places(self, token: Token) -> list[Any]:
        """Say where the record at a position lies."""
        return self.dataset.plan(np.array([self._position(token)], dtype=np.int64)).locate()

    @property
    def first(self) -> int:
        """The first position."""
        return self.start if self.begin is None else self.begin

    def _bounds(self, lane: int) -> tuple[int, int]:
        """Return between which of its own numbers a lane runs."""
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
