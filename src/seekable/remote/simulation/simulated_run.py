"""The computation of a simulated run: the reads of each rank, the cache of its node, and the clock.

Reads are resolved from the order alone. The clock says when requests begin and end, and when their reader
waits: a simulation of events.
"""

from __future__ import annotations

import heapq
import itertools
import os
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
from seekable.remote.simulation.node_cache import (
    Knobs,
    NodeCache,
    RankMemory,
    RankReads,
    RankRequests,
    UnitAxis,
    joined_reads,
    joined_requests,
    touched_units,
)
from seekable.remote.simulation.simulation_figures import EpochTransfer, Simulation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable._typing import Int64s
    from seekable.nodes.graph import DataFiles, FileRanges
    from seekable.nodes.node import Node

__all__ = [
    "FileNumbers",
    "Network",
    "SimulatedRun",
    "Times",
    "reads_of",
    "run_clock",
    "simulated",
    "stretches",
]

_MOST_REQUESTS = 200_000
"""The requests whose events are simulated; the rest of a longer run goes on at their pace."""

_PLANNED = 1 << 16
_CHUNK = 512
"""The records that share a place in the order of need, where a record has not one range of its own."""

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


@dataclass(frozen=True, slots=True)
class Network:
    """The way from a store to a node.

    Attributes:
        link: the bytes a second of all requests together.
        latency: the seconds from sending a request to its first byte.
        connection: the bytes a second of one request.
        at_once: the most requests at a time.
        ahead_bytes: the most bytes that are requested ahead of the reader.
    """

    link: float
    latency: float
    connection: float
    at_once: int
    ahead_bytes: int


@dataclass(frozen=True, slots=True)
class Times:
    """The times of one node.

    Attributes:
        seconds: the time of all records.
        first_batch_seconds: the time until the last request of the first batch has ended.
        stalls: the number of times that the reader waits, the first batch not counted.
        stall_seconds: the time for which it waits, that of the first batch not counted.
    """

    seconds: float
    first_batch_seconds: float
    stalls: int
    stall_seconds: float


def run_clock(
    requests: RankRequests, network: Network, *, rows: int, batch_rows: int, rows_a_second: float
) -> Times:
    """Return the times of a reader that needs its records in their order.

    Args:
        requests: the requests, by the first record that needs each.
        network: the way to the store.
        rows: the number of records.
        batch_rows: the number of records of the first batch.
        rows_a_second: the records that the reader takes in a second while it need not wait.

    Example:
        >>> from seekable.remote.simulation.node_cache import RankRequests
        >>> one = RankRequests(*np.array([[0], [1_000_000], [0], [0]]))
        >>> network = Network(link=1e6, latency=0.5, connection=1e6, at_once=1, ahead_bytes=1 << 20)
        >>> run_clock(one, network, rows=100, batch_rows=10, rows_a_second=100)
        Times(seconds=2.5, first_batch_seconds=1.5, stalls=0, stall_seconds=0.0)
    """
    some = min(requests.rows.size, _MOST_REQUESTS)
    sizes = requests.sizes[:some]
    before = np.cumsum(sizes) - sizes
    needed: list[float] = []
    places = [0.0] * network.at_once
    begun_by = 0
    now, at_row, link_free, first, stalls, waited = 0.0, 0, 0.0, 0.0, 0, 0.0
    columns = (requests.rows[:some].tolist(), sizes.tolist(), before.tolist())
    ends = (before + sizes).tolist()
    for row, size, start_bytes in zip(*columns, strict=True):
        while (
            begun_by < len(needed)
            and start_bytes + size - (ends[begun_by - 1] if begun_by else 0) > network.ahead_bytes
        ):
            begun_by += 1
        start = max(heapq.heappop(places), needed[begun_by - 1] if begun_by else 0.0)
        link_free = max(start + network.latency, link_free) + size / network.link
        end = max(link_free, start + network.latency + size / network.connection)
        heapq.heappush(places, end)
        due = now + (row - at_row) / rows_a_second
        if row < batch_rows:
            first = max(first, end)
        elif end > due:
            stalls += 1
            waited += end - due
        now, at_row = max(due, end), row
        needed.append(now)
    share = 1.0 if some == requests.rows.size or not at_row else rows / at_row
    seconds = now * share + (rows - at_row * share) / rows_a_second
    return Times(seconds, first, round(stalls * share), waited * share)


