"""Plans of rows of tables: those of several sources, and the blocks that each decodes whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.formats.tables.table_ranges import table_ranges
from seekable.nodes.compile import GatheredPlan
from seekable.nodes.graph import ColumnarPlan, Plan, Reader

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.tables.table_reading import TableReading
    from seekable.nodes.graph import FileRanges, Origins

__all__ = ["TablesPlan", "TablesReader"]


class TablesReader(Reader):
    """Plans the reading of several sources."""

    def __init__(self, sources: Sequence[TableReading]) -> None:
        """Keep the sources, and the number of rows of each."""
        self._sources = sources
        self._sizes = np.array([int(source.places.files.starts[-1]) for source in sources], dtype=np.int64)

    def plan(self, which: Int64s, positions: Int64s) -> Plan:
        """Return the plan for some positions: the gathered plans of all sources."""
        rows = positions % self._sizes[which]
        if which.size == 1:
            return TablesPlan.of(self._sources[int(which[0])], rows)
        parts = []
        for number in np.unique(which).tolist():
            at = np.flatnonzero(which == number)
            parts.append((at, TablesPlan.of(self._sources[number], rows[at])))
        return parts[0][1] if len(parts) == 1 else GatheredPlan(positions.size, tuple(parts))


@dataclass(frozen=True, slots=True)
class TablesPlan(ColumnarPlan):
    """Some rows of one source, and the blocks of it that are decoded whole."""

    tables: TableReading
    rows: Int64s
    dense: frozenset[int]

    @classmethod
    def of(cls, tables: TableReading, rows: Int64s) -> TablesPlan:
        """Return the plan for some rows of a source."""
        return cls(tables, rows, tables.blocks_to_decode(rows) if rows.size > 1 else frozenset())

    def __len__(self) -> int:
        """Return the number of records."""
        return self.rows.size

    def slice(self, start: int, stop: int) -> Plan:
        """Return the plan of some of the records; it decodes the same blocks whole as that of all."""
        return TablesPlan(self.tables, self.rows[start:stop], self.dense)

    def read(self) -> list[Any]:
        """Return the records in the order of the rows."""
        return self.tables.read(self.rows, self.dense)

    @property
    def columnar(self) -> bool:
        """True if no function replaces corrupt records."""
        return self.tables.single.errors is None

    def table(self) -> pa.RecordBatch:
        """Return the records as one record batch, in the order of the rows."""
        return self.tables.table(self.rows, self.dense)

    def batches(self) -> Iterator[tuple[NDArray[np.intp], pa.RecordBatch, Int64s]]:
        """Yield the record batches that the records lie in; see ``TableReading.batches``."""
        return self.tables.batches(self.rows, self.dense)

    def origins(self) -> Origins:
        """Return the file and the row in it of each record."""
        return self.tables.places.origins(self.rows)

    @property
    def paths(self) -> set[str]:
        """The paths of the files of the records."""
        return self.tables.places.paths(self.rows)

    @property
    def from_stores(self) -> bool:
        """True if tables are objects of stores."""
        return self.tables.places.files.has_objects

    def ranges(self) -> Iterator[FileRanges]:
        """Yield the pages, chunks or record batches of the records; opens the files."""
        return table_ranges(self.tables.places, self.tables.single, self.rows, self.dense)

    def advise(self) -> None:
        """Do nothing: reads of tables are large, and the operating system reads ahead by itself."""

    @property
    def bytes(self) -> int:
        """The approximate number of bytes of the records in their files."""
        return self.tables.places.bytes(self.rows)

    def locate(self) -> list[Any]:
        """Return the locations of the records; a row has the bytes of its whole group."""
        return self.tables.places.locate(self.rows)
