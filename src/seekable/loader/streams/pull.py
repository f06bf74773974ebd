"""Items of some lanes for one batch after another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from seekable.errors import NothingPassed
from seekable.loader.streams.lanes import LaneChanges
from seekable.stream.lane import LaneIterator
from seekable.stream.partly_delivered import splitting_lineage

if TYPE_CHECKING:
    from seekable.loader.streams.lanes import Lanes
    from seekable.stream.stream import Stream

__all__ = ["Pulled", "Puller"]

_END: Final = object()


@dataclass(frozen=True, slots=True)
class Pulled:
    """What some lanes had for the slots of one batch."""

    items: list[tuple[int, Any]]
    """Slots and items, in the order of the slots; the slots of lanes that have ended are missing."""
    fresh: int
    """How many of the items are no padding."""
    holes: int
    """How many records were holes, and left out by the sources."""
    over: bool
    """Whether all of the lanes have ended."""
    changes: LaneChanges


class Puller:
    """Runs some lanes of a stream, from where they were."""

    def __init__(self, stream: Stream, lanes: Lanes, *, pad: bool) -> None:
        """Stand where the lanes stand.

        Args:
            stream: what runs.
            lanes: which lanes, and what they remember.
            pad: whether a lane that has ended begins anew to fill its slots.
        """
        self._stream, self._pad = stream, pad
        self._flows = {lane: LaneIterator(stream.stage, lane) for lane in lanes.stages}
        for lane, flow in self._flows.items():
            flow.load(lanes.stages[lane])
        self._sources = [each for flow in self._flows.values() for each in flow.walk() if not each.inputs]
        self._holes = [_holes_of(source) for source in self._sources]
        self._ended = set(lanes.ended)
        self._joint = splitting_lineage(stream.stage)
        self._given: dict[int, list[tuple[int, int]]] = {}
        self._over: set[int] = set()

    def pull(self, first: int, stop: int) -> Pulled:
        """Return the items of the slots ``first <= slot < stop`` that are these lanes'.

        Raises:
            NothingPassed: a lane without any item cannot fill its slots.
        """
        count, items, fresh = self._stream.lanes, [], 0
        before = frozenset(self._ended)
        touched: set[int] = set()
        for base in range(first - first % count, stop, count):
            for lane in self._flows:
                slot = base + lane
                if first <= slot < stop and lane not in self._over:
                    touched.add(lane)
                    item = self._next(lane)
                    if item is not _END:
                        items.append((slot, item))
                        fresh += lane not in self._ended
        items.sort(key=_slot)
        stages = {lane: self._flows[lane].deltas() for lane in touched}
        given, self._given = self._given, {}
        return Pulled(
            items,
            fresh,
            self._holes_since(),
            self._ended | self._over >= self._flows.keys(),
            LaneChanges(stages, frozenset(self._ended) - before, given),
        )

    def _holes_since(self) -> int:
        before, self._holes = self._holes, [_holes_of(source) for source in self._sources]
        # A source that began anew counts from nothing again.
        return sum(now - was if now >= was else now for was, now in zip(before, self._holes, strict=True))

    def _next(self, lane: int) -> Any:
        """Return the next item of a lane, padding too, or that there is none."""
        flow = self._flows[lane]
        for token, item in flow:
            if self._joint is not None:
                self._given.setdefault(lane, []).extend(self._joint.rows(token))
            return item
        if not self._pad:
            self._over.add(lane)
            return _END
        self._ended.add(lane)
        flow.restart()
        for _, item in flow:
            return item
        message = (
            f"lane {lane} of {self._stream.lanes} has no item to fill its slots with: use fewer lanes, or "
            f"end='drop'"
        )
        raise NothingPassed(message)


def _holes_of(source: LaneIterator) -> int:
    holes: int = source.state.get("holes", 0)
    return holes


def _slot(pair: tuple[int, Any]) -> int:
    return pair[0]
