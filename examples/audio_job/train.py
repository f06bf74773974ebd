"""Train a small classifier of speech in noise on several ranks, and resume exactly after any interruption.

    python train.py RUN DATA [--ranks N]

RUN is the folder of the run: its states, its models, and a log of each launch. Start the same command again
after an interruption, with the same or another number of ranks, and it goes on from the newest state. DATA
has the folders ``speech`` and ``noise``, in the form of Lhotse's Shar.
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
    from collections.abc import Iterable, Iterator
    from multiprocessing.connection import Connection

    from numpy.typing import NDArray

LANES = 12
"""Lanes are divided among ranks, so that the run can go on with 1, 2, 3, 4, 6 or 12 of them."""

STEPS = 60
SAVE_EVERY = 10
SECONDS = 6.0
"""The most audio of one batch, padded to its longest recording."""

WORDS = ("ah", "aw", "ee", "eh", "er", "ih", "oo", "uh")
FRAME, BANDS = 256, 20
LEARNING_RATE = 0.3


def noisy(cut: dict[str, Any], others: Iterator[dict[str, Any]], rng: np.random.Generator) -> dict[str, Any]:
    """Return a cut with noise over all of it, between 5 and 20 decibels below the speech."""
    noise = (other["recording"]["data"] for other in others)
    mixed = sk.audio_mix(cut["recording"]["data"], noise, snr=(5, 20), rng=rng)
    return {**cut, "recording": {**cut["recording"], "data": mixed}}


def seconds(cut: dict[str, Any]) -> float:
    """Return the length of a cut, by which batches are made."""
    return float(cut["duration"])


def pipeline(data: str) -> sk.Stream:
    """Return batches of cuts of similar length, most of them with noise. Nothing is read yet."""
    speech = sk.open(f"shar:{os.path.join(data, 'speech')}", decode="audio")
    noise = sk.open(f"shar:{os.path.join(data, 'noise')}", decode="audio")
    cuts = speech.shuffle(seed=1).stream(lanes=LANES)
    with_noise = cuts.overlay(noise, noisy, partners="endless", prob=0.8, seed=2)
    return with_noise.bucket(
        seconds, max_cost=SECONDS, boundaries=[0.8, 1.2, 1.6, 2.0], buffer=24, padded=True, seed=3
    )


def features(samples: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the loudness of each band of frequencies, against that of all, and how much it changes."""
    frames = np.lib.stride_tricks.sliding_window_view(samples, FRAME)[:: FRAME // 2]
    power = np.abs(np.fft.rfft(frames * np.hanning(FRAME))) ** 2
    edges = np.linspace(0, power.shape[1], BANDS, endpoint=False).astype(int)
    bands = np.log(np.add.reduceat(power, edges, axis=1) + 1e-6)
    mean = bands.mean(axis=0)
    return np.concatenate([(mean - mean.mean()) / 3, bands.std(axis=0) / 3, [1.0]])


@dataclass
class Share:
    """What one batch of one lane adds to a step."""

    records: list[tuple[str, int]]
    """For each cut its id, and a checksum of the samples that were delivered."""
    gradient: NDArray[np.float64]
    loss: float
    right: int


class Classifier:
    """A softmax over words; trained by plain gradient descent."""

    def __init__(self) -> None:
        self.weights = np.zeros((2 * BANDS + 1, len(WORDS)))

    def share(self, cuts: list[dict[str, Any]]) -> Share:
        """Return what a batch adds to the gradient."""
        data = [cut["recording"]["data"][0] for cut in cuts]
        inputs = np.stack([features(samples) for samples in data])
        words = np.array([WORDS.index(cut["supervisions"][0]["text"]) for cut in cuts])
        scores = inputs @ self.weights
        shifted = scores - scores.max(axis=1, keepdims=True)
        log_odds = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        errors = np.exp(log_odds)
        errors[np.arange(len(cuts)), words] -= 1
        records = [(cut["id"], zlib.crc32(samples)) for cut, samples in zip(cuts, data, strict=True)]
        loss = float(-log_odds[np.arange(len(cuts)), words].sum())
        return Share(records, inputs.T @ errors, loss, int((scores.argmax(axis=1) == words).sum()))

    def learn(self, shares: Iterable[Share]) -> None:
        """Change the weights by the shares of all lanes, in their order: so sums are equal on any ranks."""
        gradient, count = np.zeros_like(self.weights), 0
        for share in shares:
            gradient += share.gradient
            count += len(share.records)
        self.weights -= LEARNING_RATE * gradient / count


@dataclass
class Ranks:
    """The other ranks, through pipes between processes; rank 0 is in the middle."""

    rank: int
    others: list[Connection]
    """Of rank 0 the pipes to all others in their order; of another rank the pipe to rank 0."""

    def gathered(self, shares: list[Share]) -> list[Share]:
        """Return the shares of all lanes in their order, on rank 0; nothing on the others."""
        if self.rank:
            self.others[0].send(shares)
            return []
        of_ranks = [shares, *(pipe.recv() for pipe in self.others)]
        return [share for slot in zip(*of_ranks, strict=True) for share in slot]

    def spread(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weights of rank 0."""
        if self.rank:
            return np.asarray(self.others[0].recv())
        for pipe in self.others:
            pipe.send(weights)
        return weights


def model_path(run: str, step: int) -> str:
    """Return where the model is that belongs to the state of a step."""
    return os.path.join(run, f"model-{step:012d}.npy")


def save(run: str, loader: sk.Loader, model: Classifier) -> None:
    """Save the model, on rank 0, and then the state of this rank: a whole state always has its model."""
    path = model_path(run, loader.step)
    if loader.rank == 0:
        with open(path + ".part", "wb") as file:
            np.save(file, model.weights)
            file.flush()
            os.fsync(file.fileno())
        os.replace(path + ".part", path)
    sk.save_state(run, loader)


def train(run: str, data: str, ranks: Ranks, world_size: int) -> None:
    """Train to the end of the run as one rank. Rank 0 logs each step: its loss, and what was delivered."""
    began = time.perf_counter()
    share: dict[str, Any] = {"global_batch_size": LANES, "rank": ranks.rank, "world_size": world_size}
    loader = sk.Loader(pipeline(data), **share, steps=STEPS, collate=list)
    model = Classifier()
    if sk.load_state(run, loader):
        model.weights = np.load(model_path(run, loader.step))
    begins_at, log = loader.step, None
    for batches in loader:
        step = loader.step - 1
        shares = ranks.gathered([model.share(cuts) for cuts in batches])
        if ranks.rank == 0:
            model.learn(shares)
            if log is None:
                log = Log(run, world_size, begins_at, 1000 * (time.perf_counter() - began))
            log.note(step, shares)
        model.weights = ranks.spread(model.weights)
        if loader.step % SAVE_EVERY == 0 or loader.step == STEPS:
            save(run, loader, model)
    if log is None and ranks.rank == 0:
        print("this run is finished")


class Log:
    """The log of one launch: a line for it, and a line for each step."""

    def __init__(self, run: str, world_size: int, begins_at: int, milliseconds: float) -> None:
        number = 1 + len(glob.glob(glob.escape(run) + "/log-*.jsonl"))
        self._file = open(os.path.join(run, f"log-{number}.jsonl"), "x", encoding="utf-8")  # noqa: SIM115
        self._write(ranks=world_size, begins_at=begins_at, milliseconds=milliseconds)
        print(f"begins at step {begins_at} on {world_size} rank{'s' * (world_size > 1)}", flush=True)

    def note(self, step: int, shares: list[Share]) -> None:
        """Log a step."""
        records = [record for share in shares for record in share.records]
        loss = sum(share.loss for share in shares) / len(records)
        right = sum(share.right for share in shares) / len(records)
        self._write(step=step, loss=loss, right=right, records=records)
        print(f"step {step + 1} of {STEPS}, loss {loss:.3f}, {right:.0%} right", flush=True)

    def _write(self, **entry: Any) -> None:
        print(json.dumps(entry), file=self._file, flush=True)


def main() -> int:
    """Read the command line, start a process for each rank, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", help="the folder of the run, made where it is not there")
    parser.add_argument("data", help="the folder of the folders speech and noise")
    parser.add_argument("--ranks", type=int, default=1, help="how many processes train; a divisor of 12")
    args = parser.parse_args()
    os.makedirs(args.run, exist_ok=True)
    spawn = multiprocessing.get_context("spawn")
    pipes = [spawn.Pipe() for _ in range(args.ranks - 1)]
    first = Ranks(0, [pipe for pipe, _ in pipes])
    others = [Ranks(rank, [pipe]) for rank, (_, pipe) in enumerate(pipes, start=1)]
    processes = [
        spawn.Process(target=train, args=(args.run, args.data, ranks, args.ranks))
        for ranks in [first, *others]
    ]
    for process in processes:
        process.start()
    for pipe in [*first.others, *(pipe for ranks in others for pipe in ranks.others)]:
        pipe.close()  # The ends that are left are those of the ranks: one that dies ends the others.
    for process in processes:
        process.join()
    return max(abs(process.exitcode or 0) for process in processes)


if __name__ == "__main__":
    raise SystemExit(main())
