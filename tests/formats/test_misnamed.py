"""Files whose first bytes say another compression, or another format, than their names."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from typing import TYPE_CHECKING

import numpy as np
import pytest

import seekable as sk
from seekable.errors import UnsupportedFormat
from seekable.storage.compression import zstd

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def zipped(data: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        file.writestr("a", data)
    return made.getvalue()


def archive() -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as file:
        for name in ("a.txt", "b.txt"):
            info = tarfile.TarInfo(name)
            info.size = 1
            file.addfile(info, io.BytesIO(b"x"))
    return made.getvalue()


def array() -> bytes:
    made = io.BytesIO()
    np.save(made, np.arange(8, dtype=np.uint16))
    return made.getvalue()


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": zstd().ZstdCompressor().compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "lz4": lambda data: b"\x04\x22\x4d\x18" + data,
    "zip": zipped,
}
LINES = b"u a.ark:2\nv a.ark:9\n"
CONTENTS = {"tar": archive(), "parquet": b"PAR1" + bytes(60) + b"PAR1"}
NAMES = ("jsonl", "txt", "csv", "tsv", "scp", "ark", "tar", "tgz", "parquet", "arrow", "bin", "npy")
COMPRESSED = ("jsonl.gz", "txt.zst", "csv.gz", "ark.gz", "tar.gz", "tar.zst")


def opened(path: Path) -> sk.Dataset:
    tokens, kaldi = sk.formats.Tokens(dtype="uint16"), sk.formats.Kaldi(holder="matrix")
    forms: dict[str, sk.formats.Format] = {"bin": tokens, "npy": tokens, "ark": kaldi, "scp": kaldi}
    return sk.open(path, format=forms.get(path.suffixes[0][1:]))


@pytest.mark.parametrize("packer", PACKERS)
def test_a_compression_that_the_name_does_not_say_is_named(tmp_path: Path, packer: str) -> None:
    packed = {content: PACKERS[packer](content) for content in (LINES, *CONTENTS.values())}
    for name in (*NAMES, *COMPRESSED):
        content = CONTENTS.get(name.partition(".")[0].replace("tgz", "tar"), LINES)
        path = tmp_path / f"{packer}.{name}"
        path.write_bytes(packed[content])
        if {"gz": "gzip", "tgz": "gzip", "zst": "zstd"}.get(path.suffix[1:]) == packer:
            continue
        with pytest.raises(UnsupportedFormat, match=rf"begins as a file compressed by {packer}.* once"):
            opened(path)


def test_the_name_that_it_should_have_is_that_of_a_file_that_opens(tmp_path: Path) -> None:
    for name, right in (("a.tar", "a.tar.gz"), ("b.tar.zst", "b.tar.gz")):
        path = tmp_path / name
        path.write_bytes(gzip.compress(CONTENTS["tar"]))
        with pytest.raises(UnsupportedFormat, match=f"rename it to '{tmp_path}/{right}'"):
            sk.open(path)
        assert len(sk.open(path.rename(tmp_path / right))) == 2


@pytest.mark.parametrize("name", COMPRESSED)
def test_a_compression_that_the_name_alone_says_is_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"a.{name}"
    path.write_bytes(CONTENTS["tar"] if "tar" in name else LINES)
    with pytest.raises(
        UnsupportedFormat, match=rf"is not compressed by .*rename it to .*a\.{path.suffixes[0][1:]}'"
    ):
        opened(path)


FOREIGN = {
    "tar": (archive(), "a tar file"),
    "parquet": (b"PAR1" + bytes(300), "a file of Parquet"),
    "arrow": (b"ARROW1" + bytes(300), "a file of Arrow"),
    "stream": (b"\xff\xff\xff\xff\x40\0\0\0" + bytes(300), "a stream of Arrow"),
    "npy": (array(), r"an array of NumPy \(\.npy\)"),
    "ark": (b"u \0BFM \4\1\0\0\0\4\1\0\0\0\0\0\0\0", "an archive of Kaldi"),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_file_of_another_format_is_named(tmp_path: Path, kind: str) -> None:
    content, words = FOREIGN[kind]
    own = {"stream": {"arrow"}, "npy": {"npy", "bin"}}.get(kind, {kind})
    for name in ("jsonl", "txt", "csv", "tsv", "scp", "ark", "tar", "parquet", "arrow", "bin", "txt.gz"):
        if name not in own:
            path = tmp_path / f"a.{name}"
            path.write_bytes(gzip.compress(content) if name == "txt.gz" else content)
            with pytest.raises(
                UnsupportedFormat, match=f"{words}, not .*its name misleads|no file of Arrow but Parq"
            ):
                opened(path) if name == "bin" else sk.open(path)
