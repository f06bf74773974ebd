"""How commands fail: the exit code, one message on stderr, nothing on stdout."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import typer
from tests.cli.command import Corpus, built_command, documents, run, run_fork, run_process
from tests.thrift import sample

from seekable.cli.exits import errors_told, in_options
from seekable.cli.main import app
from seekable.remote.stores.storage_options import options_in_words

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from subprocess import CompletedProcess

FAILURES: list[tuple[str, list[str], int, str]] = [
    ("a folder that is not there", ["head", "no/such"], 4, "DataNotFound"),
    ("a row too far", ["get", "corpus", "0", "120"], 4, "OutOfRange"),
    ("a row too far from the end", ["get", "corpus", "-121"], 4, "OutOfRange"),
    ("two formats", ["info", "both"], 1, "UnsupportedFormat"),
    ("a compressed file", ["index", "packed.jsonl"], 1, "UnsupportedFormat"),
    ("a format that nobody knows", ["head", "corpus", "--format", "xml"], 2, "InvalidArgument"),
    ("no process at all", ["index", "corpus", "--jobs", "0"], 2, "UsageError"),
    ("a seed below 0", ["sample", "corpus", "--seed", "-1"], 2, "InvalidArgument"),
    ("a count below 0", ["head", "corpus", "-n", "-1"], 2, "UsageError"),
    ("a row that is no number", ["get", "corpus", "five"], 2, "UsageError"),
    ("an option that nobody knows", ["get", "corpus", "--raw", "5"], 2, "UsageError"),
    ("no row", ["get", "corpus"], 2, "UsageError"),
    ("no path", ["index"], 2, "UsageError"),
    ("a folder to verify that is not there", ["verify", "no/such"], 4, "DataNotFound"),
    ("two formats to verify", ["verify", "both"], 1, "UnsupportedFormat"),
    ("a state that is not there", ["plan", "no/such"], 4, "DataNotFound"),
    ("a state to show that is not there", ["state", "show", "no/such"], 4, "DataNotFound"),
    ("a state that is none", ["state", "show", "corpus/shard-0.jsonl"], 1, "CorruptState"),
    ("no command of state", ["state", "shw"], 2, "UsageError"),
    ("a tool that nobody knows", ["index", "corpus", "--for", "grep"], 2, "UsageError"),
    ("a field that no format has", ["head", "corpus", "--set", "separator=;"], 2, "InvalidArgument"),
    (
        "a field of another format",
        ["head", "x", "--format", "csv", "--set", "dtype=x"],
        2,
        "InvalidArgument",
    ),
    ("a field that no index has", ["head", "corpus", "--index", "dir=x"], 2, "InvalidArgument"),
    ("no field at all", ["head", "corpus", "--index", "x"], 2, "InvalidArgument"),
    ("a truth that is none", ["head", "corpus", "--storage", "refresh=no"], 2, "InvalidArgument"),
    ("a count that is none", ["head", "corpus", "--index", "most_bytes=all"], 2, "InvalidArgument"),
    ("a command that is no more", ["pack", "corpus", "-L", "8"], 2, "UsageError"),
    ("a command of other tools", ["stats", "corpus"], 2, "UsageError"),
    ("an option that is no more", ["head", "corpus", "--no-progress"], 2, "UsageError"),
    ("a doctor of nothing", ["doctor", "no/such"], 4, "DataNotFound"),
    ("no such command", ["indx", "corpus"], 2, "UsageError"),
]
CASES = pytest.mark.parametrize(
    ("arguments", "code", "kind"), [case[1:] for case in FAILURES], ids=[case[0] for case in FAILURES]
)


@pytest.fixture
def folder(corpus: Corpus) -> Path:
    """Where the paths of the failures are."""
    folder = corpus.folder.parent
    (folder / "both").mkdir()
    (folder / "both" / "a.jsonl").touch()
    (folder / "both" / "a.txt").touch()
    (folder / "packed.jsonl").write_bytes(b"\x1f\x8b\x08" + bytes(100))
    return folder


@CASES
def test_a_failure_has_its_code_and_a_message(
    folder: Path, arguments: list[str], code: int, kind: str
) -> None:
    done = run(*arguments, cwd=folder)
    assert (done.returncode, done.stdout) == (code, b"")
    start = b"Usage: seekable" if kind == "UsageError" else b"seekable: "
    assert done.stderr.startswith(start)
    assert b"Traceback" not in done.stderr


@CASES
def test_a_failure_is_told_as_json_too(folder: Path, arguments: list[str], code: int, kind: str) -> None:
    done = run(*arguments, "--json", cwd=folder)
    assert (done.returncode, done.stdout) == (code, b"")
    told = json.loads(done.stderr)
    assert told["schema"] == 1
    assert (told["error"]["exit_code"], told["error"]["type"]) == (code, kind)
    assert told["error"]["message"]


ONE_OF_EACH_CODE: list[tuple[list[str], int]] = [
    (["get", "corpus", "5"], 0),
    (["info", "both", "--json"], 1),
    (["get", "corpus", "five"], 2),
    (["verify", "corpus"], 3),
    (["head", "no/such"], 4),
]
MANNERS = [
    *[(run_fork, *case) for case in ONE_OF_EACH_CODE],
    *[(run_process, *case) for case in sample(ONE_OF_EACH_CODE, of=4)],
]


@pytest.mark.parametrize(
    ("start", "arguments", "code"), MANNERS, ids=[f"{case[0].__name__}-{case[2]}" for case in MANNERS]
)
def test_a_process_of_its_own_prints_and_ends_as_the_command_does_here(
    folder: Path, start: Callable[..., CompletedProcess[bytes]], arguments: list[str], code: int
) -> None:
    here, there = run(*arguments, cwd=folder), start(*arguments, cwd=folder)
    assert here.returncode == there.returncode == code
    assert (here.stdout, here.stderr) == (there.stdout, there.stderr)


def test_nothing_is_printed_when_one_of_the_rows_is_not_there(corpus: Corpus) -> None:
    rows = [str(row) for row in range(100)]
    done = run("get", corpus.folder, *rows, "120")
    assert (done.returncode, done.stdout) == (4, b"")


def test_a_file_named_like_an_option_follows_two_dashes(corpus: Corpus) -> None:
    (corpus.folder / "--json").write_bytes(b"one\n")
    done = run("get", "--format", "text", "--", "--json", "9", cwd=corpus.folder)
    assert (done.returncode, done.stderr[:10]) == (4, b"seekable: ")


def test_data_that_changed_meanwhile_is_no_failure_but_indexed_again(corpus: Corpus) -> None:
    assert documents("info", corpus.folder)[0]["records"] == 120
    with open(corpus.folder / "shard-2.jsonl", "ab") as file:
        file.write(b"{}\n")
    (info,) = documents("info", corpus.folder)
    assert (info["records"], info["index"]["files_indexed"]) == (121, 1)


def test_messages_name_the_options_of_the_command_that_runs() -> None:
    command = built_command(app)
    message = "replace it with overwrite=True; check_code=False, index_dir= or other= (x.overwrite=True)"
    found = in_options(message, command, ["export", "a", "b"])
    assert (
        found == "replace it with --overwrite; check_code=False, --index folder= or other= (x.overwrite=True)"
    )
    assert "overwrite=True" in in_options(message, command, ["info", "export"])
    assert in_options("a=1 indexdir=x", command, ["info"]) == "a=1 indexdir=x"
    for told, arguments, options in (
        ("say format=sk.formats.Kaldi(holder='token'), or", ["kaldi", "head"], "say --holder token, or"),
        ("only with pipes='allow': a", ["kaldi", "copy"], "only with --pipes allow: a"),
        ("with sk.Index(folder=), or jobs=1", ["head"], "with --index folder=, or jobs=1"),
        ("index=sk.Index(publish=True) puts", ["index"], "--publish puts"),
        ("give " + options_in_words("{'region': 'x'}") + " to", ["get"], "give --storage region='x' to"),
        ('sk.open(..., key="id"), or', ["get"], "--key id, or"),
        (
            "say format=sk.formats.Tar(group='key', f=g)",
            ["get"],
            "say format=sk.formats.Tar(group='key', f=g)",
        ),
        ("sk.formats.Tar(group='key', missing='none')", ["get"], "--set group=key --set missing=none"),
        ("say format=sk.formats.Kaldi(holder='token'), or", ["get"], "say --set holder=token, or"),
        ("sk.open(..., storage=sk.Storage(refresh=False)) lists", ["head"], "--storage refresh=false lists"),
        ("with sk.Index(allow='a', folder=...):", ["head"], "with --index allow=a --index folder=VALUE:"),
        ("say sk.formats.Csv(delimiter=';'), or", ["head"], "say --set 'delimiter=;', or"),
        ("say sk.formats.Csv(delimiter='\\t'), or", ["head"], r"say --set 'delimiter=\t', or"),
        ("or seed=3, `key=`", ["sample"], "or --seed 3, `key=`"),
    ):
        assert in_options(told, command, arguments) == options


def test_a_part_of_seekable_that_is_not_installed_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    missing = ModuleNotFoundError("No module named 'seekable.viewer'", name="seekable.viewer")
    with pytest.raises(typer.Exit) as raised, errors_told(["view"], built_command(app)):
        raise missing
    assert raised.value.exit_code == 1
    assert "needs seekable.viewer, which is not installed" in capsys.readouterr().err


def test_a_corrupt_record_names_nothing_that_only_a_program_can_do(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n{"a":\n')
    done = run("export", tmp_path / "a.jsonl", tmp_path / "out.parquet")
    assert done.returncode == 1
    assert done.stderr.endswith(b"`tail -c +10 FILE | head -c 5`, mend the file\n")


@pytest.mark.parametrize("command", [("info",), ("head", "--json"), ("verify", "--deep"), ("plot", "files")])
def test_no_name_steers_a_terminal(command: tuple[str, ...], tmp_path: Path) -> None:
    steering = "\x1b[2J\r\u202e\x9b\x7f"
    path = tmp_path / f"a{steering}.jsonl"
    path.write_text('{"a": 1}\n')
    for target in (path, f"no{steering}"):
        done = run(command[0], *command[1:], target) if command[0] != "plot" else run(*command, target)
        said = (done.stdout + done.stderr).decode()
        shown = set(steering) - set("[2J") & set(said)
        assert not shown or ("--json" in command and shown <= set("\u202e\x9b\x7f"))
