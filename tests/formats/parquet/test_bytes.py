"""How much of a file is read: of one row the pages that hold it, and nothing of other columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.formats.parquet.truth import Bytes, Kept, leaf_of, opened, written

from seekable.formats.tables.parquet.parquet_format import ParquetFormat, page_tables

if TYPE_CHECKING:
    from seekable.formats.tables.parquet.parquet_format import ParquetTable

ROWS = 20_000


def _file(**options: Any) -> bytes:
    rng = np.random.default_rng(3)
    table = pa.table(
        {
            "id": rng.permutation(ROWS),
            "text": [rng.bytes(40).hex() for _ in range(ROWS)],
            "kind": [f"kind {row % 7}" for row in range(ROWS)],
            "list": [[row] * (row % 5) for row in range(ROWS)],
            "turns": [[{"role": "user", "content": str(row)}] * (row % 5) for row in range(ROWS)],
        }
    )
    return written(table, row_group_size=ROWS // 2, data_page_size=10_000, write_batch_size=64, **options)


def _counted(data: bytes) -> tuple[Bytes, ParquetTable]:
    """Return a file whose page tables are known, and which has read nothing since it was opened."""
    kept = Kept(page_tables(Bytes(data)))
    source = Bytes(data)
    table = ParquetFormat().open(source, kept)
    table.rows(0, np.array([0]), table.schema.names)
    source.read.clear()
    return source, table


@pytest.mark.parametrize("options", [{}, {"write_page_index": True}, {"data_page_version": "2.0"}], ids=str)
def test_one_row_reads_the_pages_that_hold_it(options: dict[str, Any]) -> None:
    data = _file(dictionary_pagesize_limit=20_000, **options)
    source, table = _counted(data)
    for group, row in [(0, 0), (1, 5000), (1, ROWS // 2 - 1)]:
        for name in table.schema.names:
            source.read.clear()
            table.rows(group, np.array([row]), [name])
            needed = 0
            for leaf in table._pages(group, name):
                pages = leaf.table
                spans = pages.spans(np.array([row]))
                needed += sum(int(pages.size[span.first : span.last + 1].sum()) for span in spans)
                if pages.dictionary in [(start, stop - start) for start, stop in source.read]:
                    needed += pages.dictionary[1]
            assert 0 < source.count() == needed
            assert source.count() < len(data) / 10


def test_a_dictionary_is_left_alone_by_pages_that_do_without() -> None:
    data = _file(dictionary_pagesize_limit=20_000)
    source, table = _counted(data)
    paged = leaf_of(table, 0, "text")
    assert paged.table.dictionary[1] > 10_000
    table.rows(0, np.array([ROWS // 2 - 1]), ["text"])
    assert source.count() < 15_000
    source.read.clear()
    table.rows(0, np.array([0]), ["text"])
    assert source.count() > paged.table.dictionary[1]


def test_nothing_of_other_columns_is_read() -> None:
    data = _file()
    source, table = _counted(data)
    metadata = pq.read_metadata(pa.BufferReader(data))
    table.rows(1, np.array([5, 9000]), ["text"])
    table.run(1, 100, 9000, ["text"])
    table.run(1, 100, 200, ["text"])
    column = metadata.row_group(1).column(1)
    start = column.dictionary_page_offset or column.data_page_offset
    stop = start + column.total_compressed_size
    assert source.read
    assert all(start <= first <= last <= stop for first, last in source.read)
    source.read.clear()
    assert table.rows(1, np.array([5, 9000]), []).num_rows == 2
    assert table.run(1, 10, 20, []).num_rows == 10
    assert source.read == []


def test_pages_next_to_each_other_are_one_read_and_none_is_read_twice() -> None:
    source, table = _counted(_file(use_dictionary=False))
    table.rows(0, np.arange(3000, 6000), ["text"])
    assert len(source.read) == 1
    source.read.clear()
    table.rows(0, np.array([10, 11, 12, 9000, 9001]), ["text"])
    assert len(source.read) == 2


def test_a_part_of_a_group_reads_the_pages_of_the_part() -> None:
    data = _file(use_dictionary=False)
    source, table = _counted(data)
    table.run(0, 4000, 4500, ["text"])
    whole = pq.read_metadata(pa.BufferReader(data)).row_group(0).column(1).total_compressed_size
    assert source.count() < whole / 8


def test_an_index_is_read_in_place_of_headers() -> None:
    data = _file(write_page_index=True, use_dictionary=False)
    source = Bytes(data)
    table = ParquetFormat().open(source, None)
    source.read.clear()
    table.rows(0, np.array([7000]), ["id"])
    assert len(source.read) == 2


def test_a_survey_reads_the_end_of_the_file_alone() -> None:
    data = _file()
    source = Bytes(data)
    ParquetFormat().read_layout(source)
    assert source.read == [(max(0, len(data) - (64 << 10)), len(data))]


def test_a_long_footer_is_read_whole() -> None:
    table = pa.table({f"column {number}": [number] for number in range(1500)})
    data = written(table)
    assert int.from_bytes(data[-8:-4], "little") > 64 << 10
    assert opened(data).rows(0, np.array([0]), ["column 1400"]).to_pylist() == [{"column 1400": 1400}]
