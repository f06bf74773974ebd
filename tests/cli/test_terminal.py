"""What commands do in a terminal, and leave undone outside of one."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from tests.cli.command import AT_ONCE, Corpus, in_terminal, output, run, run_fork
from tests.index.corpus import age
from tests.processes import ends

if TYPE_CHECKING:
    from pathlib import Path

ENDLESS_BYTES = 1 << 42
"""More than can be scanned before the test interrupts it."""

FILE_BYTES = 1 << 25
"""What takes a moment to scan."""

ERASE = b"\r\x1b[2K"
"""What wipes a line."""


def test_facts_are_coloured_in_a_terminal(corpus: Corpus) -> None:
    with in_terminal("info", corpus.folder, anew=True) as terminal:
        code, seen = terminal.finish()
    assert code == 0
    assert b"\x1b[36mrecords" in seen
    assert b"120" in seen
    assert b"\x1b" not in output("info", corpus.folder)


def test_no_color_is_heard(corpus: Corpus) -> None:
    with in_terminal("info", corpus.folder, more={"NO_COLOR": "1"}) as terminal:
        code, seen = terminal.finish()
    assert code == 0
    assert b"records" in seen
    assert b"\x1b" not in seen


def test_a_quick_build_draws_no_bar(corpus: Corpus) -> None:
    with in_terminal("head", "-n", "1", corpus.folder) as terminal:
        code, seen = terminal.finish()
    assert code == 0
    assert seen == corpus.lines[0] + b"\r\n"


def write_hole(path: Path, size: int = ENDLESS_BYTES) -> None:
    """Write a file that takes no room, by default one that takes longer to scan than any test."""
    with open(path, "wb") as file:
        file.truncate(size)
    age(path)


def assert_wiped(seen: bytes, message: bytes) -> None:
    """Check that the bar was one line, that it is gone, and that the message alone was left."""
    bar, _, left = seen.rpartition(ERASE)
    assert bar.count(b"\n") == 0
    assert left.startswith(message)
    assert left.count(b"\n") == 1
    assert b"Traceback" not in seen


@pytest.mark.parametrize("columns", [24, 80, 300])
def test_a_long_build_draws_a_bar_of_one_line(corpus: Corpus, columns: int) -> None:
    write_hole(corpus.folder / "z.jsonl")
    command = ("index", "--jobs", "1", corpus.folder)
    with in_terminal(*command, columns=columns, more=AT_ONCE) as terminal:
        terminal.read_until(b"indexing")
        terminal.interrupt()
        code, seen = terminal.finish()
    assert code == 130
    assert_wiped(seen, b"seekable: interrupted; what was indexed so far is kept")


def test_what_draws_a_bar_in_a_terminal_draws_nothing_in_a_pipe(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        write_hole(tmp_path / name / "a.txt", FILE_BYTES)
    for command in (["index"], ["verify", "--deep"]):
        with in_terminal(*command, tmp_path / "a", more=AT_ONCE) as terminal:
            code, seen = terminal.finish()
        done = run_fork(*command, tmp_path / "b", more=AT_ONCE)
        assert (code, done.returncode, done.stderr) == (0, 0, b"")
        assert ERASE in seen


def test_an_interrupt_keeps_what_is_done(tmp_path: Path) -> None:
    for number in range(200):
        write_hole(tmp_path / f"{number:03d}.txt", 2 * FILE_BYTES)
    with in_terminal("index", "--jobs", "1", tmp_path, more=AT_ONCE) as terminal:
        # In one process one file comes after the other, and a hundredth of the bytes is more than one.
        terminal.read_until(rb"[1-9]%")
        terminal.interrupt()
        assert terminal.finish()[0] == 130
    told = json.loads(run("verify", "--json", tmp_path).stdout)
    assert {problem["kind"] for problem in told["problems"]} == {"not indexed"}
    assert told["files"] - len(told["problems"]) == told["records"] > 0


def test_an_interrupt_ends_the_workers_without_a_word_of_theirs(corpus: Corpus) -> None:
    for name in ("y.jsonl", "z.jsonl"):
        write_hole(corpus.folder / name)
    with in_terminal("index", "--jobs", "2", corpus.folder, more=AT_ONCE, anew=True) as terminal:
        terminal.read_until(b"indexing")
        workers = terminal.children()
        assert workers
        # Out of reach of the terminal's interrupt, from their first moment on.
        assert terminal.process.pid not in {os.getpgid(worker) for worker in workers}
        descriptors = [os.pidfd_open(worker) for worker in workers]
        terminal.interrupt()
        code, seen = terminal.finish()
        for descriptor in descriptors:
            assert ends(descriptor)
            os.close(descriptor)
    assert code == 130
    assert_wiped(seen, b"seekable: interrupted; what was indexed so far is kept")


def test_a_long_look_draws_a_bar_too(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\n")
    output("index", path)
    write_hole(path)
    with in_terminal("verify", "--deep", "--jobs", "1", path, more=AT_ONCE) as terminal:
        terminal.read_until(b"verifying")
        terminal.interrupt()
        code, seen = terminal.finish()
    assert code == 130
    assert_wiped(seen, b"seekable: interrupted\r\n")


def test_in_a_terminal_of_few_columns_a_status_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "good day"}\n' * 1000)
    with in_terminal("recompress", "--json", path, columns=20) as terminal:
        code, seen = terminal.finish()
    assert code == 0
    shown, _, document = seen.rpartition(ERASE)
    lines = shown.split(ERASE)
    assert b"recompressing" in shown
    assert max(map(len, lines)) == 19
    assert json.loads(document)["schema"] == 1


@pytest.mark.parametrize("options", [["--quiet"], ["-q"]])
def test_a_status_can_be_turned_off(tmp_path: Path, options: list[str]) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "good day"}\n' * 1000)
    with in_terminal("recompress", "--json", *options, path) as terminal:
        code, seen = terminal.finish()
    assert code == 0
    assert json.loads(seen)["schema"] == 1


HALF = """
import sys
from seekable.parallel.progress import Progress
from seekable.parallel.progress import terminal_progress
hook = terminal_progress()
if hook:
    hook(Progress(0, 2, 0, 100, 0, notice="somewhere else"))
    hook(Progress(1, 2, 50, 100, 1234))
    hook(Progress(2, 2, 100, 100, 2468))
