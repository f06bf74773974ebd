"""Files of other writers: polars, duckdb and fastparquet."""

from __future__ import annotations

import io
import itertools
from typing import TYPE_CHECKING, Any

import pytest
from tests.formats.parquet import family
from tests.formats.parquet.truth import check
from tests.thrift import sample

if TYPE_CHECKING:
    from pathlib import Path

NOT_POLARS = {
    "float16",
    "decimal_wide",
    "uuid",
    "date64",
    "time32_s",
    "time32_ms",
    "duration_s",
    "map",
    "timestamp_s",
}
CODECS = ("uncompressed", "snappy", "gzip", "zstd", "lz4")


@pytest.mark.parametrize(("codec", "page"), sample(itertools.product([*CODECS, "brotli"], [50, 4000]), of=4))
def test_polars(codec: Any, page: int) -> None:
    polars = pytest.importorskip("polars")
    kinds = {name: kind for name, kind in (family.FLAT | family.NESTED).items() if name not in NOT_POLARS}
    frame = polars.from_arrow(family.table(kinds, 100))
    out = io.BytesIO()
    frame.write_parquet(out, compression=codec, row_group_size=40, data_page_size=page)
    check(out.getvalue())


DUCK = """
select i::bigint as big, i::tinyint as tiny, (i * 1.5)::double as real, i % 3 = 0 as yes,
  case when i % 5 = 0 then null else 'row ' || i end as text, 'kind ' || (i % 7) as kind,
  encode('b' || i) as blob, i::decimal(9, 2) as small, i::decimal(30, 2) as wide, i::hugeint as huge,
  date '2000-01-01' + i::integer as day, timestamp '2000-01-01' + to_seconds(i) as moment,
  timestamptz '2000-01-01 00:00:00+00' + to_seconds(i) as zoned, time '00:00:01' + to_seconds(i) as hour,
  uuid() as id, [i, null, i + 1] as many, [x for x in range(i % 9)] as some, [[i], []] as nest,
  {'x': i, 'y': 'a'} as two, {'x': i} as one, map {'k': i} as mapped
from range(100) t(i)
"""


@pytest.mark.parametrize(
    ("codec", "version"), sample(itertools.product([*CODECS, "brotli"], ["V1", "V2"]), of=2)
)
def test_duckdb(codec: str, version: str, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "duck.parquet"
    options = f"format parquet, compression '{codec}', parquet_version '{version}', row_group_size 40"
    duckdb.sql(f"set threads = 1; set preserve_insertion_order = true; copy ({DUCK}) to '{path}' ({options})")
    check(path.read_bytes())


@pytest.mark.parametrize("codec", ["UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD"])
def test_fastparquet(codec: str, tmp_path: Path) -> None:
    fastparquet = pytest.importorskip("fastparquet")
    pandas = pytest.importorskip("pandas")
    rows = range(150)
    frame = pandas.DataFrame(
        {
            "id": list(rows),
            "real": [row / 7 for row in rows],
            "yes": [row % 3 == 0 for row in rows],
            "text": pandas.Series([None if row % 5 == 0 else f"row {row}" for row in rows], dtype=object),
            "blob": pandas.Series([bytes([row]) for row in rows], dtype=object),
            "kind": pandas.Categorical([f"kind {row % 4}" for row in rows]),
            "moment": pandas.date_range("2000-01-01", periods=150, freq="h").as_unit("ns"),
            "perhaps": pandas.array([None if row % 4 == 0 else row for row in rows], dtype="Int64"),
        }
    )
    path = tmp_path / "fast.parquet"
    encodings = {"text": "utf8", "blob": "bytes"}
    fastparquet.write(
        str(path),
        frame,
        compression=codec,
        row_group_offsets=60,
        object_encoding=encodings,
        write_index=False,
    )
    check(path.read_bytes())
