"""Datasets, and what an sk.Loader delivers of them: what torch's loaders are held to."""

from __future__ import annotations

import json
import multiprocessing
from typing import TYPE_CHECKING, Any

from torch.utils.data import DataLoader

import seekable as sk
from seekable.integrations.torch import BatchSampler

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RECORDS, BATCH = 37, 4

Through = tuple[list[Any], list[dict[str, Any]]]
"""Batches, and states: before the first batch, after each one, and where an end was seen once more."""


def corpus(folder: Path) -> sk.Dataset:
    """Return the records of two JSONL files, each with an ``id``."""
    folder.mkdir(exist_ok=True)
    for name, ids in {"a": range(20), "b": range(20, RECORDS)}.items():
        lines = "".join(json.dumps({"id": number, "text": f"text {number}"}) + "\n" for number in ids)
        (folder / f"{name}.jsonl").write_text(lines)
    return sk.open(folder)


def numbers(n: int = RECORDS) -> sk.Dataset:
    return sk.from_sequence(range(n)).shuffle(seed=3)


def loader_of(dataset: sk.Dataset, **arguments: Any) -> sk.Loader:
    given: dict[str, Any] = {"collate": list, "prefetch": 0, "batch_size": BATCH}
    return sk.Loader(dataset, **given | arguments)


def sampled(
    dataset: Any,
    *,
    kind: type[DataLoader[Any]] = DataLoader,
    batch: dict[str, Any] | None = None,
    **arguments: Any,
) -> tuple[BatchSampler, Any]:
    """Return a batch sampler, and torch's loader over it."""
    sampler = BatchSampler(dataset, **{"batch_size": BATCH} | (batch or {}))
    return sampler, kind(dataset, batch_sampler=sampler, **{"collate_fn": list} | arguments)


def through(loader: Any, sampler: BatchSampler | None = None, *, runs: int = 3) -> Through:
    """Read some runs, counted by a sampler if there is one, and take the state wherever it can be taken."""

    def state() -> dict[str, Any]:
        if isinstance(sampler or loader, BatchSampler | sk.Loader):
            return (sampler or loader).state_dict(rows=False)
        return dict(loader.state_dict())

    batches, states = [], [state()]
    for _ in range(runs):
        for batch in loader if sampler is None else sampler.counting(loader):
            batches.append(batch)
            states.append(state())
        states.append(state())
    return batches, states


def rest(loader: Any, count: int) -> list[Any]:
    """Read ``count`` batches, in as many runs as it takes."""
    batches: list[Any] = []
    while len(batches) < count:
        batches += loader
    return batches


def cuts(states: list[dict[str, Any]]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each state after a round trip through JSON, and how many batches lie before it."""
    for state in states:
        yield state["step"], json.loads(json.dumps(state))


def context(method: str) -> Any:
    """Return how torch starts workers; a server that forks them has imported torch once."""
    made: Any = multiprocessing.get_context(method)
    if method == "forkserver":
        made.set_forkserver_preload(["torch", "seekable.integrations.torch"])
    return made
