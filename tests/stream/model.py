"""What a stream must deliver, said once more over lists: lane by lane, nothing lazy, nothing resumed.

Of seekable the models use the arithmetic of keys and orders and the randomness of items, which have tests of
their own, and what a dataset says of one position.
"""

from __future__ import annotations

import gzip
import itertools
import json
from dataclasses import dataclass
from functools import singledispatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tests.order import models
from tests.stream.documents import Unit, sequence, units

from seekable.formats.lines.line_stream import FromLines
from seekable.nodes.graph import HOLE
from seekable.nodes.map import ItemRandomness
from seekable.order.keys import derive, kind_key
from seekable.stream.batch import BatchItems, Bucket, CostLimit
from seekable.stream.from_dataset import FromDataset
from seekable.stream.iterable import FromIterable
from seekable.stream.map import FilterItems, Flatten, MapItems
from seekable.stream.mix import MixBounded, MixItems
from seekable.stream.overlay import Overlay
from seekable.stream.pack import PackBestFit, PackConcat
from seekable.stream.take import RepeatItems, ShuffleItems, SkipSlots, TakeSlots
from seekable.stream.zip import Chain, ZipItems

if TYPE_CHECKING:
    from collections.abc import Sequence

    import seekable as sk

Pairs = list[tuple[Any, Any]]

MOST = 400
"""Items of a lane that are followed."""

ROUNDS = 4
"""Epochs of what has no end that are followed."""

ROUND = 20
"""Rows that a lane is given of a dataset without epochs."""


@dataclass(frozen=True)
class Known:
    """The first items of a lane, each after its token; all of them if it has ended."""

    pairs: Pairs
    ended: bool


class NotKnownError(Exception):
    """A model would have to follow its input further."""


def cut(pairs: Pairs, *, ended: bool) -> Known:
    return Known(pairs[:MOST], ended and len(pairs) <= MOST)


def slots(stream: sk.Stream) -> tuple[Pairs, bool]:
    """Return the first items of a stream in its order, and whether these are all."""
    lanes = [lane_of(stream.stage, lane) for lane in range(stream.lanes)]
    out: Pairs = []
    for turn in itertools.count():
        for known in lanes:
            if turn < len(known.pairs):
                out.append(known.pairs[turn])
            elif not known.ended:
                return out, False
        if all(known.ended and turn >= len(known.pairs) for known in lanes):
            return out, True
    raise AssertionError


def in_lane(count: int, lanes: int, lane: int) -> int:
    return sum(number % lanes == lane for number in range(count))


@singledispatch
def lane_of(stage: Any, lane: int) -> Known:
    """Return what a lane of a stage delivers."""
    message = f"there is no model of {type(stage).__name__}: write one here"
    raise NotImplementedError(message)


@lane_of.register
def _(stage: FromDataset, lane: int) -> Known:
    size, lanes = stage.dataset.size, stage.lanes
    if size is None:
        positions = range(stage.start, stage.start + ROUND * lanes)
        mine = [position for position in positions if position % lanes == lane]
    else:
        epochs = ROUNDS if stage.epochs is None else stage.epochs
        positions = range(stage.start, stage.start + epochs * size)
        mine = [position for position in positions if position % size % lanes == lane]
    records = [(position, stage.dataset.fetch(np.array([position]))[0]) for position in mine[: MOST + 1]]
    found = [(position, record) for position, record in records if record is not HOLE]
    return cut(found, ended=size is not None and stage.epochs is not None)


@lane_of.register
def _(stage: FromIterable, lane: int) -> Known:
    items = list(stage.fn(lane, stage.lanes))
    return cut([((lane, number), item) for number, item in enumerate(items)], ended=True)


@lane_of.register
def _(stage: FromLines, lane: int) -> Known:
    out: Pairs = []
    for number, file in list(enumerate(stage.files))[lane :: stage.lanes]:
        data = Path(file.path).read_bytes()
        text = (gzip.decompress(data) if file.path.endswith(".gz") else data).decode()
        out += [((number, row), json.loads(line)) for row, line in enumerate(text.splitlines())]
    return cut(out, ended=True)


