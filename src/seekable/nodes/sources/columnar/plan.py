"""What to read of tables for some positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.nodes.compile import Parts
from seekable.nodes.contract import Plan, Reader

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from seekable.nodes.provenance import Origins
    from seekable.nodes.sources.columnar.reading import Tables

    Int64s = NDArray[np.int64]

__all__ = ["TablesPlan", "TablesReader"]


class TablesReader(Reader):
    """Plans the reading of several sources."""

    def __init__(self, sources: Sequence[Tables]) -> None:
        """Know the sources."""
        self._sources = sources
        self._sizes = np.array([int(source.files.starts[-1]) for source in sources], dtype=np.int64)

    def plan(self, which: Int64s, positions: Int64s) -> Plan:
        """Plan each source's share."""
        rows = positions % self._sizes[which]
        if which.size == 1:
            return TablesPlan.of(self._sources[int(which[0])], rows)
        parts = []
        for number in np.unique(which).tolist():
            at = np.flatnonzero(which == number)
            parts.append((at, TablesPlan.of(self._sources[number], rows[at])))
        return parts[0][1] if len(parts) == 1 else Parts(positions.size, tuple(parts))


@dataclass(frozen=True, slots=True)
class TablesPlan(Plan):
    """Some rows of one source."""

    tables: Tables
    rows: Int64s
    dense: frozenset[int]

    @classmethod
    def of(cls, tables: Tables, rows: Int64s) -> TablesPlan:
        """Plan the reading of some rows, which will be read in one go or one behind the other."""
        return cls(tables, rows, tables.dense_among(rows) if rows.size > 1 else frozenset())

    def __len__(self) -> int:
        """Return the number of records."""
        return self.rows.size

    def slice(self, start: int, stop: int) -> Plan:
        """Return the plan of some of them; blocks stay worth what they are worth to all."""
        return TablesPlan(self.tables, self.rows[start:stop], self.dense)

    def read(self) -> list[Any]:
        """Read the records."""
        return self.tables.read(self.rows, self.dense)

    def table(self) -> pa.RecordBatch:
        """Read the records as one record batch."""
        return self.tables.table(self.rows, self.dense)

    def origins(self) -> Origins:
        """Say which rows of which files they are."""
        return self.tables.origins(self.rows)

    @property
    def paths(self) -> set[str]:
        """The files that the records lie in."""
        return self.tables.paths(self.rows)

    def advise(self) -> None:
        """Do nothing: what is read is large, so that the system reads ahead by itself."""

    @property
    def bytes(self) -> int:
        """The bytes of the files, shared out to their rows."""
        return self.tables.sizes(self.rows)

    def locate(self) -> list[Any]:
        """Say where the records lie; a row shares its bytes with those of its group."""
        return self.tables.locate(self.rows)
