"""Compare the logs of runs without some records with those of a run with all of them: each slot of each step.

    python -m examples.without_job.proof LIST WHOLE WITHOUT TAKEDOWN STEP

LIST names the records that were withdrawn. WHOLE is the run with all of them, WITHOUT the one that never had
them, and TAKEDOWN the one that had them until STEP. All is counted from what the runs logged: which record
came in which slot, as the record itself says. Exits with 1 unless the withdrawn records never came, and all
others where they came in the run with all.
"""

from __future__ import annotations

import glob
import json
import os
import sys
from dataclasses import dataclass

Record = tuple[str, int]
"""The source of a record and its row there."""


@dataclass(frozen=True)
class Step:
    """A step as it was logged."""

    loss: float
    records: tuple[Record, ...]
    """The record of each slot."""


@dataclass(frozen=True)
class Launch:
    """What one launch did."""

    ranks: int
    begins_at: int
    steps: dict[int, Step]


@dataclass(frozen=True)
class Found:
    """How a run without some records differs from the run with all of them."""

    slots: int
    """The slots of all steps."""
    filled: int
    """Slots of withdrawn records that another record of the same source fills, from the step on."""
    came: int
    """Withdrawn records that came all the same."""
    elsewhere: int
    """Slots of withdrawn records that a record of another source fills."""
    moved: int
    """Slots of other records, or of steps before, that have another record, or are missing."""
    unequal: int
    """Steps before whose loss is another number."""

    @property
    def holds(self) -> bool:
        """True if the withdrawn records were left out, and nothing else changed."""
        return self.filled > 0 and not (self.came or self.elsewhere or self.moved or self.unequal)


def read_launches(run: str) -> list[Launch]:
    """Return the launches of a run, the earliest first; a line that a kill cut off does not count."""
    launches = []
    for number in range(1, 1 + len(glob.glob(glob.escape(run) + "/log-*.jsonl"))):
        with open(os.path.join(run, f"log-{number}.jsonl"), encoding="utf-8") as file:
            lines = [json.loads(line) for line in file if line.endswith("\n")]
        if lines:
            steps = {
                line["step"]: Step(line["loss"], tuple(map(_record, line["records"]))) for line in lines[1:]
            }
            launches.append(Launch(**lines[0], steps=steps))
    return launches


def _record(logged: list[object]) -> Record:
    source, row = logged
    return str(source), int(str(row))


def read_list(path: str) -> set[Record]:
    """Return the withdrawn records of a list."""
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return {(line["path"].removesuffix(".jsonl"), line["row"]) for line in lines}


def joined(launches: list[Launch]) -> dict[int, Step]:
    """Return the steps that made the final model.

    What a launch did after the state from which the next one resumed died with it, and was done again.
    """
    steps: dict[int, Step] = {}
    for launch in launches:
        steps = {number: step for number, step in steps.items() if number < launch.begins_at} | launch.steps
    return steps


def compared(whole: dict[int, Step], other: dict[int, Step], withdrawn: set[Record], *, since: int) -> Found:
    """Compare each slot of a run that is without some records from a step on with that of the whole run."""
    slots = filled = came = elsewhere = moved = unequal = 0
    for number in sorted(whole.keys() | other.keys()):
        ours, theirs = whole.get(number, _NO_STEP), other.get(number, _NO_STEP)
        slots += len(ours.records)
        moved += abs(len(ours.records) - len(theirs.records))
        unequal += number < since and ours.loss != theirs.loss
        for before, after in zip(ours.records, theirs.records, strict=False):
            is_out = number >= since and before in withdrawn
            came += number >= since and after in withdrawn
            filled += is_out and after not in withdrawn and after[0] == before[0]
            elsewhere += is_out and after[0] != before[0]
            moved += not is_out and after != before
    return Found(slots, filled, came, elsewhere, moved, unequal)


_NO_STEP = Step(0.0, ())


def differing(one: dict[int, Step], other: dict[int, Step], *, since: int) -> int:
    """Return the number of steps, from one on, that have not the same record in each slot of both runs."""
    numbers = {number for number in one.keys() | other.keys() if number >= since}
    return sum(one.get(n, _NO_STEP).records != other.get(n, _NO_STEP).records for n in numbers)


def main() -> int:
    """Print the proof; return the exit code."""
    withdrawn, at = read_list(sys.argv[1]), int(sys.argv[5])
    launches = read_launches(sys.argv[4])
    whole, without = (joined(read_launches(run)) for run in sys.argv[2:4])
    taken_down = joined(launches)
    never, later = (
        compared(whole, without, withdrawn, since=0),
        compared(whole, taken_down, withdrawn, since=at),
    )
    differing_steps = differing(without, taken_down, since=at)
    had = sum(record in withdrawn for n, step in taken_down.items() if n < at for record in step.records)
    for each in launches:
        print(f"launch on {each.ranks} ranks: steps {each.begins_at} to {max(each.steps)}")
    print(f"withdrawn: {len(withdrawn)} records, which came {had} times before the takedown, at step {at}\n")
    print(f"{'':19}{'never had them':>16}{'until step ' + str(at):>16}")
    for name, field in _ROWS.items():
        print(f"{name:<19}{getattr(never, field):>16,}{getattr(later, field):>16,}")
    print(f"\nSteps from {at} on that differ between the two: {differing_steps}")
    holds = never.holds and later.holds and not differing_steps and had > 0
    print("\n" + ("PROVED" if holds else "NOT PROVED: a withdrawn record came, or another one moved"))
    return 0 if holds else 1


_ROWS = {
    "slots": "slots",
    "filled by others": "filled",
    "came all the same": "came",
    "of other sources": "elsewhere",
    "moved": "moved",
    "losses before": "unequal",
}
"""The rows of the table."""


if __name__ == "__main__":
    sys.exit(main())
