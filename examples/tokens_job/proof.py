"""Count from the logs of a run how often each token was delivered, and compare its losses with another run's.

    python proof.py DATA INTERRUPTED UNINTERRUPTED

Exits with 1 unless each finished epoch of each source has each token exactly once, and the interrupted run
has the samples and losses of the uninterrupted one for as long as both have samples of one length.
"""

from __future__ import annotations

import glob
import json
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

SOURCES = ("code", "prose")

Sample = tuple[tuple[str, int, int], ...]
"""For each piece the path of its file, its first byte there, and the number of its bytes."""


@dataclass(frozen=True)
class Step:
    """A step as it was logged."""

    step: int
    loss: float
    samples: tuple[Sample, ...]


@dataclass(frozen=True)
class Log:
    """What one launch did."""

    ranks: int
    length: int
    """The tokens of a sample."""
    begins_at: int
    """The first step: 0, or the one after the state that the launch resumed from."""
    milliseconds: float
    """From the start of the ranks to their first step, opening included."""
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Count:
    """How often the tokens of one source were delivered."""

    tokens: int
    """The tokens of the source."""
    delivered: int
    """The tokens delivered, of all epochs."""
    repeated: int
    """Tokens that came again before the epoch was over."""
    lost: int
    """Tokens that an epoch that is over lacks."""

    @property
    def epochs(self) -> int:
        """The number of epochs that are over."""
        return self.delivered // self.tokens


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
        head["length"],
        head["begins_at"],
        head["milliseconds"],
        tuple(
            Step(
                entry["step"],
                entry["loss"],
                tuple(tuple((path, at, size) for path, at, size in sample) for sample in entry["samples"]),
            )
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


def count(steps: list[Step], folder: str) -> Count:
    """Count the tokens of a source in the samples of some steps, epoch by epoch.

    Args:
        steps: the steps, in order.
        folder: the folder of the source's tokens.
    """
    source = sk.open(folder)
    itemsize = source[0]["tokens"].itemsize
    total = int(sk.formats.token_lengths(source).sum())
    paths = sorted(glob.glob(glob.escape(folder) + "/*.bin"))
    starts = np.cumsum([0, *(os.path.getsize(path) // itemsize for path in paths)])
    first = {os.path.realpath(path): int(start) for path, start in zip(paths, starts, strict=False)}
    times = np.zeros(total, dtype=np.int64)
    delivered = repeated = lost = 0
    for start, size in _pieces(steps, first, itemsize):
        repeated += _repeated(times, start, size)
        delivered += size
        if delivered % total == 0:
            lost += int((times == 0).sum())
            times[:] = 0
    return Count(total, delivered, repeated, lost)


def _pieces(steps: list[Step], first: dict[str, int], itemsize: int) -> Iterator[tuple[int, int]]:
    """Yield the first token and the number of tokens of each piece of a source; its files count as one."""
    for step in steps:
        for sample in step.samples:
            for path, offset, length in sample:
                if (start := first.get(os.path.realpath(path))) is not None:
                    yield start + offset // itemsize, length // itemsize


def _repeated(times: NDArray[np.int64], start: int, size: int) -> int:
    """Count a piece, and return how many of its tokens had come before."""
    piece = times[start : start + size]
    piece += 1
    return int((piece > 1).sum())


def differing(interrupted: list[Step], whole: list[Step], until: int) -> tuple[int, int]:
    """Return how many steps before one differ in their samples, and how many in their losses."""
    pairs = list(zip(interrupted[:until], whole[:until], strict=False))
    missing = until - len(pairs)
    moved = sum((a.step, a.samples) != (b.step, b.samples) for a, b in pairs) + missing
    unequal = sum(a.loss != b.loss for a, b in pairs) + missing
    return moved, unequal


def story(name: str, logs: list[Log]) -> list[str]:
    """Tell what each launch of a run did."""
    return [
        f"{name}: launch {number} made steps {log.begins_at} to {log.begins_at + len(log.steps) - 1}, "
        f"ranks: {log.ranks}, tokens of a sample: {log.length}"
        for number, log in enumerate(logs, start=1)
    ]


def _in_words(found: Count) -> str:
    epochs = f"{found.epochs} epochs of {found.tokens:,} tokens and {found.delivered % found.tokens:,} more"
    return f"{epochs}; repeated in an epoch {found.repeated:,}, lost {found.lost:,}"


def _verdict(wrong: int, steps: int) -> str:
    return f"DIFFERENT in {wrong} steps" if wrong else f"as in the uninterrupted run, in all {steps} steps"


def main() -> int:
    """Print the proof; return the exit code."""
    data, *runs = sys.argv[1:]
    interrupted, whole = (read_logs(run) for run in runs)
    steps, common = joined(interrupted), interrupted[-1].begins_at
    moved, unequal = differing(steps, joined(whole), common)
    counts = {name: count(steps, os.path.join(data, f"{name}-tokens")) for name in SOURCES}
    lines = story("interrupted", interrupted) + story("uninterrupted", whole) + [""]
    lines += [f"{name:<19} {_in_words(found)}" for name, found in counts.items()]
    lines += [
        f"samples and order   {_verdict(moved, common)}",
        f"losses              {_verdict(unequal, common)}",
        f"time to resume      {interrupted[-1].milliseconds:.0f} ms, from the start of the ranks to a step",
    ]
    holds = not moved and not unequal
    holds &= all(found.epochs and not found.repeated and not found.lost for found in counts.values())
    print("\n".join(lines))
    print("\n" + ("PROVED" if holds else "NOT PROVED: tokens were repeated or lost, or the runs differ"))
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
