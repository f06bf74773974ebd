"""The job that writes some files of a folder: it reads records in chunks, and runs in any process."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import InvalidArgument
from seekable.formats.file_format import TracedRecords
from seekable.nodes.columns.record_batches import is_columnar, table_of
from seekable.nodes.display import describe_row
from seekable.nodes.graph import HOLE
from seekable.nodes.readahead import read_rows
from seekable.writing.pipeline_code import origin_paths
from seekable.writing.whole_file import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from seekable._typing import Int64s
    from seekable.formats.file_format import FileFormat
    from seekable.nodes.graph import Plan
    from seekable.nodes.node import Node
    from seekable.writing.manifest import Shards
    from seekable.writing.target import Target


__all__ = ["Chunks", "Counter", "Done", "WriteShards"]


_AHEAD = 4096
"""The number of rows that are planned at a time."""

_TABLE_BYTES = 32 << 20
"""About the number of bytes of files that are read as one record batch."""

_RECENT = 1024
"""The number of records before the last chunk whose row numbers are remembered."""


class Chunks:
    """Reads consecutive rows in chunks, and remembers the row numbers of the last records."""

    def __init__(
        self,
        dataset: Node,
        rows: range,
        tell: Callable[[int], None],
        *,
        tables: bool = False,
        numbers: Mapping[str, int] | None = None,
    ) -> None:
        """Take the arguments; nothing is read yet.

        Args:
            dataset: the node whose records are read.
            rows: the rows to read.
            tell: is called with the number of rows that are read so far.
            tables: True to yield record batches where the sources are tables, without Python values.
            numbers: the number of each path of `origin_paths`, to yield records with their origins.
        """
        self._dataset = dataset
        self._range = rows
        self._tell = tell
        self._tables = tables
        self._numbers = numbers
        self._recent: list[int] = []
        self.rows = 0
        """The number of records so far that were no holes."""

    def read(self) -> Iterator[Sequence[Any] | pa.RecordBatch | TracedRecords]:
        """Yield the records without holes, in lists or record batches, or with their origins."""
        for start in range(self._range.start, self._range.stop, _AHEAD):
            rows = np.arange(start, min(start + _AHEAD, self._range.stop), dtype=np.int64)
            origins = None if self._numbers is None else self._origins(rows, self._numbers)
            for first, records in self._read(rows):
                count = len(records)
                if isinstance(records, list) and any(record is HOLE for record in records):
                    kept = [row for row, record in enumerate(records, start + first) if record is not HOLE]
                    records = [record for record in records if record is not HOLE]  # noqa: PLW2901
                else:
                    kept = list(range(start + first, start + first + count))
                self._recent = self._recent[-_RECENT:] + kept
                if origins is not None:
                    files, places = (each[np.array(kept, dtype=np.int64) - start] for each in origins)
                    yield TracedRecords(records, files, places)
                else:
                    yield records
                self.rows += len(kept)
                self._tell(start + first + count - self._range.start)

    def row(self, back: int) -> int:
        """Return the row of the record ``back`` places from the end of the yielded ones; 1 is the last."""
        return self._recent[-back]

    def _origins(self, rows: Int64s, numbers: Mapping[str, int]) -> tuple[Int64s, Int64s]:
        """Return the number of each record's file, -1 if it is of none or of several, and its row there."""
        try:
            found = self._dataset.plan(rows).origins()
        except InvalidArgument:
            return np.full(rows.size, -1), np.zeros(rows.size, dtype=np.int64)
        files = np.array([numbers.get(path, -1) for path in found.paths], dtype=np.int64)[found.files]
        return files, np.where(files < 0, 0, found.rows)

    def _read(self, rows: np.ndarray[Any, np.dtype[np.int64]]) -> Iterator[tuple[int, Any]]:
        if self._tables:
            plan = self._dataset.plan(rows)
            if is_columnar(plan):
                return _batches(plan)
        return read_rows(self._dataset, rows)


def _batches(plan: Plan) -> Iterator[tuple[int, pa.RecordBatch]]:
    step = max(1, min(len(plan), len(plan) * _TABLE_BYTES // max(1, plan.bytes)))
    for first in range(0, len(plan), step):
        yield first, table_of(plan.slice(first, min(first + step, len(plan))))


@dataclass(frozen=True, slots=True)
class Done:
    """The number, the rows and the bytes of a file that was written."""

    number: int
    """The number of the file among ``Shards``."""

    rows: int
    bytes: int


class Counter:
    """Counts the records that the thread of its maker writes; it does nothing in other threads."""

    def __init__(self, tell: Callable[[int], None] | None = None) -> None:
        self._tell = tell
        self._thread = threading.get_ident()
        self.done = 0
        """The records of files that are finished."""

    def add(self, records: int) -> None:
        """Report the number of records written so far to a file that is not finished."""
        if self._tell is not None and threading.get_ident() == self._thread:
            self._tell(self.done + records)

    def __reduce__(self) -> tuple[type[Counter], tuple[()]]:
        """Pickle as a counter that does nothing."""
        return Counter, ()


@dataclass(frozen=True, slots=True)
class WriteShards:
    """Writes files by their numbers: a function for `map_ranges`."""

    dataset: Node
    form: FileFormat
    target: Target
    shards: Shards
    numbers: tuple[int, ...]
    """The numbers of the files to write, ascending."""

    tally: Counter

    def __call__(self, start: int, stop: int) -> list[Done]:
        """Write the files ``numbers[start:stop]``, and return what was written.

        Raises:
            WrongType: a record cannot be written; the message names it.
            OSError: the disk is full, or the folder cannot be written.
        """
        numbers = None
        if self.form.takes_origins:
            numbers = {path: number for number, path in enumerate(origin_paths(self.dataset))}
        return [self._write(number, numbers) for number in self.numbers[start:stop]]

    def _write(self, number: int, numbers: Mapping[str, int] | None) -> Done:
        rows = self.shards.rows(number)
        tables = self.form.takes_tables
        chunks = Chunks(self.dataset, rows, self.tally.add, tables=tables, numbers=numbers)
        size = write_whole(
            self.target.join(self.shards.name(number)),
            lambda file, others: self.form.write(file, chunks.read(), first=rows.start, beside=others),
            beside=[self.target.join(name) for name in self.shards.beside(number)],
            form=self.form,
            named=lambda back: describe_row(self.dataset, chunks.row(back)),
        )
        return Done(number, chunks.rows, size)
