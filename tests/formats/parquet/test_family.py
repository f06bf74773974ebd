"""Whatever is written comes back as pyarrow reads it, every row of every file."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.formats.parquet import family
from tests.formats.parquet.truth import check, opened, truth, written
from tests.thrift import sample

if TYPE_CHECKING:
    from pathlib import Path

CODECS = ("none", "snappy", "gzip", "brotli", "zstd", "lz4")
VERSIONS = ("1.0", "2.0")
TINY: dict[str, Any] = {"data_page_size": 200, "write_batch_size": 16}
ONES = family.FLAT | {name: kind for name, kind in family.NESTED.items() if name != "map"}


@pytest.mark.parametrize(("codec", "version"), sample(itertools.product(CODECS, VERSIONS), of=2))
def test_every_type_by_every_codec_and_page_version(codec: str, version: str) -> None:
    table = family.table(family.FLAT | family.NESTED)
    check(written(table, compression=codec, data_page_version=version, **TINY))


@pytest.mark.parametrize(
    ("version", "index", "dictionary"),
    sample(itertools.product(VERSIONS, [False, True], [False, True]), of=2),
)
def test_pages_with_and_without_an_index_and_a_dictionary(
    version: str, *, index: bool, dictionary: bool
) -> None:
    table = family.table(family.FLAT | family.NESTED)
    options = {"write_page_index": index, "use_dictionary": dictionary, "data_page_version": version}
    check(written(table, row_group_size=60, **TINY, **options))


@pytest.mark.parametrize(("nulls", "version"), sample(itertools.product([0, 1, 2, 100], VERSIONS), of=2))
def test_nulls_nowhere_here_and_there_and_everywhere(nulls: int, version: str) -> None:
    check(written(family.table(family.FLAT | family.NESTED, 120, nulls), data_page_version=version, **TINY))


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_columns_that_may_have_no_nulls(version: str) -> None:
    table = family.table(family.FLAT | family.NESTED, 120, needed=True)
    check(written(table, data_page_version=version, **TINY))


@pytest.mark.parametrize("limit", [1, 100, 2000])
def test_a_dictionary_that_is_given_up_in_the_middle_of_a_chunk(limit: int) -> None:
    table = family.table(family.FLAT | family.NESTED)
    check(written(table, dictionary_pagesize_limit=limit, **TINY))


@pytest.mark.parametrize("size", [1, 2, 7, 399, 400, 1000])
def test_groups_of_any_size(size: int) -> None:
    rows = min(400, size * 12)
    kinds = {name: ONES[name] for name in ("int64", "string", "bool", "list", "struct_two")}
    check(written(family.table(kinds, rows), row_group_size=size, **TINY))


@pytest.mark.parametrize("rows", [0, 1])
def test_no_row_and_one(rows: int) -> None:
    check(written(family.table(family.FLAT | family.NESTED, rows)))


def test_no_group_and_no_column(tmp_path: Path) -> None:
    path = str(tmp_path / "none.parquet")
    with pq.ParquetWriter(path, pa.schema([("a", pa.int64())])):
        pass
    check((tmp_path / "none.parquet").read_bytes())
    check(written(pa.table({})))


ENCODINGS = {
    "DELTA_BINARY_PACKED": ("int32", "int64", "uint32", "timestamp_us", "time64_us", "list"),
    "DELTA_LENGTH_BYTE_ARRAY": ("string", "binary", "large_string", "list_string"),
    "DELTA_BYTE_ARRAY": ("string", "binary", "fixed", "list_list"),
    "BYTE_STREAM_SPLIT": ("float32", "float64", "int32", "int64", "fixed", "float16"),
    "PLAIN": tuple(name for name in ONES if name not in {"list_struct", "struct_two", "null"}),
}


@pytest.mark.parametrize(
    ("encoding", "version", "codec"), sample(itertools.product(ENCODINGS, VERSIONS, ["none", "zstd"]), of=4)
)
def test_every_encoding(encoding: str, version: str, codec: str) -> None:
    table = family.table({name: ONES[name] for name in ENCODINGS[encoding]})
    leaves = dict.fromkeys(_leaves(table), encoding)
    data = written(
        table,
        use_dictionary=False,
        column_encoding=leaves,
        data_page_version=version,
        compression=codec,
        **TINY,
    )
    check(data)


def _leaves(table: pa.Table) -> list[str]:
    """Return the paths of the leaves, as a file has them."""
    metadata = pq.read_metadata(pa.BufferReader(written(table.slice(0, 1))))
    return [metadata.schema.column(leaf).path for leaf in range(metadata.num_columns)]


def test_types_that_pyarrow_cannot_take_rows_of() -> None:
    texts = [None if row % 7 == 3 else f"row {row} is long enough to be viewed" for row in range(200)]
    table = pa.table({"view": pa.array(texts, pa.string_view()), "other": range(200)})
    data = written(table, **TINY)
    opening = opened(data)
    want = truth(data).to_pylist()
    for rows in ([0], [199], [3, 4, 5, 90, 92], list(range(0, 200, 3)), list(range(200))):
        got = opening.rows(0, np.array(rows), ["view", "other"])
        assert got.to_pylist() == [want[row] for row in rows]
    assert opening.run(0, 50, 120, ["view"]).to_pylist() == [{"view": text} for text in texts[50:120]]


def test_booleans_as_runs() -> None:
    table = family.table({"bool": family.FLAT["bool"]})
    options: dict[str, Any] = {"use_dictionary": False, "column_encoding": {"bool": "RLE"}}
    check(written(table, data_page_version="2.0", **options, **TINY))


@pytest.mark.parametrize(
    "options",
    [
        {"use_deprecated_int96_timestamps": True},
        {"store_decimal_as_integer": True},
        {"store_schema": False},
        {"version": "1.0"},
        {"coerce_timestamps": "ms", "allow_truncated_timestamps": True},
        {"use_compliant_nested_type": False},
        {"write_statistics": False},
        {"write_page_checksum": True},
    ],
    ids=lambda options: next(iter(options)),
)
def test_other_ways_to_write(options: dict[str, Any]) -> None:
    kinds = family.FLAT | family.NESTED
    if "version" in options or "coerce_timestamps" in options:
        kinds = {name: kind for name, kind in kinds.items() if name not in {"timestamp_ns", "time64_ns"}}
    check(written(family.table(kinds), **options, **TINY))


def test_headers_longer_than_any_window() -> None:
    texts = [("ab"[row % 2] + str(row)) * 4000 for row in range(60)]
    check(written(pa.table({"text": texts}), data_page_size=1, write_batch_size=1, use_dictionary=False))


@pytest.mark.parametrize(("codec", "version"), sample(itertools.product(CODECS, VERSIONS), of=4))
def test_pages_of_many_values(codec: str, version: str) -> None:
    rng = np.random.default_rng(1)
    rows = 20_000
    sometimes = rng.random(rows) < 0.3
    table = pa.table(
        {
            "runs": np.repeat(rng.integers(0, 9, rows // 100), 100),
            "few": rng.integers(0, 1000, rows),
            "many": rng.integers(0, 2**60, rows),
            "score": pa.array(rng.random(rows), mask=sometimes),
            "text": pa.array([f"https://example.org/{row % 977}" for row in range(rows)], mask=sometimes),
            "long": [f"{row} " * (row % 40) for row in range(rows)],
        }
    )
    check(written(table, compression=codec, data_page_version=version, row_group_size=15_000))


@pytest.mark.parametrize("name", ["a.b", "", "naïve", "a b\n", "list", "schema"])
def test_odd_names(name: str) -> None:
    table = pa.table({name: [1, 2, 3], "a": pa.array([{"b": 1}] * 3), "z": [[1], None, []]})
    check(written(table))
