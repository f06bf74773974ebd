"""Footers that other readers tolerate: counts left at 0, dictionaries at odd offsets, sizes too small."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.formats.parquet import footers
from tests.formats.parquet.truth import Bytes, check, leaf_of, opened, written

from seekable.errors import UnsupportedFormat
from seekable.formats.tables.parquet.pages import PageSpan
from seekable.formats.tables.parquet.parquet_format import ParquetFormat

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.formats.parquet.footers import Struct

WORDS = pa.table({name: [f"{name} {row % 7}" for row in range(3000)] for name in ("a", "b")})


def words(*, index: bool = False) -> bytes:
    return written(WORDS, data_page_size=100, row_group_size=2000, compression="none", write_page_index=index)


def of_meta(change: Callable[[Struct], Any]) -> Callable[[Struct], None]:
    def changed(footer: Struct) -> None:
        for chunk in footers.chunks(footer):
            change(chunk[3][1])

    return changed


def at_its_dictionary(meta: Struct) -> None:
    """The first page of the chunk is the dictionary, and only that is said."""
    meta[9] = meta.pop(11)


def at_its_dictionary_and_zero(meta: Struct) -> None:
    meta[9], meta[11] = meta[11], (footers.I64, 0)


def both_the_same(meta: Struct) -> None:
    meta[9] = meta[11]


def swapped(meta: Struct) -> None:
    meta[9], meta[11] = meta[11], meta[9]


def far_away(meta: Struct) -> None:
    meta[9], meta[11] = meta[11], (footers.I64, 1 << 40)


@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize(
    "change", [at_its_dictionary, at_its_dictionary_and_zero, both_the_same, swapped, far_away]
)
def test_a_dictionary_that_the_footer_does_not_name_well(
    change: Callable[[Struct], None], *, index: bool
) -> None:
    check(footers.patched(words(index=index), of_meta(change)))


@pytest.mark.parametrize("index", [False, True])
def test_a_dictionary_behind_pages_that_need_none(*, index: bool) -> None:
    """A writer that turned to a dictionary late: pyarrow reads such files."""
    table = pa.table({"a": [f"word {row}" for row in range(4000)]})
    data = written(table, data_page_size=500, dictionary_pagesize_limit=2000, compression="none")
    paged = leaf_of(opened(data), 0, "a")
    pages, chunk = paged.table, paged.chunk
    start, size = pages.dictionary
    headers = [paged._read(PageSpan(number, number))[0][0].header for number in range(len(pages.size))]
    plain = [number for number, header in enumerate(headers) if not header.needs_dictionary]
    coded = [number for number in range(len(pages.size)) if number not in plain]
    assert plain
    assert coded
    body, places, rows = data[: chunk.start], [], 0
    for number in (*plain, None, *coded):
        begin, length = (
            (start, size) if number is None else (int(pages.offset[number]), int(pages.size[number]))
        )
        if number is not None:
            places.append({
                1: (footers.I64, len(body)), 2: (footers.I32, length), 3: (footers.I64, rows)
            })  # fmt: skip
            rows += int(pages.first[number + 1] - pages.first[number])
        body += data[begin : begin + length]
    assert len(body) == chunk.stop
    location = footers.write({1: (footers.LIST, (footers.STRUCT, places))})

    def change(footer: Struct) -> None:
        (each,) = footers.chunks(footer)
        each[3][1][9] = (footers.I64, chunk.start)
        each[3][1][11] = (footers.I64, int(sum(pages.size[plain])) + chunk.start)
        if index:
            each[4], each[5] = (footers.I64, len(body)), (footers.I32, len(location))

    moved = footers.patched(data, change, body=body + location if index else body)
    assert pq.read_table(io.BytesIO(moved)).num_rows == 4000
    check(moved)


@pytest.mark.parametrize("index", [False, True])
def test_a_row_count_of_0_while_groups_have_rows(*, index: bool) -> None:
    data = footers.patched(words(index=index), lambda footer: footer.update({3: (footers.I64, 0)}))
    assert pq.read_table(io.BytesIO(data)).equals(WORDS)
    check(data)


@pytest.mark.parametrize("count", [-1, 7])
def test_another_row_count_than_that_of_the_groups_is_refused(count: int) -> None:
    data = footers.patched(words(), lambda footer: footer.update({3: (footers.I64, count)}))
    with pytest.raises(UnsupportedFormat, match=f"says {count} rows, and its groups have 3000"):
        ParquetFormat().read_layout(Bytes(data))


@pytest.mark.parametrize("writer", [b"\xffcpp version 9", b""])
def test_a_writer_whose_name_is_no_text(writer: bytes) -> None:
    data = footers.patched(words(), lambda footer: footer.update({6: (footers.BINARY, writer)}))
    check(data)


@pytest.mark.parametrize(
    ("writer", "whole"),
    [
        (b"parquet-mr version 1.2.8", False),
        (b"parquet-mr version 1.2", False),
        (b"parquet-mr", False),
        (b"parquet-mr version 1.2.9", True),
    ],
)
def test_sizes_that_lack_the_header_of_the_dictionary(writer: bytes, *, whole: bool) -> None:
    """What parquet-mr wrote before 1.2.9, or without a version; else it is damage, as for pyarrow."""

    def change(footer: Struct) -> None:
        of_meta(lambda meta: meta.update({7: (footers.I64, meta[7][1] - 15)}))(footer)
        footer[6] = (footers.BINARY, writer)

    data = footers.patched(words(), change)
    if whole:
        with pytest.raises(OSError, match="Unexpected end of stream"):
            pq.read_table(io.BytesIO(data), use_threads=False)
    else:
        check(data)
