"""What Parquet is compared with: pyarrow's own reading of the same bytes."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.thrift import ALL, sample

from seekable.formats.tables.parquet.parquet_format import ParquetFormat

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.formats.tables.parquet.paged_column import Paged
    from seekable.formats.tables.parquet.parquet_format import ParquetTable


class Bytes:
    """A file in memory, which remembers what was read of it."""

    path = "/data/some.parquet"

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.read: list[tuple[int, int]] = []

    @property
    def size(self) -> int:
        return len(self.data)

    def range(self, start: int, stop: int) -> memoryview:
        assert 0 <= start <= stop <= len(self.data), (start, stop, len(self.data))
        self.read.append((start, stop))
        return memoryview(self.data)[start:stop]

    def count(self) -> int:
        """How many bytes were read, each as often as it was."""
        return sum(stop - start for start, stop in self.read)


class Kept:
    """Page tables, kept."""

    def __init__(self, pages: bytes | None = None) -> None:
        self.pages = pages
        self.saves = 0

    def load(self) -> bytes | None:
        return self.pages

    def save(self, pages: bytes) -> None:
        self.pages = pages
        self.saves += 1


def opened(data: bytes, kept: Kept | None = None) -> ParquetTable:
    return ParquetFormat().open(Bytes(data), kept)


def written(table: pa.Table, **options: Any) -> bytes:
    """Return a file that pyarrow writes."""
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def leaf_of(table: ParquetTable, group: int, name: str) -> Paged:
    """Return the first leaf of a column."""
    leaves = table._pages(group, name)
    assert leaves
    return leaves[0]


def truth(data: bytes) -> pa.Table:
    return pq.read_table(io.BytesIO(data)).replace_schema_metadata(None)


def same(got: Any, want: Any) -> bool:
    """Compare values and types; a dictionary may have its values in another order, and NaN is NaN."""
    if got.type != want.type or len(got) != len(want):
        return False
    if pa.types.is_dictionary(got.type):
        got, want = got.cast(got.type.value_type), want.cast(want.type.value_type)
    if got.equals(want):
        return True
    return repr(got.to_pylist()) == repr(want.to_pylist())


def choices(rows: int, rng: np.random.Generator) -> Iterator[np.ndarray[Any, np.dtype[np.int64]]]:
    """Yield rows of a group to ask for: each is among them, some alone, some with others."""
    if not rows:
        return
    yield np.arange(rows)
    for part in np.array_split(rng.permutation(rows), 2):
        if len(part):
            yield np.sort(part).astype(np.int64)
    for row in {*sample([0, rows - 1, *rng.integers(0, rows, 2).tolist()], of=2)}:
        yield np.array([row], np.int64)


def runs(group: int, rows: int) -> Sequence[tuple[int, int]]:
    found = sorted({(0, rows), (rows // 3, rows // 2), (rows - rows // 4, rows)})
    return found if ALL else [found[(group + rows) % len(found)]]


def check(data: bytes) -> None:
    """Compare all that a table of this file can give with pyarrow's whole one."""
    want = truth(data)
    rng = np.random.default_rng(7)
    survey = ParquetFormat().read_layout(Bytes(data))
    schema = pa.ipc.read_schema(pa.py_buffer(survey.schema))
    assert schema.equals(want.schema)
    assert sum(survey.group_rows) == want.num_rows
    kept = Kept()
    table = opened(data, kept)
    assert table.schema.equals(want.schema)
    begin = 0
    for group, rows in enumerate(survey.group_rows):
        part = want.slice(begin, rows)
        for chosen in choices(rows, rng):
            compare(table.rows(group, chosen, want.column_names), part.take(pa.array(chosen)))
        for start, stop in runs(group, rows):
            compare(table.run(group, start, stop, want.column_names), part.slice(start, stop - start))
        begin += rows
    again = opened(data, kept)
    for group, rows in enumerate(survey.group_rows):
        if rows:
            last = np.array([rows - 1], np.int64)
            before = sum(survey.group_rows[:group])
            compare(again.rows(group, last, want.column_names), want.slice(before + rows - 1, 1))


def compare(got: pa.RecordBatch, want: pa.Table) -> None:
    assert got.num_rows == want.num_rows
    assert got.schema.equals(want.schema)
    for name in want.column_names:
        assert same(pa.chunked_array([got.column(name)]), want.column(name)), name
    got.validate(full=True)
