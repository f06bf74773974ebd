from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import typer
from tests.cli.command import built_command, environment, output, run, run_fork
from tests.cli.warm import SEEKABLE

import seekable
import seekable as sk
from seekable.cli.exits import ExitCode
from seekable.cli.main import app
from seekable.cli.shared_options import EVERYWHERE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COMMANDS = [
    *("index", "info", "verify", "export", "recompress", "tokenize", "kaldi"),
    *("bench", "plan", "simulate", "state"),
    *("get", "head", "sample", "view", "plot"),
    *("doctor", "cache"),
]
GROUPS = [["state"], ["kaldi"], ["cache"]]
KALDI = ["copy", "head", "shapes", "validate", "to-parquet", "from-jsonl"]
PAGES = [[command] for command in COMMANDS] + [
    ["state", "show"],
    ["state", "diff"],
    ["cache", "ls"],
    ["cache", "rm"],
]
PAGES += [["kaldi", command] for command in KALDI]


def test_help_names_the_commands_and_the_exit_codes() -> None:
    page = output("--help").decode()
    groups, told = ["Data", "A run", "Look", "This machine"], page.partition("\nData:")[1:]
    assert re.findall(r"^  (\w+)  \s*[A-Z]", "".join(told), re.MULTILINE) == COMMANDS
    assert re.findall(r"^(\w[\w ]+):", "".join(told), re.MULTILINE) == groups
    for code in ExitCode:
        assert re.search(rf"^    {code.value}  ", page, re.MULTILINE)


@pytest.mark.parametrize("command", PAGES, ids=" ".join)
def test_each_command_has_examples_that_name_only_options_it_has(command: list[str]) -> None:
    page = output(*command, "--help").decode()
    options, _, examples = page.partition("Exit codes:")[0].partition("Examples:")
    assert f"seekable {' '.join(command)}" in examples
    quoted = re.compile("'[^'\\n]*'")  # commands of a shell, in specifiers of Kaldi
    ours = [line.partition(" | ")[0] for line in quoted.sub("", examples).splitlines()]
    for option in re.findall(r" (--?[a-z][a-z-]*)", "\n".join(ours)):
        assert re.search(rf"^  (-\w, )?{option}\b", options, re.MULTILINE), option


def test_each_command_can_print_json() -> None:
    without = [page for page in PAGES if page not in GROUPS and b"--json" not in output(*page, "--help")]
    assert without == []


def test_what_each_command_does_fits_on_its_line() -> None:
    assert "..." not in output("--help").decode().partition("\nData:")[2].partition("Examples:")[0]


HEAVY = """
import contextlib, io, json, sys
from seekable.cli.main import main
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["seekable", *arguments]
    with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.suppress(SystemExit):
        main()
    heavy = {"msgspec", "numpy", "rich", "xxhash"} & set(sys.modules)
    assert shown.getvalue() and not heavy, (arguments, heavy)
"""


def test_help_waits_for_nothing_heavy() -> None:
    pages = [["--help"], *([*page, "--help"] for page in PAGES), ["--version"]]
    subprocess.run([sys.executable, "-c", HEAVY, json.dumps(pages)], check=True)


def test_version() -> None:
    assert output("--version").decode() == f"seekable {seekable.__version__}\n"


def test_without_a_command_help_is_shown_as_wrong_usage() -> None:
    done = run()
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"Usage: seekable ")


def test_a_bug_keeps_its_traceback() -> None:
    code = (
        "import sys, seekable.cli.data_argument as opening; from seekable.cli.main import main\n"
        "opening.open_dataset = None\n"
        "sys.argv = ['seekable', 'head', 'x']; main()"
    )
    done = run_fork(program=code)
    assert done.returncode == 1
    assert done.stderr.startswith(b"Traceback (most recent call last):")
    assert b"TypeError" in done.stderr


