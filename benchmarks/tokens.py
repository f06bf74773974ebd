"""Tokens: fixed windows, packed samples and their plans, against floors and other libraries.

The documents are log-normal (median 403 tokens), uint16, in a pair of files of Megatron. Samples have 2,048
tokens. Megatron delivers packed samples of an order that it built before; the others deliver fixed blocks.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from benchmarks.measure import Contestant, Row, Target, absolute, missing, one_core, race, relative, shown
from benchmarks.subprocess_peer import Library, Visitor, visiting

import seekable as sk
from seekable.packing.order.best_fit import best_fit_patterns
from seekable.packing.order.length_order import length_order
from seekable.packing.order.table_order import Exchange

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.data import Data
    from benchmarks.measure import Race, Timed
    from numpy.typing import NDArray

    from seekable._typing import Int64s


class Peer(NamedTuple):
    """A library that delivers samples of tokens."""

    library: Library
    least: float | None
    """The least ratio of its time to ours; None without a target."""

    job: str = "single"
    """The request that reads samples: one by one, or many at a time."""


PEERS = (
    Peer(Library("Megatron-core 0.16.1", "benchmarks.opponents.megatron_core", "megatron-core"), 10),
    Peer(Library("LitData 0.2.76", "benchmarks.opponents.litdata_tokens", "litdata"), 1.3),
    Peer(Library("Forager 0.2.0", "benchmarks.opponents.forager_tokens"), None),
    Peer(Library("HF datasets 5.2.0", "benchmarks.opponents.huggingface_tokens"), None, "batches"),
)

LENGTH = 2048
_BATCH, _PLANNED = 256, 4096
_MOST_ROUNDS = 7
_SLOW = 1000
"""The samples of a round of those that take ten microseconds and more for each."""

_MOST_SHUFFLED, _SHUFFLED_A_RECORD = 1_000_000, 50
"""The documents whose orders are compared, fewer where the other data has few records."""


def rows(data: Data, peers: Sequence[Peer] = PEERS) -> Iterator[Row]:
    """Measure all of it."""
    rounds = min(data.sizes.rounds, _MOST_ROUNDS)
    prefix = _corpus(data)
    with one_core():
        yield from _windows(prefix, rounds)
        yield _plan(prefix, rounds)
        yield _order_of_lengths(prefix, rounds)
        yield from _best_fit(rounds)
    yield from _neighbours(min(_MOST_SHUFFLED, data.sizes.records * _SHUFFLED_A_RECORD))
    yield from _packed(data, prefix, rounds, peers)


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
    packed = sk.open(f"megatron:{prefix}").pack(LENGTH, seed=7, method=sk.Packing(order="exchange"))
    packing = packed._node.packing  # type: ignore[attr-defined]  # a packed dataset's node has it
    rows = np.arange(min(_PLANNED, len(packed)), dtype=np.int64)
    epochs = np.zeros_like(rows)
    job = Contestant(lambda: packing.pieces(rows, epochs), count=len(rows))
    took = race({"ours": job}, rounds=rounds).median("ours") * 1e6
    return absolute(
        f"the pieces of samples, {_PLANNED:,} at a time", took, "us a sample", Target("at most", 2)
    )


def _order_of_lengths(prefix: str, rounds: int) -> Row:
    lengths = np.array(sk.formats.token_lengths(sk.open(f"megatron:{prefix}")))
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


def _neighbours(documents: int) -> Iterator[Row]:
    """Compare the orders of documents in two epochs with the natural order, and with each other."""
    drawn = np.random.default_rng(0).lognormal(6, 1, documents).astype(np.int64) + 1
    packing = Exchange(length_order(drawn), stride=LENGTH, seed=7)
    natural, of_epochs = [], []
    for epoch in range(2):
        rows = np.arange(packing.samples)
        pieces = packing.pieces(rows, np.full_like(rows, epoch))
        first, second = pieces.documents[:-1], pieces.documents[1:]
        within = np.ones(first.size, np.bool_)
        within[pieces.bounds[1:-1] - 1] = False
        natural.append(float((second == first + 1)[within].mean()))
        of_epochs.append((first * documents + second)[within])
    again = float(np.isin(of_epochs[0], of_epochs[1]).mean())
    target = Target("at most", 1e-4)
    yield absolute("order of documents, natural neighbours", max(natural), "of pairs", target)
    yield absolute("order of documents, pairs of the epoch before", again, "of pairs", target)


def _packed(data: Data, prefix: str, rounds: int, peers: Sequence[Peer]) -> Iterator[Row]:
    packed = sk.open(f"megatron:{prefix}").pack(LENGTH, seed=7, columns=["tokens", "positions"])
    order = np.random.default_rng(2).permutation(len(packed))[:_SLOW]
    contestants: dict[str, Timed] = {"ours": Contestant(lambda: _batches(packed), count=len(packed))}
    folder = os.path.join(data.folder, "of-tokens")
    with contextlib.ExitStack() as stack, one_core():
        away = [stack.enter_context(visiting(peer.library, source=prefix, folder=folder)) for peer in peers]
        for number, (peer, there) in enumerate(zip(peers, away, strict=True)):
            if there.absent:
                continue
            first = there.ask("rows", rows=order.tolist())
            if not number:
                _check(first, prefix, order)
            size = {} if peer.job == "single" else {"size": _BATCH}
            contestants[str(number)] = Visitor(there, peer.job, len(order), {"count": len(order), **size})
        times = race(contestants, rounds=rounds)
    name, figure = f"packed samples with positions, {_BATCH} at a time", 1e6 * times.median("ours")
    yield absolute(f"{name}: time", figure, "us", Target("at most", 4))
    for number, (peer, there) in enumerate(zip(peers, away, strict=True)):
        target = None if peer.least is None else Target("at least", peer.least)
        yield _against(name, times, str(number), there.name, target, absent=there.absent)


def _check(shown: list[list[int]], prefix: str, order: NDArray[np.int64]) -> None:
    """Check that the first items of Megatron are those of our reading of its order."""
    ours = sk.open(f"megatron:{prefix}").pack(
        LENGTH, seed=1234, method=sk.Packing(order="megatron"), next_token=True
    )
    assert shown == [ours[int(row)]["tokens"][:-1].tolist() for row in order[:5]]


def _against(
    name: str, times: Race, key: str, label: str, target: Target | None, *, absent: str | None
) -> Row:
    figure = 1e6 * times.median("ours")
    if absent:
        return missing(name, figure, "us", target, peer=label, why=absent)
    against = f"{label} {shown(1e6 * times.median(key))}"
    return relative(name, figure, "us", target, against=against, ratio=times.ratio(key, "ours"))
