"""Compare the logs of an interrupted run with those of an uninterrupted one: each sample and each loss.

    python proof.py INTERRUPTED UNINTERRUPTED

Exits with 1 unless nothing was repeated, lost, moved or learnt differently.
"""

from __future__ import annotations

import glob
import json
import os
import sys
from collections import Counter
from dataclasses import dataclass
from itertools import zip_longest


@dataclass(frozen=True)
class Step:
    """A step as it was logged."""

    step: int
    loss: float
    records: tuple[tuple[str, int], ...]
    """For each cut its id, and a checksum of the samples that were delivered, noise included."""


@dataclass(frozen=True)
class Log:
    """What one launch did."""

    ranks: int
    begins_at: int
    """The first step: 0, or the one after the state that the launch resumed from."""
    milliseconds: float
    """From the start of the ranks to their first step, opening included."""
    steps: tuple[Step, ...]

    @property
    def ends_at(self) -> int:
        """The step that would have come next."""
        return self.steps[-1].step + 1 if self.steps else self.begins_at


@dataclass(frozen=True)
class Proof:
    """How an interrupted run differs from an uninterrupted one; all counts are 0 where it does not."""

    repeated: int
    """Cuts that came more often than in the uninterrupted run, with the same noise."""
    lost: int
    """Cuts that came less often."""
    moved: int
    """Steps that do not hold the uninterrupted run's cuts in its order."""
    unequal: int
    """Steps whose loss is not the very same number."""

    @property
    def holds(self) -> bool:
        """True if the two runs are one and the same."""
        return self == Proof(0, 0, 0, 0)


def read_log(path: str) -> Log | None:
    """Return the log of a launch, None if it was killed before its first step.

    A last line that was cut off when the processes were killed does not count.
    """
    with open(path, encoding="utf-8") as file:
        entries = [json.loads(line) for line in file if line.endswith("\n")]
    if not entries:
        return None
    head, *steps = entries
    return Log(
        head["ranks"],
        head["begins_at"],
        head["milliseconds"],
        tuple(
            Step(entry["step"], entry["loss"], tuple((name, crc) for name, crc in entry["records"]))
            for entry in steps
        ),
    )


def read_logs(run: str) -> list[Log]:
    """Return the logs of a run's launches, the earliest first."""
    count = len(glob.glob(glob.escape(run) + "/log-*.jsonl"))
    logs = [read_log(os.path.join(run, f"log-{number}.jsonl")) for number in range(1, count + 1)]
    return [log for log in logs if log]


def joined(logs: list[Log]) -> list[Step]:
    """Return the steps that made the final model.

    What a launch did after the state from which the next one resumed died with it, and was done again.
    """
    steps: list[Step] = []
    for log in logs:
        steps = [step for step in steps if step.step < log.begins_at]
        steps += log.steps
    return steps


def prove(interrupted: list[Step], whole: list[Step]) -> Proof:
    """Count the differences between two runs."""
    ours, theirs = (
        Counter(record for step in run for record in step.records) for run in (interrupted, whole)
    )
    pairs = list(zip_longest(interrupted, whole))
    return Proof(
        repeated=(ours - theirs).total(),
        lost=(theirs - ours).total(),
        moved=sum(a is None or b is None or (a.step, a.records) != (b.step, b.records) for a, b in pairs),
        unequal=sum(a is None or b is None or a.loss != b.loss for a, b in pairs),
    )


def story(name: str, logs: list[Log]) -> list[str]:
    """Tell what each launch of a run did."""
    return [
        f"{name}: launch {number} made steps {log.begins_at} to {log.ends_at - 1}, ranks: {log.ranks}"
        for number, log in enumerate(logs, start=1)
    ]


def table(proof: Proof, logs: list[Log], steps: list[Step]) -> list[str]:
    """Return the lines of the proof."""
    records = [record for step in steps for record in step.records]
    cuts, sounds = len({name for name, _ in records}), len(set(records))
    return [
        f"time to resume      {logs[-1].milliseconds:.0f} ms, from the start of the ranks to the first step",
        f"cuts delivered      {len(records):,}: {cuts:,} different ones, and {sounds:,} with their noise",
        f"cuts repeated       {proof.repeated:,}",
        f"cuts lost           {proof.lost:,}",
        f"order and noise     {_verdict(proof.moved, len(steps), 'identical to the uninterrupted run')}",
        f"losses              {_verdict(proof.unequal, len(steps), 'equal to the last bit')}",
    ]


def _verdict(wrong: int, steps: int, good: str) -> str:
    return f"DIFFERENT in {wrong:,} steps" if wrong else f"{good}, in all {steps:,} steps"


def main() -> int:
    """Print the proof of two run folders; return the exit code."""
    interrupted, whole = read_logs(sys.argv[1]), read_logs(sys.argv[2])
    steps = joined(interrupted)
    proof = prove(steps, joined(whole))
    lines = story("interrupted", interrupted) + story("uninterrupted", whole)
    print("\n".join([*lines, "", *table(proof, interrupted, steps)]))
    print(
        "\n" + ("PROVED" if proof.holds else "NOT PROVED: the interrupted run is not the uninterrupted one")
    )
    return 0 if proof.holds else 1


if __name__ == "__main__":
    sys.exit(main())
