"""A large script opens in the memory of a small one."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path

OPENED = """
import sys
import seekable as sk
opener = sk.open
def private():
    with open("/proc/self/smaps_rollup") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Private_"))
before = private()
ds = opener(sys.argv[1], format=sk.formats.Kaldi(holder="matrix"))
keys = ds.keys()
assert keys[len(ds) // 2] in keys and "none" not in keys
print(private() - before)
"""


def script(folder: Path, lines: int) -> str:
    path = folder / f"{lines}.scp"
    with path.open("w") as file:
        file.writelines(f"utt-{row:08d} {folder}/raw.{row % 40}.ark:{row * 997}\n" for row in range(lines))
    os.utime(path, (1_700_000_000, 1_700_000_000))
    sk.open(path, format=sk.formats.Kaldi(holder="matrix"))
    return str(path)


@pytest.mark.exhaustive
def test_a_script_of_many_lines_takes_no_more_memory_than_a_small_one(tmp_path: Path) -> None:
    small, large = (_kilobytes(script(tmp_path, lines)) for lines in (10, 1_000_000))
    # The system maps some megabytes around the pages that are read; the lines alone are 40 MB.
    assert large < small + 16_000


def _kilobytes(path: str) -> int:
    done = subprocess.run([sys.executable, "-c", OPENED, path], capture_output=True, text=True, check=True)
    return int(done.stdout)
