"""Records of an object store: epochs, first batches, indexes and several processes, with 30 ms a request.

The floor gets whole objects by obstore, with as many requests at once as ours had, and decodes their lines.
"""

from __future__ import annotations

import os
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.measure import Row, Target, absolute, missing, relative, shown
from benchmarks.pipelines import BATCH
from benchmarks.remote_store import LATENCY, is_there, served
from benchmarks.subprocess_peer import Library, visiting

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from benchmarks.data import Data
    from benchmarks.remote_store import Answer, Store

PEERS = (
    Library("MosaicML Streaming 0.13.0", "benchmarks.opponents.streaming_remote", "streaming"),
    Library("s3fs and HF datasets 5.2.0", "benchmarks.opponents.huggingface_remote", "s3fs"),
)

_WINDOWED = {"seed": 1, "window": 4, "lanes": 8}
_FULL = {"seed": 1}
_MOST_ROUNDS = 3
_FAR = 10**9
_AHEAD_BYTES = 64 << 20
_ROOM = 200e6
"""The bytes of private memory that are allowed beside what is read ahead."""

_MOST_A_SECOND = 1500
"""The records a second beyond which the processor limits single records."""


def rows(data: Data, peers: tuple[Library, ...] = PEERS) -> Iterator[Row]:
    """Measure all of it; nothing where the server is not installed."""
    if not is_there():
        yield missing("windowed epoch of a store", 0, "MB/s", Target("at least", 0.9), peer="nginx")
        return
    with served(data) as store:
        rounds = min(_MOST_ROUNDS, data.sizes.rounds)
        times = _epochs(store, rounds)
        yield from _windowed(store, times)
        yield from _whole(store, times)
        yield _single_records(store, data)
        yield from _first_batch(store, times, rounds)
        yield from _index(store, rounds)
        yield from _nodes(store)
        for library in peers:
            yield from _peer(store, data, library, times)


@dataclass(frozen=True, slots=True)
class _Times:
    """The figures of several jobs, round by round."""

    answers: Mapping[str, list[Answer]]

    def median(self, name: str, figure: str = "seconds") -> float:
        found: float = statistics.median(answer[figure] for answer in self.answers[name])
        return found

    def ratio(self, name: str, over: str, figure: str = "seconds") -> float:
        """Return the median, over the rounds, of one job's figure in that of another."""
        pairs = zip(self.answers[name], self.answers[over], strict=True)
        found: float = statistics.median(ours[figure] / theirs[figure] for ours, theirs in pairs)
        return found


