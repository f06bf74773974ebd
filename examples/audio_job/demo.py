"""Show a training on audio: Shar, noise at an SNR, batches by duration, kill -9, resume on other ranks.

    python demo.py [--output FOLDER]

The work is done by the programs beside this one, each of which can be run alone: sounds.py, train.py (the one
to copy) and proof.py.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time

import seekable as sk

HERE = os.path.dirname(os.path.abspath(__file__))
MARK = "# made by the demo of seekable, which makes it anew each time\n*\n"
"""The .gitignore by which an output folder is known."""

KILL_AT = 35
"""Between two saved states of 60 steps."""


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
    if os.listdir(folder):
        try:
            with open(mark, encoding="utf-8") as file:
                is_ours = file.read() == MARK
        except OSError:
            is_ours = False
        if not is_ours:
            sys.exit(f"the output folder must be empty or an earlier demo's; {folder!r} holds other things")
    with open(mark, "w", encoding="utf-8") as file:
        file.write(MARK)
    paths = [os.path.join(folder, part) for part in parts]
    for path in paths:
        shutil.rmtree(path, ignore_errors=True)
    return paths


def train(run: str, data: str, ranks: int, *, kill_at: int | None = None) -> None:
    """Train as a group of processes; kill all of them, with SIGKILL, when they are at a step."""
    command = program("train.py", run, data, f"--ranks={ranks}")
    line = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as group:
        assert group.stdout is not None
        for line in group.stdout:
            if not line.startswith("step "):
                print(line, end="", flush=True)
            elif sys.stdout.isatty():
                print(f"\r{line.strip()} ", end="", flush=True)
            if kill_at is not None and line.startswith(f"step {kill_at} "):
                os.killpg(group.pid, signal.SIGKILL)
                print(f"\r{line.strip()}: all {ranks} ranks killed by SIGKILL")
                break
        else:
            print(f"\r{line.strip()} ")
    if group.returncode != (0 if kill_at is None else -signal.SIGKILL):
        sys.exit(f"the training ended with {group.returncode}: run the demo again")


def main() -> int:
    """Run all steps; return the exit code, which is that of the proof."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", default="demo-audio-output", help="where all is written (%(default)s)")
    args = parser.parse_args()
    data, interrupted, uninterrupted = make_output(args.output, ("data", "interrupted", "uninterrupted"))
    announce("write speech-like signals and noise as Shar")
    subprocess.run(program("sounds.py", data), check=True)
    announce("open: find where each cut and its recording lie")
    for name in ("speech", "noise"):
        began = time.perf_counter()
        cuts = sk.open(f"shar:{os.path.join(data, name)}", decode="audio")
        samples, rate = cuts[len(cuts) // 2]["recording"]["data"]
        milliseconds = 1000 * (time.perf_counter() - began)
        middle = f"the middle one has {samples.size / rate:.2f} s"
        print(f"{len(cuts):,} cuts of {name} in {milliseconds:.0f} ms; {middle}")
    announce(
        "shuffle, mix with noise at 5 to 20 dB, bucket by duration, train on 3 ranks; kill -9 in mid-epoch"
    )
    train(interrupted, data, 3, kill_at=KILL_AT)
    announce("resume on 2 ranks")
    train(interrupted, data, 2)
    announce("for comparison: the same from the start on 1 rank, uninterrupted")
    train(uninterrupted, data, 1)
    announce("the proof, from the logs of all launches")
    proof = subprocess.run(program("proof.py", interrupted, uninterrupted), check=False)
    print(f"\nThe program to copy is {os.path.relpath(os.path.join(HERE, 'train.py'))}.")
    return proof.returncode


if __name__ == "__main__":
    sys.exit(main())
