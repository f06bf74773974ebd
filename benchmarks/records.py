"""Reading records at random places, decoded."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from benchmarks import competitors, floors
from benchmarks import data as benchmark_data
from benchmarks.measure import Contestant, Race, Row, Target, missing, race, relative

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from benchmarks.data import Data
    from benchmarks.floors import Span

BATCH = 256
_MOST = 50_000
"""The number of records of a round: 115 MB, more than any cache but the page cache holds."""


def rows(data: Data) -> Iterator[Row]:
    """Measure batches and single records against the floor and the opponents."""
    ds = sk.open(data.long)
    order = floors.shuffled(len(ds))[:_MOST]
    spans = spans_of(ds, order)
    times = _race(data, ds, order.tolist(), spans)
    forager, lhotse = competitors.forager(os.path.dirname(data.long)), competitors.lhotse(data.long)

    name, target = f"random records, {BATCH} at a time", Target("at most", 1.3)
    yield _row(name, times, "batches", target, over="batches floor", against="map slice + msgspec")
    target = Target("at least", 3.8)
    if forager:
        yield _row(name, times, "batches", target, over="forager", against=forager.name)
    else:
        yield missing(name, _microseconds(times, "batches"), "us", target, peer=competitors.FORAGER)

    name, target = "random records, ds[i]", Target("at most", 1.9)
    yield _row(name, times, "single", target, over="single floor", against="map slice + msgspec")
    target = Target("at least", 2)
    if lhotse:
        yield _row(name, times, "single", target, over="lhotse", against=lhotse.name)
    else:
        yield missing(name, _microseconds(times, "single"), "us", target, peer=competitors.LHOTSE)
    yield from _one_field(data)
    yield from _columns(data)


def _one_field(data: Data) -> Iterator[Row]:
    """Measure one of 20 fields of records against all of them."""
    ds = sk.open(benchmark_data.fields(data, 20))
    order = floors.shuffled(len(ds))[:_MOST].tolist()
    batches = [order[first : first + BATCH] for first in range(0, len(order), BATCH)]
    column = ds.select_columns(["text"])
    jobs = {
        "whole": lambda: [None for batch in batches if not ds[batch]],
        "column": lambda: [None for batch in batches if not column[batch]],
    }
    contestants = {name: Contestant(job, count=len(order)) for name, job in jobs.items()}
    times = race(contestants, rounds=data.sizes.rounds)
    target = Target("at least", 1.6)
    yield _row(
        "one of 20 fields, select_columns", times, "column", target, over="whole", against="all fields"
    )


def _columns(data: Data) -> Iterator[Row]:
    """Measure shuffled batches of columns against those that are collated of dicts."""
    lines, table = benchmark_data.numbers(data)
    files = {
        "JSON lines of six values": (lines, ("numpy", 1.2), ("arrow", 1.0)),
        "JSON lines of 20 texts": (benchmark_data.fields(data, 20), ("numpy", 1.1), ("arrow", 0.85)),
        "CSV of six values": (table, ("numpy", 2.0), ("arrow", 3.0)),
    }
    for what, (path, *forms) in files.items():
        count = min(_MOST, len(sk.open(path)))
        jobs = {form: _epoch_of(sk.open(path, decode=form), count) for form, _ in forms}
        jobs["dicts"] = _epoch_of(sk.open(path), count)
        contestants = {name: Contestant(job, count=count) for name, job in jobs.items()}
        times = race(contestants, rounds=data.sizes.rounds)
        for form, bound in forms:
            target = Target("at least", bound)
            name = f"{what}, batches of columns, {form}"
            yield _row(name, times, form, target, over="dicts", against="dicts, collated")


def _epoch_of(ds: sk.Dataset, count: int) -> Callable[[], object]:
    """Return a function that reads some records, shuffled, through a loader."""
    taken = ds.shuffle(seed=1).take(count)
    return lambda: [None for _ in sk.Loader(taken, batch_size=BATCH, prefetch=0)]


def spans_of(ds: sk.Dataset, positions: np.ndarray[Any, np.dtype[np.int64]]) -> list[Span]:
    """Return where the records at some positions of a dataset lie, in files that are mapped."""
    places = ds._node.plan(positions).locate()
    views = {path: floors.mapped(path) for path in {place.path for place in places}}
    return [(views[place.path], place.offset, place.offset + place.length) for place in places]


def _race(data: Data, ds: sk.Dataset, order: list[int], spans: Sequence[Span]) -> Race:
    batches = [order[first : first + BATCH] for first in range(0, len(order), BATCH)]
    jobs = {
        "batches": lambda: [None for batch in batches if not ds[batch]],
        "batches floor": lambda: floors.decoded_in_batches(spans, BATCH),
        "single": lambda: each(ds, order),
        "single floor": lambda: floors.decoded_singly(spans),
    }
    forager, lhotse = competitors.forager(os.path.dirname(data.long)), competitors.lhotse(data.long)
    if forager:
        samples = forager.open()
        jobs["forager"] = lambda: each(samples, order)
    if lhotse:
        reader = lhotse.open()
        jobs["lhotse"] = lambda: each(reader, order)
    contestants = {name: Contestant(job, count=len(order)) for name, job in jobs.items()}
    return race(contestants, rounds=data.sizes.rounds)


def each(records: Any, order: Sequence[int]) -> None:
    """Read some records one by one."""
    for row in order:
        records[row]


def _microseconds(times: Race, name: str) -> float:
    return times.median(name) * 1e6


def _row(name: str, times: Race, ours: str, target: Target, *, over: str, against: str) -> Row:
    """Return our time over the other's, or how many times faster we are."""
    ratio = times.ratio(ours, over)
    return relative(
        name,
        _microseconds(times, ours),
        "us",
        target,
        against=f"{against} {_microseconds(times, over):.2f}",
        ratio=ratio if target.sense == "at most" else 1 / ratio,
    )
