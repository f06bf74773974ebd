from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from seekable.errors import DataNotFound, InvalidArgument, UnsupportedFormat
from seekable.formats.shar.shar_layout import fields_of_folder, named_fields, split_file_name

if TYPE_CHECKING:
    from pathlib import Path


def touch(folder: Path, *names: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_bytes(b"")
    return folder


def base_names(paths: list[str]) -> list[str]:
    return [os.path.basename(path) for path in paths]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cuts.000000.jsonl.gz", ("cuts", "000000", "jsonl")),
        ("cuts.jsonl", ("cuts", "", "jsonl")),
        ("cuts.a.b.jsonl.zst", ("cuts", "a.b", "jsonl")),
        ("recording.000003.tar", ("recording", "000003", "tar")),
        ("recording.000003.TAR.GZ", ("recording", "000003", "tar")),
        ("features.tgz", ("features", "", "tar")),
        ("cuts.000000.jsonl.idx", None),
        ("recording.000000.tar.idx", None),
        ("README.md", None),
        (".cuts.000000.jsonl", None),
        ("_cuts.000000.jsonl", None),
        ("cuts", None),
        ("jsonl", None),
    ],
)
def test_the_name_of_a_file_says_field_shard_and_kind(name: str, expected: object) -> None:
    assert split_file_name(name) == expected


def test_the_fields_of_a_folder_are_in_the_order_of_their_shards(tmp_path: Path) -> None:
    names = [f"{field}.{shard}" for shard in ("10", "9") for field in ("cuts", "recording", "lang")]
    suffixes = {"cuts": "jsonl.gz", "recording": "tar", "lang": "jsonl"}
    touch(tmp_path, *(f"{name}.{suffixes[name.split('.')[0]]}" for name in names))
    touch(tmp_path, "recording.9.tar.idx", "notes.txt", "cuts.9.tar")
    found = fields_of_folder(tmp_path)
    assert base_names(found.cuts.paths) == ["cuts.9.jsonl.gz", "cuts.10.jsonl.gz"]
    assert [(field.name, field.kind, base_names(field.paths)) for field in found.fields] == [
        ("lang", "jsonl", ["lang.9.jsonl", "lang.10.jsonl"]),
        ("recording", "tar", ["recording.9.tar", "recording.10.tar"]),
    ]


def test_shards_of_equal_numbers_belong_together_whatever_zeros_they_have(tmp_path: Path) -> None:
    touch(tmp_path, "cuts.000000.jsonl", "cuts.000001.jsonl", "recording.0.tar", "recording.1.tar")
    (field,) = fields_of_folder(tmp_path).fields
    assert base_names(field.paths) == ["recording.0.tar", "recording.1.tar"]


def test_one_shard_may_have_no_number(tmp_path: Path) -> None:
    touch(tmp_path, "cuts.jsonl.gz", "recording.tar")
    found = fields_of_folder(tmp_path)
    assert base_names(found.cuts.paths + found.fields[0].paths) == ["cuts.jsonl.gz", "recording.tar"]


@pytest.mark.parametrize(
    ("names", "error", "words"),
    [
        (["recording.000000.tar"], DataNotFound, ["has no cuts"]),
        (
            ["cuts.0.jsonl", "cuts.1.jsonl", "recording.0.tar"],
            UnsupportedFormat,
            ["'recording'", "lacks the shards '1'"],
        ),
        (
            ["cuts.0.jsonl", "recording.0.tar", "recording.1.tar"],
            UnsupportedFormat,
            ["'recording'", "has the shards '1', which the cuts lack"],
        ),
        (
            ["cuts.0.jsonl", "a.0.tar", "a.0.jsonl"],
            UnsupportedFormat,
            ["'a.0.jsonl'", "'a.0.tar'", "one shard"],
        ),
        (
            ["cuts.0.jsonl", "cuts.1.jsonl", "a.0.tar", "a.1.jsonl"],
            UnsupportedFormat,
            ["'a'", "keep one kind"],
        ),
        (["cuts.0.jsonl", "cuts.0.jsonl.gz"], UnsupportedFormat, ["'cuts.0.jsonl.gz'", "one shard"]),
    ],
)
def test_a_folder_whose_files_do_not_go_together_is_refused(
    tmp_path: Path, names: list[str], error: type[Exception], words: list[str]
) -> None:
    touch(tmp_path, *names)
    with pytest.raises(error) as caught:
        fields_of_folder(tmp_path)
    assert all(word in str(caught.value) for word in words), caught.value


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataNotFound, match="nowhere"):
        fields_of_folder(tmp_path / "nowhere")


def test_named_fields_may_lie_anywhere(tmp_path: Path) -> None:
    one = touch(tmp_path / "one", "cuts.0.jsonl", "cuts.1.jsonl", "recording.0.tar")
    other = touch(
        tmp_path / "other", "cuts.7.jsonl", "recording.a.tar", "recording.b.tar", "recording.a.tar.idx"
    )
    found = named_fields(
        {
            "recording": [str(one / "recording.*.tar"), other / "recording.a.tar", other / "recording.b.tar"],
            "cuts": [str(one / "cuts.*.jsonl"), str(other / "cuts.*.jsonl")],
        }
    )
    assert base_names(found.cuts.paths) == ["cuts.0.jsonl", "cuts.1.jsonl", "cuts.7.jsonl"]
    (field,) = found.fields
    assert base_names(field.paths) == ["recording.0.tar", "recording.a.tar", "recording.b.tar"]


def test_a_named_field_may_be_the_folder_that_has_it(tmp_path: Path) -> None:
    touch(tmp_path, "cuts.0.jsonl", "recording.0.tar", "recording.0.tar.idx", "lang.0.jsonl")
    found = named_fields({"cuts": tmp_path, "recording": str(tmp_path)})
    assert base_names(found.cuts.paths) == ["cuts.0.jsonl"]
    assert [base_names(field.paths) for field in found.fields] == [["recording.0.tar"]]


@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        ({"recording": "recording.*.tar"}, InvalidArgument, ["needs its cuts"]),
        ({}, InvalidArgument, ["needs its cuts", "none"]),
        ({"cuts": "cuts.*.jsonl", 3: "recording.*.tar"}, InvalidArgument, ["got 3"]),
        ({"cuts": "recording.*.tar"}, UnsupportedFormat, ["JSON lines"]),
        ({"cuts": "cuts.*.jsonl", "recording": "recording.0.tar"}, UnsupportedFormat, ["1 files", "have 2"]),
        ({"cuts": "cuts.*.jsonl", "a": "a.txt"}, UnsupportedFormat, ["a.txt", ".jsonl.zst"]),
        ({"cuts": "cuts.*.jsonl", "a": ["recording.0.tar", "lang.0.jsonl"]}, UnsupportedFormat, ["one kind"]),
        ({"cuts": "cuts.*.jsonl", "a": "recording.*.idx"}, DataNotFound, ["only indexes"]),
        ({"cuts": "cuts.*.jsonl", "a": "nothing.*.tar"}, DataNotFound, ["nothing"]),
    ],
)
def test_named_fields_that_make_no_shar_are_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fields: dict[str, str],
    error: type[Exception],
    words: list[str],
) -> None:
    touch(
        tmp_path, "cuts.0.jsonl", "cuts.1.jsonl", "recording.0.tar", "recording.1.tar", "recording.0.tar.idx"
    )
    touch(tmp_path, "lang.0.jsonl", "a.txt")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error) as caught:
        named_fields(fields)
    assert all(word in str(caught.value) for word in words), caught.value
