"""Reading rows of tables: whole blocks where many rows of one are wanted, single rows where few are."""

from __future__ import annotations

import weakref
from bisect import bisect_right
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash

from seekable._cached import cached
from seekable._optional import optional
from seekable.errors import CorruptRecord, InvalidArgument
from seekable.formats.tables.table_plan import DecodeBlock, ReadRows, blocks_to_decode, steps
from seekable.formats.tables.table_ranges import table_ranges
from seekable.nodes.columns.decode_column import (
    DECODED,
    DECODERS,
    Unconvertible,
    cast_column,
    in_threads,
    take_pieces,
)
from seekable.storage.far import far

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    import pyarrow as pa
    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.tables.table_files import RowBlocks, RowPlaces
    from seekable.formats.tables.table_rows import RowReader
    from seekable.nodes.columns.decode_column import DecodedRows, DecodeTable
    from seekable.nodes.conditions import Bounds, Where

else:
    pa = optional("pyarrow", extra="parquet")

__all__ = ["UNPACKED", "TableReading"]

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
        """Return runs of rows of a group with bounds of the columns; without columns no file is opened."""
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
        planned = list(steps(rows, self._blocks, decoded, threads=pa.cpu_count()))
        alone = [step for step in planned if isinstance(step, ReadRows)]
        read = iter(in_threads(lambda step: self.single.some(step.group, step.rows, decode), alone))
        for step in planned:
            yield (decoded[step.block], step.within) if isinstance(step, DecodeBlock) else next(read)

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
            InvalidArgument: ``errors`` returned something that is no row.
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
        """The digest of all that decides the rows of a block and their decoding: a part of its key."""
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
