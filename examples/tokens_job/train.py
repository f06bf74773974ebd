"""Train a small language model on packed samples on several ranks, and resume exactly after any interruption.

    python train.py RUN DATA [--ranks N] [--length L] [--steps N] [--resume exact|rows]

RUN is the folder of the run: its states, its models, and a log of each launch. Start the same command again
after an interruption, with the same or another number of ranks, and it goes on from the newest state. With
``--resume rows`` the length of samples may have changed too: the begun epoch of each source ends in samples
of the old length. DATA has the tokens of two sources, ``code-tokens`` and ``prose-tokens``.
"""

from __future__ import annotations

import argparse
import glob
import json
import multiprocessing
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Iterable
    from multiprocessing.connection import Connection

    from numpy.typing import NDArray

    Resume = Literal["exact", "rows"]

AShare = TypeVar("AShare", bound="Share")
WEIGHTS = {"code": 0.7, "prose": 0.3}
BATCH = 24
"""Samples of a step, over all ranks."""

GROUPS = 6
"""Sums of gradients are made in groups of samples, and the ranks divide the groups: 1, 2, 3 or 6 of them."""

SAVE_EVERY = 5
VOCABULARY, WIDTH = 512, 16
LEARNING_RATE = 0.05


def pipeline(data: str, length: int) -> sk.Dataset:
    """Return packed samples of two sources, 70 to 30. No epoch is built, and nothing is read yet."""
    sources = {}
    for seed, name in enumerate(WEIGHTS):
        documents = sk.open(os.path.join(data, f"{name}-tokens"))
        sources[name] = documents.pack(length, seed=seed, method="best_fit")
    return sk.mix(sources, weights=WEIGHTS, seed=0, stop="never")


@dataclass
class Share:
    """What one group of samples adds to a step."""

    tokens: int
    """The number of predicted tokens."""
    loss: float
    gradients: tuple[NDArray[np.float64], NDArray[np.float64]]


class Bigrams:
    """A model of the next token given the last one, of low rank; trained by the signs of gradients."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.weights = rng.normal(0, 0.1, (2, VOCABULARY, WIDTH))

    def share(self, samples: list[dict[str, Any]]) -> Share:
        """Return what some samples add to the gradient. No token is predicted from another document."""
        pairs = [_pairs(sample["tokens"], sample["segment_ids"]) for sample in samples]
        last, following = (np.concatenate(side) for side in zip(*pairs, strict=True))
        return self.share_of(last, following)

    def share_of(self, last: NDArray[Any], following: NDArray[Any]) -> Share:
        """Return what some pairs of tokens add to the gradient."""
        inputs, outputs = self.weights
        hidden = inputs[last]
        scores = hidden @ outputs.T
        scores -= scores.max(axis=1, keepdims=True)
        scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
        loss = -float(scores[np.arange(len(last)), following].sum())
        errors = np.exp(scores)
        errors[np.arange(len(last)), following] -= 1
        of_inputs = np.zeros_like(inputs)
        np.add.at(of_inputs, last, errors @ outputs)
        return Share(len(last), loss, (of_inputs, errors.T @ hidden))

    def learn(self, shares: Iterable[Share]) -> None:
        """Change the weights by the shares of all groups, in their order: sums are equal on any ranks."""
        gradient = np.zeros_like(self.weights)
        for share in shares:
            gradient += np.stack(share.gradients)
        self.weights -= LEARNING_RATE * np.sign(gradient)


def _pairs(tokens: NDArray[Any], segments: NDArray[np.int32]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the tokens that have a next one in the same document, and those next ones."""
    within = (segments[1:] == segments[:-1]) & (segments[1:] > 0)
    return tokens[:-1][within], tokens[1:][within]


@dataclass
class Ranks:
    """The other ranks, through pipes between processes; rank 0 is in the middle."""

    rank: int
    others: list[Connection]
    """Of rank 0 the pipes to all others in their order; of another rank the pipe to rank 0."""

    def gathered(self, shares: list[AShare]) -> list[AShare]:
        """Return the shares of all groups in their order, on rank 0; nothing on the others."""
        if self.rank:
            self.others[0].send(shares)
            return []
        of_ranks = [shares, *(pipe.recv() for pipe in self.others)]
        return [share for group in zip(*of_ranks, strict=True) for share in group]

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