@lane_of.register
def _(stage: MapItems, lane: int) -> Known:
    below = lane_of(stage.source, lane)
    if stage.seed is None:
        return cut([(token, stage.fn(item)) for token, item in below.pairs], ended=below.ended)
    randomness = ItemRandomness(stage.seed)
    out = [(token, stage.fn(item, randomness.rng(token))) for token, item in below.pairs]
    return cut(out, ended=below.ended)


@lane_of.register
def _(stage: FilterItems, lane: int) -> Known:
    below = lane_of(stage.source, lane)
    return cut([(token, item) for token, item in below.pairs if stage.fn(item)], ended=below.ended)


@lane_of.register
def _(stage: Flatten, lane: int) -> Known:
    below = lane_of(stage.source, lane)
    out = [
        ((token, number), part)
        for token, item in below.pairs
        for number, part in enumerate(list(item if stage.fn is None else stage.fn(item)))
    ]
    return cut(out, ended=below.ended)


@lane_of.register
def _(stage: ShuffleItems, lane: int) -> Known:
    below = lane_of(stage.source, lane)
    waiting, coming = below.pairs[: stage.size], below.pairs[stage.size :]
    out: Pairs = []
    while coming or (below.ended and waiting):
        at = derive(kind_key("shuffle-buffer"), stage.seed, lane, len(out)) % len(waiting)
        out.append(waiting[at])
        waiting[at : at + 1] = [coming.pop(0)] if coming else []
    return cut(out, ended=below.ended)


@lane_of.register
def _(stage: Overlay, lane: int) -> Known:
    below, randomness = lane_of(stage.source, lane), ItemRandomness(stage.seed)
    out: Pairs = []
    size = stage.other.size or 0
    for token, item in below.pairs:
        rng = randomness.rng(token)
        if rng.random() >= stage.prob:
            out.append((token, item))
        elif stage.partners is None:
            partner = stage.other.record(int(rng.integers(size)))
            out.append((token, item if partner is HOLE else stage.fn(item, partner, rng)))
        elif stage.partners == "endless":
            other = ItemRandomness(stage.seed).rng(["partners", token])
            records = (stage.other.record(int(other.integers(size))) for _ in itertools.repeat(None))
            out.append((token, stage.fn(item, (record for record in records if record is not HOLE), rng)))
        else:
            rows = rng.integers(size, size=int(rng.integers(stage.partners[0], stage.partners[1] + 1)))
            partners = [stage.other.record(int(row)) for row in rows]
            partners = [partner for partner in partners if partner is not HOLE]
            out.append((token, stage.fn(item, partners, rng) if partners else item))
    return cut(out, ended=below.ended)


@lane_of.register
def _(stage: RepeatItems, lane: int) -> Known:
    below = lane_of(stage.source, lane)
    rounds = ROUNDS if stage.times is None else stage.times
    if rounds and not below.ended:
        return cut([((0, token), item) for token, item in below.pairs], ended=False)
    out = [((number, token), item) for number in range(rounds) for token, item in below.pairs]
    return cut(out, ended=stage.times is not None)


@lane_of.register
def _(stage: TakeSlots, lane: int) -> Known:
    below, mine = lane_of(stage.source, lane), in_lane(stage.count, stage.lanes, lane)
    return cut(below.pairs[:mine], ended=below.ended or len(below.pairs) >= mine)


@lane_of.register
def _(stage: SkipSlots, lane: int) -> Known:
    below = lane_of(stage.source, lane)
    return cut(below.pairs[in_lane(stage.count, stage.lanes, lane) :], ended=below.ended)


@lane_of.register
def _(stage: BatchItems, lane: int) -> Known:
    below = lane_of(stage.source, lane)
    lists = [below.pairs[at : at + stage.size] for at in range(0, len(below.pairs), stage.size)]
    if lists and not below.ended and len(lists[-1]) < stage.size:
        lists.pop()
    return cut([unzipped(pairs) for pairs in lists], ended=below.ended)


def unzipped(pairs: Pairs) -> tuple[Any, list[Any]]:
    return tuple(token for token, _ in pairs), [item for _, item in pairs]


