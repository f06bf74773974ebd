"""`seekable kaldi validate`: the problems of tables and data directories, and the repair of torn archives."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.command import output, run
from tests.cli.kaldi_tables import MATRICES, read_matrices, run_with_input, write_matrices

if TYPE_CHECKING:
    from pathlib import Path

VALIDATE = ("kaldi", "validate")
INT32 = ("--holder", "int32")
MATRIX = ("--holder", "matrix")


def problems_of(*arguments: str | Path, data: bytes | None = None, cwd: Path | None = None) -> list[Any]:
    """Return the problems, after a check of the exit code."""
    given = (*VALIDATE, *arguments, "--json")
    done = run(*given, cwd=cwd) if data is None else run_with_input(data, *given, cwd=cwd)
    document = json.loads(done.stdout)
    assert done.returncode == (0 if document["good"] else 3)
    problems: list[Any] = document["problems"]
    return problems


@pytest.mark.parametrize(
    "path", ["feats.ark", "feats.scp", "ark:feats.ark", "scp:feats.scp", "ark:cat feats.ark |"]
)
def test_a_good_table(tmp_path: Path, path: str) -> None:
    write_matrices(tmp_path)
    assert output(*VALIDATE, path, *MATRIX, cwd=tmp_path) == f"{path}: good: 6 entries\n".encode()
    assert problems_of(path, *MATRIX, cwd=tmp_path) == []


def test_a_table_without_entries_is_good() -> None:
    assert problems_of("ark:-", *INT32, data=b"") == []


def test_a_torn_table_names_the_entry_and_the_byte(tmp_path: Path) -> None:
    data = write_matrices(tmp_path).read_bytes()
    (problem,) = problems_of("ark:-", *MATRIX, data=data[:-5])
    assert (problem["kind"], problem["key"]) == ("torn", "utt5")
    assert "byte" in problem["message"]
    done = run_with_input(data[:-5], *VALIDATE, "ark:-", *MATRIX)
    assert done.returncode == 3
    assert done.stdout.endswith(b"ark:-: bad: 1 problem, 5 entries\n")


def test_a_torn_first_entry_is_a_problem() -> None:
    (problem,) = problems_of("ark:-", *MATRIX, data=b"utt1 \0BFM \4")
    assert problem["kind"] == "torn"


def test_a_command_that_fails_is_a_problem(tmp_path: Path) -> None:
    write_matrices(tmp_path)
    (problem,) = problems_of("ark:cat feats.ark; exit 3 |", *MATRIX, cwd=tmp_path)
    assert "exit code 3" in problem["message"]


def test_each_unreadable_entry_of_a_script_is_a_problem(tmp_path: Path) -> None:
    ark = write_matrices(tmp_path)
    lines = (tmp_path / "feats.scp").read_text().splitlines()
    lines[1:4] = ["utt1 missing.ark:5", f"utt2 {ark}:3", f"{lines[3]}[0:99]"]
    (tmp_path / "bad.scp").write_text("\n".join(lines))
    problems = problems_of("bad.scp", *MATRIX, cwd=tmp_path)
    assert [(each["kind"], each["key"]) for each in problems] == [
        ("unreadable", "utt1"),
        ("unreadable", "utt2"),
        ("unreadable", "utt3"),
    ]


def test_keys_out_of_order_are_problems_unless_they_are_accepted() -> None:
    data = b"b 1\na 2\nc 3\n"
    (problem,) = problems_of("ark:-", *INT32, data=data)
    assert (problem["kind"], problem["key"]) == ("unsorted", "a")
    assert problems_of("ark:-", *INT32, "--no-sort", data=data) == []


def test_keys_in_the_order_of_bytes_are_sorted() -> None:
    assert problems_of("ark:-", *INT32, data="B 1\na 1\né 1\nю 1\n".encode()) == []
    assert len(problems_of("ark:-", *INT32, data=b"a 1\nB 1\n")) == 1


def test_keys_that_occur_twice_are_problems(tmp_path: Path) -> None:
    problems = problems_of("ark:-", *INT32, data=b"a 1\na 2\nb 3\nb 3\n")
    assert [(each["kind"], each["key"]) for each in problems] == [("twice", "a"), ("twice", "b")]
    data = b"b 1\na 2\nb 3\nc 3\nc 4\na 5\n"
    (tmp_path / "a.ark").write_bytes(data)
    problems = problems_of(f"{tmp_path}/a.ark", *INT32, "--no-sort")
    assert [(each["kind"], each["key"]) for each in problems] == [
        ("twice", "c"),
        ("twice", "b"),
        ("twice", "a"),
    ]
    assert "entry 3 is that of entry 1" in problems[1]["message"]
    problems = problems_of("ark:-", *INT32, "--no-sort", data=data)
    assert [each["key"] for each in problems] == ["c", None]


def test_many_problems_are_counted() -> None:
    data = b"".join(b"k%03d 1\n" % number for number in range(40, 0, -1))
    done = run_with_input(data, *VALIDATE, "ark:-", *INT32)
    lines = done.stdout.splitlines()
    assert len(lines) == 22
    assert lines[20:] == [b"and 19 more; --json lists more of them", b"ark:-: bad: 39 problems, 40 entries"]
    assert len(problems_of("ark:-", *INT32, data=data)) == 39


def test_the_list_of_problems_does_not_grow_with_the_table() -> None:
    data = b"".join(b"k%05d 1\n" % number for number in range(3000, 0, -1))
    document = json.loads(run_with_input(data, *VALIDATE, "ark:-", *INT32, "--json").stdout)
    assert (document["problem_count"], len(document["problems"])) == (2999, 1000)


def test_commands_inside_a_script_must_be_allowed(tmp_path: Path) -> None:
    (tmp_path / "a.scp").write_text("a echo 5 |\n")
    done = run(*VALIDATE, "a.scp", *INT32, cwd=tmp_path)
    assert done.returncode == 1
    assert b"--pipes allow" in done.stderr
    assert problems_of("a.scp", *INT32, "--pipes", "allow", cwd=tmp_path) == []


def test_a_table_needs_a_holder_and_a_file(tmp_path: Path) -> None:
    assert run(*VALIDATE, "ark:echo a 1 |").returncode == 2
    assert run(*VALIDATE, tmp_path / "none.ark", *MATRIX).returncode == 4
    assert run(*VALIDATE, "ark:-", *MATRIX, "--script", "a.scp").returncode == 2


@pytest.mark.parametrize("path", ["feats.ark", "ark:feats.ark"])
def test_a_torn_archive_is_repaired(tmp_path: Path, path: str) -> None:
    ark = write_matrices(tmp_path)
    data = ark.read_bytes()
    ark.write_bytes(data[:-5])
    done = run(*VALIDATE, path, *MATRIX, "--repair", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout == f"{path}: good: 5 entries\n".encode()
    assert b"cut" in done.stderr
    assert b"5 entries are kept" in done.stderr
    assert list(read_matrices(f"ark:{ark}")) == list(MATRICES)[:5]
    again = run(*VALIDATE, path, *MATRIX, "--repair", cwd=tmp_path)
    assert again.stderr == b"seekable: feats.ark: not torn, nothing was cut\n"


def test_a_script_of_a_repaired_archive_is_repaired_with_it(tmp_path: Path) -> None:
    ark = write_matrices(tmp_path)
    ark.write_bytes(ark.read_bytes()[:-5])
    options = ("--repair", "--script", "feats.scp")
    done = run(*VALIDATE, "feats.ark", *MATRIX, *options, cwd=tmp_path)
    assert done.returncode == 0
    assert problems_of("feats.scp", *MATRIX, cwd=tmp_path) == []
    assert len((tmp_path / "feats.scp").read_text().splitlines()) == 5


def test_scripts_and_directories_are_not_repaired(tmp_path: Path) -> None:
    write_matrices(tmp_path)
    for path in ("feats.scp", "."):
        done = run(*VALIDATE, path, *MATRIX, "--repair", cwd=tmp_path)
        assert done.returncode == 2
        assert b"--repair cuts archives" in done.stderr


def write_directory(folder: Path, text: str) -> Path:
    """Write a data directory of two utterances."""
    data = folder / "train"
    data.mkdir()
    (data / "text").write_text(text)
    (data / "utt2spk").write_text("spk-a spk\nspk-b spk\n")
    (data / "spk2utt").write_text("spk spk-a spk-b\n")
    (data / "wav.scp").write_text("spk-a a.wav\nspk-b b.wav\n")
    return data


def test_a_good_directory(tmp_path: Path) -> None:
    data = write_directory(tmp_path, "spk-a good\nspk-b day\n")
    printed = output(*VALIDATE, data)
    assert printed.startswith(f"{data}: ".encode()) or b"warning" in printed
    assert [each for each in problems_of(data) if each["kind"] == "error"] == []
    assert problems_of(f"kaldi:{data}") == problems_of(data)


def test_a_bad_directory_names_file_and_line(tmp_path: Path) -> None:
    data = write_directory(tmp_path, "spk-b good\nspk-a day\n")
    (problem,) = [each for each in problems_of(data) if each["kind"] == "error"]
    assert (problem["path"], problem["line"]) == (str(data / "text"), 2)
    done = run(*VALIDATE, data)
    assert done.returncode == 3
    assert f"{data}/text, line 2: error: ".encode() in done.stdout
