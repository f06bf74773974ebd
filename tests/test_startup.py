"""What a process loads that opens an indexed file and takes a batch."""

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

MOST_MODULES = 125
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
WRITTEN = 1_700_000_000

TAKE_A_BATCH = """
import sys
import seekable as sk
batch = next(iter(sk.Loader(sk.open(sys.argv[1]).shuffle(seed=1), batch_size=4, prefetch=0)))
assert sorted(batch) == ["id"] and len(batch["id"]) == 4, batch
assert "numpy.ma" not in sys.modules  # It takes as long to load as all of a small dataset to open.
print(*[name for name in sys.modules if name.partition(".")[0] == "seekable"])
"""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The modules of seekable that the process has loaded."""
    path: Path = tmp_path_factory.mktemp("startup") / "a.jsonl"
    path.write_text("".join(f"{json.dumps({'id': row})}\n" for row in range(20)))
    # Of a file written this moment the index is made anew: the file may change within its time stamp.
    os.utime(path, (WRITTEN, WRITTEN))
    sk.open(path)
    done = subprocess.run(
        [sys.executable, "-c", TAKE_A_BATCH, path], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_a_batch_of_lines_needs_few_modules(loaded: list[str]) -> None:
    assert len(loaded) <= MOST_MODULES, sorted(loaded)


def test_no_code_of_other_jobs_is_loaded(loaded: list[str]) -> None:
    assert [name for name in loaded if not LATE.isdisjoint(name.split("."))] == []
