"""Show the main job on real data: index, shuffle, mix, train, kill -9, resume, and the proof of it all.

    python demo.py [DATA] [--output FOLDER]

DATA is a file, a folder or a glob of JSONL or text; Python's own standard library if left out. A folder that
holds both *.jsonl and *.txt gives two sources, anything else is cut into halves. The work is done by the
programs beside this one, each of which can be run alone: standard_library.py, train.py (the one to copy),
proof.py and picture.py.
"""

from __future__ import annotations

import argparse
import glob
import os
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.parallel.progress import Progress

HERE = os.path.dirname(os.path.abspath(__file__))
MARK = "# made by the demo of seekable, which makes it anew each time\n*\n"
"""The .gitignore by which an output folder is known."""

MOST_RECORDS = 200_000
MOST_BYTES = 300_000_000
"""The epoch is cut to about these, so that the demo takes less than a minute on any data."""

FEWEST_RECORDS = 100
"""With fewer there is no time to kill anything."""


@dataclass(frozen=True)
class Plan:
    """What the training processes are told."""

    sources: list[str]
    index_dir: str
    batch_size: int
    save_every: int
    records: int

    def command(self, run: str) -> list[str]:
        """Return the command line that trains in a run's folder, from its newest state if it has one."""
        options = [f"--index-dir={self.index_dir}", f"--batch-size={self.batch_size}"]
        options += [f"--save-every={self.save_every}", f"--records={self.records}"]
        return program("train.py", *options, run, *self.sources)


def program(name: str, *arguments: str) -> list[str]:
    """Return the command line of one of the programs beside this one."""
    return [sys.executable, os.path.join(HERE, name), *arguments]


def announce(title: str) -> None:
    """Say in one line what comes."""
    print(f"\n== {title}", flush=True)


def make_output(folder: str, parts: tuple[str, ...]) -> list[str]:
    """Make the output folder without what an earlier demo left in it, and return the paths of its parts."""
    mark = os.path.join(folder, ".gitignore")
    os.makedirs(folder, exist_ok=True)
    if os.listdir(folder) and not (os.path.isfile(mark) and read_text(mark) == MARK):
        sys.exit(f"the output folder must be empty or of an earlier demo, and {folder!r} holds other things")
    with open(mark, "w", encoding="utf-8") as file:
        file.write(MARK)
    paths = [os.path.join(folder, part) for part in parts]
    for path in paths:
        shutil.rmtree(path, ignore_errors=True)
    return paths