def _in_turn(jobs: Mapping[str, Callable[[int], Answer]], rounds: int) -> _Times:
    """Run jobs in turn for some rounds; each gets the number of the round."""
    names = list(jobs)
    answers: dict[str, list[Answer]] = {name: [] for name in names}
    for turn in range(rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            answers[name].append(jobs[name](turn))
    return _Times(answers)


def _epochs(store: Store, rounds: int) -> _Times:
    """Measure whole epochs, after one that shows how many requests are made at once."""
    paths = list(store.paths)
    at_once = _epoch(store, _WINDOWED)["most"]

    def broken(turn: int) -> Answer:
        with store.faults(turn):
            return _epoch(store, _WINDOWED)

    return _in_turn(
        {
            "plain": lambda _: _download(store, at_once, decode=True),
            "windowed": lambda _: _epoch(store, _WINDOWED),
            "broken": broken,
            "little room": lambda _: _epoch(store, _WINDOWED, cache=store.bytes // 8 + _AHEAD_BYTES),
            "little memory": lambda _: _epoch(store, _WINDOWED, budget=_AHEAD_BYTES),
            "local windowed": lambda _: store.run("epochs", source=paths, shuffle=_WINDOWED),
            "full": lambda _: _epoch(store, _FULL, count=2),
            "local full": lambda _: store.run("epochs", source=paths, shuffle=_FULL, count=2),
        },
        rounds,
    )


def _epoch(store: Store, shuffle: Mapping[str, int], *, cache: int | None = None, **more: int) -> Answer:
    answer = store.run("epochs", source=store.source, shuffle=shuffle, cache=cache, **more, **store.indexed)
    first, *_, last = answer["epochs"][0], answer["epochs"][-1]
    return {**answer, "cpu": first["cpu"], "last": last["seconds"], "last requests": last["requests"]}


def _download(store: Store, at_once: int, *, decode: bool) -> Answer:
    endpoint = store.bucket.options["endpoint"]
    place = {"bucket": store.bucket.name, "endpoint": endpoint}
    return store.run("download", keys=store.keys, at_once=at_once, decode=decode, **place)


def _windowed(store: Store, times: _Times) -> Iterator[Row]:
    at_once = times.answers["plain"][0]["most"]
    floor = f"obstore and msgspec, {at_once} at once"
    name = "windowed epoch of a store"
    yield _rate(store, name, times, "windowed", "plain", 0.75, floor)
    yield _rate(store, f"{name}, 2.5 % of the requests fail or hang", times, "broken", "plain", 0.7, floor)
    limit = f"{name}, a cache of its windows and {_AHEAD_BYTES >> 20} MiB"
    yield _rate(store, limit, times, "little room", "windowed", 0.8, "unlimited")
    planned = _planned(store)
    for figure, unit, most, plan, against in (
        ("gets", "requests", 1.1, planned, f"the plan {planned}"),
        ("sent", "bytes", 1.05, store.bytes, f"the data {store.bytes:,}"),
    ):
        value = times.median("windowed", figure)
        target = Target("at most", most)
        yield relative(f"{name}: {unit}", value, unit, target, against=against, ratio=value / plan)
    more = times.median("windowed", "cpu") - statistics.median(
        answer["epochs"][0]["cpu"] for answer in times.answers["local windowed"]
    )
    figure = 1e3 * more / (store.bytes / 1e6)
    yield absolute(f"{name}: processor time above local files", figure, "ms a MB", Target("at most", 1.2))
    memory = times.median("little memory", "memory") / 1e6
    most_memory = Target("at most", round((_AHEAD_BYTES + _ROOM) / 1e6))
    yield absolute(f"{name}, prefetch_bytes of 64 MiB: private memory", memory, "MB", most_memory)


def _planned(store: Store) -> int:
    dataset = sk.open(list(store.paths), index=sk.Index(folder=os.path.join(store.folder, "local"))).shuffle(
        seed=_WINDOWED["seed"], window=_WINDOWED["window"], lanes=_WINDOWED["lanes"]
    )
    found = sk.simulate(
        dataset, global_batch_size=BATCH, records_per_second=100_000, network={"latency": LATENCY}
    )
    return found.epochs[0].requests


def _whole(store: Store, times: _Times) -> Iterator[Row]:
    at_once = times.answers["plain"][0]["most"]
    name = "full shuffle of a store that the cache holds"
    yield _rate(store, name, times, "full", "plain", 0.5, f"obstore and msgspec, {at_once} at once")
    pairs = [
        (ours["last"], theirs["epochs"][-1]["seconds"])
        for ours, theirs in zip(times.answers["full"], times.answers["local full"], strict=True)
    ]
    own, local = (store.bytes / 1e6 / statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(theirs / ours for ours, theirs in pairs)
    second = f"{name}: second epoch"
    target = Target("at least", 0.8)
    yield relative(second, own, "MB/s", target, against=f"local files {shown(local)}", ratio=ratio)
    requests = times.median("full", "last requests")
    yield absolute(f"{second}, requests", requests, "requests", Target("at most", 0))


def _single_records(store: Store, data: Data) -> Row:
    """Measure a shuffle whose data the cache does not hold, of which each record is a request."""
    steps = max(1, min(16, data.sizes.records // BATCH // 8))
    answer = _epoch(store, _FULL, steps=steps, cache=store.bytes // 16)
    at_once = answer["most"]
    best = min(at_once / LATENCY, _MOST_A_SECOND)
    rate = answer["epochs"][0]["records"] / answer["seconds"]
    return relative(
        "full shuffle of a store, a cache of a sixteenth",
        rate,
        "records/s",
        Target("at least", 0.9),
        against=f"{at_once} at once, of 30 ms, at most {shown(best)}",
        ratio=rate / best,
    )


def _first_batch(store: Store, times: _Times, rounds: int) -> Iterator[Row]:
    def taken(position: int) -> Callable[[int], Answer]:
        run: Any = {
            "source": store.source,
            "shuffle": _WINDOWED,
            "warm": store.source[0],
            "position": position,
        }
        return lambda _: store.run("first_batch", **run, **store.indexed)

    rate = store.bytes / times.median("plain")
    found = _in_turn({"start": taken(0), "far": taken(_FAR)}, rounds)
    took = found.median("start")
    trips = statistics.median(
        (answer["seconds"] - answer["bytes"] / rate) / LATENCY for answer in found.answers["start"]
    )
    name = "from sk.open with an index to the first batch of a store"
    fetched = f"{shown(1e3 * took)} ms, {shown(found.median('start', 'bytes') / 1e6)} MB fetched"
    yield absolute(f"{name}, without its bytes", trips, "round trips", Target("at most", 4), against=fetched)
    yield relative(
        f"{name}, from a state at 10^9",
        1e3 * found.median("far"),
        "ms",
        Target("at most", 1.2),
        against=f"at 0 {shown(1e3 * took)}",
        ratio=found.ratio("far", "start"),
    )
    one: Any = {"source": store.source, "row": -1, "warm": store.source[0]}
    cold = [store.run("one_record", **one, **store.indexed) for _ in range(rounds)]
    took = statistics.median(answer["seconds"] for answer in cold)
    against = f"{shown(1e3 * took)} ms"
    requests = statistics.median(answer["gets"] for answer in cold) - 1  # one of them is the warm-up's
    yield absolute("ds[i] of a store", requests, "requests", Target("at most", 1), against=against)


def _index(store: Store, rounds: int) -> Iterator[Row]:
    def built(turn: int) -> Answer:
        place = store.addressed(_index_folder(store, turn))
        return store.run("index", source=store.source, warm=store.source[0], **place)

    times = _in_turn({"ours": built, "plain": lambda _: _download(store, 16, decode=False)}, rounds)
    name = "index of JSON lines in a store"
    yield _rate(store, name, times, "ours", "plain", 0.8, "obstore, 16 at once")
    again = store.run("index", source=store.source, **store.addressed(_index_folder(store, 0)))
    against = f"{shown(1e3 * again['seconds'])} ms, {again['others']} requests without a body"
    zero = Target("at most", 0)
    yield absolute(f"{name}: opened again, bytes", again["sent"], "bytes", zero, against=against)


def _index_folder(store: Store, number: int) -> str:
    return os.path.join(store.folder, f"index-{number}")


def _nodes(store: Store) -> Iterator[Row]:
    """Measure what several processes fetch together, of one cache and of two."""

    def ranks(count: int, shuffle: Mapping[str, int]) -> list[dict[str, object]]:
        given = {"source": store.source, "shuffle": shuffle, "world_size": count, **store.indexed}
        return [{**given, "rank": rank} for rank in range(count)]

    one = store.run_all("epochs", ranks(4, _FULL))[0]["sent"]
    name = "bytes that four processes of a node fetch, full shuffle"
    yield _share(store, name, one, 1.005)
    two = sum(store.run_all("epochs", [rank])[0]["sent"] for rank in ranks(2, _WINDOWED))
    yield _share(store, "bytes that two nodes fetch, windowed shuffle", two, 1.02)


def _share(store: Store, name: str, sent: int, most: float) -> Row:
    against = f"the data {shown(store.bytes / 1e6)}"
    return relative(
        name, sent / 1e6, "MB", Target("at most", most), against=against, ratio=sent / store.bytes
    )


def _peer(store: Store, data: Data, library: Library, times: _Times) -> Iterator[Row]:
    place = {"endpoint": store.bucket.options["endpoint"], "bucket": store.bucket.name}
    ours = {
        "first batch of a store": store.run(
            "first_batch",
            source=store.source,
            shuffle=_WINDOWED,
            warm=store.source[0],
            position=0,
            **store.indexed,
        )["seconds"],
        "windowed epoch of a store": times.median("windowed"),
    }
    target = Target("at least", 1)
    with visiting(library, source=data.long, folder=store.converted) as peer:
        found = {} if peer.absent else peer.ask("fetched", keys=store.keys, **place)
        for (name, took), figure in zip(ours.items(), ("first", "seconds"), strict=True):
            if peer.absent:
                yield missing(name, took, "s", target, peer=peer.name, why=peer.absent)
                continue
            assert found["records"] == data.sizes.records
            against = f"{peer.name} {shown(found[figure])}"
            yield relative(name, took, "s", target, against=against, ratio=found[figure] / took)


def _rate(store: Store, name: str, times: _Times, ours: str, other: str, least: float, said: str) -> Row:
    own, others = (store.bytes / 1e6 / times.median(job) for job in (ours, other))
    against = f"{said} {shown(others)}"
    target = Target("at least", least)
    return relative(name, own, "MB/s", target, against=against, ratio=times.ratio(other, ours))
