"""A stream that goes on where an older one was: each source with the rest of its begun epoch first."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import CorruptState
from seekable.order.lanes import num_lane_rows, num_lane_rows_before
from seekable.order.positions import Comb, Left
from seekable.resume.by_rows import Gone, continued_from, gone_by
from seekable.resume.description import outlined
from seekable.resume.match import matched
from seekable.resume.sources import Part, parts_of
from seekable.stream.contract import Stage
from seekable.stream.lineage import joint_of, rows_held
from seekable.stream.source import FromDataset

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from seekable.dataset.base import Dataset
    from seekable.resume.by_rows import Resumed
    from seekable.resume.remainder import Rest
    from seekable.resume.sources import Name
    from seekable.stream.base import Stream
    from seekable.stream.kept import Kept
    from seekable.stream.lineage import Joint

__all__ = ["OldSource", "left_of", "old_sources", "resumed_stream", "with_sources"]


@dataclass(frozen=True, slots=True)
class OldSource:
    """How far one source of an older pipeline had come."""

    name: Name
    gone: Gone


def old_sources(
    joint: Joint,
    lanes: Mapping[int, Sequence[Kept]],
    given: Mapping[int, Sequence[tuple[int, int]]],
    ended: Collection[int],
) -> list[OldSource]:
    """Return how far each source of an older stream had come.

    Args:
        joint: its graph.
        lanes: what the stages of every lane remember.
        given: for each lane, the rows of which something waits and something was delivered.
        ended: the lanes that came to their end, and began anew to fill batches.

    Raises:
        InvalidArgument: something above a mixture hides which source gave how much.
        CorruptState: it is the state of another graph.
    """
    sources = list(joint.sources())
    held: list[list[int]] = [[] for _ in sources]
    for lane, stages in lanes.items():
        if lane in ended:
            continue
        delivered = set(given.get(lane, ()))
        for number, position in rows_held(joint, stages):
            if (number, position) not in delivered:
                held[number].append(position)
    places = [place for place, below in enumerate(joint.all()) if not below.inputs]
    found = []
    for (name, source), place, waiting in zip(sources, places, held, strict=True):
        dataset, epochs, start, first = _source_of(source.source)
        taken = [_at(lanes[lane][place]) for lane in sorted(lanes)]
        if epochs is not None and dataset.size is not None:
            whole = [
                _count(dataset.size, first, start + epochs * dataset.size, len(lanes), lane) for lane in lanes
            ]
            taken = [whole[lane] if lane in ended else count for lane, count in enumerate(taken)]
        left = left_of(dataset.size, first, taken)
        in_flight = np.array(waiting, dtype=np.int64)
        gone = gone_by(dataset, left, epoch=start // dataset.size if dataset.size else 0, in_flight=in_flight)
        # Without an end there is no run of which epochs would be left.
        found.append(OldSource(name, gone if epochs is not None else replace(gone, epochs=0)))
    return found


def left_of(size: int | None, first: int, taken: Sequence[int]) -> Left:
    """Return what is left of a dataset's positions if each lane took as many of its own as ``taken`` says.

    Args:
        size: records of an epoch.
        first: the position at which the lanes began.
        taken: how many each lane took since.

    Example:
        >>> left_of(10, 0, [7, 2]).lagging.tolist(), left_of(10, 0, [7, 2]).tail
        ([5, 7, 9, 11], 13)
    """
    lanes = len(taken)
    numbers = [num_lane_rows_before(first, size, lanes, lane) + count for lane, count in enumerate(taken)]
    if not size:
        return Left.behind(0, numbers)
    rows = [num_lane_rows(size, lanes, lane) for lane in range(lanes)]
    begun = [
        (number - 1) // each if number and each else 0 for number, each in zip(numbers, rows, strict=True)
    ]
    combs: list[Comb] = []
    left = Left()
    for epoch in range(min(begun), max(begun) + 1):
        drawn = [min(max(0, number - epoch * each), each) for number, each in zip(numbers, rows, strict=True)]
        left = Left.behind(epoch * size, drawn)
        if epoch < max(begun):
            combs += left.below((epoch + 1) * size)
    return Left((*combs, *left.combs), left.tail)


def resumed_stream(new: Stream, olds: Sequence[OldSource]) -> tuple[Stream, list[Resumed]]:
    """Return a stream that goes on by rows, and where each of its sources does.

    Raises:
        StateMismatch: the sources do not have the rows that are left.
        InvalidArgument: a stage has no rows that could be counted, or rows were chosen by content that is not
            known any more.
    """
    sources = [(name, joint.source) for name, joint in joint_of(new).sources()]
    news = [_named(name, part) for name, source in sources for part in parts_of(source.dataset)]
    gone: list[tuple[Part, Rest]] = [
        (_named(old.name, part), rest) for old in olds for part, rest in old.gone.parts
    ]
    matches = matched(gone, news)
    made: list[FromDataset] = []
    went: list[Resumed] = []
    before = 0
    for name, source in sources:
        count = len(parts_of(source.dataset))
        own = {number - before: match for number, match in matches.items() if 0 <= number - before < count}
        before += count
        rests = {id(match.rest) for match in own.values()}
        old = _old_of(name, olds, rests)
        resumed = continued_from(
            source.dataset, own, draws=old.draws if old else 0, epochs=old.epochs if old else 0
        )
        went.append(resumed)
        made.append(_begun(source, resumed))
    return with_sources(new, made), went


def _begun(source: FromDataset, went: Resumed) -> FromDataset:
    """Return a source that begins where its dataset goes on, and ends with its run of epochs."""
    start, size = source.start, source.dataset.size
    if source.epochs is not None and size:
        start = went.epoch * size
        if went.position > start + source.epochs * size:
            # There are fewer epochs than before: the one in hand becomes the first.
            start = went.position // size * size
    return replace(source, dataset=went.dataset, start=start, begin=went.position)


def with_sources(stream: Stream, sources: Sequence[FromDataset]) -> Stream:
    """Return a stream with others in the places of the stages that read datasets, in their order."""
    following = iter(sources)
    made: Stream = _rebuilt(stream, lambda _: next(following))
    return made


def _rebuilt(stage: Any, source: Callable[[FromDataset], FromDataset]) -> Any:
    if isinstance(stage, FromDataset):
        return source(stage)
    if isinstance(stage, tuple):
        return tuple(_rebuilt(each, source) for each in stage)
    if not isinstance(stage, Stage):
        return stage
    values = {each.name: getattr(stage, each.name) for each in fields(stage)}  # type: ignore[arg-type]
    made = {name: _rebuilt(value, source) for name, value in values.items() if _holds_stages(value)}
    return replace(stage, **made)  # type: ignore[type-var]  # stages are dataclasses


def _holds_stages(value: Any) -> bool:
    return isinstance(value, Stage) or (isinstance(value, tuple) and any(map(_holds_stages, value)))


def _old_of(name: Name, olds: Sequence[OldSource], rests: set[int]) -> Gone | None:
    """Return the old source that a new one counts on from: that of its name, or of any of its parts."""
    own = [old.gone for old in olds if any(id(rest) in rests for _, rest in old.gone.parts)]
    named = [old.gone for old in olds if old.name == name]
    return next((gone for gone in own if gone in named), own[0] if own else None)


def _named(name: Name, part: Part) -> Part:
    return Part((*name, *part.name), part.dataset)


def _source_of(source: FromDataset | Mapping[str, Any]) -> tuple[Dataset, int | None, int, int]:
    """Return the order that a stage reads, for how many epochs, from where on, and where it really began."""
    if isinstance(source, FromDataset):
        return outlined(source.dataset.describe(None)), source.epochs, source.start, source.first
    start: int = source["start"]
    return outlined(source["of"][0]), source["epochs"], start, source.get("begin", start)


def _count(size: int, first: int, stop: int, lanes: int, lane: int) -> int:
    """Return how many rows a lane has between two positions."""
    return num_lane_rows_before(stop, size, lanes, lane) - num_lane_rows_before(first, size, lanes, lane)


def _at(kept: Kept) -> int:
    at = kept.memory.get("at", 0)
    if not isinstance(at, int) or at < 0:
        message = f"a source's 'at' must be an integer of at least 0 (got {at!r:.100})"
        raise CorruptState(message)
    return at