class FileNumbers:
    """One numbering of the files of all sources."""

    def __init__(self) -> None:
        """Begin a numbering without files."""
        self._sets: dict[int, tuple[DataFiles, int]] = {}
        self._others: dict[str, int] = {}
        self._sizes: list[Int64s] = []
        self._folders: list[list[str] | None] = []
        self._count = 0

    @property
    def sizes(self) -> Int64s:
        """The number of bytes of each file."""
        return np.concatenate(self._sizes) if self._sizes else np.zeros(0, np.int64)

    def of(self, ranges: FileRanges) -> Int64s:
        """Return the index of each range's file."""
        files = ranges.files
        sizes = getattr(files, "data_sizes", None)
        if sizes is None:
            present, at = np.unique(ranges.which, return_inverse=True)
            numbers = [self._other(files, file) for file in present.tolist()]
            return np.array(numbers, np.int64)[at] if numbers else ranges.which
        if id(files) not in self._sets:
            self._sets[id(files)] = files, self._add(np.asarray(sizes, np.int64))
        return ranges.which + self._sets[id(files)][1]

    def folders(self) -> tuple[Int64s, list[str]]:
        """Return the index of each file's folder, and the folders: a store bounds the requests to each."""
        paths: dict[int, str] = {number: path for path, number in self._others.items()}
        for files, first in self._sets.values():
            count = len(files)  # type: ignore[arg-type]  # a FileSet
            paths |= {first + file: files.path(file) for file in range(count)}
        numbers: dict[str, int] = {}
        found = [
            numbers.setdefault(os.path.dirname(paths[file]), len(numbers)) for file in range(self._count)
        ]
        return np.array(found, np.int64), list(numbers)

    def _other(self, files: DataFiles, file: int) -> int:
        path = files.path(file)
        if path not in self._others:
            self._others[path] = self._add(np.array([files.mapped(file).size], np.int64))
        return self._others[path]

    def _add(self, sizes: Int64s) -> int:
        first = self._count
        self._sizes.append(sizes)
        self._count += sizes.size
        return first


def reads_of(node: Node, positions: Int64s, numbers: FileNumbers) -> RankReads:
    """Return the byte ranges for some records, none of which is read.

    Args:
        node: the dataset.
        positions: the positions of the records, in the order of reading.
        numbers: the numbering of files, which grows.
    """
    parts = []
    for first in range(0, positions.size, _PLANNED):
        plan = node.plan(positions[first : first + _PLANNED])
        for start in range(0, len(plan), _CHUNK):
            part = plan.slice(start, min(start + _CHUNK, len(plan)))
            found = list(part.ranges())
            has_one_each = len(found) == 1 and found[0].which.size == len(part)
            rows = np.arange(len(part)) if has_one_each else np.zeros(1, np.int64)
            parts += [_reads(ranges, first + start + rows, numbers) for ranges in found]
    return joined_reads(parts)


def _reads(ranges: FileRanges, rows: Int64s, numbers: FileNumbers) -> RankReads:
    starts, stops = (column.astype(np.int64) for column in (ranges.starts, ranges.ends))
    return RankReads(np.broadcast_to(rows, starts.shape), numbers.of(ranges), starts, stops)


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

    requests: RankRequests
    """The requests that were resolved, in the order of need."""
    bytes: list[float]
    counts: list[float]
    wanted: list[float]
    """The bytes of the units that each rank needs in an epoch, each unit once."""
    peak: float
    records: int
    """The records of a rank for which the requests were resolved."""


