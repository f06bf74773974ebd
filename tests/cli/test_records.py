"""get, head and sample: which records they print, and how."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from tests.cli import warm
from tests.cli.command import Corpus, documents, environment, output, run
from tests.cli.warm import SEEKABLE

import seekable as sk


def test_get_prints_lines_as_they_are_in_the_order_asked(corpus: Corpus) -> None:
    printed = output("get", corpus.folder, "119", "0", "-1", "45", "-120", "45")
    assert printed.splitlines() == [corpus.lines[row] for row in (119, 0, 119, 45, 0, 45)]


@pytest.mark.parametrize("path", ["corpus", "corpus/*.jsonl", "corpus/shard-1.jsonl"])
def test_a_path_is_a_folder_a_glob_or_a_file(corpus: Corpus, path: str) -> None:
    printed = output("get", path, "0", "--", "-1", cwd=corpus.folder.parent)
    lines = corpus.lines[40:80] if "shard-1" in path else corpus.lines
    assert printed.splitlines() == [lines[0], lines[-1]]


def test_a_line_that_is_no_json_is_printed_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"a": 1}\r\n{"torn\n\xff\xfe')
    assert output("get", tmp_path, "2", "1", "0") == b'\xff\xfe\n{"torn\n{"a": 1}\n'


def test_get_as_json_says_where_each_record_lies(corpus: Corpus) -> None:
    found = documents("get", corpus.folder, "41", "-120")
    assert [one["row"] for one in found] == [41, 0]
    assert [one["schema"] for one in found] == [1, 1]
    for one in found:
        assert one["record"] == json.loads(corpus.lines[one["row"]])
        where = one["location"]
        data = Path(where["path"]).read_bytes()
        assert data[where["offset"] :][: where["length"]] == corpus.lines[one["row"]]
    assert (found[0]["location"]["path"], found[0]["location"]["row"]) == (
        str(corpus.folder / "shard-1.jsonl"),
        1,
    )


def test_json_has_sorted_keys_and_the_bytes_of_the_record(tmp_path: Path) -> None:
    line = b'{"z": 1.10, "a": 123456789012345678901234567890}'
    (tmp_path / "a.jsonl").write_bytes(line)
    printed = output("get", "--json", tmp_path, "0")
    where = f'{{"length":{len(line)},"offset":0,"path":"{tmp_path}/a.jsonl","row":0}}'
    assert printed == f'{{"location":{where},"record":{line.decode()},"row":0,"schema":1}}\n'.encode()


@pytest.mark.parametrize("line", ['{"a": NaN}', '{"a": "\\ud800"}', '[1e999, "é"]'])
def test_what_only_python_takes_for_json_is_given_as_text(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.jsonl").write_text(line)
    (found,) = documents("get", tmp_path, "0")
    assert found["text"] == line
    assert "record" not in found


def test_a_corrupt_record_is_an_error_as_json_and_names_its_place(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"a": 1}\n{"torn\n')
    done = run("get", "--json", tmp_path, "1")
    assert (done.returncode, done.stdout) == (1, b"")
    error = json.loads(done.stderr)["error"]
    assert error["type"] == "CorruptRecord"
    assert error["location"] == {"path": str(tmp_path / "a.jsonl"), "row": 1, "offset": 9, "length": 6}


def test_lines_of_text_are_strings_in_json_also_in_quotes(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes('"Grüße"\n\n12\n'.encode())
    assert [one["record"] for one in documents("head", tmp_path)] == ['"Grüße"', "", "12"]


def test_format_reads_a_file_of_any_name(tmp_path: Path) -> None:
    (tmp_path / "notes.log").write_bytes(b"one\n\n{\n")
    assert output("head", tmp_path / "notes.log", "--format", "text") == b"one\n\n{\n"


@pytest.mark.parametrize(
    ("count", "printed"), [([], 5), (["-n", "0"], 0), (["-n", "70"], 70), (["-n", "1000"], 120)]
)
def test_head_prints_the_first_records(corpus: Corpus, count: list[str], printed: int) -> None:
    assert output("head", corpus.folder, *count).splitlines() == corpus.lines[:printed]


def test_sample_is_the_start_of_a_shuffle(corpus: Corpus) -> None:
    shuffled = list(sk.open(corpus.folder, decode="bytes").shuffle(seed=7))
    printed = output("sample", corpus.folder, "-n", "100", "--seed", "7").splitlines()
    assert printed == shuffled[:100]
    assert printed == output("sample", corpus.folder, "-n", "100", "--seed", "7").splitlines()
    assert sorted(shuffled) == sorted(corpus.lines)


def test_sample_has_twenty_records_of_seed_zero_by_default(corpus: Corpus) -> None:
    shuffled = sk.open(corpus.folder, decode="bytes").shuffle(seed=0)
    assert output("sample", corpus.folder).splitlines() == list(shuffled[:20])
    found = documents("sample", corpus.folder)
    assert [corpus.lines[one["row"]] for one in found] == list(shuffled[:20])


def test_an_empty_dataset_has_nothing_to_print(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").touch()
    assert output("head", tmp_path) == output("sample", tmp_path, "--json") == b""


def test_a_reader_that_has_seen_enough_ends_the_command_quietly(tmp_path: Path) -> None:
    rows = 200_000  # more than a pipe holds
    (tmp_path / "a.txt").write_bytes(b"a line of text\n" * rows)
    script = f'set -o pipefail; "{SEEKABLE}" head -n {rows} "{tmp_path}" | head -n 1'
    done = subprocess.run(["bash", "-c", script], env=environment(), capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"a line of text\n", b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_output_that_cannot_be_written_is_a_failure(corpus: Corpus) -> None:
    with open("/dev/full", "wb") as full:
        done = warm.run(["head", str(corpus.folder)], environment=environment(), stdout=full.fileno())
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)
    assert b"No space left" in done.stderr


@pytest.mark.parametrize(("delimiter", "given"), [(";", ";"), ("\t", r"\t"), ("\x01", r"\x01")])
def test_what_a_message_says_of_a_delimiter_can_be_typed(tmp_path: Path, delimiter: str, given: str) -> None:
    (tmp_path / "a.csv").write_text(f"a{delimiter}b\n1{delimiter}2\n", encoding="utf-8")
    done = run("head", "a.csv", "--json", cwd=tmp_path)
    (told,) = re.findall(r"say (--set '[^']*')", json.loads(done.stderr)["error"]["message"])
    assert shlex.split(told) == ["--set", f"delimiter={given}"]
    assert documents("head", "a.csv", *shlex.split(told), cwd=tmp_path)[0]["record"] == {"a": "1", "b": "2"}
