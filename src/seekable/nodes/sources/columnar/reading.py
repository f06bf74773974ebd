"""Reading rows of tables: whole blocks where many rows of one are wanted, single rows where few are."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash

from seekable._cached import cached
from seekable._optional import optional
from seekable.errors import BadValue, CorruptRecord, InvalidArgument
from seekable.formats.take import take_batch
from seekable.index.location import Location
from seekable.nodes.provenance import Origins
from seekable.nodes.sources.columnar.cache import DECODED
from seekable.nodes.sources.columnar.files import table_sizes
from seekable.nodes.sources.columnar.held import Unconvertible, held_as
from seekable.nodes.sources.columnar.threads import in_threads
from seekable.remote.placeholder import told_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from seekable.formats.registry import OnError
    from seekable.index.fileset import FileSet
    from seekable.nodes.conditions import Where
    from seekable.nodes.sources.columnar.files import Layout, OpenTables
    from seekable.nodes.sources.columnar.held import DecodeTable, Held
    from seekable.nodes.sources.columnar.schema import Columns

    Int64s = NDArray[np.int64]
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = ["UNPACKED", "Tables"]

_DENSE = 64
"""Where one in so many rows of a block is wanted, the block is read as a whole."""

_MANY = 16
"""So many rows of a block lie in about as many pages as it has."""

_FEWEST = 32
"""Rows of a group that are worth a thread of their own."""

_FEWEST_IN_RANGE = 16

UNPACKED = 3
"""How many times as large as in its file a block is thought to be in memory."""


@dataclass(frozen=True, slots=True, eq=False)
class _Sparse:
    """Ascending rows of a group that are read by themselves."""

    group: int
    rows: Int64s


def _cut(group: int, rows: Int64s) -> Iterator[_Sparse]:
    """Cut the rows of a group so that each thread has some; a page where they are cut is decoded twice."""
    threads = min(pa.cpu_count(), -(-rows.size // _FEWEST))
    for some in np.array_split(rows, threads):
        yield _Sparse(group, some)


@dataclass(frozen=True, eq=False)
class Tables:
    """The rows of some files; rows are counted over all of them."""

    files: FileSet
    layout: Layout
    open: OpenTables
    columns: tuple[Columns, ...]
    """How columns are had of files, for each of their schemas."""
    schema_of: Int64s
    """Which schema each file has."""
    decode: DecodeTable
    errors: OnError | None

    def record(self, row: int) -> Any:
        """Return one record."""
        block = bisect_right(self._edges, row) - 1
        within = row - self._edges[block]
        file, key = self._file_of_block[block], (self._token, block, self.decode)
        held = DECODED.get(key)
        if held is not None:
            self.files.mapped(file).check()
            try:
                return held.records((within,))[0]
            except Unconvertible:
                pass  # said below, with all details
        elif DECODED.worth_keeping(key, self._bytes_of(block)):
            return self.read(np.array([row], dtype=np.int64), frozenset([block]))[0]
        group = int(self.layout.group_of[block])
        return self._one(file, group, row - int(self.layout.group_starts[group]), self.decode)

    def read(self, rows: Int64s, dense: frozenset[int]) -> list[Any]:
        """Return some records in the order asked.

        Args:
            rows: which.
            dense: the blocks that are worth reading as a whole.
        """
        order = np.argsort(rows, kind="stable")
        found: list[Any] = []
        for held, at in self._pieces(rows[order], dense, self.decode):
            if at is None:
                found += held
                continue
            try:
                found += held.records(at)
            except Unconvertible:
                found += [
                    self._by_itself(row) for row in rows[order[len(found) : len(found) + len(at)]].tolist()
                ]
        if order.size == 1 or (np.diff(order) == 1).all():
            return found
        out: list[Any] = [None] * order.size
        for place, record in zip(order.tolist(), found, strict=True):
            out[place] = record
        return out

    def table(self, rows: Int64s, dense: frozenset[int]) -> pa.RecordBatch:
        """Return some rows as one record batch, in the order asked."""
        order = np.argsort(rows, kind="stable")
        batches: list[Any] = []
        for held, at in self._pieces(rows[order], dense, "arrow"):
            if at is None:
                batches += map(self._as_batch, held)
                continue
            whole = isinstance(at, range) and at == range(held.batch.num_rows)
            batches.append(
                held.batch if whole else take_batch(held.batch, np.fromiter(at, np.int64, len(at)))
            )
        joined = pa.concat_batches(batches)
        if order.size == 1 or (np.diff(order) == 1).all():
            return joined
        places = np.empty_like(order)
        places[order] = np.arange(order.size)
        return take_batch(joined, places)

    def _as_batch(self, record: Any) -> pa.RecordBatch:
        """Return a record batch of one row, or of what the user wants instead of one."""
        if isinstance(record, dict):
            try:
                return pa.RecordBatch.from_pylist([record], schema=self.columns[0].wanted)
            except (pa.ArrowException, OverflowError) as error:
                message = f"errors= returned {record!r:.100}, which does not fit the columns: {error}"
                raise InvalidArgument(message) from error
        if isinstance(record, pa.RecordBatch):
            return record
        message = (
            f"a record batch has rows, so errors= must return a dict for it (got {record!r:.100}): read the "
            f"records as dicts, or return dicts"
        )
        raise InvalidArgument(message)

    def _pieces(
        self, rows: Int64s, dense: frozenset[int], decode: DecodeTable
    ) -> Iterator[tuple[Any, Sequence[int] | None]]:
        """Yield decoded rows, and which of them are wanted, for ascending rows; or records, and None."""
        planned = list(self._planned(rows, dense, decode))
        sparse = [piece for piece in planned if isinstance(piece, _Sparse)]
        read = iter(in_threads(lambda piece: self._rows(piece.group, piece.rows, decode), sparse))
        for piece in planned:
            yield next(read) if isinstance(piece, _Sparse) else piece

    def _planned(
        self, rows: Int64s, dense: frozenset[int], decode: DecodeTable
    ) -> Iterator[_Sparse | tuple[Held, Sequence[int]]]:
        """Yield what is decoded as a whole block, and what is to be read row by row."""
        blocks = np.searchsorted(self.layout.edges, rows, side="right") - 1
        within = rows - self.layout.edges[blocks]
        bounds = [0, *(np.flatnonzero(np.diff(blocks)) + 1).tolist(), rows.size]
        present = blocks[bounds[:-1]]
        self._check_files(present)
        self._load(present.tolist(), dense, decode)
        numbers = within.tolist()
        sparse: list[Int64s] = []
        group = -1
        for block, its_group, (start, stop) in zip(
            present.tolist(), self.layout.group_of[present].tolist(), pairwise(bounds), strict=True
        ):
            held = self._held(block, dense, decode)
            if sparse and (held is not None or its_group != group):
                yield from _cut(group, np.concatenate(sparse))
                sparse = []
            group = its_group
            if held is None:
                sparse.append(rows[start:stop])
            else:
                yield held, _as_range(numbers[start:stop])
        if sparse:
            yield from _cut(group, np.concatenate(sparse))

    def _load(self, blocks: list[int], dense: frozenset[int], decode: DecodeTable) -> None:
        """Decode at once, in several threads, the blocks that are wanted as a whole and not here."""
        wanted = [
            block for block in blocks if block in dense and DECODED.get((self._token, block, decode)) is None
        ]
        if len(wanted) > 1:
            in_threads(lambda block: self._held(block, dense, decode), wanted)

    def _check_files(self, blocks: Int64s) -> None:
        """Look once whether the files are those that were indexed.

        Raises:
            IndexStale: one is not.
        """
        for file in dict.fromkeys(map(self._file_of_block.__getitem__, blocks.tolist())):
            self.files.mapped(file).check()

    def _held(self, block: int, dense: frozenset[int], decode: DecodeTable) -> Held | None:
        """Return a block as a whole, if it is here or worth it."""
        key = self._token, block, decode
        held: Held | None = DECODED.get(key)
        if held is not None:
            return held
        file = self._file_of_block[block]
        if block not in dense and not DECODED.worth_keeping(key, self._bytes_of(block)):
            return None
        layout, group = self.layout, int(self.layout.group_of[block])
        first = int(layout.group_starts[group])
        start, stop = self._edges[block] - first, self._edges[block + 1] - first
        columns = self.columns[self.schema_of[file]]
        number = group - int(layout.first_groups[file])
        try:
            batch = self.open.get(file).run(number, start, stop, columns.there)
            made = held_as(decode, columns, batch)
        except (CorruptRecord, Unconvertible):
            return None  # Its rows are read by themselves: some of them are good, and the others are named.
        DECODED.put(key, made)
        return made

    def _rows(self, group: int, rows: Int64s, decode: DecodeTable) -> tuple[Any, Sequence[int] | None]:
        """Read some rows of a group, ascending ones that may repeat, and nothing else of it."""
        file = int(self.layout.file_of[group])
        distinct, at = np.unique(rows - self.layout.group_starts[group], return_inverse=True)
        try:
            return self._few(file, group, distinct, decode), at.tolist()
        except Unconvertible:
            pass
        except CorruptRecord:
            if self.errors is None:
                raise
        one_by_one = [self._one(file, group, row, decode) for row in distinct.tolist()]
        return [one_by_one[row] for row in at.tolist()], None

    def _few(self, file: int, group: int, rows: Int64s, decode: DecodeTable) -> Held:
        columns = self.columns[self.schema_of[file]]
        number = group - int(self.layout.first_groups[file])
        return held_as(decode, columns, self.open.get(file).rows(number, rows, columns.there))

    def _by_itself(self, row: int) -> Any:
        """Return one record, or what the user wants instead of it, from the bytes of that row alone."""
        group = int(self._groups(np.array([row], dtype=np.int64))[0])
        within = row - int(self.layout.group_starts[group])
        return self._one(int(self.layout.file_of[group]), group, within, self.decode)

    def _one(self, file: int, group: int, row: int, decode: DecodeTable) -> Any:
        """Return one record, or what the user wants instead of it.

        Raises:
            CorruptRecord: the file is damaged there.
            BadValue: a value cannot be given as it is wanted.
        """
        try:
            return self._few(file, group, np.array([row], dtype=np.int64), decode).records((0,))[0]
        except CorruptRecord as error:
            if self.errors is None:
                raise
            return self.errors(error)
        except Unconvertible as error:
            number = row + int(self.layout.group_starts[group] - self.files.starts[file])
            bad = self._bad_value(file, number, error)
            if self.errors is None:
                raise bad from error
            offset, length = self.open.get(file).span(group - int(self.layout.first_groups[file]))
            corrupt = CorruptRecord(
                self.path(file), number, offset=offset, length=length, preview=b"", cause=bad
            )
            corrupt.__cause__ = bad
            return self.errors(corrupt)

    def _bad_value(self, file: int, row: int, error: Unconvertible) -> BadValue:
        """Return the error for a value of a file that cannot be given as it is wanted.

        Args:
            file: the number of the file.
            row: the row in the file.
            error: what is wrong.
        """
        name, columns = error.column, self.columns[self.schema_of[file]]
        there, wanted = columns.file.field(name).type, columns.wanted.field(name).type
        where = f"{self.path(file)}: row {row}, column {name!r}"
        if not error.other:
            return BadValue(
                f"{where}: Python has no value for this {there}: {error}. Open the files with "
                f'decode="arrow" to get it as Arrow has it, or leave the column out with columns='
            )
        others = [number for number, each in enumerate(self.columns) if name in each.there]
        others.sort(key=lambda number: self.columns[number].file.field(name).type != wanted)
        other = next(number for number in others if self.columns[number].file.field(name).type != there)
        path = self.path(int(np.flatnonzero(self.schema_of == other)[0]))
        return BadValue(
            f"{where}: the type is {there} here and {self.columns[other].file.field(name).type} in {path}, "
            f"and this value does not fit {wanted}, the type for both: {error}. Open the files apart, and "
            f"cast the column of one: sk.concat([a, b.cast({{{name!r}: ...}})])"
        )

    def dense_among(self, rows: Int64s) -> frozenset[int]:
        """Return the blocks of which so many rows are wanted that they are read as a whole, if all fit.

        A block that is too large to be kept would be read anew by each slice of a plan.
        """
        blocks = np.searchsorted(self.layout.edges, rows, side="right") - 1
        present, wanted = np.unique(blocks, return_counts=True)
        many = (wanted >= _MANY) | (wanted * _DENSE >= np.diff(self.layout.edges)[present])
        dense = present[many].tolist()
        size = sum(map(self._bytes_of, dense))
        return frozenset(dense) if size <= DECODED.most_bytes else frozenset()

    def may_match(self, where: Where, columns: Sequence[Sequence[str]]) -> Int64s:
        """Return runs of rows among which are all that pass some conditions: starts and stops, ascending.

        Args:
            where: the conditions.
            columns: for each file the columns of which its statistics are to be trusted.
        """
        runs: list[tuple[int, int]] = []
        for group, file in enumerate(self.layout.file_of.tolist()):
            first = int(self.layout.group_starts[group])
            number = group - int(self.layout.first_groups[file])
            for start, stop, bounds in self.open.get(file).bounds(number, columns[file]):
                if stop > start and where.may_pass(bounds):
                    if runs and runs[-1][1] == first + start:
                        runs[-1] = runs[-1][0], first + stop
                    else:
                        runs.append((first + start, first + stop))
        return np.array(runs, dtype=np.int64).reshape(-1, 2)

    def sizes(self, rows: Int64s) -> int:
        """Return about how many bytes of files some rows take."""
        return int(self._row_bytes[self.layout.file_of[self._groups(rows)]].sum())

    def locate(self, rows: Int64s) -> list[Any]:
        """Return where some rows lie: the file, the row in it, and the bytes of its group."""
        located = []
        for row, group in zip(rows.tolist(), self._groups(rows).tolist(), strict=True):
            file = int(self.layout.file_of[group])
            offset, length = self.open.get(file).span(group - int(self.layout.first_groups[file]))
            located.append(Location(self.path(file), row - int(self.files.starts[file]), offset, length))
        return located

    def origins(self, rows: Int64s) -> Origins:
        """Return which rows of which files some rows are."""
        files, numbers = np.unique(self.layout.file_of[self._groups(rows)], return_inverse=True)
        paths = tuple(map(self.path, files.tolist()))
        names = tuple(map(self.files.name, files.tolist()))
        return Origins(paths, names, numbers, rows - self.files.starts[files[numbers]])

    def paths(self, rows: Int64s) -> set[str]:
        """Return the files that some rows lie in."""
        return set(map(self.path, np.unique(self.layout.file_of[self._groups(rows)]).tolist()))

    def path(self, file: int) -> str:
        """Return what a file is called where people read it."""
        return told_path(self.files.path(file))

    def _groups(self, rows: Int64s) -> Int64s:
        found: Int64s = np.searchsorted(self.layout.group_starts, rows, side="right") - 1
        return found

    def _bytes_of(self, block: int) -> int:
        rows = self._edges[block + 1] - self._edges[block]
        return int(UNPACKED * rows * self._row_bytes[self._file_of_block[block]])

    @cached
    def _token(self) -> int:
        """What blocks are kept under, with their numbers: all that decides their bytes and their decoding."""
        columns = [(str(some.wanted), some.there) for some in self.columns]
        files = [self.files.path(file) for file in range(len(self.files))]
        hasher = xxhash.xxh3_128(repr((columns, files)).encode())
        for numbers in (self.files.sizes, self.files.mtimes_ns, self.schema_of):
            hasher.update(numbers.tobytes())
        return hasher.intdigest()

    @cached
    def _row_bytes(self) -> NDArray[np.float64]:
        return table_sizes(self.files) / np.maximum(self.files.records, 1)

    @cached
    def _edges(self) -> list[int]:
        edges: list[int] = self.layout.edges.tolist()
        return edges

    @cached
    def _file_of_block(self) -> list[int]:
        files: list[int] = self.layout.file_of[self.layout.group_of].tolist()
        return files


def _as_range(rows: list[int]) -> Sequence[int]:
    """Return many consecutive rows, ascending ones, as a range, which is cheaper to read."""
    if len(rows) < _FEWEST_IN_RANGE or rows[-1] - rows[0] != len(rows) - 1:
        return rows
    ordered = range(rows[0], rows[-1] + 1)
    return ordered if rows == list(ordered) else rows
