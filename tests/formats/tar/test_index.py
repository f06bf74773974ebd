"""The index of tar files: builds that are killed, verification, and archives of which the index is wrong."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING

import pytest
from tests.formats.tar.test_open import packed, record, samples
from tests.killing import KILLED, Killer, one_of_each_kind

import seekable as sk
from seekable.dataset.verify_data import verify
from seekable.index.build import commit, scan

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def build(folder: Path) -> None:
    """Index a folder; each file is committed by itself, and its words are written to disk at once."""
    commit._COMMIT_SECONDS = -1.0
    scan._SPILL_BYTES = 64
    sk.open(folder)


def fill(folder: Path, generation: int) -> list[range]:
    """Write three archives, of other samples in each generation, and return their rows."""
    rows = [range(10 * number, 10 * number + 1 + (generation + number) % 7) for number in range(3)]
    for number, some in enumerate(rows):
        (folder / f"{number}.tar").write_bytes(packed(samples(some), mtime=generation / 2))
        os.utime(folder / f"{number}.tar", ns=(generation * 10**9, generation * 10**9))
    return rows


def check_kills(folder: Path, points: Iterable[tuple[str | None, int]], killer: Killer) -> list[int]:
    codes: list[int] = []
    for kind, number in points:
        rows = fill(folder, 1 + len(codes))
        codes.append(killer.kill_at(number, folder, build, folder, kind=kind))
        assert list(sk.open(folder)) == [record(row) for some in rows for row in some]
        if codes[-1] == 0:
            break
    return codes


def test_a_killed_build_leaves_an_index_that_is_whole(tmp_path: Path) -> None:
    with Killer() as killer:
        fill(tmp_path, 0)
        kinds = killer.operations(tmp_path, build, tmp_path)
        codes = check_kills(tmp_path, [*one_of_each_kind(kinds)], killer)
    assert {*codes} == {KILLED}


@pytest.mark.exhaustive
def test_a_build_may_be_killed_at_every_operation(tmp_path: Path) -> None:
    with Killer() as killer:
        codes = check_kills(tmp_path, ((None, number) for number in itertools.count(1)), killer)
    assert codes.count(KILLED) > 10


@pytest.mark.parametrize("deep", [False, True])
def test_what_verification_finds(tmp_path: Path, *, deep: bool) -> None:
    rows = fill(tmp_path, 4)
    sk.open(tmp_path)
    found = verify(tmp_path, deep=deep, decode=True)
    assert (found.problems, found.records) == ((), sum(map(len, rows)))
    path = tmp_path / "1.tar"
    data, status = path.read_bytes(), path.stat()
    path.write_bytes(data.replace(b"d.x/0010.txt", b"d.x/0010.tyt"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    (problem,) = verify(tmp_path, deep=deep).problems
    assert (problem.kind, problem.path) == ("content", str(path))
    path.write_bytes(data + bytes(512))
    (problem,) = verify(tmp_path, deep=deep).problems
    assert (problem.kind, problem.path) == ("changed", str(path))


def test_a_field_that_cannot_be_decoded_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(packed([("a.json", b"{}"), ("b.json", b"{")]))
    sk.open(tmp_path)
    (problem,) = verify(tmp_path, decode=True).problems
    assert (problem.kind, problem.row, problem.offset) == ("record", 1, 1536)


def test_words_of_many_archives_are_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit, "_MOST_SEGMENTS", 3)
    for number in range(7):
        (tmp_path / f"{number}.tar").write_bytes(packed(samples(range(number, number + 1))))
        sk.open(tmp_path)
    folder = tmp_path / ".seekable"
    assert len({entry.name for entry in folder.glob("schema-*.bin")}) == 1
    assert list(sk.open(tmp_path)) == [record(row) for row in range(7)]
    assert verify(tmp_path, deep=True).problems == ()
