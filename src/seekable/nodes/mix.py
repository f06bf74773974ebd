"""Mixtures of datasets in given proportions, and the checks of their weights."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from math import lcm
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

from seekable._arguments import checked_count, checked_seed
from seekable._cached import cached
from seekable.errors import InvalidArgument, WrongType
from seekable.nodes.bases import EachRouter, integer_of
from seekable.nodes.display import listed
from seekable.nodes.graph import Router, known_size
from seekable.nodes.node import Node, OrderNode
from seekable.order.apportionment import whole_weights
from seekable.order.blocks import default_blocks
from seekable.order.keys import derive, kind_key
from seekable.order.mixture import Mixture, decided_from, free_from, limit_of
from seekable.order.steered_mixture import SteeredMixture

if TYPE_CHECKING:
    from seekable._typing import Int64s
    from seekable.nodes.graph import SearchRange


__all__ = [
    "Mix",
    "Schedule",
    "Stop",
    "Weights",
    "mixed",
    "schedule_of",
]


Stop = Literal["first", "all", "never"]

_KIND = kind_key("mix")
_STOPS = ("first", "all", "never")
_PAIR = 2


def mixed(
    parts: tuple[Node, ...],
    names: tuple[str, ...] | None,
    *,
    weights: Weights | Schedule | None,
    seed: int,
    stop: Stop | None,
) -> Mix:
    """Return a mixture of some nodes, after the checks that ``sk.mix`` names.

    Args:
        parts: at least one node.
        names: the name of each part; None if the parts have no names.
        weights: a weight for each part, a schedule of them, or None for the lengths of the parts.
        seed: decides the order within blocks.
        stop: None for ``"first"``, or for ``"never"`` with a schedule.

    Raises:
        InvalidArgument: weights or a ``stop`` that break a rule, or an empty part of positive weight.
        EndlessDataset: a part has no length, and the weights or the ``stop`` need one.
    """
    if stop is not None and stop not in _STOPS:
        message = f"stop must be one of {', '.join(map(repr, _STOPS))} (got {stop!r})"
        raise InvalidArgument(message)
    scheduled = _is_schedule(weights)
    if scheduled and stop not in (None, "never"):
        message = f"a schedule of weights has no end, so stop must be left out or 'never' (got {stop!r})"
        raise InvalidArgument(message)
    if weights is None:
        weights = [known_size(part, "mix() without weights") for part in parts]
    schedule = schedule_of(weights, names, len(parts))
    _check_empty(schedule, names, parts)
    return Mix(parts, names, schedule, checked_seed(seed), "never" if scheduled else stop or "first")


def _check_empty(
    schedule: tuple[tuple[int, tuple[int, ...]], ...],
    names: tuple[str, ...] | None,
    parts: tuple[Node, ...],
) -> None:
    """Raise InvalidArgument for an empty dataset of positive weight."""
    for i, part in enumerate(parts):
        if part.size == 0 and any(weights[i] for _, weights in schedule):
            message = (
                f"a dataset of positive weight must have records (got none in {names[i] if names else i!r}): "
                f"give it weight 0, or leave it out"
            )
            raise InvalidArgument(message)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Mix(OrderNode):
    """Each record is drawn from one of the parts, in the order of `seekable.order.mixture`.

    A mixture of a run that was steered has ``cuts`` too: positions, and the weights from there on.
    """

    parts: tuple[Node, ...]
    names: tuple[str, ...] | None
    schedule: tuple[tuple[int, tuple[int, ...]], ...]
    seed: int
    stop: Stop
    cuts: tuple[tuple[int, tuple[int, ...]], ...] = ()

    kind: ClassVar[str] = "mix"
    apart: ClassVar[bool] = True
    counted: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise EndlessDataset for a part without a length on which the epoch's end depends."""
        if self.stop != "never":
            for part, weight in zip(self.parts, self.schedule[0][1], strict=True):
                if weight:
                    known_size(part, f"mix(stop={self.stop!r})")

    @property
    def children(self) -> tuple[Node, ...]:
        """The parts, in their order."""
        return self.parts

    @cached
    def size(self) -> int | None:
        """The number of draws of an epoch; None if the mixture is endless."""
        if self.stop == "never":
            return None
        return self._end[0]

    @property
    def limited_by(self) -> int | None:
        """The index of the part whose last record ends the epoch; None if the mixture is endless."""
        return None if self.size is None else self._end[1]

    @property
    def steady(self) -> bool:
        """False: each epoch has an order of its own."""
        return False

    @property
    def blocks(self) -> Int64s:
        """The default blocks of ``size`` rows: neighbours come from different parts."""
        return default_blocks(known_size(self, "blocks"))

    @cached
    def lanes(self) -> int:
        """The least common multiple of the parts' lanes."""
        return self._lanes_with([weights for _, weights in self.schedule])

    def _lanes_with(self, entries: Sequence[Sequence[int]]) -> int:
        drawn = zip(*entries, strict=True)
        return lcm(*(part.lanes for part, weights in zip(self.parts, drawn, strict=True) if any(weights)))

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return names, seed, stop, and what of the weights decides a record before the position ``upto``.

        Of an entry that begins later, but cuts short a block of draws before ``upto``, it is the start alone.
        """
        firsts = decided_from([start for start, _ in self.schedule], lanes=self.lanes)
        begun: list[list[Any]] = [
            [start, list(weights)] if not start or upto is None or start < upto else [start]
            for (start, weights), first in zip(self.schedule, firsts, strict=True)
            if not start or upto is None or first < upto
        ]
        weights = {"weights": begun[0][1]} if self.stop != "never" else {"schedule": begun}
        lanes = self._lanes_with([entry[1] for entry in begun if len(entry) > 1])
        # Weights of later positions may draw from a part with lanes, and lanes decide all positions.
        more: dict[str, Any] = {} if lanes == self.lanes else {"lanes": self.lanes}
        if cuts := [[at, list(weights)] for at, weights in self.cuts if upto is None or at < upto]:
            more["cuts"] = cuts
        return {"names": self.names, **weights, **more, "seed": self.seed, "stop": self.stop}

    def free_from(self, position: int) -> int:
        """Return the first start that a new entry may have without changing a record before a position."""
        starts = [entry[0] for entry in self.arguments(position)["schedule"]]
        return free_from(starts, position, lanes=self.lanes)

    @property
    def in_force(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """The positions from which on weights hold, and these: of the schedule up to the first cut."""
        first = self.cuts[0][0] if self.cuts else None
        declared = (entry for entry in self.schedule if first is None or entry[0] < first)
        return (*declared, *self.cuts)

    def steered(self, weights: tuple[int, ...], position: int) -> Mix:
        """Return the mixture with other weights from a position on, and the same records before it.

        Cuts from there on do not hold any more.
        """
        kept = tuple(cut for cut in self.cuts if cut[0] < position)
        made = replace(self, cuts=(*kept, (position, weights)))
        if kept and kept == self.cuts and isinstance(self._mixture, SteeredMixture):
            # What was counted up to here need not be counted again: a run may be steered thousands of times.
            vars(made)["_mixture"] = self._mixture.steered(weights, position)
        return made

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any], children: tuple[Node, ...]) -> Mix:
        """Return the node with these arguments over its parts."""
        names, weights = arguments["names"], arguments.get("weights")
        schedule = arguments["schedule"] if weights is None else [(0, weights)]
        return cls(
            children,
            names=None if names is None else tuple(names),
            schedule=tuple((start, tuple(some)) for start, some in schedule),
            seed=integer_of(arguments, "seed"),
            stop=arguments["stop"],
            cuts=tuple((at, tuple(some)) for at, some in arguments.get("cuts", ())),
        )

    def shown(self, children: Sequence[str]) -> str:
        """Return the expression of the call of ``mix``."""
        names = [f"{name!r}: " for name in self.names] if self.names else [""] * len(children)
        parts = listed([name + child for name, child in zip(names, children, strict=True)])
        weights = [f"[{listed([str(weight) for weight in weights])}]" for _, weights in self.schedule]
        given = weights[0] if len(weights) == 1 else f"<schedule of {len(weights)}>"
        if self.cuts:
            given = f"<{given}, steered {len(self.cuts)} time{'s' * (len(self.cuts) != 1)}>"
        parts = f"{{{parts}}}" if self.names else f"[{parts}]"
        return f"mix({parts}, weights={given}, seed={self.seed}, stop={self.stop!r})"

    @classmethod
    def router(cls, nodes: Sequence[Mix]) -> Router:
        """Return a router that routes the positions of each mixture separately."""
        return EachRouter(nodes)

    def route(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Return the part of each draw, and the position in that part."""
        return self._mixture.route(positions)

    def route_one(self, position: int) -> tuple[int, int]:
        """Return the part of one draw, and the position in that part."""
        return self._mixture.route_one(position)

    def child_range(self, slot: int, start: int, stop: int | None) -> tuple[int, int | None]:
        """Return the range of a part's positions that the mixture draws."""
        return self._mixture.span(slot, start, stop)

    def drawn_by_lanes(self, slot: int, position: int) -> tuple[int, list[int]]:
        """Return the position in a part at which an epoch begins, and the number drawn of it by each lane.

        What is drawn before a position counts, in its epoch.
        """
        return self._mixture.drawn_by_lanes(slot, position)

    def drawn_at(self, slot: int, count: int) -> int:
        """Return the first position before which ``count`` records of a part are drawn, over all epochs."""
        return self._planned.drawn_at(slot, count)

    def inverse(self, slot: int, positions: Int64s, within: SearchRange) -> Int64s:
        """Return the positions at which positions of a part are drawn."""
        return self._mixture.unroute(slot, positions)

    @cached
    def _end(self) -> tuple[int, int]:
        """The number of draws in an epoch, and the index of the part that ends it."""
        weights = self.schedule[0][1]
        operation = f"mix(stop={self.stop!r})"
        lengths = [
            known_size(part, operation) if weight else 0
            for part, weight in zip(self.parts, weights, strict=True)
        ]
        return limit_of(weights, lengths, lanes=self.lanes, longest=self.stop == "all")

    @cached
    def _mixture(self) -> Mixture | SteeredMixture:
        return SteeredMixture(self._planned, self.cuts) if self.cuts else self._planned

    @cached
    def _planned(self) -> Mixture:
        return Mixture(self.schedule, key=derive(_KIND, self.seed), length=self.size, lanes=self.lanes)


