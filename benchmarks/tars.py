"""Samples of tar files: indexed, read at random and in order, one field of them, and opened.

Samples are {jpg of 20,000 bytes, json of 200, txt}. "PAX" archives have a header of their own before that of
every member, as webdataset's writer makes them; "ustar" have none.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks import tar_data, tar_floors
from benchmarks.data import numbered
from benchmarks.measure import Contestant, Row, Target, absolute, missing, one_core, race, relative, shown
from benchmarks.opening import opened
from benchmarks.subprocess_peer import Library, Visitor, visiting

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.data import Data
    from benchmarks.measure import Race, Timed

ENERGON = Library("Energon 7.4.1", "benchmarks.opponents.energon")
WEBDATASET, WIDS = "webdataset 1.0.2", "wids 0.1.11"

_BATCH = 256
_MOST_ROUNDS = 5
_SLOW = 500
"""The samples of a round of those that take a tenth of a millisecond for each."""


def rows(data: Data, energon: Library = ENERGON, peer: str = "webdataset") -> Iterator[Row]:
    """Measure all of it."""
    rounds = min(data.sizes.rounds, _MOST_ROUNDS)
    for kind in (tar_data.PAX, tar_data.USTAR):
        yield _indexed(tar_data.small_members(data, kind), kind, rounds)
    yield _index_of_samples(tar_data.shards(data, tar_data.PAX), data, rounds)
    for kind in (tar_data.PAX, tar_data.USTAR):
        yield from _at_random(data, kind, rounds, energon)
        yield _in_order(data, kind, rounds, peer)
    yield from _column(data, rounds)
    yield _many_shards(data, rounds)
    yield _gzip(data, rounds)
    yield _opening(data, rounds)


def _indexed(path: str, kind: tar_data.Kind, rounds: int) -> Row:
    count = tar_floors.by_tarfile(path)
    jobs: dict[str, Callable[[], object]] = {
        "ours": partial(_index, [path]),
        "tarfile": partial(tar_floors.by_tarfile, path),
    }
    with one_core():
        times = race({name: Contestant(job, count=count) for name, job in jobs.items()}, rounds=rounds)
    name = f"index a tar file, members of 1 kB, {kind.name}"
    return faster(name, times, "ours", "tarfile", Target("at least", 8), unit="us a member")


def _index_of_samples(paths: list[str], data: Data, rounds: int) -> Row:
    with one_core():
        job = Contestant(partial(_index, paths), count=data.sizes.samples)
        took = race({"ours": job}, rounds=rounds).median("ours") * 1e6
    return absolute("index samples of three members, PAX", took, "us a sample", Target("at most", 10))


def _index(paths: Sequence[str]) -> None:
    folder = tempfile.mkdtemp()
    try:
        sk.open(list(paths), index=sk.Index(folder=folder, jobs=1))
    finally:
        shutil.rmtree(folder)


def _at_random(data: Data, kind: tar_data.Kind, rounds: int, library: Library) -> Iterator[Row]:
    paths = tar_data.shards(data, kind)
    ds = sk.open(paths, decode="bytes")
    order = np.random.default_rng(1).permutation(len(ds)).tolist()
    slow = order[:_SLOW]
    batches = [order[first : first + _BATCH] for first in range(0, len(order), _BATCH)]
    with contextlib.ExitStack() as stack:
        floor = tar_floors.Archives.of(paths)
        stack.callback(floor.close)
        energon = stack.enter_context(
            visiting(
                library,
                source=os.path.dirname(paths[0]),
                folder=os.path.join(data.folder, "energon", kind.name),
            )
        )
        contestants: dict[str, Timed] = {
            "ours": Contestant(lambda: [None for batch in batches if not ds[batch]], count=len(order)),
            "single": Contestant(lambda: each(ds, order), count=len(order)),
            "floor": Contestant(
                lambda: [None for batch in batches if not floor.raw(batch)], count=len(order)
            ),
        }
        if not energon.absent:
            found = energon.ask("rows", rows=slow)
            wanted = [
                {name: len(value) for name, value in ds[row].items() if name != "__key__"} for row in slow[:5]
            ]
            assert found == wanted
            contestants["energon"] = Visitor(energon, "single", len(slow), {"count": len(slow)})
        if (wids := _wids(paths)) is not None:
            contestants["wids"] = Contestant(lambda: each(wids, order), count=len(order))
        times = race(contestants, rounds=rounds)
    what = f"random samples, raw, {kind.name}"
    at_once, single = f"{what}, {_BATCH} at a time", f"{what}, ds[i]"
    yield over(at_once, times, "ours", "floor", Target("at most", 2), "pread and headers")
    yield over(single, times, "single", "floor", Target("at most", 2.5), "pread and headers")
    for peer, label, target in (
        ("energon", energon.name, Target("at least", 10)),
        ("wids", WIDS, Target("at least", 1)),
    ):
        if peer in contestants:
            yield faster(single, times, "single", peer, target, label=label)
        else:
            yield missing(single, 1e6 * times.median("single"), "us", target, peer=label)


def _in_order(data: Data, kind: tar_data.Kind, rounds: int, peer: str) -> Row:
    paths = tar_data.shards(data, kind)
    ds = sk.open(paths)
    contestants: dict[str, Timed] = {"ours": Contestant(lambda: deque(ds, maxlen=0), count=len(ds))}
    name, target = f"json and txt decoded, in order, {kind.name}", Target("at least", 8)
    try:
        theirs: Any = importlib.import_module(peer)
    except ModuleNotFoundError:
        times = race(contestants, rounds=rounds)
        return missing(name, 1e6 * times.median("ours"), "us", target, peer=WEBDATASET)
    samples = theirs.WebDataset(paths, shardshuffle=False).decode()
    contestants["webdataset"] = Contestant(lambda: deque(samples, maxlen=0), count=len(ds))
    times = race(contestants, rounds=rounds)
    return faster(name, times, "ours", "webdataset", target, label=WEBDATASET)


def _column(data: Data, rounds: int) -> Iterator[Row]:
    paths = tar_data.shards(data, tar_data.PAX)
    ds = sk.open(paths, columns=["json"])
    order = np.random.default_rng(2).permutation(len(ds)).tolist()
    batches = [order[first : first + _BATCH] for first in range(0, len(order), _BATCH)]
    floor = tar_floors.Archives.of(paths)
    jobs: dict[str, Callable[[], object]] = {
        "ours": lambda: [None for batch in batches if not ds[batch]],
        "floor": lambda: [None for batch in batches if not tar_floors.json_column(floor, rows=batch)],
    }
    times = race({name: Contestant(job, count=len(order)) for name, job in jobs.items()}, rounds=rounds)
    floor.close()
    ds.close()
    against = f"pread by the member table {shown(1e6 * times.median('floor'))}"
    took = 1e6 * times.median("ours")
    yield absolute("random samples, columns=['json']", took, "us", Target("at most", 4), against=against)
    figure = _bytes_read(paths, ["json"], order[: len(order) // 10])
    if figure is not None:
        name = "bytes from a cold disk, columns=['json']"
        yield absolute(name, figure, "bytes a sample", Target("at most", 8192))


def _bytes_read(paths: Sequence[str], columns: list[str], order: list[int]) -> float | None:
    """Return the bytes a sample that come from the disk; None where the system does not drop the files.

    A process of its own reads: pages that this one has mapped would stay in memory.
    """
    asked = json.dumps([list(paths), columns, order])
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.tars"],
        input=asked,
        cwd=os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout) or None


def _measured(paths: list[str], columns: list[str], order: list[int]) -> float:
    """Drop files from memory and read some samples of them; return the bytes for each, from the disk."""
    ds = sk.open(paths, columns=columns)
    ds[order[:1]]  # what is imported to read is read before
    ds.close()
    for path in paths:
        file = os.open(path, os.O_RDONLY)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)
    before = _read_by_the_system()
    ds[order]
    return (_read_by_the_system() - before) / len(order)


def _read_by_the_system() -> int:
    with open("/proc/self/io", encoding="ascii") as file:
        figures = dict(line.split(": ") for line in file)
    return int(figures["read_bytes"])


def _many_shards(data: Data, rounds: int) -> Row:
    contestants: dict[str, Timed] = {}
    files = min(1_000, data.sizes.samples)
    for count in (10, files):
        ds = sk.open(tar_data.shards(data, tar_data.PAX, files=count), decode="bytes")
        order = np.random.default_rng(3).permutation(len(ds)).tolist()
        batches = [order[first : first + _BATCH] for first in range(0, len(order), _BATCH)]
        contestants[f"{count}"] = Contestant(partial(_batches, ds, batches), count=len(order))
    times = race(contestants, rounds=rounds)
    name = f"random samples, raw, PAX, {files:,} shards"
    return over(name, times, f"{files}", "10", Target("at most", 1.5), "10 shards")


def _gzip(data: Data, rounds: int) -> Row:
    ds = sk.open(tar_data.compressed(data))
    windowed = ds.shuffle(seed=1, window=4)
    jobs: dict[str, Callable[[], object]] = {
        "windowed": lambda: deque(windowed.batches("python", size=_BATCH), maxlen=0),
        "in order": lambda: deque(ds.batches("python", size=_BATCH), maxlen=0),
    }
    times = race({name: Contestant(job, count=len(ds)) for name, job in jobs.items()}, rounds=min(rounds, 3))
    return over(
        "epoch of a .tar.gz, window=4", times, "windowed", "in order", Target("at most", 1.5), "in order"
    )


def _opening(data: Data, rounds: int) -> Row:
    files = data.sizes.archives
    tars, lines = tar_data.many(data, files=files), numbered(data, files=files, rows=files)
    assert len(sk.open(tars)) == len(sk.open(lines)) == files
    figures = [(opened(tars)["ms"], opened(lines)["ms"]) for _ in range(rounds)]
    ours, others = (statistics.median(column) for column in zip(*figures, strict=True))
    ratio = statistics.median(tar / line for tar, line in figures)
    name = f"open {files:,} tar files with an index"
    return relative(
        name, ours, "ms", Target("at most", 1.2), against=f"JSON lines {shown(others)}", ratio=ratio
    )


def each(records: Any, order: list[int]) -> None:
    for row in order:
        records[row]


def _batches(ds: Any, batches: list[list[int]]) -> None:
    for batch in batches:
        ds[batch]


def _wids(paths: Sequence[str]) -> Any:
    """Return the samples of wids, all shards open, or None if it is not installed."""
    try:
        wids: Any = importlib.import_module("wids")
    except ModuleNotFoundError:
        return None
    counts = [len(sk.open(path)) for path in paths]
    spec = [{"url": path, "nsamples": count} for path, count in zip(paths, counts, strict=True)]
    with open(os.devnull, "w", encoding="utf-8") as quiet, contextlib.redirect_stderr(quiet):
        return wids.ShardListDataset(
            spec, lru_size=len(paths), localname=lambda url: url, transformations=[], keep=True
        )


def over(name: str, times: Race, ours: str, other: str, target: Target, said: str) -> Row:
    against = f"{said} {shown(1e6 * times.median(other))}"
    figure = 1e6 * times.median(ours)
    return relative(name, figure, "us", target, against=against, ratio=times.ratio(ours, other))


def faster(
    name: str,
    times: Race,
    ours: str,
    other: str,
    target: Target | None,
    *,
    label: str | None = None,
    unit: str = "us",
) -> Row:
    against = f"{label or other} {shown(1e6 * times.median(other))}"
    figure = 1e6 * times.median(ours)
    return relative(name, figure, unit, target, against=against, ratio=times.ratio(other, ours))


if __name__ == "__main__":
    print(_measured(*json.load(sys.stdin)))
