"""A source of Ray Data over a dataset or a stream, and a sink.

The tasks of Ray read the parts of the source as tables. Each write task writes one file by the writers of
this library.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, final

import numpy as np
import pyarrow as pa
import ray
from ray.data import Datasink, Datasource
from ray.data.block import BlockAccessor, BlockMetadata
from ray.data.datasource import ReadTask

from seekable.errors import DataNotFound, MissingColumn, WrongType
from seekable.formats.file_format import UnwritableRecord
from seekable.formats.tables.arrow_table import RecordColumns
from seekable.formats.tables.parquet_writer import Parquet
from seekable.integrations.ray.block_columns import WAY_OUT, BlockColumns, columns_of
from seekable.nodes.bases import leaves_of
from seekable.nodes.columns.record_batches import is_columnar, table_of
from seekable.nodes.display import describe_row
from seekable.nodes.graph import HOLE
from seekable.nodes.readahead import read_rows, reads_ahead
from seekable.nodes.sequence_source import SequenceSource
from seekable.parallel.pickling import deserialized, serialized
from seekable.storage.addresses import shown
from seekable.writing.manifest import Written
from seekable.writing.pipeline_code import functions_of
from seekable.writing.preview import StreamPreview, looked_at
from seekable.writing.target import made_folder, write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ray.data import DataContext
    from ray.data._internal.execution.interfaces import TaskContext
    from ray.data.datasource import WriteResult

    from seekable.formats.file_format import FileFormat
    from seekable.nodes.graph import Plan
    from seekable.nodes.node import Node
    from seekable.stream.lane_items import StreamItems
    from seekable.writing.target import Target

__all__ = ["DatasetReads", "FileSink", "RayReads", "RecordSource", "StreamReads", "parts_of"]


_AHEAD = 4096
"""The number of positions whose order is resolved at a time."""

_TABLE_BYTES, _TABLE_RECORDS = 8 << 20, 1024
"""About the most bytes, and the most records, that become a table at a time; Ray joins tables to blocks."""

_PREVIEW_BYTES, _LEAST_PREVIEWED = 8 << 20, 16
"""About the bytes of files that are read for a schema, and the records that are read in any case."""

_ESTIMATED_FROM = 1024
"""The number of positions that the size of all records is estimated from."""

_UNPACKED = 3
"""The size of a table in memory, as a multiple of its size in the file; a guess."""

_WAY_OUT = "Ray sends it to other processes, so all of it must be possible to pickle"

_MOST_KEPT = 4


def parts_of(total: int, most: int) -> list[range]:
    """Return consecutive ranges that cover ``total`` positions; pure.

    Their lengths differ by at most one. There are ``most`` of them, or ``total`` if that is less, but at
    least one: of 10 in 3 parts, ``0:3``, ``3:6`` and ``6:10``.
    """
    count = max(1, min(total, most))
    return [range(total * number // count, total * (number + 1) // count) for number in range(count)]


class RayReads(Protocol):
    """The reading of records in parts. Picklable."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of all tables, that of positions included."""
        ...

    def parts(self, parallelism: int) -> list[range]:
        """Return the parts, about as many as ``parallelism``."""
        ...

    def rows_in(self, part: range) -> int | None:
        """Return the number of rows of a part; None if only reading shows it."""
        ...

    def bytes_of(self, rows: int | None, names: Sequence[str] | None) -> int | None:
        """Return the estimated bytes in memory of some rows and columns; None if nothing is known.

        Args:
            rows: the number of rows; None for all.
            names: the columns; None for all.
        """
        ...

    def tables(self, part: range, names: Sequence[str] | None, most: int | None) -> Iterator[pa.Table]:
        """Yield the rows of a part in their order; one empty table if there is none.

        Args:
            part: one of ``parts``.
            names: the columns to read, in their order; None for all.
            most: the number of rows after which nothing more is read; None for all rows.
        """
        ...


