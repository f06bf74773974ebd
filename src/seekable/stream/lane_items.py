"""The items of a stream as `seekable.writing` reads them: lane by lane, each from a state on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from seekable.errors import BadToken
from seekable.nodes.columns.arrow_types import common_types
from seekable.nodes.display import listed
from seekable.stream.from_dataset import FromDataset
from seekable.stream.lane import LaneIterator, StageState
from seekable.stream.map import FilterItems
from seekable.stream.mix import MixBounded, MixItems
from seekable.stream.shapes import SameItems, located
from seekable.stream.take import RepeatItems
from seekable.stream.zip import Chain
from seekable.writing.pipeline_code import functions_of, own_functions, paths_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from seekable.stream.stage import Stage
    from seekable.stream.token import Token

__all__ = ["StreamItems"]


@final
@dataclass(frozen=True, slots=True)
class StreamItems:
    """The items of a stage in all its lanes; it implements `LanedItems`."""

    stage: Stage

    @property
    def lanes(self) -> int:
        """The number of lanes of the stage."""
        return self.stage.lanes

    @property
    def fingerprint(self) -> str:
        """The digest of everything that decides the items and their order."""
        return self.stage.fingerprint

    def functions(self) -> Sequence[Callable[..., Any]]:
        """Return the functions of all stages and their datasets, without those of a version."""
        found: list[Callable[..., Any]] = []
        for stage in _stages(self.stage, set()):
            found += own_functions(stage)
            for dataset in stage.datasets:
                found += functions_of(dataset)
        return found

    def paths(self) -> Iterator[str]:
        """Yield the absolute paths of the data files that the sources of all stages read."""
        for stage in _stages(self.stage, set()):
            yield from stage.paths
            for dataset in stage.datasets:
                yield from paths_of(dataset)

    def declared(self) -> Mapping[str, Any] | None:
        """Return the columns of the sources, if all stages pass records on as they are; else None."""
        return _declared(self.stage)

    def run(self, lane: int, state: list[Any] | None) -> StageRun:
        """Return the items of a lane after a state; None for the first state."""
        return StageRun(self.stage, lane, state)

    def named(self, lane: int, token: Token) -> str:
        """Return the lane, the token and the places of the records of an item."""
        try:
            places = [f"record {place.row:,} of {place.path}" for place in located(self.stage, token)]
        except BadToken:
            places = []
        made = f", made of {listed(places)}" if places else ""
        return f"the item of lane {lane} with token {token!r}{made}"


@final
class StageRun:
    """The items of one lane from a state on; it implements `LaneRun`."""

    def __init__(self, stage: Stage, lane: int, state: list[Any] | None) -> None:
        self._iterator = LaneIterator(stage, lane)
        if state is not None:
            self._iterator.load([StageState.parse(one) for one in state])

    def __iter__(self) -> Iterator[tuple[Token, Any]]:
        return iter(self._iterator)

    @property
    def holes(self) -> int:
        """The number of records that the sources left out since the run began."""
        self._iterator.settle()
        return self._iterator.holes

    def state(self) -> list[Any]:
        """Return the state of each stage after the last item, JSON-safe."""
        return [one.document() for one in self._iterator.states()]


def _stages(stage: Stage, seen: set[int]) -> Iterator[Stage]:
    """Yield a stage and the stages below it, depth first; each once."""
    if id(stage) not in seen:
        seen.add(id(stage))
        yield stage
        for source in stage.inputs:
            yield from _stages(source, seen)


def _declared(stage: Stage) -> Mapping[str, Any] | None:
    if isinstance(stage, FromDataset):
        return stage.dataset.declared()
    if isinstance(stage, SameItems | FilterItems | RepeatItems | Chain | MixItems | MixBounded):
        return common_types([_declared(source) for source in stage.inputs])
    return None
