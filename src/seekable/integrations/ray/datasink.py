"""A sink of Ray Data: each write task writes one file by the writers of this library."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import pyarrow as pa
from ray.data import Datasink
from ray.data.block import BlockAccessor

from seekable.errors import DataNotFound
from seekable.formats.tables.arrow_table import RecordColumns
from seekable.formats.tables.parquet_writer import Parquet
from seekable.storage.addresses import shown
from seekable.writing.manifest import Written
from seekable.writing.target import made_folder
from seekable.writing.whole_file import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ray.data._internal.execution.interfaces import TaskContext
    from ray.data.datasource import WriteResult

    from seekable.formats.file_format import FileFormat
    from seekable.writing.target import Target

__all__ = ["FileSink"]

_ROWS_AT_ONCE = 1000
"""The rows that are written at a time; an error can name one of the last 1,024."""


@dataclass(frozen=True, slots=True)
class _TaskFile:
    """A file that a write task has written."""

    task: int
    name: str
    rows: int
    bytes: int


@final
class FileSink(Datasink[_TaskFile | None]):
    """The sink that ``sk_sink`` returns; ``written`` describes the files once all are there."""

    def __init__(self, target: Target, form: FileFormat, *, min_rows_per_file: int | None) -> None:
        self._target = target
        self._form = form
        self._least_rows = min_rows_per_file
        self._has_begun = False
        self.written: Written | None = None
        """The description of the files; None before the job has ended."""
        self.refuse_others()

    def get_name(self) -> str:
        """Return the name of the write tasks."""
        return "Seekable"

    @property
    def min_rows_per_write(self) -> int | None:
        """The least rows of a file, but for the last one."""
        return self._least_rows

    def refuse_others(self) -> None:
        """Raise `InvalidArgument` if there is data in the folder."""
        self._target.refuse_others(lambda _: False, suffix=self._form.suffix)

    def on_write_start(self, schema: Any = None) -> None:
        """Make the folder.

        Raises:
            InvalidArgument: there is data in it.
        """
        self.refuse_others()
        made_folder(self._target.folder)
        self._has_begun = True

    def write(self, blocks: Iterable[Any], ctx: TaskContext) -> _TaskFile | None:
        """Write rows into the file of this task, which replaces that of an earlier attempt."""
        rows = _BlockRows(blocks, tables=self._form.takes_tables)
        if not rows.any:
            return None
        form = self._form
        if isinstance(form, Parquet) and form.columns is None:
            form = replace(form, columns=RecordColumns(rows.schema, inferred=False))
        name = f"part-{ctx.task_idx:05d}{self._form.suffix}"
        size = write_whole(
            self._target.join(name),
            lambda file, _: form.write(file, rows.chunks(), first=0),
            form=form,
            named=lambda back: f"row {rows.count - back:,} of write task {ctx.task_idx:,} of Ray",
        )
        return _TaskFile(ctx.task_idx, name, rows.count, size)

    def on_write_complete(self, write_result: WriteResult[_TaskFile | None]) -> None:
        """Check that all files are there, and describe them in ``written``.

        Raises:
            DataNotFound: a worker wrote a file that this process does not see.
        """
        files = sorted(filter(None, write_result.write_returns), key=lambda file: file.task)
        for file in files:
            path = self._target.join(file.name)
            if (size := self._target.output.size(path)) != file.bytes:
                found = "there is none" if size is None else f"there is one of {size:,} bytes"
                message = (
                    f"a worker of Ray wrote {file.bytes:,} bytes to {shown(path)!r}, and on this machine "
                    f"{found}: write to an address of an object store, or to a folder that all nodes share"
                )
                raise DataNotFound(message)
        self.written = Written(
            paths=tuple(shown(self._target.join(file.name)) for file in files),
            rows=sum(file.rows for file in files),
            holes=0,
            bytes=sum(file.bytes for file in files),
            kept=0,
        )

    def on_write_failed(self, error: Exception) -> None:
        """Remove the files that were written: the folder had none before."""
        if not self._has_begun:
            return
        ours = re.compile(rf"part-\d{{5,}}{re.escape(self._form.suffix)}")
        for name in filter(ours.fullmatch, self._target.output.names(self._target.folder)):
            self._target.output.delete(self._target.join(name))


class _BlockRows:
    """The rows of blocks in chunks, as a format takes them."""

    def __init__(self, blocks: Iterable[Any], *, tables: bool) -> None:
        found = (BlockAccessor.for_block(block).to_arrow() for block in blocks)
        self._tables = (table for table in found if table.num_rows)
        self._first = next(self._tables, None)
        self._as_tables = tables
        self.count = 0
        """The number of rows so far."""

    @property
    def any(self) -> bool:
        """True if there is any row."""
        return self._first is not None

    @property
    def schema(self) -> pa.Schema:
        """The columns of the first block, without what pandas and Ray note beside them."""
        assert self._first is not None
        return pa.schema([(field.name, field.type) for field in self._first.schema])

    def chunks(self) -> Iterator[Any]:
        """Yield record batches, or lists of records."""
        table = self._first
        while table is not None:
            for batch in table.to_batches(max_chunksize=_ROWS_AT_ONCE):
                self.count += batch.num_rows
                yield batch if self._as_tables else batch.to_pylist()
            table = next(self._tables, None)
