"""The making of samples of one node: how their pieces are found, and what their columns are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seekable.packing.nodes.sample_arrays import sample_arrays
from seekable.packing.nodes.sample_form import TOKENS
from seekable.packing.nodes.sample_segments import placed

if TYPE_CHECKING:
    import numpy as np

    from seekable._typing import Int64s
    from seekable.nodes.files.leaf import SlicedAxis
    from seekable.nodes.node import Node
    from seekable.packing.lengths.documents import Documents
    from seekable.packing.nodes.sample_arrays import Copy
    from seekable.packing.nodes.sample_form import SampleForm
    from seekable.packing.nodes.sample_segments import Placed
    from seekable.packing.order.pieces import Packing

__all__ = ["SampleMaker"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleMaker:
    """The parts of a node that a plan of its samples works with."""

    child: Node
    """The documents, with the columns alone that are read."""

    documents: Documents
    packing: Packing
    form: SampleForm
    columns: tuple[str, ...]
    """The columns that are made."""

    width: int
    """The number of tokens that a full sample is made of."""

    is_sliced: bool
    """True if pieces are read from token files without a document between."""

    call: str
    """The method that made the node, for errors."""

    stride: int
    """The number of tokens from one window to the next."""

    axis: SlicedAxis | None
    """The tokens of all documents end to end, where samples are windows of these; else None."""

    @property
    def dtypes(self) -> dict[str, np.dtype[Any]]:
        """The type of the tokens, by the name ``"tokens"``, and of the aligned arrays."""
        return self.documents.dtypes

    @property
    def reads(self) -> tuple[str, ...]:
        """The arrays of documents that are read: ``"tokens"``, and the names of aligned arrays."""
        return self.form.read_for(self.columns)

    def key_of(self, name: str) -> str | None:
        """Return the name that an array has in the records of the child; None for the record itself."""
        return self.form.key if name == TOKENS else name

    def pieces(self, rows: Int64s, epochs: Int64s) -> Placed:
        """Return the pieces of samples; int64 rows of samples, and the epoch of each."""
        return placed(self.packing.pieces(rows, epochs), self.width)

    def arrays(self, pieces: Placed, copy: Copy) -> dict[str, Any]:
        """Return the columns of one sample or more; see `sample_arrays`."""
        return sample_arrays(pieces, self.form, self.columns, copy, self.dtypes)
