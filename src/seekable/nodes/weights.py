"""Weights of a mixture, as users give them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from seekable._arguments import checked_count
from seekable.errors import InvalidArgument, WrongType
from seekable.order.apportionment import whole_weights

__all__ = ["Schedule", "Weights", "checked_schedule", "checked_weights", "is_schedule", "schedule_of"]

Weights = Mapping[str, float] | Sequence[float]
Schedule = Sequence[tuple[int, Weights]]

_PAIR = 2


def is_schedule(weights: object) -> bool:
    """Tell weights that change on the way from those that do not."""
    return isinstance(weights, Sequence) and any(isinstance(entry, tuple | list) for entry in weights)


def schedule_of(
    weights: Any, names: tuple[str, ...] | None, count: int
) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Return weights, or a schedule of them, as a schedule of integer weights.

    Args:
        weights: weights that hold from the start on, or pairs of a start and weights.
        names: the name of each part of the mixture, if they have any.
        count: the number of parts.

    Raises:
        InvalidArgument: starts that do not begin at 0 and ascend, or weights that break a rule.
        WrongType: no weights at all.

    Example:
        >>> schedule_of([1, 3], None, 2), schedule_of([(0, [1, 0]), (9, [1, 1])], None, 2)
        (((0, (1, 3)),), ((0, (1, 0)), (9, (1, 1))))
    """
    if is_schedule(weights):
        return checked_schedule(weights, names, count)
    return ((0, checked_weights(weights, names, count)),)


def checked_schedule(
    schedule: Any, names: tuple[str, ...] | None, count: int
) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Return from where on which integer weights hold.

    Args:
        schedule: pairs of a start and weights.
        names: the names of what is mixed, if it has any.
        count: how much is mixed.

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
        (start, checked_weights(entry, names, count))
        for start, (_, entry) in zip(starts, schedule, strict=True)
    )


def checked_weights(weights: Any, names: tuple[str, ...] | None, count: int) -> tuple[int, ...]:
    """Return weights as integers, in the order of what is mixed.

    Raises:
        InvalidArgument: weights that break a rule.
        WrongType: no weights at all.
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
