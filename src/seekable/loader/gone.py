"""How far each source of a saved run has come: for people, from what lies beside the state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import InvalidArgument
from seekable.loader.rebuilt import whole_description
from seekable.nodes.sources.columnar.source import TableSource
from seekable.nodes.windowed import WindowedShuffle
from seekable.order.positions import Left
from seekable.resume.by_rows import gone_by
from seekable.resume.continued import Continued
from seekable.resume.description import UNKNOWN_ROWS, outlined
from seekable.resume.streams.resume import old_sources
from seekable.state.stream import StreamState
from seekable.stream.kept import Kept
from seekable.stream.lineage import described_joint
from seekable.stream.partly_delivered import parsed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seekable.dataset.base import Dataset
    from seekable.loader.saved import Saved
    from seekable.resume.remainder import Rest
    from seekable.resume.sources import Name, Part

__all__ = ["SourceGone", "sources_gone"]


@dataclass(frozen=True, slots=True)
class SourceGone:
    """How far one source has come, and what it gives next."""

    name: str
    """What a mixture calls it; empty where there is none."""
    epoch: int
    """The epoch that was begun last, from 0."""
    rows: int
    """How many rows of it were delivered."""
    of: int
    """How many rows an epoch has."""
    shard: str | None
    """The file of the next row, as the state's index named it; None where the description does not tell."""
    row: int | None
    """The number of that row in its file."""

    @property
    def percent(self) -> float:
        """How much of the epoch was delivered."""
        return 100 * self.rows / self.of if self.of else 0.0


def sources_gone(saved: Saved) -> list[SourceGone]:
    """Return how far each source of a saved run has come.

    Raises:
        InvalidArgument: there is no description; or something above a mixture hides which source gave how
            much.
        CorruptState: the description or the state cannot be read.
    """
    state = saved.state
    if state is None or saved.description is None:
        message = f"{saved.path!r} does not say what the state is of: sk.save_state writes that beside it"
        raise InvalidArgument(message)
    if isinstance(state, StreamState):
        lanes = {lane: [Kept.parse(stage) for stage in stages] for lane, stages in state.lanes.items()}
        olds = old_sources(described_joint(saved.description), lanes, parsed(state.given), state.ended)
        return [_told((*old.name, *part.name), part, rest) for old in olds for part, rest in old.gone.parts]
    gone = gone_by(outlined(whole_description(saved)), Left((), state.position), epoch=state.epoch)
    return [_told(part.name, part, rest) for part, rest in gone.parts]


def _told(name: Name, part: Part, rest: Rest) -> SourceGone:
    called = ".".join(map(str, name))
    epoch = max(0, rest.begun - 1)
    place = _next_place(part.dataset, rest)
    shard, row = (None, None) if place is None else (place.path, place.row)
    return SourceGone(called, epoch, rest.taken, rest.size, shard, row)


def _next_place(part: Dataset, rest: Rest) -> Any:
    if not rest.size:
        return None
    last = part.new if isinstance(part, Continued) else part
    order, position = last, rest.begun * rest.size
    if rest.pieces:
        order, rows = rest.pieces[0]
        position = rows.start + rows.teeth[0]
    kinds = set(_kinds_in(order.describe(None)))
    # Where a table's groups end decides a windowed order, and is not in a description.
    if kinds & UNKNOWN_ROWS.keys() or {TableSource.kind, WindowedShuffle.kind} <= kinds:
        return None
    place = order.plan(np.array([position], dtype=np.int64)).locate()[0]
    while isinstance(place, list | tuple):
        place = place[0]
    return place


def _kinds_in(description: Mapping[str, Any]) -> Iterator[str]:
    yield description["kind"]
    for below in description.get("of", ()):
        yield from _kinds_in(below)
