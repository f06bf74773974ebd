"""Chunks of tokens of LitData, as TokensLoader makes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.formats.tokens.folder_writers import NUMPY_CODES, as_arrays, write_litdata

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Two items, [5, 6, 7] and [9], of uint16.
CHUNK = bytes.fromhex("02000000 10000000 16000000 18000000 0500 0600 0700 0900")
INDEX: dict[str, Any] = {
    "chunks": [{"chunk_bytes": 24, "chunk_size": 2, "dim": 4, "filename": "chunk-0-0.bin"}],
    "config": {
        "chunk_bytes": 200,
        "chunk_size": None,
        "compression": None,
        "data_format": ["no_header_numpy:5"],
        "data_spec": '[1, {"type": null, "context": null, "children_spec": []}]',
        "encryption": None,
        "item_loader": "TokensLoader",
    },
    "updated_at": "1763844000.0",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "index.json").write_text(json.dumps(INDEX))
    (tmp_path / "chunk-0-0.bin").write_bytes(CHUNK)
    return tmp_path


def tokens(ds: sk.Dataset) -> list[list[int]]:
    return [record["tokens"].tolist() for record in ds]


def test_the_items_of_a_chunk_are_documents(folder: Path) -> None:
    ds = sk.open(folder)
    assert tokens(ds) == [[5, 6, 7], [9]]
    assert ds[1]["tokens"].dtype == np.uint16
    assert ds.locate(1) == sk.Location(str(folder / "chunk-0-0.bin"), row=1, offset=22, length=2)
    assert sk.open(str(folder), format="tokens").fingerprint == ds.fingerprint


def test_chunks_come_in_the_order_of_the_index(tmp_path: Path) -> None:
    chunks = [as_arrays([[number, 0], [], [number]], "int32") for number in range(12)]
    write_litdata(tmp_path, chunks)
    index = json.loads((tmp_path / "index.json").read_text())
    index["chunks"].reverse()
    (tmp_path / "index.json").write_text(json.dumps(index))
    (tmp_path / "chunk-9-9.bin").write_bytes(b"left by another run")
    expected = [document for number in range(11, -1, -1) for document in ([number, 0], [], [number])]
    assert tokens(sk.open(tmp_path)) == expected


@pytest.mark.parametrize(
    ("form", "dtype"),
    [
        *((f"no_header_numpy:{code}", dtype) for dtype, code in NUMPY_CODES.items()),
        ("no_header_tensor:11", "uint8"),
        ("no_header_tensor:12", "int8"),
        ("no_header_tensor:13", "int16"),
        ("no_header_tensor:14", "int16"),
        ("no_header_tensor:15", "int32"),
        ("no_header_tensor:16", "int32"),
        ("no_header_tensor:17", "int64"),
        ("no_header_tensor:18", "int64"),
        ("no_header_tensor:20", "uint16"),
    ],
)
def test_types_of_numpy_and_of_torch(tmp_path: Path, form: str, dtype: str) -> None:
    write_litdata(tmp_path, [as_arrays([[1, 2, 100], [3]], dtype)], form=form)
    ds = sk.open(tmp_path)
    assert tokens(ds) == [[1, 2, 100], [3]]
    assert ds[0]["tokens"].dtype == dtype


def test_a_first_item_without_tokens_and_an_index_without_counts(tmp_path: Path) -> None:
    write_litdata(tmp_path, [as_arrays([[], [1, 2]], "uint16")])
    assert json.loads((tmp_path / "index.json").read_text())["chunks"][0]["dim"] is None
    assert tokens(sk.open(tmp_path)) == [[], [1, 2]]


def test_an_index_without_chunks(folder: Path) -> None:
    (folder / "index.json").write_text(json.dumps({**INDEX, "chunks": []}))
    with pytest.raises(sk.DataNotFound, match="names no file"):
        sk.open(folder)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"compression": "zstd"}, "compression 'zstd'.*compression=None"),
        ({"encryption": {"algorithm": "fernet"}}, "encryption .*encryption=None"),
        ({"data_format": ["no_header_numpy:9"]}, "no_header_numpy:9 of the items is no type of tokens"),
        ({"data_format": ["no_header_tensor:19"]}, "no_header_tensor:19 of the items is no type of tokens"),
    ],
)
def test_chunks_that_are_not_read(folder: Path, config: dict[str, Any], message: str) -> None:
    (folder / "index.json").write_text(json.dumps({**INDEX, "config": {**INDEX["config"], **config}}))
    with pytest.raises(sk.errors.UnsupportedFormat, match=message):
        sk.open(folder)


def test_other_datasets_of_litdata_are_no_tokens(folder: Path) -> None:
    for config in ({"data_format": ["jpeg", "int"]}, {"item_loader": "PyTreeLoader"}, {"data_format": None}):
        (folder / "index.json").write_text(json.dumps({**INDEX, "config": {**INDEX["config"], **config}}))
        with pytest.raises(
            sk.errors.UnsupportedFormat, match="is a dataset of LitData, which cannot be opened"
        ):
            sk.open(folder)


def test_another_type_than_the_index_says(folder: Path) -> None:
    with pytest.raises(sk.errors.InvalidArgument, match=r"dtype='int32' contradicts .*index\.json.* uint16"):
        sk.open(folder, format=sk.formats.Tokens(dtype="int32"))


def changed(at: int, data: str) -> Callable[[bytes], bytes]:
    """Return a function that overwrites some bytes of a file."""
    new = bytes.fromhex(data)
    return lambda old: old[:at] + new + old[at + len(new) :]


DAMAGES = [
    (lambda _: b"", 0, "expected 24 bytes, as .*index.json' says, found 0"),
    (lambda data: data[:-1], 23, "expected 24 bytes, as .*index.json' says, found 23"),
    (lambda data: data + b"\0", 24, "expected 24 bytes, as .*index.json' says, found 25"),
    (changed(0, "03000000"), 0, "expected 2 items, as .*index.json' says, found 3"),
    (changed(4, "11000000"), 4, "expected the first item at byte 16, behind the offsets, found 17"),
    (changed(4, "0f000000"), 4, "expected an offset of 16 or more, found 15"),
    (changed(8, "19000000"), 12, "expected an offset of 25 or more, found 24"),
    (changed(8, "17000000"), 16, "expected tokens of 2 bytes, as .*index.json' says, found an item of 7"),
    (changed(12, "16000000"), 22, "expected 22 bytes, as its last offset says, found 24"),
    (changed(12, "1a000000"), 24, "expected 26 bytes, as its last offset says, found 24"),
]


@pytest.mark.parametrize(("change", "byte", "message"), DAMAGES, ids=map(str, range(len(DAMAGES))))
def test_a_damaged_chunk_is_refused(
    folder: Path, change: Callable[[bytes], bytes], byte: int, message: str
) -> None:
    (folder / "chunk-0-0.bin").write_bytes(change(CHUNK))
    with pytest.raises(sk.errors.CorruptTokens, match=rf"chunk-0-0.bin': byte {byte}: {message}") as caught:
        sk.open(folder)
    assert caught.value.offset == byte


INDEXES = [
    (json.dumps(INDEX)[:60], r"index.json': byte \d+: expected JSON, found"),
    ("[" * 100_000, "is a dataset of LitData|has no data file"),
    (json.dumps(INDEX).replace('"dim": 4', '"dim": 5'), "chunk-0-0.bin': byte 24: expected 5 tokens"),
    (
        json.dumps(INDEX).replace('"chunk_size": 2', '"chunk_size": -2'),
        "index.json': byte 0: expected a chunk",
    ),
    (json.dumps(INDEX).replace("chunk-0-0.bin", "../chunk-0-0.bin"), "json': byte 0: expected a chunk"),
    (json.dumps({**INDEX, "chunks": INDEX["chunks"] * 2}), "expected each chunk once"),
    (json.dumps({**INDEX, "chunks": {}}), "expected the chunks and the config"),
]


@pytest.mark.parametrize(("text", "message"), INDEXES, ids=map(str, range(len(INDEXES))))
def test_a_damaged_index_is_refused(folder: Path, text: str, message: str) -> None:
    (folder / "index.json").write_text(text)
    with pytest.raises((sk.errors.UnsupportedFormat, sk.DataNotFound), match=message):
        sk.open(folder)


def test_a_chunk_that_is_not_there(folder: Path) -> None:
    (folder / "chunk-0-0.bin").unlink()
    with pytest.raises(sk.DataNotFound, match=r"chunk-0-0\.bin"):
        sk.open(folder)


def test_an_index_that_has_changed_is_read_again(folder: Path) -> None:
    before = sk.open(folder)
    assert before[1]["tokens"].dtype == np.uint16
    config = {**INDEX["config"], "data_format": ["no_header_numpy:1"]}
    (folder / "index.json").write_text(json.dumps({**INDEX, "config": config, "updated_at": "later"}))
    after = sk.open(folder)
    assert after[1]["tokens"].dtype == np.int16
    assert after.fingerprint != before.fingerprint


def test_a_token_that_ends_documents_is_not_asked_for(folder: Path) -> None:
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"eos=7 says where documents end, and .* leave eos= out"
    ):
        sk.open(folder, format=sk.formats.Tokens(eos=7))


def test_by_spec_by_name_and_by_a_glob(folder: Path) -> None:
    path = folder / "chunk-0-0.bin"
    for asked in (f"tokens:{folder}", path, f"tokens:{path}", f"{folder}/chunk-*.bin", [path]):
        assert tokens(sk.open(asked)) == [[5, 6, 7], [9]]
    with pytest.raises(sk.errors.UnsupportedFormat, match=r"open it alone, as sk\.open\("):
        sk.open([folder])


def test_an_index_json_that_is_data_is_not_read_as_an_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "index.json").write_text('{"text": "a"}\n' * 9)
    name = "seekable.formats.tokens.token_recognition.read_index"
    monkeypatch.setattr(name, lambda *_: pytest.fail("all of it was read"))
    assert len(sk.open(tmp_path)) == 9
