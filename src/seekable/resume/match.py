"""Which part of a pipeline goes on with which part of an older one."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seekable.errors import StateMismatch
from seekable.resume.continued import Continued
from seekable.resume.transplant import grafted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seekable.dataset.base import Dataset
    from seekable.resume.remainder import Rest
    from seekable.resume.sources import Part

__all__ = ["Match", "matched"]

_LOG = logging.getLogger("seekable")


@dataclass(frozen=True, slots=True)
class Match:
    """An older part that goes on."""

    rest: Rest

    orders: Mapping[int, Dataset]
    """The orders of its pieces over the present sources, by the ``id`` of those that were described."""


def matched(olds: Sequence[tuple[Part, Rest]], news: Sequence[Part]) -> dict[int, Match]:
    """Return, for the numbers of present parts, what they go on with; those that are new are missing.

    Parts go by their names, or by their places where they have none and are as many; else by their sources.
    What is left of a part that is gone is left out, with a warning in the log; of parts without names only if
    each of the present ones goes on with something.

    Raises:
        StateMismatch: a part does not have its old rows, or no part is there any more.
    """
    by_name = {part.name: number for number, part in enumerate(news)}
    as_many = [part.name for part, _ in olds] == [part.name for part in news]
    found: dict[int, Match] = {}
    unplaced: list[tuple[Part, Rest]] = []
    for part, rest in olds:
        number = by_name.get(part.name)
        if number is None or not (as_many or all(isinstance(each, str) for each in part.name)):
            unplaced.append((part, rest))
            continue
        try:
            found[number] = Match(rest, _orders(rest, part, news[number]))
        except StateMismatch:
            if _has_name(part):
                raise
            unplaced.append((part, rest))
    for part, rest in unplaced:
        failure = _place(part, rest, news, found)
        if failure is None:
            continue
        if not found or (len(found) < len(news) and not _has_name(part)):
            # A source that has changed, more likely than one that was taken out.
            raise failure
        if rest.left:
            _LOG.warning(
                "resume: %s is not in the pipeline any more: %d rows of its begun epoch are left out",
                part.called,
                rest.left,
            )
    return found


def _has_name(part: Part) -> bool:
    return bool(part.name) and isinstance(part.name[-1], str)


def _place(part: Part, rest: Rest, news: Sequence[Part], found: dict[int, Match]) -> StateMismatch | None:
    """Find a part with the sources of an older one; return why there is none."""
    failures: list[StateMismatch] = []
    for number, new in enumerate(news):
        if number not in found:
            try:
                found[number] = Match(rest, _orders(rest, part, new))
            except StateMismatch as error:
                failures.append(error)
            else:
                return None
    return failures[0] if failures else StateMismatch(f"{part.called} is not in the pipeline any more")


def _orders(rest: Rest, part: Part, new: Part) -> dict[int, Dataset]:
    """Return the orders of the pieces over the present sources.

    Raises:
        StateMismatch: they cannot be had; the message names the part.
    """
    last = part.dataset.new if isinstance(part.dataset, Continued) else part.dataset
    wanted = {id(order): order for order, _ in rest.pieces} or {id(last): last}
    try:
        return {key: grafted(order, new.dataset) for key, order in wanted.items()}
    except StateMismatch as error:
        message = f"resume='rows' needs the sources as they were, for {part.called}: {error}"
        raise StateMismatch(message) from error
