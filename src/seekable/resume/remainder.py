"""What is left of the begun epoch of one part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from seekable.dataset.base import known_size
from seekable.order.positions import Comb, Left, combs_of
from seekable.resume.continued import Continued

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from seekable.dataset.base import Dataset

    Int64s = NDArray[np.int64]

__all__ = ["Rest", "rest_of"]

Piece = tuple["Dataset", Comb]
"""An order, and some of its positions."""


@dataclass(frozen=True, slots=True)
class Rest:
    """The rows that were not delivered of the last epoch of which any was."""

    pieces: tuple[Piece, ...]
    """Those in flight, then the others in their order."""

    begun: int
    """How many epochs were begun: the number of the next one."""

    size: int
    """How many records an epoch has."""

    @property
    def taken(self) -> int:
        """How many rows of the begun epoch were delivered; none, if lanes are still in two of them."""
        return max(0, self.size - self.left) if self.begun else 0

    @property
    def left(self) -> int:
        """How many rows the pieces have."""
        return sum(len(rows) for _, rows in self.pieces)


def rest_of(part: Dataset, left: Left, in_flight: Int64s | None = None) -> Rest:
    """Return what is left of a part's begun epoch.

    Args:
        part: its order; of what was itself continued, that.
        left: what of its positions was not drawn.
        in_flight: positions that were drawn, and of which nothing was delivered.

    Example:
        >>> import seekable as sk
        >>> rest = rest_of(sk.from_sequence("abcde"), Left((), 7), np.array([6]))
        >>> rest.begun, [rows.numbers() for _, rows in rest.pieces]
        (2, [[6, 1], [7, 3]])
    """
    size = known_size(part, "resume='rows'")
    if not size:
        return Rest((), 0, 0)
    held = np.empty(0, dtype=np.int64) if in_flight is None else in_flight
    if isinstance(part, Continued):
        return _rest_of_continued(part, left, held, size)
    end, begun = _end(left.tail - 1, size)
    rows = [*combs_of(held), *left.below(end)]
    return Rest(tuple((part, comb) for comb in rows), begun, size)


def _rest_of_continued(part: Continued, left: Left, held: Int64s, size: int) -> Rest:
    """Count in turns: of these the pieces have the first ones, then each epoch has as many as it has rows."""
    waiting, moved = part.waiting, part.first - part.waiting
    lagging, _ = part.turns(left.lagging)
    tail = part.turn_of(left.tail)
    # Positions before the tail need not be turns: then nothing was drawn since the pieces were what was left.
    turns = Left((), tail).with_more(lagging)
    lagging, tail = turns.lagging, turns.tail
    end, begun = _end(part.first - 1 if tail <= waiting else tail - 1 + moved, size)
    early = _pieces_at(part, np.concatenate([part.turns(held)[0], lagging[lagging < waiting]]))
    later = [*combs_of(lagging[lagging >= waiting] + moved)]
    run = max(tail, waiting) + moved
    if run < end:
        later.append(Comb(run, end - run))
    return Rest(
        (*early, *_pieces_from(part, tail), *((part.new, comb) for comb in later)),
        begun,
        size,
    )


def _end(last: int, size: int) -> tuple[int, int]:
    """Return where the epoch of a position ends, and how many epochs were begun with it."""
    begun = last // size + 1
    return begun * size, begun


def _pieces_at(part: Continued, turns: Int64s) -> Iterator[Piece]:
    """Yield what comes at some turns, in their order."""
    slots, below = part.route(part.places(turns))
    cuts = np.flatnonzero(np.diff(slots)) + 1
    for slot, rows in (
        zip(slots[np.append(0, cuts)], np.split(below, cuts), strict=True) if turns.size else ()
    ):
        yield from ((part.children[int(slot)], comb) for comb in combs_of(rows))


def _pieces_from(part: Continued, turn: int) -> Iterator[Piece]:
    """Yield the pieces from a turn on."""
    for piece in part.pieces:
        yield from ((part.olds[piece.slot], comb) for comb in piece.rows.behind(turn))
        turn = max(0, turn - len(piece.rows))
