"""Where the time of the five main ways goes: each layer that is put on the floor, and what it adds."""

from __future__ import annotations

import collections
import itertools
import os
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from benchmarks import floors
from benchmarks.data import numbered, parquet_copies
from benchmarks.epochs import text
from benchmarks.measure import Contestant, Row, race, relative
from benchmarks.records import BATCH, spans_of
from benchmarks.streams import is_even

import seekable as sk
from seekable.nodes.columns.decode_column import DECODED
from seekable.stream.lane import LaneIterator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from benchmarks.data import Data

    from seekable.nodes.graph import Plan

    Jobs = dict[str, Callable[[], object]]

_SINGLE = 20_000
_PLANNED = 4096
_WINDOW = 8


def rows(data: Data) -> Iterator[Row]:
    """Measure the layers of opening, of single records, epochs, streams and windows of Parquet."""
    yield from _opening(data)
    yield from _single(data)
    yield from _epoch(data)
    yield from _stream(data)
    yield from _window(data)


def _layers(way: str, jobs: Jobs, *, count: int, data: Data, unit: str = "us a record") -> Iterator[Row]:
    """Yield what each job adds to the one before, in microseconds, and its ratio to the first one."""
    contestants = {name: Contestant(job, count=count, prepare=DECODED.forget) for name, job in jobs.items()}
    times = race(contestants, rounds=data.sizes.rounds)
    first, before = next(iter(jobs)), 0.0
    for name in jobs:
        total = times.median(name) * 1e6
        against = f"up to here {total:.2f}"
        yield relative(
            f"{way}: {name}", total - before, unit, None, against=against, ratio=times.ratio(name, first)
        )
        before = total


def _opening(data: Data) -> Iterator[Row]:
    files, records = data.sizes.opened[-1]
    folder = numbered(data, files=files, rows=records)
    jobs: Jobs = {
        "a stat of each file": lambda: [os.stat(path) for path in _paths(folder)],
        "listing, table, comparison": lambda: sk.open(folder),
        "fingerprint": lambda: sk.open(folder).fingerprint,
    }
    yield from _layers(f"open {files:,} files", jobs, count=files, data=data, unit="us a file")


def _paths(folder: str) -> Iterator[str]:
    for root, _, names in os.walk(folder):
        if not root.endswith(".seekable"):
            yield from (os.path.join(root, name) for name in names)


def _single(data: Data) -> Iterator[Row]:
    ds = sk.open(data.long)
    order = floors.shuffled(len(ds))[:_SINGLE]
    positions, spans = order.tolist(), spans_of(ds, order)
    files, fast, record = ds._node.files, ds._node.decoder.fast, ds._node.record  # type: ignore[attr-defined]
    jobs: Jobs = {
        "slice and decode": partial(floors.decoded_singly, spans),
        "offsets, check of the file": lambda: [None for row in positions if not fast(files.bytes_of(0, row))],
        "position to file and row, read-ahead": lambda: [None for row in positions if not record(row)],
        "ds[i]": lambda: [None for row in positions if not ds[row]],
    }
    yield from _layers("ds[i]", jobs, count=len(positions), data=data)


def _epoch(data: Data) -> Iterator[Row]:
    mixed = _mixed(data)
    count = len(mixed)
    plans = [mixed._node.plan(positions) for positions in _blocks(count)]
    mapped = mixed.map(text)
    loader = sk.Loader(mapped, batch_size=BATCH, collate=list, prefetch=0)
    jobs: Jobs = {
        "slice and decode": partial(floors.decoded_in_batches, spans_of(mixed, np.arange(count)), BATCH),
        "reads by file, back in order": lambda: _read(plans),
        "order and offsets": lambda: _read(mixed._node.plan(positions) for positions in _blocks(count)),
        "map": lambda: _read(mapped._node.plan(positions) for positions in _blocks(count)),
        "loader": partial(_drain, loader),
    }
    yield from _layers("epoch of a loader", jobs, count=count, data=data)


def _stream(data: Data) -> Iterator[Row]:
    count = data.sizes.records // 2
    halves = [sk.open(path).shuffle(seed=seed) for seed, path in enumerate(data.halves)]
    mixed = sk.mix([half.stream() for half in halves], weights=[7, 3], seed=0)
    order = sk.mix(halves, weights=[7, 3], seed=0, stop="never")
    spans = spans_of(order, np.arange(count))
    passed = sum(record["id"] % 2 == 0 for record in floors.decoded(spans))
    whole = mixed.filter(is_even).map(text)
    jobs: Jobs = {
        "slice and decode": partial(floors.decoded_in_batches, spans, BATCH),
        "sources and mixture": lambda: _drain(_items(mixed, count)),
        "filter": lambda: _drain(_items(mixed.filter(is_even), passed)),
        "map": lambda: _drain(_items(whole, passed)),
        "slots": lambda: _drain(itertools.islice(whole, passed)),
    }
    yield from _layers("epoch of a stream", jobs, count=count, data=data)


def _items(stream: sk.Stream, count: int) -> Iterator[object]:
    """Return the first items of the first lane, without slots."""
    return itertools.islice(LaneIterator(stream.stage, 0).items, count)


def _window(data: Data) -> Iterator[Row]:
    import pyarrow.parquet as pq

    path = parquet_copies(data)["large groups, snappy"]
    half = len(sk.open(path)) // 2
    in_order = sk.open(path, decode="arrow").take(half)
    windowed, dicts = (each.shuffle(seed=1, window=_WINDOW) for each in (in_order, sk.open(path).take(half)))
    jobs: Jobs = {
        "iter_batches": lambda: _drain(pq.ParquetFile(path).iter_batches(row_groups=[0])),
        "in order": lambda: _drain(in_order.batches("arrow", size=BATCH)),
        "window": lambda: _drain(windowed.batches("arrow", size=BATCH)),
        "dicts": lambda: _drain(dicts.batches("python", size=BATCH)),
    }
    yield from _layers("Parquet, windowed", jobs, count=half, data=data)


def _mixed(data: Data) -> sk.Dataset:
    halves = [sk.open(path).shuffle(seed=seed) for seed, path in enumerate(data.halves)]
    return sk.mix(halves, weights=[7, 3], seed=0)


def _blocks(count: int) -> Sequence[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    return np.split(np.arange(count), range(_PLANNED, count, _PLANNED))


def _read(plans: Iterable[Plan]) -> None:
    """Read plans in batches, keeping only one."""
    for plan in plans:
        for first in range(0, len(plan), BATCH):
            plan.slice(first, min(first + BATCH, len(plan))).read()


def _drain(items: Iterable[object]) -> None:
    collections.deque(items, maxlen=0)
