"""Thousands of streams in given proportions, of which a few are open at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from seekable.stream.base import Stream
from seekable.stream.contract import Inner

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.stream.contract import Stage, Token
    from seekable.stream.flow import Flow
    from seekable.stream.mix import MixItems

__all__ = ["MixOpen"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class MixOpen(Stream, Inner):
    """A lane draws from ``places`` open parts in turn; each gives ``stint`` items, then another takes over.

    Whose turn it is to take a place is the mixture's order, of stints in place of items: so the shares are
    those of the weights, over many stints, and nothing is left to chance. Tokens are (number of the part,
    token).
    """

    mixture: MixItems
    places: int
    stint: int

    kind: ClassVar[str] = "mix-open"

    @property
    def inputs(self) -> tuple[Stage, ...]:
        """The parts."""
        return self.mixture.parts

    @property
    def lanes(self) -> int:
        """As many as each part has."""
        return self.mixture.lanes

    @property
    def endless(self) -> bool:
        """As the mixture of all of them."""
        return self.mixture.endless

    def arguments(self) -> dict[str, Any]:
        """Those of the mixture, how many parts are open, and for how many items each."""
        return {**self.mixture.arguments(), "open": self.places, "stint": self.stint}

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the call."""
        return f"{self.mixture.shown(inputs)[:-1]}, open={self.places})"

    def items(self, flow: Flow) -> Iterator[tuple[Token, Any]]:
        """Draw from one place after another."""
        memory = flow.memory
        stints = _Stints(self, flow)
        places: list[list[int]] = memory.setdefault("places", [])
        while len(places) < self.places and "draw" not in memory and (label := stints.next()) is not None:
            places.append([label, self.stint])
        draw = memory.get("draw", 0)
        while places:
            place = places[draw % len(places)]
            if not place[1]:
                stints.change(place)
                if not place[1]:
                    del places[draw % len(places)]
                    continue
            label = place[0]
            for token, item in flow.inputs[label]:
                place[1] -= 1
                memory["draw"] = draw = draw + 1
                yield (label, token), item
                break
            else:
                if self.mixture.stop == "first":
                    return
                stints.end(label)

    def gone_by(self, flow: Flow) -> int:
        """Return the least epochs of those parts that are still drawn."""
        return self.mixture.gone_by(flow)

    def origins(self, token: Token) -> Sequence[tuple[int, Token]]:
        """Return the item of one part."""
        return self.mixture.origins(token)

    def remake(self, token: Token, items: Sequence[Any]) -> Any:
        """Return it."""
        return items[0]


class _Stints:
    """Whose turn it is to take a place, in one lane."""

    def __init__(self, stage: MixOpen, flow: Flow) -> None:
        self._stage, self._flow = stage, flow
        self._labels: list[int] = []
        self._from = 0

    def next(self) -> int | None:
        """Return who takes the next stint; None if nobody is left."""
        memory = self._flow.memory
        stint: int = memory.get("stint", 0)
        if not 0 <= stint - self._from < len(self._labels):
            labels = self._stage.mixture.labels(memory, self._flow.lane, stint)
            if labels is None:
                return None
            self._labels, self._from = labels, stint
        memory["stint"] = stint + 1
        return self._labels[stint - self._from]

    def change(self, place: list[int]) -> None:
        """Give a place to the next part, if there is one, and close the one that leaves it."""
        leaves, follows = place[0], self.next()
        if follows is not None:
            place[:] = [follows, self._stage.stint]
        if all(label != leaves or not left for label, left in self._flow.memory["places"]):
            self._flow.inputs[leaves].pause()

    def end(self, label: int) -> None:
        """Count a part as ended, and give up its places."""
        memory = self._flow.memory
        memory["ended"] = [*memory.get("ended", ()), label]
        memory["since"] = memory.get("stint", 0)
        self._labels = []
        for place in memory["places"]:
            if place[0] == label:
                place[1] = 0
