"""Page tables: made, kept, and made anew where what was kept is of no use."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.parquet import family
from tests.formats.parquet.truth import Bytes, Kept, opened, same, truth, written

from seekable.formats.tables.parquet.encodings import constant, rle_bitpacked, select_values
from seekable.formats.tables.parquet.pages import PageTable, as_bytes, from_bytes
from seekable.formats.tables.parquet.parquet_format import ParquetFormat, page_tables
from seekable.formats.tables.parquet.thrift import ThriftError, unsigned

KINDS = {name: family.FLAT[name] for name in ("int64", "string")} | {
    name: family.NESTED[name] for name in ("list", "list_long", "struct_two")
}
TINY: dict[str, Any] = {"data_page_size": 100, "write_batch_size": 8}


@pytest.fixture(scope="module")
def data() -> bytes:
    return written(family.table(KINDS, 200), row_group_size=70, **TINY)


def test_what_was_kept_is_not_made_again(data: bytes) -> None:
    kept = Kept(page_tables(Bytes(data)))
    source = Bytes(data)
    table = ParquetFormat().open(source, kept)
    source.read.clear()
    table.rows(1, np.array([50]), ["int64"])
    assert len(source.read) <= 2  # the page, and its dictionary
    assert kept.saves == 0


def test_all_tables_are_kept_in_the_end_and_written_a_few_times(data: bytes) -> None:
    kept = Kept()
    table = opened(data, kept)
    for group in range(3):
        for name in KINDS:
            table.rows(group, np.array([0]), [name])
    assert kept.saves <= 6
    full = page_tables(Bytes(data))
    again = Kept(full)
    assert page_tables(Bytes(data), again) == full


def test_damaged_and_foreign_tables_are_made_anew(data: bytes) -> None:
    other = written(family.table(KINDS, 100), row_group_size=70, **TINY)
    full = page_tables(Bytes(data))
    want = truth(data)
    useless = [b"", b"SKPAGES1", full[:-1], full + b"x", bytes(len(full)), page_tables(Bytes(other))]
    rng = np.random.default_rng(2)
    for _ in range(60):
        changed = bytearray(full)
        changed[rng.integers(0, len(full))] ^= 1 << int(rng.integers(0, 8))
        useless.append(bytes(changed))
    for pages in useless:
        table = opened(data, Kept(pages))
        got = table.rows(1, np.array([3, 69]), ["string", "list"])
        for name in ("string", "list"):
            wanted = want.column(name).slice(70, 70).take(pa.array([3, 69]))
            assert same(pa.chunked_array([got.column(name)]), wanted)


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.lists(st.integers(0, 2**50), min_size=1, max_size=5), st.booleans()),
        max_size=6,
    )
)
def test_tables_come_back_as_they_were_kept(drawn: list[tuple[int, list[int], bool]]) -> None:
    tables = {}
    for number, (gap, numbers, torn) in enumerate(drawn):
        array = np.array(numbers, np.int64)
        tears = np.array([value % 2 == 1 for value in numbers]) if torn else None
        tables[number * 7 + gap] = PageTable(np.append(array, 9), array, array + 1, tears, (gap, number))
    back = from_bytes(b"footer", as_bytes(b"footer", tables))
    assert back is not None
    assert sorted(back) == sorted(tables)
    for chunk, table in tables.items():
        assert (back[chunk].first == table.first).all()
        assert (back[chunk].offset == table.offset).all()
        assert (back[chunk].size == table.size).all()
        assert back[chunk].dictionary == table.dictionary
        assert (back[chunk].mid_row is None) == (table.mid_row is None)
        assert np.array_equal(np.array(back[chunk].mid_row), np.array(table.mid_row))
    assert from_bytes(b"another", as_bytes(b"footer", tables)) is None


@given(st.data())
def test_pages_of_rows_hold_these_rows_and_no_page_more(data: st.DataObject) -> None:
    """Lay rows of some values into pages anyhow, and compare with a look at each value."""
    lengths = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=12))
    row_of = [row for row, length in enumerate(lengths) for _ in range(length)]
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(row_of) - 1)), max_size=8)) - {len(row_of)})
    bounds = list(zip([0, *cuts], [*cuts, len(row_of)], strict=True))
    starts = [sum(1 for at in range(low) if at == 0 or row_of[at - 1] != row_of[at]) for low, _ in bounds]
    torn = [low > 0 and row_of[low - 1] == row_of[low] for low, _ in bounds]
    table = PageTable(
        np.array([*starts, len(lengths)], np.int64),
        np.arange(len(bounds)),
        np.ones(len(bounds), np.int64),
        np.array(torn) if any(torn) else None,
        (0, 0),
    )
    rows = sorted(data.draw(st.sets(st.integers(0, len(lengths) - 1), min_size=1)))
    wanted = {page for page, (low, high) in enumerate(bounds) if set(row_of[low:high]) & set(rows)}
    spans = table.spans(np.array(rows))
    got = [page for span in spans for page in range(span.first, span.last + 1)]
    assert got == sorted(set(got))
    assert set(got) == wanted


@st.composite
def hybrids(draw: st.DrawFn) -> tuple[bytes, int, list[int]]:
    """Draw values and their encoding, by runs and groups as they come."""
    width = draw(st.integers(1, 32))
    data, values = b"", []
    for _ in range(draw(st.integers(1, 5))):
        if draw(st.booleans()):
            value, times = draw(st.integers(0, 2**width - 1)), draw(st.integers(1, 40))
            data += unsigned(times << 1) + value.to_bytes((width + 7) // 8, "little")
            values += [value] * times
        else:
            some = draw(st.lists(st.integers(0, 2**width - 1), min_size=8, max_size=8))
            packed = sum(value << (place * width) for place, value in enumerate(some))
            data += unsigned(1 << 1 | 1) + packed.to_bytes(width, "little")
            values += some
    return data, width, values


@given(hybrids(), st.data())
def test_hybrids_are_decoded_whole_and_in_places(
    drawn: tuple[bytes, int, list[int]], data: st.DataObject
) -> None:
    encoded, width, values = drawn
    assert rle_bitpacked(memoryview(encoded), width, len(values)).tolist() == values
    places = sorted(data.draw(st.sets(st.integers(0, len(values) - 1), min_size=1)))
    found = select_values(memoryview(encoded), width, np.array(places))
    assert found is not None
    assert found.tolist() == [values[place] for place in places]
    count = data.draw(st.integers(1, len(values)))
    assert constant(memoryview(encoded), width, count) in (None, values[0])
    if constant(memoryview(encoded), width, count) is not None:
        assert set(values[:count]) == {values[0]}


@given(hybrids(), st.integers(1, 100))
def test_hybrids_that_are_cut_off_are_refused(drawn: tuple[bytes, int, list[int]], more: int) -> None:
    encoded, width, values = drawn
    for count in (len(values) + more, 2**40):
        with pytest.raises(ThriftError):
            rle_bitpacked(memoryview(encoded), width, count)
    with pytest.raises(ThriftError):
        select_values(memoryview(encoded), width, np.array([len(values) + more]))


def test_threads_share_an_open_file(data: bytes) -> None:
    want = truth(data)
    table = opened(data, Kept())
    wrong: list[Any] = []

    def read(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(25):
            group, row = int(rng.integers(0, 2)), int(rng.integers(0, 70))
            names = list(rng.permutation(list(KINDS))[:3])
            got = table.rows(group, np.array([row]), names)
            wanted = want.slice(group * 70 + row, 1)
            wrong.extend(
                name for name in names if not same(pa.chunked_array([got.column(name)]), wanted.column(name))
            )

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize(("leaves", "by_pages"), [(32, True), (33, False)])
def test_a_column_of_many_leaves_is_decoded_with_its_group(leaves: int, *, by_pages: bool) -> None:
    """By pages each leaf takes a footer that names all of them: thousands of leaves took minutes."""
    row = {f"f{number}": number for number in range(leaves)}
    table = opened(written(pa.table({"s": [row] * 9})))
    assert bool(table._pages(0, "s")) == by_pages
    assert table.rows(0, np.array([7], np.int64), ["s"]).to_pylist() == [{"s": row}]
