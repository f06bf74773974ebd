"""Some values of a page, read without the others, are those of pyarrow; pages of common kinds are read so."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.parquet import family
from tests.formats.parquet.truth import leaf_of, opened, same, written
from tests.thrift import sample

from seekable.formats.tables.parquet.point_read import point_reader

if TYPE_CHECKING:
    from seekable.formats.tables.parquet.paged_column import Paged

CODECS = ["none", "snappy", "gzip", "brotli", "zstd", "lz4"]
QUICK = {
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *("float32", "float64", "string", "binary", "large_string", "large_binary", "fixed", "date32", "date64"),
    *("time32_s", "time32_ms", "time64_us", "time64_ns", "timestamp_zone"),
    *(f"timestamp_{unit}" for unit in ("s", "ms", "us", "ns")),
}


def both(paged: Paged, rows: list[int]) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Return rows by the reader of some values where there is one, and by pyarrow alone."""
    assert paged.points is not None
    slow = dataclasses.replace(paged, points=None)
    wanted = np.array(rows, np.int64)
    return pa.chunked_array(paged.rows(wanted)), pa.chunked_array(slow.rows(wanted))


def test_which_types_are_picked() -> None:
    table = opened(written(family.table(family.FLAT | family.NESTED, 10)))
    points = set()
    for name in table.schema.names:
        leaves = table._fields.field(name).leaves
        if len(leaves) == 1 and point_reader(table.schema.field(name).type, leaves[0]) is not None:
            points.add(name)
    assert points == QUICK


@given(st.data())
def test_picked_values_are_those_that_pyarrow_decodes(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(QUICK)))
    rows = data.draw(st.integers(1, 60))
    options: dict[str, Any] = {
        "compression": data.draw(st.sampled_from(CODECS)),
        "use_dictionary": data.draw(st.booleans()),
        "data_page_version": data.draw(st.sampled_from(["1.0", "2.0"])),
        "data_page_size": data.draw(st.sampled_from([1, 100, 10**6])),
        "dictionary_pagesize_limit": data.draw(st.sampled_from([1, 10**6])),
    }
    kind, make = family.FLAT[name]
    modulus = data.draw(st.sampled_from([1, 3, 1000]))
    nulls = data.draw(st.sets(st.integers(0, rows - 1)))
    values = [None if row in nulls else make(row % modulus) for row in range(rows)]
    column = pa.array(values, kind)
    table = pa.table([column], pa.schema([pa.field(name, kind, nullable=bool(nulls))]))
    paged = leaf_of(opened(written(table, write_batch_size=4, **options)), 0, name)
    wanted = sorted(data.draw(st.sets(st.integers(0, rows - 1), min_size=1)))
    select_values, decoded = both(paged, wanted)
    assert same(select_values, decoded)


@pytest.mark.parametrize(("codec", "version"), sample(itertools.product(CODECS, ["1.0", "2.0"]), of=2))
def test_pages_that_are_unpacked_up_to_a_value(codec: str, version: str) -> None:
    """Values that get longer, or shorter, so that a guess of where they lie is wrong."""
    rng = np.random.default_rng(4)
    rows = 1500
    table = pa.table(
        {
            "longer": [rng.bytes(row // 8).hex() for row in range(rows)],
            "shorter": [rng.bytes((rows - row) // 8).hex() for row in range(rows)],
            "few": [rng.bytes((row % 300) * 3).hex() for row in range(rows)],
            "number": pa.array(rng.integers(0, 2**60, rows), mask=rng.random(rows) < 0.5),
        }
    )
    for dictionary in (["few"], []):
        data = written(table, compression=codec, data_page_version=version, use_dictionary=dictionary)
        opening = opened(data)
        for name in table.column_names:
            paged = leaf_of(opening, 0, name)
            for some in ([0], [1], [700], [1499], [3, 4, 900], [*range(0, 1500, 50)]):
                select_values, decoded = both(paged, some)
                assert same(select_values, decoded)
                assert same(select_values, table.column(name).take(pa.array(some)))
