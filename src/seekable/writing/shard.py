"""The job that writes some files of a folder: it reads records in chunks, and runs in any process."""

from __future__ import annotations

import os
import secrets
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import WrongType
from seekable.nodes.compile import GatheredPlan
from seekable.nodes.failures import place_of
from seekable.nodes.hole import HOLE
from seekable.nodes.readahead import read_rows
from seekable.nodes.sources.table_batches import table_of
from seekable.nodes.sources.table_reading import TablesPlan
from seekable.storage.files import create_new, put_in_place
from seekable.writing.file_format import UnwritableRecord
from seekable.writing.manifest import unfinished_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from seekable.nodes.contract import Node
    from seekable.nodes.graph import Plan
    from seekable.writing.file_format import FileFormat
    from seekable.writing.manifest import Shards


__all__ = ["Chunks", "Counter", "Done", "WriteShards"]


_AHEAD = 4096
"""Rows that are planned in one go."""

_TABLE_BYTES = 32 << 20
"""Tables are read in pieces of about so many bytes of files."""

_RECENT = 1024
"""Records whose rows are remembered, besides those of the last chunk."""


class Chunks:
    """Reads a run of rows, and remembers which rows came last."""

    def __init__(self, dataset: Node, rows: range, tell: Callable[[int], None], *, tables: bool) -> None:
        """Read nothing yet.

        Args:
            dataset: what is read.
            rows: which rows of it.
            tell: is told how many of them are read.
            tables: whether record batches are of use where no Python object need be made of a value.
        """
        self._dataset = dataset
        self._range = rows
        self._tell = tell
        self._tables = tables
        self._recent: list[int] = []
        self.rows = 0
        """How many were no holes, so far."""

    def read(self) -> Iterator[Sequence[Any] | pa.RecordBatch]:
        """Yield records, holes left out: lists, or record batches."""
        for start in range(self._range.start, self._range.stop, _AHEAD):
            rows = np.arange(start, min(start + _AHEAD, self._range.stop), dtype=np.int64)
            for first, records in self._read(rows):
                count = len(records)
                if isinstance(records, list) and any(record is HOLE for record in records):
                    kept = [row for row, record in enumerate(records, start + first) if record is not HOLE]
                    records = [record for record in records if record is not HOLE]  # noqa: PLW2901
                else:
                    kept = list(range(start + first, start + first + count))
                self._recent = self._recent[-_RECENT:] + kept
                yield records
                self.rows += len(kept)
                self._tell(start + first + count - self._range.start)

    def row(self, back: int) -> int:
        """Return which row is so far from the end of those that were yielded."""
        return self._recent[-back]

    def _read(self, rows: np.ndarray[Any, np.dtype[np.int64]]) -> Iterator[tuple[int, Any]]:
        if self._tables:
            plan = self._dataset.plan(rows)
            if _is_of_tables(plan):
                return _batches(plan)
        return read_rows(self._dataset, rows)


def _is_of_tables(plan: Plan) -> bool:
    """Return whether a plan reads tables, and none of them may have holes."""
    if isinstance(plan, GatheredPlan):
        return bool(plan.parts) and all(_is_of_tables(part) for _, part in plan.parts)
    return isinstance(plan, TablesPlan) and plan.tables.single.errors is None


def _batches(plan: Plan) -> Iterator[tuple[int, pa.RecordBatch]]:
    step = max(1, min(len(plan), len(plan) * _TABLE_BYTES // max(1, plan.bytes)))
    for first in range(0, len(plan), step):
        yield first, table_of(plan.slice(first, min(first + step, len(plan))))


@dataclass(frozen=True, slots=True)
class Done:
    """A file that is there."""

    number: int
    """Which of the files it is."""

    rows: int
    bytes: int


class Counter:
    """Counts the records of files that are being written by the thread that made it; elsewhere it is mute."""

    def __init__(self, tell: Callable[[int], None] | None = None) -> None:
        self._tell = tell
        self._thread = threading.get_ident()
        self.done = 0
        """The records of files that are finished."""

    def add(self, records: int) -> None:
        """Tell of records of a file that is not finished yet."""
        if self._tell is not None and threading.get_ident() == self._thread:
            self._tell(self.done + records)

    def __reduce__(self) -> tuple[type[Counter], tuple[()]]:
        """Pickle as one that is mute."""
        return Counter, ()


@dataclass(frozen=True, slots=True)
class WriteShards:
    """Writes some of the files: a job for `map_ranges`."""

    dataset: Node
    form: FileFormat
    folder: str
    shards: Shards
    numbers: tuple[int, ...]
    """Those that are not there yet."""

    tally: Counter

    def __call__(self, start: int, stop: int) -> list[Done]:
        """Write the files from one of the numbers up to another.

        Raises:
            WrongType: a record cannot be written; the message names it.
            OSError: the disk is full, or the folder cannot be written.
        """
        return [self._write(number) for number in self.numbers[start:stop]]

    def _write(self, number: int) -> Done:
        name = self.shards.name(number)
        temporary = os.path.join(self.folder, unfinished_name(name, secrets.token_hex(8)))
        chunks = Chunks(self.dataset, self.shards.rows(number), self.tally.add, tables=self.form.takes_tables)
        try:
            with create_new(temporary) as file:
                try:
                    self.form.write(file, chunks.read())
                except UnwritableRecord as misfit:
                    place = place_of(self.dataset, chunks.row(misfit.back))
                    message = (
                        f"{place} cannot be written as {self.form.name}: {misfit.why}; {self.form.way_out}"
                    )
                    raise WrongType(message) from None
                file.flush()
                os.fsync(file.fileno())
                size = file.tell()
            put_in_place(temporary, os.path.join(self.folder, name))
        except OSError as error:
            error.add_note(
                f"while {name!r} was written in {self.folder!r}: the files that are there are whole, and the "
                f"same call goes on behind them"
            )
            raise
        finally:
            if os.path.lexists(temporary):
                os.unlink(temporary)
        return Done(number, chunks.rows, size)
