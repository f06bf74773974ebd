"""Libraries with formats of their own, on the same records.

Each library reads its own format, converted from the JSON lines that seekable reads. All deliver the same: a
dict for each record, which is compared before anything is timed.
"""

from __future__ import annotations

import collections
import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks import floors
from benchmarks.data import beginning
from benchmarks.measure import Contestant, Row, Target, missing, race, relative
from benchmarks.records import BATCH, each
from benchmarks.subprocess_peer import Away, Library, Visitor, visiting

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from benchmarks.data import Data
    from benchmarks.measure import Timed

    Present = Mapping[str, Away]


@dataclass(frozen=True, slots=True)
class Entry:
    """One job of one library."""

    library: str
    """The key of the library."""

    call: str
    """The name of the call in the table."""

    most: int
    """The number of records of a round: few for slow libraries, and enough to exceed noise."""

    target: Target | None
    """The target of the ratio of its time to ours; None for no target."""


LIBRARIES = {
    library.key: library
    for library in (
        Library("HF datasets 5.2.0", "benchmarks.opponents.huggingface"),
        Library("MosaicML Streaming 0.13.0", "benchmarks.opponents.streaming"),
        Library("Grain 0.2.18", "benchmarks.opponents.grain"),
        Library("Lance 14.0.2", "benchmarks.opponents.lance"),
        Library("WebDataset 1.0.2", "benchmarks.opponents.webdataset"),
    )
}
_EPOCH_ROUNDS = 5
BATCHES = (
    Entry("huggingface", "__getitems__", 50_000, Target("at least", 1.5)),
    Entry("lance", "take", 50_000, None),
)
SINGLE = (
    Entry("huggingface", "ds[i]", 10_000, Target("at least", 5)),
    Entry("streaming", "ds[i]", 10_000, None),
    Entry("grain", "over ArrayRecord, ds[i]", 5_000, None),
    Entry("lance", "take of 1", 1_000, None),
)
EPOCH = (
    Entry("streaming", "shuffled", 50_000, Target("at least", 20)),
    Entry("grain", "over ArrayRecord, shuffled", 15_000, Target("at least", 30)),
    Entry("webdataset", "in the tar's order", 50_000, None),
)


def rows(data: Data, libraries: Mapping[str, Library] = LIBRARIES) -> Iterator[Row]:
    """Measure batches, single records and epochs against all installed libraries."""
    source = beginning(data)
    ds = sk.open(source)
    order = floors.shuffled(len(ds)).tolist()
    with contextlib.ExitStack() as stack:
        present = {}
        for key, library in libraries.items():
            folder = os.path.join(data.folder, f"formats-{len(ds)}")
            present[key] = stack.enter_context(visiting(library, source=source, folder=folder))
            _check(present[key], ds, order)
        yield from _batches(data, ds, order, present)
        yield from _single(data, ds, order, present)
        yield from _epoch(data, ds, present)


def _batches(data: Data, ds: sk.Dataset, order: list[int], present: Present) -> Iterator[Row]:
    batches = [order[first : first + BATCH] for first in range(0, len(order), BATCH)]
    ours = Contestant(lambda: [None for batch in batches if not ds[batch]], count=len(order))
    visitors = {}
    for entry in BATCHES:
        count = min(entry.most, len(order))
        visitors[entry] = Visitor(present[entry.library], "batches", count, {"count": count, "size": BATCH})
    yield from _compared(f"random records, {BATCH} at a time", ours, visitors, rounds=data.sizes.rounds)


def _single(data: Data, ds: sk.Dataset, order: list[int], present: Present) -> Iterator[Row]:
    ours = Contestant(lambda: each(ds, order), count=len(order))
    visitors = {}
    for entry in SINGLE:
        count = min(entry.most, len(order))
        visitors[entry] = Visitor(present[entry.library], "single", count, {"count": count})
    yield from _compared("random records, ds[i]", ours, visitors, rounds=data.sizes.rounds)


def _epoch(data: Data, ds: sk.Dataset, present: Present) -> Iterator[Row]:
    loader = sk.Loader(ds.shuffle(seed=0), batch_size=BATCH, collate=list)
    ours = Contestant(lambda: collections.deque(loader, maxlen=0), count=len(ds))
    visitors = {}
    for entry in EPOCH:
        count = min(entry.most, len(ds))
        visitors[entry] = Visitor(present[entry.library], "epoch", count, {"count": count})
    yield from _compared("epoch, shuffled", ours, visitors, rounds=min(data.sizes.rounds, _EPOCH_ROUNDS))


def _compared(
    name: str, ours: Contestant, visitors: Mapping[Entry, Visitor], *, rounds: int
) -> Iterator[Row]:
    """Race against the installed libraries, and return a row for each."""
    there = {entry: visitor for entry, visitor in visitors.items() if visitor.opponent.absent is None}
    contestants: dict[str, Timed] = {"ours": ours}
    contestants.update({entry.library: visitor for entry, visitor in there.items()})
    times = race(contestants, rounds=rounds)
    figure = times.median("ours") * 1e6
    for entry, visitor in visitors.items():
        opponent = visitor.opponent
        if opponent.absent is not None:
            yield missing(name, figure, "us", entry.target, peer=opponent.name, why=opponent.absent)
            continue
        against = f"{opponent.name} {entry.call} {times.median(entry.library) * 1e6:.2f}"
        ratio = 1 / times.ratio("ours", entry.library)
        yield relative(name, figure, "us", entry.target, against=against, ratio=ratio)


def _check(opponent: Away, ds: sk.Dataset, order: list[int]) -> None:
    """Check that a library delivers the records that were converted for it.

    Raises:
        RuntimeError: a record, or an epoch, differs.
    """
    if opponent.absent is not None:
        return
    shown = opponent.ask("rows", rows=order)
    for row, record in zip(order, shown, strict=False):
        if record != ds[row]:
            raise RuntimeError(f"{opponent.name} has for record {row} {record!r:.200}, not {ds[row]!r:.200}")
    ids = opponent.ask("ids")
    if ids is not None and sorted(ids) != list(range(len(ds))):
        raise RuntimeError(f"{opponent.name}: an epoch of {len(ids)} records is not each of {len(ds)} once")
