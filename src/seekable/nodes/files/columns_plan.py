"""The plan for records that are decoded as columns, many at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, final

import numpy as np

from seekable._lazy import lazy
from seekable._optional import optional
from seekable.errors import InvalidArgument, SeekableError
from seekable.nodes.graph import ChildPlan, ColumnarPlan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.nodes.columns import decode_column
    from seekable.nodes.files.decoders import ColumnsDecoder
    from seekable.nodes.graph import Origins, Plan
else:
    decode_column = lazy("seekable.nodes.columns.decode_column")
    pa = optional("pyarrow", extra="parquet")

__all__ = ["ColumnsPlan", "PlannedRanges"]

T = TypeVar("T")


class PlannedRanges(Protocol):
    """What is asked of the plan that reads the same records one by one, as record batches of one row."""

    def with_views(self, use: Callable[[list[memoryview]], T]) -> T:
        """Call a function with the records' ranges, which are in memory meanwhile; return its result."""

    def by_decoder(self) -> list[tuple[ColumnsDecoder, list[int]]]:
        """Return the decoders of the records, each with the indices of its records in the plan."""

    def last_of_files(self) -> NDArray[np.bool_]:
        """Return True for each record that is the last one of its file."""


@final
@dataclass(frozen=True, slots=True)
class ColumnsPlan(ChildPlan, ColumnarPlan):
    """Records of one source that are decoded as columns; one by one where that way finds a fault."""

    child: Any
    """The plan that reads the same records one by one: a ``Plan`` that has ``PlannedRanges`` too."""

    decoder: ColumnsDecoder
    replaces: bool
    """True if a function replaces records that cannot be decoded."""

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.child)

    def slice(self, start: int, stop: int) -> Plan:
        """Return the plan for some of the records."""
        return ColumnsPlan(self.child.slice(start, stop), self.decoder, self.replaces)

    def read(self) -> list[Any]:
        """Return the records in the order of the plan."""
        form = decode_column.DECODERS[self.decoder.form]
        batch = self._together(self._batch)
        if batch is not None and not any(column.null_count for column in batch.columns):
            return form(batch).records(range(batch.num_rows))
        # Beside a null a number would come in another type than it has alone.
        rows = self.child.read() if batch is None else [batch.slice(row, 1) for row in range(len(self))]
        return [form(row).records((0,))[0] if isinstance(row, pa.RecordBatch) else row for row in rows]

    def locate(self) -> list[Any]:
        """Return the locations of the records."""
        located: list[Any] = self.child.locate()
        return located

    def origins(self) -> Origins:
        """Return the file and the row in it of each record."""
        found: Origins = self.child.origins()
        return found

    @property
    def columnar(self) -> bool:
        """True if no function replaces records."""
        return not self.replaces

    def table(self) -> pa.RecordBatch:
        """Return the records as one record batch, in the order of the plan.

        Raises:
            CorruptRecord: a record is no row of the columns.
            InvalidArgument: ``errors=`` returned something else for one.
        """
        if not len(self):
            return self.decoder.table([], [])
        batch = self._together(self._batch)
        if batch is not None:
            return batch
        records = self.child.read()
        wrong = next((record for record in records if not isinstance(record, pa.RecordBatch)), None)
        if wrong is not None:
            message = (
                f"a record batch has rows, and errors= returned {wrong!r:.100} for one: read the records one "
                f"by one, or leave errors= out"
            )
            raise InvalidArgument(message)
        return pa.concat_batches(records)

    def batches(self) -> Iterator[tuple[NDArray[np.intp], pa.RecordBatch, Int64s]]:
        """Yield one record batch, which has the records in their order."""
        every = np.arange(len(self))
        yield every, self.table(), every

    def arrays(self) -> dict[str, Any] | None:
        """Return the records as a dict of arrays and lists, if the decoder makes them without Arrow."""
        if self.replaces or self.decoder.form != "numpy" or self.decoder.headed or not len(self):
            return None
        return self._together(self.decoder.arrays)

    def _together(self, decode: Callable[[list[memoryview]], T]) -> T | None:
        """Return what a function makes of the ranges of all records; None if a record has to be looked at.

        Raises:
            SeekableError: a file cannot be read, or has changed.
        """
        if not len(self):
            return None
        try:
            made: T = self.child.with_views(decode)
        except SeekableError:
            raise
        except Exception:  # noqa: BLE001 - reading the records one by one says what is wrong with which
            return None
        return made

    def _batch(self, views: Sequence[memoryview]) -> pa.RecordBatch:
        torn = self.child.last_of_files()
        pieces = []
        for decoder, at in self.child.by_decoder():
            places = np.array(at)
            some = [views[i] for i in at]
            batch = decoder.table(some, np.flatnonzero(torn[places]).tolist())
            pieces.append((places, batch, np.arange(len(at))))
        return decode_column.take_pieces(pieces)
