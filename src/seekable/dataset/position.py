"""Positions on a dataset's endless axis; a plain integer is a row of epoch 0."""

from __future__ import annotations

import operator
import threading
from array import array
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from seekable._arguments import POSITIONS, checked_rows, out_of_range
from seekable.errors import OutOfRange, WrongType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

__all__ = [
    "NotedPosition",
    "Position",
    "Positions",
    "checked_place",
    "checked_places",
    "note_read",
]


class Position(int):
    """A place on a dataset's endless axis: of ``n`` records, row ``p % n`` of epoch ``p // n``.

    A ``Position`` is an int, for samplers and loaders of other libraries, which index a dataset: ``ds[5]`` is
    row 5 of epoch 0, as of any sequence, and ``ds[Position(p)]`` is the record that training reads at ``p``,
    in any epoch. A ``Position`` below 0, or from 2**63 on, raises ``OutOfRange`` when it is read.

    Example:
        >>> import seekable as sk
        >>> ds = sk.from_sequence("abcd").shuffle(seed=1)
        >>> [ds[Position(4 + row)] for row in range(4)] == list(ds.epoch(1))
        True
    """

    __slots__ = ()

    def __repr__(self) -> str:
        """Return ``Position(p)``, so that it is not taken for a row."""
        return f"Position({int(self)})"

    def __reduce__(self) -> tuple[type[Position], tuple[int]]:
        """Return what it is pickled as."""
        return Position, (int(self),)


class NotedPosition(Position):
    """A position on which a dataset notes that it has read it; it is pickled as a ``Position``."""

    reader: int | None = None
    """The thread of this process that has read the record; None before."""


class Positions(list[Position]):
    """A list of positions, pickled as one packed array, because each batch sends one to a worker.

    A dataset notes on it that it has read the records. The note is not pickled: what a worker has read stays
    unread in the process that requested it.

    Example:
        >>> import pickle
        >>> pickle.loads(pickle.dumps(Positions([Position(3), Position(5)])))
        [Position(3), Position(5)]
    """

    __slots__ = ("reader",)

    def __init__(self, positions: Iterable[Position] = ()) -> None:
        super().__init__(positions)
        self.reader: int | None = None
        """The thread of this process that has read the records; None before."""

    def __reduce__(self) -> tuple[Callable[[bytes], Positions], tuple[bytes]]:
        """Return what it is pickled as."""
        return _unpacked, (array("q", self).tobytes(),)


def _unpacked(packed: bytes) -> Positions:
    return Positions(map(Position, array("q", packed)))


def note_read(rows: object, records: Any) -> Any:
    """Note on ``Positions``, or on a ``NotedPosition``, that this thread has read the records; return these.

    Example:
        >>> positions = Positions([Position(3)])
        >>> note_read(positions, ["a record"])
        ['a record']
        >>> positions.reader == threading.get_ident()
        True
    """
    if isinstance(rows, Positions | NotedPosition):
        rows.reader = threading.get_ident()
    return records


def checked_place(row: SupportsIndex, size: int | None) -> int:
    """Return a row of epoch 0, or a ``Position``, as a plain position.

    Args:
        row: a row, a negative one counted from the end; or a position.
        size: the number of rows of an epoch; None if there is no end.

    Raises:
        WrongType: ``row`` is not an integer.
        OutOfRange: the dataset does not have the row, or the position.

    Example:
        >>> checked_place(-1, 5), checked_place(Position(7), 5)
        (4, 7)
    """
    try:
        number = operator.index(row)
    except TypeError:
        column = f"; ds.select_columns([{row!r}]) has that column" if isinstance(row, str) else ""
        message = (
            f"a row is an integer, a list of them or a slice (got {row!r}: {type(row).__name__}){column}"
        )
        raise WrongType(message) from None
    if isinstance(row, Position):
        if not 0 <= number < POSITIONS:
            raise OutOfRange(_outside(number))
        return number
    if 0 <= number < (POSITIONS if size is None else size):
        return number
    if size is not None and -size <= number < 0:
        return number + size
    raise OutOfRange(out_of_range(number, size))


def checked_places(rows: Sequence[int] | NDArray[Any], size: int | None) -> NDArray[np.int64]:
    """Return a list of rows in epoch 0, or of ``Position``s, as an int64 array of positions.

    Args:
        rows: a flat list, tuple or array of rows, negative ones counted from the end; or a list or tuple of
            positions.
        size: the number of rows of an epoch; None if there is no end.

    Raises:
        WrongType: ``rows`` is not a flat list of integers, or has both rows and positions.
        OutOfRange: the dataset does not have a row, or a position.

    Example:
        >>> checked_places([0, -1], 5).tolist(), checked_places([Position(7), Position(3)], 5).tolist()
        ([0, 4], [7, 3])
    """
    kinds = set(map(type, rows)) if isinstance(rows, list | tuple) else set()
    positions = kinds & {Position, NotedPosition}
    if not positions:
        return checked_rows(rows, size)
    if positions != kinds:
        others = ", ".join(sorted(kind.__name__ for kind in kinds - positions))
        message = f"rows must all be positions, or none of them (got {others} beside Position)"
        raise WrongType(message)
    low, high = min(rows), max(rows)
    if low < 0 or high >= POSITIONS:
        raise OutOfRange(_outside(low if low < 0 else high))
    return np.array(rows, dtype=np.int64)


def _outside(position: int) -> str:
    return f"position {int(position)} is out of range: positions are numbers from 0 to 2**63 - 1"
