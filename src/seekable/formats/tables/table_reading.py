"""Reading rows of tables: whole blocks where many rows of one are wanted, single rows where few are."""

from __future__ import annotations

import weakref
from bisect import bisect_right
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash

from seekable._cached import cached
from seekable._optional import optional
from seekable.errors import BadValue, CorruptRecord, InvalidArgument
from seekable.nodes.columns.decode_column import (
    DECODED,
    DECODERS,
    Unconvertible,
    cast_column,
    in_threads,
    take_pieces,
)
from seekable.nodes.compile import GatheredPlan
from seekable.nodes.graph import ColumnarPlan, FileRanges, Plan, Reader
from seekable.storage.far import far

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    import pyarrow as pa
    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.contract import OnError
    from seekable.formats.tables.table_files import ColumnMapping, RowBlocks, RowPlaces
    from seekable.nodes.columns.decode_column import DecodedRows, DecodeTable
    from seekable.nodes.conditions import Bounds, Where
    from seekable.nodes.graph import Origins
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = [
    "UNPACKED",
    "RowReader",
    "TableReading",
    "TablesPlan",
    "TablesReader",
    "blocks_to_decode",
    "table_ranges",
]

UNPACKED = 3
"""The size of a block in memory, as a multiple of its size in the file; a guess."""


