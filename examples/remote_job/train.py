"""Train a small language model on a bucket, on several ranks, and resume exactly after any interruption.

    python train.py RUN SOURCE SOURCE [--ranks N] [--states ADDRESS] [--endpoint URL]

RUN is the folder of the run: its models, and the log of each launch. The states lie in the bucket, so another
machine can go on. Start the same command again after an interruption, with the same or another number of
ranks, and it goes on from the newest state. The sources are mixed 70:30.
"""

from __future__ import annotations

import argparse
import glob
import json
import multiprocessing
import os
import time
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import seekable as sk

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from numpy.typing import NDArray

BATCH = 96
"""Records of a step, over all ranks: 1, 2, 3, 4 or more ranks divide them."""

LONGEST = 2000
"""Bytes of a record that are trained on."""

LEARNING_RATE = 3.0
"""High, because the gradients of most bytes, which are rare, are small."""


@dataclass(frozen=True)
class Arguments:
    """The command line."""

    run: str
    sources: list[str]
    states: str
    ranks: int
    records: int
    save_every: int
    endpoint: str | None

    @property
    def storage_options(self) -> dict[str, Any] | None:
        """The options of the store; keys and region come from the environment, as for other tools."""
        return {"endpoint": self.endpoint} if self.endpoint else None


def pipeline(given: Arguments) -> sk.Dataset:
    """Return what is trained on, in its order. Nothing is read yet but the lists of objects."""
    first, second = (
        sk.open(source, storage=sk.Storage(options=given.storage_options)) for source in given.sources
    )
    shuffled = [first.shuffle(seed=1, window=4, lanes=4), second.shuffle(seed=2, window=4, lanes=4)]
    mixed = sk.mix(shuffled, weights=[0.7, 0.3], seed=3)
    return mixed.map(as_bytes).take(given.records)


def as_bytes(record: Any) -> bytes:
    """Return the text of a record: a line, or the "text" of a JSON record."""
    text = record["text"] if isinstance(record, dict) else record
    return str(text).encode(errors="replace")[:LONGEST]


def pairs_of(texts: list[bytes]) -> NDArray[np.int64]:
    """Return how often each byte follows each other one in some texts, 256 x 256 counts."""
    padded = b"\n" + b"\n".join(texts) + b"\n"
    stream = np.frombuffer(padded, dtype=np.uint8).astype(np.int64)
    return np.bincount(stream[:-1] * 256 + stream[1:], minlength=256 * 256).reshape(256, 256)


class Bigram:
    """A softmax over the next byte, given the byte before; trained by plain gradient descent."""

    def __init__(self) -> None:
        self.logits = np.zeros((256, 256))

    def step(self, pairs: NDArray[np.int64]) -> float:
        """Learn from the pairs of a global batch, and return its loss in nats a byte."""
        shifted = self.logits - self.logits.max(axis=1, keepdims=True)
        log_odds = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        gradient = np.exp(log_odds) * pairs.sum(axis=1, keepdims=True) - pairs
        self.logits -= LEARNING_RATE * gradient / pairs.sum()
        return float(-(pairs * log_odds).sum() / pairs.sum())


@dataclass
class Share:
    """What one rank adds to a step. Counts are whole numbers, so their sum is equal on any ranks."""

    pairs: NDArray[np.int64]
    checksums: list[int]
    """Those of its texts; rank r of n has the records r, r + n, r + 2n ... of the global batch."""


@dataclass
class Ranks:
    """The other ranks, through pipes between processes; rank 0 is in the middle, and has the model."""

    rank: int
    others: list[Connection]
    """Of rank 0 the pipes to all others in their order; of another rank the pipe to rank 0."""

    def gathered(self, share: Share) -> list[Share]:
        """Return the shares of all ranks in their order, on rank 0; nothing on the others."""
        if self.rank:
            self.others[0].send(share)
            return []
        return [share, *(pipe.recv() for pipe in self.others)]


def model_path(run: str, step: int) -> str:
    """Return the path of the model that belongs to the state of a step."""
    return os.path.join(run, f"model-{step:012d}.npy")


