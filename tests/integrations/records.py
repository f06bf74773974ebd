"""The records that all training runs here are given, and the batches that should come."""

from __future__ import annotations

import itertools
from typing import Any

import seekable as sk

SIZE = 37


def dataset_of(*, size: int = SIZE, endless: bool = False) -> sk.Dataset:
    """Return a shuffled dataset of numbers."""
    shuffled = sk.from_sequence(range(size)).shuffle(seed=3)
    return sk.mix([shuffled], weights=[1], seed=1, stop="never") if endless else shuffled


def loader_of(
    *,
    size: int = SIZE,
    endless: bool = False,
    batch_size: int = 4,
    world_size: int = 1,
    rank: int = 0,
    **rest: Any,
) -> sk.Loader:
    """Return a loader of a rank; a batch is that of all ranks together."""
    dataset = dataset_of(size=size, endless=endless)
    return sk.Loader(dataset, global_batch_size=batch_size, rank=rank, world_size=world_size, **rest)


def expected(count: int, **arguments: Any) -> list[list[int]]:
    """Return the first batches, run after run, of the loader with these arguments."""
    loader = loader_of(**{**arguments, "prefetch": 0, "workers": 0})
    runs = itertools.chain.from_iterable(iter(loader) for _ in itertools.count())
    return [batch.tolist() for batch in itertools.islice(runs, count)]
