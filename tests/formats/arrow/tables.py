"""Record batches of every kind of column, and files of them in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from seekable.formats.tables.arrow.arrow_format import ArrowFormat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.formats.tables.arrow.arrow_format import ArrowTable

Kind = Literal["file", "stream"]
Codec = Literal["lz4", "zstd"] | None

WORDS = [pa.array(["a", "b", None]), pa.array(["cc", "dd", "ee", "ff"])]


class Held:
    """The bytes of a file in memory, and which of them were asked for."""

    def __init__(self, data: bytes, path: str = "/data/a.arrow") -> None:
        self.path, self.size, self.asked = path, len(data), 0
        self._view = memoryview(data)

    def range(self, start: int, stop: int) -> memoryview:
        assert 0 <= start <= stop <= self.size
        self.asked += stop - start
        return self._view[start:stop]


class Pages:
    """Keeps what it is given."""

    def __init__(self, kept: bytes | None = None) -> None:
        self.kept = kept

    def load(self) -> bytes | None:
        return self.kept

    def save(self, pages: bytes) -> None:
        self.kept = pages


def columns(rows: int, seed: int) -> dict[str, pa.Array[Any]]:
    """Return a column of each type, with nulls where it can have them."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, 100, rows)
    some = rng.random(rows) < 0.2
    texts = [None if null else "é" * int(n % 5) for n, null in zip(numbers, some, strict=True)]
    lists = [None if null else list(range(int(n % 4))) for n, null in zip(numbers, some, strict=True)]
    halves = [rows // 2, rows] if rows > 1 else [rows] if rows else []
    which = pa.array((numbers % 2).astype(np.int8))
    pair = [pa.array(numbers), pa.array(list(map(str, numbers)), pa.string())]
    return {
        "int": pa.array(numbers, mask=some),
        "float": pa.array(rng.random(rows), pa.float32()),
        "bool": pa.array(numbers % 2 == 0, mask=some),
        "none": pa.nulls(rows),
        "text": pa.array(texts, pa.string()),
        "large": pa.array(texts, pa.large_string()),
        "view": pa.array([t and t * 9 for t in texts], pa.string_view()),
        "bytes": pa.array([t and t.encode() for t in texts], pa.binary()),
        "fixed": pa.array([b"abc"] * rows, pa.binary(3)),
        "decimal": pa.array([int(n) for n in numbers], pa.decimal128(9, 2)),
        "time": pa.array(numbers, pa.timestamp("us", tz="Europe/Berlin")),
        "list": pa.array(lists, pa.list_(pa.int16())),
        "lists": pa.array([[x, None] for x in lists], pa.list_(pa.large_list(pa.int16()))),
        "texts": pa.array([[t, "x"] for t in texts], pa.large_list(pa.string())),
        "listview": pa.array(lists, pa.list_view(pa.int16())),
        "pair": pa.array([[int(n), 1] for n in numbers], pa.list_(pa.int8(), 2)),
        "struct": pa.array(
            [{"a": t, "b": [{"c": x}]} for t, x in zip(texts, lists, strict=True)],
            pa.struct({"a": pa.string(), "b": pa.list_(pa.struct({"c": pa.list_(pa.int8())}))}),
        ),
        "map": pa.array([[("k", t)] for t in texts], pa.map_(pa.string(), pa.string())),
        "word": pa.DictionaryArray.from_arrays(pa.array(numbers % 3, pa.int8(), mask=some), WORDS[seed % 2]),
        "words": pa.ListArray.from_arrays(
            pa.array(range(rows + 1), pa.int32()),
            pa.DictionaryArray.from_arrays(pa.array(numbers % 3, pa.int16()), WORDS[seed % 2]),
        ),
        "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"u" * 16] * rows, pa.binary(16))),
        "json": pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 1}'] * rows, pa.string())),
        "union": pa.UnionArray.from_sparse(which, pair),
        "dense": pa.UnionArray.from_dense(which, pa.array(range(rows), pa.int32()), pair),
        "runs": pa.RunEndEncodedArray.from_arrays(
            pa.array(halves, pa.int32()), pa.array(["p", "q"][: len(halves)], pa.string())
        ),
    }


def batch(rows: int, seed: int = 0) -> pa.RecordBatch:
    return pa.record_batch(columns(rows, seed))


def written(batches: Sequence[pa.RecordBatch], kind: Kind, codec: Codec = None, **options: Any) -> bytes:
    """Return a file of record batches that pyarrow has written."""
    sink = pa.BufferOutputStream()
    new = ipc.new_file if kind == "file" else ipc.new_stream
    options = {"compression": codec, **options}
    with new(sink, batches[0].schema, options=ipc.IpcWriteOptions(**options)) as writer:
        for each in batches:
            writer.write_batch(each)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def opened(data: bytes) -> ArrowTable:
    return ArrowFormat().open(Held(data), None)
