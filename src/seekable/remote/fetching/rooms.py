"""The caches on disk of what a process reads: how much each of them keeps, and how much is wanted of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.remote.cache.disk_cache import DiskCache
    from seekable.remote.fetching.wants import ObjectRef
    from seekable.storage.access import CacheChoice

__all__ = ["NO_ROOM", "Room", "Rooms"]

_UNKNOWN_BYTES: Final = 1 << 62
_MOST_LATE: Final = 4096
"""The numbers that wait until they are sorted into an array together."""


class Room(NamedTuple):
    """A cache on disk, as far as requests depend on it."""

    data_bytes: int
    """The bytes of all objects that readers of the process want of it; no more is counted above its room."""
    room_bytes: int
    """The most bytes that it keeps; 0 for no cache, any number before it is made."""

    @property
    def evicts(self) -> bool:
        """True if it does not keep all that readers want."""
        return self.data_bytes > self.room_bytes


NO_ROOM: Final = Room(0, 0)


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

    @property
    def disks(self) -> list[DiskCache]:
        """The caches on disk of what was wanted."""
        return [disk for choice in list(self._wanted) if (disk := self.disk(choice)) is not None]

    @property
    def least_bytes(self) -> int | None:
        """The most bytes that the smallest cache of what was wanted keeps, None if there is no cache."""
        return min((_most_bytes(disk) for disk in self.disks), default=None)

    def wanted(self, objects: Sequence[ObjectRef]) -> list[Room]:
        """Note that readers want something of some objects, and return the room of each."""
        choices = [ref.cache for ref in objects]
        distinct = set(choices)
        found: dict[CacheChoice | None, Room] = {}
        for choice in distinct:
            some = objects if len(distinct) == 1 else [ref for ref in objects if ref.cache == choice]
            room = _most_bytes(self.disk(choice))
            found[choice] = Room(self._wanted.setdefault(choice, _Objects()).added(some, most=room), room)
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
        self._numbers = _Numbers()
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
class _Numbers:
    """A set of 64-bit numbers, in little more than 8 bytes each."""

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
