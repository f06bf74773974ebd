"""Zephon, over JSON lines as they are: its thread runner, which it recommends."""

from __future__ import annotations

import collections
import hashlib
import importlib
import itertools
import json
import os
import shutil
import tempfile
import time
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

DISTRIBUTION = "zephon"
_WEIGHTS = {"a": 0.7, "b": 0.3}
_LANES, _LENGTH, _BATCH = 4, 2048, 2


def convert(source: str, folder: str) -> None:
    """Copy the files, which it indexes where they lie."""
    shutil.copytree(source, folder)


class Opponent:
    """Pipelines over two folders of JSON lines, mixed as 7 to 3, in four lanes.

    Args:
        folder: a folder for each size of the shards, with folders ``a`` and ``b``.
    """

    def __init__(self, folder: str) -> None:
        importlib.import_module("zephon")
        warnings.simplefilter("ignore")
        self._folder = folder

    def run(self, shards: str, chunk: int | None) -> float:
        """Return the seconds that a run takes, of which the documents are filtered and packed."""
        began = time.perf_counter()
        collections.deque(self._packed(shards, chunk), maxlen=0)
        return time.perf_counter() - began

    def restarts(self, shards: str, chunk: int | None, cuts: Sequence[int]) -> list[dict[str, Any]]:
        """Return for each cut the bytes of the state, the seconds to the next batch, and what was wrong."""
        pipeline = self._packed(shards, chunk)
        batches = iter(pipeline)
        states, wanted, done = [], [], 0
        for cut in cuts:
            collections.deque(itertools.islice(batches, cut - done), maxlen=0)
            states.append(json.dumps(pipeline.checkpoint()))
            wanted.append(_digest(next(batches)))
            done = cut + 1
        return [
            self._restart(shards, chunk, state, digest) for state, digest in zip(states, wanted, strict=True)
        ]

    def _restart(self, shards: str, chunk: int | None, state: str, wanted: str) -> dict[str, Any]:
        pipeline = self._packed(shards, chunk)
        began = time.perf_counter()
        pipeline.restore(json.loads(state))
        try:
            batch = next(iter(pipeline))
        except RuntimeError as error:
            return {"bytes": len(state), "seconds": 0.0, "wrong": str(error)}
        seconds = time.perf_counter() - began
        wrong = None if _digest(batch) == wanted else "another batch comes"
        return {"bytes": len(state), "seconds": seconds, "wrong": wrong}

    def ranks(self, shards: str, chunk: int | None) -> list[int]:
        """Return how many steps, of a batch a lane, two ranks deliver as one does; and how many there are."""
        alone = _steps(self._packed(shards, chunk), _LANES)
        with tempfile.TemporaryDirectory() as folder:
            pair = [self._packed(shards, chunk, rank=rank, folder=folder) for rank in range(2)]
            parts = [_steps(pipeline, _LANES // 2) for pipeline in pair]
        together = [sorted(first + second) for first, second in itertools.zip_longest(*parts, fillvalue=[])]
        steps = list(itertools.zip_longest(map(sorted, alone), together))
        return [sum(one == both for one, both in steps), len(steps)]

    def records(self, shards: str, *, whole: bool) -> float:
        """Return the seconds of a run that only reads; ``whole`` shuffles all, and not each shard alone."""
        began = time.perf_counter()
        pipeline = self._pipeline(shards, 1024, shuffle_block_size="global" if whole else None)
        collections.deque(pipeline.batch(_BATCH * 64), maxlen=0)
        return time.perf_counter() - began

    def _packed(self, shards: str, chunk: int | None, *, rank: int | None = None, folder: str = "") -> Any:
        pipeline = self._pipeline(shards, chunk).map_transform(_kept)
        pipeline = pipeline.pack_flat(_LENGTH, algorithm="wrap", tokens_field="tokens").batch(_BATCH)
        if rank is None:
            return pipeline
        place = {"global_rank": rank, "dp_group_id": rank, "world_size": 2, "dp_degree": 2}
        return pipeline.options(**place, aggregate_dir=folder)

    def _pipeline(self, shards: str, chunk: int | None, **shuffle: Any) -> Any:
        zephon, work = importlib.import_module("zephon"), importlib.import_module("zephon.work")
        dataset = importlib.import_module("zephon.io").Dataset
        source = work.StaticMixtureWorkSource(
            datasets=[dataset.from_path(name, os.path.join(self._folder, shards, name)) for name in _WEIGHTS],
            mixture=work.MixtureSpec(_WEIGHTS),
            seed=0,
            shuffle_within_shard=True,
            **({} if chunk is None else {"chunk_size": chunk}),
            **shuffle,
        )
        return zephon.Pipeline(source).options(runner="threads", canonical_replicas=_LANES)


def _kept(record: dict[str, Any]) -> dict[str, Any] | None:
    return {"tokens": record["tokens"]} if record["keep"] else None


def _digest(batch: Any) -> str:
    return hashlib.sha256(repr([record.payload["tokens"] for record in batch.records]).encode()).hexdigest()


def _steps(pipeline: Any, batches: int) -> list[list[str]]:
    """Return the digests of a run's batches, so many together."""
    digests = list(map(_digest, pipeline))
    return [digests[first : first + batches] for first in range(0, len(digests), batches)]
