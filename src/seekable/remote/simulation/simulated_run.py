"""The computation of a simulated run: the reads of each rank, replayed against the cache of its node."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from seekable.nodes.windowed import WindowedShuffle
from seekable.remote.fetching.budget import (
    AHEAD_SECONDS,
    AT_ONCE,
    CPU_SECONDS,
    LEAST_AHEAD_BYTES,
    MOST_AHEAD_BYTES,
    MOST_GAP_BYTES,
    gap_worth,
)
from seekable.remote.fetching.fetcher import MOST_BYTES
from seekable.remote.object_bytes import BUDGETS, FIRST_ROWS, MOST_RANGES, chunk_rows, near_ranges
from seekable.remote.simulation.clock import Network, Times, run_clock
from seekable.remote.simulation.figures import EpochTransfer, Simulation
from seekable.remote.simulation.planned_reads import FileNumbers, reads_of
from seekable.remote.simulation.reads import Reads, UnitAxis, joined_reads, touched_units
from seekable.remote.simulation.replay import Knobs, NodeCache, RankMemory, Requests, joined_requests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable._typing import Int64s
    from seekable.nodes.node import Node

__all__ = ["SimulatedRun", "simulated", "stretches"]

_MOST_RECORDS = 2_000_000
"""The records whose reads are resolved; a run with more of them on a node is sampled."""

_REPLAYED = 400_000
"""The records at the beginning of a longer run that are replayed one by one."""

_FIRST_STRETCH, _STRETCH = 4096, 16384
"""The records of a rank that become due together."""

_MOST_AT_ONCE = 256
_BATCHES = 48
_BLOCK_ROWS = 1024
_LISTED = 1000
"""The objects of one page of a listing."""


@dataclass(frozen=True)
class SimulatedRun:
    """The arguments of a simulation; see ``simulate``."""

    node: Node
    size: int
    nodes: int
    ranks: int
    batch: int
    rate: float
    cache: int | None
    link: float
    latency: float
    connection: float
    get_price: float
    list_price: float
    byte_price: float
    epochs: int

    @property
    def world(self) -> int:
        """The number of ranks of all nodes."""
        return self.nodes * self.ranks

    @property
    def node_records(self) -> int:
        """The records that a node reads in all epochs."""
        return -(-self.size * self.epochs // self.nodes)

    @property
    def rank_rate(self) -> float:
        """The records that a rank takes in a second while it need not wait."""
        return self.rate / self.world


@dataclass(frozen=True)
class _Transfer:
    """The bytes and the requests of one node, by epoch."""

    requests: Requests
    """The requests that were resolved, in the order of need."""
    bytes: list[float]
    counts: list[float]
    wanted: list[float]
    """The bytes of the units that each rank needs in an epoch, each unit once."""
    peak: float
    records: int
    """The records of a rank for which the requests were resolved."""


class _Files:
    """The files of a run, and the bounds of its requests."""

    def __init__(self, run: SimulatedRun, numbers: FileNumbers) -> None:
        self.sizes = numbers.sizes
        self.axis = UnitAxis.of(self.sizes)
        self.data_bytes = int(self.sizes.sum())
        self.cache_bytes = self.data_bytes if run.cache is None else run.cache
        self.folder_of, self.folders = numbers.folders()

        gap = gap_worth(
            link=run.link,
            latency=run.latency,
            at_once=AT_ONCE,
            cpu=CPU_SECONDS,
            request_price=run.get_price,
            byte_price=run.byte_price,
        )
        self._gap_bytes = min(gap, MOST_GAP_BYTES)
        rate = run.rate / run.world * self.data_bytes / max(1, run.size)
        self.ahead_bytes = min(max(round(AHEAD_SECONDS * rate), LEAST_AHEAD_BYTES), MOST_AHEAD_BYTES)

    def unit_bytes(self, reads: Reads) -> int:
        """Return the bytes of the units of some reads, each unit once."""
        return int(self.axis.sizes(np.unique(self.axis.units(reads)[0])).sum())

    def knobs(self, cache_bytes: int) -> Knobs:
        return Knobs(MOST_BYTES, self._gap_bytes, cache_bytes, self.data_bytes, self.ahead_bytes)


def simulated(run: SimulatedRun) -> Simulation:
    """Return the figures of a run, without advice."""
    numbers = FileNumbers()
    is_exact = run.node_records <= _MOST_RECORDS
    if is_exact:
        count = min(run.nodes, max(1, _MOST_RECORDS // run.node_records))
        reads = [
            [_rank_reads(run, numbers, node, rank) for rank in range(run.ranks)] for node in range(count)
        ]
        samples: list[Reads] = []
    else:
        rows = -(-_REPLAYED // run.ranks)
        reads = [[_rank_reads(run, numbers, 0, rank, rows) for rank in range(run.ranks)]]
        samples = [_sample(run, numbers, epoch) for epoch in range(run.epochs)]
    near = _nearness(run, numbers)
    files = _Files(run, numbers)
    if is_exact:
        transfers = [_replayed(run, files, of_node, files.cache_bytes) for of_node in reads]
    else:
        transfers = [_extrapolated(run, files, reads[0], samples)]
    return _figures(run, files, transfers, near, is_exact=is_exact)


def _rank_reads(
    run: SimulatedRun, numbers: FileNumbers, node: int, rank: int, rows: int | None = None
) -> list[Reads]:
    """Return the reads of a rank in each epoch; with ``rows``, of so many records of the first epoch."""
    found = []
    number = node * run.ranks + rank
    for epoch in range(run.epochs if rows is None else 1):
        first, stop = epoch * run.size, (epoch + 1) * run.size
        positions = np.arange(first + (number - first) % run.world, stop, run.world, dtype=np.int64)
        found.append(reads_of(run.node, positions if rows is None else positions[:rows], numbers))
    return found


def _sample(run: SimulatedRun, numbers: FileNumbers, epoch: int) -> Reads:
    """Return the reads of some of the records of the first node in an epoch, spread evenly."""
    stride = _stride(run)
    count = run.size // (run.nodes * stride)
    at = np.arange(count, dtype=np.int64) * stride
    at += np.random.default_rng(epoch).integers(0, stride, count)
    row, rank = np.divmod(at, run.ranks)
    positions = epoch * run.size + row * run.world + rank
    return reads_of(run.node, positions[positions < (epoch + 1) * run.size], numbers)


def _stride(run: SimulatedRun) -> int:
    return -(-run.node_records // _MOST_RECORDS)


def _replayed(run: SimulatedRun, files: _Files, reads: list[list[Reads]], cache_bytes: int) -> _Transfer:
    """Return what the ranks of a node fetch, in turns of stretches, with one cache."""
    cache = NodeCache(files.axis, files.knobs(cache_bytes))
    memories = [RankMemory() for _ in reads]
    sizes, counts, wanted = ([0.0] * run.epochs for _ in range(3))
    requests: list[Requests] = []
    records = 0
    for epoch in range(len(reads[0])):
        wanted[epoch] = sum(files.unit_bytes(of_rank[epoch]) for of_rank in reads)
        rows = max((int(of_rank[epoch].rows.max(initial=-1)) + 1 for of_rank in reads), default=0)
        horizon = _horizon(run, files)
        early = min(FIRST_ROWS, files.ahead_bytes * run.size // max(1, files.data_bytes))
        for start, stop in stretches(rows, run.batch // run.world):
            for of_rank, memory in zip(reads, memories, strict=True):
                # When the first batch is read, the plan of the next stretch is all that was made ahead;
                # without a cache on disk it is what the budget has room for.
                first = _FIRST_STRETCH + stop if files.cache_bytes else max(early, _FIRST_STRETCH + stop)
                planned = start + horizon if start or epoch else first
                wants = _fewer_ranges(of_rank[epoch].between(start, max(stop, planned)), files.sizes)
                sent = cache.fetch(wants, stop, memory)
                sizes[epoch] += float(sent.sizes.sum())
                counts[epoch] += sent.rows.size
                requests.append(replace(sent, rows=sent.rows + records))
        records += rows
    return _Transfer(joined_requests(requests), sizes, counts, wanted, float(cache.peak_bytes), records)


def _fewer_ranges(reads: Reads, sizes: Int64s) -> Reads:
    """Return the ranges that a look-ahead gets: in each chunk of records, near ones are one."""
    if not reads.rows.size:
        return reads
    rows = reads.rows - reads.rows[0]
    chunk = chunk_rows(int(rows[-1]) + 1, int((reads.stops - reads.starts).sum()))
    # The part of a file that one chunk needs counts as an object.
    places, which = np.unique(rows // chunk * sizes.size + reads.files, return_inverse=True)
    files = places % sizes.size
    needs, found, starts, stops = near_ranges(which, reads.starts, reads.stops, sizes[files])
    return Reads(reads.rows[needs], files[found], starts, stops)


def stretches(rows: int, batch: int) -> Iterator[tuple[int, int]]:
    """Yield the stretches of some rows: one batch, a short one, and long ones, all of whole batches."""
    start = 0
    for length in itertools.chain([batch, _FIRST_STRETCH], itertools.repeat(_STRETCH)):
        if start >= rows:
            return
        stop = start + -(-length // batch) * batch
        yield start, min(stop, rows)
        start = stop


def _horizon(run: SimulatedRun, files: _Files) -> int:
    """Return the number of records whose requests are planned together, by the rule of `PlansAhead`."""
    most_bytes = BUDGETS * files.ahead_bytes
    if isinstance(run.node, WindowedShuffle):
        most_bytes += run.node.open_bytes // run.world
    return min(MOST_RANGES, max(1, most_bytes * run.size // max(1, files.data_bytes)))


def _extrapolated(
    run: SimulatedRun, files: _Files, reads: list[list[Reads]], samples: list[Reads]
) -> _Transfer:
    """Return what a node fetches in a run that is too long to be replayed."""
    first = _replayed(run, files, reads, files.cache_bytes)
    whole = _replayed(run, files, reads, files.data_bytes)
    per_epoch = run.size / run.nodes
    factor = per_epoch / max(1, first.records * run.ranks)
    sizes, counts, wanted = ([0.0] * run.epochs for _ in range(3))
    mean_request = max(1.0, first.bytes[0] / max(1.0, first.counts[0]))
    mean_unit = files.data_bytes / max(1, files.axis.count - files.sizes.size)
    seen: Int64s = np.zeros(0, np.int64)
    touches, before, peak = 0, 0.0, 0.0
    for epoch, sample in enumerate(samples):
        units = files.axis.units(sample)[0]
        own = _touched(run, files, np.unique(units), units.size) * mean_unit
        wanted[epoch] = own * first.wanted[0] / max(1.0, whole.bytes[0])
        if not first.peak:  # Ranges alone are fetched: nothing is kept.
            sizes[epoch], counts[epoch] = first.bytes[0] * factor, first.counts[0] * factor
            continue
        seen, touches = np.union1d(seen, units), touches + units.size
        union = _touched(run, files, seen, touches) * mean_unit
        again = own * first.bytes[0] / max(1.0, whole.bytes[0])
        sizes[epoch] = max(union - before, 0.0) if union <= files.cache_bytes else again
        counts[epoch] = sizes[epoch] / mean_request
        before, peak = union, min(union, files.cache_bytes)
    return _Transfer(first.requests, sizes, counts, wanted, peak, first.records)


def _touched(run: SimulatedRun, files: _Files, seen: Int64s, touches: int) -> float:
    most = files.axis.count - files.sizes.size
    return touched_units(int(seen.size), touches, share=1 / _stride(run), most=most)


@dataclass(frozen=True)
class _Nearness:
    neighbours: float
    blocks: float
    jump: float


def _nearness(run: SimulatedRun, numbers: FileNumbers) -> _Nearness:
    """Return how near the records of a batch are to each other, from some batches of the first epoch."""
    batches = max(1, run.size // run.batch)
    steps = np.unique(np.linspace(0, batches - 1, min(_BATCHES, batches)).astype(np.int64))
    reads = []
    for step in steps.tolist():
        positions = np.arange(step * run.batch, min((step + 1) * run.batch, run.size), dtype=np.int64)
        reads.append(reads_of(run.node, positions, numbers))
    sizes = numbers.sizes
    total = int(sizes.sum())
    if not total or not joined_reads(reads).rows.size:
        return _Nearness(0.0, 0.0, 0.0)
    bases = np.cumsum(sizes) - sizes
    block_bytes = max(1, total * _BLOCK_ROWS // run.size)
    same, jumps, blocks, pairs = 0, 0.0, 0, 0
    for each in reads:
        places = bases[each.files] + each.starts
        in_block = places // block_bytes
        same += int((np.diff(in_block) == 0).sum())
        jumps += float(np.abs(np.diff(places)).sum())
        blocks += int(np.unique(in_block).size)
        pairs += max(0, places.size - 1)
    return _Nearness(same / max(1, pairs), blocks / len(reads), jumps / max(1, pairs) / (total / 3))


def _figures(
    run: SimulatedRun, files: _Files, transfers: list[_Transfer], near: _Nearness, *, is_exact: bool
) -> Simulation:
    """Return the figures of all nodes, from those of the nodes that were simulated."""
    epochs = tuple(_epoch(run, files, transfers, number) for number in range(run.epochs))
    node_bytes = sum(sum(each.bytes) for each in transfers) / len(transfers)
    node_requests = sum(sum(each.counts) for each in transfers) / len(transfers)
    times = _times(run, files, transfers[0], node_bytes)
    total_bytes, total_requests = round(node_bytes * run.nodes), round(node_requests * run.nodes)
    pages = -(-files.sizes.size // _LISTED) * run.nodes
    cost = total_requests * run.get_price + pages * run.list_price + total_bytes * run.byte_price
    wanted = sum(sum(each.wanted) for each in transfers) / len(transfers)
    return Simulation(
        nodes=run.nodes,
        ranks=run.ranks,
        records=run.size,
        data_bytes=files.data_bytes,
        is_exact=is_exact,
        epochs=epochs,
        bytes=total_bytes,
        requests=total_requests,
        requests_a_second=_request_rate(run, files, transfers[0], node_requests, node_bytes),
        hit_ratio=_hits(node_bytes, wanted),
        cache_bytes=files.cache_bytes,
        peak_disk_bytes=round(max(each.peak for each in transfers)),
        seconds=times.seconds,
        first_batch_seconds=times.first_batch_seconds,
        stalls=times.stalls,
        stall_seconds=times.stall_seconds,
        link_use=min(1.0, node_bytes / run.link / times.seconds) if times.seconds else 0.0,
        cost=cost,
        neighbours=near.neighbours,
        blocks_in_batch=near.blocks,
        mean_jump=near.jump,
        advice=(),
    )


def _hits(fetched: float, wanted: float) -> float:
    return max(0.0, 1 - fetched / wanted) if wanted else 0.0


def _epoch(run: SimulatedRun, files: _Files, transfers: list[_Transfer], number: int) -> EpochTransfer:
    sizes = [each.bytes[number] for each in transfers]
    wanted = sum(each.wanted[number] for each in transfers) / len(transfers)
    mean = sum(sizes) / len(sizes)
    return EpochTransfer(
        epoch=number,
        bytes=round(mean),
        most_bytes=round(max(sizes)),
        requests=round(sum(each.counts[number] for each in transfers) / len(transfers)),
        share=mean * run.nodes / files.data_bytes if files.data_bytes else 0.0,
        hit_ratio=_hits(mean, wanted),
    )


def _times(run: SimulatedRun, files: _Files, transfer: _Transfer, node_bytes: float) -> Times:
    """Return the times of a node; the part of a long run that was not replayed goes on at its rate."""
    at_once, ahead = min(AT_ONCE * run.ranks, _MOST_AT_ONCE), files.ahead_bytes * run.ranks
    network = Network(run.link, run.latency, run.connection, at_once, ahead)
    times = run_clock(
        transfer.requests,
        network,
        rows=transfer.records,
        batch_rows=run.batch // run.world,
        rows_a_second=run.rank_rate,
    )
    rows = run.size * run.epochs / run.world
    left = max(rows - transfer.records, 0.0)
    if left < run.batch:
        return times
    bytes_left = max(node_bytes - float(transfer.requests.sizes.sum()), 0.0)
    busy, waited = left / run.rank_rate, max(bytes_left / run.link - left / run.rank_rate, 0.0)
    return Times(
        times.seconds + busy + waited,
        times.first_batch_seconds,
        round(times.stalls * rows / max(1, transfer.records)) if waited else times.stalls,
        times.stall_seconds + waited,
    )


def _request_rate(
    run: SimulatedRun, files: _Files, transfer: _Transfer, node_requests: float, node_bytes: float
) -> float:
    """Return the requests a second of all nodes to the folder with most of them, while there are many."""
    requests = transfer.requests
    if not requests.rows.size or not node_requests:
        return 0.0
    by_folder = np.bincount(files.folder_of[requests.files])
    busy_rows = float(np.percentile(requests.rows, 99))
    share = busy_rows / max(1, transfer.records)
    rows = share * run.size * run.epochs / run.world
    seconds = max(rows / run.rank_rate, node_bytes / run.link, run.latency)
    return run.nodes * node_requests * float(by_folder.max() / by_folder.sum()) / seconds
