"""The reading of windows of token files: each is one range of bytes, whatever documents it is of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from seekable._cached import cached
from seekable.nodes.graph import Plan, held
from seekable.packing.nodes.sample_arrays import records_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seekable._typing import Int64s
    from seekable.nodes.files.leaf import SlicedAxis
    from seekable.nodes.graph import FileRanges, Origins
    from seekable.packing.nodes.sample_maker import SampleMaker

__all__ = ["WindowPlan"]


@final
@dataclass(frozen=True)
class WindowPlan(Plan):
    """The plan of windows that are copied from the axis of tokens; locations alone need their documents."""

    maker: SampleMaker
    axis: SlicedAxis
    positions: Int64s
    starts: Int64s
    """The first token of each window."""
    by_documents: Callable[[Int64s], Plan]
    """Returns the plan of positions by the pieces of their documents."""

    def __len__(self) -> int:
        """Return the number of windows."""
        return self.starts.size

    def slice(self, start: int, stop: int) -> WindowPlan:
        """Return the plan of some of the windows."""
        at = slice(start, stop)
        return WindowPlan(self.maker, self.axis, self.positions[at], self.starts[at], self.by_documents)

    def arrays(self) -> dict[str, Any] | None:
        """Return the columns of the windows, each of shape (windows, tokens); None without a window."""
        if not len(self):
            return None
        shape, dtypes = (len(self), self.maker.width), self.maker.dtypes
        out = {name: np.empty(shape, dtypes[name]) for name in self.maker.columns}
        if out:
            with held(self):
                self.axis.copy_into(out, self.starts)
        return out

    def read(self) -> list[Any]:
        """Return the windows as records."""
        made = self.arrays()
        return [] if made is None else records_of(made, len(self))

    def locate(self) -> list[Any]:
        """Return the locations of the pieces of each window."""
        return self._pieces.locate()

    def origins(self) -> Origins:
        """Raise an error, as for all records that are made of several."""
        return self._pieces.origins()

    @property
    def paths(self) -> set[str]:
        """The paths of the token files of the windows."""
        return self.axis.paths(self.starts, self.maker.width)

    @property
    def bytes(self) -> int:
        """The number of bytes of the arrays of the windows."""
        sizes = (self.maker.dtypes[name].itemsize for name in self.maker.columns)
        return len(self) * self.maker.width * sum(sizes)

    @property
    def from_stores(self) -> bool:
        """True if token files are objects of stores."""
        return self.axis.from_stores

    def ranges(self) -> Iterator[FileRanges]:
        """Yield the ranges of bytes of the windows."""
        return self.axis.ranges(self.starts, self.maker.width, self.maker.columns)

    def advise(self) -> None:
        """Announce the reads to the operating system, if reads have waited for a disk."""
        if self.maker.reads:
            self.axis.advise(self.starts, self.maker.width)

    @cached
    def _pieces(self) -> Plan:
        return self.by_documents(self.positions)
