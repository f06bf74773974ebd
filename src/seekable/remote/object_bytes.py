"""Bytes of objects of stores for plans: fetched together when they are read, and ahead of reading."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, final

import numpy as np

from seekable.nodes.shuffle import Shuffle
from seekable.nodes.windowed import WindowedShuffle
from seekable.order.blocks import BLOCK_ROWS
from seekable.remote.fetching.fetcher import fetcher
from seekable.remote.fetching.wants import Wants, by_place
from seekable.remote.index.object_file import wants_of
from seekable.storage.far import Item, Planned
from seekable.storage.memory import bytes_in_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seekable._typing import Int64s
    from seekable.index.fileset import FileSet
    from seekable.nodes.node import Node
    from seekable.remote.cache.held_ranges import Held
    from seekable.storage.far import Ranges

__all__ = [
    "BUDGETS",
    "FIRST_ROWS",
    "MOST_RANGES",
    "Holding",
    "ObjectPlansAhead",
    "chunk_rows",
    "fetched",
    "fewer_ranges",
    "near_ranges",
    "store_reads",
    "wants",
]

_FEWEST_CHUNK_ROWS, _MOST_CHUNK_ROWS, _CHUNK_BYTES = 64, 4096, 8 << 20
"""The records whose ranges are found together; the bytes of a chunk are wanted until all of it was read."""

MOST_RANGES, BUDGETS = 1 << 17, 2
"""The most ranges that plans are made ahead for, and the most bytes of these beside those that are open, as a
multiple of the bytes that are fetched ahead. Windows of a shuffle are then known as a whole."""

_MOST_ROWS = 1 << 19
"""The most records that plans are made ahead for. Those of small records in a row have few ranges."""

FIRST_ROWS = 1 << 15
"""The most records that are planned before the first ones are read, where no cache is on disk."""

_RANGES_BETWEEN, _BYTES_BETWEEN = 1 << 14, 32 << 20
"""The ranges, or the bytes, after whose reading the ranges ahead are given anew, so that more are reached."""

_TOGETHER_AHEAD, _TOGETHER_SHARE = 8 << 20, 8
"""The bytes of new ranges that are given together, so that requests are large: so many, or one part in so
many of those that are left, whatever is more; fewer if few are left."""

_NEAR_BYTES, _TOGETHER_BYTES = 64 << 10, 256 << 10
"""Ranges with at most so many bytes between them count as one, so that there are fewer of them; but not those
that begin in different pieces of so many bytes of an object, which are needed at different times."""

_LEAST_REQUEST = 1_000_000
"""The bytes of a request below which its latency costs more than its bytes."""

_MOST_REQUEST = 8 << 20


def wants(ranges: Iterable[Ranges]) -> Wants:
    """Join the ranges that lie in stores and are not in memory."""
    return Wants.joined([wants_of(each.files, each.which, each.starts, each.ends) for each in ranges])


def fetched(ranges: Iterable[Ranges]) -> Held | None:
    """Fetch ranges of objects of stores together.

    Returns:
        The bytes, which stay in memory as long as this does; None if there is nothing to fetch.

    Raises:
        IndexStale: an object is not the one that was indexed.
        Unreachable, AccessDenied, DataNotFound: bytes cannot be fetched.
    """
    needed = wants(ranges)
    return fetcher().need(needed) if len(needed) else None


@dataclass(frozen=True, slots=True)
class _RangeChunk:
    """The ranges of some records that follow each other."""

    stop: int
    """The index of the record after the last, counted from the first plan on."""
    wants: Wants
    bytes: int
    """The bytes that the records need; ``wants`` may have more, between records that are near each other."""


@final
class ObjectPlansAhead(Generic[Item, Planned]):
    """Plans that are made ahead of their reading, so that their bytes are fetched meanwhile.

    Args:
        planned: the plans in the order of reading, each with something that comes back with it.
    """

    def __init__(self, planned: Iterator[tuple[Item, Planned]]) -> None:
        self._planned = planned
        self._plans: deque[tuple[Item, Planned]] = deque()
        self._chunks: deque[_RangeChunk] = deque()
        self._fetcher = fetcher()
        self._look = self._fetcher.ahead()
        self._before = 0
        """The number of records of the plans before the present one."""
        self._reading = 0
        """The number of records that were read, or are read at this moment."""
        self._planned_rows = self._wanted_bytes = self._wanted_ranges = 0
        self._left_bytes = 0
        """The bytes of ranges that were given to the look-ahead and not read yet."""
        self._read_bytes = self._read_ranges = 0
        """The bytes and ranges that were read since ranges were last given to the look-ahead."""

    def __iter__(self) -> Iterator[tuple[Item, Planned]]:
        try:
            while self._plans or self._plan_one():
                item, plan = self._plans.popleft()
                yield item, plan
                self._before += len(plan)
        finally:
            self._look.close()

    def read_to(self, stop: int) -> None:
        """Note that the records of the present plan before ``stop`` are read next.

        The ranges after them are given to the look-ahead, and further plans are made if few are left.
        """
        self._drop_read()
        rows = self._before + stop - self._reading
        self._reading += rows
        # Twice as many records as are read now: plans get ahead of the reader, whatever their size is.
        until = self._planned_rows + 2 * rows
        while self._is_short and self._plan_one() and (self._planned_rows < until or self._is_early):
            pass
        if self._is_due:
            self._look.want(Wants.joined([chunk.wants for chunk in self._chunks]))
            self._left_bytes, self._read_bytes, self._read_ranges = self._wanted_bytes, 0, 0

    @property
    def _is_short(self) -> bool:
        most_bytes = BUDGETS * self._fetcher.budget_bytes() + self._look.open_bytes
        rows = self._planned_rows - self._reading
        is_few = rows < _MOST_ROWS and self._wanted_ranges < MOST_RANGES
        return is_few and self._wanted_bytes < most_bytes

    @property
    def _is_early(self) -> bool:
        """True if more plans are made before the first records are read.

        Without a cache on disk nothing but ranges is fetched: those at the edges of the blocks of a window
        would be left, and fetched in small pieces later, if a part of the window was planned.
        """
        is_early = self._before == 0 and self._planned_rows < FIRST_ROWS and not self._fetcher.has_disk
        return is_early and 0 < self._wanted_bytes < self._fetcher.budget_bytes()

    @property
    def _is_due(self) -> bool:
        """True if ranges are to be given to the look-ahead: enough new ones, or many were read."""
        new_bytes = self._wanted_bytes - self._left_bytes
        together = max(_TOGETHER_AHEAD, self._left_bytes // _TOGETHER_SHARE)
        is_more = 0 < new_bytes >= min(together, self._left_bytes)
        return is_more or self._read_bytes >= _BYTES_BETWEEN or self._read_ranges >= _RANGES_BETWEEN

    def _drop_read(self) -> None:
        """Drop the ranges of chunks that were read to their ends."""
        while self._chunks and self._chunks[0].stop <= self._reading:
            chunk = self._chunks.popleft()
            self._wanted_bytes -= chunk.bytes
            self._wanted_ranges -= len(chunk.wants)
            self._left_bytes = max(0, self._left_bytes - chunk.bytes)
            self._read_bytes += chunk.bytes
            self._read_ranges += len(chunk.wants)

    def _plan_one(self) -> bool:
        """Make the next plan and find its ranges; return False if there is none."""
        planned = next(self._planned, None)
        if planned is None:
            return False
        plan = planned[1]
        for _ in plan.ranges():
            pass  # of tables this fetches the footers of all files together
        rows = chunk_rows(len(plan), plan.bytes)
        for first in range(0, len(plan), rows):
            last = min(first + rows, len(plan))
            found = self._fetcher.not_kept(wants(plan.slice(first, last).ranges()))
            chunk = _RangeChunk(self._planned_rows + last, fewer_ranges(found), found.total_bytes)
            self._chunks.append(chunk)
            self._wanted_bytes += chunk.bytes
            self._wanted_ranges += len(chunk.wants)
        self._planned_rows += len(plan)
        self._plans.append(planned)
        return True


def fewer_ranges(wanted: Wants) -> Wants:
    """Return fewer ranges, which contain all of the given ones, in the order of first need."""
    sizes = np.array([ref.pin.size for ref in wanted.objects], np.int64)
    _, *columns = near_ranges(wanted.which, wanted.starts, wanted.stops, sizes)
    return Wants(wanted.objects, *columns)


def near_ranges(
    which: Int64s, starts: Int64s, stops: Int64s, sizes: Int64s
) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """Return fewer ranges, which contain all of some ranges: those that are near each other are one.

    Args:
        which: the index of each range's object.
        starts: its first byte.
        stops: the byte after its last.
        sizes: the number of bytes of each object.

    Returns:
        The index of the first of the given ranges that each contains, ascending; its object, first byte and
        end.
    """
    order = by_place(which, starts)
    which, starts, stops = which[order], starts[order], stops[order]
    # The furthest byte that the ranges of an object before this one reach, on one axis of all objects.
    base = (np.cumsum(sizes) - sizes)[which]
    reached = np.maximum.accumulate(base + stops)
    first = np.ones(which.size, np.bool_)
    first[1:] = base[1:] + starts[1:] > reached[:-1] + _NEAR_BYTES
    first[1:] |= which[1:] != which[:-1]
    first[1:] |= starts[1:] // _TOGETHER_BYTES != starts[:-1] // _TOGETHER_BYTES
    heads = np.flatnonzero(first)
    needs = np.minimum.reduceat(order, heads) if heads.size else heads
    lasts = np.append(heads[1:], which.size)[: heads.size] - 1
    by_need = np.argsort(needs)
    columns = needs, which[heads], starts[heads], (reached - base)[lasts]
    return tuple(column[by_need] for column in columns)  # type: ignore[return-value]


def chunk_rows(rows: int, total_bytes: int) -> int:
    """Return the number of records whose ranges are found together, of some records with so many bytes."""
    return min(max(_CHUNK_BYTES * rows // max(1, total_bytes), _FEWEST_CHUNK_ROWS), _MOST_CHUNK_ROWS)


@final
class Holding:
    """A context in which ranges of objects are in memory; entering it fetches what is missing."""

    __slots__ = ("_held", "_ranges")

    def __init__(self, ranges: Iterable[Ranges]) -> None:
        """Take ranges; entering the context fetches them."""
        self._ranges = ranges
        self._held: Held | None = None

    def __enter__(self) -> None:
        """Fetch the ranges; errors as of `fetched`."""
        self._held = fetched(self._ranges)

    def __exit__(self, *_: object) -> None:
        """Drop the reference that keeps the bytes in memory."""
        self._held = None


def store_reads(node: Node) -> Iterator[str]:
    """Yield a line for each source of a dataset in an object store, and one with advice if there is some."""
    pending: list[tuple[Node, Node | None]] = [(node, None)]
    seen: set[int] = set()
    while pending:
        below, order = pending.pop()
        if isinstance(below, Shuffle | WindowedShuffle) and order is None:
            order = below
        pending += [(child, order) for child in reversed(below.children)]
        for part in getattr(below, "parts", ()):
            files = getattr(part, "files", None)
            if files is not None and id(part) not in seen and files.has_objects:
                seen.add(id(part))
                yield from _of_source(files, order)


def _of_source(files: FileSet, order: Node | None) -> Iterator[str]:
    """Yield the lines of a source, given the shuffle that decides the order of its rows, if any."""
    size, records = int(files.data_sizes.sum()), int(files.starts[-1])
    if not records:
        return
    each = size / records
    place = f"{files.shown_path(0)}{' and others' * (len(files) > 1)}, {bytes_in_words(size)}"
    if isinstance(order, Shuffle):
        yield (
            f"from {place}: records of {bytes_in_words(round(each))} in any order; each is a request, unless "
            f"the cache on disk has room for all"
        )
        return
    if order is None:
        request = min(_MOST_REQUEST, size // len(files))
        yield f"from {place}: in the order of the files, about {bytes_in_words(request)} a request"
        return
    assert isinstance(order, WindowedShuffle)
    rows = order.size / max(1, order.order.edges.size - 1)
    request = round(min(_MOST_REQUEST, rows * each))
    yield (
        f"from {place}: blocks of {rows:,.0f} records, about {bytes_in_words(request)} a request; "
        f"{bytes_in_words(order.open_bytes)} are open at a time"
    )
    if request < _LEAST_REQUEST < size:
        better = -(-_LEAST_REQUEST // max(1, round(each) * BLOCK_ROWS)) * BLOCK_ROWS
        yield (
            f"  a request of less than 1 MB costs more in latency than in bytes: take block_rows={better} in "
            f"shuffle(window=), or more lanes"
        )
