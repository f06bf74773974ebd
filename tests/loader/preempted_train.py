"""Ranks that only log what they are given, until they are to stop.

A rank tells the launcher its number and its step when it has a batch, and waits for a byte,
which stands for the exchange of gradients: the launcher lets no rank go on before all are there.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

import seekable as sk


@dataclass(frozen=True)
class Settings:
    """What all ranks of a launch are told."""

    folder: str
    """The folder of states and logs: rank r of life l logs into `log-<l>-<r>`."""
    life: int
    ranks: int
    every: int
    workers: int
    steps: int


def is_kept(record: int) -> bool:
    return record % 7 != 3


def as_tokens(record: int) -> list[int]:
    return [record] * (1 + record % 5)


def pipeline() -> sk.Stream:
    """Filtered, mixed and packed: what is left of a document begins the next sample of its lane."""
    sources = {
        name: sk.from_sequence(range(first, first + 300), version=1).shuffle(seed=first).stream(lanes=12)
        for name, first in (("web", 0), ("code", 1000))
    }
    kept = {name: source.filter(is_kept).map(as_tokens) for name, source in sources.items()}
    return sk.mix(kept, weights={"web": 0.7, "code": 0.3}, seed=0).pack(16)


def loader_of(rank: int, world_size: int, steps: int, workers: int = 0) -> sk.Loader:
    ranks: dict[str, Any] = {"global_batch_size": 12, "rank": rank, "world_size": world_size}
    return sk.Loader(pipeline(), **ranks, steps=steps, collate=list, workers=workers)


def train(settings: Settings, rank: int, tells: int, gate: int) -> None:
    """Train as one rank; it writes to the descriptor ``tells``, and waits at ``gate``."""
    loader = loader_of(rank, settings.ranks, settings.steps, settings.workers)
    sk.load_state(settings.folder, loader)
    path = f"{settings.folder}/log-{settings.life}-{rank}"
    with (
        loader,
        open(path, "w", encoding="utf-8") as log,
        sk.preemption(loader, settings.folder, every=settings.every) as stop,
    ):
        for batch in loader:
            os.write(tells, f"{rank} {loader.step}\n".encode())
            assert os.read(gate, 1), "the launcher has ended"
            print(json.dumps({"step": loader.step - 1, "batch": plain(batch)}), file=log, flush=True)
            if stop:
                break


def plain(batch: Any) -> Any:
    """Return a batch of packed samples as lists."""
    return [{name: value.tolist() for name, value in sample.items()} for sample in batch]
