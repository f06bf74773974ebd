"""Pipelines drawn at random, each with a model of what it is: a list of records for every epoch.

The models know nothing of positions, plans or routes. Of seekable they use the arithmetic of orders alone,
which has tests of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from zlib import crc32

from hypothesis import strategies as st
from tests.order import models

import seekable as sk
from seekable.nodes.map import ItemRandomness
from seekable.order.apportionment import whole_weights
from seekable.order.keys import derive, kind_key
from seekable.order.mixture import epoch_length
from seekable.order.permutation import permute_one

if TYPE_CHECKING:
    import numpy as np

MOST = 150
"""Records of a node that another one is put on; longer ones are cut to it first."""


@dataclass(frozen=True)
class Item:
    """A record and where it came from: a (source, row), or a list or tuple of what its parts came from."""

    record: Any
    place: Any


Epochs = Callable[[int], list[Item]]


@dataclass(frozen=True, repr=False)
class Graph:
    """A dataset and its model."""

    dataset: sk.Dataset
    epochs: Epochs
    steady: bool

    def __repr__(self) -> str:
        return repr(self.dataset)

    def epoch(self, number: int) -> list[Item]:
        return self.epochs(number)

    @property
    def size(self) -> int:
        return len(self.epochs(0))


def graph(dataset: sk.Dataset, epochs: Epochs, *, steady: bool) -> Graph:
    return Graph(dataset, cache(epochs), steady)


def doubled(record: Any) -> Any:
    return (record, record)


def drawn(record: Any, rng: np.random.Generator) -> Any:
    return [record, int(rng.integers(1000))]


def wrapped(records: list[Any]) -> list[Any]:
    return [{"wrapped": record} for record in records]


def source(name: int, n: int) -> Graph:
    dataset = sk.from_sequence([f"{name}-{row}" for row in range(n)], version=name)
    items = [Item(f"{name}-{row}", (name, row)) for row in range(n)]
    return graph(dataset, lambda _: items, steady=True)


def without(below: Graph, name: int, rows: list[int]) -> Graph:
    """Leave rows of a source out, of which one at least is kept."""

    def epochs(number: int) -> list[Item]:
        items = below.epoch(number)
        return [items[row] for row in models.without(rows, len(items), number)]

    listed = [(f"<builtins.list {name}>", row) for row in rows]
    return graph(below.dataset.without(listed), epochs, steady=False)


def shuffle(below: Graph, seed: int) -> Graph:
    def epochs(number: int) -> list[Item]:
        items, key = below.epoch(number), derive(kind_key("shuffle"), seed, number)
        return [items[permute_one(row, len(items), key)] for row in range(len(items))]

    return graph(below.dataset.shuffle(seed=seed), epochs, steady=False)


def fixed_shuffle(below: Graph, seed: int) -> Graph:
    def epochs(number: int) -> list[Item]:
        items, key = below.epoch(number), derive(kind_key("shuffle"), seed, 0)
        return [items[permute_one(row, len(items), key)] for row in range(len(items))]

    return graph(below.dataset.shuffle(seed=seed, fixed=True), epochs, steady=below.steady)


def windowed(below: Graph, seed: int, window: int, lanes: int, *, fixed: bool) -> Graph:
    """Blocks are those that the node itself tells of; tests/dataset/test_blocks.py has them."""
    edges = below.dataset._node.blocks.tolist()

    def epochs(number: int) -> list[Item]:
        key = derive(kind_key("windowed_shuffle"), seed, 0 if fixed else number)
        rows = models.windowed(edges, key=key, window=window, lanes=lanes)
        return [below.epoch(number)[row] for row in rows]

    dataset = below.dataset.shuffle(seed, window=window, lanes=lanes, fixed=fixed)
    return graph(dataset, epochs, steady=fixed and below.steady)


def interleave(below: Graph, lanes: int) -> Graph:
    def epochs(number: int) -> list[Item]:
        items = list(below.epoch(number))
        runs = [[items.pop(0) for _ in range(lane, below.size, lanes)] for lane in range(lanes)]
        return [runs[row % lanes][row // lanes] for row in range(below.size)]

    return graph(below.dataset.interleave(lanes=lanes), epochs, steady=below.steady)


def halves(record: Any) -> list[Any]:
    """Return no, one, two or three items, by the record."""
    return [(record, number) for number in range(crc32(repr(record).encode()) % 4)]


def flatten(below: Graph) -> Graph:
    def epochs(number: int) -> list[Item]:
        items = below.epoch(number)
        return [Item(part, item.place) for item in items for part in halves(item.record)]

    return graph(below.dataset.flatten(halves, jobs=1), epochs, steady=True)


def letters(record: Any) -> str:
    """Return a key that several records have."""
    return f"{crc32(repr(record).encode()) % 5}-of-five"


def sort(below: Graph, *, reverse: bool) -> Graph:
    def epochs(number: int) -> list[Item]:
        return sorted(below.epoch(number), key=lambda item: letters(item.record), reverse=reverse)

    return graph(below.dataset.sort(letters, reverse=reverse, jobs=1), epochs, steady=True)


def cut(below: Graph, dataset: sk.Dataset, rows: slice) -> Graph:
    return graph(dataset, lambda number: below.epoch(number)[rows], steady=below.steady)


def select(below: Graph, rows: list[int]) -> Graph:
    def epochs(number: int) -> list[Item]:
        items = below.epoch(number)
        return [items[row] for row in rows]

    return graph(below.dataset.select(rows), epochs, steady=below.steady)


def repeat(below: Graph, times: int) -> Graph:
    def epochs(number: int) -> list[Item]:
        return [item for i in range(times) for item in below.epoch(number * times + i)]

    return graph(below.dataset.repeat(times), epochs, steady=below.steady)


def view(below: Graph, number: int) -> Graph:
    return graph(below.dataset.epoch(number), lambda _: below.epoch(number), steady=True)


def concat(parts: list[Graph]) -> Graph:
    return graph(
        sk.concat([part.dataset for part in parts]),
        lambda number: [item for part in parts for item in part.epoch(number)],
        steady=all(part.steady for part in parts),
    )


def zipped(parts: list[Graph]) -> Graph:
    def epochs(number: int) -> list[Item]:
        columns = zip(*(part.epoch(number) for part in parts), strict=True)
        return [
            Item(tuple(item.record for item in row), tuple(item.place for item in row)) for row in columns
        ]

    return graph(sk.zip([part.dataset for part in parts]), epochs, steady=all(part.steady for part in parts))


def batch(below: Graph, length: int) -> Graph:
    def epochs(number: int) -> list[Item]:
        items = below.epoch(number)
        lists = [items[at : at + length] for at in range(0, len(items), length)]
        return [Item([item.record for item in part], [item.place for item in part]) for part in lists]

    return graph(below.dataset.batch(length), epochs, steady=below.steady)


def tokens_of(record: Any) -> list[int]:
    """Return no token or up to 6 tokens, by the record."""
    number = crc32(repr(record).encode())
    return [number % 1000 + token for token in range(number % 7)]


def listed(window: dict[str, Any]) -> list[int]:
    return window["tokens"].tolist()  # type: ignore[no-any-return]


def windows(below: Graph, length: int) -> Graph:
    """Cut the tokens of records into windows; each comes from the records that its tokens are of."""

    def epochs(number: int) -> list[Item]:
        tokens = [(token, item.place) for item in below.epoch(number) for token in tokens_of(item.record)]
        ends = [len(tokens_of(item.record)) for item in below.epoch(number)]
        rows = [row for row, count in enumerate(ends) for _ in range(count)]
        made = []
        for at in range(0, len(tokens) - length + 1, length):
            first = [i for i in range(at, at + length) if i == at or rows[i] != rows[i - 1]]
            made.append(Item([token for token, _ in tokens[at : at + length]], [tokens[i][1] for i in first]))
        return made

    dataset = below.dataset.map(tokens_of).windows(length, key=None, jobs=1).map(listed)
    return graph(dataset, epochs, steady=True)


def likes(record: Any) -> bool:
    return crc32(repr(record).encode()) % 3 > 0


def filtered(below: Graph) -> Graph:
    def epochs(number: int) -> list[Item]:
        return [item for item in below.epoch(number) if likes(item.record)]

    return graph(below.dataset.filter(likes, jobs=1), epochs, steady=True)


def mapped(below: Graph) -> Graph:
    def epochs(number: int) -> list[Item]:
        return [Item(doubled(item.record), item.place) for item in below.epoch(number)]

    return graph(below.dataset.map(doubled), epochs, steady=below.steady)


def mapped_batches(below: Graph, size: int) -> Graph:
    def epochs(number: int) -> list[Item]:
        return [Item({"wrapped": item.record}, item.place) for item in below.epoch(number)]

    return graph(below.dataset.map_batches(wrapped, size=size), epochs, steady=below.steady)


def mapped_at_random(below: Graph, seed: int) -> Graph:
    def epochs(number: int) -> list[Item]:
        items, randomness = below.epoch(number), ItemRandomness(seed)
        return [
            Item(drawn(item.record, randomness.rng(number * len(items) + row)), item.place)
            for row, item in enumerate(items)
        ]

    return graph(below.dataset.map(drawn, rng=True, seed=seed), epochs, steady=False)


def mix(parts: list[Graph], weights: list[float], seed: int, stop: Any) -> Graph:
    """Mix with an end, or without one and cut to epochs of 40."""
    whole = whole_weights(weights)
    sizes = [part.size for part in parts]
    dataset = sk.mix([part.dataset for part in parts], weights=weights, seed=seed, stop=stop)
    key, lanes = derive(kind_key("mix"), seed), dataset.lanes
    if stop == "never":
        length, dataset = 40, dataset.take(40)
    else:
        length = epoch_length(whole, sizes, lanes=lanes, longest=stop == "all")

    def routes(number: int) -> list[tuple[int, int]]:
        if stop == "never":  # one mixture without epochs; whole blocks, so that none is cut short
            rows = -(-(number + 1) * length // (models.BLOCK * lanes)) * models.BLOCK * lanes
            routed = models.routed([(0, whole)], key=key, length=rows, lanes=lanes)
            return routed[number * length : (number + 1) * length]
        routed = models.routed([(0, whole)], key=key, length=length, lanes=lanes, epochs=number + 1)
        return routed[number * length :]

    def epochs(number: int) -> list[Item]:
        out = []
        for part, position in routes(number):
            epoch, row = divmod(position, sizes[part])
            out.append(parts[part].epoch(epoch)[row])
        return out

    return graph(dataset, epochs, steady=False)


def split(below: Graph, sizes: list[int], seed: int, part: int) -> Graph:
    """Deal in blocks of 1,000, permuted by one of 256 patterns: how many to whom, a tree of sizes decides."""
    kind = kind_key("split")
    root = models.tree(sizes) if any(sizes) else None

    def epochs(number: int) -> list[Item]:
        kept, items = [], below.epoch(number)
        for block, start in enumerate(range(0, len(items), 1000)):
            some = items[start : start + 1000]
            assert root is not None
            dealt = Counter(models.whose(root, start + row)[0] for row in range(len(some)))
            owners = [source for source in models.sources(root) for _ in range(dealt[source])]
            key = derive(kind, seed, derive(kind, seed, 256, block) % 256)
            kept += [
                item for row, item in enumerate(some) if owners[permute_one(row, len(some), key)] == part
            ]
        return kept

    named: dict[str, float | None] = {str(i): size for i, size in enumerate(sizes)}
    named["0"] = None
    return graph(below.dataset.split(named, seed=seed)[str(part)], epochs, steady=True)


def stable_split(below: Graph, shares: list[float], seed: int, part: int) -> Graph:
    """Deal by shares of a tenth: slots of blocks of 1,000, permuted by one of 256 patterns."""
    first, last = round(1000 * sum(shares[:part])), round(1000 * sum(shares[: part + 1]))
    kind = kind_key("split")

    def epochs(number: int) -> list[Item]:
        kept = []
        for row, item in enumerate(below.epoch(number)):
            block, place = divmod(row, 1000)
            pattern = derive(kind, seed, 256, block) % 256
            if first <= permute_one(place, 1000, derive(kind, seed, pattern)) < last:
                kept.append(item)
        return kept

    named = {str(i): share for i, share in enumerate(shares)}
    parts = below.dataset.split(named, seed=seed, stable=True)
    return graph(parts[str(part)], epochs, steady=True)


@st.composite
def graphs(draw: st.DrawFn, depth: int = 5) -> Graph:
    """Draw a pipeline of up to ``depth`` nodes above its sources."""
    if depth == 0 or draw(st.integers(0, 9)) == 0:
        sizes = st.one_of(st.integers(0, 3), st.integers(1, 90), st.just(1003))
        name, size = draw(st.integers(0, 10**6)), draw(sizes)
        made = source(name, size)
        if size < 2 or draw(st.booleans()):
            return made
        rows = draw(st.sets(st.integers(0, size - 1), min_size=1, max_size=size - 1))
        return without(made, name, sorted(rows))
    below = draw(graphs(depth=depth - 1))
    if below.size > MOST:
        below = cut(below, below.dataset.take(MOST), slice(MOST))
    return draw(st.sampled_from(NODES))(draw, below, depth)


def _cut(draw: st.DrawFn, below: Graph, _: int) -> Graph:
    n = below.size
    bound = st.none() | st.integers(-n - 2, n + 2)
    rows = slice(draw(bound), draw(bound), draw(st.sampled_from([None, 1, 2, 3, -1, -2, n + 1])))
    return cut(below, below.dataset[rows], rows)


def _take(draw: st.DrawFn, below: Graph, _: int) -> Graph:
    n = draw(st.integers(0, below.size + 2))
    return cut(below, below.dataset.take(n), slice(n))


def _skip(draw: st.DrawFn, below: Graph, _: int) -> Graph:
    n = draw(st.integers(0, below.size + 2))
    return cut(below, below.dataset.skip(n), slice(n, None))


def _shard(draw: st.DrawFn, below: Graph, _: int) -> Graph:
    of = draw(st.integers(1, 5))
    i = draw(st.integers(0, of - 1))
    return cut(below, below.dataset.shard(i, of=of), slice(i, None, of))


def _select(draw: st.DrawFn, below: Graph, _: int) -> Graph:
    n = below.size
    return select(below, draw(st.lists(st.integers(-n, n - 1), max_size=25)) if n else [])


def _concat(draw: st.DrawFn, below: Graph, depth: int) -> Graph:
    parts = [below, draw(graphs(depth=min(2, depth - 1))), draw(graphs(depth=0))]
    return concat(draw(st.permutations(parts)))


def _zip(draw: st.DrawFn, below: Graph, _: int) -> Graph:
    other = shuffle(below, draw(st.integers(0, 9)))
    return zipped(draw(st.sampled_from([[below], [below, other], [other, below, below]])))


def _mix(draw: st.DrawFn, below: Graph, depth: int) -> Graph:
    parts = [below, draw(graphs(depth=min(2, depth - 1))), draw(graphs(depth=0))]
    weights = [draw(st.sampled_from([0, 0.5, 1, 1, 3])) if part.size else 0 for part in parts]
    # Lengths that are too unlike make "all" long.
    stop = draw(st.sampled_from(["first", "all", "never"]))
    if not any(weights) or (stop == "all" and max(part.size for part in parts) > MOST):
        return below
    return mix(parts, weights, draw(st.integers(0, 2**64 - 1)), stop)


def _windowed(draw: st.DrawFn, below: Graph, _: int) -> Graph:
    window, lanes, fixed = draw(st.integers(1, 4)), draw(st.sampled_from([1, 2, 3, 5])), draw(st.booleans())
    return windowed(below, draw(st.integers(0, 9)), window, lanes, fixed=fixed)


def _split(draw: st.DrawFn, below: Graph, _: int) -> Graph:
    if not below.steady:
        return below
    seed, part = draw(st.integers(0, 5)), draw(st.integers(0, 2))
    if draw(st.booleans()):
        return stable_split(below, [0.7, 0.2, 0.1], seed, part)
    first, second = sorted(draw(st.tuples(*[st.integers(0, below.size)] * 2)))
    return split(below, [first, second - first, below.size - second], seed, part)


def _windows(draw: st.DrawFn, below: Graph, _: int) -> Graph:
    length = draw(st.integers(1, 9))
    if not below.steady or sum(len(tokens_of(item.record)) for item in below.epoch(0)) < length:
        return below
    return windows(below, length)


NODES: list[Callable[[st.DrawFn, Graph, int], Graph]] = [
    _concat,
    _cut,
    _mix,
    _select,
    _shard,
    _skip,
    _split,
    _take,
    _windowed,
    _windows,
    _zip,
    lambda draw, below, _: sort(below, reverse=draw(st.booleans())) if below.steady else below,
    lambda _, below, __: flatten(below) if below.steady else below,
    lambda draw, below, _: fixed_shuffle(below, draw(st.integers(0, 9))),
    lambda draw, below, _: interleave(below, draw(st.integers(1, 6))),
    lambda draw, below, _: batch(below, draw(st.integers(1, 5))),
    lambda draw, below, _: mapped_at_random(below, draw(st.integers(0, 9))),
    lambda draw, below, _: mapped_batches(below, draw(st.integers(1, 7))),
    lambda draw, below, _: repeat(below, draw(st.integers(1, 3))),
    lambda draw, below, _: shuffle(below, draw(st.integers(0, 2**64 - 1))),
    lambda draw, below, _: view(below, draw(st.integers(0, 3))),
    lambda _, below, __: filtered(below) if below.steady else below,
    lambda _, below, __: mapped(below),
]
