"""Builds that are killed with SIGKILL, and builds that run at once: the index is whole at any moment."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.cli import warm
from tests.index.corpus import check, fill, open_data, read, write
from tests.killing import KILLED, Killer, one_of_each_kind
from tests.thrift import wider

from seekable.index import digest
from seekable.index.build import build_index as building
from seekable.index.build import commit, scan
from seekable.index.catalog import read_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seekable.parallel.progress import Progress

HERE = Path(__file__).parents[2]

BUILD_FOR_EVER = """
import itertools, sys
from pathlib import Path
from seekable.index.build import commit
from tests.index.corpus import open_data
from tests.index.test_kills import change
commit._COMMIT_SECONDS = -1.0  # Commit after each file.
folder = Path(sys.argv[1])
for generation in itertools.count(int(sys.argv[2])):
    change(folder, generation=generation)
    open_data(folder)
    print(generation, flush=True)
"""

BUILD = """
import sys
from pathlib import Path
from seekable.index.build import commit
from tests.index.corpus import open_data, read
commit._COMMIT_SECONDS = -1.0  # Commit after each file.
print(len(read(open_data(Path(sys.argv[1])))))
"""


def build(folder: Path, how: str) -> None:
    """Build an index that commits after each file; with parts, in parts of 30 bytes."""
    commit._COMMIT_SECONDS = -1.0
    if how == "parts":
        building._PART_BYTES = digest.PIECE_BYTES = 30
        scan._SPILL_BYTES = 64
        commit._MOST_SEGMENTS = 3
    open_data(folder)


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def count(folder: Path) -> int:
    """Return the number of records that a builder in a process of its own finds."""
    done = warm.run([str(folder)], program=BUILD, cwd=HERE)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def change(folder: Path, *, generation: int) -> None:
    fill(folder, files=3, rows=generation % 7)
    write(folder / f"new-{generation % 3}.jsonl", b"1\n" * generation, seconds=generation)


def check_kills(
    folder: Path, how: str, points: Iterable[tuple[str | None, int]], killer: Killer
) -> list[int]:
    """Kill builds, before each of which data changes, until one ends; return the exit codes."""
    codes: list[int] = []
    for kind, number in points:
        change(folder, generation=4 * len(codes) + 1)
        before = read_table(str(folder / ".seekable"))
        codes.append(killer.kill_at(number, folder, build, folder, how, kind=kind))
        assert before is None or read_table(str(folder / ".seekable"))
        check(open_data(folder))
        if codes[-1] == 0:
            break
    return codes


@pytest.mark.parametrize("how", ["whole", "parts"])
def test_a_build_killed_at_an_operation_of_each_kind_leaves_an_index_that_is_whole(
    tmp_path: Path, how: str
) -> None:
    with Killer() as killer:
        change(tmp_path, generation=0)
        kinds = killer.operations(tmp_path, build, tmp_path, how)
        assert {"open", "os.fsync", "os.rename"} <= {*kinds}
        # A folder is listed only while it has no index.
        points = [(kind, number) for kind, number in one_of_each_kind(kinds) if kind != "os.listdir"]
        codes = check_kills(tmp_path, how, points, killer)
    assert {*codes} == {KILLED}


@pytest.mark.exhaustive
@pytest.mark.parametrize("how", ["whole", "parts"])
def test_a_build_killed_at_any_file_operation_leaves_an_index_that_is_whole(tmp_path: Path, how: str) -> None:
    with Killer() as killer:
        codes = check_kills(
            tmp_path, how, ((None, number) for number in itertools.count(1, wider(1))), killer
        )
    assert codes.count(KILLED) > 30 // wider(1)


@pytest.mark.exhaustive
def test_a_build_killed_at_random_moments_leaves_an_index_that_is_whole(tmp_path: Path) -> None:
    moments = random.Random(0)
    generation = 1
    for _ in range(14):
        with start(BUILD_FOR_EVER, tmp_path, generation) as builder:
            assert builder.stdout
            # After its first build, so that imports are done and the moment falls into a later one.
            generation = int(builder.stdout.readline()) + 100
            with pytest.raises(subprocess.TimeoutExpired):
                builder.wait(timeout=moments.uniform(0.0, 0.1))
            builder.kill()
        check(open_data(tmp_path))


def test_an_interrupted_build_goes_on_where_it_was(tmp_path: Path) -> None:
    fill(tmp_path, files=30)
    with Killer() as killer:
        assert killer.kill_at(150, tmp_path, build, tmp_path, "whole") == KILLED
    table = read_table(str(tmp_path / ".seekable"))
    assert table
    assert 0 < table.files < 30
    told: list[Progress] = []
    check(open_data(tmp_path, progress=told.append))
    assert told[-1].files == 30 - table.files


@pytest.mark.parametrize(
    "names", [["."] * 8, [f"part-{number}.jsonl" for number in range(8)]], ids=["same-files", "own-files"]
)
def test_builders_at_once_agree(tmp_path: Path, names: list[str]) -> None:
    fill(tmp_path, files=8)
    asked = [tmp_path / name for name in names]
    with ThreadPoolExecutor(len(asked)) as threads:
        counts = list(threads.map(count, asked))
    told: list[object] = []
    files = open_data(tmp_path, progress=told.append)
    check(files)
    assert told == [], "nothing that one builder wrote was lost to another one"
    assert counts == [len(read(open_data(path))) for path in asked]
