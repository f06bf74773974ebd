"""The eviction of whole extents from a full cache on disk: first those that were unused for the longest time.

Extents with units that a running plan still needs go last, those that it needs latest first.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, final

from seekable.remote.cache.extents import ENTRY, EXTENT_SUFFIX, HEADER, SIDE, read_entries
from seekable.remote.cache.ledger import free_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.remote.cache.extents import CacheCounts
    from seekable.remote.cache.ledger import Lines

__all__ = ["LEFT", "ObjectFolder", "Removed", "Room", "extents_by_need", "object_folders", "remove_until"]

LEFT = 0.9
"""The share of the limit that is left by a sweep, so that the next one is not due at once."""

_BLOCK = 512

_RETRY_SECONDS = 10.0
"""The time for which nothing is kept after a sweep that could not make room."""

_SPARED_SECONDS, _SWEEP_SHARE = 0.5, 20
"""That time if a plan needs what is kept: the least seconds, and so many times the time of the sweep."""


class _OnDisk(NamedTuple):
    """An extent on disk, and how it is needed; the first in their order is the first to go."""

    is_needed: bool
    order: int
    folder: str
    number: int
    size: int
    units: int


class Removed(NamedTuple):
    """The result of a sweep.

    Attributes:
        left: the bytes that are left.
        size: the bytes that it removed.
        spared: True if extents stayed because a plan needs them, and too many bytes are left.
    """

    left: int
    size: int
    spared: bool


@final
class Room:
    """The room of a cache for further bytes, made by sweeps. Callers hold the lock of the ledger."""

    def __init__(self, folder: str, objects: str, *, most_bytes: int | None, counts: CacheCounts) -> None:
        """Name the folder of a cache; no file is accessed yet.

        Args:
            folder: the folder of the cache.
            objects: the folder of all objects.
            most_bytes: the most bytes of the cache; None for what its ledger says.
            counts: counts what sweeps remove.
        """
        self._folder = folder
        self._objects = objects
        self._most_bytes = most_bytes
        self._counts = counts
        self._full_until = 0.0

    @property
    def is_full(self) -> bool:
        """True for some time after a sweep that could not make room, or `pause`; nothing is kept then."""
        return time.monotonic() < self._full_until

    def pause(self) -> None:
        """Keep nothing for some time."""
        self._full_until = time.monotonic() + _RETRY_SECONDS

    def limit(self, lines: Lines) -> int:
        """Return the most bytes that the cache takes on disk."""
        return lines.chosen_bytes if self._most_bytes is None else self._most_bytes

    def has_room(self, lines: Lines, size: int) -> bool:
        """Return True if so many bytes may be written, after a sweep if there is no room.

        The sweep removes nothing that a plan needs.

        Args:
            lines: the ledger.
            size: the bytes on disk.

        Raises:
            OSError: the folder cannot be read.
        """
        free = free_bytes(self._folder)
        if lines.used is not None and self._fits(lines, size, free):
            return True
        limit = min(self.limit(lines), (lines.used or 0) + free)
        began = time.monotonic()
        removed = self.sweep(lines, min(int(LEFT * limit), limit - size), spares=True)
        if self._fits(lines, size, free_bytes(self._folder)):
            return True
        ended = time.monotonic()
        soon = max(_SPARED_SECONDS, _SWEEP_SHARE * (ended - began))
        self._full_until = ended + (soon if removed.spared else _RETRY_SECONDS)
        return False

    def sweep(self, lines: Lines, most_bytes: int, *, spares: bool) -> Removed:
        """Remove extents until no more than some bytes are left, and write in the ledger how many are.

        Args:
            lines: the ledger.
            most_bytes: the bytes that may be left.
            spares: True to remove no extent that a plan still needs.
        """
        removed = remove_until(self._objects, max(most_bytes, 0), now=int(time.time()), spares=spares)
        lines.used = removed.left
        self._counts.evicted_bytes += removed.size
        return removed

    def _fits(self, lines: Lines, size: int, free: int) -> bool:
        return (lines.used or 0) + size <= self.limit(lines) and size <= free


@dataclass(frozen=True, slots=True)
class ObjectFolder:
    """The folder of one object, and the bytes that its files take.

    Attributes:
        path: the folder.
        extents: the bytes on disk of each extent, by number.
        other: the bytes on disk of the other files and of the folder.
    """

    path: str
    extents: dict[int, int]
    other: int


def object_folders(objects: str) -> Iterator[ObjectFolder]:
    """Yield the folders of all objects; those that vanish meanwhile are left out.

    Args:
        objects: the folder of all objects.
    """
    for above in _folders(objects):
        for path in _folders(above):
            with contextlib.suppress(OSError):
                yield _object_folder(path)


def extents_by_need(folder: ObjectFolder, now: int) -> list[_OnDisk]:
    """Return the extents of an object, each with the place that it has in the order of removal.

    Args:
        folder: the folder of the object.
        now: the seconds since 1970.
    """
    found = read_entries(folder.path)
    if found is None:
        return [_OnDisk(False, 0, folder.path, number, size, 0) for number, size in folder.extents.items()]  # noqa: FBT003
    units, entries = found
    result = []
    for number, size in folder.extents.items():
        own = entries[number * units : (number + 1) * units]
        own = own[own["digest"] != 0]
        used, needed = (int(own[name].max(initial=0)) for name in ("used", "needed"))
        is_needed = needed >= now
        result.append(_OnDisk(is_needed, -needed if is_needed else used, folder.path, number, size, units))
    return result


def remove_until(objects: str, most_bytes: int, *, now: int, spares: bool) -> Removed:
    """Remove extents until all that is left takes no more than some bytes, and return what was done.

    Only the holder of the ledger's lock may call this.

    Args:
        objects: the folder of all objects.
        most_bytes: the bytes that may be left.
        now: the seconds since 1970.
        spares: True to remove no extent that a plan still needs.
    """
    folders = {folder.path: folder for folder in object_folders(objects)}
    left = sum(folder.other + sum(folder.extents.values()) for folder in folders.values())
    before, spared = left, False
    if left > most_bytes:
        extents = sorted(each for folder in folders.values() for each in extents_by_need(folder, now))
        remaining = {path: len(folder.extents) for path, folder in folders.items()}
        for path in [path for path, number in remaining.items() if not number]:
            shutil.rmtree(path, ignore_errors=True)
            left -= folders[path].other
        for each in extents:
            if left <= most_bytes:
                break
            if spares and each.is_needed:
                spared = True
                break
            _remove(each)
            left -= each.size
            remaining[each.folder] -= 1
            if not remaining[each.folder]:
                shutil.rmtree(each.folder, ignore_errors=True)
                left -= folders[each.folder].other
    return Removed(left, before - left, spared)


def _remove(extent: _OnDisk) -> None:
    """Remove an extent: first its entries, so that no reader looks for it, then its file."""
    with contextlib.suppress(OSError):
        if extent.units:
            side = os.open(os.path.join(extent.folder, SIDE), os.O_WRONLY | os.O_CLOEXEC)
            try:
                at = HEADER.size + ENTRY.size * extent.units * extent.number
                count = min(ENTRY.size * extent.units, os.fstat(side).st_size - at)
                os.pwrite(side, bytes(max(count, 0)), at)
            finally:
                os.close(side)
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(extent.folder, f"{extent.number:05d}{EXTENT_SUFFIX}"))


def _object_folder(path: str) -> ObjectFolder:
    extents, other = {}, os.stat(path).st_blocks * _BLOCK
    with os.scandir(path) as entries:
        for entry in entries:
            size = entry.stat(follow_symlinks=False).st_blocks * _BLOCK
            stem, suffix = os.path.splitext(entry.name)
            if suffix == EXTENT_SUFFIX and stem.isdecimal():
                extents[int(stem)] = size
            else:
                other += size
    return ObjectFolder(path, extents, other)


def _folders(path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
