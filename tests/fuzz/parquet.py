"""Parquet files that are damaged in the places that are parsed here: footers, page headers, page indexes."""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.formats.parquet import family
from tests.formats.parquet.truth import Bytes, Kept, same, written
from tests.fuzz.corpus import mutated

import seekable as sk
from seekable.formats.tables.parquet.parquet_format import ParquetFormat, page_tables

if TYPE_CHECKING:
    import random
    from pathlib import Path

KINDS = family.FLAT | family.NESTED


def parquet(_: Path, rng: random.Random) -> None:
    """Compare rows of a damaged file with what pyarrow reads of it, where it reads it."""
    data = made(rng)
    kept = Kept(page_tables(Bytes(data)) if rng.random() < 0.3 else None)
    data = damaged(rng, data)
    if kept.pages is not None and rng.random() < 0.5:
        kept.pages = mutated(rng, kept.pages)
    try:
        survey = ParquetFormat().read_layout(Bytes(data))
    except sk.errors.UnsupportedFormat:
        return
    table = ParquetFormat().open(Bytes(data), kept)
    for group, rows in enumerate(survey.group_rows):
        for name in table.schema.names:
            chosen = some(rng, rows)
            with contextlib.suppress(sk.CorruptRecord):
                got = table.rows(group, chosen, [name])
                compare(data, got, group, rows, chosen)
            start = rng.randrange(min(rows, 1000) + 1)
            stop = rng.randrange(start, min(rows, 1000) + 1)
            with contextlib.suppress(sk.CorruptRecord):
                got = table.run(group, start, stop, [name])
                compare(data, got, group, rows, np.arange(start, stop))


def made(rng: random.Random) -> bytes:
    """Return a file of some columns."""
    names = rng.sample(sorted(KINDS), rng.randrange(1, 4))
    rows = rng.choice([0, 1, 30, 100])
    table = family.table({name: KINDS[name] for name in names}, rows, rng.choice([0, 2, 7]))
    return written(
        table,
        compression=rng.choice(["none", "snappy", "gzip", "brotli", "zstd", "lz4"]),
        data_page_version=rng.choice(["1.0", "2.0"]),
        use_dictionary=rng.random() < 0.5,
        write_page_index=rng.random() < 0.5,
        row_group_size=rng.choice([20, 70, 1000]),
        data_page_size=rng.choice([50, 300, 10000]),
        write_batch_size=8,
    )


def damaged(rng: random.Random, data: bytes) -> bytes:
    """Damage the footer, whose length stays right, what stands before it, or the pages."""
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    place = rng.randrange(4)
    if place == 0:
        return mutated(rng, data)
    if place == 1:
        footer = mutated(rng, data[start:-8])
        return data[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    changed = bytearray(data)
    low, high = (4, min(60, start)) if place == 2 else (max(4, start - 200), len(data) - 8)
    for _ in range(rng.randrange(1, 4)):
        changed[rng.randrange(low, max(high, low + 1))] = rng.randrange(256)
    return bytes(changed)


def some(rng: random.Random, rows: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return some rows of a group."""
    few = {rng.randrange(rows) for _ in range(rng.choice([1, 2, 40]))} if rows else set()
    return np.array(sorted(few), np.int64)


def compare(data: bytes, got: pa.RecordBatch, group: int, rows: int, chosen: Any) -> None:
    """Compare rows with pyarrow's, if it reads the column."""
    name = got.schema.names[0]
    assert got.num_rows == len(chosen)
    try:
        want = pq.ParquetFile(io.BytesIO(data)).read_row_group(group, columns=[name]).column(name)
    except (pa.ArrowException, OSError, ValueError):
        return
    if len(want) == rows:
        assert same(pa.chunked_array([got.column(0)]), want.take(pa.array(chosen))), (name, group, chosen)
