"""What a process loads that opens an indexed file, takes a batch, and then its state."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path

MOST_MODULES = 95
MOST_OF_A_STATE = 10
LATE = frozenset(
    {
        *(
            "arrow",
            "audio",
            "facts",
            "hub",
            "kaldi",
            "packing",
            "parquet",
            "remote",
            "resume",
            "shar",
            "stream",
        ),
        *("tables", "tar", "tokens", "viewer", "writing"),
    }
)
NAMES_OF_LATE_CODE = frozenset({"seekable.writing", "seekable.writing.write_methods"})
"""The methods that write, of datasets as of streams, so they lie in neither room; their code is late."""

WRITTEN = 1_700_000_000

TAKE_A_BATCH = """
import sys
import seekable as sk
loader = sk.Loader(sk.open(sys.argv[1]).shuffle(seed=1), batch_size=4, prefetch=0)
batch = next(iter(loader))
assert sorted(batch) == ["id"] and len(batch["id"]) == 4, batch
assert "numpy.ma" not in sys.modules  # It takes as long to load as all of a small dataset to open.
print(*[name for name in sys.modules if name.partition(".")[0] == "seekable"])
before = set(sys.modules)
loader.state_dict()
print(*[name for name in sys.modules if name.partition(".")[0] == "seekable" and name not in before])
"""


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the process has printed: the modules of its batch, and those that its state took besides."""
    path: Path = tmp_path_factory.mktemp("startup") / "a.jsonl"
    path.write_text("".join(f"{json.dumps({'id': row})}\n" for row in range(20)))
    # Of a file written this moment the index is made anew: the file may change within its time stamp.
    os.utime(path, (WRITTEN, WRITTEN))
    sk.open(path)
    done = subprocess.run(
        [sys.executable, "-c", TAKE_A_BATCH, path], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def loaded(output: list[str]) -> list[str]:
    """The modules of seekable that the process has loaded for a batch."""
    return output[0].split()


def test_a_batch_of_lines_needs_few_modules(loaded: list[str]) -> None:
    assert len(loaded) <= MOST_MODULES, sorted(loaded)


def test_no_code_of_other_jobs_is_loaded(loaded: list[str]) -> None:
    late = {name for name in loaded if not LATE.isdisjoint(name.split("."))}
    assert sorted(late - NAMES_OF_LATE_CODE) == []


def test_the_first_state_of_a_run_needs_few_modules_more(output: list[str]) -> None:
    assert len(output[1].split()) <= MOST_OF_A_STATE, output[1]


COUNT = """
import collections, os, sys
import seekable as sk

HOME = os.path.dirname(sk.__file__)

def counted(function):
    files = collections.Counter()

    def look(frame, event, _):
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(HOME):
            files[path] += 1

    sys.setprofile(look)
    try:
        result = function()
    finally:
        sys.setprofile(None)
    print(files.total(), len(files))
    return result

def first_batch():
    run = iter(sk.Loader(sk.open(sys.argv[1]).shuffle(seed=1), batch_size=32, prefetch=0))
    return run, next(run)

first_batch()  # loads what is loaded once
run, _ = counted(first_batch)
next(run)
counted(lambda: next(run))
ds = sk.open(sys.argv[1])
counted(lambda: ds[5])
counted(lambda: ds[6])
"""


@pytest.mark.parametrize(
    ("line", "most_calls", "most_files"),
    [
        pytest.param(0, 430, 53, id="open to first batch"),
        pytest.param(1, 60, 20, id="a later batch"),
        pytest.param(2, 40, 25, id="the first record"),
        pytest.param(3, 10, 10, id="a later record"),
    ],
)
def test_the_way_of_a_batch_takes_few_calls(
    counted: list[str], line: int, most_calls: int, most_files: int
) -> None:
    calls, files = map(int, counted[line].split())
    assert 0 < calls <= most_calls
    assert 0 < files <= most_files


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The calls of our functions, and the files that these are in, on each way."""
    path: Path = tmp_path_factory.mktemp("way") / "a.jsonl"
    path.write_text("".join(f"{json.dumps({'id': row, 'text': 'x'})}\n" for row in range(1000)))
    os.utime(path, (WRITTEN, WRITTEN))
    sk.open(path)
    done = subprocess.run([sys.executable, "-c", COUNT, path], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()