def completed(line: str, *, shell: str = "bash") -> list[str]:
    """Return what a shell is offered for the end of a line."""
    words = line.split(" ")
    asked = {
        "_SEEKABLE_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    done = run(more=asked)
    assert done.stderr == b""
    return done.stdout.decode().split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("seekable in", ["index", "info"]),
        ("seekable s", ["simulate", "sample", "state"]),
        ("seekable state ", ["show", "diff"]),
        ("seekable verify --de", ["--deep", "--decode"]),
        ("seekable plot mixture --in ", ["records", "bytes", "tokens"]),
        ("seekable index --js", ["--json"]),
    ],
)
def test_the_shell_completes_commands_options_and_values(line: str, offered: list[str]) -> None:
    assert completed(line) == offered


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_complete_too(shell: str) -> None:
    offered = " ".join(completed("seekable ver", shell=shell))
    assert "verify" in offered
    assert "Compare files with their index" in offered


def test_bash_itself_completes_by_the_script_that_is_shown(tmp_path: Path) -> None:
    # typer asks which shell it was started from; `true` keeps bash from becoming the command.
    script = f'"{SEEKABLE}" --show-completion; true'
    shown = subprocess.run(
        ["bash", "-c", script], env=environment(), capture_output=True, text=True, check=True
    )
    assert "_SEEKABLE_COMPLETE=complete_bash" in shown.stdout
    (tmp_path / "completion.sh").write_text(shown.stdout)
    code = (
        f"source {tmp_path / 'completion.sh'}\n"
        'COMP_WORDS=(seekable doc); COMP_CWORD=1; _seekable_completion "$1"\n'
        'echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", code, "bash", SEEKABLE], env=environment(), capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("doctor\n", "")


def commands_of(command: Any, *path: str) -> Iterator[tuple[str, Any]]:
    """Yield the words of each command that runs something, and the command."""
    if not hasattr(command, "list_commands"):
        yield " ".join(path), command
        return
    context = typer.Context(command)
    for name in command.list_commands(context):
        yield from commands_of(command.get_command(context, name), *path, name)


RUN_BY = dict(commands_of(built_command(app)))


def options_of(words: str) -> set[str]:
    """Return the options that a command has for itself, as Python would name them."""
    found = {each.opts[0] for each in RUN_BY[words].params if each.opts[0].startswith("-")}
    return {name.lstrip("-").replace("-", "_") for name in found}


def test_there_are_few_options() -> None:
    assert len(EVERYWHERE) + sum(len(options_of(words)) for words in RUN_BY) <= 177


OPENING = (sk.open, sk.Index)
CALLS: dict[str, tuple[Any, ...]] = {
    "index": OPENING,
    "export": (*OPENING, sk.Dataset.write, sk.Dataset.write_parquet, sk.Dataset.shuffle),
    "bench": (*OPENING, sk.Loader, sk.Dataset.shuffle),
    "plan": (*OPENING, sk.Loader, sk.Loader.plan, sk.load_pipeline),
    "simulate": (*OPENING, sk.simulate, sk.Dataset.shuffle),
    "tokenize": (*OPENING, sk.tokenize, sk.formats.TokenStore),
    "sample": (*OPENING, sk.Dataset.sample),
}
"""The calls of Python whose arguments the options of a command are."""

OTHER_WORDS = {
    "set": "the fields of the format's class",
    "as": "format=, which says how data is read here",
    "shuffle": "a method",
    "state": "load_state",
    "mask": "mask= of sk.Chat",
    "seconds": "of the command alone: how long to measure",
    "n": "the count of records, as of head(1)",
    "pages": "of the command alone",
    "for": "of the command alone: indexes of other tools",
    "output_dir": "of the command alone: where those go",
}
"""The options that no argument has the name of, with the reason."""


@pytest.mark.parametrize("words", CALLS)
def test_options_are_named_as_the_arguments_of_python(words: str) -> None:
    known = {name for call in CALLS[words] for name in inspect.signature(call).parameters}
    assert options_of(words) - known - OTHER_WORDS.keys() == set()
