"""The base of nodes over columns that know the types of their columns: a batch of Arrow has these types.

Where the records of the child are read as columns of Arrow, so are those of the node, and no record is made.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, final

import numpy as np

from seekable._lazy import lazy
from seekable.errors import BadValue
from seekable.nodes.bases import UnaryPlan, UnaryReader
from seekable.nodes.columns.column_node import ColumnNode, ColumnsPlan
from seekable.nodes.display import describe_place
from seekable.nodes.graph import ColumnarPlan

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.nodes.columns import decode_column, record_batches
    from seekable.nodes.graph import Reader
    from seekable.nodes.node import BatchForm
else:
    decode_column = lazy("seekable.nodes.columns.decode_column")
    record_batches = lazy("seekable.nodes.columns.record_batches")

__all__ = ["ColumnarNode"]


class ColumnarNode(ColumnNode):
    """A node over columns whose records can be read as one batch of Arrow."""

    @abstractmethod
    def table(self, positions: Int64s) -> pa.RecordBatch:
        """Return the records at some positions as one record batch."""

    @abstractmethod
    def is_columnar(self, positions: Int64s) -> bool:
        """Return True if ``table`` makes no record on the way, and none of these records can be a hole."""

    @abstractmethod
    def without_child(self, positions: Int64s) -> list[Any] | None:
        """Return the records at some positions if they need nothing of the child; None if they do."""

    @property
    def batch_form(self) -> BatchForm:
        """The form of a batch of the child's records."""
        return self.child.batch_form

    @classmethod
    def reader(cls, nodes: Sequence[Any]) -> Reader:
        """Return a reader that plans the children of all nodes together."""
        return UnaryReader(nodes, _ColumnarNodesPlan)

    def record(self, position: int) -> Any:
        """Return the record at a position."""
        apart = self.read_apart(np.array([position], dtype=np.int64))
        return super().record(position) if apart is None else apart[0]

    def read_apart(self, positions: Int64s) -> list[Any] | None:
        """Return the records at some positions, unless they are made one by one of the child's records.

        They need nothing of the child, or the child's have the form of numpy or of Arrow.

        Raises:
            BadValue: numpy has no value for one of Arrow's; the error names its file and row.
        """
        apart, form = self.without_child(positions), self.child.batch_form
        if apart is not None or form == "python":
            return apart
        try:
            return decode_column.DECODERS[form](self.table(positions)).records(range(positions.size))
        except decode_column.Unconvertible as error:
            if positions.size > 1:
                return [
                    record for at in range(positions.size) for record in self._one(positions[at : at + 1])
                ]
            place = describe_place(self.child, int(positions[0]))
            message = f"{place}: column {error.column!r}: {form} has no value for it: {error}"
            raise BadValue(message) from error

    def _one(self, position: Int64s) -> list[Any]:
        return self.read_apart(position) or []


@final
class _ColumnarNodesPlan(UnaryPlan, ColumnarPlan):
    """Reads the columns of each node's records as columns, where none is a hole."""

    def read(self) -> list[Any]:
        parts = [(at, node.read_apart(positions)) for node, at, positions in self._by_node()]
        if all(records is None for _, records in parts):
            return self._made()
        out: list[Any] = [None] * len(self)
        for (node, at, positions), (_, records) in zip(self._by_node(), parts, strict=True):
            made = node.plan(positions).read() if records is None else records
            for place, record in zip(at.tolist(), made, strict=True):
                out[place] = record
        return out

    def _made(self) -> list[Any]:
        return ColumnsPlan(self.nodes, self.which, self.positions, self.child).read()

    def _by_node(self) -> Iterator[tuple[ColumnarNode, NDArray[np.intp], Int64s]]:
        """Yield each node, the places of its records in this plan, and their positions."""
        if self.which.size == 1:
            yield self.nodes[int(self.which[0])], np.arange(len(self)), self.positions
            return
        for number in np.unique(self.which):
            at = np.flatnonzero(self.which == number)
            yield self.nodes[int(number)], at, self.positions[at]

    @property
    def columnar(self) -> bool:
        return all(node.is_columnar(positions) for node, _, positions in self._by_node())

    def table(self) -> Any:
        parts = [(at, node.table(positions)) for node, at, positions in self._by_node()]
        return record_batches.gathered_batch(
            len(self), [at for at, _ in parts], [batch for _, batch in parts]
        )

    def batches(self) -> Iterator[tuple[NDArray[np.intp], Any, Int64s]]:
        every = np.arange(len(self))
        yield every, self.table(), every

    def advise(self) -> None:
        if not all(node.without_child(positions[:1]) is not None for node, _, positions in self._by_node()):
            self.child.advise()
