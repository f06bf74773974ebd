"""The plan for records that are decoded as columns, many at once."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, final

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

__all__ = ["ColumnsPlan", "PlannedRanges", "RowsTogether"]

T = TypeVar("T")

_ROWS: Final = 2048
_BYTES: Final = 256 << 10
"""The most rows, and about their bytes, that are decoded together for the sake of small batches."""


class PlannedRanges(Protocol):
    """The plan that reads the same records one by one, as record batches of one row."""

    def with_views(self, use: Callable[[list[memoryview]], T]) -> T:
        """Call a function with the records' ranges, which are in memory meanwhile; return its result."""

    def by_decoder(self) -> list[tuple[ColumnsDecoder, NDArray[np.intp]]]:
        """Return the decoders of the records, each with the indices of its records in the plan."""

    def last_of_files(self) -> NDArray[np.bool_]:
        """Return True for each record that is the last one of its file."""


class RowsTogether:
    """Makes record batches for the rows of a plan, small batches together with the rows that follow.

    A reader of columns takes about 100 us to begin, as long as for some hundred rows. Each small batch is a
    copy of its rows, so that it has memory of its own.
    """

    __slots__ = ("_first", "_most", "_plan", "_table")

    def __init__(self, plan: Any) -> None:
        """Read nothing yet.

        Args:
            plan: a ``Plan`` that has ``PlannedRanges`` too.
        """
        self._plan = plan
        self._most = 0 if plan.from_stores else min(_ROWS, _BYTES * len(plan) // max(1, plan.bytes))
        self._first = 0
        self._table: pa.RecordBatch | None = None

    def batch(self, first: int, stop: int) -> pa.RecordBatch | None:
        """Return the rows from ``first`` to ``stop`` as one record batch; None if one has to be looked at.

        Raises:
            SeekableError: a file cannot be read, or has changed.
        """
        table, at = self._table, first - self._first
        if table is None or not 0 <= at < table.num_rows or at + stop - first > table.num_rows:
            last, at = min(first + self._most, len(self._plan)), 0
            table = self._decoded_ahead(first, last) if stop < last else None
            if table is None:
                return _decoded(self._plan.slice(first, stop), _batch)
        rows = table.slice(at, stop - first)
        return pa.concat_batches([rows, rows.slice(0, 0)])

    def _decoded_ahead(self, first: int, last: int) -> pa.RecordBatch | None:
        """Return rows that more than one batch are cut from; None if one of these batches has a fault."""
        table = None
        with suppress(SeekableError):  # The batch with the fault says it.
            table = _decoded(self._plan.slice(first, last), _batch)
        self._first, self._table = first, table
        self._most = self._most if table is not None else 0
        return table


@final
@dataclass(frozen=True, slots=True)
class ColumnsPlan(ChildPlan, ColumnarPlan):
    """Records of one source that are decoded as columns; one by one where that way finds a fault."""

    child: Any
    """The plan that reads the same records one by one: a ``Plan`` that has ``PlannedRanges`` too."""

    decoder: ColumnsDecoder
    replaces: bool
    """True if a function replaces records that cannot be decoded."""

    together: RowsTogether
    """Reads the records of the plan that this one was sliced from."""

    first: int = 0
    """The index of the first record in that plan."""

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.child)

    def slice(self, start: int, stop: int) -> Plan:
        """Return the plan for some of the records."""
        return replace(self, child=self.child.slice(start, stop), first=self.first + start)

    def read(self) -> list[Any]:
        """Return the records in the order of the plan."""
        form = decode_column.DECODERS[self.decoder.form]
        batch = self._batch()
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
        batch = self._batch()
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
        return _decoded(self.child, lambda _, views: self.decoder.arrays(views))

    def _batch(self) -> pa.RecordBatch | None:
        return self.together.batch(self.first, self.first + len(self)) if len(self) else None


def _decoded(plan: Any, decode: Callable[[Any, list[memoryview]], T]) -> T | None:
    """Return what a function makes of a plan and its ranges; None if a record has to be looked at.

    Raises:
        SeekableError: a file cannot be read, or has changed.
    """
    try:
        made: T = plan.with_views(lambda views: decode(plan, views))
    except SeekableError:
        raise
    except Exception:  # noqa: BLE001 - reading the records one by one says what is wrong with which
        return None
    return made


def _batch(plan: PlannedRanges, views: Sequence[memoryview]) -> pa.RecordBatch:
    torn, pieces = plan.last_of_files(), []
    for decoder, at in plan.by_decoder():
        some = views if at.size == len(views) else [views[i] for i in at.tolist()]
        batch = decoder.table(some, np.flatnonzero(torn[at]).tolist())
        pieces.append((at, batch, np.arange(at.size)))
    return pieces[0][1] if len(pieces) == 1 else decode_column.take_pieces(pieces)
