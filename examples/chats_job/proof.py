"""Count from the logs of a run how often each token was trained on, and compare it with another run.

    python -m examples.chats_job.proof TOKENS INTERRUPTED UNINTERRUPTED

Exits with 1 unless each finished epoch trained each token of the loss exactly once and no other, and the
interrupted run has the samples and losses of the uninterrupted one.
"""

from __future__ import annotations

import glob
import json
import os
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

Step = dict[str, Any]
"""A step as it was logged: its number, its loss, the number of trained tokens, and the pieces of samples."""


@dataclass(frozen=True)
class Count:
    """How often the tokens of a store were trained on."""

    tokens: int
    """The tokens of an epoch."""
    in_loss: int
    """Those of them that are in the loss."""
    epochs: int
    """The epochs that are over."""
    delivered: int
    """The tokens of the loss in all samples of all steps."""
    trained: int
    """The tokens that the model was trained on, as each step counted them."""
    repeated: int
    """Tokens of the loss that came again before an epoch was over."""
    lost: int
    """Tokens of the loss that an epoch that is over lacks."""

    @property
    def holds(self) -> bool:
        """True if all epochs trained on each token of the loss exactly once, and on no other."""
        each_once = not self.repeated and not self.lost and self.epochs > 0
        return each_once and self.trained == self.delivered


def read_logs(run: str) -> list[list[Step]]:
    """Return the lines of each log of a launch, the earliest first; one that was cut off does not count."""
    logs = []
    for number in range(1, 1 + len(glob.glob(glob.escape(run) + "/log-*.jsonl"))):
        with open(os.path.join(run, f"log-{number}.jsonl"), encoding="utf-8") as file:
            logs.append([json.loads(line) for line in file if line.endswith("\n")])
    return [log for log in logs if log]


def joined(logs: list[list[Step]]) -> list[Step]:
    """Return the steps that made the final model.

    What a launch did after the state from which the next one resumed died with it, and was done again.
    """
    steps: list[Step] = []
    for head, *own in logs:
        steps = [step for step in steps if step["step"] < head["begins_at"]] + own
    return steps


def count(steps: list[Step], tokens: str) -> Count:
    """Count the tokens of the loss in the samples of some steps, epoch by epoch."""
    with open(os.path.join(tokens, "tokens.json"), encoding="utf-8") as file:
        document = json.load(file)
    itemsize = np.dtype(document["dtype"]).itemsize
    paths = [os.path.join(tokens, f"{part['name']}.bin") for part in document["parts"]]
    starts = np.cumsum([0, *(os.path.getsize(path) // itemsize for path in paths)])
    first = {os.path.realpath(path): int(start) for path, start in zip(paths, starts, strict=False)}
    masks = [np.fromfile(f"{path.removesuffix('.bin')}.loss_mask", np.uint8) for path in paths]
    mask = np.concatenate(masks) == 1
    times = np.zeros(len(mask), np.int64)
    passed = epochs = delivered = repeated = lost = 0
    for path, offset, length in (piece for step in steps for sample in step["samples"] for piece in sample):
        start = first[os.path.realpath(path)] + offset // itemsize
        piece = slice(start, start + length // itemsize)
        times[piece] += 1
        repeated += int((mask[piece] & (times[piece] > 1)).sum())
        delivered += int(mask[piece].sum())
        passed += length // itemsize
        if passed % len(mask) == 0:
            epochs += 1
            lost += int((mask & (times == 0)).sum())
            times[:] = 0
    trained = sum(step["trained"] for step in steps)
    return Count(len(mask), int(mask.sum()), epochs, delivered, trained, repeated, lost)


def main() -> int:
    """Print the proof; return the exit code."""
    tokens, *runs = sys.argv[1:]
    interrupted, whole = (read_logs(run) for run in runs)
    for number, (head, *own) in enumerate(interrupted, start=1):
        last = head["begins_at"] + len(own) - 1
        print(f"launch {number} made steps {head['begins_at']} to {last}, ranks: {head['ranks']}")
    steps, others = joined(interrupted), joined(whole)
    wrong = sum(one != other for one, other in zip(steps, others, strict=False)) + abs(
        len(steps) - len(others)
    )
    found = count(steps, tokens)
    print(f"in the loss         {found.in_loss:,} of {found.tokens:,} tokens")
    print(
        f"trained on          {found.trained:,} of {found.delivered:,} that came, in {found.epochs} epochs; ",
        end="",
    )
    print(f"repeated in an epoch {found.repeated:,}, lost {found.lost:,}")
    verdict = (
        f"DIFFERENT in {wrong} steps" if wrong else f"as in the uninterrupted run, in all {len(steps)} steps"
    )
    print(f"samples and losses  {verdict}")
    holds = found.holds and not wrong
    print("\n" + ("PROVED" if holds else "NOT PROVED: tokens were repeated or lost, or the runs differ"))
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