def read_text(path: str) -> str:
    """Return the text of a file."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def sources_of(data: str) -> list[str]:
    """Return the two sources of a folder that has both formats, else what was given, to be halved."""
    both = [os.path.join(glob.escape(data), "**", f"*.{suffix}") for suffix in ("jsonl", "txt")]
    return both if all(glob.glob(pattern, recursive=True) for pattern in both) else [data]


def index(sources: list[str], index_dir: str) -> Plan:
    """Index the sources, and choose how much of them to train on."""
    open_source = sk.open  # loaded before the clock starts
    began, size, lengths = time.perf_counter(), 0, []
    for source in sources:
        seen: list[Progress] = []
        lengths.append(len(open_source(source, index=sk.Index(folder=index_dir), progress=seen.append)))
        size += seen[-1].bytes
    seconds, records = time.perf_counter() - began, sum(lengths)
    for source, length in zip(sources, lengths, strict=True):
        print(f"{length:,} records in {source}")
    rate = f"{size / 1e6 / seconds:,.0f} MB/s, {records / seconds:,.0f} records/s"
    print(f"{size / 1e6:,.1f} MB in {seconds:.2f} s: {rate}")
    if len(lengths) == 1:
        print("one source: its first half is mixed with its second half")
        lengths = [records // 2, records - records // 2]
    epoch = int(min(lengths[0] / 0.7, lengths[1] / 0.3))
    if epoch < FEWEST_RECORDS:
        sys.exit(f"mixed 70:30 these make {epoch} records, and the demo needs {FEWEST_RECORDS}: give it more")
    epoch = min(epoch, MOST_RECORDS, max(FEWEST_RECORDS, MOST_BYTES * records // size))
    batch_size = max(1, min(64, epoch // 500))
    save_every = max(2, min(100, epoch // batch_size // 20))
    return Plan(sources, index_dir, batch_size, save_every, epoch)


def follow(process: subprocess.Popen[str]) -> Iterator[tuple[int, int]]:
    """Pass on what a training process says, and yield which batch of how many it is at."""
    line = ""
    assert process.stdout is not None
    for line in process.stdout:
        if not line.startswith("batch "):
            print(line, end="", flush=True)
            continue
        if sys.stdout.isatty():
            print(f"\r{line.strip()} ", end="", flush=True)
        _, step, _, total, *_ = line.replace(",", "").split()
        yield int(step), int(total)
    print(f"\r{line.strip()} ")


def train_and_kill(plan: Plan, run: str) -> None:
    """Start a training process, and kill it in mid-epoch, between two saved states."""
    with subprocess.Popen(plan.command(run), stdout=subprocess.PIPE, text=True) as process:
        for step, total in follow(process):
            if step > 0.4 * total and step % plan.save_every >= plan.save_every // 2:
                process.kill()
                print(f"\rkilled by SIGKILL when it had said that it was at batch {step} of {total}")
                break
    if process.returncode == 0:
        sys.exit("the process ended before it was killed: run the demo again, or on more data")
    if process.returncode > 0:
        sys.exit(process.returncode)


def train(plan: Plan, run: str) -> None:
    """Train to the end of the epoch, in a process of its own."""
    with subprocess.Popen(plan.command(run), stdout=subprocess.PIPE, text=True) as process:
        for _ in follow(process):
            pass
    if process.returncode:
        sys.exit(process.returncode)


def show_what_to_try(sources: list[str] | None, run: str, index_dir: str) -> None:
    """End with what can be done next, on the user's own sources where they were given."""
    seekable = os.path.relpath(os.path.join(os.path.dirname(sys.executable), "seekable"))
    losses = os.path.join(run, "losses.jsonl")
    paths = [shlex.quote(source) for source in sources or ["PATH"]]
    print(f"""
On your own files (JSONL or text: a file, a folder or a glob):
  {seekable} index {" ".join(paths)}
  {seekable} info {paths[0]}
  {seekable} sample {paths[0]} -n 5 --seed 0
  make demo DATA=PATH
The run in a browser: its mixture, each of its batches, its states and its losses:
  {seekable} view {shlex.quote(run)} --index folder={shlex.quote(index_dir)} --log {shlex.quote(losses)}
The program to copy is {os.path.relpath(os.path.join(HERE, "train.py"))}.""")


def main() -> int:
    """Run all steps; return the exit code, which is that of the proof."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", nargs="?", help="a file, folder or glob of JSONL or text")
    parser.add_argument("--output", default="demo-output", help="where all is written (%(default)s)")
    args = parser.parse_args()
    index_dir, interrupted, uninterrupted = make_output(
        args.output, ("index", "interrupted", "uninterrupted")
    )
    data = args.data
    if data is None:
        announce("write Python's standard library as data: passages as JSONL, lines of code as text")
        (data,) = make_output(args.output, ("data",))
        subprocess.run(program("standard_library.py", data), check=True)
    announce("index: find where each record lies")
    try:
        plan = index(sources_of(data), index_dir)
    except sk.SeekableError as error:
        sys.exit(str(error))
    announce("open, shuffle each source, mix 70:30, map to bytes, train; kill -9 in mid-epoch")
    train_and_kill(plan, interrupted)
    announce("resume in a new process")
    train(plan, interrupted)
    announce("for comparison: the same from the start, uninterrupted")
    train(plan, uninterrupted)
    announce("the proof, from the logs of all processes")
    proof = subprocess.run(program("proof.py", interrupted, uninterrupted), check=False)
    announce("the picture")
    picture = os.path.join(args.output, "loss.svg")
    subprocess.run(program("picture.py", interrupted, uninterrupted, picture), check=True)
    show_what_to_try(plan.sources if args.data else None, interrupted, index_dir)
    return proof.returncode


if __name__ == "__main__":
    sys.exit(main())
