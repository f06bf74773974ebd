"""``seekable index --lhotse`` and ``--energon``: the files that these tools write themselves."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import tarfile
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.cli.command import output, run
from tests.formats.lhotse_indexes import index_of_lines, numbers

import seekable as sk
from seekable.errors import IndexStale
from seekable.formats.shar import index_files as other_indexes
from seekable.formats.shar.index_files import write_index

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

LINES = b'{"id": 0}\n\n{"id": 1}\r\n{"id": 2}'


def archive(path: Path, members: Iterable[tuple[str, bytes]], *, form: int = tarfile.PAX_FORMAT) -> Path:
    """Write members as Lhotse does."""
    with tarfile.open(path, "w|", format=form) as file:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
    return path


def pairs(count: int, *, size: int = 700) -> list[tuple[str, bytes]]:
    """Members of a Shar field: payloads, and their manifests."""
    return [
        member
        for number in range(count)
        for member in ((f"sp0.9-{number}.flac", b"x" * (size + number)), (f"sp0.9-{number}.json", b"{}\n"))
    ]


def samples(count: int) -> list[tuple[str, bytes]]:
    """Members of WebDataset, three a sample."""
    return [
        (f"d/{number:04}.{field}", field.encode() * number)
        for number in range(count)
        for field in ("jpg", "json", "seg.png")
    ]


@pytest.fixture
def shar(tmp_path: Path) -> Path:
    folder = tmp_path / "shar"
    folder.mkdir()
    (folder / "cuts.000000.jsonl").write_bytes(b'{"id": "a"}\n{"id": "b"}\n')
    (folder / "text.000000.jsonl.gz").write_bytes(
        gzip.compress(b'{"cut_id": "a"}\n{"cut_id": "b"}\n', mtime=0)
    )
    archive(folder / "recording.000000.tar", pairs(2))
    return folder


def test_an_index_of_lines_is_that_of_lhotse_and_is_used(tmp_path: Path) -> None:
    for name, content in (("a.jsonl", LINES), ("b.json", b'{"id": 3}\n'), ("c.jsonl", b"")):
        path = tmp_path / name
        path.write_bytes(content)
        told = output("index", "--for", "lhotse", name, cwd=tmp_path).decode()
        assert (tmp_path / f"{name}.idx").read_bytes() == index_of_lines(content)
        records = content.count(b"\n") + (bool(content) and not content.endswith(b"\n"))
        assert told == f"{name}: {records} record{'s' * (records != 1)}; index of Lhotse in {path}.idx\n"
    assert [record["id"] for record in sk.open(tmp_path)] == [0, 1, 2, 3]
    assert not (tmp_path / "a.jsonl.idx.tmp").exists()


GOLDEN = {"lhotse": [0, 2560, 5120, 10240], "energon": [0, 2560, 5120, 7680]}
"""Of three pairs: a header, two blocks, a header and one block each; the file has 10,240 bytes."""


@pytest.mark.parametrize("tool", GOLDEN)
def test_an_index_of_pairs_is_that_of_the_tool(tmp_path: Path, tool: str) -> None:
    members = [
        (f"a{number}.{field}", b"x" * size)
        for number in range(3)
        for field, size in (("wav", 700), ("json", 3))
    ]
    path = archive(tmp_path / "a.tar", members)
    output("index", "--for", tool, path)
    assert np.fromfile(tmp_path / "a.tar.idx", "<u8").tolist() == GOLDEN[tool]


def test_a_folder_is_all_its_plain_files_and_says_what_is_left_out(shar: Path, tmp_path: Path) -> None:
    told = output("index", "--for", "lhotse", "shar/", cwd=tmp_path).decode()
    assert told == (
        "shar/: 4 records in 2 files, each with an index of Lhotse; 1 compressed file left out, which sk.open"
        " reads without\n"
    )
    assert sorted(path.name for path in shar.glob("*.idx")) == [
        "cuts.000000.jsonl.idx",
        "recording.000000.tar.idx",
    ]
    for path in shar.glob("*.idx"):
        path.unlink()
    document = json.loads(output("index", "--for", "lhotse", "-o", tmp_path / "new/idx", "--json", shar))
    assert [(each["path"], each["index"], each["records"]) for each in document["indexes"]] == [
        (str(shar / name), str(tmp_path / "new/idx" / f"{name}.idx"), 2)
        for name in ("cuts.000000.jsonl", "recording.000000.tar")
    ]
    assert document["compressed"] == [str(shar / "text.000000.jsonl.gz")]
    assert not list(shar.glob("*.idx"))
    assert output("index", "--for", "lhotse", "-q", shar) == b""
    assert output("index", "--for", "lhotse", f"shar:{shar}").startswith(
        f"shar:{shar}: 4 records in 2".encode()
    )


def test_energon_takes_the_archives_alone(tmp_path: Path) -> None:
    archive(tmp_path / "a.tar", samples(3))
    (tmp_path / "notes.jsonl").write_bytes(LINES)
    assert "3 records; index of Energon" in output("index", "--for", "energon", tmp_path).decode()
    assert len(np.fromfile(tmp_path / "a.tar.idx", "<u8")) == 4
    assert not (tmp_path / "notes.jsonl.idx").exists()


REFUSED = {
    "a compressed file": (["--for", "lhotse", "z.jsonl.gz"], 1, "is compressed"),
    "a folder of compressed files": (["--for", "lhotse", "packed"], 1, "compress_jsonl=False"),
    "lines for Energon": (["--for", "energon", "a.jsonl"], 1, "not an archive (.tar) by its name"),
    "another suffix": (["--for", "lhotse", "a.txt"], 1, "not one of .jsonl, .json, .ndjson, .tar"),
    "no pairs": (["--for", "lhotse", "samples.tar"], 1, "--for energon is of samples"),
    "one document": (["--for", "lhotse", "one.json"], 1, "one JSON document"),
    "no such tool": (["--for", "wids", "a.jsonl"], 2, "lhotse"),
    "a folder and no tool": (["-o", "x", "a.jsonl"], 2, "--index folder="),
    "keys": (["--for", "lhotse", "--key", "id", "a.jsonl"], 2, "--key is for the index of seekable"),
    "one name twice": (["--for", "lhotse", "-o", "x", "a.jsonl", "sub/a.jsonl"], 2, "under one name"),
    "no such file": (["--for", "lhotse", "b.jsonl"], 4, "b.jsonl"),
    "nothing in a folder": (["--for", "lhotse", "empty"], 4, "no data file"),
    "the index of StatelessSampler": (["--for", "lhotse", "text.jsonl"], 2, "StatelessSampler"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_has_no_such_index_is_refused_and_nothing_is_written(tmp_path: Path, kind: str) -> None:
    for folder in ("sub", "packed", "empty"):
        (tmp_path / folder).mkdir()
    for name in ("a.jsonl", "sub/a.jsonl", "a.txt", "text.jsonl"):
        (tmp_path / name).write_bytes(LINES)
    for name in ("z.jsonl.gz", "packed/a.jsonl.gz"):
        (tmp_path / name).write_bytes(gzip.compress(LINES))
    (tmp_path / "one.json").write_bytes(b'{\n "a": 1\n}\n')
    (tmp_path / "text.jsonl.idx").write_bytes(b"0\n10\n")
    archive(tmp_path / "samples.tar", samples(2))
    before = sorted(tmp_path.rglob("*"))
    arguments, code, message = REFUSED[kind]
    done = run("index", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, b"")
    assert message in done.stderr.decode()
    assert sorted(tmp_path.rglob("*")) == before


def test_a_damaged_archive_among_others_leaves_no_half_index(tmp_path: Path) -> None:
    for number in range(20):
        archive(tmp_path / f"{number:02}.tar", pairs(2))
    damaged = bytearray((tmp_path / "11.tar").read_bytes())
    damaged[600 + 1024] ^= 255
    (tmp_path / "11.tar").write_bytes(damaged)
    done = run("index", "--for", "lhotse", tmp_path)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"11.tar" in done.stderr
    written = list(tmp_path.glob("*.idx"))
    assert {path.stat().st_size for path in written} <= {24}
    assert tmp_path / "11.tar.idx" not in written
    assert not list(tmp_path.glob("*.tmp"))


def test_a_file_that_changes_meanwhile_leaves_the_old_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(LINES)
    (tmp_path / "a.jsonl.idx").write_bytes(numbers([5]))
    read = os.pread

    def changing(descriptor: int, count: int, offset: int) -> bytes:
        if not offset and count > 1 << 20:
            path.write_bytes(LINES + b"\n[]\n")
        return read(descriptor, count, offset)

    monkeypatch.setattr(os, "pread", changing)
    with pytest.raises(IndexStale, match="changed while"):
        write_index(str(path), "lhotse")
    assert (tmp_path / "a.jsonl.idx").read_bytes() == numbers([5])
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.jsonl", "a.jsonl.idx"]


def test_lines_over_several_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.jsonl"
    monkeypatch.setattr(other_indexes, "_CHUNK_BYTES", 7)
    for content in (b'{"a": 1}\n' * 9, b"[1]\n[2]" * 5, b"\n\n\n\n\n\n\n", b"1234567"):
        path.write_bytes(content)
        assert write_index(str(path), "lhotse").records == len(io.BytesIO(content).readlines())
        assert (tmp_path / "a.jsonl.idx").read_bytes() == index_of_lines(content)


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
@pytest.mark.parametrize("count", [0, 1, 5])
def test_an_index_of_samples_is_that_of_energon(tmp_path: Path, form: int, count: int) -> None:
    """As ``energon prepare`` makes it: the offset at each new key, and where tarfile stands at the end."""
    members = [("__meta__", b"1"), ("é/readme", b"no sample"), *samples(count), ("z" * 120 + ".txt", b"")]
    path = archive(tmp_path / "a.tar", members, form=form)
    expected, last = [], None
    with tarfile.open(path) as file:
        for member in file:
            found = re.fullmatch(r"((?:.*/|)[^.]+)[.]([^/]*)", member.name)
            if found and found.group(1) != last:
                last = found.group(1)
                expected.append(member.offset)
        expected.append(file.offset)
    assert write_index(str(path), "energon").records == count + 1
    assert (tmp_path / "a.tar.idx").read_bytes() == numbers(expected)


@pytest.mark.frameworks(name="lhotse")
def test_indexes_are_those_of_lhotse_byte_for_byte(tmp_path: Path, shar: Path) -> None:
    from lhotse.indexing import create_jsonl_index, create_shar_index, create_tar_index

    lines = {"a.jsonl": LINES, "b.jsonl": b"", "c.jsonl": b"\xef\xbb\xbf[1]\n", "d.jsonl": b"\n\n"}
    for name, content in lines.items():
        (tmp_path / name).write_bytes(content)
    names = ["é" * 9, "x" * 99, "x" * 100, "y" * 140, "plain", "a.b.c"]
    tars = {
        f"{form}-{count}-{size}.tar": (
            form,
            [
                (f"{names[n % 6]}{n}{suffix}", b"z" * size)
                for n in range(count)
                for suffix in (".wav", ".json")
            ],
        )
        for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT)
        for count in (0, 1, 7)
        for size in (0, 511, 8192)
    }
    for name, (form, members) in tars.items():
        archive(tmp_path / name, members, form=form)
    whole = (tmp_path / "2-7-511.tar").read_bytes()
    end = len(whole.rstrip(b"\0")) + 511 & -512
    (tmp_path / "unclosed.tar").write_bytes(whole[: end - 1024 + 512 * 2])
    (tmp_path / "one-block.tar").write_bytes(whole[:end] + bytes(512))
    (tmp_path / "long.tar").write_bytes(whole + bytes(20_480 + 512))
    for path in sorted([*tmp_path.glob("*.jsonl"), *tmp_path.glob("*.tar")]):
        theirs = tmp_path / "theirs.idx"
        create = create_tar_index if path.suffix == ".tar" else create_jsonl_index
        create(path, output_path=theirs)
        write_index(str(path), "lhotse")
        assert path.with_name(f"{path.name}.idx").read_bytes() == theirs.read_bytes(), path.name
    create_shar_index(shar, output_dir=tmp_path)
    output("index", "--for", "lhotse", shar)
    for index in shar.glob("*.idx"):
        assert index.read_bytes() == (tmp_path / index.name).read_bytes()
    assert len(list(shar.glob("*.idx"))) == 2
