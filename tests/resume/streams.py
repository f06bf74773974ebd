"""Random streams over the sources of tests/resume/datasets.py.

Each pass of a row through its source has a number of its own, so that what is made of one pass is known as
such, in however many parts it comes.
"""

from __future__ import annotations

import itertools
import json
from random import Random
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
from tests.resume.datasets import Batches, mixed, natural, ordered, source

import seekable as sk

if TYPE_CHECKING:
    from tests.resume.datasets import Sizes

_PASS = itertools.count(1)
_NAMES = "abc"


def stamped(record: str) -> tuple[str, int]:
    return record, next(_PASS)


def stamped_each(record: Any) -> Any:
    return stamped(record) if isinstance(record, str) else list(map(stamped_each, record))


def in_parts(stamp: tuple[str, int]) -> list[tuple[str, int, int]]:
    """Make up to three parts of it, the same number each time."""
    return [(*stamp, part) for part in range(1 + crc32(stamp[0].encode()) % 3)]


def as_tokens(stamp: tuple[str, int]) -> Any:
    """Make up to seven equal numbers of it, which tell what it was."""
    row, number = stamp
    code = (number * 1000 + int(row[1:])) * len(_NAMES) + _NAMES.index(row[0])
    return np.full(1 + crc32(row.encode()) % 7, code, dtype=np.int64)


def passes(stamp: Any) -> bool:
    return not dropped(stamp[0])


def dropped(row: str) -> bool:
    return crc32(row.encode()) % 5 == 0


def weight(stamp: Any) -> int:
    return 1 + crc32(stamp[0].encode()) % 4


def stream(sizes: Sizes, random: Random) -> sk.Stream:
    """Return a stream over the sources, whose rows that ``dropped`` tells of may be missing."""
    lanes = random.choice([1, 1, 2, 3])
    parts = {name: ordered(source(name, size), random) for name, size in sizes.items()}
    if len(parts) > 1 and random.random() < 0.5:
        weights: Any = {name: random.choice([0.5, 1, 2, 3]) for name in parts}
        if random.random() < 0.3:
            weights = [(0, weights), (random.randint(1, 30), dict.fromkeys(parts, 1))]
        streams = {name: part.stream(lanes=lanes).map(stamped) for name, part in parts.items()}
        opened = random.choice([None, None, 1, 2]) if isinstance(weights, dict) else None
        made: sk.Stream = sk.mix(streams, weights=weights, seed=3, open=opened)
    else:
        dataset = mixed(parts, random) if len(parts) > 1 else next(iter(parts.values()))
        epochs = (
            random.choice([None, None, 2]) if dataset._node.size is not None and len(parts) == 1 else None
        )
        made = dataset.stream(lanes=lanes, epochs=epochs).map(stamped)
    return stages(made, random)


def stages(made: sk.Stream, random: Random) -> sk.Stream:
    if random.random() < 0.4:
        made = made.filter(passes)
    if random.random() < 0.3:
        made = made.shuffle(buffer=random.randint(1, 12), seed=1)
    kind = random.choice(["plain", "plain", "flatten", "concat", "best_fit", "bucket"])
    if kind == "flatten":
        made = made.flatten(in_parts)
    elif kind in ("concat", "best_fit"):
        made = made.map(as_tokens)
        if kind == "concat":
            made = made.pack(random.randint(3, 9), key=None, method="concat", pad=-1)
        else:
            made = made.pack(random.randint(3, 9), key=None, method="best_fit", bins=4, pad=-1)
    elif kind == "bucket":
        made = made.bucket(weight, max_cost=9, boundaries=[2], buffer=8, seed=2)
    if random.random() < 0.4:
        made = made.shuffle(buffer=random.randint(1, 12), seed=1)
    return made.batch(random.randint(1, 3)) if random.random() < 0.3 else made


def last(sizes: Sizes) -> sk.Stream:
    return natural(sizes).stream(lanes=1).map(stamped)


def resumed(seed: int, state: dict[str, Any]) -> Any:
    """Return what a random stream delivers after a state of another one, and its state then."""
    made = stream({"a": 33, "b": 44}, Random(seed))
    loader = sk.Loader(made, batch_size=3, collate=list, prefetch=0)
    loader.load_state_dict(state, resume="rows")
    return json.loads(json.dumps([bare(Batches(loader).next(12)), loader.state_dict()]))


def stamps_in(items: Any) -> list[tuple[str, int]]:
    """Return the rows and passes of which some part is in what was delivered, in the order of it."""
    found: dict[tuple[str, int], None] = {}
    _collect(items, found)
    return list(found)


def bare(items: Any) -> Any:
    """Return what was delivered without the numbers of passes."""
    if isinstance(items, dict):
        return [_told(code)[0] if code >= 0 else None for code in items["tokens"].tolist()]
    if isinstance(items, tuple) and isinstance(items[0], str):
        return (items[0], *items[2:])
    return [bare(each) for each in items]


def _told(code: int) -> tuple[str, int]:
    rest, name = divmod(code, len(_NAMES))
    number, row = divmod(rest, 1000)
    return f"{_NAMES[name]}{row}", number


def _collect(items: Any, found: dict[tuple[str, int], None]) -> None:
    if isinstance(items, dict):
        found.update(dict.fromkeys(_told(code) for code in items["tokens"].tolist() if code >= 0))
    elif isinstance(items, tuple) and isinstance(items[0], str):
        found[items[0], items[1]] = None
    else:
        for each in items:
            _collect(each, found)