class _RunFiles:
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

    def unit_bytes(self, reads: RankReads) -> int:
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
        samples: list[RankReads] = []
    else:
        rows = -(-_REPLAYED // run.ranks)
        reads = [[_rank_reads(run, numbers, 0, rank, rows) for rank in range(run.ranks)]]
        samples = [_sample(run, numbers, epoch) for epoch in range(run.epochs)]
    near = _nearness(run, numbers)
    files = _RunFiles(run, numbers)
    if is_exact:
        transfers = [_replayed(run, files, of_node, files.cache_bytes) for of_node in reads]
    else:
        transfers = [_extrapolated(run, files, reads[0], samples)]
    return _figures(run, files, transfers, near, is_exact=is_exact)


def _rank_reads(
    run: SimulatedRun, numbers: FileNumbers, node: int, rank: int, rows: int | None = None
) -> list[RankReads]:
    """Return what a rank reads in each epoch; with ``rows``, only so many records of the first one."""
    found = []
    number = node * run.ranks + rank
    for epoch in range(run.epochs if rows is None else 1):
        first, stop = epoch * run.size, (epoch + 1) * run.size
        positions = np.arange(first + (number - first) % run.world, stop, run.world, dtype=np.int64)
        found.append(reads_of(run.node, positions if rows is None else positions[:rows], numbers))
    return found


def _sample(run: SimulatedRun, numbers: FileNumbers, epoch: int) -> RankReads:
    """Return what the first node reads for some records of an epoch, spread evenly."""
    stride = _stride(run)
    count = run.size // (run.nodes * stride)
    at = np.arange(count, dtype=np.int64) * stride
    at += np.random.default_rng(epoch).integers(0, stride, count)
    row, rank = np.divmod(at, run.ranks)
    positions = epoch * run.size + row * run.world + rank
    return reads_of(run.node, positions[positions < (epoch + 1) * run.size], numbers)


def _stride(run: SimulatedRun) -> int:
    return -(-run.node_records // _MOST_RECORDS)


def _replayed(
    run: SimulatedRun, files: _RunFiles, reads: list[list[RankReads]], cache_bytes: int
) -> _Transfer:
    """Return what the ranks of a node fetch, in turns of stretches, with one cache."""
    cache = NodeCache(files.axis, files.knobs(cache_bytes))
    memories = [RankMemory() for _ in reads]
    sizes, counts, wanted = ([0.0] * run.epochs for _ in range(3))
    requests: list[RankRequests] = []
    records = 0
    for epoch in range(len(reads[0])):
        wanted[epoch] = sum(files.unit_bytes(of_rank[epoch]) for of_rank in reads)
        rows = max((int(of_rank[epoch].rows.max(initial=-1)) + 1 for of_rank in reads), default=0)
        early = min(FIRST_ROWS, files.ahead_bytes * run.size // max(1, files.data_bytes))
        last = 0
        for start, stop in stretches(rows, run.batch // run.world):
            for of_rank, memory in zip(reads, memories, strict=True):
                # When the first batch is read, the plan of the next stretch is all that was made ahead;
                # without a cache on disk it is what the budget has room for.
                first = _FIRST_STRETCH + stop if files.cache_bytes else max(early, _FIRST_STRETCH + stop)
                before = of_rank[epoch].between(last, start)
                planned = start + _horizon(run, files, memory.open_bytes(before)) if start or epoch else first
                wants = _fewer_ranges(of_rank[epoch].between(start, max(stop, planned)), files.sizes)
                sent = cache.fetch(wants, stop, memory)
                if not start and not epoch:
                    due = of_rank[epoch].between(start, stop)
                    sent = cache.records_first(due, sent, stop, latency=run.latency, link=run.link)
                sizes[epoch] += float(sent.sizes.sum())
                counts[epoch] += sent.rows.size
                requests.append(replace(sent, rows=sent.rows + records))
            last = start
        records += rows
    return _Transfer(joined_requests(requests), sizes, counts, wanted, float(cache.peak_bytes), records)


def _fewer_ranges(reads: RankReads, sizes: Int64s) -> RankReads:
    """Return the ranges that a look-ahead gets: in each chunk of records, near ones are one."""
    if not reads.rows.size:
        return reads
    rows = reads.rows - reads.rows[0]
    chunk = chunk_rows(int(rows[-1]) + 1, int((reads.stops - reads.starts).sum()))
    # The part of a file that one chunk needs counts as an object.
    places, which = np.unique(rows // chunk * sizes.size + reads.files, return_inverse=True)
    files = places % sizes.size
    needs, found, starts, stops = near_ranges(which, reads.starts, reads.stops, sizes[files])
    return RankReads(reads.rows[needs], files[found], starts, stops)


def stretches(rows: int, batch: int) -> Iterator[tuple[int, int]]:
    """Yield the stretches of some rows: one batch, a short one, and long ones, all of whole batches."""
    start = 0
    for length in itertools.chain([batch, _FIRST_STRETCH], itertools.repeat(_STRETCH)):
        if start >= rows:
            return
        stop = start + -(-length // batch) * batch
        yield start, min(stop, rows)
        start = stop


def _horizon(run: SimulatedRun, files: _RunFiles, open_bytes: int) -> int:
    """Return the number of records whose requests are planned together, by the rule of `ObjectPlansAhead`.

    Args:
        run: the run.
        files: its files.
        open_bytes: the bytes that the rank has begun to read and keeps in memory; on a disk they are those of
            the open windows.
    """
    most_bytes = BUDGETS * files.ahead_bytes
    if not files.cache_bytes:
        most_bytes += open_bytes
    elif isinstance(run.node, WindowedShuffle):
        most_bytes += run.node.open_bytes // run.world
    return min(MOST_RANGES, max(1, most_bytes * run.size // max(1, files.data_bytes)))


def _extrapolated(
    run: SimulatedRun, files: _RunFiles, reads: list[list[RankReads]], samples: list[RankReads]
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


def _touched(run: SimulatedRun, files: _RunFiles, seen: Int64s, touches: int) -> float:
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
    run: SimulatedRun, files: _RunFiles, transfers: list[_Transfer], near: _Nearness, *, is_exact: bool
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


def _epoch(run: SimulatedRun, files: _RunFiles, transfers: list[_Transfer], number: int) -> EpochTransfer:
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


def _times(run: SimulatedRun, files: _RunFiles, transfer: _Transfer, node_bytes: float) -> Times:
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
    run: SimulatedRun, files: _RunFiles, transfer: _Transfer, node_requests: float, node_bytes: float
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
