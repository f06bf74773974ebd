"""For every class of stage, streams that it is the last stage of: ``build(n, lanes)``."""

from __future__ import annotations

import functools
import gzip
import io
import json
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from tests.stream import functions

import seekable as sk
from seekable.formats.lines.line_stream import FromLines
from seekable.stream.batch import BatchItems, Bucket
from seekable.stream.from_dataset import FromDataset
from seekable.stream.iterable import FromIterable
from seekable.stream.map import FilterItems, Flatten, MapItems
from seekable.stream.mix import MixBounded, MixItems
from seekable.stream.overlay import Overlay
from seekable.stream.pack import PackBestFit, PackConcat
from seekable.stream.take import RepeatItems, ShuffleItems, SkipSlots, TakeSlots
from seekable.stream.zip import Chain, ZipItems

EPOCHS = 3

Builder = Callable[[int, int], sk.Stream]


def numbers(n: int, version: str = "numbers") -> sk.Dataset:
    return sk.from_sequence(range(n), version=version)


def flow(n: int, lanes: int, version: str = "numbers") -> sk.Stream:
    """Three epochs of n numbers."""
    return numbers(n, version).stream(lanes=lanes, epochs=EPOCHS)


def texts(n: int, lanes: int) -> sk.Stream:
    return flow(n, lanes).map(functions.document)


def masked(n: int, lanes: int) -> sk.Stream:
    return flow(n, lanes).map(functions.masked)


def noise() -> sk.Dataset:
    return sk.from_sequence(["hum", "hiss", "rain"])


