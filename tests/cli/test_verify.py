from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from tests.cli.command import Corpus, output, run
from tests.formats.forager import write_data, write_index

if TYPE_CHECKING:
    from pathlib import Path


def rewrite(path: Path, offset: int, new: bytes) -> None:
    """Change bytes of a file, and neither its size nor its time."""
    status = path.stat()
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(new)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_good_data_is_told_in_a_line(corpus: Corpus) -> None:
    output("index", corpus.folder)
    told = output("verify", "corpus", cwd=corpus.folder.parent).decode()
    assert told.startswith("corpus: good: 120 records in 3 files, ")
    assert told.endswith("; compared size, time and both ends of each file, all of the index\n")
    deep = output("verify", "--deep", "--decode", corpus.folder).decode()
    assert deep.endswith("; compared every byte and every offset, and each record decoded\n")
    assert output("verify", "-q", corpus.folder) == b""


def test_files_whose_bytes_have_no_digest_are_told(tmp_path: Path) -> None:
    write_data(tmp_path, {"a.jsonl": b'{"id": 0}\n', "b.jsonl": b'{"id": 1}\n'})
    write_index(tmp_path, ["a.jsonl"])
    indexed = run("index", tmp_path)
    assert b"2 records in 2 files" in indexed.stdout
    assert b"the records of 1 of 2 files are found by Forager's index" in indexed.stderr
    deep = output("verify", "--deep", tmp_path).decode()
    assert deep.endswith(
        "every offset, and every byte but those of 1 file, whose offsets came from another index\n"
    )
    assert json.loads(output("verify", "--json", tmp_path))["from_other_indexes"] == 1
    assert json.loads(output("info", "--json", tmp_path))["index"]["from_other_indexes"] == 1
    assert b"; the offsets of 1 file came from another index\n" in output("info", tmp_path)
    assert output("verify", tmp_path).endswith(b"size, time and both ends of each file, all of the index\n")


def test_bad_data_exits_with_3_and_the_first_bad_file_and_offset(corpus: Corpus) -> None:
    output("index", corpus.folder)
    path = corpus.folder / "shard-1.jsonl"
    offset = len(corpus.lines[40]) + 1 + 5
    rewrite(path, offset, b"\n")
    done = run("verify", "--deep", corpus.folder)
    assert (done.returncode, done.stderr) == (3, b"")
    first, last = done.stdout.decode().splitlines()
    assert first.startswith(f"{path}, record 2, byte {offset + 1}: content: ")
    assert last.startswith(f"{corpus.folder}: 1 problem in 120 records")
    done = run("verify", "--deep", "--json", corpus.folder)
    assert (done.returncode, done.stderr) == (3, b"")
    told = json.loads(done.stdout)
    assert (told["good"], told["schema"], len(told["problems"])) == (False, 1, 1)
    first_bad = told["first_bad"]
    assert (first_bad["path"], first_bad["row"], first_bad["offset"]) == (str(path), 2, offset + 1)


def test_a_record_that_cannot_be_decoded_is_named(corpus: Corpus) -> None:
    path = corpus.folder / "shard-2.jsonl"
    rewrite(path, 0, b"[")
    output("index", corpus.folder)
    done = run("verify", "--decode", "--json", corpus.folder)
    first_bad = json.loads(done.stdout)["first_bad"]
    assert done.returncode == 3
    assert (first_bad["kind"], first_bad["path"], first_bad["row"], first_bad["offset"]) == (
        "record",
        str(path),
        0,
        0,
    )


def test_many_problems_are_cut_short_for_people_only(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number}.jsonl").write_bytes(b"{}\n")
    output("index", tmp_path)
    for number in range(30):
        (tmp_path / f"{number}.jsonl").write_bytes(b"{} \n")
    done = run("verify", tmp_path)
    assert done.returncode == 3
    lines = done.stdout.decode().splitlines()
    assert len(lines) == 22
    assert lines[20] == "and 10 more; --json lists all"
    assert len(json.loads(run("verify", tmp_path, "--json").stdout)["problems"]) == 30


def test_nothing_is_written_without_an_index(corpus: Corpus) -> None:
    done = run("verify", corpus.folder)
    assert done.returncode == 3
    assert b"there is no index; seekable index makes one" in done.stdout
    assert not (corpus.folder / ".seekable").exists()


def test_data_that_is_not_there_exits_with_4(tmp_path: Path) -> None:
    assert run("verify", tmp_path / "nothing").returncode == 4