@lane_of.register
def _(stage: Chain, lane: int) -> Known:
    out: Pairs = []
    for number, part in enumerate(stage.parts):
        below = lane_of(part, lane)
        out += [((number, token), item) for token, item in below.pairs]
        if not below.ended:
            return cut(out, ended=False)
    return cut(out, ended=True)


@lane_of.register
def _(stage: ZipItems, lane: int) -> Known:
    parts = [lane_of(part, lane) for part in stage.parts]
    out: Pairs = []
    for turn in itertools.count():
        for known in parts:
            if turn == len(known.pairs):
                return cut(out, ended=known.ended)
        row = [known.pairs[turn] for known in parts]
        out.append((tuple(token for token, _ in row), tuple(item for _, item in row)))
    raise AssertionError


@lane_of.register
def _(stage: MixItems, lane: int) -> Known:
    parts = [lane_of(part, lane) for part in stage.parts]
    given, ended, since = [0] * len(parts), [0] * len(parts), 0
    out: Pairs = []
    while len(out) <= MOST:
        labels = labels_after(stage, lane, ended, since)
        if labels is None:
            return cut(out, ended=True)
        label = labels[len(out) - since]
        known = parts[label]
        if given[label] < len(known.pairs):
            token, item = known.pairs[given[label]]
            given[label] += 1
            out.append(((label, token), item))
        elif not known.ended or stage.stop == "first":
            return cut(out, ended=known.ended)
        else:
            ended[label], since = 1, len(out)
    return cut(out, ended=False)


@lane_of.register
def _(stage: MixBounded, lane: int) -> Known:
    mixture = stage.mixture
    parts = [lane_of(part, lane) for part in mixture.parts]
    given, ended = [0] * len(parts), [0] * len(parts)
    stint = since = 0
    out: Pairs = []

    def next_stint() -> list[int] | None:
        nonlocal stint
        labels = labels_after(mixture, lane, ended, since)
        if labels is None:
            return None
        stint += 1
        return [labels[stint - 1 - since], stage.items_per_turn]

    places = [begun for begun in (next_stint() for _ in range(stage.bound)) if begun is not None]
    while places and len(out) <= MOST:
        place = places[len(out) % len(places)]
        if not place[1]:
            follows = next_stint()
            if follows is None:
                del places[len(out) % len(places)]
                continue
            place[:] = follows
        label = place[0]
        known = parts[label]
        if given[label] < len(known.pairs):
            token, item = known.pairs[given[label]]
            given[label] += 1
            place[1] -= 1
            out.append(((label, token), item))
        elif not known.ended or mixture.stop == "first":
            return cut(out, ended=known.ended)
        else:
            ended[label], since = 1, stint
            for each in places:
                if each[0] == label:
                    each[1] = 0
    return cut(out, ended=not places)


