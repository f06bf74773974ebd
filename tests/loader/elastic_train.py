"""One rank of a training run that only logs what it is given: `elastic_train.py SETTINGS`, as JSON.

Prints a line after each batch: rank, process id, step. The ranks meet after each batch: with
``settings.gloo`` in a collective of torch; otherwise at the launcher, which writes a byte to each rank.
Where the variable ``FORKS`` is set, it forks as many ranks, and writes their exit statuses to a file.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

SAVE_EVERY = 3
STATUSES = "statuses"
"""The file of the exit statuses of ranks that were forked, a list in JSON, in the folder of logs."""


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
    gloo: bool
    """True if the ranks meet in a collective of torch, which is not imported otherwise."""


def number(record: dict[str, Any]) -> int:
    return int(record["id"])


def pipeline(data: str) -> sk.Dataset:
    web = sk.open(f"{data}/web-*.jsonl").shuffle(seed=1, window=3, lanes=12)
    code = sk.open(f"{data}/code.jsonl").shuffle(seed=2)
    sources = {"web": web.map(number), "code": code.map(number)}
    return sk.mix(sources, weights={"web": 0.7, "code": 0.3}, seed=0, stop="all")


def main(settings: Settings) -> None:
    rank, world_size = sk.distributed()
    meet = met_by_gloo(rank, world_size) if settings.gloo else met_at_launcher
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
        train(loader, settings, log, meet)
    if settings.gloo:
        from torch import distributed

        distributed.destroy_process_group()


def met_by_gloo(rank: int, world_size: int) -> Callable[[int], None]:
    """Join the group of all ranks; return a function that checks that all have made as many steps."""
    import torch
    from torch import distributed

    # A collective that not all ranks come to is an error after this time, and not a hang.
    patience = timedelta(seconds=60)
    where = os.environ.get("RENDEZVOUS", "env://")
    distributed.init_process_group(
        "gloo", init_method=where, rank=rank, world_size=world_size, timeout=patience
    )
    assert sk.distributed() == (rank, world_size)

    def meet(step: int) -> None:
        mine = torch.tensor([step])
        steps = [torch.zeros_like(mine) for _ in range(world_size)]
        distributed.all_gather(steps, mine)
        assert all(other == mine for other in steps), f"rank {rank} is at {step}, all at {steps}"

    return meet


def met_at_launcher(step: int) -> None:
    """Wait for the byte of the launcher."""
    assert os.read(0, 1), f"the launcher ended at step {step}"


def train(loader: sk.Loader, settings: Settings, log: TextIO, meet: Callable[[int], None]) -> None:
    put(log, {"begins": loader.step})
    while True:
        for batch in loader:
            meet(loader.step)
            put(log, {"step": loader.step - 1, "batch": batch})
            if loader.step % SAVE_EVERY == 0:
                if loader.step == settings.torn and loader.rank == loader.world_size - 1:
                    signal.pause()
                sk.save_state(settings.states, loader)
            os.write(1, f"{loader.rank} {os.getpid()} {loader.step}\n".encode())
            if loader.step == settings.until:
                return


def fork(settings: Settings, count: int) -> None:
    """Run ranks in forks of this process, which imports torch for all of them, and wait for all."""
    from torch import distributed  # noqa: F401 - what takes long in each rank

    ranks = []
    for rank in range(count):
        ranks.append(os.fork())
        if not ranks[-1]:
            os.environ["RANK"] = str(rank)
            main(settings)
            return
    ended = dict(os.wait() for _ in ranks)
    statuses = [os.waitstatus_to_exitcode(ended[rank]) for rank in ranks]
    with open(f"{settings.logs}/{STATUSES}", "w", encoding="utf-8") as file:
        json.dump(statuses, file)


def put(log: TextIO, entry: dict[str, Any]) -> None:
    log.write(json.dumps(entry) + "\n")
    log.flush()


if __name__ == "__main__":
    given = Settings(**json.loads(sys.argv[1]))
    if forks := os.environ.get("FORKS"):
        fork(given, int(forks))
    else:
        main(given)
