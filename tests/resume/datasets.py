"""Random pipelines over the same sources, and the law of going on by rows, told by what is delivered alone.

A record is a string: the source's letter and the row. Sources only grow.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

Sizes = dict[str, int]


def same(record: Any) -> Any:
    return record


def source(name: str, size: int) -> sk.Dataset:
    return sk.from_sequence([f"{name}{row}" for row in range(size)], version=name)


def ordered(dataset: sk.Dataset, random: Random) -> sk.Dataset:
    """Put an order node on top, or none, and maybe a function below or above it."""
    seed, lanes = random.randint(0, 9), random.choice([1, 2, 3, 5])
    if random.random() < 0.3:
        dataset = dataset.map(same)
    kind = random.choice(["natural", "shuffle", "windowed", "interleave", "halves"])
    if kind == "shuffle":
        dataset = dataset.shuffle(seed)
    elif kind == "windowed":
        dataset = dataset.shuffle(seed, window=1, lanes=lanes)
    elif kind == "interleave":
        dataset = dataset.interleave(lanes=lanes)
    elif kind == "halves":
        half = len(dataset) // 2
        dataset = sk.concat([dataset[half:].shuffle(seed), dataset[:half]])
    return dataset.map(same) if random.random() < 0.3 else dataset


def mixed(parts: dict[str, sk.Dataset], random: Random) -> sk.Dataset:
    weights = {name: random.choice([0.5, 1, 2, 3]) for name in parts}
    endless = any(part._node.size is None for part in parts.values())
    stop: Any = "never" if endless else random.choice(["first", "all", "never"])
    if endless or random.random() < 0.2:
        later = {name: random.choice([0.5, 1, 2, 3]) for name in parts}
        schedule = [(0, weights), (random.randint(1, 60), later)]
        return sk.mix(parts, weights=schedule, seed=random.randint(0, 9))
    return sk.mix(parts, weights=weights, seed=random.randint(0, 9), stop=stop)


def pipeline(sizes: Sizes, random: Random) -> sk.Dataset:
    """Return a pipeline over the sources: each in some order, mixed if there are several."""
    parts = {name: ordered(source(name, size), random) for name, size in sizes.items()}
    names = list(parts)
    if len(names) == 3 and random.random() < 0.7:
        inner = mixed({name: parts[name] for name in names[:2]}, random)
        dataset = mixed({"inner": inner, names[2]: parts[names[2]]}, random)
    elif len(names) > 1:
        dataset = mixed(parts, random)
    else:
        (dataset,) = parts.values()
        dataset = dataset.repeat(random.choice([1, 1, 2]))
    if random.random() < 0.15:
        dataset = dataset.batch(random.choice([1, 2, 3]))
    return dataset.map(same) if random.random() < 0.3 else dataset


def natural(sizes: Sizes) -> sk.Dataset:
    """Return a pipeline in which every source comes in natural order, for ever."""
    parts = {name: source(name, size) for name, size in sizes.items()}
    return sk.mix(parts, weights=dict.fromkeys(parts, 1), seed=0, stop="never")


def rows_in(batch: Any) -> Iterator[str]:
    if isinstance(batch, str):
        yield batch
    else:
        for part in batch:
            yield from rows_in(part)


def through_json(state: Any) -> Any:
    return json.loads(json.dumps(state))


class Batches:
    """The batches of a loader, over the ends of runs."""

    def __init__(self, loader: sk.Loader) -> None:
        self.loader = loader
        self._run = iter(loader)

    def next(self, count: int) -> list[Any]:
        batches: list[Any] = []
        empty = 0
        while len(batches) < count:
            try:
                batches.append(next(self._run))
                empty = 0
            except StopIteration:
                self._run = iter(self.loader)
                empty += 1
                assert empty < 3, "runs without batches"
        return batches


@dataclass
class Delivered:
    """What came of each source, phase by phase, and how many rows the source had then."""

    ignored: Callable[[str], bool] = lambda _: False
    """Tells rows that need not come."""
    phases: list[tuple[Sizes, dict[str, list[str]]]] = field(default_factory=list)

    def add(self, sizes: Sizes, batches: list[Any]) -> None:
        rows: dict[str, list[str]] = {name: [] for name in sizes}
        for row in rows_in(batches):
            rows[row[0]].append(row)
        self.phases.append((dict(sizes), rows))

    def check(self) -> None:
        """Check the law; in the last phase every source must have come in natural order, and whole epochs.

        Of the rows that a source had in the same phases, each came equally often: up to where its natural
        order began, and so for ever.
        """
        sizes, last = self.phases[-1]
        for name, size in sizes.items():
            before = [row for _, rows in self.phases[:-1] for row in rows.get(name, [])]
            came = last[name]
            classes = sorted({there.get(name, size) for there, _ in self.phases})
            starts = [at for at, row in enumerate(came) if row == f"{name}0" and _is_natural(came[at:], size)]
            assert len(came) > size, f"{name}: the last phase is too short to tell: {came}"
            assert starts, f"{name}: its rest was followed by {came}"
            counts = Counter(before + came[: starts[0]])
            low = 0
            often = None
            for high in classes:
                rows = [row for row in map(f"{name}{{}}".format, range(low, high)) if not self.ignored(row)]
                often_each = {counts[row] for row in rows}
                assert len(often_each) <= 1, f"{name}: rows {low} to {high} came unequally often: {counts}"
                for count in often_each:
                    assert often is None or count <= often
                    often = count
                low = high


def _is_natural(rows: list[str], size: int) -> bool:
    return len(rows) >= size and [int(row[1:]) for row in rows] == [at % size for at in range(len(rows))]
