"""Show what leaving records out does to a training, and to nothing else: from the start, and by a takedown.

    python -m examples.without_job.demo [--output FOLDER]

One hundredth of the records of a source is withdrawn. The same small model is trained with them, without
them, and with them until a takedown in mid-run, around which the run is killed and goes on with other ranks.
The work is done by the programs beside this one: train.py (the one to copy) and proof.py.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import sysconfig

from examples.main_job.picture import COLUMNS, averaged, drawn, svg
from examples.tokens_job.demo import announce, make_output
from examples.without_job.proof import joined, read_launches

RECORDS = {"a": 2000, "b": 900}
STEPS = 180
"""About one and a half epochs of each source."""

TAKEDOWN = 100
"""The step of the takedown, within the first epoch of source a."""

LAUNCHES = ((3, 44, False), (2, 77, True), (6, 122, False), (1, None, False))
"""Launches of the run with the takedown: ranks, the step at which they are killed, whether they are told."""


def write_data(folder: str) -> None:
    """Write paragraphs of Python's standard library as two sources; each record says where it lies."""
    root = sysconfig.get_path("stdlib")
    texts: list[str] = []
    for name in sorted(os.listdir(root)):
        if name.endswith(".py") and len(texts) < 4 * sum(RECORDS.values()):
            with open(os.path.join(root, name), encoding="utf-8") as file:
                texts += [text for text in file.read().split("\n\n") if len(text) > 20]
    random.Random(0).shuffle(texts)
    os.makedirs(folder)
    for source, count in RECORDS.items():
        with open(os.path.join(folder, f"{source}.jsonl"), "w", encoding="utf-8") as file:
            for row in range(count):
                print(json.dumps({"source": source, "row": row, "text": texts.pop()}), file=file)


def withdraw(path: str) -> None:
    """Write the list of the withdrawn records: one in a hundred of source a."""
    rows = sorted(random.Random(1).sample(range(RECORDS["a"]), RECORDS["a"] // 100))
    with open(path, "w", encoding="utf-8") as file:
        for row in rows:
            print(json.dumps({"path": "a.jsonl", "row": row}), file=file)
    print(f"{len(rows)} of {RECORDS['a']:,} records of source a, by file and row: {path}")


def train(run: str, data: str, ranks: int, *options: str, kill_at: int | None = None) -> None:
    """Train as a group of processes; kill all of them, with SIGKILL, when they are at a step."""
    command = [sys.executable, "-m", "examples.without_job.train", run, data]
    command += [f"--ranks={ranks}", f"--steps={STEPS}", *options]
    line = ""
    # The ranks share the processors of one machine.
    alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=alone, start_new_session=True
    ) as group:
        assert group.stdout is not None
        for line in group.stdout:
            if not line.startswith("step "):
                print(line, end="", flush=True)
            if kill_at is not None and line.startswith(f"step {kill_at} "):
                os.killpg(group.pid, signal.SIGKILL)
                print(f"{line.strip()}: all ranks killed by SIGKILL", flush=True)
                break
        else:
            print(line.strip(), flush=True)
    if group.returncode != (0 if kill_at is None else -signal.SIGKILL):
        sys.exit(f"the training ended with {group.returncode}: run the demo again")


def draw(runs: dict[str, str], path: str) -> None:
    """Draw the loss curves of some runs to one scale, in the terminal and as an SVG."""
    curves = {
        name: {number: step.loss for number, step in joined(read_launches(run)).items()}
        for name, run in runs.items()
    }
    losses = [loss for curve in curves.values() for _, loss in averaged(curve, STEPS, COLUMNS)]
    low, high = min(losses), max(losses)
    for name, curve in curves.items():
        print(f"loss, {name}")
        print("\n".join(drawn([curve], STEPS, low=low, high=high)))
    with open(path, "w", encoding="utf-8") as file:
        file.write(svg("loss by batch", curves, STEPS, low=low, high=high))
    print(f"the same, larger, in one picture: {path}")


def main() -> int:
    """Run all steps; return the exit code, which is that of the proof."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", default="demo-without-output", help="where all is written (%(default)s)")
    args = parser.parse_args()
    data, whole, without, takedown = make_output(args.output, ("data", "whole", "without", "takedown"))
    withdrawn = os.path.join(args.output, "withdrawn.jsonl")
    announce("write paragraphs of Python's standard library as two sources; withdraw some")
    write_data(data)
    withdraw(withdrawn)
    announce("train on all records, on 1 rank")
    train(whole, data, 1)
    announce("the same without the withdrawn records, on 2 ranks")
    train(without, data, 2, f"--without={withdrawn}")
    announce(f"the same with a takedown at step {TAKEDOWN}; kill -9 before it was announced, and around it")
    for ranks, kill_at, is_told in LAUNCHES:
        options = (f"--takedown={withdrawn}", f"--at={TAKEDOWN}") if is_told else ()
        train(takedown, data, ranks, *options, kill_at=kill_at)
    announce("the proof, from the logs of all launches")
    command = [sys.executable, "-m", "examples.without_job.proof", withdrawn, whole, without, takedown]
    proof = subprocess.run([*command, str(TAKEDOWN)], check=False)
    announce("the picture")
    names = {"with all records": whole, "without them": without, "takedown": takedown}
    draw(names, os.path.join(args.output, "loss.svg"))
    print("\nThe program to copy is examples/without_job/train.py.")
    return proof.returncode


if __name__ == "__main__":
    sys.exit(main())
