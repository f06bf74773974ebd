"""Compare the logs of a run that was stopped again and again with those of an uninterrupted one.

    python proof.py STOPPED UNINTERRUPTED

Exits with 1 unless nothing came twice, nothing was lost, and order and losses are the same.
"""

from __future__ import annotations

import glob
import json
import os
import sys
from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import Any

Sample = tuple[tuple[int, ...], ...]
"""The documents of a sample, and how many bytes of each it has."""


@dataclass(frozen=True)
class Step:
    """A step as all its ranks logged it."""

    samples: tuple[Sample, ...]
    """Those of all ranks, in their order."""
    loss: float


@dataclass(frozen=True)
class Launch:
    """What the ranks of one launch did."""

    begins_at: int
    ranks: int
    steps: dict[int, Step]


@dataclass(frozen=True)
class Proof:
    """How a run that was stopped differs from an uninterrupted one; all counts are 0 where it does not."""

    twice: int
    """Bytes of documents that came once too often."""
    lost: int
    """Bytes of documents that did not come."""
    moved: int
    """Steps whose samples are others, or in another order."""
    unequal: int
    """Steps whose loss is not the very same number."""

    @property
    def holds(self) -> bool:
        """True if nothing differs."""
        return not (self.twice or self.lost or self.moved or self.unequal)


def read_log(path: str) -> list[dict[str, Any]]:
    """Return the lines of a log; one that was cut off when its process was killed does not count."""
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def read_launch(paths: list[str]) -> Launch | None:
    """Return what the ranks of a launch did, by their logs in order; None if some were killed too early.

    A step that not all ranks have logged does not count. Sample i of rank r is sample i * ranks + r of all.
    """
    logs = [read_log(path) for path in paths]
    if not all(logs) or len(logs) != logs[0][0]["ranks"]:
        return None
    lines = [{line["step"]: line for line in log[1:]} for log in logs]
    steps = {}
    for step in sorted(set.intersection(*map(set, lines))):
        together = zip(*(of_rank[step]["samples"] for of_rank in lines), strict=True)
        samples = tuple(tuple(map(tuple, sample)) for samples in together for sample in samples)
        steps[step] = Step(samples, lines[0][step]["loss"])
    return Launch(logs[0][0]["begins_at"], len(logs), steps)


def read_launches(run: str) -> list[Launch]:
    """Return the launches of a run, the earliest first."""
    paths = sorted(glob.glob(glob.escape(run) + "/log-*.jsonl"))
    each = groupby(paths, key=lambda path: os.path.basename(path).split("-")[1])
    launches = [read_launch(list(of_launch)) for _, of_launch in each]
    return [launch for launch in launches if launch is not None]


def joined(launches: list[Launch]) -> tuple[dict[int, Step], int]:
    """Return the steps that made the final model, and how many more were made and died with a launch.

    What a launch did after the state from which the next one resumed was done again.
    """
    steps: dict[int, Step] = {}
    made = 0
    for launch in launches:
        steps = {step: each for step, each in steps.items() if step < launch.begins_at}
        steps |= launch.steps
        made += len(launch.steps)
    return steps, made - len(steps)


def delivered(steps: dict[int, Step]) -> Counter[int]:
    """Return how many bytes of each document the samples of some steps have."""
    count: Counter[int] = Counter()
    for step in steps.values():
        for sample in step.samples:
            for document, size in sample:
                count[document] += size
    return count


def prove(stopped: dict[int, Step], whole: dict[int, Step]) -> Proof:
    """Compare two runs."""
    ours, theirs = delivered(stopped), delivered(whole)
    both = [(stopped.get(step), whole.get(step)) for step in sorted(stopped.keys() | whole.keys())]
    return Proof(
        twice=(ours - theirs).total(),
        lost=(theirs - ours).total(),
        moved=sum(a is None or b is None or a.samples != b.samples for a, b in both),
        unequal=sum(a is None or b is None or a.loss != b.loss for a, b in both),
    )


def main() -> int:
    """Print the proof; return the exit code."""
    launches, (uninterrupted,) = read_launches(sys.argv[1]), read_launches(sys.argv[2])
    steps, again = joined(launches)
    proof = prove(steps, uninterrupted.steps)
    whole = delivered(uninterrupted.steps)
    print(
        f"launches            {len(launches)}, on {', '.join(str(each.ranks) for each in launches)} ranks\n"
        f"steps               {len(steps)}, and {again} that were made again after a kill\n"
        f"bytes delivered     {delivered(steps).total():,}, of {len(whole):,} documents\n"
        f"bytes twice         {proof.twice}\n"
        f"bytes lost          {proof.lost}\n"
        f"samples and order   {proof.moved} steps differ from the uninterrupted run\n"
        f"losses              {proof.unequal} steps differ\n"
    )
    print("PROVED" if proof.holds else "NOT PROVED: something came twice or was lost, or the runs differ")
    return 0 if proof.holds else 1


if __name__ == "__main__":
    sys.exit(main())
