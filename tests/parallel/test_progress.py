"""How far work on all rows is: a bar in a terminal, nothing in a pipe, and an interrupt that ends it all."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.cli.command import AT_ONCE, in_terminal, run_fork
from tests.processes import ends

from seekable.parallel.progress import Watch, watched

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from seekable.parallel.progress import Progress

# Goes on until the test has seen what it wants, a file being there.
FILTER = """
import os, sys
import seekable as sk
seen = sys.argv[1]
def passes(number):
    if number == 10:
        while not os.path.exists(seen):
            pass
    return True
print(len(sk.from_sequence(range(1000)).filter(passes, jobs=1)))
"""


def test_a_bar_is_drawn_and_wiped_away_in_a_terminal(tmp_path: Path) -> None:
    with in_terminal(tmp_path / "seen", program=FILTER, more=AT_ONCE) as terminal:
        terminal.read_until(b"filtering")
        (tmp_path / "seen").touch()
        code, seen = terminal.finish()
    assert code == 0
    bar, _, after = seen.rpartition(b"\r\x1b[2K")
    assert b"records" in bar
    assert after == b"1000\r\n"


def test_nothing_is_drawn_in_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "seen").touch()
    done = run_fork(tmp_path / "seen", program=FILTER, more=AT_ONCE)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"1000\n", b"")


FOR_EVER = """
import os, signal, sys
import seekable as sk
# Inherited as ignored where the tests run in the background of a shell.
signal.signal(signal.SIGINT, signal.default_int_handler)
path = sys.argv[1]
def passes(number):
    if number == 700:
        descriptor = os.open(path, os.O_WRONLY)
        os.write(descriptor, f"{os.getpid()}\\n".encode())
        while True:
            pass
    return True
try:
    sk.from_sequence(range(100_000)).filter(passes, jobs=2, save=sys.argv[2])
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_ends_the_workers_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    pipe, save = tmp_path / "pipe", tmp_path / "kept.u64"
    os.mkfifo(pipe)
    command = [sys.executable, "-c", FOR_EVER, str(pipe), str(save)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        with open(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)) as told:
            # A child that dies before it writes is an error, and no reason to wait for ever.
            assert select.select([told], [], [], 60)[0], process.communicate(timeout=60)
            worker = int(told.readline())
        descriptor = os.pidfd_open(worker)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=60)
    assert worker != process.pid
    assert (process.returncode, out, errors) == (0, "interrupted\n", "")
    assert ends(descriptor)
    os.close(descriptor)
    assert {file.name for file in tmp_path.iterdir()} <= {"pipe", "kept.u64.lock", "kept.u64.part"}


def test_a_hook_is_not_told_too_often_and_always_of_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seekable.parallel.progress._SECONDS", 3600.0)
    told: list[Progress] = []
    with watched(told.append, task="filtering", rows=100) as watch:
        for done in (10, 50, 100):
            watch(done)
        watch(0, notice="waiting")
    assert [(progress.records, progress.notice) for progress in told] == [(100, ""), (0, "waiting")]
    assert [progress.is_done for progress in told] == [True, False]


def test_without_a_hook_nobody_is_told() -> None:
    Watch(None, task="filtering", rows=1)(1)