def labels_after(stage: MixItems, lane: int, ended: Sequence[int], since: int) -> list[int] | None:
    """Return whose the draws are from one on, among those that have not ended; None if nobody is left."""
    left = [
        (start, [0 if gone else weight for gone, weight in zip(ended, weights, strict=True)])
        for start, weights in stage.schedule
    ]
    begun = [weights for start, weights in left if start <= since]
    coming = [(start - since, weights) for start, weights in left if start > since]
    laid = [(start, weights) for start, weights in [(0, begun[-1]), *coming] if any(weights)]
    if not laid:
        return None
    return models.lane_labels(
        [(start * stage.lanes if number else 0, weights) for number, (start, weights) in enumerate(laid)],
        key=derive(kind_key("mix"), stage.seed, sum(ended)),
        epoch=0,
        lane=lane,
        lanes=stage.lanes,
        draws=-(-(MOST + 1) // models.BLOCK) * models.BLOCK + max(start for start, _ in laid),
    )


def batch_of(limit: CostLimit, costs: list[float]) -> int:
    """Return how many of some items are the largest batch, by trying each number of them."""
    for count in range(len(costs), 1, -1):
        if spent(limit, costs[:count]) <= limit.cost and count <= (limit.items or count):
            return count
    return 1


def spent(limit: CostLimit, costs: list[float]) -> float:
    each = [cost if limit.quadratic is None else cost + cost * cost / limit.quadratic for cost in costs]
    return max(each, default=0.0) * len(each) if limit.padded else added(each)


def added(costs: list[float]) -> float:
    """Add one after another."""
    total = 0.0
    for cost in costs:
        total += cost
    return total


def bounds(stage: Bucket) -> list[float]:
    """Return where buckets begin: at the costs where a share of all the cost is reached."""
    if stage.given is not None:
        return list(stage.given)
    below = lane_of(stage.source, 0)
    if len(below.pairs) < stage.size and not below.ended:
        raise NotKnownError
    costs = sorted(float(stage.cost(item)) for _, item in below.pairs[: stage.size])
    assert costs, "nothing to estimate from"
    found: list[float] = []
    for number in range(len(costs)):
        if len(found) < stage.buckets - 1 and (
            added(costs[: number + 1]) * stage.buckets >= added(costs) * (len(found) + 1)
        ):
            found.append(costs[number])
    return sorted(set(found))


@lane_of.register
def _(stage: Bucket, lane: int) -> Known:
    below, edges = lane_of(stage.source, lane), bounds(stage)
    coming = [(token, item, float(stage.cost(item))) for token, item in below.pairs]
    waiting: list[list[tuple[Any, Any, float]]] = [[] for _ in range(len(edges) + 1)]
    out: Pairs = []
    for number in itertools.count():
        while coming and sum(map(len, waiting)) < stage.size:
            entry = coming.pop(0)
            waiting[sum(entry[2] >= edge for edge in edges)].append(entry)
        full = sum(map(len, waiting)) == stage.size
        if not any(waiting) or not (full or below.ended):
            return cut(out, ended=below.ended)
        preferred = derive(kind_key("bucket"), stage.seed, number) % len(waiting)
        there = [bucket for bucket, items in enumerate(waiting) if items]
        order = sorted(there, key=lambda bucket: (abs(bucket - preferred), bucket))
        costs = [[cost for _, _, cost in bucket] for bucket in waiting]
        if full:
            ready = [bucket for bucket in order if is_batch(stage.limit, costs[bucket])]
            most = max(added(costs[bucket]) for bucket in order)
            ready += [bucket for bucket in order if added(costs[bucket]) == most]
        else:
            ready = order
        count = batch_of(stage.limit, costs[ready[0]])
        batch, waiting[ready[0]] = waiting[ready[0]][:count], waiting[ready[0]][count:]
        out.append(unzipped([(token, item) for token, item, _ in batch]))
    raise AssertionError


def is_batch(limit: CostLimit, costs: list[float]) -> bool:
    return spent(limit, costs) >= limit.cost or (limit.items is not None and len(costs) >= limit.items)


@lane_of.register
def _(stage: PackConcat, lane: int) -> Known:
    below, length = lane_of(stage.source, lane), stage.options.length
    text = [unit for document in units(stage.options, below.pairs) for unit in document]
    lists = [text[at : at + length] for at in range(0, len(text), length)]
    if lists and len(lists[-1]) < length and not (below.ended and stage.options.end == "pad"):
        lists.pop()
    return cut([sequence(stage.options, below.pairs, each) for each in lists], ended=below.ended)


@lane_of.register
def _(stage: PackBestFit, lane: int) -> Known:
    below, length = lane_of(stage.source, lane), stage.options.length
    bins: list[list[Unit]] = []
    done: list[list[Unit]] = []
    for document in units(stage.options, below.pairs):
        whole = len(document) // length * length
        done += [document[at : at + length] for at in range(0, whole, length)]
        if not (piece := document[whole:]):
            continue
        fitting = [each for each in bins if len(each) + len(piece) <= length]
        if fitting:
            best = max(fitting, key=len)
            best += piece
            if len(best) == length:
                done.append(best)
                bins = [each for each in bins if each is not best]
        else:
            if len(bins) == stage.bins:
                fullest = max(bins, key=len)
                done.append(fullest)
                bins = [each for each in bins if each is not fullest]
            bins.append(piece)
    if below.ended and stage.options.end == "pad":
        done += sorted(bins, key=len, reverse=True)
    return cut([sequence(stage.options, below.pairs, each) for each in done], ended=below.ended)
