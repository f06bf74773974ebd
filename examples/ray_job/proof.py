"""Compare what the workers of a run on Ray got, by their logs, with what one process gets.

    python -m examples.ray_job.proof RUN TOKENS

A batch counts as delivered when a checkpoint that Ray kept holds it. What workers trained after the last one
before a failure died with them; the next launch trains it again, and it counts once. Exits with 1 unless no
document was repeated or lost, and all global batches, and the model, are those of one process.
"""

from __future__ import annotations

import glob
import json
import os
import sys
import zlib
from collections import Counter
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
from examples.ray_job import train

import seekable as sk

Batch = list[tuple[int, int]]
"""For each document its number and a checksum of its tokens."""


@dataclass(frozen=True)
class Launch:
    """What the workers did from one start to the next."""

    begins_at: int
    """The batches that the checkpoint had from which the launch went on; 0 without one."""
    ranks: list[dict[int, Batch]]
    """For each rank its share of each batch, by the number of the batch, from 1."""

    @property
    def ends_at(self) -> int:
        """The last batch of which all ranks got their shares."""
        return min(max(steps, default=self.begins_at) for steps in self.ranks)

    def batch(self, step: int) -> Batch:
        """Return a global batch: the ranks have its documents in turn."""
        shares = [steps[step] for steps in self.ranks]
        return [row for rows in zip_longest(*shares) for row in rows if row is not None]


@dataclass(frozen=True)
class Proof:
    """How a run differs from that of one process; all counts are 0 where it does not."""

    repeated: int
    """Documents that came again in an epoch."""
    lost: int
    """Documents that an epoch lacks."""
    moved: int
    """Global batches that are not those of one process, in its order."""

    @property
    def holds(self) -> bool:
        """True if nothing differs."""
        return self == Proof(0, 0, 0)


def read_launches(run: str) -> list[Launch]:
    """Return the launches of a run, the earliest first; those that did not come to a loader are left out."""
    names = [os.path.basename(path).split("-") for path in glob.glob(glob.escape(run) + "/log-*-*.jsonl")]
    launches = []
    for number in sorted({int(launch) for _, launch, _ in names}):
        logs = [_entries(os.path.join(run, f"log-{number}-{rank}.jsonl")) for rank in range(len(names))]
        heads = [log[0] for log in logs if log]
        if heads:
            shares = [
                {entry["step"]: [(n, c) for n, c in entry["rows"]] for entry in log[1:]} for log in logs
            ]
            launches.append(Launch(heads[0]["begins_at"], shares[: heads[0]["ranks"]]))
    return launches


def _entries(path: str) -> list[dict[str, Any]]:
    """Return the lines of a log, but for a last one that was cut off by a kill; none if there is no log."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def joined(launches: list[Launch]) -> list[Batch]:
    """Return the global batches that count: of each launch those that the next one went on from."""
    kept = [launch.begins_at for launch in launches[1:]] + [launches[-1].ends_at]
    return [
        launch.batch(step)
        for launch, last in zip(launches, kept, strict=True)
        for step in range(launch.begins_at + 1, last + 1)
    ]


def compare(batches: list[Batch], whole: list[Batch], documents: int) -> Proof:
    """Compare global batches with those of one process.

    Args:
        batches: the batches that count.
        whole: the batches of one process.
        documents: the documents of an epoch.
    """
    rows = [number for batch in batches for number, _ in batch]
    ends = range(0, max(len(rows), sum(map(len, whole))), documents)
    epochs = [Counter(rows[start : start + documents]) for start in ends]
    repeated = sum(times - 1 for epoch in epochs for times in epoch.values())
    lost = sum(documents - len(epoch) for epoch in epochs)
    moved = sum(batch != other for batch, other in zip_longest(batches, whole))
    return Proof(repeated, lost, moved)


def one_process(tokens: str) -> tuple[list[Batch], train.Bigrams]:
    """Return the batches, and the model, of one process without Ray."""
    batches, model = [], train.Bigrams()
    loader = sk.Loader(
        train.pipeline(tokens), batch_size=train.BATCH, epochs=train.EPOCHS, collate=list, prefetch=0
    )
    for batch in loader:
        model.learn([document["tokens"] for document, _ in batch])
        batches.append([(number, zlib.crc32(document["tokens"].tobytes())) for document, number in batch])
    return batches, model


def newest_model(run: str) -> train.Bigrams:
    """Return the model of the newest checkpoint: the counts of all workers."""
    model = train.Bigrams()
    folder = max(glob.glob(os.path.join(glob.escape(run), train.NAME, "checkpoint_*", "")))
    for path in glob.glob(glob.escape(folder) + "counts-*.npy"):
        model.counts += np.load(path)
    return model


def story(launches: list[Launch]) -> list[str]:
    """Tell what each launch did."""
    lines = []
    for number, launch in enumerate(launches, start=1):
        begins, ends = launch.begins_at, launch.ends_at
        again = launches[number - 2].ends_at - begins if number > 1 else 0
        more = f", of which {again} had been trained, but were in no checkpoint" if again else ""
        lines.append(f"launch {number}: {len(launch.ranks)} workers, batches {begins + 1} to {ends}{more}")
    return lines


def main() -> int:
    """Print the proof; return the exit code."""
    run, tokens = sys.argv[1:]
    launches = read_launches(run)
    whole, model = one_process(tokens)
    batches, documents = joined(launches), len(train.pipeline(tokens))
    proof = compare(batches, whole, documents)
    same_model = np.array_equal(newest_model(run).counts, model.counts)
    print("\n".join(story(launches)))
    print(f"\n{train.EPOCHS} epochs of {documents} documents, by the logs of all ranks:")
    print(f"repeated {proof.repeated}, lost {proof.lost}")
    order = f"DIFFERENT in {proof.moved}" if proof.moved else f"those of one process, in all {len(whole)}"
    print(f"global batches: {order}")
    print(f"the model: {'that of one process, bit for bit' if same_model else 'DIFFERENT'}")
    proved = proof.holds and same_model
    print("PROVED" if proved else "NOT PROVED")
    return 0 if proved else 1


if __name__ == "__main__":
    sys.exit(main())
