"""Windows of one length over the tokens in natural order, the same in every epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from seekable.packing.order.axis import OffsetsAxis, cut, cut_one, windows_over
from seekable.packing.order.pieces import NO_PIECES, Packing, Pieces

if TYPE_CHECKING:
    from seekable._typing import Int64s

__all__ = ["FixedWindows"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class FixedWindows(Packing):
    """Sample r has the tokens from ``r * stride`` on; the epoch is of no account.

    Example:
        >>> import numpy as np
        >>> windows = FixedWindows(OffsetsAxis.of(np.array([0, 3, 8, 10])), stride=4, overlap=1)
        >>> windows.samples, windows.pieces_of_one(0, epoch=3)
        (2, [(0, 0, 3, False), (1, 0, 2, False)])
    """

    axis: OffsetsAxis
    """The documents in natural order."""
    stride: int
    """The number of tokens from the start of a window to the start of the next one: L."""
    overlap: int = 0
    """The number of tokens that a window shares with the next one: 1 for the next token, else 0."""

    @property
    def samples(self) -> int:
        """The number of windows in all."""
        return max(0, (self.axis.end - self.overlap) // self.stride)

    @property
    def length(self) -> int:
        """The number of tokens of a window."""
        return self.stride + self.overlap

    def pieces(self, rows: Int64s, epochs: Int64s) -> Pieces:
        """Return the pieces of several windows, as the contract says."""
        if not rows.size:
            return NO_PIECES
        slices = cut(self.axis, rows * self.stride, self.length)
        return Pieces(slices.bounds, slices.intervals, slices.starts, slices.counts)

    def pieces_of_one(self, row: int, epoch: int) -> list[tuple[int, int, int, bool]]:
        """Return the pieces of one window, as the contract says."""
        slices = cut_one(self.axis, row * self.stride, self.length)
        return [(document, start, count, False) for document, start, count, _ in slices]

    def samples_with(self, document: int, epoch: int) -> Int64s:
        """Return the windows with tokens of a document, ascending."""
        start, stop = self.axis.edge_one(document), self.axis.edge_one(document + 1)
        return windows_over(start, stop, stride=self.stride, length=self.length, windows=self.samples)

    def facts(self) -> dict[str, int | float | str]:
        """Return the documents, tokens and samples, and the tokens of the tail, which are in no window."""
        used = self.samples * self.stride + self.overlap * (self.samples > 0)
        sizes = {"documents": self.axis.intervals, "tokens": self.axis.end, "samples": self.samples}
        return {**sizes, "tail": self.axis.end - used}
