"""Builds that are killed with SIGKILL, and builds that run at once: the index is whole at any moment."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.index.corpus import check, fill, open_data, read, write

from seekable.index.catalog import read_table

if TYPE_CHECKING:
    from seekable.parallel.progress import Progress

HERE = Path(__file__).parents[2]

BUILD_FOR_EVER = """
import itertools, sys
from pathlib import Path
from seekable.index.building import ledger
from tests.index.corpus import open_data
from tests.index.test_kills import change
ledger._COMMIT_SECONDS = -1.0  # Commit after each file.
folder = Path(sys.argv[1])
for generation in itertools.count(int(sys.argv[2])):
    change(folder, generation=generation)
    open_data(folder)
    print(generation, flush=True)
"""

BUILD = """
import sys
from pathlib import Path
from seekable.index.building import ledger
from tests.index.corpus import open_data, read
ledger._COMMIT_SECONDS = -1.0  # Commit after each file.
print(len(read(open_data(Path(sys.argv[1])))))
"""

# Everything that a build does to files goes through an audit event: opening, renaming, removing, touching.
KILLED_AT_EVENT = """
import os, signal, sys
left = int(sys.argv[2])
def count(event, arguments):
    global left
    if event in ("open", "os.rename", "os.remove", "os.utime", "os.mkdir", "os.scandir"):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
from pathlib import Path
from seekable.index import digest
from seekable.index.building import build, ledger, merge, spool
from tests.index.corpus import open_data
ledger._COMMIT_SECONDS = -1.0
if sys.argv[3:] == ["parts"]:
    build._PART_BYTES = digest.PIECE_BYTES = 30
    spool._SPILL_BYTES = 64
    merge._MOST_SEGMENTS = 3
sys.addaudithook(count)
open_data(Path(sys.argv[1]))
"""


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def change(folder: Path, *, generation: int) -> None:
    fill(folder, files=3, rows=generation % 7)
    write(folder / f"new-{generation % 3}.jsonl", b"1\n" * generation, seconds=generation)


@pytest.mark.parametrize("how", ["whole", "parts"])
def test_a_build_killed_at_any_file_operation_leaves_an_index_that_is_whole(tmp_path: Path, how: str) -> None:
    open_data_ends = False
    event = 1
    while not open_data_ends:
        change(tmp_path, generation=event)
        before = read_table(str(tmp_path / ".seekable"))
        with start(KILLED_AT_EVENT, tmp_path, event, how) as killed:
            _, errors = killed.communicate(timeout=60)
        assert killed.returncode in (0, -signal.SIGKILL), errors
        assert before is None or read_table(str(tmp_path / ".seekable"))
        check(open_data(tmp_path))
        open_data_ends = killed.returncode == 0
        event += 4
    assert event > 30


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
    with start(KILLED_AT_EVENT, tmp_path, 150) as killed:
        killed.communicate(timeout=60)
    assert killed.returncode == -signal.SIGKILL
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
    builders = [start(BUILD, path) for path in asked]
    counts = []
    for builder in builders:
        with builder:
            out, errors = builder.communicate(timeout=120)
        assert builder.returncode == 0, errors
        counts.append(int(out))
    told: list[object] = []
    files = open_data(tmp_path, progress=told.append)
    check(files)
    assert told == [], "nothing that one builder wrote was lost to another one"
    assert counts == [len(read(open_data(path))) for path in asked]
