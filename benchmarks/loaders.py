"""Loaders whose batches are made by two worker processes."""

from __future__ import annotations

import collections
import contextlib
import os
import tempfile
from typing import TYPE_CHECKING

import numpy as np
from benchmarks import bare, formats
from benchmarks.data import beginning
from benchmarks.measure import Contestant, Row, Target, missing, race, relative
from benchmarks.pipelines import BATCH, WORKERS, heavy
from benchmarks.subprocess_peer import Away, Library, Visitor, visiting

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from benchmarks.data import Data
    from benchmarks.measure import Race, Timed
    from numpy.typing import NDArray

TORCH = Library("torch 2.13.0", "benchmarks.opponents.torch")
LITDATA = Library("LitData 0.2.76", "benchmarks.opponents.litdata")
LIBRARIES = {
    "torch": TORCH,
    "grain": formats.LIBRARIES["grain"],
    "streaming": formats.LIBRARIES["streaming"],
    "litdata": LITDATA,
}
_CALLS = {"grain": "mp_prefetch", "streaming": "in a DataLoader", "litdata": "StreamingDataLoader"}
_ROUNDS = 5
_FIVE = Target("at least", 5)


def rows(data: Data, libraries: Mapping[str, Library] = LIBRARIES) -> Iterator[Row]:
    """Measure loaders with workers on records that take long, and on records that do not."""
    source = beginning(data)
    ds = sk.open(source).shuffle(seed=0)
    folder = os.path.join(data.folder, f"formats-{len(ds)}")
    with contextlib.ExitStack() as stack:
        present = {
            key: stack.enter_context(visiting(library, source=source, folder=folder))
            for key, library in libraries.items()
        }
        yield from _heavy(ds, source, present["torch"], rounds=min(data.sizes.rounds, _ROUNDS))
        yield from _light(ds, present, rounds=data.sizes.rounds)


def _heavy(ds: sk.Dataset, source: str, torch: Away, *, rounds: int) -> Iterator[Row]:
    """Measure records that take about 100 microseconds each."""
    name = f"{WORKERS} workers, a map of 100 us"
    with (
        sk.Loader(ds.map(heavy), batch_size=BATCH, workers=WORKERS) as loader,
        tempfile.TemporaryDirectory() as folder,
    ):
        index = os.path.join(folder, "bounds.npy")
        np.save(index, _bounds(ds))
        with bare.started(source, index) as processes:
            contestants: dict[str, Timed] = {
                "ours": Contestant(lambda: _drain(loader), count=len(ds)),
                "bare": Contestant(processes.run, count=len(ds)),
            }
            if torch.absent is None:
                contestants["torch"] = _visitor("torch", torch, len(ds), with_map=True)
            times = race(contestants, rounds=rounds)
    ours, floor = times.median("ours") * 1e6, times.median("bare") * 1e6
    yield relative(
        name,
        ours,
        "us",
        Target("at least", 0.92),
        against=f"{WORKERS} bare processes {floor:.1f}",
        ratio=1 / times.ratio("ours", "bare"),
    )
    yield _compared(name, times, torch, "torch", Target("at least", 1), call="DataLoader")


def _light(ds: sk.Dataset, present: Mapping[str, Away], *, rounds: int) -> Iterator[Row]:
    """Measure records that are only read and decoded."""
    with sk.Loader(ds, batch_size=BATCH, workers=WORKERS) as loader:
        alone = sk.Loader(ds, batch_size=BATCH)
        contestants: dict[str, Timed] = {
            "ours": Contestant(lambda: _drain(loader), count=len(ds)),
            "alone": Contestant(lambda: _drain(alone), count=len(ds)),
        }
        for key, opponent in present.items():
            if opponent.absent is None:
                contestants[key] = _visitor(key, opponent, len(ds), with_map=False)
        times = race(contestants, rounds=rounds)
    name = f"{WORKERS} workers, JSON alone"
    yield relative(
        name,
        times.median("ours") * 1e6,
        "us",
        Target("at least", 1.2),
        against=f"workers=0 {times.median('alone') * 1e6:.2f}",
        ratio=1 / times.ratio("ours", "alone"),
    )
    yield _compared(name, times, present["torch"], "torch", Target("at least", 1.5), call="DataLoader")
    for key, call in _CALLS.items():
        yield _compared(name, times, present[key], key, _FIVE, call=call)


def _visitor(key: str, opponent: Away, count: int, *, with_map: bool) -> Visitor:
    # Grain starts its workers anew for each epoch.
    return Visitor(opponent, "loaded", count, {"with_map": with_map, "warm": key != "grain"})


def _compared(name: str, times: Race, opponent: Away, key: str, target: Target, *, call: str) -> Row:
    ours = times.median("ours") * 1e6
    if opponent.absent is not None:
        return missing(name, ours, "us", target, peer=opponent.name, why=opponent.absent)
    against = f"{opponent.name} {call} {times.median(key) * 1e6:.2f}"
    return relative(name, ours, "us", target, against=against, ratio=1 / times.ratio("ours", key))


def _bounds(ds: sk.Dataset) -> NDArray[np.int64]:
    """Return where the records of a dataset over one file begin and end, in its order."""
    places = ds._node.plan(np.arange(len(ds))).locate()
    return np.array([(place.offset, place.offset + place.length) for place in places])


def _drain(loader: sk.Loader) -> None:
    collections.deque(loader, maxlen=0)