@dataclass(frozen=True, eq=False)
class TableReading:
    """The rows of some files, counted over all of them."""

    places: RowPlaces
    single: RowReader
    """The reader of single rows."""

    decode: DecodeTable
    """The form of records: Python values, numpy's, or record batches."""

    def record(self, row: int) -> Any:
        """Return the record of a row.

        Raises:
            CorruptRecord: the record cannot be decoded, and there is no ``errors``.
            IndexStale: the file has changed.
        """
        if self.places.files.has_objects:
            return self.read(np.array([row], dtype=np.int64), frozenset())[0]
        block = bisect_right(self._edges, row) - 1
        file, key = self._file_of_block[block], (self._token, block, self.decode)
        decoded = DECODED.get(key)
        if decoded is not None:
            self.places.files.mapped(file).check()
            try:
                return decoded.records((row - self._edges[block],))[0]
            except Unconvertible:
                pass  # the row is named below
        elif DECODED.should_keep(key, self._bytes_of(block)):
            return self.read(np.array([row], dtype=np.int64), frozenset([block]))[0]
        return self.single.one(self._group_of[block], row, self.decode)

    def read(self, rows: Int64s, dense: frozenset[int]) -> list[Any]:
        """Return the records of some rows, in the order of ``rows``.

        Args:
            rows: the rows.
            dense: the blocks to decode whole.
        """
        order = np.argsort(rows, kind="stable")
        ascending = rows[order]
        found: list[Any] = []
        for decoded, at in self._pieces(ascending, dense, self.decode):
            if at is None:
                found += decoded
                continue
            try:
                found += decoded.records(at)
            except Unconvertible:
                some = ascending[len(found) : len(found) + len(at)]
                groups = self._blocks.groups(some).tolist()
                found += [
                    self.single.one(*each, self.decode) for each in zip(groups, some.tolist(), strict=True)
                ]
        if order.size == 1 or (np.diff(order) == 1).all():
            return found
        out: list[Any] = [None] * order.size
        for place, record in zip(order.tolist(), found, strict=True):
            out[place] = record
        return out

    def table(self, rows: Int64s, dense: frozenset[int]) -> pa.RecordBatch:
        """Return some rows as one record batch, in the order of ``rows``; arguments as of ``read``."""
        return take_pieces(list(self.batches(rows, dense)))

    def batches(
        self, rows: Int64s, dense: frozenset[int]
    ) -> Iterator[tuple[NDArray[np.intp], pa.RecordBatch, Int64s]]:
        """Yield the record batches that some rows lie in, of which none is copied; arguments as of ``read``.

        Yields:
            The indices in ``rows`` of those that lie in a batch, the batch, and the numbers of its rows.
        """
        order = np.argsort(rows, kind="stable")
        start = 0
        for decoded, at in self._pieces(rows[order], dense, "arrow"):
            if at is None:
                batch = pa.concat_batches(list(map(self._as_batch, decoded)))
                within = np.arange(batch.num_rows)
            else:
                batch, within = decoded.batch, np.fromiter(at, np.int64, len(at))
            yield order[start : start + within.size], batch, within
            start += within.size

    def blocks_to_decode(self, rows: Int64s) -> frozenset[int]:
        """Return the blocks to decode whole for some rows."""
        return blocks_to_decode(rows, self._blocks, size_of=self._bytes_of, most_bytes=DECODED.most_bytes)

    def may_match(
        self, where: Where, columns: Sequence[Sequence[str]], known: Sequence[Mapping[str, Bounds]]
    ) -> Int64s:
        """Return runs of rows among which are all that pass some conditions: starts and stops, ascending.

        Args:
            where: the conditions.
            columns: for each file the columns of which its statistics are to be trusted.
            known: for each file bounds of columns that are known without the file; a file that these rule out
                is not opened.
        """
        runs: list[tuple[int, int]] = []
        possible = [where.may_pass(bounds) for bounds in known]
        for group, first in enumerate(self._blocks.group_starts[:-1].tolist()):
            file, number = self._blocks.group_in_file(group)
            if not possible[file]:
                continue
            for start, stop, bounds in self._bounds(file, number, columns[file]):
                if stop > start and where.may_pass({**bounds, **known[file]}):
                    if runs and runs[-1][1] == first + start:
                        runs[-1] = runs[-1][0], first + stop
                    else:
                        runs.append((first + start, first + stop))
        return np.array(runs, dtype=np.int64).reshape(-1, 2)

    def _bounds(
        self, file: int, number: int, columns: Sequence[str]
    ) -> Iterable[tuple[int, int, Mapping[str, Bounds]]]:
        """Return a group's rows in runs with bounds of columns; without columns no file is opened."""
        if columns:
            return self.places.open.get(file).bounds(number, columns)
        group = int(self._blocks.first_groups[file]) + number
        rows = self._blocks.group_starts[group + 1] - self._blocks.group_starts[group]
        return [(0, int(rows), {})]

    def _pieces(
        self, rows: Int64s, dense: frozenset[int], decode: DecodeTable
    ) -> Iterator[tuple[Any, Sequence[int] | None]]:
        """Yield decoded rows, and which of them are wanted, for ascending rows; or records, and None."""
        present = np.unique(self._blocks.blocks(rows)).tolist()
        self._check_files(present)
        kept = {block: DECODED.get((self._token, block, decode)) for block in present}
        whole = [
            block
            for block in present
            if kept[block] is None
            if block in dense or DECODED.should_keep((self._token, block, decode), self._bytes_of(block))
        ]
        if sum(map(self._bytes_of, whole)) > DECODED.most_bytes:
            whole = []  # They are decoded at once, and would be in memory together.
        with self._held(rows, kept, whole):
            yield from self._read_pieces(rows, kept, whole, decode)

    def _read_pieces(
        self, rows: Int64s, kept: dict[int, DecodedRows | None], whole: list[int], decode: DecodeTable
    ) -> Iterator[tuple[Any, Sequence[int] | None]]:
        """Yield what ``_pieces`` yields, given the blocks that are decoded, and those to decode whole."""
        made = in_threads(lambda block: self._decode_block(block, decode), whole)
        kept.update(zip(whole, made, strict=True))
        decoded = {block: found for block, found in kept.items() if found is not None}
        planned = list(_steps(rows, self._blocks, decoded, threads=pa.cpu_count()))
        alone = [step for step in planned if isinstance(step, _ReadRows)]
        read = iter(in_threads(lambda step: self.single.some(step.group, step.rows, decode), alone))
        for step in planned:
            yield (decoded[step.block], step.within) if isinstance(step, _DecodeBlock) else next(read)

    def _held(
        self, rows: Int64s, kept: Mapping[int, DecodedRows | None], whole: Sequence[int]
    ) -> AbstractContextManager[None]:
        """Return a context in which what ascending rows need of objects of stores is in memory."""
        if not self.places.files.has_objects:
            return nullcontext()
        missing = np.array([block for block, found in kept.items() if found is None], np.int64)
        lacking = rows[np.isin(self._blocks.blocks(rows), missing)]
        return far().reads.holding(table_ranges(self.places, self.single, lacking, whole))

    def _decode_block(self, block: int, decode: DecodeTable) -> DecodedRows | None:
        """Decode a block and keep it; None if a row of it is bad.

        The rows of such a block are read by themselves: some are good, and the others are named.
        """
        group = int(self._blocks.group_of[block])
        file, number = self._blocks.group_in_file(group)
        first = int(self._blocks.group_starts[group])
        start, stop = self._edges[block] - first, self._edges[block + 1] - first
        columns = self.single.columns[self.single.schema_of[file]]
        try:
            table = self.places.open.get(file)
            batch = table.run(number, start, stop, columns.there)
            made = DECODERS[decode](columns.take(batch, cast_column))
        except (CorruptRecord, Unconvertible):
            return None
        key = self._token, block, decode
        DECODED.put(key, made)
        if table.shares_map:
            # Else the file would stay mapped after it was closed.
            weakref.finalize(self.places.files.mapped(file), DECODED.drop, key).atexit = False
        return made

    def _check_files(self, blocks: Iterable[int]) -> None:
        """Check once for each file that it has not changed since it was indexed.

        Raises:
            IndexStale: a file has changed.
        """
        for file in dict.fromkeys(map(self._file_of_block.__getitem__, blocks)):
            self.places.files.mapped(file).check()

    def _as_batch(self, record: Any) -> pa.RecordBatch:
        """Return a record, or what ``errors`` returned instead of one, as a record batch of one row.

        Raises:
            InvalidArgument: ``errors`` returned something that is not a row.
        """
        if isinstance(record, pa.RecordBatch):
            return record
        if not isinstance(record, dict):
            message = (
                f"a record batch has rows, so errors= must return a dict for it (got {record!r:.100}): read "
                f"the records as dicts, or return dicts"
            )
            raise InvalidArgument(message)
        try:
            return pa.RecordBatch.from_pylist([record], schema=self.single.columns[0].wanted)
        except (pa.ArrowException, OverflowError) as error:
            message = f"errors= returned {record!r:.100}, which does not fit the columns: {error}"
            raise InvalidArgument(message) from error

    def _bytes_of(self, block: int) -> int:
        """Return the approximate number of bytes of a block in memory."""
        rows = self._edges[block + 1] - self._edges[block]
        return int(UNPACKED * rows * self.places.row_bytes[self._file_of_block[block]])

    @property
    def _blocks(self) -> RowBlocks:
        return self.places.blocks

    @cached
    def _token(self) -> int:
        """A digest of what decides how blocks are cut and decoded: a part of their keys."""
        columns = [(str(some.wanted), some.there) for some in self.single.columns]
        files = self.places.files
        paths = [files.path(file) for file in range(len(files))]
        hasher = xxhash.xxh3_128(repr((columns, paths)).encode())
        for numbers in (files.sizes, files.mtimes_ns, self.single.schema_of):
            hasher.update(numbers.tobytes())
        return hasher.intdigest()

    @cached
    def _edges(self) -> list[int]:
        edges: list[int] = self._blocks.edges.tolist()
        return edges

    @cached
    def _group_of(self) -> list[int]:
        groups: list[int] = self._blocks.group_of.tolist()
        return groups

    @cached
    def _file_of_block(self) -> list[int]:
        files: list[int] = self._blocks.file_of[self._blocks.group_of].tolist()
        return files


