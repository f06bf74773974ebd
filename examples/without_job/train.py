"""Train a small language model on two sources, without the records of a list, or without them from a step on.

    python -m examples.without_job.train RUN DATA [--ranks N] [--steps N] [--without LIST]
    python -m examples.without_job.train RUN DATA ... --takedown LIST --at STEP

RUN is the folder of the run: its states, its models, and a log of each launch. Start the same command again
after an interruption, with the same or another number of ranks, and it goes on from the newest state. A
takedown is said once: states that are saved after it know it, and later launches need no --takedown. DATA has
``a.jsonl`` and ``b.jsonl``; a LIST is a file of lines ``{"path": "a.jsonl", "row": 17}``. Model and ranks are
those of the demo on tokens.
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

BATCH, SAVE_EVERY, LONGEST = 24, 10, 100
"""Records of a step over all ranks, steps between two states, and the bytes of a record that are read."""


@dataclass
class Group(Share):
    """What one group of records adds to a step, and which records they are."""

    records: list[tuple[str, int]]
    """The source of each record and its row there, as the record itself says."""


def pipeline(data: str) -> sk.Dataset:
    """Return two sources, each shuffled, mixed 70 to 30."""
    sources = {name: sk.open(os.path.join(data, f"{name}.jsonl")) for name in "ab"}
    shuffled = {name: source.shuffle(seed=seed) for seed, (name, source) in enumerate(sources.items())}
    return sk.mix(shuffled, weights={"a": 0.7, "b": 0.3}, seed=2, stop="never")


def group(model: Bigrams, records: list[dict[str, Any]]) -> Group:
    """Return what some records add to the gradient: each byte is predicted from the one before."""
    texts = [np.frombuffer(record["text"].encode()[:LONGEST], dtype=np.uint8) for record in records]
    last, following = (np.concatenate([text[cut] for text in texts]) for cut in (slice(-1), slice(1, None)))
    share = model.share_of(last, following)
    which = [(record["source"], record["row"]) for record in records]
    return Group(share.tokens, share.loss, share.gradients, which)


@dataclass(frozen=True)
class Arguments:
    """The command line."""

    run: str
    data: str
    ranks: int
    steps: int
    without: str | None
    takedown: str | None
    at: int | None


def train(given: Arguments, ranks: Ranks) -> None:
    """Train to the end as one rank. Rank 0 logs each step: its loss, and the records of all ranks."""
    dataset = pipeline(given.data)
    if given.without is not None:
        dataset = dataset.without(given.without)
    loader = sk.Loader(
        dataset,
        global_batch_size=BATCH,
        rank=ranks.rank,
        world_size=given.ranks,
        steps=given.steps,
        collate=list,
    )
    model = Bigrams()
    if sk.load_state(given.run, loader):
        model.weights = np.load(model_path(given.run, loader.step))
    if given.takedown is not None:
        loader.exclude(given.takedown, at=given.at)
    log = Log(given, loader.step) if ranks.rank == 0 else None
    for records in loader:
        of_rank = GROUPS // given.ranks
        groups = ranks.gathered([group(model, records[number::of_rank]) for number in range(of_rank)])
        if log is not None:
            model.learn(groups)
            log.note(loader.step - 1, groups)
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

    def note(self, step: int, groups: list[Group]) -> None:
        """Log a step, with the record of each slot."""
        records = [
            record for slots in zip(*(each.records for each in groups), strict=True) for record in slots
        ]
        loss = sum(each.loss for each in groups) / sum(each.tokens for each in groups)
        self._write(step=step, loss=loss, records=records)
        print(f"step {step + 1} of {self._steps}, loss {loss:.3f}", flush=True)

    def _write(self, **entry: Any) -> None:
        print(json.dumps(entry), file=self._file, flush=True)


def main() -> int:
    """Read the command line, start a process for each rank, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", help="the folder of the run, made where it is not there")
    parser.add_argument("data", help="the folder of a.jsonl and b.jsonl")
    parser.add_argument("--ranks", type=int, default=1, help="how many processes train: 1, 2, 3 or 6")
    parser.add_argument("--steps", type=int, default=180, help="the step to stop at (%(default)s)")
    parser.add_argument("--without", help="a list of records that are left out from the start")
    parser.add_argument("--takedown", help="a list of records that are left out from a step on")
    parser.add_argument("--at", type=int, help="the step of the takedown, which has not come yet")
    given = Arguments(**vars(parser.parse_args()))
    os.makedirs(given.run, exist_ok=True)
    spawn = multiprocessing.get_context("spawn")
    pipes = [spawn.Pipe() for _ in range(given.ranks - 1)]
    all_ranks = [Ranks(0, [pipe for pipe, _ in pipes])]
    all_ranks += [Ranks(rank, [pipe]) for rank, (_, pipe) in enumerate(pipes, start=1)]
    processes = [spawn.Process(target=train, args=(given, ranks)) for ranks in all_ranks]
    for process in processes:
        process.start()
    for ranks in all_ranks:
        for pipe in ranks.others:
            pipe.close()  # The ends that are left are those of the ranks: one that dies ends the others.
    for process in processes:
        process.join()
    return max(abs(process.exitcode or 0) for process in processes)


if __name__ == "__main__":
    raise SystemExit(main())
