"""The room of a cache on disk: its ledger, which processes share, what is in it, and the eviction of extents.

The file ``ledger`` holds the bytes that the cache takes, and the limit that was chosen when the folder was
made. It is locked while units are written and while extents are removed, and what is going to be written
counts before, so the number is never too low. A killed process may leave it too high by what it was writing
or removing, until the next sweep counts again.

First those extents go that were unused for the longest time. Extents with units that a running plan still
needs go last, those that it needs latest first.
"""

from __future__ import annotations

import contextlib
import fcntl
import fnmatch
import os
import shutil
import struct
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, final

import msgspec
import xxhash

from seekable.remote.cache.extents import ABOUT, ENTRY, EXTENT_SUFFIX, HEADER, SIDE, read_entries
from seekable.storage.addresses import UNIT_BYTES
from seekable.storage.files import make_private_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.remote.cache.extents import CacheCounts

__all__ = [
    "LEFT",
    "CachedObject",
    "DiskRoom",
    "Ledger",
    "LedgerLines",
    "ObjectFolder",
    "Removed",
    "cached_objects",
    "free_bytes",
    "is_chosen",
    "object_folders",
    "remove_until",
]

_LINES = struct.Struct("=8sQQ")
_MAGIC = b"seekRL1\n"
_DIGEST_BYTES = 8

_PATIENCE_SECONDS = 2.0
"""A stopped process may hold the lock: after this time the others go on without keeping their bytes."""

_FIRST_PAUSE, _LONGEST_PAUSE = 20e-6, 2e-3
_FREE_SHARE = 20
"""One part in so many of the disk stays free."""

LEFT = 0.9
"""The share of the limit that is left by a sweep, so that the next one is not due at once."""

_BLOCK = 512

_RETRY_SECONDS = 10.0
"""The time for which nothing is kept after a sweep that could not make room."""

_SPARED_SECONDS, _SWEEP_SHARE = 0.5, 20
"""That time if a plan needs what is kept: the least seconds, and so many times the time of the sweep."""


class LedgerLines:
    """The content of a ledger, while its lock is held.

    Attributes:
        used: the bytes that the cache takes; None if they must be counted.
        chosen_bytes: the limit that was chosen when the folder was made.
        noted: the bytes that the file says; None if it says nothing.
    """

    __slots__ = ("chosen_bytes", "noted", "used")

    def __init__(self, used: int | None, chosen_bytes: int) -> None:
        self.used = self.noted = used
        self.chosen_bytes = chosen_bytes