def save(given: Arguments, loader: sk.Loader, model: Bigram) -> None:
    """Save the model, on rank 0, and then the state of this rank: a whole state always has its model."""
    path = model_path(given.run, loader.step)
    if loader.rank == 0:
        with open(path + ".part", "wb") as file:
            np.save(file, model.logits)
            file.flush()
            os.fsync(file.fileno())
        os.replace(path + ".part", path)
    sk.save_state(given.states, loader, storage=sk.Storage(options=given.storage_options))


def train(given: Arguments, ranks: Ranks) -> None:
    """Train to the end as one rank. Rank 0 logs each step: its loss, and the records of all ranks."""
    dataset = pipeline(given)
    began = time.perf_counter()
    loader = sk.Loader(
        dataset, global_batch_size=BATCH, rank=ranks.rank, world_size=given.ranks, collate=list
    )
    model = Bigram()
    resumed = sk.load_state(given.states, loader, storage=sk.Storage(options=given.storage_options))
    begins_at, log = loader.step, None
    for texts in loader:
        if log is None and ranks.rank == 0:
            if resumed:
                model.logits = np.load(model_path(given.run, begins_at))
            log = Log(given, begins_at, 1000 * (time.perf_counter() - began), len(dataset))
        step = loader.step - 1
        shares = ranks.gathered(Share(pairs_of(texts), [zlib.crc32(text) for text in texts]))
        if log is not None:
            loss = model.step(np.sum([share.pairs for share in shares], axis=0))
            log.note(step, len(loader), loss, loader.locate(step=step), [share.checksums for share in shares])
        if loader.step % given.save_every == 0 or loader.step == len(loader):
            save(given, loader, model)
    if log is not None:
        log.end(loader)
    elif ranks.rank == 0:
        print("this run is finished")


class Log:
    """The log of one launch: a line for it, and a line for each step."""

    def __init__(self, given: Arguments, begins_at: int, milliseconds: float, expected: int) -> None:
        number = 1 + len(glob.glob(glob.escape(given.run) + "/log-*.jsonl"))
        self._file = open(os.path.join(given.run, f"log-{number}.jsonl"), "x", encoding="utf-8")  # noqa: SIM115
        self._write(begins_at=begins_at, milliseconds=milliseconds, expected=expected)
        ranks = f"{given.ranks} rank{'s' * (given.ranks > 1)}"
        print(f"begins at batch {begins_at} on {ranks}, {milliseconds:.0f} ms to its first batch", flush=True)

    def note(
        self, step: int, steps: int, loss: float, places: list[sk.Location], checksums: list[list[int]]
    ) -> None:
        """Log a step, with the records of the global batch: file, row, and checksum of what a rank had."""
        of_batch = [0] * len(places)
        for rank, share in enumerate(checksums):
            of_batch[rank :: len(checksums)] = share
        records = [(place.path, place.row, crc) for place, crc in zip(places, of_batch, strict=True)]
        self._write(step=step, loss=loss, records=records)
        print(f"batch {step + 1} of {steps}, loss {loss:.3f}", flush=True)

    def end(self, loader: sk.Loader) -> None:
        """Print what rank 0 has fetched."""
        fetched = loader.report()["remote"]
        size = f"{fetched.fetched_bytes / 1e6:.1f} MB in {fetched.requests:,} requests"
        waited = f"waited {fetched.wait_seconds:.1f} s, sent {fetched.retries} requests again"
        print(f"rank 0 has fetched {size}, {waited}", flush=True)

    def _write(self, **entry: Any) -> None:
        print(json.dumps(entry), file=self._file, flush=True)


def main() -> int:
    """Read the command line, start a process for each rank, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", help="the folder of the run, made where it is not there")
    parser.add_argument("sources", nargs=2, help="two addresses, such as 's3://bucket/passages-*.jsonl'")
    parser.add_argument("--states", required=True, help="the address of a folder for the states")
    parser.add_argument("--ranks", type=int, default=1, help="how many processes train (%(default)s)")
    parser.add_argument("--records", type=int, default=48_000, help="the records of an epoch (%(default)s)")
    parser.add_argument("--save-every", type=int, default=25, help="batches between two saved states")
    parser.add_argument("--endpoint", help="the address of the store, if it is not that of the cloud")
    given = Arguments(**vars(parser.parse_args()))
    os.makedirs(given.run, exist_ok=True)
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
