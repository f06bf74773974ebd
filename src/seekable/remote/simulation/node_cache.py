"""What the ranks of one node read, find in its cache and fetch, and what the cache evicts.

The rules are those of the fetcher. Each rank plans the records of its next stretches together. Units of which
the neighbours will be read before the cache is full are fetched whole and kept; else the ranges alone are
fetched. All steps are operations on whole arrays.

The number of units that a whole epoch touches follows from the touches of a sample of its records: in a
full shuffle one of M nodes has touched ``1 - exp(-x r / M)`` of the units of ``r`` records each, after a
share ``x`` of an epoch. The number of times that a sample touches a unit follows Poisson's law; units that
it does not touch are not seen. From those that are seen the rate follows, and the number of all that can
be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.remote.cache.disk_room import LEFT
from seekable.remote.fetching.budget import FAST_LINK, LEAST_AHEAD_BYTES, are_records_first
from seekable.remote.fetching.fetcher import CHUNK_BYTES, LEAST_CAPPED_BYTES, RECENT_BYTES, RECORD_GAP_BYTES
from seekable.remote.fetching.look_ahead import SPARSE_BUDGETS, Needs
from seekable.remote.fetching.wants import NEAR_BYTES, SCATTERED, SPARSE, Wants, by_ranges
from seekable.storage.addresses import UNIT_BYTES, extent_units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s

__all__ = [
    "Knobs",
    "NodeCache",
    "RankMemory",
    "RankReads",
    "RankRequests",
    "UnitAxis",
    "joined_reads",
    "joined_requests",
    "range_requests",
    "touched_units",
]

_ROUNDS = 60
"""Rounds after which the rate of touches does not change any more."""

_CHUNK_UNITS = CHUNK_BYTES // UNIT_BYTES


@dataclass(frozen=True, slots=True, eq=False)
class RankReads:
    """Ranges of bytes in the order of need.

    Example:
        >>> first = RankReads(*np.array([[0], [0], [0], [5]]))
        >>> joined_reads([first, RankReads(*np.array([[1], [0], [5], [9]]))]).between(1, 2).starts.tolist()
        [5]
    """

    rows: Int64s
    """The index of the record that needs each range, counted in the order of reading; ascending."""
    files: Int64s
    """The index of each range's file."""
    starts: Int64s
    """Its first byte."""
    stops: Int64s
    """The byte after its last."""

    def between(self, first: int, stop: int) -> RankReads:
        """Return the ranges of the records ``first`` to ``stop``."""
        here = slice(*np.searchsorted(self.rows, (first, stop)).tolist())
        return RankReads(self.rows[here], self.files[here], self.starts[here], self.stops[here])


def joined_reads(parts: Sequence[RankReads]) -> RankReads:
    """Return the ranges of several reads, one after the other."""
    if not parts:
        return RankReads(*np.zeros((4, 0), np.int64))
    columns = zip(*((part.rows, part.files, part.starts, part.stops) for part in parts), strict=True)
    return RankReads(*(np.concatenate(column) for column in columns))


