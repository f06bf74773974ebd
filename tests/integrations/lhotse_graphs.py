"""Graphs of Lhotse's nodes over datasets and streams, as in Lhotse's own tests of restoring."""

from __future__ import annotations

import copy
import random
from typing import TYPE_CHECKING, Any

from lhotse import CutSet
from lhotse.cut.set import LazyCutMixer
from lhotse.dataset import DynamicBucketingSampler
from lhotse.dataset.iterable_dataset import IdentityDataset, IterableDatasetWrapper
from lhotse.lazy import LazyFlattener, LazyIteratorChain, LazySlicer
from lhotse.testing.dummies import dummy_cut
from lhotse.utils import fastcopy

import seekable as sk
from seekable.integrations.lhotse import cut_set

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["GRAPHS", "READS", "dicts", "ids", "signature", "stopped", "wrapped"]

READS: list[str] = []
"""The ids of the records that were read, in the order of the reads."""


def made(number: int) -> dict[str, Any]:
    cut: dict[str, Any] = dummy_cut(number, duration=1.0 + number % 5).to_dict()
    return cut


def noted(record: dict[str, Any]) -> dict[str, Any]:
    READS.append(record["id"])
    return record


def dicts(first: int = 0, count: int = 32) -> sk.Dataset:
    """Return a dataset of cuts' dicts, each of which notes that it was read."""
    return sk.from_sequence([made(number) for number in range(first, first + count)]).map(noted)


def one() -> CutSet:
    return cut_set(dicts())


def other() -> CutSet:
    return cut_set(dicts(100).shuffle(seed=3))


def is_even(cut: Any) -> bool:
    return int(cut.id.rsplit("-", 1)[1]) % 2 == 0


def resampled(cut: Any) -> Any:
    return cut.resample(24_000)


def twice(cut: Any) -> CutSet:
    return CutSet.from_cuts(fastcopy(cut, id=f"{cut.id}-{side}") for side in ("left", "right"))


def pair(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**record, "id": f"{record['id']}-{side}"} for side in ("left", "right")]


def is_long(record: dict[str, Any]) -> bool:
    seconds: float = record["duration"]
    return seconds > 1


def shuffled(cuts: CutSet) -> CutSet:
    return cuts.shuffle(buffer_size=8, rng=random.Random(17))


def stream() -> CutSet:
    items = dicts().shuffle(seed=1).stream(epochs=2).filter(is_long).flatten(pair).shuffle(buffer=7, seed=2)
    return cut_set(items)


GRAPHS: dict[str, Callable[[], CutSet]] = {
    "in order": one,
    "shuffled": lambda: cut_set(dicts().shuffle(seed=19)),
    "several epochs": lambda: cut_set(dicts().shuffle(seed=19), epochs=3),
    "mixed": lambda: cut_set(sk.mix([dicts().shuffle(seed=1), dicts(100)], weights=[0.3, 0.7], seed=2)),
    "chain": lambda: CutSet(LazyIteratorChain(one().data, other().data)),
    "shuffled chain": lambda: CutSet(LazyIteratorChain(one(), other(), shuffle_iters=True, seed=5)),
    "mux": lambda: CutSet.mux(one(), other(), weights=[0.35, 0.65], seed=17),
    "filter": lambda: one().filter(is_even),
    "map": lambda: other().map(resampled),
    "shuffle": lambda: shuffled(one()),
    "flatten": lambda: CutSet(LazyFlattener(other().map(twice).data)),
    "repeat": lambda: other().repeat(times=2),
    "shuffle over epochs": lambda: shuffled(other().repeat(times=3)),
    "slice": lambda: CutSet(LazySlicer(other().data, k=0, n=3)),
    "mix": lambda: CutSet(
        LazyCutMixer(one(), cut_set(dicts(1000, 10)), mix_prob=1.0, seed=23, preserve_id="left")
    ),
    "stream": stream,
}


def ids(cuts: Iterable[Any]) -> list[str]:
    return [cut.id for cut in cuts]


def signature(batch: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the dicts of the cuts of a batch, without what the sampler notes on them."""
    return [_plain(cut.to_dict()) for cut in batch]


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items() if key not in {"dataloading_info", "custom"}}
    return value


def wrapped(cuts: CutSet) -> IterableDatasetWrapper:
    sampler = DynamicBucketingSampler(cuts, max_cuts=4, shuffle=False, seed=0, duration_bins=[2.5])
    return IterableDatasetWrapper(IdentityDataset(), sampler)


def stopped(loader: Any, count: int) -> tuple[list[Any], dict[str, Any]]:
    """Return the first batches, and the state after them: a copy, because Lhotse changes what it loads."""
    run = iter(loader)
    batches = [signature(next(run)) for _ in range(count)]
    return batches, copy.deepcopy(loader.state_dict())
