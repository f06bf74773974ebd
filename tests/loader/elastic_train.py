"""One rank of a training run that only logs what it is given: `elastic_train.py SETTINGS`, as JSON.

It says on stdout how far it is, a line a batch: rank, process id, step.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed

import seekable as sk

if TYPE_CHECKING:
    from typing import TextIO

SAVE_EVERY = 3


@dataclass(frozen=True)
class Settings:
    """What all ranks of a launch are told."""

    data: str
    states: str
    logs: str
    """A folder: each rank logs into a file of its own, `rank-<rank>`."""
    batch: int
    workers: int
    until: int
    """The step to end at."""
    torn: int | None
    """The step at which the last rank gets stuck where it would save its state."""


def number(record: dict[str, Any]) -> int:
    return int(record["id"])


def pipeline(data: str) -> sk.Dataset:
    web = sk.open(f"{data}/web-*.jsonl").shuffle(seed=1, window=3, lanes=12)
    code = sk.open(f"{data}/code.jsonl").shuffle(seed=2)
    sources = {"web": web.map(number), "code": code.map(number)}
    return sk.mix(sources, weights={"web": 0.7, "code": 0.3}, seed=0, stop="all")


def main(settings: Settings) -> None:
    rank, world_size = sk.distributed()
    # A collective that not all ranks come to is an error after this time, and not a hang.
    patience = timedelta(seconds=60)
    where = os.environ.get("RENDEZVOUS", "env://")
    distributed.init_process_group(
        "gloo", init_method=where, rank=rank, world_size=world_size, timeout=patience
    )
    assert sk.distributed() == (rank, world_size)
    loader = sk.Loader(
        pipeline(settings.data),
        global_batch_size=settings.batch,
        rank=rank,
        world_size=world_size,
        end="pad",
        workers=settings.workers,
        collate=list,
    )
    with loader, open(f"{settings.logs}/rank-{rank}", "a", encoding="utf-8") as log:
        sk.load_state(settings.states, loader)
        train(loader, settings, log)
    distributed.destroy_process_group()


def train(loader: sk.Loader, settings: Settings, log: TextIO) -> None:
    put(log, {"begins": loader.step})
    while True:
        for batch in loader:
            check_in_step(loader)
            put(log, {"step": loader.step - 1, "batch": batch})
            if loader.step % SAVE_EVERY == 0:
                if loader.step == settings.torn and loader.rank == loader.world_size - 1:
                    signal.pause()
                sk.save_state(settings.states, loader)
            os.write(1, f"{loader.rank} {os.getpid()} {loader.step}\n".encode())
            if loader.step == settings.until:
                return


def check_in_step(loader: sk.Loader) -> None:
    """Meet the other ranks: all of them have made as many steps."""
    mine = torch.tensor([loader.step])
    steps = [torch.zeros_like(mine) for _ in range(loader.world_size)]
    distributed.all_gather(steps, mine)
    assert all(step == mine for step in steps), f"rank {loader.rank} is at {loader.step}, all at {steps}"


def put(log: TextIO, entry: dict[str, Any]) -> None:
    log.write(json.dumps(entry) + "\n")
    log.flush()


if __name__ == "__main__":
    main(Settings(**json.loads(sys.argv[1])))