@dataclass(frozen=True, eq=False)
class DatasetReads:
    """A dataset: a part is a range of positions, over all epochs."""

    node: Node
    columns: BlockColumns
    position: str | None
    """The column of positions; None for none."""
    positions: int
    """The number of positions of all epochs."""
    row_bytes: float
    """The estimated bytes of a row in memory; 0 if nothing is known."""
    exact: bool
    """True if no record can be a hole."""

    @classmethod
    def of(cls, node: Node, *, epochs: int, position: str | None, schema: Any) -> DatasetReads:
        """Return the reading of some epochs; up to 1,024 records are read if files declare no columns."""
        size = node.size or 0
        columns = columns_of(_previewed(node, size), declared=node.declared(), given=schema)
        sample = np.linspace(0, max(0, size - 1), min(size, _ESTIMATED_FROM)).astype(np.int64)
        plan = node.plan(sample)
        columnar = is_columnar(plan)
        row_bytes = (_UNPACKED if columnar else 1) * plan.bytes / max(1, len(plan))
        exact = columnar or not _may_have_holes(node)
        return cls(node, columns, position, epochs * size, row_bytes, exact)

    @property
    def schema(self) -> pa.Schema:
        """The columns of all tables."""
        return _with_position(self.columns.schema, self.position)

    def parts(self, parallelism: int) -> list[range]:
        """Return ranges of positions of equal length, but for one."""
        return parts_of(self.positions, parallelism)

    def rows_in(self, part: range) -> int | None:
        """Return the number of positions, unless a record may be a hole."""
        return len(part) if self.exact else None

    def bytes_of(self, rows: int | None, names: Sequence[str] | None) -> int | None:
        """Return the mean bytes of the records in their files, times the number of rows."""
        share = 1.0 if names is None else len(names) / max(1, len(self.schema))
        size = int(self.row_bytes * share * (self.positions if rows is None else rows))
        return size or (None if self.positions else 0)

    def tables(self, part: range, names: Sequence[str] | None, most: int | None) -> Iterator[pa.Table]:
        """Yield the records of the positions; columns of tables never become Python objects on the way."""
        return _cut(self._tables(part, names, most), self.schema, names, most)

    def _tables(self, part: range, names: Sequence[str] | None, most: int | None) -> Iterator[pa.Table]:
        node, columns = self.node, self.columns
        if names is not None:
            columns = columns.only(names)
            node = node.narrowed(frozenset(columns.names))
        at_once = _AHEAD if most is None else max(1, min(_AHEAD, most))
        planned = (
            (first, node.plan(np.arange(first, min(first + at_once, part.stop), dtype=np.int64)))
            for first in range(part.start, part.stop, at_once)
        )
        for start, plan, ahead in reads_ahead(planned):
            step = _step(plan)
            for first in range(0, len(plan), step):
                last = min(first + step, len(plan))
                ahead.read_to(last)
                where = np.arange(start + first, start + last, dtype=np.int64)
                table, where = self._table(
                    columns, plan.slice(first, last), where, narrowed=names is not None
                )
                yield _placed(table, where, self.position)

    def _table(
        self, columns: BlockColumns, plan: Plan, where: Any, *, narrowed: bool
    ) -> tuple[pa.Table, Any]:
        """Return the records of a plan, and the positions of those that are not holes."""
        if is_columnar(plan):
            return columns.of_batch(table_of(plan)), where
        records = plan.read()
        there = [record is not HOLE for record in records]
        if not all(there):
            where = where[np.array(there)]
            records = [record for record in records if record is not HOLE]
        try:
            return columns.of_records(records, narrowed=narrowed), where
        except UnwritableRecord as misfit:
            named = describe_row(self.node, int(where[-misfit.back]))
            message = f"{named} does not fit into the columns of the blocks: {misfit.why}; {WAY_OUT}"
            raise WrongType(message) from None