print("no hook" if hook is None else "done")
"""


def test_the_bar_shows_how_far_it_is_and_goes_when_done() -> None:
    with in_terminal(program=HALF, more=AT_ONCE) as terminal:
        code, seen = terminal.finish()
    assert code == 0
    assert seen.startswith(b"seekable: somewhere else\r\n")
    assert b" 50%" in seen
    assert b"1,234 records" in seen
    assert seen.endswith(b"\r\x1b[2Kdone\r\n")
    assert seen.count(b"\n") == 2


def test_the_bar_is_one_line_in_a_narrow_terminal() -> None:
    with in_terminal(program=HALF, columns=24, more=AT_ONCE) as terminal:
        _, seen = terminal.finish()
    assert b"\x1b[2Kindex" in seen
    assert seen.count(b"\n") == 2


def test_a_terminal_that_cannot_move_its_cursor_gets_no_bar() -> None:
    with in_terminal(program=HALF, more={"TERM": "dumb"}) as terminal:
        assert terminal.finish() == (0, b"no hook\r\n")


def test_quiet_draws_none(corpus: Corpus) -> None:
    code = (
        "import sys; from seekable.cli.output import BuildWatch\n"
        "from seekable.parallel.progress import Progress\n"
        "assert BuildWatch(shown=False)._bar is None\n"
        "assert BuildWatch(shown=True)._bar is not None; print('right')"
    )
    with in_terminal(program=code) as terminal:
        assert terminal.finish() == (0, b"right\r\n")
    with in_terminal("index", "-q", "--json", corpus.folder) as terminal:
        exit_code, seen = terminal.finish()
    assert exit_code == 0
    assert json.loads(seen)["schema"] == 1
