"""Units on the disk of this machine: found, claimed, written, and how much room the caches have for them."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Final, final

import numpy as np

from seekable.remote.fetching.wants import CacheRoom
from seekable.storage.addresses import UNIT_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import ExitStack

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.remote.cache.disk_cache import DiskCache
    from seekable.remote.cache.extents import Extent
    from seekable.remote.cache.held_ranges import HeldBlock, HeldRanges
    from seekable.remote.fetching.wants import ObjectRef, Wants
    from seekable.storage.access import CacheChoice

__all__ = [
    "Rooms",
    "UnitWriter",
    "blocks_here",
    "claimed",
    "kept_units",
    "units_here",
]

_UNIT_BITS = 40
_MOST_UNWRITTEN_BYTES = 64 << 20
"""The bytes that wait to be written before a reader has to wait for the disk."""

_UNKNOWN_BYTES: Final = 1 << 62
_MOST_LATE: Final = 4096
"""The numbers that wait until they are sorted into an array together."""


def kept_units(
    disk: DiskCache, memory: HeldRanges, ref: ObjectRef, units: range
) -> tuple[list[HeldBlock], list[range]]:
    """Return blocks of those units that are on disk, and ranges of the units that are not.

    Units on disk are noted in memory.
    """
    blocks: list[HeldBlock] = []
    missing: list[range] = []
    found: Iterable[tuple[int, Extent | None]] = zip(units, disk.extents(ref.key, units), strict=True)
    for _, group in groupby(found, lambda pair: id(pair[1])):
        pairs = list(group)
        (first, extent), last = pairs[0], pairs[-1][0]
        if extent is None:
            missing.append(range(first, last + 1))
        else:
            stop = min((last + 1) * UNIT_BYTES, ref.pin.size)
            blocks.append(memory.put_part(ref.key, extent, first * UNIT_BYTES, stop))
    return blocks, missing


def blocks_here(
    disk: DiskCache | None, memory: HeldRanges, ref: ObjectRef, start: int, stop: int
) -> tuple[list[HeldBlock], list[tuple[int, int]]]:
    """Return blocks that contain a range as far as it is in memory or on disk, and the parts that are not.

    Units on disk are noted in memory.
    """
    blocks, gaps = memory.cover(ref.key, start, stop)
    if disk is None or not gaps:
        return blocks, gaps
    left: list[tuple[int, int]] = []
    for low, high in gaps:
        kept, missing = kept_units(disk, memory, ref, range(low // UNIT_BYTES, -(-high // UNIT_BYTES)))
        blocks += kept
        left += [(max(low, run.start * UNIT_BYTES), min(high, run.stop * UNIT_BYTES)) for run in missing]
    return blocks, left


def units_here(
    disk_of: Callable[[CacheChoice | None], DiskCache | None], memory: HeldRanges, wants: Wants
) -> None:
    """Note in memory which units of some ranges are on disk.

    Args:
        disk_of: returns the cache on disk of a choice, None where none is wanted.
        memory: gets the maps of the units.
        wants: the ranges.
    """
    first, last = wants.starts // UNIT_BYTES, (wants.stops - 1) // UNIT_BYTES
    counts = np.maximum(last - first + 1, 0)
    owner = np.repeat(np.arange(len(counts)), counts)
    units = first[owner] + np.arange(owner.size) - (np.cumsum(counts) - counts)[owner]
    places = np.unique((wants.which[owner] << _UNIT_BITS) | units)
    if not places.size:
        return
    heads = np.flatnonzero(np.diff(places, prepend=-2) != 1).tolist()
    numbers = places.tolist()
    for low, high in zip(heads, [*heads[1:], len(numbers)], strict=True):
        ref, start = wants.objects[numbers[low] >> _UNIT_BITS], numbers[low] & (1 << _UNIT_BITS) - 1
        if (disk := disk_of(ref.cache)) is not None:
            kept_units(disk, memory, ref, range(start, start + high - low))


def claimed(
    disk: DiskCache, key: str, wanted: Iterable[range], claims: ExitStack
) -> tuple[list[range], list[range]]:
    """Return the units that this process may fetch until the end of ``claims``, and those that others fetch.

    Args:
        disk: the cache on disk.
        key: the object.
        wanted: consecutive units each.
        claims: takes the claims.
    """
    mine: list[range] = []
    others: list[range] = []
    for units in wanted:
        claim = disk.claim_units(key, units)
        if claim is not None:
            claims.callback(claim.release)
            mine.append(units)
            continue
        for unit in units:
            claim = disk.claim(key, unit)
            if claim is not None:
                claims.callback(claim.release)
            _append(others if claim is None else mine, unit)
    return mine, others


@final
class UnitWriter:
    """Writes fetched units to disk in a thread, so that neither readers nor the loop wait for the disk."""

    def __init__(self, memory: HeldRanges) -> None:
        """Begin without work; the first unit starts the thread.

        Args:
            memory: has the maps of what was written.
        """
        self._memory = memory
        # One thread: writers of one cache wait for each other anyway.
        self._thread = ThreadPoolExecutor(1, "seekable-cache")
        # Each is changed by one thread alone.
        self._given_bytes = self._done_bytes = 0

    async def keep(
        self,
        disk: DiskCache,
        ref: ObjectRef,
        fetched: Sequence[HeldBlock],
        claims: ExitStack,
        *,
        demanded: bool,
    ) -> list[HeldBlock]:
        """Write units and end their claims; return blocks of maps as far as there was room, else the units.

        Args:
            disk: the cache on disk.
            ref: the object.
            fetched: whole units, consecutive ones in one block.
            claims: the claims of the units.
            demanded: True if a reader waits: then the units come back at once, unless too many bytes wait to
                be written.
        """
        work = partial(self._written, disk, ref, fetched, claims.pop_all())
        self._given_bytes += sum(len(block.data) for block in fetched)
        try:
            done = self._thread.submit(work)
        except RuntimeError:  # The interpreter ends: no thread takes work any more.
            return work()
        if demanded and self._given_bytes - self._done_bytes <= _MOST_UNWRITTEN_BYTES:
            return list(fetched)
        return await asyncio.shield(asyncio.wrap_future(done))

    def close(self) -> None:
        """Wait until all is written."""
        self._thread.shutdown()

    def _written(
        self, disk: DiskCache, ref: ObjectRef, fetched: Sequence[HeldBlock], claims: ExitStack
    ) -> list[HeldBlock]:
        blocks: list[HeldBlock] = []
        with claims:
            for block in fetched:
                units = range(block.start // UNIT_BYTES, -(-block.stop // UNIT_BYTES))
                disk.save_units(ref.key, units.start, block.data, etag=ref.pin.etag)
                kept, missing = kept_units(disk, self._memory, ref, units)
                blocks += [*kept, block] if missing else kept
                if len(kept) == 1 and not missing:
                    block.move_to(kept[0])  # Readers who hold it keep no memory beside that of the map.
        self._done_bytes += sum(len(block.data) for block in fetched)
        return blocks


def _append(runs: list[range], unit: int) -> None:
    """Add a unit to ascending ranges of units: to the last one if it follows that."""
    if runs and runs[-1].stop == unit:
        runs[-1] = range(runs[-1].start, unit + 1)
    else:
        runs.append(range(unit, unit + 1))


@final
class Rooms:
    """The caches of a process. Readers in several threads may call it; a lost count does no harm."""

    def __init__(self, disk: Callable[[CacheChoice | None], DiskCache | None]) -> None:
        """Begin without data.

        Args:
            disk: returns the cache on disk of a choice, None where none is wanted.
        """
        self.disk = disk
        self._wanted: dict[CacheChoice | None, _Objects] = {}
        self._bytes: dict[CacheChoice | None, int] = {}
        """The most bytes of each cache, as they were when something of it was wanted last."""

    @property
    def disks(self) -> list[DiskCache]:
        """The caches on disk of what was wanted."""
        return [disk for choice in list(self._wanted) if (disk := self.disk(choice)) is not None]

    @property
    def least_bytes(self) -> int | None:
        """The most bytes that the smallest cache of what was wanted keeps, None if there is no cache."""
        return min(filter(None, list(self._bytes.values())), default=None)

    @property
    def are_there(self) -> bool:
        """True if something of what was wanted is kept on disk."""
        return any(list(self._bytes.values()))

    def wanted(self, objects: Sequence[ObjectRef]) -> list[CacheRoom]:
        """Note that readers want something of some objects, and return the room of each."""
        choices = [ref.cache for ref in objects]
        distinct = set(choices)
        found: dict[CacheChoice | None, CacheRoom] = {}
        for choice in distinct:
            some = objects if len(distinct) == 1 else [ref for ref in objects if ref.cache == choice]
            room = self._bytes[choice] = _most_bytes(self.disk(choice))
            found[choice] = CacheRoom(
                self._wanted.setdefault(choice, _Objects()).added(some, most=room), room
            )
        return [found[choice] for choice in choices]

    def evicting(self, choices: Iterable[CacheChoice | None]) -> dict[CacheChoice | None, DiskCache]:
        """Return those of some caches that do not keep all that readers have wanted."""
        found: dict[CacheChoice | None, DiskCache] = {}
        for choice in choices:
            disk, wanted = self.disk(choice), self._wanted.get(choice)
            if disk is not None and wanted is not None and wanted.total_bytes > _most_bytes(disk):
                found[choice] = disk
        return found


def _most_bytes(disk: DiskCache | None) -> int:
    if disk is None:
        return 0
    return _UNKNOWN_BYTES if disk.most_bytes is None else disk.most_bytes


@final
class _Objects:
    """The objects that readers want of one cache, each counted once."""

    def __init__(self) -> None:
        self._numbers = _KeySet()
        self.total_bytes = 0

    def added(self, objects: Sequence[ObjectRef], *, most: int) -> int:
        """Add objects, and return the bytes of all; no more is counted above ``most``."""
        if self.total_bytes <= most:
            numbers = np.array([int(ref.key[:16], 16) for ref in objects], np.uint64)
            for row in self._numbers.added(numbers).tolist():
                self.total_bytes += objects[row].pin.size
                if self.total_bytes > most:
                    break
        return self.total_bytes


@final
class _KeySet:
    """A set of 64-bit keys, in little more than 8 bytes each."""

    def __init__(self) -> None:
        self._sorted = np.zeros(0, np.uint64)
        self._late: set[int] = set()

    def added(self, numbers: NDArray[np.uint64]) -> Int64s:
        """Add some numbers, and return the places of those that were not there."""
        at = np.searchsorted(self._sorted, numbers)
        before = np.append(self._sorted, np.uint64(0))[at] == numbers
        before &= at < self._sorted.size
        new: list[int] = []
        for place in np.flatnonzero(~before).tolist():
            number = int(numbers[place])
            if number not in self._late:
                self._late.add(number)
                new.append(place)
        if len(self._late) > _MOST_LATE:
            self._sorted = np.union1d(self._sorted, np.array(list(self._late), np.uint64))
            self._late = set()
        return np.array(new, np.int64)