class Ledger:
    """The ledger of one folder. Safe from threads and other processes; a forked child calls `forget`."""

    def __init__(self, folder: str) -> None:
        """Name the file, which is not opened yet.

        Args:
            folder: the folder of the cache; it is made when it is needed.
        """
        self._folder = folder
        self._path = os.path.join(folder, "ledger")
        self._descriptor = -1
        self.forget()

    def forget(self) -> None:
        """Close the file, and take a new lock. The lock of a parent process stays."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1
        self._mutex = threading.Lock()

    def __del__(self) -> None:
        """Close the file of the ledger."""
        # When the interpreter ends, names of modules become None before the last objects go.
        if os is not None and getattr(self, "_descriptor", -1) >= 0:
            os.close(self._descriptor)

    @contextlib.contextmanager
    def locked(self) -> Iterator[LedgerLines]:
        """Hold the lock; what the block has changed in the lines is written at its end.

        Raises:
            OSError: the folder cannot be written, or another process holds the lock for two seconds.
        """
        with self._mutex:
            descriptor = self._locked_descriptor()
            try:
                lines = self._read(descriptor)
                try:
                    yield lines
                finally:
                    _write(descriptor, lines)
            finally:
                fcntl.flock(descriptor, fcntl.LOCK_UN)

    def note(self, lines: LedgerLines) -> None:
        """Write lines now, before the block that holds the lock ends.

        Args:
            lines: the lines of that block.

        Raises:
            OSError: the disk is full, or cannot be written.
        """
        _write(self._descriptor, lines)

    def peek(self) -> LedgerLines | None:
        """Return the lines without the lock, None if there is no valid ledger."""
        try:
            with open(self._path, "rb") as file:
                return _parsed(file.read())
        except OSError:
            return None

    def _locked_descriptor(self) -> int:
        """Return the locked file, which is the one on disk.

        Raises:
            OSError: the folder cannot be written, or another process holds the lock for two seconds.
        """
        stop = time.monotonic() + _PATIENCE_SECONDS
        while True:
            if self._descriptor < 0:
                make_private_folder(self._folder)
                self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            _wait_for(self._descriptor, stop)
            # The folder may be deleted at any time.
            if os.fstat(self._descriptor).st_nlink:
                return self._descriptor
            os.close(self._descriptor)
            self._descriptor = -1

    def _read(self, descriptor: int) -> LedgerLines:
        lines = _parsed(os.pread(descriptor, _LINES.size + _DIGEST_BYTES, 0))
        if lines is not None:
            return lines
        # The folder was made now, or its ledger is damaged: the next sweep counts.
        status = os.statvfs(self._folder)
        return LedgerLines(None, status.f_bavail * status.f_frsize // 2)


def free_bytes(folder: str) -> int:
    """Return the bytes that may still be written to the disk of a folder, so that 5 % of it stay free.

    The number is negative if less is free.

    Raises:
        OSError: there is no such folder.
    """
    status = os.statvfs(folder)
    return (status.f_bavail - status.f_blocks // _FREE_SHARE) * status.f_frsize


def _wait_for(descriptor: int, stop: float) -> None:
    pause = _FIRST_PAUSE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > stop:
                raise
        else:
            return
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def _parsed(text: bytes) -> LedgerLines | None:
    if len(text) < _LINES.size + _DIGEST_BYTES:
        return None
    head, digest = text[: _LINES.size], text[_LINES.size : _LINES.size + _DIGEST_BYTES]
    magic, used, chosen = _LINES.unpack(head)
    if magic != _MAGIC or xxhash.xxh3_64_digest(head) != digest:
        return None
    return LedgerLines(used, chosen)


def _write(descriptor: int, lines: LedgerLines) -> None:
    if lines.used is not None and lines.used != lines.noted:
        head = _LINES.pack(_MAGIC, lines.used, lines.chosen_bytes)
        os.pwrite(descriptor, head + xxhash.xxh3_64_digest(head), 0)
        lines.noted = lines.used


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
class DiskRoom:
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

    def limit(self, lines: LedgerLines) -> int:
        """Return the most bytes that the cache takes on disk."""
        return lines.chosen_bytes if self._most_bytes is None else self._most_bytes

    def has_room(self, lines: LedgerLines, size: int) -> bool:
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

    def sweep(self, lines: LedgerLines, most_bytes: int, *, spares: bool) -> Removed:
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

    def _fits(self, lines: LedgerLines, size: int, free: int) -> bool:
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


def _extents_by_need(folder: ObjectFolder, now: int) -> list[_OnDisk]:
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
        extents = sorted(each for folder in folders.values() for each in _extents_by_need(folder, now))
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


@dataclass(frozen=True, slots=True)
class CachedObject:
    """An object of which some bytes are on disk.

    Attributes:
        address: its address; ``?`` if its description is damaged.
        etag: its etag, None if it has none.
        size: its number of bytes.
        kept_bytes: the bytes of it that are on disk.
        disk_bytes: the bytes that its files take on disk.
        used: the time of last use, in seconds since 1970; 0 if no unit is on disk.
        is_needed: True if a plan that runs needs some of its units.
        folder: the folder of its files.
    """

    address: str
    etag: str | None
    size: int
    kept_bytes: int
    disk_bytes: int
    used: int
    is_needed: bool
    folder: str


def cached_objects(objects: str) -> Iterator[CachedObject]:
    """Yield the objects on disk, in no order; those that vanish meanwhile are left out.

    Args:
        objects: the folder of all objects.
    """
    now = int(time.time())
    for folder in object_folders(objects):
        with contextlib.suppress(FileNotFoundError):
            yield _cached_object(folder, now)


def is_chosen(address: str, patterns: Sequence[str]) -> bool:
    """Return True if an address is one of some addresses, lies below one, or fits one as a pattern.

    Example:
        >>> [is_chosen("s3://bucket/web/a", [each]) for each in ("s3://bucket/web", "s3://bucket/w", "*/a")]
        [True, False, True]
    """
    return any(
        address == pattern
        or address.startswith(f"{pattern.rstrip('/')}/")
        or fnmatch.fnmatchcase(address, pattern)
        for pattern in patterns
    )


def _cached_object(folder: ObjectFolder, now: int) -> CachedObject:
    about = _about(folder.path)
    size = about.get("size")
    size = size if isinstance(size, int) else 0
    found = read_entries(folder.path)
    kept = used = needed = 0
    if found is not None:
        entries = found[1]
        here = entries["digest"] != 0
        kept = int(here.sum()) * UNIT_BYTES
        if here.size and here[-1]:  # The last unit is shorter.
            kept -= max(here.size * UNIT_BYTES - size, 0)
        used, needed = (int(entries[name][here].max(initial=0)) for name in ("used", "needed"))
    return CachedObject(
        address=str(about.get("address", "?")),
        etag=about.get("etag"),
        size=size,
        kept_bytes=max(kept, 0),
        disk_bytes=folder.other + sum(folder.extents.values()),
        used=used,
        is_needed=needed >= now,
        folder=folder.path,
    )


def _about(folder: str) -> dict[str, Any]:
    try:
        with open(os.path.join(folder, ABOUT), "rb") as file:
            about = msgspec.json.decode(file.read())
    except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return about if isinstance(about, dict) else {}
