"""Streams: items whose order depends on their content, restored with their buffered items, and packed."""

from __future__ import annotations

import collections
import itertools
import json
import os
import tempfile
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks import competitors, floors
from benchmarks.epochs import text
from benchmarks.measure import Contestant, Row, Target, absolute, missing, race, relative
from benchmarks.records import BATCH, spans_of

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.data import Data
    from numpy.typing import NDArray

_LENGTH = 2048
_WAITING = 10_000
_MANY, _FEW = 50_000, 10_000
_LHOTSE_RECORDS = 20_000
_STATES = 20


def rows(data: Data) -> Iterator[Row]:
    """Measure a graph against the floor and Lhotse, many sources, restoring, and packing."""
    yield from _graph(data)
    yield from _sources(data)
    yield from _restore(data)
    yield from _packing(data)


def is_even(record: dict[str, Any]) -> bool:
    """Return True for half of the records."""
    return bool(record["id"] % 2 == 0)


def _mixed(paths: Sequence[str]) -> sk.Stream:
    parts = [sk.open(path).shuffle(seed=seed).stream() for seed, path in enumerate(paths)]
    return sk.mix(parts, weights=[7, 3] if len(parts) == 2 else [1] * len(parts), seed=0)


def _graph(data: Data) -> Iterator[Row]:
    """Measure two shuffled sources, mixed, of which half passes a filter, mapped; by record read."""
    count = data.sizes.records
    stream = _mixed(data.halves).filter(is_even).map(text)
    halves = [sk.open(path).shuffle(seed=seed) for seed, path in enumerate(data.halves)]
    order = sk.mix(halves, weights=[7, 3], seed=0, stop="never")
    spans = spans_of(order, np.arange(count))
    contestants = {
        "ours": Contestant(lambda: _take(stream, count // 2), count=count),
        "floor": Contestant(lambda: floors.decoded_in_batches(spans, BATCH), count=count),
    }
    lhotse = competitors.lhotse(data.long)
    if lhotse:
        few = min(_LHOTSE_RECORDS, count // 2)
        lhotse.graph(data.halves, is_even, text)
        contestants["lhotse"] = Contestant(
            lambda: _drain(itertools.islice(lhotse.graph(data.halves, is_even, text), few // 2)), count=few
        )
    times = race(contestants, rounds=data.sizes.rounds)
    name, ours = "stream: 2 sources shuffled, mixed, filtered (half), mapped", times.median("ours") * 1e6
    against = f"map slice + msgspec {times.median('floor') * 1e6:.2f}"
    ratio = times.ratio("ours", "floor")
    yield relative(name, ours, "us", Target("at most", 1.5), against=against, ratio=ratio)
    target = Target("at least", 11)
    if lhotse:
        against = f"{lhotse.name}, the same graph {times.median('lhotse') * 1e6:.2f}"
        yield relative(name, ours, "us", target, against=against, ratio=1 / times.ratio("ours", "lhotse"))
    else:
        yield missing(name, ours, "us", target, peer=competitors.LHOTSE)


def _sources(data: Data) -> Iterator[Row]:
    count = data.sizes.records // 2
    few, many = _mixed(data.halves), _mixed(data.small)
    times = race(
        {
            "few": Contestant(lambda: _take(few, count), count=count),
            "many": Contestant(lambda: _take(many, count), count=count),
        },
        rounds=data.sizes.rounds,
    )
    yield relative(
        f"stream: {len(data.small)} sources, each a file",
        times.median("many") * 1e6,
        "us",
        Target("at most", 1.4),
        against=f"2 sources {times.median('few') * 1e6:.2f}",
        ratio=times.ratio("many", "few"),
    )


def _restore(data: Data) -> Iterator[Row]:
    """Measure from a state to the first item, with items that wait, at several positions and graphs."""
    waiting = min(_WAITING, data.sizes.records // 4)
    plain = _mixed(data.halves).shuffle(buffer=waiting, seed=1)
    graph = _mixed(data.halves).filter(is_even).map(words).shuffle(buffer=waiting, seed=1).pack(_LENGTH)
    trials = {
        f"after {waiting:,}": _Restart(plain, 1),
        f"after {3 * waiting:,}": _Restart(plain, 2 * waiting),
        "with filter and pack": _Restart(graph, waiting // 10),
    }
    contestants = {name: Contestant(trial.run) for name, trial in trials.items()}
    times = race(contestants, rounds=data.sizes.rounds)
    medians = {name: times.median(name) * 1e3 for name in trials}
    slowest = max(medians, key=medians.__getitem__)
    yield absolute(
        f"stream: from a state with {waiting:,} waiting items to the first item",
        medians[slowest],
        "ms",
        Target("at most", 15),
        against=", ".join(f"{name} {median:.1f}" for name, median in medians.items()),
    )
    iterator = iter(plain)
    collections.deque(itertools.islice(iterator, waiting), maxlen=0)
    states = race({"state": Contestant(iterator.state_dict)}, rounds=_STATES)
    yield absolute(
        f"stream: state_dict with {waiting:,} waiting items",
        states.median("state") * 1e3,
        "ms",
        Target("at most", 1),
        against=f"{len(json.dumps(iterator.state_dict())) / waiting:.0f} bytes an item",
    )


class _Restart:
    """A stream and a state of it, as it comes out of a file."""

    def __init__(self, stream: sk.Stream, items: int) -> None:
        iterator = iter(stream)
        collections.deque(itertools.islice(iterator, items), maxlen=0)
        self._stream, self._state = stream, json.loads(json.dumps(iterator.state_dict()))

    def run(self) -> None:
        """Load the state, and read the first item after it."""
        iterator = iter(self._stream)
        iterator.load_state_dict(self._state)
        next(iterator)


def words(record: dict[str, Any]) -> NDArray[np.int64]:
    """Return numbers for a record's text, which stand for its tokens."""
    data = record["text"].encode()
    return np.frombuffer(data[: len(data) // 4 * 4], dtype="<u4").astype(np.int64)


def _packing(data: Data) -> Iterator[Row]:
    """Measure sequences of documents of about 600 tokens, as arrays and as JSON."""
    random = np.random.default_rng(0)
    # Log-normal with sigma 1.0 has a mean of exp(0.5) times its median.
    sizes = np.maximum(1, random.lognormal(np.log(600 / np.exp(0.5)), 1.0, _MANY)).astype(np.int64)
    arrays = np.split(random.integers(0, 50_000, int(sizes.sum()), dtype=np.int32), np.cumsum(sizes)[:-1])
    documents = sk.from_sequence(arrays, version="1")
    concat, best = documents.stream().pack(_LENGTH), documents.stream().pack(_LENGTH, method="best_fit")
    sequences = int(sizes.sum()) // _LENGTH // 2
    contestants = {
        "concat": Contestant(lambda: _take(concat, sequences)),
        "best_fit": Contestant(lambda: _take(best, sequences)),
    }
    times = race(contestants, rounds=min(5, data.sizes.rounds))
    rates = {name: sequences * _LENGTH / sizes.mean() / times.median(name) * 60 / 1e6 for name in contestants}
    what, unit = f"pack {_LENGTH} of documents of {sizes.mean():.0f} tokens", "million documents a minute"
    target = Target("at least", 4)
    yield absolute(f"{what}, concat", rates["concat"], unit, target, against="one core, from arrays")
    against = f"concat {rates['concat']:.2f}"
    ratio = times.ratio("concat", "best_fit")
    yield relative(f"{what}, best_fit", rates["best_fit"], unit, None, against=against, ratio=ratio)
    yield _packing_json(arrays[:_FEW], rounds=min(5, data.sizes.rounds))
    packed = documents.stream(epochs=1).pack(_LENGTH, method="best_fit")
    wasted = [int((each["segment_ids"] == 0).sum()) for each in packed]
    yield absolute(
        f"pack {_LENGTH}, best_fit with 64 bins, sigma 1.0: padding",
        100 * sum(wasted) / (len(wasted) * _LENGTH),
        "%",
        Target("at most", 0.6),
        against=f"{len(wasted):,} sequences",
    )


def _packing_json(arrays: Sequence[NDArray[np.int32]], *, rounds: int) -> Row:
    """Measure documents that are decoded from JSON lines first."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tokens.jsonl")
        with open(path, "w", encoding="ascii") as file:
            file.writelines(f'{{"ids": {array.tolist()}}}\n' for array in arrays)
        packed = sk.open(path).stream().pack(_LENGTH, key="ids")
        sequences = sum(map(len, arrays)) // _LENGTH
        times = race({"json": Contestant(lambda: _take(packed, sequences))}, rounds=rounds)
    mean = sum(map(len, arrays)) / len(arrays)
    return absolute(
        f"pack {_LENGTH} of documents of {mean:.0f} tokens from JSON, concat",
        sequences * _LENGTH / mean / times.median("json") * 60 / 1e6,
        "million documents a minute",
        Target("at least", 1.3),
        against="one core",
    )


def _take(stream: sk.Stream, count: int) -> None:
    _drain(itertools.islice(iter(stream), count))


def _drain(items: Iterator[object]) -> None:
    collections.deque(items, maxlen=0)
