"""Odd inputs through every reader and every command: only errors of ours come out.

An error of ours names the file; a command ends with a documented status and prints no traceback.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import tarfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.command import run
from tests.thrift import turns

import seekable as sk
from seekable.cli.exits import ExitCode
from seekable.errors import SeekableError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("uncollected")

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab\nsize 12345\n"
ODD_MEMBERS = {"\u00e9.txt": b"1", "b.json": b"[NaN]", "c.txt": b"\xff"}
DEEP = b"[" * 3000 + b"]" * 3000


def _parquet(rows: int = 600) -> bytes:
    sink = io.BytesIO()
    table = pa.table({"n": np.arange(rows) * 7919 % 10**9, "text": [f"text {row}" for row in range(rows)]})
    pq.write_table(table, sink, write_page_checksum=True, use_dictionary=False, data_page_size=2000)
    return sink.getvalue()


def _arrow() -> bytes:
    sink = io.BytesIO()
    table = pa.table({"n": range(9)})
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=3)
    return sink.getvalue()


def _tar(members: dict[str, bytes], encoding: str = "utf-8") -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=tarfile.GNU_FORMAT, encoding=encoding) as file:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            file.addfile(member, io.BytesIO(data))
    return sink.getvalue()


def _flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]


FILES: dict[str, tuple[str, bytes]] = {
    "nested deeply": ("a.jsonl", b'{"a": 1}\n{"a": ' + DEEP + b'}\n{"a": 3}\n'),
    "nested deeply at first": ("a.jsonl", DEEP + b'\n{"a": 1}\n'),
    "a number of 5,000 digits": ("a.jsonl", b"9" * 5000 + b'\n{"a": ' + b"9" * 5000 + b"}\n"),
    "half of a surrogate pair": ("a.jsonl", b'{"a": "\\ud800"}\n{"\\udfff": NaN}\n'),
    "two documents in a line": ("a.jsonl", b'{"a": 1}{"a": 2}\n\x00\n'),
    "latin-1": ("a.txt", "h\u00e9llo\n".encode("latin-1")),
    "ragged": ("a.csv", b'a,b\n1\n1,2,3\n"unclosed,1\n'),
    "a zero byte in a header": ("a.csv", b"a\x00,b\n1,2\n"),
    **{
        f"a pointer in place of {suffix}": (f"a.{suffix}", POINTER)
        for suffix in ("jsonl", "txt", "csv", "parquet", "arrow", "tar", "jsonl.gz")
    },
    **{
        f"{suffix} of no byte": (f"a.{suffix}", b"")
        for suffix in ("jsonl", "csv", "parquet", "arrow", "tar", "ark", "scp", "npy", "bin", "jsonl.zst")
    },
    "a cut gzip file": ("a.jsonl.gz", gzip.compress(b'{"a": 1}\n' * 99)[:-9]),
    "a cut Parquet file": ("a.parquet", _parquet()[:-100]),
    "marks without a footer": ("a.parquet", b"PAR1" + bytes(90) + b"PAR1"),
    "a damaged page": ("a.parquet", _flipped(_parquet(), 3000)),
    "a damaged footer": ("a.parquet", _flipped(_parquet(), -40)),
    "a cut Arrow file": ("a.arrow", _arrow()[:-30]),
    "a damaged batch": ("a.arrow", _flipped(_arrow(), 400)),
    "a cut tar file": ("a.tar", _tar({"a.txt": b"x" * 600})[:700]),
    "members of odd names": (
        "a.tar",
        _tar(ODD_MEMBERS, "latin-1"),
    ),
    "a member of deep JSON": ("a.tar", _tar({"a.json": DEEP, "b.json": b"{"})),
    "no archive": ("a.ark", b"\x00\x01\x02 no archive\n\n"),
    "a script to nowhere": ("a.scp", b"utt1 nowhere.ark:5\nutt2\n\xff\xfe x\n"),
    "an array without a header": ("a.npy", b"\x93NUMPY\x01\x00\xff\xff"),
}
"""The name and content of a file, by what is odd about it."""

COMMANDS = (
    ("info",),
    ("head", "--json"),
    ("get", "1"),
    ("sample",),
    ("verify", "--deep", "--decode"),
    ("index",),
    ("export", "out.jsonl", "--overwrite"),
    ("plot", "lengths"),
)


def asked_of(path: Path) -> str:
    """Return what a user would open: tables of Kaldi are named by their kind."""
    return f"{path.suffix[1:]}:{path}" if path.suffix in {".ark", ".scp"} else str(path)


@pytest.fixture(params=FILES)
def odd(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of a file that is odd, in the current folder."""
    name, data = FILES[request.param]
    (tmp_path / name).write_bytes(data)
    monkeypatch.chdir(tmp_path)
    return tmp_path / name


def read_all(asked: str, **options: Any) -> None:
    """Read a dataset in each way; all that may go wrong is an error of ours."""
    try:
        ds = sk.open(asked, **options, index=sk.Index(jobs=1))
    except sk.errors.InvalidArgument:  # an option that the format does not have
        return
    except SeekableError as error:
        assert os.path.basename(asked.partition(":")[2] or asked) in str(error)  # noqa: PT017 - any of ours
        return
    readers: list[Callable[[], object]] = [
        lambda: list(ds),
        lambda: ds[list(range(len(ds)))],
        lambda: list(ds.keys()),
        lambda: ds.columns,
        lambda: list(sk.Loader(ds, batch_size=2, collate=list, epochs=1)),
        lambda: sk.open(asked, key="id", **options, index=sk.Index(jobs=1)),
        lambda: (repr(ds), ds.explain(), ds._repr_html_()),
        *(lambda row=row: ds[row] for row in range(min(len(ds), 5))),
    ]
    for reader in readers:
        with contextlib.suppress(SeekableError):
            reader()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_readers_give_records_or_errors_of_ours(odd: Path) -> None:
    for options in ({}, {"decode": "bytes"}, {"decode": "arrow"}, {"errors": lambda _: sk.HOLE}):
        read_all(asked_of(odd), **options)


ORDER = dict(zip(FILES, turns([0, 3, 6, 1, 4, 7, 2, 5], len(FILES)), strict=True))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_commands_end_with_a_documented_status(odd: Path, request: pytest.FixtureRequest) -> None:
    for number in ORDER[request.node.callspec.params["odd"]]:
        first, *others = COMMANDS[number]
        given = [*others[:1], asked_of(odd)] if first == "plot" else [asked_of(odd), *others]
        done = run(first, *given)
        assert done.returncode in [*ExitCode]
        assert b"Traceback" not in done.stderr
        for line in done.stdout.splitlines() if "--json" in others else ():
            json.loads(line)
