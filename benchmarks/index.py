"""Building an index in a folder that is empty: one process on one core, and what a second one brings."""

from __future__ import annotations

import functools
import os
import shutil
import tempfile
from typing import TYPE_CHECKING

from benchmarks import competitors, floors
from benchmarks.data import large
from benchmarks.measure import Contestant, Race, Row, Target, missing, one_core, race, relative

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.data import Data

_GB = 1e9


def rows(data: Data) -> Iterator[Row]:
    """Measure long lines against the floor and the opponents, short lines against the floor."""
    forager, lhotse = competitors.forager(os.path.dirname(data.long)), competitors.lhotse(data.long)
    others = {"find": _job(data.long, lambda: floors.newlines_by_find(data.long))}
    others["cache"] = _job(data.long, lambda: floors.page_cache(data.long))
    if forager:
        others["forager"] = _job(data.long, forager.build, prepare=forager.forget)
    if lhotse:
        others["lhotse"] = _job(data.long, lhotse.build)
    times = _race(data.long, others, rounds=data.sizes.rounds)
    rate = _rate(times, "ours")
    floor = f"bytes.find {_rate(times, 'find'):.1f} (read alone {_rate(times, 'cache'):.1f})"
    yield _row("index, lines of 2.3 kB", times, Target("at least", 0.75), over="find", against=floor)
    for peer, key, known, bound in (
        (forager, "forager", competitors.FORAGER, 5),
        (lhotse, "lhotse", competitors.LHOTSE, 8),
    ):
        target = Target("at least", bound)
        if peer is None:
            yield missing("index, lines of 2.3 kB", rate, "GB/s", target, peer=known)
            continue
        against = f"{peer.name} {_rate(times, key):.2f}"
        yield _row("index, lines of 2.3 kB", times, target, over=key, against=against)

    others = {"numpy": _job(data.short, lambda: floors.newlines_by_numpy(data.short))}
    times = _race(data.short, others, rounds=data.sizes.rounds)
    floor = f"numpy.flatnonzero {_rate(times, 'numpy'):.1f}"
    yield _row("index, lines of 100 bytes", times, Target("at least", 0.8), over="numpy", against=floor)
    one, many = large(data)
    for name, paths in (("a file", [one]), (f"{len(many)} files", list(many))):
        yield _two_processes(name, paths, rounds=data.sizes.rounds)


def _two_processes(name: str, paths: list[str], *, rounds: int) -> Row:
    """Measure what a second process brings, where there is enough to do for two."""
    size = sum(map(os.path.getsize, paths))
    with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.dirname(paths[0]))) as scratch:
        folder = os.path.join(scratch, "index")
        contestants = {
            jobs: Contestant(
                functools.partial(sk.open, paths, index=sk.Index(folder=folder, jobs=jobs)),
                count=size,
                prepare=functools.partial(shutil.rmtree, folder, ignore_errors=True),
            )
            for jobs in (1, 2)
        }
        times = race({str(jobs): contestant for jobs, contestant in contestants.items()}, rounds=rounds)
    return relative(
        f"index, {name} of {size / _GB:.2g} GB, two processes",
        1 / times.median("2") / _GB,
        "GB/s",
        Target("at least", 1.6),
        against=f"one process {1 / times.median('1') / _GB:.1f}",
        ratio=1 / times.ratio("2", "1"),
    )


def _race(path: str, others: dict[str, Contestant], *, rounds: int) -> Race:
    with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.dirname(path))) as scratch, one_core():
        folder = os.path.join(scratch, "index")
        ours = _job(
            path,
            lambda: sk.open(path, index=sk.Index(folder=folder, jobs=1)),
            prepare=lambda: shutil.rmtree(folder, ignore_errors=True),
        )
        return race({"ours": ours, **others}, rounds=rounds)


def _job(path: str, run: Callable[[], object], *, prepare: Callable[[], object] | None = None) -> Contestant:
    return Contestant(run, count=os.path.getsize(path), prepare=prepare)


def _rate(times: Race, name: str) -> float:
    return 1 / times.median(name) / _GB


def _row(name: str, times: Race, target: Target, *, over: str, against: str) -> Row:
    ratio = 1 / times.ratio("ours", over)
    return relative(name, _rate(times, "ours"), "GB/s", target, against=against, ratio=ratio)
