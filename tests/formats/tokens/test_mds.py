"""Shards of MosaicML Streaming with a column of tokens."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.formats.tokens.folder_writers import as_arrays, write_mds

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CONFIG: dict[str, Any] = {
    "column_encodings": ["ndarray:uint16"],
    "column_names": ["tokens"],
    "column_sizes": [None],
    "compression": None,
    "format": "mds",
    "hashes": [],
    "size_limit": 67108864,
    "version": 2,
}
TEXT = json.dumps(CONFIG, sort_keys=True).encode()
# Two samples, [5, 6, 7] and [9]: their size, then 1 dimension of a type of 1 byte (04), its length, values.
SAMPLES = bytes.fromhex("08000000 04 03 0500 0600 0700  04000000 04 01 0900")
FIRST = 16 + len(TEXT)
SHARD = np.array([2, FIRST, FIRST + 12, FIRST + 20], "<u4").tobytes() + TEXT + SAMPLES
INDEX: dict[str, Any] = {
    "shards": [
        {
            **CONFIG,
            "raw_data": {"basename": "shard.00000.mds", "bytes": len(SHARD), "hashes": {}},
            "samples": 2,
            "zip_data": None,
        }
    ],
    "version": 2,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "index.json").write_text(json.dumps(INDEX, sort_keys=True))
    (tmp_path / "shard.00000.mds").write_bytes(SHARD)
    return tmp_path


def tokens(ds: sk.Dataset) -> list[list[int]]:
    return [record["tokens"].tolist() for record in ds]


def with_shard(**fields: Any) -> dict[str, Any]:
    """Return the index with other fields of its shard."""
    return {**INDEX, "shards": [{**INDEX["shards"][0], **fields}]}


def test_arrays_with_a_shape_before_each(folder: Path) -> None:
    ds = sk.open(folder)
    assert tokens(ds) == [[5, 6, 7], [9]]
    assert ds[1]["tokens"].dtype == np.uint16
    assert ds.locate(1).offset == FIRST + 18


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "uint32", "int32", "int64"])
@pytest.mark.parametrize("encoding", ["ndarray:{}:3", "ndarray:{}", "ndarray"])
def test_types_and_shapes(tmp_path: Path, encoding: str, dtype: str) -> None:
    documents = as_arrays([[1, 2, 3], [4, 5, 6], [7, 8, 9]], dtype)
    shards = [[{"tokens": document} for document in documents[:2]], [{"tokens": documents[2]}]]
    write_mds(tmp_path, {"tokens": encoding.format(dtype)}, shards)
    ds = sk.open(tmp_path)
    assert tokens(ds) == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    assert ds[0]["tokens"].dtype == dtype


def test_shapes_of_one_two_and_four_bytes_in_one_shard(tmp_path: Path) -> None:
    documents = [np.arange(size, dtype=np.uint8) for size in (255, 256, 65535, 65536, 1)]
    write_mds(tmp_path, {"tokens": "ndarray:uint8"}, [[{"tokens": document} for document in documents]])
    ds = sk.open(tmp_path)
    assert [len(record["tokens"]) for record in ds] == [255, 256, 65535, 65536, 1]
    assert all((ds[row]["tokens"] == document).all() for row, document in enumerate(documents))


def test_bytes_need_a_type(tmp_path: Path) -> None:
    documents = as_arrays([[1, 2, 3], [-4, 5]], "int64")
    write_mds(tmp_path, {"tokens": "bytes"}, [[{"tokens": document.tobytes()} for document in documents]])
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"column 'tokens'.* as sk.formats.Tokens\(dtype='int64'"
    ):
        sk.open(tmp_path)
    assert tokens(sk.open(tmp_path, format=sk.formats.Tokens(dtype="int64"))) == [[1, 2, 3], [-4, 5]]
    write_mds(tmp_path, {"tokens": "bytes"}, [[{"tokens": b"123"}]])
    with pytest.raises(
        sk.errors.CorruptTokens, match=r"shard.00000.mds': byte \d+: expected tokens of 2 bytes"
    ):
        sk.open(tmp_path, format=sk.formats.Tokens(dtype="uint16"))


COLUMNS = {"a": "str", "input_ids": "ndarray:int32", "n": "int", "text": "str", "weights": "ndarray:uint8:2"}
ROWS: list[dict[str, Any]] = [
    {"a": "x", "input_ids": np.array([1, 2], np.int32), "n": 1, "text": "", "weights": np.zeros(2, np.uint8)},
    {"a": "", "input_ids": np.array([3], np.int32), "n": 2, "text": "abc", "weights": np.ones(2, np.uint8)},
]


def test_of_several_columns_the_tokens_are_read(tmp_path: Path) -> None:
    write_mds(tmp_path, COLUMNS, [ROWS])
    message = r"\.mds: the tokens are read \(column 'input_ids'\), and not 'a', 'n', 'text', 'weights'"
    with pytest.warns(UserWarning, match=message):
        ds = sk.open(tmp_path)
    assert tokens(ds) == [[1, 2], [3]]


@pytest.mark.parametrize(
    "columns",
    [
        {"text": "str"},
        {"tokens": "jpeg"},
        {"image": "bytes"},
        {"tokens": "ndarray:int32:2,2"},
        {"tokens": "ndarray:float32"},
        {"one": "ndarray:int32", "other": "ndarray:int32"},
        {"tokens": "ndarray:int32", "input_ids": "ndarray:int32"},
    ],
)
def test_a_dataset_without_a_column_that_is_surely_of_tokens(tmp_path: Path, columns: dict[str, str]) -> None:
    write_mds(tmp_path, columns, [[]])
    with pytest.raises(sk.errors.UnsupportedFormat, match="is a dataset of MosaicML Streaming"):
        sk.open(tmp_path)


def test_pickles_are_refused(tmp_path: Path) -> None:
    write_mds(tmp_path, {"tokens": "ndarray:int32", "other": "pkl"}, [[]])
    with pytest.raises(
        sk.errors.UnsupportedFormat, match=r"column 'other' .* of pickles, which could run any code"
    ):
        sk.open(tmp_path)


def test_compressed_shards_are_refused_and_those_beside_them_are_read(tmp_path: Path) -> None:
    zipped = {"basename": "shard.00000.mds.zstd", "bytes": 9, "hashes": {}}
    documents = as_arrays([[1, 2], [3]], "int32")
    write_mds(
        tmp_path,
        {"tokens": "ndarray:int32"},
        [[{"tokens": document} for document in documents]],
        compression="zstd",
        zip_data=zipped,
    )
    assert tokens(sk.open(tmp_path)) == [[1, 2], [3]]
    (tmp_path / "shard.00000.mds").rename(tmp_path / "shard.00000.mds.zstd")
    with pytest.raises(sk.errors.UnsupportedFormat, match=r"'shard.00000.mds' is compressed"):
        sk.open(tmp_path)


def test_shards_in_folders_below_their_index(tmp_path: Path) -> None:
    for part in ("0", "1"):
        write_mds(tmp_path / part, {"tokens": "ndarray:int32"}, [[{"tokens": np.array([int(part)], "i4")}]])
    shards = []
    for part in ("1", "0"):
        (shard,) = json.loads((tmp_path / part / "index.json").read_text())["shards"]
        shard["raw_data"]["basename"] = f"{part}/shard.00000.mds"
        shards.append(shard)
    (tmp_path / "index.json").write_text(json.dumps({"shards": shards, "version": 2}))
    assert tokens(sk.open(tmp_path)) == [[1], [0]]
    (tmp_path / "0" / "index.json").unlink()
    assert tokens(sk.open(tmp_path)) == [[1], [0]]


def changed(at: int, data: bytes | str) -> Callable[[bytes], bytes]:
    """Return a function that overwrites some bytes of a file."""
    new = bytes.fromhex(data) if isinstance(data, str) else data
    return lambda old: old[:at] + new + old[at + len(new) :]


DAMAGES = [
    (lambda _: b"", 0, r"expected \d+ bytes, as .*index.json' says, found 0"),
    (lambda data: data[:-1], len(SHARD) - 1, r"expected \d+ bytes, as .*index.json' says, found"),
    (lambda data: data + b"\0", len(SHARD), r"expected \d+ bytes, as .*index.json' says, found"),
    (changed(0, "01000000"), 0, "expected 2 items, as .*index.json' says, found 1"),
    (changed(4, "00000000"), 4, "expected an offset of 16 or more, found 0"),
    (changed(8, "ffff0000"), 12, "expected an offset of 65535 or more"),
    (changed(16, b"?"), 16, "expected the columns that .*index.json' has of it, as JSON, found"),
    (changed(TEXT.index(b"uint16") + 16, b"uint32"), 16, "expected the columns that"),
    (
        changed(FIRST, "09000000"),
        FIRST,
        "expected values of 8 bytes, as the offsets .* say, found sizes of 9",
    ),
    (changed(FIRST + 4, "08"), FIRST + 4, "expected an array of one dimension"),
    (changed(FIRST + 4, "05"), FIRST + 4, "expected an array of one dimension"),
    (changed(FIRST + 5, "04"), FIRST + 4, "expected an array of one dimension"),
    (changed(FIRST + 12, "ffffffff"), FIRST + 12, "expected values of 4 bytes"),
]


@pytest.mark.parametrize(("change", "byte", "message"), DAMAGES, ids=map(str, range(len(DAMAGES))))
def test_a_damaged_shard_is_refused(
    folder: Path, change: Callable[[bytes], bytes], byte: int, message: str
) -> None:
    (folder / "shard.00000.mds").write_bytes(change(SHARD))
    with pytest.raises(sk.errors.CorruptTokens, match=rf"shard.00000.mds': byte {byte}: {message}") as caught:
        sk.open(folder)
    assert caught.value.offset == byte


def test_arrays_of_two_types_in_one_shard(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"tokens": np.array([1], np.int32)}, {"tokens": np.array([1], np.uint16)}]
    write_mds(tmp_path, {"tokens": "ndarray"}, [rows])
    with pytest.raises(
        sk.errors.CorruptTokens, match=r"an array of int32, as the first one is, found the code 16"
    ):
        sk.open(tmp_path)


def test_samples_that_are_not_of_the_shape_of_the_index(tmp_path: Path) -> None:
    write_mds(tmp_path, {"tokens": "ndarray:int32:2"}, [as_rows([[1, 2], [3, 4, 5]])])
    with pytest.raises(sk.errors.CorruptTokens, match=r"expected a sample of 8 bytes, found 12"):
        sk.open(tmp_path)


def as_rows(documents: list[list[int]]) -> list[dict[str, Any]]:
    return [{"tokens": document} for document in as_arrays(documents, "int32")]


INDEXES = [
    (json.dumps(INDEX)[:150], r"index.json': byte \d+: expected JSON, found"),
    (json.dumps(with_shard(samples=3)), "shard.00000.mds': byte 0: expected 3 items"),
    (json.dumps(with_shard(samples=None)), "index.json': byte 0: expected a shard of MDS"),
    (json.dumps(with_shard(raw_data={"basename": "/etc/passwd", "bytes": 1})), "expected a shard of MDS"),
    (json.dumps(with_shard(raw_data={"basename": "../a.mds", "bytes": 1})), "expected a shard of MDS"),
    (json.dumps(with_shard(raw_data={"basename": ".", "bytes": 1})), "expected a shard of MDS"),
    (json.dumps(with_shard(column_names=["tokens", "b"])), "expected a shard of MDS"),
    (json.dumps({**INDEX, "shards": INDEX["shards"] * 2}), "expected each shard once"),
    (json.dumps({**INDEX, "shards": []}), "is a dataset of MosaicML Streaming"),
]


@pytest.mark.parametrize(("text", "message"), INDEXES, ids=map(str, range(len(INDEXES))))
def test_a_damaged_index_is_refused(folder: Path, text: str, message: str) -> None:
    (folder / "index.json").write_text(text)
    with pytest.raises(sk.errors.UnsupportedFormat, match=message):
        sk.open(folder)