@dataclass(frozen=True, slots=True, eq=False)
class RowReader:
    """Reads rows of one group at a time; an error names the bad row, and the other rows are read."""

    places: RowPlaces
    columns: tuple[ColumnMapping, ...]
    """The mapping of a file's columns to the wanted ones, for each schema."""

    schema_of: Int64s
    """The schema of each file."""

    errors: OnError | None
    """Replaces records that cannot be read; None raises the error."""

    def some(self, group: int, rows: Int64s, decode: DecodeTable) -> tuple[Any, Sequence[int] | None]:
        """Return rows of a group, and nothing else of it.

        Args:
            group: the group, counted over all files.
            rows: the rows, counted over all files, ascending; they may repeat.
            decode: the form of records.

        Returns:
            Decoded rows, and which of them are wanted; or a list of records, and None.

        Raises:
            CorruptRecord: the file is damaged at one of the rows.
            BadValue: a value of one of the rows cannot be given as it is wanted.
        """
        distinct, at = np.unique(rows - self.places.blocks.group_starts[group], return_inverse=True)
        try:
            return self._decoded(group, distinct, decode), at.tolist()
        except Unconvertible:
            pass
        except CorruptRecord:
            if self.errors is None:
                raise
        one_by_one = [self._one(group, row, decode) for row in distinct.tolist()]
        return [one_by_one[row] for row in at.tolist()], None

    def one(self, group: int, row: int, decode: DecodeTable) -> Any:
        """Return one record, or what ``errors`` returns instead of it.

        Args:
            group: the group of the row, counted over all files.
            row: counted over all files.
            decode: the form of the record.

        Raises:
            CorruptRecord, BadValue: as ``some``.
        """
        return self._one(group, row - int(self.places.blocks.group_starts[group]), decode)

    def _decoded(self, group: int, rows: Int64s, decode: DecodeTable) -> DecodedRows:
        file, number = self.places.blocks.group_in_file(group)
        columns = self.columns[self.schema_of[file]]
        batch = self.places.open.get(file).rows(number, rows, columns.there)
        return DECODERS[decode](columns.take(batch, cast_column))

    def _one(self, group: int, row: int, decode: DecodeTable) -> Any:
        try:
            return self._decoded(group, np.array([row], dtype=np.int64), decode).records((0,))[0]
        except CorruptRecord as error:
            if self.errors is None:
                raise
            return self.errors(error)
        except Unconvertible as error:
            file = int(self.places.blocks.file_of[group])
            start = int(self.places.blocks.group_starts[group] - self.places.files.starts[file])
            bad = self._bad_value(file, start + row, error)
            if self.errors is None:
                raise bad from error
            return self.errors(self._as_corrupt(group, file, start + row, bad))

    def _as_corrupt(self, group: int, file: int, row: int, bad: BadValue) -> CorruptRecord:
        """Return the error that a function of ``errors`` is called with for a bad value."""
        offset, length = self.places.span(group)
        path = self.places.path(file)
        corrupt = CorruptRecord(path, row, offset=offset, length=length, preview=b"", cause=bad)
        corrupt.__cause__ = bad
        return corrupt

    def _bad_value(self, file: int, row: int, error: Unconvertible) -> BadValue:
        """Return the error for a value of a file that cannot be converted.

        Args:
            file: the number of the file.
            row: the row in the file.
            error: the column, and the reason.
        """
        name, columns = error.column, self.columns[self.schema_of[file]]
        there, wanted = columns.file.field(name).type, columns.wanted.field(name).type
        where = f"{self.places.path(file)}: row {row}, column {name!r}"
        if not error.other:
            return BadValue(
                f"{where}: Python has no value for this {there}: {error}. Open the files with "
                f'decode="arrow" to get it as Arrow has it, or leave the column out with columns='
            )
        kinds = {
            number: each.file.field(name).type
            for number, each in enumerate(self.columns)
            if name in each.there and each.file.field(name).type != there
        }
        other = min(kinds, key=lambda number: (kinds[number] != wanted, number))
        path = self.places.path(int(np.flatnonzero(self.schema_of == other)[0]))
        return BadValue(
            f"{where}: the type is {there} here and {kinds[other]} in {path}, and this value does not fit "
            f"{wanted}, the type for both: {error}. Open the files apart, and cast the column of one: "
            f"sk.concat([a, b.cast({{{name!r}: ...}})])"
        )


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
        """Return the plan for some of the records; it decodes the same blocks whole."""
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