@dataclass(frozen=True, eq=False)
class StreamReads:
    """A stream: a part is a lane, and the position of an item is its slot."""

    items: StreamItems
    columns: BlockColumns
    position: str | None

    @classmethod
    def of(cls, items: StreamItems, *, position: str | None, schema: Any) -> StreamReads:
        """Return the reading of all lanes; the first items are made for their columns."""
        preview = StreamPreview(items)
        columns = columns_of(preview.read(), declared=items.declared(), given=schema)
        return cls(items, columns, position)

    @property
    def schema(self) -> pa.Schema:
        """The columns of all tables."""
        return _with_position(self.columns.schema, self.position)

    def parts(self, parallelism: int) -> list[range]:
        """Return one part for each lane: a lane is sequential."""
        return [range(lane, lane + 1) for lane in range(self.items.lanes)]

    def rows_in(self, part: range) -> int | None:
        """Return None: the number of items is not known."""
        return None

    def bytes_of(self, rows: int | None, names: Sequence[str] | None) -> int | None:
        """Return None: the items are not known."""
        return None

    def tables(self, part: range, names: Sequence[str] | None, most: int | None) -> Iterator[pa.Table]:
        """Yield the items of a lane in their order."""
        return _cut(self._tables(part.start, names, most), self.schema, names, most)

    def _tables(self, lane: int, names: Sequence[str] | None, most: int | None) -> Iterator[pa.Table]:
        columns = self.columns if names is None else self.columns.only(names)
        wanted, held = 1, list[tuple[int, Any, Any]]()

        def made() -> pa.Table:
            try:
                table = columns.of_records([item for _, _, item in held], narrowed=names is not None)
            except UnwritableRecord as misfit:
                named = self.items.named(lane, held[-misfit.back][1])
                message = f"{named} does not fit into the columns of the blocks: {misfit.why}; {WAY_OUT}"
                raise WrongType(message) from None
            return _placed(table, np.array([slot for slot, _, _ in held], dtype=np.int64), self.position)

        for number, (token, item) in enumerate(self.items.run(lane, None)):
            if item is not HOLE:
                held.append((lane + number * self.items.lanes, token, item))
            if len(held) >= min(wanted, most or wanted):
                table = made()
                yield table
                wanted = max(1, min(_TABLE_RECORDS, _TABLE_BYTES * len(held) // max(1, table.nbytes)))
                held.clear()
        if held:
            yield made()


def _previewed(node: Node, size: int) -> Iterator[tuple[Sequence[Any], Callable[[int], str]]]:
    """Yield some records from the first to the last; the larger they are, the fewer."""
    rows = looked_at(size)
    if not rows.size:
        return
    most = max(_LEAST_PREVIEWED, _PREVIEW_BYTES * rows.size // max(1, node.plan(rows).bytes))
    rows = rows[:: -(-rows.size // most)]
    for first, records in read_rows(node, rows):

        def name(place: int, first: int = first) -> str:
            return describe_row(node, int(rows[first + place]))

        yield records, name


def _may_have_holes(node: Node) -> bool:
    """Return True unless it is certain that no record is a hole: only functions and sequences give holes."""
    return any(True for _ in functions_of(node)) or any(
        isinstance(leaf, SequenceSource) or getattr(leaf, "errors", None) is not None
        for leaf in leaves_of(node)
    )


def _step(plan: Plan) -> int:
    """Return the number of records of a plan that become one table."""
    most = len(plan) if is_columnar(plan) else _TABLE_RECORDS
    return max(1, min(most, len(plan) * _TABLE_BYTES // max(1, plan.bytes)))


def _with_position(schema: pa.Schema, position: str | None) -> pa.Schema:
    return schema if position is None else schema.append(pa.field(position, pa.int64()))


def _placed(table: pa.Table, where: Any, position: str | None) -> pa.Table:
    return table if position is None else table.append_column(position, pa.array(where, pa.int64()))


def _cut(
    tables: Iterator[pa.Table], schema: pa.Schema, names: Sequence[str] | None, most: int | None
) -> Iterator[pa.Table]:
    """Yield the named columns of tables, up to a number of rows; at least one table, which may be empty."""
    chosen = schema.names if names is None else [name for name in names if name in schema.names]
    rows = 0
    for table in tables:
        if table.num_rows:
            yield _chosen(table, chosen)
            rows += table.num_rows
        if most is not None and rows >= most:
            return
    if not rows:
        yield schema.empty_table().select(chosen)


def _chosen(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return some columns; Ray counts no rows in a table without columns, so it gets one of Ray's own."""
    return table.select(names) if names else BlockAccessor.for_block(table).select([])


@final
class RecordSource(Datasource):
    """The source that ``sk_source`` returns."""

    def __init__(self, reads: RayReads) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Ray's has no types
        self._reads = reads
        self._projection_map: dict[str, str] | None = None
        self._sent: _Sent | None = None

    def get_name(self) -> str:
        """Return the name of the read tasks."""
        return "Seekable"

    def supports_projection_pushdown(self) -> bool:
        """Return True: only the asked columns are read."""
        return True

    def apply_projection(self, projection_map: dict[str, str] | None) -> Datasource:
        """Return the source of some columns.

        Raises:
            MissingColumn: there is no such column.
        """
        there = self._reads.schema.names
        for name in projection_map or ():
            if name not in there:
                message = (
                    f"records have no column {name!r}; there are {', '.join(map(repr, there)) or 'none'}"
                )
                raise MissingColumn(message)
        return super().apply_projection(projection_map)

    def estimate_inmemory_data_size(self) -> int | None:
        """Return the estimated bytes of all records in memory; no record is read."""
        return self._reads.bytes_of(None, self._get_data_columns())

    def get_read_tasks(
        self,
        parallelism: int,
        per_task_row_limit: int | None = None,
        data_context: DataContext | None = None,
    ) -> list[ReadTask]:
        """Return the tasks in the order of the records; each reads one part."""
        if self._sent is None:
            self._sent = _Sent(secrets.token_hex(8), ray.put(serialized(self._reads, way_out=_WAY_OUT)))
        names = self._get_data_columns()
        schema = self._reads.schema
        if names is not None:
            schema = schema.empty_table().select([name for name in names if name in schema.names]).schema
        return [
            ReadTask(
                _ReadPart(self._sent, part, None if names is None else tuple(names), per_task_row_limit),
                self._metadata(part, names),
                schema=schema,
                per_task_row_limit=per_task_row_limit,
            )
            for part in self._reads.parts(parallelism)
        ]

    def _metadata(self, part: range, names: list[str] | None) -> BlockMetadata:
        rows = self._reads.rows_in(part)
        size = None if rows is None else self._reads.bytes_of(rows, names)
        return BlockMetadata(num_rows=rows, size_bytes=size, exec_stats=None, input_files=None)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without what was put for the tasks, which may be gone where it is unpickled."""
        return {**self.__dict__, "_sent": None}


@dataclass(frozen=True, slots=True)
class _Sent:
    """The reading of all parts, which lies once in the object store of the cluster."""

    token: str
    data: Any

    def reads(self) -> RayReads:
        """Return the reading; tasks of one worker share it, with its open files."""
        found = _kept.pop(self.token, None)
        if found is None:
            found = deserialized(ray.get(self.data))
            while len(_kept) >= _MOST_KEPT:
                del _kept[next(iter(_kept))]
        _kept[self.token] = found
        return found


_kept: dict[str, RayReads] = {}
"""The readings that this process used last, by token: a union of sources uses them in turn."""


@dataclass(frozen=True, slots=True)
class _ReadPart:
    """The function of a read task."""

    sent: _Sent
    part: range
    names: tuple[str, ...] | None
    most: int | None

    def __call__(self) -> Iterator[pa.Table]:
        return self.sent.reads().tables(self.part, self.names, self.most)


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
