"""Continued parts as simply as they can be told, and ever more simply once their pieces have come."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

from seekable.order.positions import Left
from seekable.resume.continued import Continued, Piece
from seekable.resume.sources import lefts, with_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.dataset.base import Dataset
    from seekable.order.positions import Comb

__all__ = ["continued", "settled"]


def continued(pieces: Sequence[tuple[Dataset, Comb]], new: Dataset, axis: Left, first: int) -> Dataset:
    """Return a dataset that gives some pieces first, and then ``new`` from a position on.

    Args:
        pieces: orders, and positions of them.
        new: what comes then.
        axis: the positions at which all this comes.
        first: where ``new`` goes on.
    """
    pieces = list(pieces)
    # What lies just before where the new order goes on, in that very order, is no piece.
    while pieces and pieces[-1][0] is new and _ends_at(pieces[-1][1], first):
        first = pieces.pop()[1].start
    if not pieces and not axis.combs:
        return _moved(new, first - axis.tail)
    olds = list({id(order): order for order, _ in pieces}.values())
    slots = {id(order): slot for slot, order in enumerate(olds)}
    return Continued(
        tuple(olds), new, tuple(Piece(slots[id(order)], rows) for order, rows in pieces), axis, first
    )


def settled(root: Dataset, left: Left) -> Dataset:
    """Return what a pipeline is where ``left`` is left of its positions, without the pieces that came.

    Only what has no piece left is told anew, so that a pipeline is the same at most positions.
    """
    parts = [
        _moved(part.new, part.moved_by) if _is_over(part, left) else part for part, left in lefts(root, left)
    ]
    return with_parts(root, parts)


def _is_over(part: Dataset, left: Left) -> TypeGuard[Continued]:
    if not isinstance(part, Continued) or not (part.pieces or part.axis.combs):
        return False
    return left.first >= part.axis.tail and part.turn_of(left.first) >= part.waiting


def _moved(new: Dataset, by: int) -> Dataset:
    """Return a dataset so many positions further on: itself, if that is none."""
    return Continued((), new, (), Left((), max(0, -by)), max(0, by)) if by else new


def _ends_at(rows: Comb, stop: int) -> bool:
    return rows.step == 1 and rows.start + rows.rows == stop
