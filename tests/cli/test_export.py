"""``seekable export`` writes data and pipelines as other files, goes on, and says what it did."""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import tarfile
from typing import TYPE_CHECKING

import pytest
from tests.cli import warm
from tests.cli.command import AT_ONCE, Corpus, documents, environment, in_terminal, output, run, run_fork

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path


def test_lines_become_parquet_and_parquet_becomes_lines(corpus: Corpus, tmp_path: Path) -> None:
    records = [json.loads(line) for line in corpus.lines]
    told = output("export", corpus.folder, "out", "--rows-per-file", "50", cwd=tmp_path).decode()
    assert re.fullmatch(r"out: 120 rows in 3 files, [\d.,]+ k?(B|bytes)\n", told)
    assert list(sk.open(tmp_path / "out")) == records
    (document,) = documents("export", "out", "lines", "--as", "jsonl", "--compression", "zst", cwd=tmp_path)
    path = str(tmp_path / "lines" / "part-00000-of-00001.jsonl.zst")
    assert document == {
        "schema": 1,
        "folder": "lines",
        "paths": [path],
        "files": 1,
        "files_kept": 0,
        "rows": 120,
        "holes": 0,
        "bytes": os.path.getsize(path),
    }
    assert list(sk.open(tmp_path / "lines")) == records


def test_records_become_samples_of_one_tar_file_by_its_suffix(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"__key__": "x/1", "txt": "one"}\n{"txt": "two"}\n', encoding="utf-8")
    output("export", "a.jsonl", "out.tar", cwd=tmp_path)
    with tarfile.open(tmp_path / "out.tar") as file:
        assert file.getnames() == ["x/1.txt", "000000001.txt"]


def test_folders_become_columns(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "year=2024"
    folder.mkdir(parents=True)
    (folder / "a.jsonl").write_text('{"id": 1}\n', encoding="utf-8")
    output("export", "data", "out", "--set", "partitions=hive", cwd=tmp_path)
    assert list(sk.open(tmp_path / "out")) == [{"id": 1, "year": 2024}]
    assert (
        b"partitions must be 'hive'"
        in run("export", "data", "o", "--set", "partitions=x", cwd=tmp_path).stderr
    )


def test_the_same_command_keeps_what_is_there(corpus: Corpus, tmp_path: Path) -> None:
    command = ("export", corpus.folder, tmp_path / "out", "--as", "jsonl", "--rows-per-file", "50")
    output(*command)
    (tmp_path / "out" / "part-00001-of-00003.jsonl").unlink()
    assert b"; 2 files of them from an earlier run" in output(*command)
    assert output(*command, "--quiet") == b""


def test_another_command_is_refused_unless_it_may_overwrite(corpus: Corpus, tmp_path: Path) -> None:
    command = ("export", corpus.folder, tmp_path / "out", "--as", "jsonl")
    output(*command)
    refused = run(*command, "--shuffle", "7", "--json")
    assert refused.returncode == 3
    error = json.loads(refused.stderr)["error"]
    assert error["type"] == "StateMismatch"
    assert "with --overwrite" in error["message"]
    output(*command, "--shuffle", "7", "--overwrite")
    assert list(sk.open(tmp_path / "out")) == list(sk.open(corpus.folder).shuffle(seed=7))


def test_lines_of_text_are_a_column(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("a\nb\n")
    output("export", tmp_path / "notes.txt", tmp_path / "out", "--compression", "none")
    assert list(sk.open(tmp_path / "out")) == [{"text": "a"}, {"text": "b"}]
    output("export", tmp_path / "notes.txt", tmp_path / "lines", "--as", "jsonl")
    assert list(sk.open(tmp_path / "lines")) == ["a", "b"]


PIPELINE = """
import seekable as sk
def make():
    print("hello")
    return sk.from_sequence(range(1000)).map(lambda n: sk.HOLE if n % 100 == 0 else {"n": n})
def number():
    return 3
"""


def test_a_pipeline_is_what_a_function_returns(tmp_path: Path) -> None:
    (tmp_path / "pipe.py").write_text(PIPELINE)
    done = run("export", "pipe:make", "out", "--jobs", "2", "--rows-per-file", "300", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"hello\n")
    assert done.stdout.startswith(b"out: 990 rows in 4 files, ")
    assert done.stdout.endswith(b"; 10 holes left out\n")
    assert [record["n"] for record in sk.open(tmp_path / "out")] == [n for n in range(1000) if n % 100]
    wrong = run("export", "pipe:number", "other", cwd=tmp_path)
    assert wrong.returncode == 1
    assert b"must return a Dataset or a Stream (got int)" in wrong.stderr
    assert run("export", "pipe:nothing", "other", cwd=tmp_path).returncode == 4


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["nowhere.jsonl", "out"], 4, b"nowhere.jsonl"),
        (["corpus", "corpus"], 2, b"holds data that was not written"),
        (["corpus", "out", "--as", "csv"], 2, b"--as must be one of parquet, jsonl"),
        (["corpus", "out", "--as", "jsonl", "--compression", "snappy"], 2, b"compression must be"),
        (["corpus", "out", "--rows-per-file", "0"], 2, b"--rows-per-file"),
        (["corpus"], 2, b"FOLDER"),
    ],
)
def test_wrong_usage_is_told(
    arguments: list[str], code: int, says: bytes, corpus: Corpus, tmp_path: Path
) -> None:
    done = run("export", *arguments, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert done.stdout == b""
    assert not (tmp_path / "out").exists()
    assert corpus.folder.exists()


def test_a_record_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"n": 1}\n{"n": "one"}\n')
    done = run("export", "a.jsonl", "out", cwd=tmp_path)
    assert done.returncode == 1
    assert b"row 1 (record 1 of " in done.stderr
    assert b"a.jsonl, at byte 9)" in done.stderr
    assert not (tmp_path / "out").exists()


