"""Rows of tokens in files of safetensors."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.formats.tokens.folder_writers import write_safetensors

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path

ROWS = np.arange(12, dtype=np.uint16).reshape(4, 3)


def opened(path: Path) -> sk.Dataset:
    return sk.open(path)


def tokens(ds: sk.Dataset) -> list[list[int]]:
    return [record["tokens"].tolist() for record in ds]


def test_each_row_is_a_document(tmp_path: Path) -> None:
    header = b'{"tokens":{"dtype":"U16","shape":[2,3],"data_offsets":[0,12]}}'
    data = struct.pack("<Q", len(header)) + header + bytes.fromhex("0500 0600 0700 0900 0a00 0b00")
    path = tmp_path / "a.safetensors"
    path.write_bytes(data)
    assert tokens(opened(path)) == [[5, 6, 7], [9, 10, 11]]
    assert opened(path).locate(1).offset == 8 + len(header) + 6


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "int32", "uint32", "int64"])
def test_types(tmp_path: Path, dtype: str) -> None:
    write_safetensors(tmp_path / "a.safetensors", {"x": ROWS.astype(dtype)})
    ds = opened(tmp_path / "a.safetensors")
    assert tokens(ds) == ROWS.tolist()
    assert ds[0]["tokens"].dtype == dtype


def test_the_tensor_of_tokens_among_others(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    others: dict[str, Any] = {
        "mask": ROWS.astype(np.uint8),
        "input_ids": ROWS,
        "weights": ROWS.astype(np.float32),
    }
    write_safetensors(path, others)
    assert tokens(opened(path)) == ROWS.tolist()
    write_safetensors(path, {"weights": ROWS.astype(np.float32), "ids": ROWS[0]})
    assert tokens(opened(path)) == [[0, 1, 2]]
    wrong: list[dict[str, Any]] = [{"a": ROWS, "b": ROWS}, {"a": ROWS.astype("f4")}, {"a": ROWS[None]}, {}]
    for tensors in wrong:
        write_safetensors(path, tensors)
        with pytest.raises(
            sk.errors.UnsupportedFormat, match="one tensor of integers in rows is read as tokens"
        ):
            opened(path)


def test_rows_without_tokens_and_no_rows(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "a.safetensors", {"x": ROWS[:, :0]})
    assert tokens(opened(tmp_path / "a.safetensors")) == [[], [], [], []]
    write_safetensors(tmp_path / "b.safetensors", {"x": ROWS[:0]})
    assert len(opened(tmp_path / "b.safetensors")) == 0


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write_safetensors(path, {"x": ROWS})
    whole = path.read_bytes()
    size = struct.unpack("<Q", whole[:8])[0]
    header = json.loads(whole[8 : 8 + size])
    header["x"]["shape"] = [10**12, 0]
    text = json.dumps(header).encode()
    wrong = [
        (b"", 0),
        (whole[:7], 0),
        (whole[:20], 0),
        (struct.pack("<Q", 2**63) + whole[8:], 0),
        (whole[:-1], 8),
        (whole.replace(b"[4, 3]", b"[5, 3]"), 8),
        (whole.replace(b'"U16"', b'"U32"'), 8),
        (whole.replace(b"[4, 3]", b"[4,-3]"), 8),
        (whole.replace(b"{", b"[", 1), 8),
        (struct.pack("<Q", len(text)) + text + whole[8 + size :], 8),
    ]
    for content, byte in wrong:
        path.write_bytes(content)
        with pytest.raises(
            sk.errors.CorruptTokens, match=rf"a\.safetensors': byte {byte}: expected"
        ) as caught:
            opened(path)
        assert caught.value.offset == byte
