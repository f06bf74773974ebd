"""The writing of a stream, killed at any moment and begun again: the bytes are those of one run."""

from __future__ import annotations

import os
import random
import signal
from typing import TYPE_CHECKING

import pytest
from tests.killing import KILLED, Killer, one_of_each_kind
from tests.stream.cases import CHEAP_FORMS
from tests.stream.writing import FORMS, check_whole, contents, row, uneven, write
from tests.thrift import wider

import seekable as sk
from seekable.errors import WorkerDied

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

SOME = 90


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    with Killer() as killer:
        yield killer


def overwrite(folder: Path, form: str, lanes: int, jobs: int) -> None:
    write(uneven(SOME, lanes), folder, form, rows_per_file=30, jobs=jobs, overwrite=True)


def one_file(path: Path, form: str, lanes: int, jobs: int) -> None:
    write(uneven(SOME, lanes), path / f"one.{form}", form, jobs=jobs, overwrite=True)


def before(folder: Path, form: str) -> None:
    """Write another stream, which the work that is killed removes."""
    write(uneven(60, 2).map(row_of), folder, form, rows_per_file=50, jobs=1)


def row_of(record: dict[str, Any]) -> dict[str, Any]:
    return row(record["n"])


def check_after_a_kill(folder: Path, form: str, lanes: int, wanted: dict[str, bytes]) -> None:
    """All files are whole; the next call writes what is missing, and leaves nothing of the killed one."""
    others = folder.parent / "other"
    if not others.exists():
        before(others, form)
    for name, content in (contents(folder) if folder.exists() else {}).items():
        assert content in (wanted.get(name), contents(others).get(name)), f"{name} is torn"
    stream = uneven(SOME, lanes)
    written = write(stream, folder, form, rows_per_file=30, jobs=1, overwrite=True)
    assert contents(folder) == wanted
    check_whole(stream, folder, written)


@pytest.mark.parametrize("form", CHEAP_FORMS)
def test_killed_at_an_operation_of_each_kind_the_next_call_has_the_bytes(
    form: str, tmp_path: Path, killer: Killer
) -> None:
    overwrite(tmp_path / "wanted", form, 3, 1)
    wanted = contents(tmp_path / "wanted")
    before(tmp_path / "all", form)
    kinds = killer.operations(tmp_path / "all", overwrite, tmp_path / "all", form, 3, 1)
    assert {"open", "os.fsync", "os.rename", "os.remove", "os.mkdir"} <= {*kinds}
    for kind, number in one_of_each_kind(kinds):
        folder = tmp_path / kind
        before(folder, form)
        assert killer.kill_at(number, folder, overwrite, folder, form, 3, 1, kind=kind) == KILLED
        check_after_a_kill(folder, form, 3, wanted)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("form", "lanes", "jobs", "step"),
    [
        *((form, lanes, 1, 1) for form in FORMS for lanes in (1, 3)),
        *(("jsonl", 3, jobs, 1) for jobs in (2, 3)),
        *(("parquet", 3, jobs, 5) for jobs in (2, 3)),
    ],
)
@pytest.mark.parametrize("first", range(4))
def test_killed_at_any_file_operation_the_next_call_has_the_bytes(
    form: str, lanes: int, jobs: int, step: int, first: int, tmp_path: Path, killer: Killer
) -> None:
    """With several processes it is the main one that is killed, which ends the others."""
    overwrite(tmp_path / "wanted", form, lanes, 1)
    wanted = contents(tmp_path / "wanted")
    step = wider(step)
    operation, codes = 1 + first * step, [KILLED]
    while codes[-1]:
        folder = tmp_path / str(operation)
        if operation % 2:
            before(folder, form)
        codes.append(killer.kill_at(operation, folder, overwrite, folder, form, lanes, jobs))
        check_after_a_kill(folder, form, lanes, wanted)
        operation += 4 * step
    assert operation > 30


@pytest.mark.exhaustive
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("lanes", [1, 3])
def test_one_file_is_whole_or_not_there_wherever_it_is_killed(
    form: str, lanes: int, tmp_path: Path, killer: Killer
) -> None:
    (tmp_path / "wanted").mkdir()
    one_file(tmp_path / "wanted", form, lanes, 1)
    wanted = contents(tmp_path / "wanted")
    codes: list[int] = []
    while not codes or codes[-1]:
        folder = tmp_path / str(len(codes))
        folder.mkdir()
        codes.append(killer.kill_at(len(codes) + 1, folder, one_file, folder, form, lanes, 1))
        assert contents(folder) in ({}, wanted)
        one_file(folder, form, lanes, 1)
        assert contents(folder) == wanted
        assert {path.name for path in folder.iterdir()} == {
            f"one.{form}",
            f".one.{form}.seekable-write.json",
            f".one.{form}.seekable-write.lock",
        }
    assert codes.count(KILLED) >= 10


FIFO = "SEEKABLE_TEST_FIFO"


def telling(record: dict[str, Any]) -> dict[str, Any]:
    """Say when an item is made, so that the test can choose any moment of the work."""
    if path := os.environ.get(FIFO):
        fifo = os.open(path, os.O_WRONLY)
        os.write(fifo, b".")
        os.close(fifo)
    return record


def talk(folder: Path, form: str, jobs: int, fifo: Path | None = None) -> sk.Stream:
    if fifo:
        os.environ[FIFO] = str(fifo)
    stream = uneven(2000, 4).map(telling, version=1)
    write(stream, folder, form, rows_per_file=100, jobs=jobs)
    return stream


@pytest.mark.exhaustive
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_killed_at_random_moments_again_and_again(
    form: str, jobs: int, tmp_path: Path, killer: Killer
) -> None:
    rng = random.Random(jobs)
    stream = talk(tmp_path / "wanted", form, 1)
    wanted = contents(tmp_path / "wanted")
    folder, fifo, kept = tmp_path / "out", tmp_path / "fifo", 0
    os.mkfifo(fifo)
    codes = []
    for _ in range(5):
        codes.append(killer.kill_after(rng.randrange(1, 800), fifo, talk, folder, form, jobs, fifo))
        there = contents(folder) if folder.exists() else {}
        assert all(wanted[name] == content for name, content in there.items())
        assert len(there) >= kept
        kept = len(there)
    assert codes[:2] == [KILLED, KILLED]
    written = write(stream, folder, form, rows_per_file=100, jobs=jobs)
    assert written.kept >= kept
    assert contents(folder) == wanted
    check_whole(stream, folder, written)


@pytest.mark.parametrize("form", CHEAP_FORMS)
def test_a_worker_that_is_killed_is_told_and_what_was_finished_stays(form: str, tmp_path: Path) -> None:
    main, marker = os.getpid(), tmp_path / "killed"

    def dies(record: dict[str, Any]) -> dict[str, Any]:
        if record["n"] == 555 and os.getpid() != main and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return record

    stream = uneven(700, 3).map(dies, version=1)
    with pytest.raises(WorkerDied, match="SIGKILL"):
        write(stream, tmp_path / "out", form, rows_per_file=60, jobs=2)
    there = contents(tmp_path / "out")
    assert there
    written = write(stream, tmp_path / "out", form, rows_per_file=60, jobs=1)
    assert written.kept == len(there)
    check_whole(stream, tmp_path / "out", written)
    assert list(sk.open(tmp_path / "out")) == list(stream)