def in_two(n: int, lanes: int) -> list[sk.Stream]:
    """Two sources of unequal lengths."""
    return [flow(n - n // 3, lanes, "a"), numbers(n // 3, "b").stream(lanes=lanes, epochs=2)]


def scheduled(n: int, lanes: int) -> sk.Stream:
    weights = [(0, [0, 1]), (5, [1, 2]), (40, [2, 0])]
    return sk.mix(in_two(n, lanes), weights=weights, seed=8, stop="all")


def bucketed(n: int, lanes: int, **given: Any) -> sk.Stream:
    boundaries = {} if "buckets" in given else {"boundaries": [2, 4.5, 7]}
    return flow(n, lanes).bucket(
        functions.cost, **{"max_cost": 12, "buffer": 9, "seed": 2, **boundaries, **given}
    )


@functools.cache
def folder_of(n: int) -> tempfile.TemporaryDirectory[str]:
    """Five files of n lines in all, the last one empty; as long as the tests run."""
    folder = tempfile.TemporaryDirectory(prefix="seekable-matrix-")
    for number, rows in enumerate([range(n // 7), range(n // 7, n // 2), range(n // 2, n), range(n, n)]):
        text = "".join(f"{json.dumps({'id': row, 'text': 'x' * (row % 7)})}\n" for row in rows)
        Path(folder.name, f"{number}.jsonl").write_text(text, encoding="utf-8")
        Path(folder.name, f"{number}.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    return folder


@functools.cache
def archives_of(n: int) -> tempfile.TemporaryDirectory[str]:
    """Three tar files of n samples in all, the last one without any; as long as the tests run."""
    folder = tempfile.TemporaryDirectory(prefix="seekable-matrix-")
    for number, rows in enumerate([range(n // 3), range(n // 3, n), range(n, n)]):
        with tarfile.open(f"{folder.name}/{number}.tar", "w") as archive:
            for row in rows:
                for field, text in (("json", json.dumps(row)), ("txt", "x" * (row % 7))):
                    member = tarfile.TarInfo(f"{row}.{field}")
                    member.size = len(text)
                    archive.addfile(member, io.BytesIO(text.encode()))
    return folder


def from_archives(n: int, lanes: int) -> sk.Stream:
    ds = sk.open(f"{archives_of(n).name}/*.tar", columns=["json", "txt"]) if n else numbers(0)
    return ds.shuffle(3, window=1).stream(lanes=lanes, epochs=EPOCHS)


def from_files(pattern: str, n: int, lanes: int, **given: Any) -> sk.Stream:
    return sk.open_stream(f"{folder_of(n).name}/{pattern}", lanes=lanes, **given)


def several(n: int, lanes: int, *, stop: Literal["first", "all"]) -> MixItems:
    """Mix four sources of unequal lengths."""
    parts = [flow(n - n * i // 3, lanes, str(i)) for i in range(3)]
    parts.append(flow(n // 2, lanes).shuffle(buffer=3, seed=1))
    mixture = sk.mix(parts, weights=[3, 1, 0, 2], seed=3, stop=stop).stage
    assert isinstance(mixture, MixItems)
    return mixture


BUILDERS: dict[type, list[Builder]] = {
    BatchItems: [lambda n, lanes: flow(n, lanes).batch(4)],
    Bucket: [
        bucketed,
        lambda n, lanes: bucketed(n, lanes, padded=True, max_items=3),
        lambda n, lanes: bucketed(n, lanes, quadratic=10, max_cost=5),
    ],
    Chain: [lambda n, lanes: sk.concat([*in_two(n, lanes), flow(n, lanes).filter(functions.likes)])],
    FilterItems: [lambda n, lanes: flow(n, lanes).filter(functions.likes)],
    Flatten: [
        lambda n, lanes: flow(n, lanes).flatten(functions.parts),
        lambda n, lanes: flow(n, lanes).map(functions.lazy_parts).flatten(),
        lambda n, lanes: flow(n, lanes).batch(3).flatten().shuffle(buffer=5, seed=1).flatten(functions.parts),
    ],
    FromDataset: [
        flow,
        lambda n, lanes: numbers(n).shuffle(seed=5).stream(lanes=lanes, epochs=EPOCHS),
        lambda n, lanes: numbers(n).stream(lanes=lanes, epochs=EPOCHS, start=n // 2),
        lambda n, lanes: numbers(n).shuffle(3).stream(lanes=lanes, epochs=EPOCHS, start=5 * n),
        from_archives,
    ],
    FromIterable: [
        lambda n, lanes: sk.from_iterable(functools.partial(functions.counted, n), lanes=lanes, replay=True),
        lambda n, lanes: sk.from_iterable(functools.partial(functions.Kept, n), lanes=lanes),
    ],
    FromLines: [
        lambda n, lanes: from_files("*.jsonl", n, lanes),
        lambda n, lanes: from_files("*.jsonl.gz", n, lanes, replay=True),
    ],
    MapItems: [
        lambda n, lanes: flow(n, lanes).map(functions.wrapped),
        lambda n, lanes: flow(n, lanes).map(functions.drawn, rng=True, seed=4),
    ],
    MixItems: [
        lambda n, lanes: sk.mix(in_two(n, lanes), weights=[2, 1], seed=3),
        lambda n, lanes: sk.mix(in_two(n, lanes), weights=[1, 1], seed=3, stop="all"),
        lambda n, lanes: sk.mix(
            [*in_two(n, lanes), flow(n, lanes, "c")], weights=[1, 1, 2], seed=3, stop="all"
        ),
        scheduled,
    ],
    MixBounded: [
        lambda n, lanes: sk.Stream(MixBounded(several(n, lanes, stop="first"), 2, 5)),
        lambda n, lanes: sk.Stream(MixBounded(several(n, lanes, stop="all"), 3, 4)),
        lambda n, lanes: sk.mix(in_two(n, lanes), weights=[2, 1], seed=3, stop="all", open=9),
    ],
    Overlay: [
        lambda n, lanes: flow(n, lanes).overlay(noise(), functions.joined, prob=0.4, seed=2),
        lambda n, lanes: flow(n, lanes).overlay(noise(), functions.joined, partners=(1, 3), prob=0.7, seed=2),
        lambda n, lanes: flow(n, lanes).overlay(
            noise(), functions.joined_three, partners="endless", prob=0.7, seed=2
        ),
    ],
    PackBestFit: [
        lambda n, lanes: texts(n, lanes).pack(6, method="best_fit", bins=3),
        lambda n, lanes: masked(n, lanes).pack(
            5, key="ids", align=["mask"], separator=7, method="best_fit", bins=2, long="truncate"
        ),
        lambda n, lanes: masked(n, lanes).pack(
            6, key="ids", align={"mask": 5}, separator=7, method="best_fit", bins=2, end="drop"
        ),
    ],
    PackConcat: [
        lambda n, lanes: texts(n, lanes).pack(6),
        lambda n, lanes: masked(n, lanes).pack(
            5, key="ids", align=["mask"], separator=7, pad=-1, long="drop"
        ),
        lambda n, lanes: masked(n, lanes).pack(
            3, key="ids", align={"mask": 1}, separator=7, long="truncate", end="drop"
        ),
    ],
    RepeatItems: [
        lambda n, lanes: flow(n, lanes).repeat(2),
        lambda n, lanes: (
            flow(n, lanes).map(functions.drawn, rng=True, seed=1).shuffle(buffer=3, seed=1).repeat(2)
        ),
    ],
    ShuffleItems: [
        lambda n, lanes: flow(n, lanes).shuffle(buffer=7, seed=6),
        lambda n, lanes: flow(n, lanes).flatten(functions.parts).shuffle(buffer=7, seed=6),
    ],
    SkipSlots: [lambda n, lanes: flow(n, lanes).skip(n)],
    TakeSlots: [lambda n, lanes: flow(n, lanes).take(2 * n + 1)],
    ZipItems: [lambda n, lanes: sk.zip([*in_two(n, lanes), flow(n, lanes)])],
}

ESTIMATED: Builder = lambda n, lanes: bucketed(n, lanes, buckets=4)  # noqa: E731 - as those above
"""A bucket that has to look at items first, and so refuses to have none."""
