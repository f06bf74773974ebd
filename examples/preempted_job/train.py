"""Train on packed samples on several ranks, and stop when told: by a signal to any rank, or at a deadline.

    python train.py RUN DATA [--ranks N] [--workers N] [--steps N] [--deadline SECONDS]

RUN is the folder of the run: its states, its models, and a log of each rank of each launch. Start the same
command again after a stop, with the same or another number of ranks. DATA has ``a.jsonl`` and ``b.jsonl``.
"""

from __future__ import annotations

import argparse
import glob
import json
import multiprocessing
import os
import signal
import time
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

import seekable as sk

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from numpy.typing import NDArray

BATCH, LENGTH = 12, 256
"""Samples of a step, over all ranks, and bytes of a sample. Ranks divide the samples: 1, 2, 3, 4 or 6."""

SAVE_EVERY = 10
"""Steps between two states that are saved without a stop: for machines that fail unannounced."""


STEP_SECONDS = 0.02
"""What a step takes at least: a model that takes longer has no place in an example."""


def is_long(document: dict[str, Any]) -> bool:
    """Return True for documents that are trained on."""
    return len(document["text"]) >= 40


def as_bytes(document: dict[str, Any]) -> dict[str, Any]:
    """Return the bytes of a document, and its number beside each of them."""
    text = np.frombuffer(document["text"].encode(), dtype=np.uint8)
    return {"tokens": text.astype(np.int32), "document": np.full(len(text), document["id"])}


def pipeline(data: str) -> sk.Stream:
    """Return two sources, shuffled, filtered and mixed, and their documents packed into samples."""
    sources = {}
    for seed, name in enumerate("ab"):
        documents = sk.open(os.path.join(data, f"{name}.jsonl")).shuffle(seed=seed)
        sources[name] = documents.stream(lanes=12).filter(is_long).map(as_bytes)
    mixed = sk.mix(sources, weights={"a": 0.7, "b": 0.3}, seed=2)
    return mixed.pack(LENGTH, key="tokens", align=["document"])


@dataclass
class Ranks:
    """The other ranks, through pipes between processes; rank 0 is in the middle."""

    rank: int
    others: list[Connection]
    """Of rank 0 the pipes to all others; of another rank the pipe to rank 0."""

    def summed(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sum over all ranks, when all are here: as the exchange of gradients does."""
        if self.rank:
            self.others[0].send(counts)
            return np.asarray(self.others[0].recv())
        counts = sum((pipe.recv() for pipe in self.others), counts)
        for pipe in self.others:
            pipe.send(counts)
        return counts


def learn(model: NDArray[np.int64], counts: NDArray[np.int64]) -> float:
    """Count the bytes of a step in the model, and return their loss before, in nats a byte."""
    odds = (model + 1) / (model + 1).sum()
    model += counts
    time.sleep(STEP_SECONDS)
    return float(-(counts * np.log(odds)).sum() / counts.sum())


def model_path(run: str, step: int) -> str:
    """Return where the model is that belongs to the state of a step."""
    return os.path.join(run, f"model-{step:012d}.npy")


def save_model(run: str, loader: sk.Loader, model: NDArray[np.int64]) -> None:
    """Save the model, on rank 0."""
    if loader.rank == 0:
        path = model_path(run, loader.step)
        with open(path + ".part", "wb") as file:
            np.save(file, model)
            file.flush()
            os.fsync(file.fileno())
        os.replace(path + ".part", path)


def pieces(sample: dict[str, Any]) -> list[list[int]]:
    """Return the documents of a sample, and how many bytes of each it has."""
    numbers = sample["document"][sample["segment_ids"] > 0]
    edges = np.flatnonzero(np.diff(numbers, prepend=-1, append=-1))
    return [[int(numbers[start]), int(stop - start)] for start, stop in pairwise(edges)]


def train(given: argparse.Namespace, ranks: Ranks) -> None:
    """Train to the end, or to a stop, as one rank; log what each of its samples is made of."""
    loader = sk.Loader(
        pipeline(given.data),
        global_batch_size=BATCH,
        rank=ranks.rank,
        world_size=given.ranks,
        workers=given.workers,
        steps=given.steps,
        collate=list,
    )
    model = np.zeros(256, dtype=np.int64)
    if sk.load_state(given.run, loader):
        model = np.load(model_path(given.run, loader.step))
    log_path = os.path.join(given.run, f"log-{given.launch:03d}-{ranks.rank}.jsonl")
    with loader, open(log_path, "x", encoding="utf-8") as log:
        print(json.dumps({"begins_at": loader.step, "ranks": given.ranks}), file=log, flush=True)
        with sk.preemption(loader, given.run, deadline=given.deadline) as stop:
            for samples in loader:
                read = np.concatenate([sample["tokens"][sample["segment_ids"] > 0] for sample in samples])
                loss = learn(model, ranks.summed(np.bincount(read, minlength=256)))
                step, made_of = loader.step - 1, [pieces(sample) for sample in samples]
                print(json.dumps({"step": step, "loss": loss, "samples": made_of}), file=log, flush=True)
                print(f"rank {ranks.rank} of pid {os.getpid()} made step {loader.step}", flush=True)
                if stop:
                    save_model(given.run, loader, model)
                    break
                if loader.step % SAVE_EVERY == 0:
                    save_model(given.run, loader, model)
                    sk.save_state(given.run, loader)
        if stop and ranks.rank == 0:
            print(f"stopped at step {loader.step} by {stop.reason}", flush=True)


def main() -> int:
    """Read the command line, start a process for each rank, and return the exit code of the worst."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", help="the folder of the run, made where it is not there")
    parser.add_argument("data", help="the folder of a.jsonl and b.jsonl")
    parser.add_argument("--ranks", type=int, default=1, help="how many processes train: 1, 2, 3, 4 or 6")
    parser.add_argument("--workers", type=int, default=0, help="worker processes of each rank")
    parser.add_argument("--steps", type=int, default=60, help="the step to end at (%(default)s)")
    parser.add_argument("--deadline", type=float, help="the seconds after which to stop")
    given = parser.parse_args()
    os.makedirs(given.run, exist_ok=True)
    given.launch = 1 + len(glob.glob(glob.escape(given.run) + "/log-*-0.jsonl"))
    for number in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, lambda *_: None)  # This process only waits: the ranks answer.
    spawn = multiprocessing.get_context("spawn")
    pipes = [spawn.Pipe() for _ in range(given.ranks - 1)]
    first = Ranks(0, [pipe for pipe, _ in pipes])
    others = [Ranks(rank, [pipe]) for rank, (_, pipe) in enumerate(pipes, start=1)]
    processes = [spawn.Process(target=train, args=(given, ranks)) for ranks in [first, *others]]
    for process in processes:
        process.start()
    for pipe in [*first.others, *(pipe for ranks in others for pipe in ranks.others)]:
        pipe.close()  # The ends that are left are those of the ranks: one that dies ends the others.
    for process in processes:
        process.join()
    return max(abs(process.exitcode or 0) for process in processes)


if __name__ == "__main__":
    raise SystemExit(main())
