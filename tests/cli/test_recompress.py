"""``seekable recompress`` writes the same records anew, and harms nothing."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import zstandard
from tests.cli.command import Corpus, documents, in_terminal, output, run

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path


def test_files_are_written_beside_the_old_ones(corpus: Corpus) -> None:
    content = b"".join(line + b"\n" for line in corpus.lines)
    (corpus.folder / "all.jsonl.gz").write_bytes(gzip.compress(content))
    names = ["shard-0.jsonl", "all.jsonl.gz"]
    (told,) = documents("recompress", *names, cwd=corpus.folder)
    assert [(each["path"], each["output"]) for each in told["files"]] == [
        ("shard-0.jsonl", "shard-0.jsonl.zst"),
        ("all.jsonl.gz", "all.jsonl.zst"),
    ]
    written = corpus.folder / "all.jsonl.zst"
    assert told["files"][1] == {
        "path": "all.jsonl.gz",
        "output": "all.jsonl.zst",
        "frames": 1,
        "content_bytes": len(content),
        "bytes": written.stat().st_size,
        "bytes_before": (corpus.folder / "all.jsonl.gz").stat().st_size,
        "seconds": told["files"][1]["seconds"],
    }
    assert list(sk.open(written, decode="bytes")) == corpus.lines
    assert output("get", written, "7") == corpus.lines[7] + b"\n"


def test_another_folder_takes_what_would_be_overwritten(corpus: Corpus) -> None:
    one = corpus.folder / "one.jsonl.zst"
    one.write_bytes(zstandard.compress(b"{}\n" * 9))
    refused = run("recompress", "--json", corpus.folder / "shard-0.jsonl", one)
    assert refused.returncode == 2
    assert "--to" in json.loads(refused.stderr)["error"]["message"]
    assert not (corpus.folder / "shard-0.jsonl.zst").exists(), "all is checked before anything is done"
    new = corpus.folder / "new"
    assert run("recompress", one, "--to", new).returncode == 2
    new.mkdir()
    line = output("recompress", one, "--to", new, "--level", "19").decode()
    assert line.startswith(f"{new / one.name}: 1 frame, ")
    assert len(sk.open(new / one.name)) == 9
    assert run("recompress", one, one, "--to", new).returncode == 2


def test_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    assert run("recompress", tmp_path / "no.jsonl").returncode == 4
    assert run("recompress", tmp_path).returncode == 4


def test_damaged_files_are_told_and_leave_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b"{}\n" * 1000)[:-4])
    done = run("recompress", tmp_path / "a.jsonl.gz")
    assert done.returncode == 1
    assert b"cannot be decompressed as gzip" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl.gz"]


def test_a_terminal_sees_how_far_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "good day"}\n' * 100_000)
    with in_terminal("recompress", tmp_path / "a.jsonl") as process:
        code, seen = process.finish()
    assert code == 0
    assert b"recompressing" in seen
    assert b"3 frames" in seen
