"""Killed at any moment, and begun again: exactly the rows, nothing twice, nothing torn."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.dataset.common import FORMS, numbers, row, rows, write
from tests.killing import KILLED, Killer, one_of_each_kind
from tests.processes import ends
from tests.thrift import sample

import seekable as sk
from seekable.errors import WorkerDied

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]


def run(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    with Killer() as killer:
        yield killer


def overwrite(folder: Path, form: str) -> None:
    write(rows(300).shuffle(seed=5), folder, form, rows_per_file=100, jobs=1, overwrite=True)


def check_after_a_kill(folder: Path, form: str) -> None:
    """The next call writes what is missing, and leaves nothing of the killed one."""
    ds = rows(300).shuffle(seed=5)
    written = write(ds, folder, form, rows_per_file=100, jobs=1, overwrite=True)
    assert list(sk.open(folder)) == list(ds)
    assert written.rows == 300
    assert {path.name for path in folder.iterdir()} - {".seekable"} == {
        ".seekable-write.json",
        ".seekable-write.lock",
        *(os.path.basename(path) for path in written.paths),
    }


@pytest.mark.parametrize("form", FORMS)
def test_killed_at_an_operation_of_each_kind_the_next_call_has_the_rows(
    form: str, tmp_path: Path, killer: Killer
) -> None:
    write(rows(120), tmp_path / "all", form, rows_per_file=50)
    kinds = killer.operations(tmp_path / "all", overwrite, tmp_path / "all", form)
    assert {"open", "os.fsync", "os.rename", "os.remove"} <= {*kinds}
    for kind, number in one_of_each_kind(kinds):
        folder = tmp_path / kind
        write(rows(120), folder, form, rows_per_file=50)
        assert killer.kill_at(number, folder, overwrite, folder, form, kind=kind) == KILLED
        check_after_a_kill(folder, form)


@pytest.mark.exhaustive
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("before", [False, True], ids=["new", "over"])
def test_killed_at_any_file_operation_the_next_call_has_the_rows(
    form: str,
    before: bool,  # noqa: FBT001 - a case
    tmp_path: Path,
    killer: Killer,
) -> None:
    codes: list[int] = []
    while not codes or codes[-1]:
        folder = tmp_path / str(len(codes))
        if before:
            write(rows(120), folder, form, rows_per_file=50)
        codes.append(killer.kill_at(len(codes) + 1, folder, overwrite, folder, form))
        check_after_a_kill(folder, form)
    assert codes.count(KILLED) >= 15


def talk(folder: Path, form: str, fifo: Path) -> None:
    """Write, and say when each record begins, so that the test can choose any moment of the work."""
    pipe = os.open(fifo, os.O_RDWR)  # The last records find no reader.

    def told(number: int) -> dict[str, object]:
        os.write(pipe, b".")
        return row(number)

    ds = numbers(2000).map(told, version=1).shuffle(seed=2)
    write(ds, folder, form, rows_per_file=100, jobs=1)
    os.close(pipe)


@pytest.mark.exhaustive
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", [0, 1])
def test_killed_at_random_moments_again_and_again(
    form: str, seed: int, tmp_path: Path, killer: Killer
) -> None:
    rng = random.Random(seed)
    folder, fifo = tmp_path / "out", tmp_path / "fifo"
    os.mkfifo(fifo)
    kept = 0
    codes = []
    for _ in range(4):
        codes.append(killer.kill_after(rng.randrange(1, 1500), fifo, talk, folder, form, fifo))
        there = sum(path.name.startswith("part-") for path in folder.iterdir()) if folder.exists() else 0
        assert there >= kept
        kept = there
    assert codes[0] == KILLED
    talk(folder, form, fifo)
    assert list(sk.open(folder)) == list(numbers(2000).map(row).shuffle(seed=2))
    assert not [path for path in folder.iterdir() if path.name.endswith(".tmp")]


# A worker kills whoever started it, in the middle of a file.
PARENT_KILLED = """
import os, signal, sys
from tests.dataset.common import numbers, row, write
main = os.getpid()
def kills(number):
    if number == 555 and os.getpid() != main and not os.path.exists(told):
        print(os.getpid(), file=open(told, "w"))
        os.kill(main, signal.SIGKILL)
        signal.pause()
    return row(number)
write(numbers(1000).map(kills, version=1), sys.argv[1], "parquet", rows_per_file=100, jobs=int(sys.argv[2]))
"""


def test_workers_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    folder, told = tmp_path / "out", tmp_path / "told"
    done = run(f"told = {str(told)!r}\n{PARENT_KILLED}", folder, 2)
    assert done.returncode == -signal.SIGKILL, done.stderr
    worker = int(told.read_text())
    try:
        descriptor = os.pidfd_open(worker)
    except ProcessLookupError:
        pass
    else:
        assert ends(descriptor)
        os.close(descriptor)
    again = run(f"told = {str(told)!r}\n{PARENT_KILLED}", folder, 1)
    assert again.returncode == 0, again.stderr
    assert list(sk.open(folder)) == list(rows(1000))
    assert not [path for path in folder.iterdir() if path.name.endswith(".tmp")]


@pytest.mark.parametrize("form", sample(FORMS[::-1], of=2))
def test_a_worker_that_is_killed_is_told_and_what_was_finished_stays(form: str, tmp_path: Path) -> None:
    main, marker = os.getpid(), tmp_path / "killed"

    def dies(number: int) -> dict[str, object]:
        if number == 555 and os.getpid() != main and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return row(number)

    ds = numbers(1000).map(dies, version=1)
    with pytest.raises(WorkerDied, match="SIGKILL"):
        write(ds, tmp_path / "out", form, rows_per_file=100, jobs=2)
    written = write(ds, tmp_path / "out", form, rows_per_file=100, jobs=1)
    assert written.rows == 1000
    assert list(sk.open(tmp_path / "out")) == list(rows(1000))
