"""Several streams in given proportions, all of them open or a few at a time."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

from seekable._cached import cached
from seekable.nodes.display import listed
from seekable.order.keys import derive, kind_key
from seekable.order.mixture import Mixture
from seekable.stream.mixed_runs import FIRST_DRAWS, MOST_DRAWS, JointRead, MixedRuns, MixedSources
from seekable.stream.shapes import InputItems, SeveralInputs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable._typing import Int64s
    from seekable.stream.stage import Lane, Stage
    from seekable.stream.token import Token

__all__ = ["MixBounded", "MixItems"]

_KIND = kind_key("mix")
Schedule = tuple[tuple[int, tuple[int, ...]], ...]
"""Weights of the parts, each after the draw of a lane from which they hold; the first of these is 0."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class MixItems(SeveralInputs, InputItems):
    """Several streams in given proportions; each lane has the order that a mixture of datasets has.

    A part that has ended is drawn no more: from that draw on the other parts share its draws. Tokens are
    (index of the part, token).
    """

    names: tuple[str, ...] | None
    schedule: Schedule
    seed: int
    stop: Literal["first", "all"]

    kind: ClassVar[str] = "mix"
    item_by_item: ClassVar[bool] = True
    call: ClassVar[str] = "mix()"

    @property
    def endless(self) -> bool:
        """True if all parts of positive weight never end; with ``stop="all"``, if one of them never ends."""
        drawn = [
            part.endless for part, weights in zip(self.parts, self._columns, strict=True) if any(weights)
        ]
        return all(drawn) if self.stop == "first" else any(drawn)

    def arguments(self) -> dict[str, Any]:
        """Return the names, the schedule of weights, the seed and ``stop``."""
        schedule = [[start, list(weights)] for start, weights in self.schedule]
        return {"names": self.names, "schedule": schedule, "seed": self.seed, "stop": self.stop}

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the call of ``sk.mix``."""
        weights = [f"[{listed([str(weight) for weight in weights])}]" for _, weights in self.schedule]
        given = weights[0] if len(weights) == 1 else f"<schedule of {len(weights)}>"
        return f"mix([{listed(inputs)}], weights={given}, seed={self.seed}, stop={self.stop!r})"

    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        """Return the iterator over items that are drawn from the parts that the mixture's order names."""
        if self._joint is not None:
            return lane.in_runs(MixedSources(self._joint, lane, draws_of=self.draws, stop=self.stop))
        if all(part.has_runs for part in lane.inputs):
            return lane.in_runs(MixedRuns(self.labels, self.stop, lane))
        return self._one_by_one(lane)

    def _one_by_one(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        state = lane.state
        draw = state.get("draw", 0)
        nexts = [iter(source).__next__ for source in lane.inputs]
        count = FIRST_DRAWS
        while (labels := self.labels(state, lane.number, draw, count)) is not None:
            count = MOST_DRAWS
            for label in labels.tolist():
                try:
                    token, item = nexts[label]()
                except StopIteration:
                    if self.stop == "first":
                        return
                    state["ended"] = [*state.get("ended", ()), label]
                    state["since"] = draw
                    break
                state["draw"] = draw = draw + 1
                yield (label, token), item

    def epochs_done(self, lane: Lane) -> int:
        """Return the least number of epochs of the parts that are still drawn, or will be."""
        begun, ended = self._begun(lane.state.get("draw", 0)), lane.state.get("ended", ())
        weights = [column[begun:] for column in self._columns]
        if steered := lane.state.get("steered"):
            weights = [(weight,) for weight in steered[1:]]
        drawn = (i for i, column in enumerate(weights) if any(column) and i not in ended)
        return min((lane.inputs[i].epochs for i in drawn), default=0)

    def labels(self, state: dict[str, Any], lane: int, draw: int, count: int = FIRST_DRAWS) -> Int64s | None:
        """Return the indices of the parts that are drawn next, as ``draws``."""
        draws = self.draws(state, lane, draw, count)
        return None if draws is None else draws[0]

    def draws(self, state: dict[str, Any], lane: int, draw: int, count: int) -> tuple[Int64s, Int64s] | None:
        """Return the indices of the parts that are drawn next, and numbers; None if all parts have ended.

        The numbers count the draws of each part, from any number on.

        Args:
            state: names the parts that have ended, and the weights of a run that was steered, with the draw
                of the last of these changes.
            lane: the index of the lane.
            draw: the first draw.
            count: the number of draws.
        """
        ended = frozenset(state.get("ended", ()))
        since = state.get("since", 0)
        mixture = self._mixture(ended, since, tuple(state.get("steered", ())))
        return None if mixture is None else mixture.drawn(lane, draw - since, count)

    def _mixture(self, ended: frozenset[int], since: int, steered: tuple[int, ...] = ()) -> Mixture | None:
        """Return the order of the parts that have not ended, from draw ``since`` on.

        Args:
            ended: the parts that have ended.
            since: the draw of the last end or change.
            steered: the number of changes of a run that was steered, then its weights; empty without one.
        """
        place = (ended, since, steered)
        if place not in self._mixtures:
            schedule = ((0, steered[1:]),) if steered else self.schedule
            left = [
                (start, tuple(0 if i in ended else weight for i, weight in enumerate(weights)))
                for start, weights in schedule
            ]
            begun = 0 if steered else self._begun(since)
            left = [(0, left[begun][1]), *((start - since, weights) for start, weights in left[begun + 1 :])]
            there = [(start * self.lanes, weights) for start, weights in left if any(weights)]
            key = derive(_KIND, self.seed, len(ended), *steered[:1])
            self._mixtures[place] = (
                Mixture(((0, there[0][1]), *there[1:]), key=key, length=None, lanes=self.lanes)
                if there
                else None
            )
        return self._mixtures[place]

    def _begun(self, draw: int) -> int:
        """Return the index of the schedule's entry that holds at a draw."""
        return max(i for i, (start, _) in enumerate(self.schedule) if start <= draw)

    @property
    def _columns(self) -> list[tuple[int, ...]]:
        """The weights of each part, one for each entry of the schedule."""
        return list(zip(*(weights for _, weights in self.schedule), strict=True))

    @cached
    def _joint(self) -> JointRead | None:
        return JointRead.of(self.parts)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what was computed from the fields."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached
    def _mixtures(self) -> dict[tuple[frozenset[int], int, tuple[int, ...]], Mixture | None]:
        return {}


@final
@dataclass(frozen=True, eq=False, repr=False)
class MixBounded(InputItems):
    """Thousands of streams in given proportions, of which a lane has ``bound`` open at a time.

    The lane draws from its open parts in turn. Each part gives ``items_per_turn`` items; then another part
    takes its place. The mixture's order decides which, of turns instead of items: so the shares are those of
    the weights, over many turns, and nothing is left to chance. Tokens are (index of the part, token).
    """

    mixture: MixItems
    bound: int
    items_per_turn: int

    kind: ClassVar[str] = "mix-open"
    item_by_item: ClassVar[bool] = True

    @property
    def inputs(self) -> tuple[Stage, ...]:
        """The parts of the mixture."""
        return self.mixture.parts

    def with_inputs(self, inputs: Sequence[Stage]) -> MixBounded:
        """Return the same stage over other parts."""
        return replace(self, mixture=self.mixture.with_inputs(inputs))

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the parts, if they have names."""
        return self.mixture.names

    @property
    def lanes(self) -> int:
        """The number of lanes of each part."""
        return self.mixture.lanes

    @property
    def endless(self) -> bool:
        """True if the mixture of all parts never ends."""
        return self.mixture.endless

    def arguments(self) -> dict[str, Any]:
        """Return the mixture's arguments, the number of open parts, and the items of a turn."""
        return {**self.mixture.arguments(), "open": self.bound, "stint": self.items_per_turn}

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the call of ``sk.mix``."""
        return f"{self.mixture.shown(inputs)[:-1]}, open={self.bound})"

    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        """Draw from one open part after another."""
        state = lane.state
        turns = _Turns(self, lane)
        # Each open part, and how many items of its turn are left.
        parts: list[list[int]] = state.setdefault("places", [])
        while len(parts) < self.bound and "draw" not in state and (label := turns.next()) is not None:
            parts.append([label, self.items_per_turn])
        draw = state.get("draw", 0)
        while parts:
            part = parts[draw % len(parts)]
            if not part[1]:
                turns.change(part)
                if not part[1]:
                    del parts[draw % len(parts)]
                    continue
            label = part[0]
            for token, item in lane.inputs[label]:
                part[1] -= 1
                state["draw"] = draw = draw + 1
                yield (label, token), item
                break
            else:
                if self.mixture.stop == "first":
                    return
                turns.end(label)

    def epochs_done(self, lane: Lane) -> int:
        """Return the least number of epochs of the parts that are still drawn."""
        return self.mixture.epochs_done(lane)


class _Turns:
    """The order in which the parts of one lane take their turns."""

    def __init__(self, stage: MixBounded, lane: Lane) -> None:
        self._stage, self._lane = stage, lane
        self._labels: list[int] = []
        self._from = 0

    def next(self) -> int | None:
        """Return the index of the part that takes the next turn; None if all parts have ended."""
        state = self._lane.state
        turn: int = state.get("stint", 0)
        if not 0 <= turn - self._from < len(self._labels):
            labels = self._stage.mixture.labels(state, self._lane.number, turn)
            if labels is None:
                return None
            self._labels, self._from = labels.tolist(), turn
        state["stint"] = turn + 1
        return self._labels[turn - self._from]

    def change(self, part: list[int]) -> None:
        """Replace an open part by the next one, if there is one, and close it unless it has another turn."""
        leaves, follows = part[0], self.next()
        if follows is not None:
            part[:] = [follows, self._stage.items_per_turn]
        if all(label != leaves or not left for label, left in self._lane.state["places"]):
            self._lane.inputs[leaves].pause()

    def end(self, label: int) -> None:
        """Record that a part has ended, and end its turns."""
        state = self._lane.state
        state["ended"] = [*state.get("ended", ()), label]
        state["since"] = state.get("stint", 0)
        self._labels = []
        for part in state["places"]:
            if part[0] == label:
                part[1] = 0