_DENSE = 64
"""A block is decoded whole where one in so many of its rows is wanted."""

_MANY = 16
"""So many rows of one block touch nearly all of its pages anyway."""

_FEWEST = 32
"""The fewest rows of a group for a thread of their own."""

_FEWEST_IN_RANGE = 16


@dataclass(frozen=True, slots=True)
class _DecodeBlock:
    """Rows that are taken from a block that is decoded whole."""

    block: int
    within: Sequence[int]
    """The numbers of the rows in the block, ascending; they may repeat."""


@dataclass(frozen=True, slots=True, eq=False)
class _ReadRows:
    """Rows of one group that are read singly."""

    group: int
    rows: Int64s
    """The rows, counted over all files, ascending; they may repeat."""


def blocks_to_decode(
    rows: Int64s, blocks: RowBlocks, *, size_of: Callable[[int], int], most_bytes: int
) -> frozenset[int]:
    """Return the blocks to decode whole for some rows; none if those that are needed together do not fit.

    A block is needed from its first row to its last. One that does not stay as long would be decoded anew by
    each slice of a plan. Where two windows meet, the blocks of both are wanted, but not together.

    Args:
        rows: the wanted rows, in the order of reading.
        blocks: where rows lie.
        size_of: returns the bytes of a block in memory.
        most_bytes: the bytes that fit.
    """
    block_of = blocks.blocks(rows)
    present, first, wanted = np.unique(block_of, return_index=True, return_counts=True)
    _, from_end = np.unique(block_of[::-1], return_index=True)
    many = (wanted >= _MANY) | (wanted * _DENSE >= np.diff(blocks.edges)[present])
    dense = present[many].tolist()
    sizes = np.array(list(map(size_of, dense)), np.int64)
    changes = np.zeros(rows.size + 1, np.int64)
    np.add.at(changes, first[many], sizes)
    np.subtract.at(changes, rows.size - from_end[many], sizes)
    return frozenset(dense) if np.cumsum(changes).max() <= most_bytes else frozenset()


