"""An index of 100,000 files and a billion records, and a run of 512 ranks: the time and memory of each job.

The index is real: each line of each file is found and has its offset, 8 GB in all. The files are links to a
thousand, so that they take 130 MB. Nothing that is measured reads more of them than a batch, but for building
the index. One process stands for each rank in turn.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from benchmarks import at_scale_jobs
from benchmarks.at_scale_jobs import Place
from benchmarks.data import placed
from benchmarks.measure import Target, absolute, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.data import Data
    from benchmarks.measure import Row

_PROGRAM = os.path.abspath(at_scale_jobs.__file__)

_DISTINCT = 1000
"""Files with lines of their own; the others are links to them."""

_LOOK_SECONDS = 0.002

_MB = 1e6


@dataclass(frozen=True, slots=True)
class Bound:
    """A job, and what it may take of 100,000 files, a billion records and 512 ranks."""

    job: str
    name: str
    seconds: float
    megabytes: float


BOUNDS = (
    Bound("index", "index", 240, 1000),
    Bound("opening", "open", 2, 100),
    Bound("record", "first record", 0.05, 10),
    Bound("restore", "state at position 10^12, to the first batch of the last rank", 1, 100),
    Bound("step", "plan a step of all ranks, full shuffle", 5, 50),
    Bound("windowed_step", "plan a step of all ranks, windows", 5, 250),
    Bound("mixed_step", "plan a step of all ranks, mixture of 8 in windows", 15, 1000),
    Bound("kept_rows", "open the rows kept by a filter, one in ten", 2, 50),
    Bound("save", "save the states of all ranks, and load them", 20, 300),
    Bound("save_lanes", "save a lane for each rank, and load them", 20, 300),
    Bound("rows", "resume by rows, half an epoch", 5, 400),
    Bound("mixed_rows", "resume by rows, mixture of 4", 15, 800),
    Bound("add", "add a file", 10, 300),
    Bound("simulate", "simulate an epoch, full shuffle", 60, 300),
    Bound("windowed_simulate", "simulate an epoch, windows", 60, 400),
)
"""The bounds that docs/at-scale.md states."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What a job took."""

    seconds: float
    own_bytes: int
    """The most memory that no file has, beyond that of the process before the job."""
    all_bytes: int
    """The same with the pages of files, most of all of the index, which processes share."""


def rows(data: Data) -> Iterator[Row]:
    """Measure each job in a process of its own."""
    files, each, ranks = data.sizes.scale
    with tempfile.TemporaryDirectory(dir=data.folder) as scratch:
        index = os.path.join(scratch, "index")
        place = Place(_linked(data, files, each), index, scratch, files * each, ranks)
        for bound in BOUNDS:
            taken = measured(bound.job, place)
            name = f"{bound.name} ({files:,} files, {files * each:,} records, {ranks} ranks)"
            with_pages = f"with pages of files {shown(taken.all_bytes / _MB)} MB"
            yield absolute(name, taken.seconds * 1e3, "ms", Target("at most", bound.seconds * 1e3))
            yield absolute(
                f"{bound.name}, memory",
                max(taken.own_bytes / _MB, 0.01),
                "MB",
                Target("at most", bound.megabytes),
                against=with_pages,
            )


def measured(job: str, place: Place) -> Taken:
    """Do a job in a new process, and watch its memory from outside, with that of its workers."""
    command = [sys.executable, _PROGRAM, job, at_scale_jobs.argument(place)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        process.stdout.readline()  # All is prepared.
        own, everything = _memory(process.pid)
        most_own, most = own, everything
        while not select.select([process.stdout], [], [], _LOOK_SECONDS)[0]:
            now_own, now = _memory(process.pid)
            most_own, most = max(most_own, now_own), max(most, now)
        answer = process.stdout.read()
    if process.returncode:
        message = f"{job} ended with status {process.returncode}"
        raise RuntimeError(message)
    return Taken(float(answer), most_own - own, most - everything)


def _memory(pid: int) -> tuple[int, int]:
    """Return the bytes that no file has, and all bytes, of a process and its children."""
    own = everything = 0
    # It may end at any moment.
    with contextlib.suppress(OSError, KeyError):
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            fields = dict(line.split(":", 1) for line in file)
        own = 1024 * (int(fields["RssAnon"].split()[0]) + int(fields["RssShmem"].split()[0]))
        everything = 1024 * int(fields["VmRSS"].split()[0])
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            children = [_memory(int(child)) for child in file.read().split()]
        own += sum(child[0] for child in children)
        everything += sum(child[1] for child in children)
    return own, everything


def _linked(data: Data, files: int, each: int) -> str:
    """Return a folder of so many files of so many short lines each."""
    folder = os.path.join(data.folder, f"linked-{files}-{each}")
    if os.path.exists(folder):
        return folder
    distinct = min(_DISTINCT, files)
    for number in range(distinct):
        placed(os.path.join(f"{folder}.new", "lines", f"{number}.jsonl"), [_lines(number, each)])
    for number in range(files):
        path = os.path.join(f"{folder}.new", "links", f"{number // 1000:03d}", f"{number:06d}.jsonl")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.link(os.path.join(f"{folder}.new", "lines", f"{number % distinct}.jsonl"), path)
    os.rename(os.path.join(f"{folder}.new", "links"), folder)
    shutil.rmtree(f"{folder}.new")
    return folder


def _lines(seed: int, count: int) -> bytes:
    """Return lines of several lengths."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, 10 ** rng.integers(1, 9, count))
    return b"".join(b'{"id": %d}\n' % number for number in numbers.tolist())
