"""Specs, addresses and suffixes that cannot be opened say so by name, with the way out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import seekable as sk
from seekable.formats.refusals import NO_WAY_IN, unopened_suffix
from seekable.formats.table import SUFFIXES

LINE = b'{"a": 1}\n'


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("wds:a.tar", "WebDataset"),
        ("s3:bucket/a.jsonl", r"begins with s3://.*write 's3://bucket/a\.jsonl'"),
        ("GS:/bucket/a.jsonl", "begins with gs://"),
        ("r2://bucket/a.jsonl", "R2.*endpoint"),
        ("wasbs://container/a.jsonl", "Azure.*az://"),
        ("file:///data/a.jsonl", "the path alone: '/data/a.jsonl'"),
        ("file://localhost/data/a.jsonl", "the path alone: '/data/a.jsonl'"),
        ("pipe:cat a.jsonl", "command.*open_stream.*allow_pipes"),
    ],
)
def test_specs_and_addresses_are_refused_by_name(spec: str, told: str) -> None:
    for asked in (spec, [spec], ["a.jsonl", spec]):
        with pytest.raises(sk.errors.UnsupportedFormat, match=told) as caught:
            sk.open(asked)
        assert repr(spec) in str(caught.value)
    if not spec.endswith("|"):
        with pytest.raises(sk.errors.UnsupportedFormat, match=told):
            sk.open_stream([spec])


@pytest.mark.parametrize(
    "path", [r"C:\data\a.jsonl", "C:/data/a.jsonl", "12:30.jsonl", "nosuch:a.jsonl", "a b:c"]
)
def test_other_names_with_a_colon_are_paths(path: str) -> None:
    with pytest.raises(sk.DataNotFound, match="there is no"):
        sk.open(path)


def test_a_spec_of_shar_is_opened_alone_and_never_as_a_stream() -> None:
    with pytest.raises(sk.DataNotFound, match="is no folder, and a Shar is one"):
        sk.open("shar:DIR")
    with pytest.raises(sk.errors.InvalidArgument, match=r"'shar:DIR' is opened alone.*sk\.concat"):
        sk.open(["shar:DIR"])
    with pytest.raises(sk.errors.UnsupportedFormat, match=r"sk\.open\('shar:DIR'\).*stream\(\)"):
        sk.open_stream("shar:DIR")


def test_specs_of_tokens_are_opened_alone_and_never_as_a_stream() -> None:
    for spec in ("megatron:data/web_text_document", "tokens:train.bin"):
        with pytest.raises(sk.DataNotFound, match="there is no "):
            sk.open(spec)
        with pytest.raises(sk.errors.InvalidArgument, match=r"is opened alone.*sk\.concat"):
            sk.open([spec])
        with pytest.raises(sk.errors.UnsupportedFormat, match=r"sk\.open\('megatron:PREFIX'\).*stream\(\)"):
            sk.open_stream(spec)


@pytest.mark.parametrize("name", ["a.npy", "train.bin", "a.ds"])
def test_files_that_may_be_of_tokens_are_opened_where_the_user_names_them(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\1\0\2\0")
    with pytest.raises(
        sk.errors.InvalidArgument, match=rf"{name}' does not say of which type .*dtype='uint16'"
    ):
        sk.open(tmp_path / name)
    told = rf"'{name}' in it is a file of tokens or .*'tokens:PATH'\), with format=sk\.formats\.Tokens"
    with pytest.raises(sk.errors.UnsupportedFormat, match=told):
        sk.open(tmp_path)
    assert sk.open(tmp_path, format=sk.formats.Tokens(dtype="uint16"))[0]["tokens"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("name", "told"),
    [("shard.00000.mds", "StreamingDataset"), ("a.safetensors", r"safetensors\.safe_open")],
)
def test_files_of_which_some_are_of_tokens(tmp_path: Path, name: str, told: str) -> None:
    (tmp_path / name).write_bytes(LINE)
    with pytest.raises(sk.errors.UnsupportedFormat, match=told):
        sk.open(tmp_path)
    with pytest.raises(sk.errors.UnsupportedFormat, match=re.escape(name)):
        sk.open(tmp_path / name)


def test_an_address_as_a_path_object_is_an_address() -> None:
    for asked in (Path("https://host/*.jsonl"), [Path("https://host/*.jsonl")]):
        with pytest.raises(sk.errors.UnsupportedFormat, match="glob on a web server, which lists no files"):
            sk.open(asked)
    with pytest.raises(sk.DataNotFound):
        sk.open(Path("nosuch:a.jsonl"))


def test_an_address_of_a_scheme_that_nobody_reads() -> None:
    for asked in ("nosuch://host/a", ["nosuch://host/a", "a.jsonl"]):
        with pytest.raises(sk.errors.InvalidArgument, match=r"no package reads addresses of nosuch://"):
            sk.open(asked)


def test_a_file_that_exists_is_that_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("wds:a.jsonl", "tokens:b.jsonl", "nosuch:c.jsonl"):
        Path(name).write_bytes(LINE)
        assert list(sk.open(name)) == [{"a": 1}]
        assert list(sk.open_stream(name)) == [{"a": 1}]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("train.idx", r"index.*open the \.bin"),
        ("a.ds.index", r"datatrove.*open the \.ds"),
        ("a.npz", r"numpy.*one array of numpy\.load"),
        ("shard.00000.mds.zstd", r"MosaicML.*index\.json.*StreamingDataset"),
        ("0.lance", "Lance.*yet"),
        ("a.tfrecord", "TFRecord.*yet"),
        ("a.avro", "Avro.*yet"),
        ("a.orc", "ORC.*yet.*pyarrow"),
        ("a.h5", "HDF5.*yet"),
        ("a.wav", r"audio.*yet.*ds\.map"),
        ("a.jpg", "image.*yet"),
        ("a.xlsx", r"spreadsheet, which cannot be opened; save it as \.csv"),
        ("a.pkl", "pickle, which could run any code, which cannot be opened;"),
        ("a.sqlite", "database"),
        ("a.md", "one document.*format='text'"),
    ],
)
def test_files_are_refused_by_the_name_of_their_format(tmp_path: Path, name: str, told: str) -> None:
    path = tmp_path / name
    path.write_bytes(LINE)
    for asked in (path, [path], f"{tmp_path}/{name[:2]}*"):
        with pytest.raises(sk.errors.UnsupportedFormat, match=told) as caught:
            sk.open(asked)
        assert name in str(caught.value)
    for asked in (f"{tmp_path}/*", tmp_path):
        with pytest.raises(sk.errors.UnsupportedFormat, match="cannot be opened"):
            sk.open(asked)
    if not name.endswith("gz"):
        assert list(sk.open(path, format="jsonl")) == [{"a": 1}]


@pytest.mark.parametrize("suffix", NO_WAY_IN)
def test_a_folder_of_compressed_files_with_no_way_in_is_refused_by_name(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"a.jsonl{suffix}").write_bytes(b"")
    told = rf"'a\.jsonl\{suffix}' in it is a compressed file .* cannot be opened; decompress it once"
    with pytest.raises(sk.errors.UnsupportedFormat, match=told):
        sk.open(tmp_path)


def test_a_file_with_no_way_in_beside_data_is_named_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a.jsonl", "b.jsonl.xz", "c.csv.bz2", "notes.xz"):
        (tmp_path / name).write_bytes(LINE)
    assert len(sk.open(tmp_path)) == 1
    (record,) = caplog.records
    assert re.search(r"'[bc]\.\w+\.\w+' in '.*' and 1 more cannot be opened and is left out", record.message)


def test_suffixes_of_data_are_not_among_them() -> None:
    assert [suffix for suffix in SUFFIXES if unopened_suffix(f"a{suffix}")] == []


@pytest.mark.parametrize(
    "name", ["a.jsonl", "a.csv", "a.txt.gz", "a.parquet", "a.arrow", "a.tar", "a.tgz", "a.bin"]
)
def test_a_pointer_of_git_lfs_is_refused_by_name(tmp_path: Path, name: str) -> None:
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0f' * 32}\nsize 12345\n"
    (tmp_path / name).write_text(pointer)
    with pytest.raises(sk.errors.UnsupportedFormat, match=f"{name}' is a pointer of Git LFS.*git lfs pull"):
        sk.open(tmp_path / name)