def _steps(
    rows: Int64s, blocks: RowBlocks, decoded: Container[int], *, threads: int
) -> Iterator[_DecodeBlock | _ReadRows]:
    """Yield the steps that read some rows, in the order of the rows.

    Args:
        rows: the wanted rows, ascending; they may repeat.
        blocks: where rows lie.
        decoded: the blocks that are decoded whole.
        threads: how many threads may share the rows of one group that are read by themselves.
    """
    block_of = blocks.blocks(rows)
    within = (rows - blocks.edges[block_of]).tolist()
    bounds = [0, *(np.flatnonzero(np.diff(block_of)) + 1).tolist(), rows.size]
    present = block_of[bounds[:-1]]
    alone: list[Int64s] = []
    group = -1
    for block, its_group, (start, stop) in zip(
        present.tolist(), blocks.group_of[present].tolist(), pairwise(bounds), strict=True
    ):
        whole = block in decoded
        if alone and (whole or its_group != group):
            yield from _shared(group, np.concatenate(alone), threads)
            alone = []
        group = its_group
        if whole:
            yield _DecodeBlock(block, _as_range(within[start:stop]))
        else:
            alone.append(rows[start:stop])
    if alone:
        yield from _shared(group, np.concatenate(alone), threads)


def _shared(group: int, rows: Int64s, threads: int) -> Iterator[_ReadRows]:
    """Yield the rows of a group, cut for the threads; a page at a cut is decoded twice."""
    for some in np.array_split(rows, min(threads, -(-rows.size // _FEWEST))):
        yield _ReadRows(group, some)


def _as_range(rows: list[int]) -> Sequence[int]:
    """Return many consecutive ascending rows as a range, which is cheaper to read."""
    if len(rows) < _FEWEST_IN_RANGE or rows[-1] - rows[0] != len(rows) - 1:
        return rows
    ordered = range(rows[0], rows[-1] + 1)
    return ordered if rows == list(ordered) else rows


_TAIL_BYTES = 64 << 10
"""The bytes at the end of a table that are fetched first; most footers are within."""

_LARGE_BYTES = 32 << 20
"""The bytes of a chunk without an index of pages that take longer to fetch than to go from page to page."""

_FEW = 16
"""Rows are few if they are less than one part in so many of their group."""


def table_ranges(
    places: RowPlaces, single: RowReader, rows: Int64s, dense: Container[int]
) -> Iterator[FileRanges]:
    """Yield the bytes that reading some rows takes, in the order of the rows in the files; opens the files.

    Args:
        places: the rows and their files.
        single: the reader of single rows, which has the columns.
        rows: the rows, in any order.
        dense: the blocks that are decoded whole.

    Raises:
        IndexStale: a file has changed.
        UnsupportedFormat: a file cannot be opened.
    """
    if not rows.size:
        return
    rows = np.unique(rows)
    if not places.files.has_objects:
        yield _rows(places, single, rows, dense)
        return
    with far().reads.holding([_tails(places, rows)]):
        indexes = _indexes(places, single, rows)
    with far().reads.holding([indexes]):
        found = _rows(places, single, rows, dense)
    yield found


def _tails(places: RowPlaces, rows: Int64s) -> FileRanges:
    """Return the ends of those files of some rows that are not open yet."""
    files = [file for file in np.unique(places.in_file(rows)[0]).tolist() if not places.open.has(file)]
    sizes = [places.files.data_size(file) for file in files]
    tails = [(max(0, size - _TAIL_BYTES), size) for size in sizes]
    return _ranges(places, [(file, *tail) for file, tail in zip(files, tails, strict=True)])


def _indexes(places: RowPlaces, single: RowReader, rows: Int64s) -> FileRanges:
    """Return the bytes that say where the pages of some rows lie, as far as they are not known yet.

    Where few rows of a large chunk without an index are read, it is left out: the reader goes from page to
    page, and several pages ahead.
    """
    found: list[tuple[int, int, int]] = []
    groups, counts = np.unique(places.blocks.groups(rows), return_counts=True)
    are_few = counts * _FEW < np.diff(places.blocks.group_starts)[groups]
    for group, is_few in zip(groups.tolist(), are_few.tolist(), strict=True):
        file, number = places.blocks.group_in_file(group)
        columns = single.columns[single.schema_of[file]].there
        with suppress(CorruptRecord):  # reading names the row
            indexes = places.open.get(file).index_ranges(number, columns)
            found += [(file, *each) for each in indexes if not is_few or each[1] - each[0] <= _LARGE_BYTES]
    return _ranges(places, found)


def _rows(places: RowPlaces, single: RowReader, rows: Int64s, dense: Container[int]) -> FileRanges:
    """Return the bytes of ascending rows."""
    blocks = places.blocks
    found: list[tuple[int, int, int]] = []
    for step in _steps(rows, blocks, dense, threads=1):
        group = int(blocks.group_of[step.block]) if isinstance(step, _DecodeBlock) else step.group
        file, number = blocks.group_in_file(group)
        columns, first = single.columns[single.schema_of[file]].there, int(blocks.group_starts[group])
        table = places.open.get(file)
        with suppress(CorruptRecord):  # reading names the row
            if isinstance(step, _DecodeBlock):
                start, stop = (blocks.edges[step.block : step.block + 2] - first).tolist()
                found += [(file, *each) for each in table.run_ranges(number, start, stop, columns)]
            else:
                found += [(file, *each) for each in table.row_ranges(number, step.rows - first, columns)]
    return _ranges(places, found)


def _ranges(places: RowPlaces, found: Sequence[tuple[int, int, int]]) -> FileRanges:
    """Return ranges, given the file, the first byte and the byte after the last of each."""
    return FileRanges.of(places.files, *np.array(found, np.int64).reshape(-1, 3).T)
