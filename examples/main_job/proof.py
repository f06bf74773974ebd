"""Compare the logs of an interrupted run with those of an uninterrupted one: each record and each loss.

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
from itertools import pairwise, zip_longest


@dataclass(frozen=True)
class Batch:
    """A batch as it was logged."""

    step: int
    loss: float
    records: tuple[tuple[str, int, int], ...]
    """For each record its file, its row in that file, and a checksum of what was delivered."""


@dataclass(frozen=True)
class Log:
    """What one process did."""

    begins_at: int
    """The first batch: 0, or the one after the state that the process resumed from."""
    milliseconds: float
    """From asking for the newest state to holding the first batch."""
    expected: int
    """The records of the epoch."""
    batches: tuple[Batch, ...]

    @property
    def ends_at(self) -> int:
        """The batch that would have come next."""
        return self.batches[-1].step + 1 if self.batches else self.begins_at


@dataclass(frozen=True)
class Proof:
    """How an interrupted run differs from an uninterrupted one; all counts are 0 where it does not."""

    repeated: int
    """Times that a record came again in the epoch."""
    lost: int
    """Records of the epoch that never came."""
    moved: int
    """Batches that do not hold the uninterrupted run's records in its order."""
    unequal: int
    """Batches whose loss is not the very same number."""

    @property
    def holds(self) -> bool:
        """Whether the two runs are one and the same."""
        return self == Proof(0, 0, 0, 0)


def read_log(path: str) -> Log | None:
    """Return the log of a process, None if it was killed before its first batch.

    A last line that was cut off when the process was killed does not count.
    """
    with open(path, encoding="utf-8") as file:
        entries = [json.loads(line) for line in file if line.endswith("\n")]
    if not entries:
        return None
    batches = tuple(
        Batch(entry["step"], entry["loss"], tuple((path, row, crc) for path, row, crc in entry["records"]))
        for entry in entries[1:]
    )
    return Log(**entries[0], batches=batches)


def read_logs(run: str) -> list[Log]:
    """Return the logs of a run's processes, the earliest first."""
    count = len(glob.glob(glob.escape(run) + "/log-*.jsonl"))
    logs = [read_log(os.path.join(run, f"log-{number}.jsonl")) for number in range(1, count + 1)]
    return [log for log in logs if log]


def joined(logs: list[Log]) -> list[Batch]:
    """Return the batches that made the final model.

    What a process did after the state from which the next one resumed died with it: its memory is gone, and
    the next process does that work again.
    """
    batches: list[Batch] = []
    for log in logs:
        batches = [batch for batch in batches if batch.step < log.begins_at]
        batches += log.batches
    return batches


def prove(interrupted: list[Batch], whole: list[Batch], *, expected: int) -> Proof:
    """Count the differences between two runs over one epoch of ``expected`` records."""
    came = Counter((path, row) for batch in interrupted for path, row, _ in batch.records)
    should = {(path, row) for batch in whole for path, row, _ in batch.records}
    pairs = list(zip_longest(interrupted, whole))
    return Proof(
        repeated=came.total() - len(came),
        lost=max(len(should - came.keys()), expected - len(came)),
        moved=sum(a is None or b is None or (a.step, a.records) != (b.step, b.records) for a, b in pairs),
        unequal=sum(a is None or b is None or a.loss != b.loss for a, b in pairs),
    )


def story(logs: list[Log]) -> list[str]:
    """Tell what each process did, and what of it counts."""
    lines = [
        f"process {number} made batches {log.begins_at:,} to {log.ends_at - 1:,}"
        for number, log in enumerate(logs, start=1)
    ]
    for earlier, later in pairwise(logs):
        beyond = earlier.ends_at - later.begins_at
        lines += [
            f"The newest state was that before batch {later.begins_at:,}. What the killed process had learnt",
            f"since, from {beyond:,} batches, died with it; the next one made those again. They count once.",
        ]
    return lines


def table(proof: Proof, logs: list[Log], batches: list[Batch]) -> list[str]:
    """Return the lines of the proof."""
    path, row, _ = logs[-1].batches[0].records[0]
    return [
        f"time to resume      {logs[-1].milliseconds:.1f} ms, from asking for the state to the first batch",
        f"resumed with        row {row:,} of {path}",
        f"records delivered   {sum(len(batch.records) for batch in batches):,} of {logs[-1].expected:,}",
        f"records repeated    {proof.repeated:,}",
        f"records lost        {proof.lost:,}",
        f"order               {_verdict(proof.moved, len(batches), 'identical to the uninterrupted run')}",
        f"losses              {_verdict(proof.unequal, len(batches), 'equal to the last bit')}",
    ]


def _verdict(wrong: int, batches: int, good: str) -> str:
    return f"DIFFERENT in {wrong:,} batches" if wrong else f"{good}, in all {batches:,} batches"


def main() -> int:
    """Print the proof of two run folders; return the exit code."""
    interrupted, (whole,) = read_logs(sys.argv[1]), read_logs(sys.argv[2])
    batches = joined(interrupted)
    proof = prove(batches, list(whole.batches), expected=whole.expected)
    print("\n".join([*story(interrupted), "", *table(proof, interrupted, batches)]))
    print(
        "\n" + ("PROVED" if proof.holds else "NOT PROVED: the interrupted run is not the uninterrupted one")
    )
    return 0 if proof.holds else 1


if __name__ == "__main__":
    sys.exit(main())
