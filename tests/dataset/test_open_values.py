"""The values of ``sk.open``: formats with their options, how files are indexed, and how they are reached."""

from __future__ import annotations

import dataclasses
import inspect
import io
import itertools
import pickle
import subprocess
import sys
import tarfile
import types
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import seekable as sk
from seekable import kaldi

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SECRET = "wJalrXUtnFEMI"

VALUES: list[Any] = [
    sk.formats.Jsonl(partitions="hive"),
    sk.formats.Text(partitions="hive"),
    sk.formats.Csv(delimiter="|", quote="", encoding="latin-1", partitions="hive"),
    sk.formats.Tables(strict=True, partitions="hive"),
    sk.formats.Tar(group="key", splitname="last", missing="none", concatenated=True, suffix="_x"),
    sk.formats.Kaldi(holder="matrix", pipes="allow"),
    sk.formats.Tokens(dtype="uint16", eos=0, bos=1),
    sk.Index(folder="indexes", jobs=1, publish=True, most_bytes=9),
    sk.Storage(cache=9, pin="version", refresh=False, max_open_files=3),
]
"""A value of each class, with options that differ from the defaults."""


def tar_of(members: Mapping[str, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


def test_sk_open_has_ten_parameters() -> None:
    named = ["format", "decode", "columns", "key", "errors", "version", "index", "storage", "progress"]
    source, *others = inspect.signature(sk.open).parameters.values()
    assert source.name == "source"
    assert [each.name for each in others] == named
    assert {(each.kind, each.default) for each in others} == {(inspect.Parameter.KEYWORD_ONLY, None)}


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_are_frozen_and_equal_when_their_options_are(value: Any) -> None:
    names = [field.name for field in dataclasses.fields(value)]
    twin = dataclasses.replace(value)
    assert twin is not value
    assert (twin, hash(twin)) == (value, hash(value))
    assert value != type(value)()
    assert pickle.loads(pickle.dumps(value)) == value
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, names[0], None)
    with pytest.raises(TypeError):
        type(value)("positional")


def test_neither_the_text_nor_the_pickle_of_a_storage_has_a_secret() -> None:
    endpoint = f"https://me:{SECRET}@store.example:9000"
    secrets = {"secret_access_key": SECRET, "token": SECRET, "headers": {"Authorization": SECRET}}
    storage = sk.Storage(options={"endpoint": endpoint, "region": "eu", **secrets})
    system = types.SimpleNamespace(token=SECRET, **dict.fromkeys(("info", "cat_file", "find", "ls"), len))
    of_fsspec = sk.Storage(filesystem=system)
    assert SECRET not in repr(of_fsspec)
    assert pickle.loads(pickle.dumps(of_fsspec)).filesystem is None
    assert SECRET not in repr(storage)
    assert "secret_access_key" in repr(storage)
    data = pickle.dumps(storage)
    assert SECRET.encode() not in data
    assert b"me:" not in data
    copy = pickle.loads(data)
    assert sorted(copy.options) == ["endpoint", "region"]
    assert copy.options["endpoint"].endswith("store.example:9000")
    assert storage.options is not None
    assert storage.options["endpoint"] == endpoint


LAZY = """
import sys
import seekable as sk
for name in ("Tar", "Tables", "Tokens", "Csv"):
    getattr(sk.formats, name)()
others = ("pyarrow", "obstore", "seekable.formats.kaldi", "seekable.formats.shar", "seekable.remote")
print([name for name in sys.modules if name.startswith(others)])
"""


def test_a_format_loads_no_other_subject() -> None:
    done = subprocess.run([sys.executable, "-c", LAZY], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_name_that_no_format_has_is_an_attribute_error() -> None:
    name = "Tarr"
    with pytest.raises(AttributeError, match=r"'seekable\.formats' has no attribute 'Tarr'"):
        getattr(sk.formats, name)
    assert all(callable(getattr(sk.formats, each)) for each in sk.formats.__all__)


def described(source: Any, **options: Any) -> Any:
    """Return the name of the format in the description of a dataset, which its fingerprint is made of."""
    return sk.open(source, **options)._node.describe(None)["format"]


def test_options_of_csv_and_tokens_reach_the_fingerprint(tmp_path: Path) -> None:
    text, tokens = tmp_path / "a.csv", tmp_path / "a.bin"
    text.write_bytes(b"a;b\n1;x\n")
    tokens.write_bytes(np.array([1, 5, 0, 1, 6, 0], "<u2").tobytes())
    for value, name in (
        (sk.formats.Csv(delimiter=";"), "csv-semicolon"),
        (sk.formats.Csv(delimiter=";", quote="'"), "csv-semicolon-q27"),
        (sk.formats.Csv(delimiter=";", encoding="cp1252"), "csv-semicolon-in-cp1252"),
    ):
        ds = sk.open(text, format=value)
        assert (ds[0], described(text, format=value)) == ({"a": "1", "b": "x"}, name)
        assert ds.fingerprint == sk.open(text, format=name).fingerprint
    for token_value, name, lengths in (
        (sk.formats.Tokens(dtype="uint16"), "tokens-u2", [6]),
        (sk.formats.Tokens(dtype="uint16", eos=0), "tokens-u2-eos0", [3, 3]),
        (sk.formats.Tokens(dtype="uint16", bos=1), "tokens-u2-bos1", [3, 3]),
    ):
        ds = sk.open(tokens, format=token_value)
        assert [len(record["tokens"]) for record in ds] == lengths
        assert described(tokens, format=token_value) == name
        assert ds.fingerprint == sk.open(tokens, format=name).fingerprint


def test_options_of_tar_reach_the_dataset(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(tar_of({"a.0.txt": b"x", "a.1.txt": b"y", "a.0.cls": b"3"}))
    whole = sk.formats.Tar(group="key", splitname="last", missing="none", concatenated=True)
    ds = sk.open(path, format=whole, columns=["__key__", "cls"])
    assert list(ds) == [{"__key__": "a.0", "cls": 3}, {"__key__": "a.1", "cls": None}]
    assert described(path, format=whole) == "tar-last-key-concatenated"
    with pytest.raises(sk.CorruptRecord, match=r"sk\.formats\.Tar\(missing='none'\) delivers None"):
        sk.open(path, format=dataclasses.replace(whole, missing=None), columns=["cls"])[1]


def test_siblings_take_the_options_of_tar(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(tar_of({"x.0.txt": b"one", "x.1.txt": b"two"}))
    (tmp_path / "b.tar").write_bytes(tar_of({"x.0.txt": b"uno"}))
    sides = {"a": f"{tmp_path}/a.tar", "b": f"{tmp_path}/b.tar"}
    value = sk.formats.Tar(splitname="last", missing="none", suffix={"b": "_b"})
    assert list(sk.open(sides, format=value)) == [
        {"__key__": "x.0", "txt": "one", "txt_b": "uno"},
        {"__key__": "x.1", "txt": "two", "txt_b": None},
    ]


def test_folders_are_columns_of_each_format(tmp_path: Path) -> None:
    contents: dict[str, bytes] = {
        "a.jsonl": b'{"id": 1}\n',
        "a.csv": b"id\n1\n",
        "a.tar": tar_of({"0.cls": b"1"}),
    }
    values = {
        "a.jsonl": sk.formats.Jsonl(partitions="hive"),
        "a.csv": sk.formats.Csv(partitions="hive"),
        "a.tar": sk.formats.Tar(partitions="hive"),
        "a.txt": sk.formats.Text(partitions="hive"),
    }
    folder = tmp_path / "year=2024"
    folder.mkdir()
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    (folder / "a.txt").write_bytes(b"one\n")
    for name, value in values.items():
        source = f"{tmp_path}/**/{name}"
        source = f"txt:{source}:line" if name == "a.txt" else source
        assert sk.open(source, format=value)[0]["year"] == 2024, name


def test_options_of_kaldi_reach_the_dataset(tmp_path: Path) -> None:
    with kaldi.Writer(f"ark,t:{tmp_path}/a.ark", "int32-vector") as writer:
        writer.write("u1", [1, 2])
    value = sk.formats.Kaldi(holder="int32-vector")
    assert list(sk.open(tmp_path / "a.ark", format=value)[0][1]) == [1, 2]
    assert described(tmp_path / "a.ark", format=value) == "ark-int32-vector"
    (tmp_path / "a.scp").write_text("u1 echo 5 |\n")
    script = f"scp:{tmp_path}/a.scp"
    with pytest.raises(sk.CorruptRecord, match="run only with pipes='allow'"):
        sk.open(script, format=sk.formats.Kaldi(holder="int32"))[0]
    assert sk.open(script, format=sk.formats.Kaldi(holder="int32", pipes="allow"))[0] == ("u1", 5)


def test_options_of_the_index_reach_the_build(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for number in range(70):
        (data / f"{number:02}.txt").write_text(f"{number}\n")
    with ThreadPoolExecutor(1) as executor:
        ds = sk.open(data, index=sk.Index(folder=tmp_path / "indexes", executor=executor, sampled=True))
    assert len(ds) == 64
    assert not (data / ".seekable").exists()
    assert any((tmp_path / "indexes").iterdir())
    assert len(sk.open(data, index=sk.Index(folder=tmp_path / "indexes"))) == 70


@pytest.mark.parametrize(
    ("kind", "option", "value", "error"),
    [
        (sk.Index, "sampled", "whole", sk.errors.WrongType),
        (sk.Index, "publish", 3, sk.errors.WrongType),
        (sk.Index, "most_bytes", -1, sk.errors.InvalidArgument),
        (sk.Storage, "options", 3, sk.errors.WrongType),
        (sk.Storage, "cache", -1, sk.errors.InvalidArgument),
        (sk.Storage, "pin", "tag", sk.errors.InvalidArgument),
        (sk.Storage, "refresh", 1, sk.errors.WrongType),
        (sk.Storage, "max_open_files", 0, sk.errors.InvalidArgument),
        (sk.formats.Jsonl, "partitions", "year", sk.errors.InvalidArgument),
        (sk.formats.Kaldi, "pipes", "yes", sk.errors.InvalidArgument),
    ],
)
def test_values_refuse_wrong_options_when_they_are_made(
    kind: Any, option: str, value: object, error: type[Exception]
) -> None:
    with pytest.raises(error, match=rf"^sk\.[A-Za-z.]+: {option} must be "):
        kind(**{option: value})


@pytest.mark.parametrize("is_side", [False, True])
@pytest.mark.parametrize(
    "source",
    [
        itertools.count(),
        itertools.repeat("a.jsonl"),
        range(1 << 60),
        [None] * 3,
        b"a.jsonl",
    ],
    ids=lambda source: type(source).__name__,
)
def test_a_source_that_is_no_list_of_paths_is_told_at_once(source: Any, *, is_side: bool) -> None:
    """Also one that never ends, and a huge one."""
    with pytest.raises(sk.errors.WrongType, match=r"data is given|a list of data holds"):
        sk.open({"x": source} if is_side else source)