SLOW = """
import os, sys
import seekable as sk
def told(number):
    if number % 100 == 50:
        os.write(2, b"at work ")
    return {"n": number}
def make():
    return sk.from_sequence(range(10_000)).map(told, version=1)
"""


def test_after_an_interrupt_the_same_command_goes_on(tmp_path: Path) -> None:
    (tmp_path / "pipe.py").write_text(SLOW)
    command = ["export", "pipe:make", str(tmp_path / "out"), "--as", "jsonl", "--jobs", "1"]
    command += ["--rows-per-file", "100"]
    reader, writer = os.pipe()
    with open(reader, "rb", buffering=0) as told, open(os.devnull, "r+b") as nothing:
        process = warm.start(
            command,
            cwd=tmp_path,
            environment=environment(),
            stdin=nothing.fileno(),
            stdout=nothing.fileno(),
            stderr=writer,
        )
        os.close(writer)
        seen = b""
        while seen.count(b"at work") < 5:
            some = told.read(8)
            assert some, seen
            seen += some
        process.send_signal(signal.SIGINT)
        while some := told.read(1 << 16):
            seen += some
    assert process.wait() == 130
    assert b"interrupted; the files that are written are kept, and the same command goes on" in seen
    done = run_fork(*command, cwd=tmp_path)
    assert done.returncode == 0
    found = re.search(rb"; (\d+) files? of them from an earlier run", done.stdout)
    assert found
    assert 2 <= int(found[1]) < 100
    assert [record["n"] for record in sk.open(tmp_path / "out")] == list(range(10_000))


# Longer than the time between two calls of the progress hook.
LONG = """
import time
import seekable as sk
def told(number):
    until = time.monotonic() + 0.3 if number == 100 else 0
    while time.monotonic() < until:
        pass
    return {"n": number}
def make():
    return sk.from_sequence(range(2_000)).map(told, version=1)
"""


def test_a_terminal_sees_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pipe.py").write_text(LONG)
    monkeypatch.chdir(tmp_path)
    command = ("export", "pipe:make", "out", "--as", "jsonl", "--jobs", "1")
    with in_terminal(*command, more=AT_ONCE) as process:
        code, seen = process.finish()
    assert code == 0
    assert b"writing" in seen
    assert b"out: 2,000 rows in 1 file" in seen


STREAM = """
import seekable as sk
def rows(n):
    return [{"n": n, "half": half} for half in range(n % 3)]
def make():
    return sk.from_sequence(range(100)).shuffle(seed=1).stream(lanes=4, epochs=1).flatten(rows)
def endless():
    return sk.from_sequence(range(100)).stream()
"""


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_stream_is_what_a_function_returns(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"streamed_{form}.py").write_text(STREAM)
    monkeypatch.syspath_prepend(tmp_path)
    module = f"streamed_{form}"
    wanted = list(importlib.import_module(module).make())
    command = ("export", f"{module}:make", "out", "--as", form, "--rows-per-file", "30", "--jobs", "1")
    (document,) = documents(*command, cwd=tmp_path)
    assert (document["rows"], document["files_kept"]) == (99, 0)
    assert os.path.basename(document["paths"][0]) == f"part-00000.{form}"
    assert list(sk.open(tmp_path / "out")) == wanted
    (again,) = documents(*command, cwd=tmp_path)
    assert again == {**document, "files_kept": document["files"]}


def test_a_stream_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pipe.py").write_text(STREAM)
    endless = run("export", "pipe:endless", "out", cwd=tmp_path)
    assert (endless.returncode, endless.stdout) == (1, b"")
    assert b"epochs=1" in endless.stderr
    shuffled = run("export", "pipe:make", "out", "--shuffle", "1", cwd=tmp_path)
    assert shuffled.returncode == 2
    assert b"--shuffle is for datasets" in shuffled.stderr
    assert not (tmp_path / "out").exists()


def test_a_path_with_a_suffix_is_one_file_of_that_format(corpus: Corpus, tmp_path: Path) -> None:
    records = [json.loads(line) for line in corpus.lines]
    for name in ("one.jsonl", "one.jsonl.gz", "one.parquet"):
        (document,) = documents("export", corpus.folder, name, cwd=tmp_path)
        assert document["paths"] == [str(tmp_path / name)]
        assert list(sk.open(tmp_path / name)) == records
    refused = run("export", corpus.folder, "two.jsonl", "--rows-per-file", "9", cwd=tmp_path)
    assert refused.returncode == 2
    assert b"rows_per_file is for a folder of files" in refused.stderr
    refused = run("export", corpus.folder, "two.jsonl", "--as", "parquet", cwd=tmp_path)
    assert refused.returncode == 2
    assert b"a Parquet file is named *.parquet" in refused.stderr
