"""Windows: the documents end to end in natural order, cut into arrays of one length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np

from seekable.order.blocks import cut_long_blocks
from seekable.packing.nodes.packed_node import PackedNode

if TYPE_CHECKING:
    from seekable._typing import Int64s

__all__ = ["Windows"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Windows(PackedNode):
    """Window ``r`` has the tokens from ``r * length`` on of all documents end to end, in every epoch."""

    kind: ClassVar[str] = "windows"

    @property
    def blocks(self) -> Int64s:
        """The child's blocks, each edge moved to the first window that begins behind it."""
        tokens = self.documents.offsets[self.child.blocks]
        edges = np.minimum(-(-tokens // self.cut.length), self.size)
        return cut_long_blocks(np.diff(np.unique(np.append(edges, self.size))))

    def call(self) -> str:
        """Return the call of ``windows``, with the arguments that are not the default ones."""
        given = [str(self.cut.length)]
        given += ["next_token=True"] if self.form.next_token else []
        given += [f"align={self.form.align!r}"] if self.form.align else []
        return f"windows({', '.join(given)})"
