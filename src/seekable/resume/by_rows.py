"""A pipeline that goes on where an older one was: each source with the rest of its begun epoch first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from seekable.dataset.base import known_size
from seekable.errors import InvalidArgument
from seekable.order.positions import Left
from seekable.resume.match import matched
from seekable.resume.remainder import rest_of
from seekable.resume.simplify import continued
from seekable.resume.sources import lefts, parts_of, routed, with_parts
from seekable.resume.start_position import beginning, draws_before

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from seekable.dataset.base import Dataset
    from seekable.resume.match import Match
    from seekable.resume.remainder import Rest
    from seekable.resume.sources import Part

    Int64s = NDArray[np.int64]

__all__ = ["Gone", "Resumed", "continued_from", "gone_by", "resumed"]


@dataclass(frozen=True, slots=True)
class Gone:
    """How far an older pipeline had come."""

    parts: tuple[tuple[Part, Rest], ...]
    """What is left of the begun epoch of each of its parts."""

    draws: int
    """How often it was drawn from."""

    epochs: int
    """How many epochs of its run it had come through."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """A pipeline that goes on, and where it begins."""

    dataset: Dataset
    position: int
    epoch: int
    """The first epoch of its run."""

    taken: tuple[int, ...]
    """For each part, how many rows of its begun epoch were delivered."""


def gone_by(old: Dataset, left: Left, *, epoch: int = 0, in_flight: Int64s | None = None) -> Gone:
    """Return how far a pipeline had come.

    Args:
        old: its order (`seekable.resume.description.outlined`).
        left: what of its positions was not delivered, nor is in flight.
        epoch: the first epoch of its run.
        in_flight: positions of which nothing was delivered, though what comes after them was drawn.

    Raises:
        InvalidArgument: something above a mixture hides which source gave how much.
    """
    held = np.empty(0, dtype=np.int64) if in_flight is None else in_flight
    columns = zip(parts_of(old), lefts(old, left), routed(old, held), strict=True)
    parts = tuple((part, rest_of(part.dataset, below, some)) for part, (_, below), (_, some) in columns)
    whole = left.tail - (1 if left.combs or held.size else 0)
    epochs = max(0, whole // old.size - epoch) if old.size else 0
    return Gone(parts, draws_before(old, left.tail), epochs)


def resumed(new: Dataset, gone: Gone) -> Resumed:
    """Return a pipeline that goes on by rows.

    Each source gives what was in flight, then the rest of its begun epoch in its old order, then its own
    epochs, the first of which has the next number.

    Raises:
        StateMismatch: the sources do not have the rows that are left.
        InvalidArgument: the pipelines' sources cannot be told apart, or the rows that were chosen by content
            are not known any more.

    Example:
        >>> import seekable as sk
        >>> words = sk.from_sequence(["a", "b", "c"])
        >>> went = resumed(words.shuffle(seed=2), gone_by(words, Left((), 1)))
        >>> went.dataset.fetch(np.arange(went.position, 3))
        ['b', 'c']
    """
    return continued_from(new, matched(gone.parts, parts_of(new)), draws=gone.draws, epochs=gone.epochs)


def continued_from(new: Dataset, matches: Mapping[int, Match], *, draws: int, epochs: int) -> Resumed:
    """Return a pipeline that goes on by rows, of whose parts it is known what they go on with.

    Args:
        new: the pipeline.
        matches: by the numbers of its parts.
        draws: how often the older pipeline was drawn from.
        epochs: how many epochs of its run that had come through.
    """
    news = parts_of(new)
    begun = [_begun(matches.get(number), part) for number, part in enumerate(news)]
    position, epoch = beginning(new, begun, draws=draws, gone=epochs)
    axes = [axis for _, axis in lefts(new, Left((), position))]
    parts = [
        _continued(part, matches.get(number), axis)
        for number, (part, axis) in enumerate(zip(news, axes, strict=True))
    ]
    taken = tuple(match.rest.taken if (match := matches.get(number)) else 0 for number in range(len(news)))
    return Resumed(with_parts(new, parts), position, epoch, taken)


def _begun(match: Match | None, part: Part) -> tuple[int, int, int]:
    size = known_size(part.dataset, "resume='rows'")
    if match is None:
        return 0, 0, size
    if match.rest.left and not size:
        message = f"{part.called} has {match.rest.left:,} rows of a begun epoch left, and no rows now"
        raise InvalidArgument(message)
    return match.rest.begun, match.rest.left, size


def _continued(part: Part, match: Match | None, axis: Left) -> Dataset:
    """Return a part that gives the pieces first; itself where that is what it gives anyway."""
    begun, left, size = _begun(match, part)
    # Where its epochs can lie as they do without the pieces, they do.
    behind = axis.tail + left - sum(map(len, axis.combs))
    first = behind if size and not behind % size and behind // size >= begun else begun * size
    pieces = [(match.orders[id(order)], rows) for order, rows in match.rest.pieces] if match else []
    return continued(pieces, part.dataset, axis, first)