Weights = Mapping[str, float] | Sequence[float]

Schedule = Sequence[tuple[int, Weights]]


def _is_schedule(weights: object) -> bool:
    """Return True for a list of ``(start, weights)``, False for weights that never change."""
    return isinstance(weights, Sequence) and any(isinstance(entry, tuple | list) for entry in weights)


def schedule_of(
    weights: Any, names: tuple[str, ...] | None, count: int
) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Return weights, or a schedule of them, as a schedule of integer weights.

    Args:
        weights: weights that hold from the start on, or pairs of a start and weights.
        names: the name of each part of the mixture; None if the parts have no names.
        count: the number of parts.

    Raises:
        InvalidArgument: starts that do not begin at 0 and ascend, or weights that break a rule.
        WrongType: ``weights`` is neither a mapping nor a list.

    Example:
        >>> schedule_of([1, 3], None, 2), schedule_of([(0, [1, 0]), (9, [1, 1])], None, 2)
        (((0, (1, 3)),), ((0, (1, 0)), (9, (1, 1))))
    """
    if _is_schedule(weights):
        return _checked_schedule(weights, names, count)
    return ((0, _checked_weights(weights, names, count)),)


def _checked_schedule(
    schedule: Any, names: tuple[str, ...] | None, count: int
) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Return ``(start, integer weights)`` for each entry of a schedule, after checks.

    Args:
        schedule: pairs of a start and weights.
        names: the name of each part of the mixture; None if the parts have no names.
        count: the number of parts.

    Raises:
        InvalidArgument: starts that do not begin at 0 and ascend, or weights that break a rule.
    """
    if not all(isinstance(entry, tuple | list) and len(entry) == _PAIR for entry in schedule):
        message = f"a schedule is a list of (position, weights) (got {schedule!r})"
        raise InvalidArgument(message)
    starts = [checked_count("a schedule's position", start, least=0) for start, _ in schedule]
    if starts[0] != 0 or any(a >= b for a, b in itertools.pairwise(starts)):
        message = f"a schedule's positions must start at 0 and ascend (got {starts})"
        raise InvalidArgument(message)
    return tuple(
        (start, _checked_weights(entry, names, count))
        for start, (_, entry) in zip(starts, schedule, strict=True)
    )


def _checked_weights(weights: Any, names: tuple[str, ...] | None, count: int) -> tuple[int, ...]:
    """Return weights as integers, in the order of the parts.

    Raises:
        InvalidArgument: weights that break a rule.
        WrongType: ``weights`` is neither a mapping nor a list.
    """
    if isinstance(weights, Mapping):
        if names is None or set(weights) != set(names):
            message = f"weights must name what is mixed, {list(names or ())} (got {list(weights)})"
            raise InvalidArgument(message)
        given = [weights[name] for name in names]
    elif isinstance(weights, AbstractSet) or not hasattr(weights, "__iter__"):
        message = f"weights must be a dict, or a list in the order of what is mixed (got {weights!r})"
        raise WrongType(message)
    else:
        given = list(weights)
        if len(given) != count:
            message = f"weights must be as many as what is mixed, {count} (got {len(given)})"
            raise InvalidArgument(message)
    try:
        return tuple(whole_weights(given))
    except ValueError as error:
        raise InvalidArgument(str(error)) from None
