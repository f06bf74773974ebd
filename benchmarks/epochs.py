"""An epoch of a whole pipeline: shuffled, mixed, mapped, in batches from a Loader."""

from __future__ import annotations

import collections
import functools
import hashlib
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks import competitors, floors
from benchmarks.measure import Contestant, Row, Target, missing, race, relative
from benchmarks.records import BATCH, spans_of

import seekable as sk
from seekable.loader.producers import Prefetched

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from benchmarks.data import Data

_WORK_BYTES = 260_000
"""The bytes that SHA-256 takes some 200 us for."""


def rows(data: Data) -> Iterator[Row]:
    """Measure an epoch of two sources against the floor and Lhotse, then one of many sources against it."""
    yield from _two_sources(data)
    yield from _many_sources(data)


def _two_sources(data: Data) -> Iterator[Row]:
    first, second = (sk.open(path).shuffle(seed=seed) for seed, path in enumerate(data.halves))
    ds = sk.mix([first, second], weights=[0.7, 0.3], seed=0).map(text)
    spans = spans_of(ds, np.arange(len(ds)))
    loader, threaded = _loader(ds, prefetch=0), _loader(ds, prefetch=2)
    work = bytes(_WORK_BYTES)
    contestants = {
        "beside": Contestant(lambda: _beside(threaded, work), count=len(ds)),
        "always": Contestant(lambda: _beside(Prefetched(iter(loader), depth=2), work), count=len(ds)),
        "ours": Contestant(lambda: _drain(loader), count=len(ds)),
        "threaded": Contestant(lambda: _drain(threaded), count=len(ds)),
        "floor": Contestant(lambda: floors.decoded_in_batches(spans, BATCH), count=len(ds)),
    }
    lhotse = competitors.lhotse(data.long)
    if lhotse:
        lhotse.open()
        count = data.sizes.records // 4
        contestants["lhotse"] = Contestant(
            lambda: _drain(itertools.islice(lhotse.shuffled(seed=0), count)), count=count
        )
    times = race(contestants, rounds=data.sizes.rounds)
    name, ours = "epoch, 2 sources shuffled, mixed, mapped", times.median("ours") * 1e6
    against = f"map slice + msgspec {times.median('floor') * 1e6:.2f}"
    ratio = times.ratio("ours", "floor")
    yield relative(name, ours, "us", Target("at most", 1.6), against=against, ratio=ratio)
    made_ahead = times.median("threaded") * 1e6
    ratio = times.ratio("threaded", "floor")
    yield relative(
        f"{name}, prefetch=2", made_ahead, "us", Target("at most", 1.4), against=against, ratio=ratio
    )
    yield relative(
        f"{name}, prefetch=2, some 200 us of work beside each batch",
        times.median("beside") * 1e6,
        "us",
        Target("at most", 1.05),
        against=f"a thread from the first batch on {times.median('always') * 1e6:.2f}",
        ratio=times.ratio("beside", "always"),
    )
    target = Target("at least", 4.5)
    if lhotse:
        against = f"{lhotse.name} shuffled {times.median('lhotse') * 1e6:.2f}"
        ratio = 1 / times.ratio("ours", "lhotse")
        yield relative(name, ours, "us", target, against=against, ratio=ratio)
    else:
        yield missing(name, ours, "us", target, peer=competitors.LHOTSE)


def _many_sources(data: Data) -> Iterator[Row]:
    """Measure what many sources cost: the order alone, as parts of two files, and with a file for each.

    And what many files of one source do, of which most are closed at any time.
    """
    files = [sk.open(path) for path in data.small]
    parts = [part for path in data.halves for part in _parts(sk.open(path), len(files) // 2)]
    loaders = {
        "few": _loader(_mixed([sk.open(path) for path in data.halves]), prefetch=0),
        "parts": _loader(_mixed(parts), prefetch=0),
        "files": _loader(_mixed(files), prefetch=0),
        "folder": _loader(sk.open(list(data.small)).shuffle(seed=0), prefetch=0),
    }
    count = data.sizes.records
    contestants = {
        name: Contestant(functools.partial(_drain, loader), count=count) for name, loader in loaders.items()
    }
    times = race(contestants, rounds=data.sizes.rounds)
    against = f"2 sources {times.median('few') * 1e6:.2f}"
    for name, what, most in (
        ("parts", f"{len(files)} sources, parts of 2 files", 1.5),
        ("files", f"{len(files)} sources, each a file", 1.3),
        ("folder", f"1 source of {len(files)} files, shuffled", 1.5),
    ):
        yield relative(
            f"epoch, {what}",
            times.median(name) * 1e6,
            "us",
            Target("at most", most),
            against=against,
            ratio=times.ratio(name, "few"),
        )


def _parts(ds: sk.Dataset, count: int) -> list[sk.Dataset]:
    bounds = [len(ds) * i // count for i in range(count + 1)]
    return [ds[start:stop] for start, stop in itertools.pairwise(bounds)]


def text(record: dict[str, Any]) -> str:
    """Return the text of a record: what the pipeline maps."""
    found: str = record["text"]
    return found


def _mixed(datasets: Sequence[sk.Dataset]) -> sk.Dataset:
    sources = [ds.shuffle(seed=seed) for seed, ds in enumerate(datasets)]
    return sk.mix(sources, weights=[1] * len(sources), seed=0)


def _loader(ds: sk.Dataset, *, prefetch: int) -> sk.Loader:
    return sk.Loader(ds, batch_size=BATCH, collate=list, prefetch=prefetch)


def _beside(items: Iterable[object], work: bytes) -> None:
    """Take items, and after each of them work without the lock of the interpreter."""
    for _ in items:
        hashlib.sha256(work).digest()


def _drain(items: Iterable[object]) -> None:
    collections.deque(items, maxlen=0)
