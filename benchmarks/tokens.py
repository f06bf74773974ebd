"""Tokens: fixed windows, packed samples and their plans, against floors, Megatron-core and LitData.

The documents are log-normal (median 403 tokens), uint16, in a pair of files of Megatron. Samples have 2,048
tokens. Megatron delivers packed samples of an order that it built before; LitData delivers fixed blocks.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

import numpy as np
from benchmarks.measure import Contestant, Row, Target, absolute, missing, one_core, race, relative, shown
from benchmarks.subprocess_peer import Library, Visitor, visiting

import seekable as sk
from seekable.order.packing.length_order import length_order
from seekable.order.packing.patterns import best_fit_patterns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.data import Data
    from benchmarks.measure import Race, Timed
    from numpy.typing import NDArray

    from seekable._typing import Int64s

MEGATRON = Library("Megatron-core 0.16.1", "benchmarks.opponents.megatron_core", "megatron-core")
LITDATA = Library("LitData 0.2.76", "benchmarks.opponents.litdata_tokens", "litdata")

LENGTH = 2048
_BATCH, _PLANNED = 256, 4096
_MOST_ROUNDS = 7
_SLOW = 1000
"""The samples of a round of those that take ten microseconds and more for each."""


def rows(data: Data, libraries: tuple[Library, Library] = (MEGATRON, LITDATA)) -> Iterator[Row]:
    """Measure all of it."""
    rounds = min(data.sizes.rounds, _MOST_ROUNDS)
    prefix = _corpus(data)
    with one_core():
        yield from _windows(prefix, rounds)
        yield _plan(prefix, rounds)
        yield _order_of_lengths(prefix, rounds)
        yield from _best_fit(rounds)
    yield from _packed(data, prefix, rounds, libraries)


def _corpus(data: Data) -> str:
    """Return the prefix of a pair of files, written now unless it is there."""
    count = data.sizes.records * 3 // 4
    folder = os.path.join(data.folder, f"tokens-{count}")
    prefix = os.path.join(folder, "corpus")
    if os.path.exists(folder):
        return prefix
    rng = np.random.default_rng(0)
    lengths = np.minimum(rng.lognormal(6, 1, count).astype(np.int64) + 1, 200_000)
    new = f"{folder}.new"
    os.makedirs(new, exist_ok=True)
    tokens = rng.integers(1, 50_000, int(lengths.sum()), dtype=np.uint16)
    tokens[np.cumsum(lengths) - 1] = 0
    tokens.tofile(os.path.join(new, "corpus.bin"))
    counts = np.array([count, count + 1], "<u8").tobytes()
    with open(os.path.join(new, "corpus.idx"), "wb") as file:
        file.write(b"MMIDIDX\x00\x00" + np.array([1], "<u8").tobytes() + b"\x08" + counts)
        file.write(lengths.astype("<i4").tobytes())
        file.write((2 * (np.cumsum(lengths) - lengths)).astype("<i8").tobytes())
        file.write(np.arange(count + 1, dtype="<i8").tobytes())
    os.rename(new, folder)
    return prefix


def _windows(prefix: str, rounds: int) -> Iterator[Row]:
    windows = sk.open(f"megatron:{prefix}").windows(LENGTH).shuffle(seed=1)
    tokens = np.memmap(f"{prefix}.bin", dtype=np.uint16, mode="r")
    starts = np.random.default_rng(1).permutation(len(windows)) * LENGTH

    def floor() -> None:
        flat = np.asarray(tokens)
        for first in range(0, len(starts), _BATCH):
            some = starts[first : first + _BATCH].tolist()
            batch = np.empty((len(some), LENGTH), np.uint16)
            for row, start in enumerate(some):
                batch[row] = flat[start : start + LENGTH]

    contestants: dict[str, Timed] = {
        "ours": Contestant(lambda: _batches(windows), count=len(windows)),
        "floor": Contestant(floor, count=len(windows)),
    }
    times = race(contestants, rounds=rounds)
    name = f"random windows of {LENGTH:,} tokens, {_BATCH} at a time"
    figure, against = 1e6 * times.median("ours"), f"slices of a map {shown(1e6 * times.median('floor'))}"
    ratio = times.ratio("ours", "floor")
    yield relative(name, figure, "us", Target("at most", 1.2), against=against, ratio=ratio)
    yield absolute(f"{name}: time", figure, "us", Target("at most", 2))


def _batches(ds: sk.Dataset) -> None:
    for _ in sk.Loader(ds, batch_size=_BATCH, prefetch=0, steps=-(-len(ds) // _BATCH)):
        pass


def _plan(prefix: str, rounds: int) -> Row:
    packed = sk.open(f"megatron:{prefix}").pack(LENGTH, seed=7, order="exchange")
    packing = packed.node.packing  # type: ignore[attr-defined]  # a packed dataset's node has it
    rows = np.arange(min(_PLANNED, len(packed)), dtype=np.int64)
    epochs = np.zeros_like(rows)
    job = Contestant(lambda: packing.pieces(rows, epochs), count=len(rows))
    took = race({"ours": job}, rounds=rounds).median("ours") * 1e6
    return absolute(
        f"the pieces of samples, {_PLANNED:,} at a time", took, "us a sample", Target("at most", 2)
    )


def _order_of_lengths(prefix: str, rounds: int) -> Row:
    lengths = np.array(sk.open(f"megatron:{prefix}").lengths)
    job = Contestant(lambda: length_order(lengths), count=len(lengths))
    took = race({"ours": job}, rounds=rounds).median("ours") * 1e9
    return absolute("documents ordered by length", took, "ns a document", Target("at most", 100))


def _best_fit(rounds: int) -> Iterator[Row]:
    for capacity, most in ((LENGTH, 0.2), (32_768, 2.0)):
        lengths, counts = _rests(capacity)

        def plan(lengths: Int64s = lengths, counts: Int64s = counts, capacity: int = capacity) -> None:
            best_fit_patterns(lengths, counts, capacity=capacity)

        took = race({"ours": Contestant(plan)}, rounds=min(rounds, 3)).median("ours")
        name = f"best fit of a billion documents into samples of {capacity:,}"
        yield absolute(name, took, "s", Target("at most", most))


def _rests(capacity: int) -> tuple[Int64s, Int64s]:
    """Return the lengths of what remains of long documents, and how often each comes, of 10^9 documents."""
    drawn = np.random.default_rng(0).lognormal(6, 1, 1_000_000).astype(np.int64) + 1
    rests, counts = np.unique(drawn % capacity, return_counts=True)
    return rests[rests > 0].astype(np.int64), (counts[rests > 0] * 1000).astype(np.int64)


def _packed(data: Data, prefix: str, rounds: int, libraries: tuple[Library, Library]) -> Iterator[Row]:
    packed = sk.open(f"megatron:{prefix}").pack(LENGTH, seed=7, columns=["tokens", "positions"])
    order = np.random.default_rng(2).permutation(len(packed))[:_SLOW]
    contestants: dict[str, Timed] = {"ours": Contestant(lambda: _batches(packed), count=len(packed))}
    with contextlib.ExitStack() as stack, one_core():
        peers = [
            stack.enter_context(
                visiting(library, source=prefix, folder=os.path.join(data.folder, "of-tokens"))
            )
            for library in libraries
        ]
        _check(peers[0].absent, lambda: peers[0].ask("rows", rows=order.tolist()), prefix, order)
        if not peers[1].absent:
            peers[1].ask("rows", rows=order.tolist())
        for number, peer in enumerate(peers):
            if not peer.absent:
                contestants[str(number)] = Visitor(peer, "single", len(order), {"count": len(order)})
        times = race(contestants, rounds=rounds)
    name, figure = f"packed samples with positions, {_BATCH} at a time", 1e6 * times.median("ours")
    yield absolute(f"{name}: time", figure, "us", Target("at most", 4))
    for number, (peer, target) in enumerate(zip(peers, (10, 1.3), strict=True)):
        yield _against(name, times, str(number), peer.name, Target("at least", target), absent=peer.absent)


def _check(absent: str | None, ask: object, prefix: str, order: NDArray[np.int64]) -> None:
    """Check that Megatron's items are those of our reading of its order."""
    if absent:
        return
    assert callable(ask)
    ours = sk.open(f"megatron:{prefix}").pack(LENGTH, seed=1234, order="megatron", next_token=True)
    expected = [ours[int(row)]["tokens"][:-1].tolist() for row in order[:5]]
    assert ask() == expected


def _against(name: str, times: Race, key: str, label: str, target: Target, *, absent: str | None) -> Row:
    figure = 1e6 * times.median("ours")
    if absent:
        return missing(name, figure, "us", target, peer=label, why=absent)
    against = f"{label} {shown(1e6 * times.median(key))}"
    return relative(name, figure, "us", target, against=against, ratio=times.ratio(key, "ours"))
