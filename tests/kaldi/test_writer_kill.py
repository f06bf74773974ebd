"""A writer that is killed at any moment: what is left is read, repaired and continued."""

from __future__ import annotations

import io
import os
import signal
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from tests.thrift import sample, some

import seekable as sk
from seekable import kaldi
from seekable.formats.kaldi.files.local_files import LockedFile, WrittenFile
from seekable.kaldi import Writer, repair

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

COUNT = 3


class Table(NamedTuple):
    holder: str
    options: str
    values: list[Any]


MATRICES = [np.full((40, 50 * (number + 1)), number, "f4") for number in range(COUNT)]
VECTORS = [list(range(number * 10)) for number in range(COUNT)]
TABLES = {
    "matrix": Table("matrix", "", MATRICES),
    "flushed matrix": Table("matrix", ",f", MATRICES),
    "vector": Table("int32-vector", "", VECTORS),
    "flushed text": Table("int32-vector", ",t,f", VECTORS),
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # no power is cut here, and hundreds of syncs are slow
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Deadly:
    """The step in which a child ends: the number of steps before it, and the part of it that a write does."""

    left = 0
    part = 0.0


FILE = io.FileIO


def write_or_die(file: io.FileIO, data: Any) -> int:
    view = memoryview(data).cast("B")
    if not Deadly.left:
        FILE.write(file, view[: int(len(view) * Deadly.part)])
    step()
    return FILE.write(file, view)


def step() -> None:
    if not Deadly.left:
        os.kill(os.getpid(), signal.SIGKILL)
    Deadly.left -= 1


def killed(write: Callable[[Callable[[], Any]], Any], *, at: int, part: float) -> int | None:
    """Run a function in a child that dies in a step; return how often it acknowledged, None if it ended."""
    reader, writer = os.pipe()
    if not (child := os.fork()):
        try:
            Deadly.left, Deadly.part = at, part
            for kind in (WrittenFile, LockedFile):
                kind.write = write_or_die  # type: ignore[method-assign]
            for name in ("replace", "fsync", "ftruncate"):
                setattr(os, name, deadly(getattr(os, name)))
            write(lambda: os.write(writer, b"."))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        acknowledged = len(file.read())
    return acknowledged if os.WIFSIGNALED(os.waitpid(child, 0)[1]) else None


def deadly(act: Callable[..., None]) -> Callable[..., None]:
    def acted(*arguments: Any) -> None:
        step()
        act(*arguments)

    return acted


def write_all(table: Table, acknowledge: Callable[[], Any], *, first: int = 0, **options: Any) -> None:
    with Writer(f"ark,scp{table.options}:a.ark,a.scp", table.holder, **options) as writer:
        for number in range(first, COUNT):
            writer.write(f"utt{number}", table.values[number])
            acknowledge()


def content(folder: Path) -> tuple[bytes, bytes]:
    return (folder / "a.ark").read_bytes(), (folder / "a.scp").read_bytes()


def read_complete(table: Table) -> int:
    """Read the archive up to its end or a torn entry; return the number of its complete entries."""
    entries: list[tuple[str, Any]] = []
    try:
        with kaldi.SequentialReader("ark:a.ark", table.holder) as reader:
            entries.extend(reader)
    except sk.errors.CorruptTable as error:
        assert "a.ark" in str(error)  # noqa: PT017 - an archive that is not torn has no error
    with open("a.ark", "rb") as file:
        if "t" in table.options:  # As in Kaldi, a last line may lack its line end.
            entries = entries[: file.read().count(b"\n")]
    for number, (key, value) in enumerate(entries):
        assert key == f"utt{number}"
        assert np.array_equal(value, table.values[number])
    return len(entries)


def check_kill(table: Table, folder: Path, whole: tuple[bytes, bytes], *, at: int, part: float) -> bool:
    """Kill a writer in one step and look at what is left; return False if it had no such step."""
    for name in os.listdir(folder):
        os.unlink(name)
    acknowledged = killed(lambda acknowledge: write_all(table, acknowledge), at=at, part=part)
    if acknowledged is None:
        assert content(folder) == whole
        return False
    if not os.path.exists("a.ark"):
        return True
    # Each whole line of the script points at a complete object, before anything is repaired.
    for line in (folder / "a.scp").read_bytes().split(b"\n")[:-1]:
        key, name = line.decode().split(" ", 1)
        assert np.array_equal(kaldi.read(name, table.holder), table.values[int(key[3:])])
    complete = read_complete(table)
    report = repair("a.ark", table.holder, script="a.scp")
    assert report.entries == complete
    assert "f" not in table.options or complete >= acknowledged
    assert read_complete(table) == complete
    write_all(table, lambda: None, first=complete, append=True)
    assert content(folder) == whole
    return True


@pytest.mark.parametrize("name", ["flushed matrix", "flushed text"])
def test_a_killed_writer_leaves_its_complete_entries(name: str, here: Path) -> None:
    table = TABLES[name]
    write_all(table, lambda: None)
    whole = content(here)
    at = 0
    while check_kill(table, here, whole, at=at, part=0.6):
        at += 1
    assert at == 2 * COUNT


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", TABLES)
def test_a_writer_killed_in_any_part_of_any_step(name: str, here: Path) -> None:
    table = TABLES[name]
    write_all(table, lambda: None)
    whole = content(here)
    for part in np.linspace(0, 1, some(12) + 1):
        at = 0
        while check_kill(table, here, whole, at=at, part=float(part)):
            at += 1
        assert at >= 2


@pytest.mark.parametrize("name", ["flushed text"])
@pytest.mark.parametrize("old", sample([(b"old", b"old lines\n"), None], of=2))
def test_an_atomic_writer_leaves_all_or_nothing(
    name: str, old: tuple[bytes, bytes] | None, here: Path
) -> None:
    table = TABLES[name]
    write_all(table, lambda: None)
    whole = content(here)
    at = 0
    while True:
        for each in os.listdir(here):
            os.unlink(each)
        if old:
            (here / "a.ark").write_bytes(old[0])
            (here / "a.scp").write_bytes(old[1])
        ended = (
            killed(lambda acknowledge: write_all(table, acknowledge, atomic=True), at=at, part=0.5) is None
        )
        found = [path.read_bytes() if path.exists() else None for path in (here / "a.ark", here / "a.scp")]
        before = list(old) if old else [None, None]
        assert found in (before, [whole[0], before[1]], list(whole))
        if ended:
            break
        at += 1
    assert found == list(whole)
    # Two syncs and two names of the files, and two syncs of the folder.
    assert at == 2 * COUNT + 6
    write_all(table, lambda: None, atomic=True)
    assert content(here) == whole


def test_an_append_that_is_killed_is_continued(here: Path) -> None:
    table = TABLES["flushed text"]
    write_all(table, lambda: None)
    whole = content(here)
    for at in range(2 * (COUNT - 2)):
        for name in os.listdir(here):
            os.unlink(name)
        short = table._replace(values=table.values[:2])
        with Writer("ark,scp,t:a.ark,a.scp", short.holder) as writer:
            for number in range(2):
                writer.write(f"utt{number}", table.values[number])
        assert (
            killed(lambda acknowledge: write_all(table, acknowledge, first=2, append=True), at=at, part=0.5)
            is not None
        )
        report = repair("a.ark", table.holder, script="a.scp")
        assert report.entries >= 2
        write_all(table, lambda: None, first=report.entries, append=True)
        assert content(here) == whole


def test_a_repair_that_is_killed_is_done_again(here: Path) -> None:
    table = TABLES["matrix"]
    write_all(table, lambda: None)
    whole = content(here)
    torn = whole[0][:-1], whole[1]
    at = 0
    while True:
        (here / "a.ark").write_bytes(torn[0])
        (here / "a.scp").write_bytes(torn[1])
        if killed(lambda _: repair("a.ark", "matrix", script="a.scp"), at=at, part=0.5) is None:
            break
        assert read_complete(table) == COUNT - 1
        report = repair("a.ark", "matrix", script="a.scp")
        assert report.entries == COUNT - 1
        assert read_complete(table) == COUNT - 1
        at += 1
    assert at >= 3
    write_all(table, lambda: None, first=COUNT - 1, append=True)
    assert content(here) == whole
