"""Pieces of documents, and the contract of the methods that fill samples with them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s

__all__ = ["LEFT_OUT", "LITERAL", "NO_PIECES", "Packing", "Pieces", "reordered"]

LITERAL = -1
"""The document of a piece that is one literal token: a sentinel of fill-in-the-middle."""


LEFT_OUT = -2
"""The document of a piece whose document is left out of the samples."""


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """The pieces of some samples, sample after sample, as columns.

    A piece is some tokens of a document that stand together, or one literal token.
    """

    bounds: Int64s
    """For each sample the index of its first piece, then the count of all pieces: (samples + 1,)."""

    documents: Int64s
    """The document of each piece, as a row of the child; `LITERAL` for a literal token."""

    starts: Int64s
    """The first token of each piece in its document; of a literal token its id."""

    counts: Int64s
    """The number of tokens of each piece, at least 1."""

    joined: NDArray[np.bool_] | None = None
    """True for each piece that goes on with the segment of the piece before it; None if no piece does."""


_NONE = np.zeros(0, dtype=np.int64)
NO_PIECES = Pieces(np.zeros(1, dtype=np.int64), _NONE, _NONE, _NONE)
"""The pieces of no samples."""


class Packing(ABC):
    """Fills the samples of an epoch with pieces of documents: a pure function from rows to pieces.

    Instances are immutable, can be pickled, and may be used by several threads at once.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def samples(self) -> int:
        """The number of samples of an epoch."""

    @property
    @abstractmethod
    def length(self) -> int:
        """The tokens that a full sample has, with the next token if it is wanted."""

    @abstractmethod
    def pieces(self, rows: Int64s, epochs: Int64s) -> Pieces:
        """Return the pieces of several samples.

        Args:
            rows: rows of samples, from 0 to ``samples - 1``.
            epochs: the epoch of each row, of the same length; they may differ.
        """

    @abstractmethod
    def pieces_of_one(self, row: int, epoch: int) -> list[tuple[int, int, int, bool]]:
        """Return the pieces of one sample without arrays: (document, start, count, joined) of each."""

    @abstractmethod
    def samples_with(self, document: int, epoch: int) -> Int64s:
        """Return the rows of samples with tokens of a document, ascending."""

    @abstractmethod
    def facts(self) -> dict[str, int | float | str]:
        """Return the sizes of an epoch, the tokens of its tail or padding, and what never moves, by name."""


def reordered(groups: Sequence[Pieces], at: Int64s) -> Pieces:
    """Join the pieces of several groups, and put the samples into another order.

    Args:
        groups: pieces, all of the same form.
        at: the index of each sample in the result, group after group.
    """
    sizes = np.concatenate([np.diff(group.bounds) for group in groups])
    begins = np.cumsum(sizes) - sizes
    order = np.argsort(at)
    sizes, begins = sizes[order], begins[order]
    bounds = np.append(0, np.cumsum(sizes))
    take = np.arange(bounds[-1]) + np.repeat(begins - bounds[:-1], sizes)
    joined = [group.joined for group in groups if group.joined is not None]
    return Pieces(
        bounds,
        documents=np.concatenate([group.documents for group in groups])[take],
        starts=np.concatenate([group.starts for group in groups])[take],
        counts=np.concatenate([group.counts for group in groups])[take],
        joined=np.concatenate(joined)[take] if joined else None,
    )
