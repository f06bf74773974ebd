"""What commands do in a terminal, and leave undone outside of one."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from tests.cli.command import SEEKABLE, Corpus, documents, in_terminal, output
from tests.index.corpus import age

if TYPE_CHECKING:
    from pathlib import Path

ENDLESS_BYTES = 40 << 30
"""More than can be scanned before the test interrupts it; a hole, so that it takes no room."""


def test_facts_are_coloured_in_a_terminal(corpus: Corpus) -> None:
    with in_terminal([SEEKABLE, "info", str(corpus.folder)]) as terminal:
        code, seen = terminal.finish()
    assert code == 0
    assert b"\x1b[36mrecords" in seen
    assert b"120" in seen
    assert b"\x1b" not in output("info", corpus.folder)


def test_no_color_is_heard(corpus: Corpus) -> None:
    with in_terminal([SEEKABLE, "info", str(corpus.folder)], more={"NO_COLOR": "1"}) as terminal:
        code, seen = terminal.finish()
    assert code == 0
    assert b"records" in seen
    assert b"\x1b" not in seen


def test_a_quick_build_draws_no_bar(corpus: Corpus) -> None:
    with in_terminal([SEEKABLE, "head", "-n", "1", str(corpus.folder)]) as terminal:
        code, seen = terminal.finish()
    assert code == 0
    assert seen == corpus.lines[0] + b"\r\n"


def write_endless(folder: Path) -> None:
    """Write a file that takes longer to scan than any test."""
    with open(folder / "z.jsonl", "wb") as file:
        file.truncate(ENDLESS_BYTES)
    age(folder / "z.jsonl")


def test_a_long_build_draws_a_bar_and_an_interrupt_keeps_what_is_done(corpus: Corpus) -> None:
    write_endless(corpus.folder)
    with in_terminal([SEEKABLE, "index", "--jobs", "1", str(corpus.folder)]) as terminal:
        terminal.read_until(b"indexing")
        terminal.interrupt()
        code, seen = terminal.finish()
    assert code == 130
    bar, _, message = seen.rpartition(b"\r\x1b[2K")
    assert bar.count(b"\n") == 0
    assert message.startswith(b"seekable: interrupted; what was indexed so far is kept")
    assert message.count(b"\n") == 1
    (told,) = documents("info", corpus.folder / "shard-0.jsonl")
    assert told["index"]["was_up_to_date"]


HALF = """
import sys
from seekable.index.progress import Progress
from seekable.index.terminal import terminal_progress
hook = terminal_progress(after_seconds=0.0)
if hook:
    hook(Progress(0, 2, 0, 100, 0, notice="somewhere else"))
    hook(Progress(1, 2, 50, 100, 1234))
    hook(Progress(2, 2, 100, 100, 2468))
print("no hook" if hook is None else "done")
"""


def test_the_bar_shows_how_far_it_is_and_goes_when_done() -> None:
    with in_terminal([sys.executable, "-c", HALF]) as terminal:
        code, seen = terminal.finish()
    assert code == 0
    assert seen.startswith(b"seekable: somewhere else\r\n")
    assert b" 50%" in seen
    assert b"1,234 records" in seen
    assert seen.endswith(b"\r\x1b[2Kdone\r\n")
    assert seen.count(b"\n") == 2


def test_the_bar_is_one_line_in_a_narrow_terminal() -> None:
    with in_terminal([sys.executable, "-c", HALF], columns=24) as terminal:
        _, seen = terminal.finish()
    assert b"\x1b[2Kindex" in seen
    assert seen.count(b"\n") == 2


def test_a_terminal_that_cannot_move_its_cursor_gets_no_bar() -> None:
    with in_terminal([sys.executable, "-c", HALF], more={"TERM": "dumb"}) as terminal:
        assert terminal.finish() == (0, b"no hook\r\n")


def test_no_progress_and_quiet_draw_none(corpus: Corpus) -> None:
    code = (
        "import sys; from seekable.cli.progress import BuildWatch\n"
        "from seekable.index.progress import Progress\n"
        "for bar, notices in ((False, True), (True, False)):\n"
        "    watch = BuildWatch(bar=bar, notices=notices)\n"
        "    assert watch._bar is None\n"
        "assert BuildWatch(bar=True, notices=True)._bar is not None; print('right')"
    )
    with in_terminal([sys.executable, "-c", code]) as terminal:
        assert terminal.finish() == (0, b"right\r\n")
    with in_terminal([SEEKABLE, "index", "--no-progress", "--json", str(corpus.folder)]) as terminal:
        exit_code, seen = terminal.finish()
    assert exit_code == 0
    assert json.loads(seen)["schema"] == 1
