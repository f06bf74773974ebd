from __future__ import annotations

import re
import subprocess
import sys

import pytest
from tests.cli.command import SEEKABLE, environment, output, run

import seekable
from seekable.cli.exits import ExitCode

COMMANDS = ["index", "info", "get", "head", "sample"]


def test_help_names_the_commands_and_the_exit_codes() -> None:
    page = output("--help").decode()
    assert re.findall(r"^  (\w+)   ?\s*[A-Z]", page.partition("Commands:")[2], re.MULTILINE) == COMMANDS
    for code in ExitCode:
        assert re.search(rf"^    {code.value}  ", page, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_examples_that_name_only_options_it_has(command: str) -> None:
    page = output(command, "--help").decode()
    options, _, examples = page.partition("Examples:")
    assert f"seekable {command} " in examples
    ours = [line.partition(" | ")[0] for line in examples.splitlines()]
    for option in re.findall(r" (--?[a-z][a-z-]*)", "\n".join(ours)):
        assert re.search(rf"^  (-\w, )?{option}\b", options, re.MULTILINE), option


@pytest.mark.parametrize("arguments", [["--help"], ["get", "--help"], ["--version"]])
def test_help_waits_for_nothing_heavy(arguments: list[str]) -> None:
    heavy = {"msgspec", "numpy", "rich", "xxhash"}
    code = (
        "import sys; from seekable.cli.main import main; sys.argv[0] = 'seekable'\n"
        f"try: main()\nfinally: sys.exit(','.join({heavy} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    assert (done.stderr.strip(), bool(done.stdout)) == ("", True)


def test_version() -> None:
    assert output("--version").decode() == f"seekable {seekable.__version__}\n"


def test_without_a_command_help_is_shown_as_wrong_usage() -> None:
    done = run()
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"Usage: seekable ")


def test_a_bug_keeps_its_traceback() -> None:
    code = (
        "import sys, seekable.cli.opening as opening; from seekable.cli.main import main\n"
        "opening.open_dataset = None\n"
        "sys.argv = ['seekable', 'head', 'x']; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback (most recent call last):")
    assert "TypeError" in done.stderr


def test_the_shell_completes_commands() -> None:
    asked = {"_SEEKABLE_COMPLETE": "complete_bash", "COMP_WORDS": "seekable in", "COMP_CWORD": "1"}
    done = subprocess.run([SEEKABLE], env=environment(asked), capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["index", "info"]


def test_the_script_for_completion_is_shown() -> None:
    # typer asks which shell it was started from; `true` keeps bash from becoming the command.
    script = f'"{SEEKABLE}" --show-completion; true'
    done = subprocess.run(
        ["bash", "-c", script], env=environment(), capture_output=True, text=True, check=False
    )
    assert "_SEEKABLE_COMPLETE=complete_bash" in done.stdout
