"""Train on conversations: the answers alone, on several ranks, and resume exactly after any interruption.

    python -m examples.chats_job.train RUN TOKENS [--ranks N] [--steps N]

RUN is the folder of the run: its states, its models, and a log of each launch. Start the same command again
after an interruption, with the same or another number of ranks, and it goes on from the newest state. TOKENS
is a token store that ``sk.tokenize(..., tokenizer=sk.Chat(...))`` wrote. Model and ranks are those of the
demo on tokens.
"""

from __future__ import annotations

import argparse
import glob
import json
import multiprocessing
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from examples.tokens_job.train import GROUPS, Bigrams, Ranks, Share, model_path, save

import seekable as sk

BATCH, SAVE_EVERY, LENGTH = 12, 5, 256


def pipeline(tokens: str) -> sk.Dataset:
    """Return packed samples with labels; ``loss_mask`` is 1 where the label is trained on."""
    documents = sk.open(tokens)
    return documents.pack(LENGTH, seed=7, method="best_fit", align=["loss_mask"], labels="within")


def share(model: Bigrams, samples: list[dict[str, Any]]) -> Share:
    """Return what some samples add to the gradient: only of labels in the loss."""
    is_in = [sample["loss_mask"] == 1 for sample in samples]
    last = np.concatenate([sample["tokens"][mask] for sample, mask in zip(samples, is_in, strict=True)])
    following = np.concatenate([sample["labels"][mask] for sample, mask in zip(samples, is_in, strict=True)])
    return model.share_of(last, following)


@dataclass(frozen=True)
class Arguments:
    """The command line."""

    run: str
    tokens: str
    ranks: int
    steps: int


def train(given: Arguments, ranks: Ranks) -> None:
    """Train to the end as one rank. Rank 0 logs each step: what was trained on, and where it is from."""
    loader = sk.Loader(
        pipeline(given.tokens),
        global_batch_size=BATCH,
        rank=ranks.rank,
        world_size=given.ranks,
        epochs=3,
        end="drop",
        steps=given.steps,
        collate=list,
    )
    model = Bigrams()
    if sk.load_state(given.run, loader):
        model.weights = np.load(model_path(given.run, loader.step))
    log = Log(given, loader.step) if ranks.rank == 0 else None
    for samples in loader:
        step = loader.step - 1
        of_rank = GROUPS // given.ranks
        shares = ranks.gathered([share(model, samples[group::of_rank]) for group in range(of_rank)])
        if log is not None:
            model.learn(shares)
            log.note(step, shares, loader.locate(step=step))
        model.weights = ranks.spread(model.weights)
        if loader.step % SAVE_EVERY == 0 or loader.step == given.steps:
            save(given.run, loader, model)


class Log:
    """The log of one launch: a line for it, and a line for each step."""

    def __init__(self, given: Arguments, begins_at: int) -> None:
        number = 1 + len(glob.glob(glob.escape(given.run) + "/log-*.jsonl"))
        self._steps = given.steps
        self._file = open(os.path.join(given.run, f"log-{number}.jsonl"), "x", encoding="utf-8")  # noqa: SIM115
        self._write(ranks=given.ranks, begins_at=begins_at)
        print(f"begins at step {begins_at}, ranks: {given.ranks}", flush=True)

    def note(self, step: int, shares: list[Share], samples: list[list[sk.Location]]) -> None:
        """Log a step, with the bytes of token files that each sample is made of."""
        pieces = [[[piece.path, piece.offset, piece.length] for piece in sample] for sample in samples]
        trained = sum(each.tokens for each in shares)
        loss = sum(each.loss for each in shares) / trained
        self._write(step=step, loss=loss, trained=trained, samples=pieces)
        print(f"step {step + 1} of {self._steps}, loss {loss:.3f}", flush=True)

    def _write(self, **entry: Any) -> None:
        print(json.dumps(entry), file=self._file, flush=True)


def main() -> int:
    """Read the command line, start a process for each rank, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", help="the folder of the run, made where it is not there")
    parser.add_argument("tokens", help="the token store")
    parser.add_argument("--ranks", type=int, default=1, help="how many processes train: 1, 2, 3 or 6")
    parser.add_argument("--steps", type=int, default=60, help="the step to stop at (%(default)s)")
    given = Arguments(**vars(parser.parse_args()))
    os.makedirs(given.run, exist_ok=True)
    spawn = multiprocessing.get_context("spawn")
    pipes = [spawn.Pipe() for _ in range(given.ranks - 1)]
    all_ranks = [Ranks(0, [pipe for pipe, _ in pipes])]
    all_ranks += [Ranks(rank, [pipe]) for rank, (_, pipe) in enumerate(pipes, start=1)]
    processes = [spawn.Process(target=train, args=(given, ranks)) for ranks in all_ranks]
    for process in processes:
        process.start()
    for pipe in [pipe for ranks in all_ranks for pipe in ranks.others]:
        pipe.close()  # The ends that are left are those of the ranks: one that dies ends the others.
    for process in processes:
        process.join()
    return max(abs(process.exitcode or 0) for process in processes)


if __name__ == "__main__":
    raise SystemExit(main())
