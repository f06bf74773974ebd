"""The mixtures of a stream that a run can steer, and the change of one lane.

A mixture of streams labels draws, and its parts are iterators. So when a lane has given its last item before
the step of a change, its mixture notes the draw that it has come to, and labels from there on with the new
weights. Items that wait in buffers, open packs or open turns stay what they were. The draw is a function of
the lane alone, so that it is the same on any ranks and in any workers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.errors import InvalidArgument, WrongType
from seekable.nodes.graph import nodes_of
from seekable.nodes.mix import Mix, schedule_of
from seekable.nodes.steer import Named, chosen
from seekable.state.journal import steers
from seekable.stream.from_dataset import FromDataset, stages_of
from seekable.stream.mix import MixBounded, MixItems

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.state.journal import Journal, Steer
    from seekable.stream.lane import LaneIterator
    from seekable.stream.stage import Stage
    from seekable.stream.stream import Stream

__all__ = ["LaneSteers", "mixture_number", "weights_before", "weights_for"]


def mixture_number(stream: Stream, mixture: int | str | None) -> int:
    """Return the number of a mixture of streams without end, counted from the top of the graph.

    Args:
        stream: the stream.
        mixture: its number, its name or None, as of `seekable.nodes.steer.mixture_number`.

    Raises:
        InvalidArgument: the stream ends; or there is none, or several and ``mixture`` is None, or none of
            this name or number. The message has the choices.
        WrongType: ``mixture`` is neither.
    """
    if not stream.endless:
        message = (
            f"a run over a stream with an end is not steered, because the end depends on the weights: leave "
            f"out epochs= of {stream!r:.200}, and bound the run by steps="
        )
        raise InvalidArgument(message)
    found = _mixtures(stream.stage)
    if not found:
        raise InvalidArgument(_no_mixture(stream))
    return chosen([Named(names, each.names, len(each.parts)) for _, each, names in found], mixture)


def weights_for(stream: Stream, number: int, weights: Any) -> tuple[int, ...]:
    """Return weights for a mixture as integers, in the order of its parts.

    Raises:
        InvalidArgument: the weights break a rule, or give a part with an end a positive one.
        WrongType: ``weights`` is neither a mapping nor a list, or is a schedule.
    """
    _, mixture, _ = _mixtures(stream.stage)[number]
    schedule = schedule_of(weights, mixture.names, len(mixture.parts))
    if len(schedule) > 1 or schedule[0][0]:
        raise WrongType(f"steer takes the weights from one step on (got a schedule, {weights!r:.100})")
    whole = schedule[0][1]
    for slot, (part, weight) in enumerate(zip(mixture.parts, whole, strict=True)):
        if weight and not part.endless:
            name = mixture.names[slot] if mixture.names else slot
            raise InvalidArgument(f"{name!r} ends, and a part of positive weight must be without end here")
    return whole


def weights_before(stream: Stream, journal: Journal, entry: Steer) -> tuple[int, ...] | None:
    """Return the weights of a mixture that hold before an entry; None where a schedule decides them."""
    before = [each for each in steers(journal) if each.mixture == entry.mixture and each.at <= entry.at]
    if before:
        return before[-1].weights
    _, mixture, _ = _mixtures(stream.stage)[entry.mixture]
    return mixture.schedule[0][1] if len(mixture.schedule) == 1 else None


def _no_mixture(stream: Stream) -> str:
    sources = [each for each in stages_of(stream.stage) if isinstance(each, FromDataset)]
    if any(isinstance(node, Mix) for source in sources for node in nodes_of(source.dataset)):
        return (
            f"the weights of {stream!r:.200} cannot be changed, because datasets were mixed before stream(): "
            f"each lane is at another position of their one order, and its tokens are these positions. Mix "
            f"the streams instead: sk.mix([a.stream(lanes={stream.lanes}), b.stream(lanes={stream.lanes})], "
            f"weights=..., seed=...)"
        )
    return (
        f"steer changes the weights of a mixture of streams, sk.mix([a.stream(...), b.stream(...)]), and "
        f"{stream!r:.200} has none"
    )


class LaneSteers:
    """The changes of the weights of a stream's mixtures, which lanes make when they come to them.

    Args:
        stage: the stage of the stream.
        journal: the changes, whose positions are slots.
    """

    def __init__(self, stage: Stage, journal: Journal) -> None:
        found = _mixtures(stage) if steers(journal) else []
        self._changes = [
            (place, [each for each in steers(journal) if each.mixture == number])
            for number, (place, _, _) in enumerate(found)
        ]

    def change(self, iterator: LaneIterator, slot: int) -> None:
        """Change the mixtures of a lane as is due before it gives the item of a slot."""
        for place, entries in self._changes:
            due = [each for each in entries if each.position is not None and each.position <= slot]
            if not due:
                continue
            mixture = list(iterator.walk())[place]
            if mixture.state.get("steered", [0])[0] < len(due):
                # What was read ahead has the old weights.
                iterator.pause()
                came = mixture.state.get("stint" if isinstance(mixture.stage, MixBounded) else "draw", 0)
                mixture.state |= {"since": came, "steered": [len(due), *due[-1].weights]}


def _mixtures(stage: Stage) -> list[tuple[int, MixItems, list[str]]]:
    """Return the mixtures of streams without end, each with its place in a lane's states and its name."""
    return [
        (place, each.mixture if isinstance(each, MixBounded) else each, [name] if name else [])
        for place, (each, name) in enumerate(_named(stage, ""))
        if isinstance(each, MixItems | MixBounded) and each.endless
    ]


def _named(stage: Stage, name: str) -> Iterator[tuple[Stage, str]]:
    """Yield a stage and those below it in the order of a lane's states, and names that lead there."""
    yield stage, name
    names = stage.names if isinstance(stage, MixItems | MixBounded) else None
    for slot, below in enumerate(stage.inputs):
        part = name if names is None else f"{name}.{names[slot]}" if name else names[slot]
        yield from _named(below, part)
