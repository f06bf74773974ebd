"""Folders of samples of tokens that Forager made."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.formats.tokens.folder_writers import as_arrays, write_forager

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

DOCUMENTS = [[5, 6, 7], [], [1, 2, 3, 4, 5], [9]]


def samples(documents: Sequence[Sequence[int]], dtype: str = "uint16") -> list[Mapping[str, Any]]:
    return [{"tokens": array} for array in as_arrays(documents, dtype)]


def with_masks(count: int = 5) -> list[dict[str, Any]]:
    """Return samples of four tokens with two arrays behind them."""
    rng = np.random.default_rng(0)
    return [
        {
            "tokens": rng.integers(0, 1 << 20, 4).astype(np.uint32),
            "loss_mask": rng.integers(0, 2, 4).astype(np.uint8),
            "weight": rng.random(4).astype(np.float32),
        }
        for _ in range(count)
    ]


def tokens(ds: sk.Dataset) -> list[list[int]]:
    return [record["tokens"].tolist() for record in ds]


def place(folder: Path, row: int, values: Sequence[int]) -> None:
    """Overwrite the place of a sample in the index."""
    path = folder / "index" / "sample_locations.bin"
    places = np.frombuffer(path.read_bytes(), "<u8").reshape(-1, 3).copy()
    places[row] = values
    path.write_bytes(places.tobytes())


def test_the_bytes_of_the_index() -> None:
    # Sample 1 of 2,048 tokens of uint16 each.
    row = bytes.fromhex("0000000000000000 0010000000000000 0010000000000000")
    assert np.frombuffer(row, "<u8").tolist() == [0, 4096, 4096]


def test_samples_of_any_length(tmp_path: Path) -> None:
    write_forager(tmp_path, {"a.bin": samples(DOCUMENTS), "b.bin": samples([[8, 8]])})
    ds = sk.open(tmp_path, format=sk.formats.Tokens(dtype="uint16"))
    assert tokens(ds) == [*DOCUMENTS, [8, 8]]
    assert ds[0]["tokens"].dtype == np.uint16
    path = tmp_path / "tokenized-samples" / "a.bin"
    assert ds.locate(2) == sk.Location(str(path), row=2, offset=6, length=10)


def test_the_type_must_be_said(tmp_path: Path) -> None:
    write_forager(tmp_path, {"a.bin": samples(DOCUMENTS)})
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"a\.bin' has samples .*sk.formats.Tokens\(dtype='uint16'"
    ):
        sk.open(tmp_path)
    with pytest.raises(
        sk.errors.CorruptTokens, match=r"byte 0: expected tokens of 4 bytes, found a sample of 6"
    ):
        sk.open(tmp_path, format=sk.formats.Tokens(dtype="uint32"))


def test_files_come_in_the_order_of_the_index(tmp_path: Path) -> None:
    names = ["a10.bin", "a9.bin", "sub/b.bin"]
    files = {name: samples([[number]]) for number, name in enumerate(names)}
    write_forager(tmp_path, files)
    (tmp_path / "corpus.jsonl").write_text('{"text": "a"}\n')
    assert tokens(sk.open(tmp_path, format=sk.formats.Tokens(dtype="uint16"))) == [[0], [1], [2]]


def test_arrays_of_the_schema_are_delivered_as_they_are_stored(tmp_path: Path) -> None:
    written = with_masks()
    write_forager(tmp_path, {"a.bin": written[:3], "b.bin": written[3:]}, with_schema=True)
    ds = sk.open(tmp_path)
    assert len(ds) == 5
    for record, sample in zip(ds, written, strict=True):
        assert list(record) == ["tokens", "loss_mask", "weight"]
        for name, array in sample.items():
            assert record[name].dtype == array.dtype
            assert (record[name] == array).all()


def test_a_schema_that_came_later_counts(tmp_path: Path) -> None:
    write_forager(tmp_path, {"a.bin": with_masks()})
    assert set(sk.open(tmp_path, format=sk.formats.Tokens(dtype="uint8"))[0]) == {"tokens"}
    schema = tmp_path / "other"
    write_forager(schema, {"a.bin": with_masks()}, with_schema=True)
    (schema / "index" / "sample_schema.json").rename(tmp_path / "index" / "sample_schema.json")
    with pytest.raises(sk.errors.InvalidArgument, match=r"sample_schema\.json.* uint32: leave dtype= out"):
        sk.open(tmp_path, format=sk.formats.Tokens(dtype="uint8"))
    assert set(sk.open(tmp_path)[0]) == {"tokens", "loss_mask", "weight"}


def test_an_index_of_json_lines_is_no_dataset_of_tokens(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n')
    index = tmp_path / "index"
    index.mkdir()
    (index / "file_location.txt").write_text("a.jsonl\n")
    (index / "sample_locations.bin").write_bytes(np.array([0, 0, 14], "<u8").tobytes())
    assert list(sk.open(tmp_path)) == [{"text": "a"}]


def test_places_that_are_not_those_of_the_files(tmp_path: Path) -> None:
    wrong = [
        (1, (0, 5, 0), r"a\.bin': byte 5: expected sample 1 at byte 6"),
        (2, (0, 6, 12), r"a\.bin': byte 16: expected sample 3 at byte 18"),
        (3, (0, 16, 4), r"a\.bin': byte 18: expected 20 bytes, as .* says of its 4 samples, found 18"),
        (3, (0, 16, 2**64 - 1), r"a\.bin': byte 16: expected sample 3"),
        (3, (1, 0, 2), r"a\.bin': byte 16: expected 16 bytes, as .* says of its 3 samples, found 18"),
        (4, (7, 0, 4), r"sample_locations\.bin': byte 0: expected samples of the files 0 to 1"),
        (0, (1, 0, 6), r"sample_locations\.bin': byte 0: expected samples of the files 0 to 1"),
    ]
    for number, (row, values, message) in enumerate(wrong):
        folder = tmp_path / str(number)
        folder.mkdir()
        write_forager(folder, {"a.bin": samples(DOCUMENTS), "b.bin": samples([[8, 8]])})
        place(folder, row, values)
        with pytest.raises(sk.errors.CorruptTokens, match=message):
            sk.open(folder, format=sk.formats.Tokens(dtype="uint16"))


def test_a_torn_index_and_torn_files(tmp_path: Path) -> None:
    write_forager(tmp_path, {"a.bin": samples(DOCUMENTS)})
    index, data = tmp_path / "index" / "sample_locations.bin", tmp_path / "tokenized-samples" / "a.bin"
    whole = index.read_bytes(), data.read_bytes()
    for cut in (0, 1, 25, 95):
        index.write_bytes(whole[0][:cut])
        with pytest.raises(sk.errors.UnsupportedFormat, match=r"the index of Forager in .* is not whole"):
            sk.open(tmp_path, format=sk.formats.Tokens(dtype="uint16"))
    index.write_bytes(whole[0][:24])
    with pytest.raises(sk.errors.CorruptTokens, match=r"a\.bin': byte 6: expected 6 bytes"):
        sk.open(tmp_path, format=sk.formats.Tokens(dtype="uint16"))
    index.write_bytes(whole[0])
    for content in (b"", whole[1][:-1], whole[1] + b"\0\0"):
        data.write_bytes(content)
        with pytest.raises(
            sk.errors.CorruptTokens, match=r"a\.bin': byte \d+: expected 18 bytes, as .* of its 4"
        ):
            sk.open(tmp_path, format=sk.formats.Tokens(dtype="uint16"))


@pytest.mark.parametrize("name", ["file_location.txt", "sample_locations.bin"])
def test_an_index_that_lacks_a_file_is_no_data(tmp_path: Path, name: str) -> None:
    write_forager(tmp_path, {"a.bin": with_masks()}, with_schema=True)
    (tmp_path / "index" / name).unlink()
    with pytest.raises(
        sk.errors.UnsupportedFormat, match=r"the index of Forager in .* a file of it is missing"
    ):
        sk.open(tmp_path)


def test_files_outside_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "index of others"
    folder.mkdir()
    write_forager(folder, {"a.bin": samples(DOCUMENTS)})
    (folder / "index" / "file_location.txt").write_text("../a.bin\n")
    with pytest.raises(
        sk.errors.UnsupportedFormat, match=r"names '\.\./a\.bin', which lies outside of the folder"
    ):
        sk.open(folder, format=sk.formats.Tokens(dtype="uint16"))


def test_a_damaged_schema(tmp_path: Path) -> None:
    write_forager(tmp_path, {"a.bin": with_masks()}, with_schema=True)
    path = tmp_path / "index" / "sample_schema.json"
    schema = json.loads(path.read_text())
    first, *others = schema["arrays"]
    wrong = [
        (path.read_text()[:50], "JSONDecodeError"),
        ("{}", "KeyError"),
        (json.dumps({**schema, "sample_size": 0}), "at byte 0"),
        (json.dumps({**schema, "arrays": []}), r"arrays \[\]"),
        (json.dumps({**schema, "arrays": [*others, first]}), "at byte 16, where byte 0 is expected"),
        (json.dumps({**schema, "arrays": [first, others[0], others[0]]}), "at byte 16, where byte 20"),
        (
            json.dumps({**schema, "arrays": [first, {**others[0], "dtype": "object"}]}),
            "'loss_mask' is of object",
        ),
        (
            json.dumps({**schema, "arrays": [{**first, "dtype": "float32"}, *others]}),
            "'tokens' is of float32",
        ),
        (json.dumps({**schema, "total_bytes_per_sample": 35}), "a sample of 35"),
    ]
    for text, message in wrong:
        path.write_text(text)
        with pytest.raises(sk.errors.UnsupportedFormat, match=rf"sample_schema\.json'.*{message}"):
            sk.open(tmp_path)