def save(run: str, loader: sk.Loader, model: Bigrams) -> None:
    """Save the model, on rank 0, and then the state of this rank: a whole state always has its model."""
    path = model_path(run, loader.step)
    if loader.rank == 0:
        with open(path + ".part", "wb") as file:
            np.save(file, model.weights)
            file.flush()
            os.fsync(file.fileno())
        os.replace(path + ".part", path)
    sk.save_state(run, loader)


@dataclass(frozen=True)
class Arguments:
    """The command line."""

    run: str
    data: str
    ranks: int
    length: int
    steps: int
    resume: Resume


def train(given: Arguments, ranks: Ranks) -> None:
    """Train to the end as one rank. Rank 0 logs each step: its loss, and where its tokens are from."""
    began = time.perf_counter()
    share: dict[str, Any] = {"global_batch_size": BATCH, "rank": ranks.rank, "world_size": given.ranks}
    loader = sk.Loader(pipeline(given.data, given.length), **share, steps=given.steps, collate=list)
    model = Bigrams()
    if sk.load_state(given.run, loader, resume=given.resume):
        model.weights = np.load(model_path(given.run, loader.step))
    begins_at, log = loader.step, None
    for samples in loader:
        step = loader.step - 1
        of_rank = GROUPS // given.ranks
        shares = ranks.gathered([model.share(samples[group::of_rank]) for group in range(of_rank)])
        if ranks.rank == 0:
            model.learn(shares)
            if log is None:
                log = Log(given, begins_at, 1000 * (time.perf_counter() - began))
            log.note(step, shares, loader.locate(step=step))
        model.weights = ranks.spread(model.weights)
        if loader.step % SAVE_EVERY == 0 or loader.step == given.steps:
            save(given.run, loader, model)
    if log is None and ranks.rank == 0:
        print("this run is finished")


class Log:
    """The log of one launch: a line for it, and a line for each step."""

    def __init__(self, given: Arguments, begins_at: int, milliseconds: float) -> None:
        number = 1 + len(glob.glob(glob.escape(given.run) + "/log-*.jsonl"))
        self._steps = given.steps
        self._file = open(os.path.join(given.run, f"log-{number}.jsonl"), "x", encoding="utf-8")  # noqa: SIM115
        self._write(ranks=given.ranks, length=given.length, begins_at=begins_at, milliseconds=milliseconds)
        ranks = f"{given.ranks} rank{'s' * (given.ranks > 1)}"
        print(f"begins at step {begins_at} on {ranks}, samples of {given.length} tokens", flush=True)

    def note(self, step: int, shares: list[Share], samples: list[list[sk.Location]]) -> None:
        """Log a step, with the bytes of token files that each sample is made of."""
        pieces = [
            [[os.path.relpath(piece.path), piece.offset, piece.length] for piece in sample]
            for sample in samples
        ]
        loss = sum(share.loss for share in shares) / sum(share.tokens for share in shares)
        self._write(step=step, loss=loss, samples=pieces)
        print(f"step {step + 1} of {self._steps}, loss {loss:.3f}", flush=True)

    def _write(self, **entry: Any) -> None:
        print(json.dumps(entry), file=self._file, flush=True)


def main() -> int:
    """Read the command line, start a process for each rank, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", help="the folder of the run, made where it is not there")
    parser.add_argument("data", help="the folder of the folders code-tokens and prose-tokens")
    parser.add_argument("--ranks", type=int, default=1, help="how many processes train: 1, 2, 3 or 6")
    parser.add_argument("--length", type=int, default=256, help="tokens of a sample (%(default)s)")
    parser.add_argument("--steps", type=int, default=60, help="the step to stop at (%(default)s)")
    parser.add_argument("--resume", default="exact", choices=["exact", "rows"], help="how to go on")
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
