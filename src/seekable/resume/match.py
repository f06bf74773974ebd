"""Pairs the sources of an old pipeline with those of the present one that continue them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seekable._log import LOG
from seekable.errors import StateMismatch
from seekable.resume.continued import Continued
from seekable.resume.transplant import transplanted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seekable.nodes.node import Node
    from seekable.order.positions import StridedRange
    from seekable.resume.remainder import Remainder
    from seekable.resume.sources import Source

__all__ = ["Match", "matched"]


@dataclass(frozen=True, slots=True)
class Match:
    """The rows of an old source that a present one delivers before its own order begins."""

    remainder: Remainder

    orders: Mapping[int, Node]
    """For the ``id`` of each order in the remainder's segments, that order over the present source."""

    @property
    def segments(self) -> list[tuple[Node, StridedRange]]:
        """The rows that are left, as positions of orders over the present source."""
        return [(self.orders[id(order)], positions) for order, positions in self.remainder.segments]


def matched(olds: Sequence[tuple[Source, Remainder]], news: Sequence[Source]) -> dict[int, Match]:
    """Return, for the number of each present source that continues an old one, what it continues.

    A source is continued by the present one with its name; without names by the one in its place, if there
    are as many as before; otherwise by the first one that has its rows. A source that nothing continues is
    left out with a warning in the log. One without a name is left out only if every present source continues
    something: otherwise it more likely changed than went.

    Args:
        olds: the old sources, and what is left of them.
        news: the present sources.

    Raises:
        StateMismatch: a present source lacks rows of the old one that it should continue, or no source is
            continued at all.
    """
    by_name = {source.name: number for number, source in enumerate(news)}
    same_names = [source.name for source, _ in olds] == [source.name for source in news]
    matches: dict[int, Match] = {}
    unmatched: list[tuple[Source, Remainder]] = []
    for old, remainder in olds:
        number = by_name.get(old.name)
        if number is None or not (same_names or all(isinstance(part, str) for part in old.name)):
            unmatched.append((old, remainder))
            continue
        try:
            matches[number] = _match(old, remainder, news[number])
        except StateMismatch:
            if _has_name(old):
                raise
            unmatched.append((old, remainder))
    left_out: list[tuple[Source, Remainder]] = []
    for old, remainder in unmatched:
        failure = _match_any(old, remainder, news, matches)
        if failure is None:
            continue
        if not matches or (len(matches) < len(news) and not _has_name(old)):
            raise failure
        left_out.append((old, remainder))
    for old, remainder in left_out:
        _warn_of_rows_left_out(old, remainder)
    return matches


def _match_any(
    old: Source, remainder: Remainder, news: Sequence[Source], matches: dict[int, Match]
) -> StateMismatch | None:
    """Add a match with the first present source that is free and has the rows; return why there is none."""
    failures: list[StateMismatch] = []
    for number, new in enumerate(news):
        if number not in matches:
            try:
                matches[number] = _match(old, remainder, new)
            except StateMismatch as error:
                failures.append(error)
            else:
                return None
    return failures[0] if failures else StateMismatch(f"{old.label} is not in the pipeline any more")


def _match(old: Source, remainder: Remainder, new: Source) -> Match:
    """Return the match of two sources.

    Raises:
        StateMismatch: the new source lacks rows of the old one; the message names the source.
    """
    latest = old.dataset.new if isinstance(old.dataset, Continued) else old.dataset
    # Without rows that are left, the latest order is looked at nevertheless: sources must be the same.
    orders = {id(order): order for order, _ in remainder.segments} or {id(latest): latest}
    try:
        return Match(remainder, {key: transplanted(order, new.dataset) for key, order in orders.items()})
    except StateMismatch as error:
        message = f"resume='rows' needs the sources as they were, for {old.label}: {error}"
        raise StateMismatch(message) from error


def _warn_of_rows_left_out(old: Source, remainder: Remainder) -> None:
    if remainder.num_left:
        LOG.warning(
            "resume: %s is not in the pipeline any more: %d rows of its begun epoch are left out",
            old.label,
            remainder.num_left,
        )


def _has_name(source: Source) -> bool:
    return bool(source.name) and isinstance(source.name[-1], str)