@dataclass(frozen=True, slots=True, eq=False)
class UnitAxis:
    """The units of all files after each other, with a gap of one between files.

    Example:
        >>> axis = UnitAxis.of(np.array([600_000, 0, 10]))
        >>> axis.firsts.tolist(), axis.sizes(np.array([0, 2, 5])).tolist()
        ([0, 4, 5], [262144, 75712, 10])
    """

    file_sizes: Int64s
    """The number of bytes of each file."""
    firsts: Int64s
    """The index of the first unit of each file."""
    count: int
    """The number after the last unit."""

    @classmethod
    def of(cls, file_sizes: Int64s) -> UnitAxis:
        """Return the axis of files of these sizes."""
        # The gap keeps units of two files from being neighbours.
        counts = -(-file_sizes // UNIT_BYTES) + 1
        return cls(file_sizes, np.cumsum(counts) - counts, int(counts.sum()))

    def units(self, reads: RankReads) -> tuple[Int64s, Int64s]:
        """Return units in the order of need, and for each the index of its range."""
        first, last = reads.starts // UNIT_BYTES, (reads.stops - 1) // UNIT_BYTES
        counts = np.where(reads.stops > reads.starts, last - first + 1, 0)
        owner = np.repeat(np.arange(counts.size), counts)
        within = np.arange(owner.size) - (np.cumsum(counts) - counts)[owner]
        return (self.firsts[reads.files] + first)[owner] + within, owner

    def chunks(self, units: Int64s, rows: Int64s, width: int) -> tuple[Int64s, Int64s]:
        """Return all units of the chunks that some units are in, and the first record that needs each chunk.

        Args:
            units: indexes of units, ascending.
            rows: the first record that needs each of them.
            width: the units of a chunk, which begins at a multiple of them in its file.
        """
        files = self.files(units)
        first = self.firsts[files] + (units - self.firsts[files]) // width * width
        chunks, at = np.unique(first, return_inverse=True)
        needs = np.full(chunks.size, np.iinfo(np.int64).max)
        np.minimum.at(needs, at, rows)
        files = self.files(chunks)
        ends = self.firsts[files] - (-self.file_sizes[files] // UNIT_BYTES)
        counts = np.minimum(width, ends - chunks)
        owner = np.repeat(np.arange(chunks.size), counts)
        within = np.arange(owner.size) - (np.cumsum(counts) - counts)[owner]
        return chunks[owner] + within, needs[owner]

    def files(self, units: Int64s) -> Int64s:
        """Return the index of each unit's file."""
        return np.searchsorted(self.firsts, units, side="right") - 1

    def sizes(self, units: Int64s) -> Int64s:
        """Return the number of bytes of each unit."""
        files = self.files(units)
        within = units - self.firsts[files]
        return np.minimum(UNIT_BYTES, self.file_sizes[files] - within * UNIT_BYTES)

    def cells(self, units: Int64s, width: int) -> Int64s:
        """Return numbers that are equal for units of one file in one cell of so many units.

        Args:
            units: numbers of units.
            width: the units of a cell, whose edges are at its multiples in each file.
        """
        files = self.files(units)
        # A file starts anew: its cells are numbered from its first unit on, which no other file reaches.
        return self.firsts[files] + (units - self.firsts[files]) // width


def touched_units(seen: int, touches: int, *, share: float, most: int) -> float:
    """Return the expected number of units that all records touch.

    Args:
        seen: the number of units that a sample of the records touches.
        touches: how often it touches them.
        share: the share of the records that are in the sample.
        most: the number of all units.

    Example:
        >>> round(touched_units(1000, 50_000, share=0.1, most=5000))
        1000
        >>> units, mean = 10_000, 0.5  # a tenth of a full shuffle on one node: 5 touches of each unit in all
        >>> seen = round(units * (1 - math.exp(-mean)))
        >>> round(touched_units(seen, round(units * mean), share=0.1, most=units) / units, 2)
        0.99
    """
    if not seen:
        return 0.0
    if touches <= seen:  # No unit was touched twice: each further record touches another one.
        return float(min(seen / share, most))
    mean = touches / seen
    rate = mean
    for _ in range(_ROUNDS):
        rate = mean * -math.expm1(-rate)
    units = min(seen / -math.expm1(-rate), most)
    return min(units * -math.expm1(-rate / share), most)


@dataclass(frozen=True, slots=True)
class Knobs:
    """The bounds of requests and of the cache."""

    most_bytes: int
    """The most bytes of a request."""
    gap_bytes: int
    """Ranges with at most so many bytes between them are fetched together, where no units are."""
    cache_bytes: int
    """The most bytes of the cache on disk; 0 for none."""
    data_bytes: int
    """The bytes of all files."""
    ahead_bytes: int = LEAST_AHEAD_BYTES
    """The most bytes that are fetched ahead of a rank, where the cache does not limit them."""


@dataclass(frozen=True, slots=True, eq=False)
class RankRequests:
    """Requests in the order in which a rank needs them."""

    rows: Int64s
    """The first record that needs bytes of each request."""
    sizes: Int64s
    """Its number of bytes."""
    files: Int64s
    """The index of its file."""
    starts: Int64s
    """The first byte of each."""

    def taken(self, chosen: NDArray[Any]) -> RankRequests:
        """Return some of the requests, by their numbers or by a flag of each."""
        return RankRequests(self.rows[chosen], self.sizes[chosen], self.files[chosen], self.starts[chosen])


def joined_requests(parts: list[RankRequests]) -> RankRequests:
    """Return several requests in the order of need."""
    if not parts:
        return RankRequests(*np.zeros((4, 0), np.int64))
    columns = zip(*((part.rows, part.sizes, part.files, part.starts) for part in parts), strict=True)
    found = RankRequests(*(np.concatenate(column) for column in columns))
    return found.taken(np.argsort(found.rows, kind="stable"))


class RankMemory:
    """The bytes that the process of a rank has in memory: what it is going to need, and what came last.

    Attributes:
        needed: the units that the rank is going to need, ascending.
    """

    def __init__(self) -> None:
        """Begin with an empty memory."""
        self._units: Int64s = np.zeros(0, np.int64)
        self._spans: Int64s = np.zeros((3, 0), np.int64)
        self._is_open = np.zeros(0, np.bool_)
        self._needs = Needs(*self._spans)
        self._ahead_bytes = self._sparse_bytes = 0
        self.needed: Int64s = np.zeros(0, np.int64)

    def open_bytes(self, reads: RankReads) -> int:
        """Note what the rank has read, and return the bytes of what it has begun to read and still keeps."""
        if reads.rows.size and self._spans.shape[1]:
            self._is_open[Needs(reads.files, reads.starts, reads.stops).nearest(*self._spans)] = True
        return int((self._spans[2] - self._spans[1])[self._is_open].sum())

    @property
    def closed_bytes(self) -> int:
        """The bytes of ranges that are here, and that the rank has not begun to read."""
        return int((self._spans[2] - self._spans[1])[~self._is_open].sum())

    def want(self, reads: RankReads, units: Int64s, *, ahead_bytes: int) -> None:
        """Drop what is not needed any more, but for what came last.

        Args:
            reads: the ranges that the rank is going to need.
            units: the units of those that it needs by units, ascending.
            ahead_bytes: the most bytes that are fetched ahead of the rank.
        """
        self._ahead_bytes, self._sparse_bytes = ahead_bytes, SPARSE_BUDGETS * ahead_bytes
        self._needs, self.needed = Needs(reads.files, reads.starts, reads.stops), units
        self.keep_units(np.zeros(0, np.int64))
        self._drop_spans()

    def has_units(self, units: Int64s) -> NDArray[np.bool_]:
        """Return for each unit True if it is in memory."""
        return np.isin(units, self._units)

    def keep_units(self, units: Int64s) -> None:
        """Keep units, and drop those that came least recently and are not needed."""
        older = self._units[~np.isin(self._units, units)]
        found = np.concatenate([older, units])
        is_recent = np.arange(found.size) >= found.size - RECENT_BYTES // UNIT_BYTES
        self._units = found[is_recent | np.isin(found, self.needed)]

    def missing(self, requests: RankRequests) -> RankRequests:
        """Return requests for those parts of some requests that are not in memory, in the same order.

        Parts with few bytes between them are one request, as of `PlannedRange.parts`.
        """
        spans = self._spans[:, np.lexsort((self._spans[1], self._spans[0]))]
        edges = np.searchsorted(spans[0], [requests.files, requests.files + 1]).T.tolist()
        columns = (requests.rows, requests.files, requests.starts, requests.starts + requests.sizes)
        found: list[tuple[int, int, int, int]] = []
        for row, file, start, stop, (low, high) in zip(
            *(column.tolist() for column in columns), edges, strict=True
        ):
            gaps = _gaps(start, stop, spans[1:, low:high].T.tolist())
            found += [(row, end - begin, file, begin) for begin, end in gaps]
        return RankRequests(*np.array(found, np.int64).reshape(-1, 4).T.copy())

    def keep_spans(self, requests: RankRequests) -> None:
        """Keep what requests have brought, at least until the rank wants other ranges."""
        spans = np.stack([requests.files, requests.starts, requests.starts + requests.sizes])
        self._spans = np.concatenate([self._spans, spans], axis=1)
        self._is_open = np.concatenate([self._is_open, np.zeros(spans.shape[1], np.bool_)])

    def _drop_spans(self) -> None:
        sizes = self._spans[2] - self._spans[1]
        stays = np.cumsum(sizes[::-1])[::-1] <= RECENT_BYTES
        stays |= self._needs.kept(*self._spans, most_bytes=self._sparse_bytes)
        # A look-ahead finds again what it has dropped, as far as its budget reaches.
        nearest = self._needs.nearest(*self._spans)
        closed = np.where(self._is_open[nearest], 0, sizes[nearest])
        stays[nearest[np.cumsum(closed) <= self._ahead_bytes]] = True
        self._spans, self._is_open = self._spans[:, stays], self._is_open[stays]


def _gaps(start: int, stop: int, spans: list[list[int]]) -> list[list[int]]:
    """Return the parts of a range that no span has; near ones are one part.

    Args:
        start: the first byte.
        stop: the byte after the last.
        spans: the first byte of each span, ascending, and the byte after its last.
    """
    gaps: list[list[int]] = []
    reach = start
    for first, last in [*spans, [stop, stop]]:
        end = min(first, stop)
        if reach < end:
            if gaps and reach - gaps[-1][1] <= NEAR_BYTES:
                gaps[-1][1] = end
            else:
                gaps.append([reach, end])
        reach = max(reach, last)
    return gaps


class NodeCache:
    """The cache on disk of one node, which its ranks share, as numbers.

    Attributes:
        peak_bytes: the most bytes that were kept.
    """

    def __init__(self, axis: UnitAxis, knobs: Knobs) -> None:
        """Begin with an empty cache."""
        self._axis = axis
        self._knobs = knobs
        self._here = np.zeros(axis.count, np.bool_)
        self._used = np.zeros(axis.count, np.int64)
        self._kept_bytes = 0
        self._clock = 0
        self._memories: dict[int, RankMemory] = {}
        self._ahead_bytes = knobs.ahead_bytes
        if knobs.cache_bytes:
            self._ahead_bytes = min(self._ahead_bytes, max(knobs.cache_bytes // 2, LEAST_CAPPED_BYTES))
        self.peak_bytes = 0

    def fetch(self, reads: RankReads, stop: int, memory: RankMemory) -> RankRequests:
        """Return the requests that a rank sends for the records before ``stop``, and keep what they bring.

        Args:
            reads: the ranges of the records that are planned together; some of them come after ``stop``.
            stop: the index of the record after those that are read now.
            memory: the memory of the rank.
        """
        self._clock += 1
        by_units, is_scattered = self._files_by_units(reads)
        whole = by_units[reads.files]
        self._memories[id(memory)] = memory
        needed = np.unique(self._axis.units(_taken(reads, whole))[0])
        memory.want(reads, needed, ahead_bytes=self._ahead_bytes)
        requests = []
        for width, some in ((_CHUNK_UNITS, is_scattered), (1, ~is_scattered)):
            of_units = whole & some[reads.files]
            if of_units.any():
                requests.append(self._fetch_units(_taken(reads, of_units), stop, memory, width))
        if not whole.all():
            requests.append(self._fetch_ranges(_taken(reads, ~whole), stop, memory))
        return joined_requests(requests)

    def records_first(
        self, reads: RankReads, sent: RankRequests, stop: int, *, latency: float, link: float
    ) -> RankRequests:
        """Return what a rank requests first of all, for its first batch: records alone, if that is sooner.

        Args:
            reads: the ranges of its first batch.
            sent: what it requests for these and for what comes next.
            stop: the index of the record after the first batch.
            latency: the time of a small request, in seconds.
            link: the rate of all requests together.

        Returns:
            The requests of ``sent`` and those for records alone. Where there are some, nothing else is
            waited for.
        """
        gap = min(self._knobs.gap_bytes, RECORD_GAP_BYTES)
        alone = range_requests(reads, replace(self._knobs, gap_bytes=gap))
        is_due = sent.rows < stop
        if not are_records_first(
            records=alone.rows.size,
            record_bytes=int(alone.sizes.sum()),
            unit_bytes=int(sent.sizes[is_due].sum()),
            link=max(link, FAST_LINK),
            latency=latency,
            duplicate_cost=0,
            fetched_bytes=0,
        ):
            return sent
        return joined_requests([alone, replace(sent, rows=np.where(is_due, stop, sent.rows))])

    def _fetch_ranges(self, reads: RankReads, stop: int, memory: RankMemory) -> RankRequests:
        touched, owner = self._axis.units(reads)
        is_kept = np.ones(reads.rows.size, np.bool_)
        is_kept[owner[~self._here[touched]]] = False
        planned = memory.missing(range_requests(_taken(reads, ~is_kept), self._knobs))
        room = self._ahead_bytes - memory.closed_bytes
        sent = planned.taken((planned.rows < stop) | (np.cumsum(planned.sizes) <= room))
        memory.keep_spans(sent)
        return sent

    def _files_by_units(self, reads: RankReads) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return for each file True if whole units are fetched, by the rule of `are_units_better`.

        The second array has True for each file of which little of each unit is wanted, of scattered units.
        """
        knobs, count = self._knobs, self._axis.file_sizes.size
        none = np.zeros(count, np.bool_)
        if not knobs.cache_bytes:
            return none, none
        units = np.unique(self._axis.units(reads)[0])
        of_units = np.bincount(self._axis.files(units), self._axis.sizes(units), count)
        plain = range_requests(reads, Knobs(knobs.most_bytes, 0, 0, 0))
        of_ranges = np.bincount(plain.files, plain.sizes, count)
        runs = np.bincount(self._axis.files(units[np.diff(units, prepend=-2) > 1]), minlength=count)
        is_scattered: NDArray[np.bool_] = SPARSE * of_ranges < of_units
        is_scattered &= of_units < SCATTERED * UNIT_BYTES * runs
        by_units: NDArray[np.bool_] = of_units <= knobs.cache_bytes
        if knobs.data_bytes > knobs.cache_bytes:
            by_units &= 2 * of_ranges >= of_units
        return by_units, is_scattered

    def _fetch_units(self, reads: RankReads, stop: int, memory: RankMemory, width: int) -> RankRequests:
        axis = self._axis
        touched, owner = axis.units(reads)
        units, first = np.unique(touched, return_index=True)
        rows = reads.rows[owner[first]]
        now = rows < stop
        self._used[units[now]] = self._clock
        due = units[now]
        units, rows = axis.chunks(units, rows, width)
        is_near = (rows < stop) | self._is_within_budget(units, rows)
        missing = ~(self._here[units] | memory.has_units(units))
        memory.keep_units(due)
        units, rows, is_near = units[missing], rows[missing], is_near[missing]
        cells = axis.cells(units, max(self._knobs.most_bytes // UNIT_BYTES, 1))
        run = np.cumsum((np.diff(units, prepend=-2) != 1) | (np.diff(cells, prepend=-1) != 0)) - 1
        count = int(run[-1]) + 1 if run.size else 0
        first_rows = np.full(count, np.iinfo(np.int64).max)
        np.minimum.at(first_rows, run, rows)
        sent = np.bincount(run, is_near, count) > 0
        sizes = np.bincount(run, axis.sizes(units), count).astype(np.int64)
        first_units = units[np.flatnonzero(np.diff(run, prepend=-1))]
        files = axis.files(first_units)
        memory.keep_units(units[sent[run]])
        self._keep(units[sent[run]])
        starts = (first_units - axis.firsts[files]) * UNIT_BYTES
        found = RankRequests(first_rows, sizes, files, starts).taken(sent)
        memory.keep_spans(found)
        return found.taken(np.argsort(found.rows, kind="stable"))

    def _is_within_budget(self, units: Int64s, rows: Int64s) -> NDArray[np.bool_]:
        """Return for each unit True if it is so near that a look-ahead fetches it by now."""
        order = np.argsort(rows, kind="stable")
        near = np.empty(units.size, np.bool_)
        near[order] = np.cumsum(self._axis.sizes(units[order])) <= self._ahead_bytes
        return near

    def _keep(self, units: Int64s) -> None:
        """Keep units on disk, as far as there is room beside those that a rank needs."""
        limit, sizes = self._knobs.cache_bytes, self._axis.sizes(units)
        if self._kept_bytes + int(sizes.sum()) > limit:
            self._evict(max(min(int(LEFT * limit), limit - int(sizes.sum())), 0))
        fits = self._kept_bytes + np.cumsum(sizes) <= limit
        units = units[fits]
        self._here[units] = True
        self._used[units] = self._clock
        self._kept_bytes += int(sizes[fits].sum())
        self.peak_bytes = max(self.peak_bytes, self._kept_bytes)

    def _evict(self, left_bytes: int) -> None:
        """Drop whole extents that no rank needs, those first that were not used for the longest time."""
        kept = np.flatnonzero(self._here)
        extents, at = np.unique(
            self._axis.cells(kept, extent_units(self._knobs.cache_bytes)), return_inverse=True
        )
        used = np.zeros(extents.size, np.int64)
        np.maximum.at(used, at, self._used[kept])
        sizes = np.bincount(at, self._axis.sizes(kept))
        needed = np.zeros(extents.size, np.bool_)
        for memory in self._memories.values():
            needed[at[np.isin(kept, memory.needed)]] = True
        order = np.argsort(used, kind="stable")
        order = order[~needed[order]]
        gone = np.cumsum(sizes[order])
        count = int(np.searchsorted(gone, self._kept_bytes - left_bytes)) + 1
        dropped = np.zeros(extents.size, np.bool_)
        dropped[order[:count]] = True
        self._here[kept[dropped[at]]] = False
        self._kept_bytes -= int(sizes[dropped].sum())


def range_requests(reads: RankReads, knobs: Knobs) -> RankRequests:
    """Return the requests for ranges alone: merged where they are near, cut where they are long.

    Args:
        reads: the ranges.
        knobs: the most bytes of a request, and of a gap.
    """
    wants = Wants((), reads.files, reads.starts, reads.stops)
    found = by_ranges(wants, gap_bytes=knobs.gap_bytes, most_bytes=knobs.most_bytes)
    return RankRequests(reads.rows[found.first], found.stops - found.starts, found.which, found.starts)


def _taken(reads: RankReads, chosen: NDArray[np.bool_]) -> RankReads:
    kind = type(reads)
    return kind(reads.rows[chosen], reads.files[chosen], reads.starts[chosen], reads.stops[chosen])
