"""Show a training that is stopped again and again, on other ranks each time, and prove that nothing is lost.

    python -m examples.preempted_job.demo [--stops N] [--output FOLDER]

The ranks get SIGTERM or SIGUSR1, one of them, all, or all with their worker processes, or a deadline; two
launches are killed without a word. The work is done by train.py (the one to copy) and proof.py, beside this.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
from itertools import cycle

from examples.output_folder import announce, make_output

HERE = os.path.dirname(os.path.abspath(__file__))

WAYS = ("SIGTERM to a rank", "SIGUSR1 to all", "SIGTERM to all, then SIGUSR1", "all processes", "deadline")
RANKS = (3, 2, 4, 1, 2, 6)
STEPS_BEFORE = 4
"""Steps of a launch before it gets a signal."""

REST = 20
"""Steps of the last launch, which nothing stops."""

WITHOUT_END = 1_000_000

MADE = re.compile(r"rank (\d+) of pid (\d+) made step (\d+)")


def write_data(folder: str) -> None:
    """Write paragraphs of Python's standard library as documents of two sources, each with a number."""
    root = sysconfig.get_path("stdlib")
    texts: list[str] = []
    for name in sorted(os.listdir(root)):
        if name.endswith(".py"):
            with open(os.path.join(root, name), encoding="utf-8") as file:
                texts += [text for text in file.read().split("\n\n") if text.strip()]
    os.makedirs(folder)
    for number, name in enumerate("ab"):
        with open(os.path.join(folder, f"{name}.jsonl"), "w", encoding="utf-8") as file:
            for i in range(number, len(texts), 2):
                print(json.dumps({"id": i, "text": texts[i]}), file=file)


def children_of(pids: list[int]) -> list[int]:
    """Return the ids of the child processes of some processes."""
    found = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid="], check=True, capture_output=True, text=True
    ).stdout
    pairs = [tuple(map(int, line.split())) for line in found.splitlines()]
    return [pid for pid, parent in pairs if parent in pids]


def send(way: str, pids: list[int]) -> None:
    """Send the signals of a stop to the ranks."""
    last = pids[-1:]
    told = {
        "SIGTERM to a rank": [(signal.SIGTERM, last)],
        "SIGUSR1 to all": [(signal.SIGUSR1, pids)],
        "SIGTERM to all, then SIGUSR1": [(signal.SIGTERM, pids), (signal.SIGUSR1, pids)],
        "all processes": [(signal.SIGTERM, [*children_of(pids), *pids])],
        "kill": [(signal.SIGKILL, [*children_of(pids), *pids])],
        "deadline": [],
    }
    for number, to in told[way]:
        for pid in to:
            with contextlib.suppress(ProcessLookupError):  # A worker ends with its rank.
                os.kill(pid, number)


def launch(run: str, data: str, ranks: int, way: str | None, steps: int = WITHOUT_END) -> int:
    """Train until a stop, or to the last step if there is no way to stop; return the last step."""
    options = [f"--ranks={ranks}", f"--steps={steps}"]
    options += ["--workers=1"] if way == "all processes" else []
    options += ["--deadline=0.3"] if way == "deadline" else []
    command = [sys.executable, os.path.join(HERE, "train.py"), run, data, *options]
    pids, steps_of = dict.fromkeys(range(ranks), 0), dict.fromkeys(range(ranks), 0)
    said, sent, step = "", way is None, 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if not (made := MADE.match(line)):
                said = line.strip()
                continue
            rank = int(made[1])
            pids[rank], steps_of[rank] = int(made[2]), steps_of[rank] + 1
            if not sent and way is not None and min(steps_of.values()) >= STEPS_BEFORE:
                send(way, list(pids.values()))
                sent = True
            step = int(made[3])
    print(
        f"{ranks} rank{'s' * (ranks > 1)}, {way or 'no stop'}: {said or f'ended after step {step}'}",
        flush=True,
    )
    if process.returncode not in {0, signal.SIGKILL}:
        sys.exit(f"the training ended with {process.returncode}: run the demo again")
    return step


def main() -> int:
    """Run all steps; return the exit code, which is that of the proof."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", default="demo-stops-output", help="where all is written (%(default)s)")
    parser.add_argument("--stops", type=int, default=20, help="how often the run is stopped (%(default)s)")
    args = parser.parse_args()
    make_output(args.output)
    data, stopped, whole = (os.path.join(args.output, name) for name in ("data", "stopped", "whole"))
    announce("write paragraphs of Python's standard library as two sources")
    write_data(data)
    announce(f"filter, mix 70 to 30 and pack; train, with {args.stops} stops and 2 kills")
    ways = [WAYS[number % len(WAYS)] for number in range(args.stops)]
    for at in (args.stops * 2 // 3, args.stops // 3):
        ways.insert(at, "kill")
    ranks, step = cycle(RANKS), 0
    for way in ways:
        step = launch(stopped, data, next(ranks), way)
    steps = launch(stopped, data, 2, None, step + REST)
    announce("for comparison: uninterrupted, on 1 rank")
    launch(whole, data, 1, None, steps)
    announce("the proof, from the logs of all ranks")
    proof = subprocess.run([sys.executable, os.path.join(HERE, "proof.py"), stopped, whole], check=False)
    print(f"\nThe program to copy is {os.path.relpath(os.path.join(HERE, 'train.py'))}.")
    return proof.returncode


if __name__ == "__main__":
    sys.exit(main())
