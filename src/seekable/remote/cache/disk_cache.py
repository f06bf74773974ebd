"""The cache on disk: units of 256 KiB of objects, bounded in bytes, shared by the processes of a machine.

The folder is ``SEEKABLE_REMOTE_DIR``, else ``remote`` in the user's cache folder::

    objects/<2 hex digits>/<32 hex digits>/   an object of one address, content and size
    ledger                                    the bytes that all take, and the lock of writers
    claims                                    the locks of those who fetch
    own/<limit>-<16 hex digits>/              the cache of a dataset that was opened with ``cache=``

The limit is ``SEEKABLE_REMOTE_BYTES`` (0 for no cache), else half of what was free when the folder was made.
Each cache of a dataset has the same files, and a limit of its own. 5 % of the disk stay free in any case.
Nothing here is precious: the folder may be deleted at any time. A disk that is full, or cannot be written, is
no error; then bytes are read and not kept.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import os
import shutil
import struct
import sys
import threading
import time
import weakref
from typing import TYPE_CHECKING, Self

from seekable.errors import InvalidArgument
from seekable.remote.cache.disk_room import CachedObject, DiskRoom, Ledger, cached_objects, is_chosen
from seekable.remote.cache.extents import (
    CacheCounts,
    OpenObjects,
    create_object,
    folder_of,
)
from seekable.storage.access import CacheChoice
from seekable.storage.addresses import UNIT_BYTES, ObjectKey, extent_units, object_key, parsed_key
from seekable.storage.files import cache_folder, make_private_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from typing_extensions import Buffer

    from seekable.remote.cache.extents import Extent

__all__ = [
    "BYTES_VARIABLE",
    "FOLDER_VARIABLE",
    "UNIT_BYTES",
    "CacheCounts",
    "Claims",
    "DiskCache",
    "UnitClaim",
    "disk_cache",
    "disk_caches",
    "is_network_folder",
    "object_key",
    "remote_folder",
]

FOLDER_VARIABLE = "SEEKABLE_REMOTE_DIR"
BYTES_VARIABLE = "SEEKABLE_REMOTE_BYTES"

_OWN = "own"
"""The folder, in that of the cache, of the caches of single datasets."""

_PAGE = 4096
_OBJECT_OVERHEAD = 4 * _PAGE
"""The bytes on disk of the files of an object, besides its extents: folder, entries, description."""

_CLAIMS = (1 << 61) - 1

_UNITS_TOGETHER, _LARGE_BYTES = 32, 512 << 20
"""The units that are written under one lock, from a multiple of them on; one in smaller caches."""


def remote_folder() -> str:
    """Return the folder of the cache: ``SEEKABLE_REMOTE_DIR``, or ``remote`` in the user's cache folder."""
    chosen = os.environ.get(FOLDER_VARIABLE, "")
    return os.path.abspath(chosen or os.path.join(cache_folder(), "remote"))


def disk_cache(choice: CacheChoice | None = None) -> DiskCache | None:
    """Return a cache of this machine, None where none is wanted.

    Args:
        choice: the choice of a dataset; None for the cache that all others share, with the limit
            ``SEEKABLE_REMOTE_BYTES``.

    Raises:
        InvalidArgument: the variable is not a number of bytes.
    """
    most_bytes = _bytes_of_all() if choice is None else choice.most_bytes
    if most_bytes == 0:
        return None
    return _cache_in(remote_folder() if choice is None else _own_folder(choice), most_bytes)


def disk_caches() -> list[DiskCache]:
    """Return the caches of this machine, used or not: the shared one, then those of datasets.

    Raises:
        InvalidArgument: ``SEEKABLE_REMOTE_BYTES`` is not a number of bytes.
    """
    names: list[str] = []
    with contextlib.suppress(OSError):
        names = sorted(os.listdir(os.path.join(remote_folder(), _OWN)))
    choices = [choice for name in names if (choice := CacheChoice.named(name)) is not None]
    return [
        DiskCache(remote_folder(), most_bytes=_bytes_of_all()),
        *(DiskCache(_own_folder(choice), most_bytes=choice.most_bytes) for choice in choices),
    ]


def _own_folder(choice: CacheChoice) -> str:
    return os.path.join(remote_folder(), _OWN, choice.name)


def _bytes_of_all() -> int | None:
    """Return the limit that ``SEEKABLE_REMOTE_BYTES`` sets, None if it sets none.

    Raises:
        InvalidArgument: the variable is not a number of bytes.
    """
    chosen = os.environ.get(BYTES_VARIABLE, "")
    if chosen and not chosen.isdecimal():
        message = f"{BYTES_VARIABLE} must be a number of bytes, such as {16 << 30}, or 0 (got {chosen!r})"
        raise InvalidArgument(message)
    return int(chosen) if chosen else None


@functools.lru_cache(maxsize=64)  # Each takes descriptors.
def _cache_in(folder: str, most_bytes: int | None) -> DiskCache:
    """Return the cache in a folder: one object in each process, which keeps the maps.

    Args:
        folder: the folder.
        most_bytes: its limit; None for the limit that was chosen when the folder was made.
    """
    cache = DiskCache(folder, most_bytes=most_bytes)
    if most_bytes is not None and cache.used_bytes() > most_bytes:
        with contextlib.suppress(OSError):  # The limit is lower than before.
            cache.sweep()
    return cache


class DiskCache:
    """Units of objects in one folder. Safe from threads, from other processes, and in a forked child.

    Attributes:
        folder: the folder.
        counts: what this process did with the cache.

    Example:
        >>> import tempfile
        >>> key = object_key("s3://bucket/a.jsonl", size=8, identity=7)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     cache = DiskCache(folder, most_bytes=1 << 20)
        ...     cache.save(key, 0, b"good day")
        ...     [bytes(unit) for unit in cache.load(key, 0, 8)]
        [b'good day']
    """

    def __init__(self, folder: str, *, most_bytes: int | None = None) -> None:
        """Name the folder; no file is accessed yet.

        Args:
            folder: the folder; it is made when it is needed.
            most_bytes: the most bytes that the cache takes on disk; None for the limit that is kept in the
                folder, which is half of what was free when it was made.
        """
        self.folder = folder
        self.counts = CacheCounts()
        self._objects_folder = os.path.join(folder, "objects")
        self._most_bytes = most_bytes
        self._chosen_bytes: int | None = None
        self._ledger = Ledger(folder)
        self._claims = Claims(folder)
        self._start()
        _caches.add(self)

    def _start(self) -> None:
        self._open_objects = OpenObjects(self._objects_folder)
        self._room = DiskRoom(
            self.folder, self._objects_folder, most_bytes=self._most_bytes, counts=self.counts
        )
        self._early_needs: dict[str, dict[range, int]] = {}

    def forget(self) -> None:
        """Drop all locks and maps: in a forked child the locks are the parent's. The counts start anew."""
        self._ledger.forget()
        self._claims.forget()
        self.counts = CacheCounts()
        self._start()

    @property
    def most_bytes(self) -> int | None:
        """The limit in bytes; None if none is given and there is no folder yet."""
        if self._most_bytes is not None:
            return self._most_bytes
        if self._chosen_bytes is None:
            lines = self._ledger.peek()
            self._chosen_bytes = None if lines is None else lines.chosen_bytes
        return self._chosen_bytes

    def load(self, ref_key: str, start: int, stop: int) -> list[memoryview | None]:
        """Return the units that hold a range of an object, in their order; None for a missing or damaged one.

        The views are maps of files; they stay valid when the files are evicted.

        Args:
            ref_key: the object, as `object_key` names it.
            start: the first byte.
            stop: the byte after the last; no more than the size of the object.
        """
        units = range(start // UNIT_BYTES, -(-stop // UNIT_BYTES) if start < stop else start // UNIT_BYTES)
        extents, size = self.extents(ref_key, units), parsed_key(ref_key).size
        stops = (min((unit + 1) * UNIT_BYTES, size) for unit in units)
        return [
            None if of is None else of.data[unit * UNIT_BYTES - of.start : stop - of.start]
            for unit, stop, of in zip(units, stops, extents, strict=True)
        ]

    def extents(self, ref_key: str, units: range) -> list[Extent | None]:
        """Return the maps that have some units of an object; None for a missing or damaged one.

        Args:
            ref_key: the object, as `object_key` names it.
            units: the indexes of the units, in their order.
        """
        found, damaged = self._open_objects.read(ref_key, units, read_bytes=len(units) * UNIT_BYTES)
        hits = sum(extent is not None for extent in found)
        self.counts.hits += hits
        self.counts.misses += len(found) - hits
        self.counts.damaged += damaged
        return found

    def note_reads(self, read_bytes: int, read_units: Mapping[str, Sequence[int]]) -> None:
        """Note what was read of maps, and drop the maps of files that others have removed.

        Args:
            read_bytes: the number of bytes.
            read_units: the units of each object; their times of last use are written.
        """
        self._open_objects.note_read(read_bytes)
        self._open_objects.compare_all()
        for ref_key, units in read_units.items():
            kept = self._open_objects.open(ref_key)
            if kept is not None:
                kept.note_use(units, int(time.time()))

    def save(self, ref_key: str, unit: int, data: Buffer, *, etag: str | None = None) -> None:
        """Keep a unit; a disk that is full or cannot be written is not an error.

        Args:
            ref_key: the object, as `object_key` names it.
            unit: the index of the unit.
            data: all its bytes.
            etag: the etag of the object, for people.

        Raises:
            ValueError: the unit has another number of bytes.
        """
        key = parsed_key(ref_key)
        count = memoryview(data).nbytes
        if not 0 < count == key.unit_bytes(unit):
            message = f"unit {unit} of {key.address} has {key.unit_bytes(unit)} bytes (got {count})"
            raise ValueError(message)
        self.save_units(ref_key, unit, data, etag=etag)

    def save_units(self, ref_key: str, first: int, data: Buffer, *, etag: str | None = None) -> None:
        """Keep consecutive units; a disk that is full or cannot be written is not an error.

        Args:
            ref_key: the object, as `object_key` names it.
            first: the index of the first unit.
            data: all their bytes.
            etag: the etag of the object, for people.
        """
        key, left = parsed_key(ref_key), memoryview(data).cast("B")
        limit = self._most_bytes or _LARGE_BYTES
        together = _UNITS_TOGETHER if limit >= _LARGE_BYTES else 1
        while left:
            count = min(together - first % together, -(-left.nbytes // UNIT_BYTES))
            part, left = left[: count * UNIT_BYTES], left[count * UNIT_BYTES :]
            units = range(first, first + count)
            try:
                kept = not self._room.is_full and self._save(ref_key, key, units, part, etag)
            except BlockingIOError:  # A stopped process has the lock: do not wait for it each time.
                self._room.pause()
                kept = False
            except OSError:
                kept = False
            if kept:
                self.counts.saved += count
            else:
                self.counts.not_kept += count
            first += count

    def claim(self, ref_key: str, unit: int) -> UnitClaim | None:
        """Claim the right to fetch a unit, None if another thread or process is fetching it.

        The process that gets a claim calls `load` once more, because the unit may have been saved just
        before; then fetches it, saves it and releases the claim. The others try to get the claim until it is
        released.

        Args:
            ref_key: the object, as `object_key` names it.
            unit: the index of the unit.
        """
        return self.claim_units(ref_key, range(unit, unit + 1))

    def claim_units(self, ref_key: str, units: range) -> UnitClaim | None:
        """Claim the right to fetch some units, as `claim`; None if another is fetching one of them."""
        at = int(ref_key[:16], 16) & _CLAIMS
        return self._claims.claim(range(at + units.start, at + units.stop))

    def note_need(self, ref_key: str, units: range, seconds: float) -> None:
        """Let a plan keep some units: they are evicted by `sweep` alone, and after all others.

        Args:
            ref_key: the object, as `object_key` names it.
            units: the indexes of the units.
            seconds: the time from now on until the plan needs them for the last time; 0 if it needs them no
                more.
        """
        second = int(time.time() + seconds) + 1 if seconds > 0 else 0
        kept = self._open_objects.open(ref_key)
        if kept is not None:
            kept.note_need(units, second)
        elif second:  # It is written when the object is.
            self._early_needs.setdefault(ref_key, {})[units] = second
        else:
            self._early_needs.pop(ref_key, None)

    def contents(self) -> list[CachedObject]:
        """Return the objects of which some bytes are on disk, by address."""
        found = cached_objects(self._objects_folder)
        return sorted(found, key=lambda each: (each.address, each.folder))

    def remove(self, patterns: Sequence[str]) -> list[CachedObject]:
        """Remove objects, and return what was removed. Views of their units stay valid.

        Args:
            patterns: addresses of objects or of folders, or patterns with ``*``.

        Raises:
            OSError: the folder cannot be written.
        """
        if not os.path.isdir(self._objects_folder):
            return []
        with self._ledger.locked() as lines:
            chosen = [each for each in self.contents() if is_chosen(each.address, patterns)]
            for each in chosen:
                shutil.rmtree(each.folder)
                if lines.used is not None:
                    lines.used = max(lines.used - each.disk_bytes, 0)
        return chosen

    def used_bytes(self) -> int:
        """Return the bytes that the cache takes on disk, as its ledger says; 0 without a cache."""
        lines = self._ledger.peek()
        return 0 if lines is None or lines.used is None else lines.used

    def sweep(self, *, keep_bytes: int | None = None) -> int:
        """Count the bytes on disk, remove extents if they are too many, and return the bytes that are left.

        Args:
            keep_bytes: the bytes that may be left; None for the limit.

        Raises:
            OSError: the folder cannot be written.
        """
        with self._ledger.locked() as lines:
            limit = self._room.limit(lines) if keep_bytes is None else keep_bytes
            return self._room.sweep(lines, limit, spares=False).left

    def _save(self, ref_key: str, key: ObjectKey, units: range, data: memoryview, etag: str | None) -> bool:
        """Keep units of one extent; return False if there is no room.

        Raises:
            OSError: the disk is full, or cannot be written.
        """
        with self._ledger.locked() as lines:
            self._open_objects.compare(ref_key)
            kept = self._open_objects.open(ref_key)
            if kept is not None and all(kept.has(unit) for unit in units):
                return True
            size = -(-data.nbytes // _PAGE) * _PAGE + (0 if kept else _overhead(key))
            if not self._room.has_room(lines, size):
                return False
            assert lines.used is not None
            lines.used += size
            self._ledger.note(lines)
            try:
                self._write(ref_key, key, units, data, self._room.limit(lines), etag)
            except OSError:  # Under a quota each write may fail, and what failed takes no room.
                lines.used -= size
                raise
        return True

    def _write(
        self, ref_key: str, key: ObjectKey, units: range, data: memoryview, limit: int, etag: str | None
    ) -> None:
        second = int(time.time())
        self._open_objects.compare(ref_key)  # A sweep may have removed it.
        kept = self._open_objects.open(ref_key)
        if kept is None:
            folder = folder_of(self._objects_folder, key)
            kept = create_object(folder, key, extent_units=extent_units(limit), etag=etag)
            self._open_objects.add(ref_key, kept)
            for needed, until in list(self._early_needs.pop(ref_key, {}).items()):
                kept.note_need(needed, until)
        kept.write(units, data, second)


def _overhead(key: ObjectKey) -> int:
    entries = 16 * (2 + key.size // UNIT_BYTES)
    return _OBJECT_OVERHEAD + -(-entries // _PAGE) * _PAGE


_caches: weakref.WeakSet[DiskCache] = weakref.WeakSet()


def _forget_all() -> None:
    for cache in list(_caches):
        with contextlib.suppress(OSError):
            cache.forget()


# In a child process the locks may be held, by threads that the child does not have.
os.register_at_fork(after_in_child=_forget_all)


_SET = getattr(fcntl, "F_OFD_SETLK", None) if sys.platform == "linux" else None
_LOCK = struct.Struct("hhqqi4x")
"""``struct flock`` of 64-bit Linux: type, whence, first byte, number of bytes, process."""

_TAKEN = (errno.EAGAIN, errno.EACCES)
_NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "lustre", "gpfs", "beegfs", "glusterfs"})


class UnitClaim:
    """The right of this thread to fetch some units, until `release` or the end of a ``with`` statement."""

    __slots__ = ("_claims", "_description", "_numbers", "_process")

    def __init__(self, claims: Claims, numbers: range, description: _Description | None) -> None:
        self._claims: Claims | None = claims
        self._numbers = numbers
        self._description = description
        self._process = os.getpid()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def __del__(self) -> None:
        """Release the claim if it was not released."""
        if os is not None:  # At the end of the interpreter names of modules become None.
            self.release()

    def release(self) -> None:
        """Give the right up. A second call does nothing, and neither does the call of a forked child."""
        claims, self._claims = self._claims, None
        if claims is not None and self._process == os.getpid():
            claims.release(self._numbers, self._description)


class Claims:
    """The claims of this process in one folder. Safe from threads and from other processes.

    A claim is a lock of consecutive bytes of the file ``claims`` (an open-file-description lock of Linux). It
    costs some microseconds, and it is gone when its owner dies. Where the system or the file system has no
    such locks, a claim holds for the threads of this process alone; so it does on network file systems.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     claims = Claims(folder)
        ...     with claims.claim(range(5, 8)) as first:
        ...         second = claims.claim(range(7, 9))
        ...     third = claims.claim(range(7, 9))
        >>> first is not None, second is None, third is not None
        (True, True, True)
    """

    def __init__(self, folder: str) -> None:
        """Begin without claims; no file is opened yet.

        Args:
            folder: the folder of the file of locks; it may be missing, and no claim is refused then.
        """
        self._folder = folder
        self._path = os.path.join(folder, "claims")
        self._description: _Description | None = None
        self.forget()

    def forget(self) -> None:
        """Drop all claims without releasing them: in a forked child they are the parent's."""
        if self._description is not None:
            self._description.close()
        # The garbage collector may release a lost claim while this thread makes another one.
        self._mutex = threading.RLock()
        self._held: set[int] = set()
        self._description = None
        self._has_locks: bool | None = None

    def claim(self, numbers: range) -> UnitClaim | None:
        """Claim consecutive numbers together, None if another thread or another process has one of them.

        Args:
            numbers: numbers from 0 to 2^62, at least one.
        """
        with self._mutex:
            if not self._held.isdisjoint(numbers):
                return None
            description = self._current()
            if description is not None and not description.lock(numbers):
                return None
            self._held.update(numbers)
        return UnitClaim(self, numbers, description)

    def release(self, numbers: range, description: _Description | None) -> None:
        """Release the numbers of a claim, so that others can claim them.

        Args:
            numbers: the numbers of one claim.
            description: the open file that holds the lock of them, None if there is no lock.
        """
        with self._mutex:
            self._held.difference_update(numbers)
            if description is not None:
                description.unlock(numbers)

    def _current(self) -> _Description | None:
        """Return the open file of locks, opened again if it was deleted; None if there can be no locks."""
        if self._has_locks is None:
            self._has_locks = _SET is not None and not is_network_folder(self._folder)
        if not self._has_locks:
            return None
        if self._description is None or self._description.is_deleted():
            try:
                make_private_folder(self._folder)
                self._description = _Description(self._path)
            except OSError:
                return None
        return self._description


class _Description:
    """An open file of locks. The claims that it holds keep it open."""

    __slots__ = ("_descriptor",)

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)

    def __del__(self) -> None:
        if hasattr(self, "_descriptor") and os is not None:
            self.close()

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def is_deleted(self) -> bool:
        return os.fstat(self._descriptor).st_nlink == 0

    def lock(self, numbers: range) -> bool:
        """Lock bytes; return False if another process has one. Without support they count as locked."""
        try:
            self._set(fcntl.F_WRLCK, numbers)
        except OSError as error:
            return error.errno not in _TAKEN
        return True

    def unlock(self, numbers: range) -> None:
        with contextlib.suppress(OSError):
            self._set(fcntl.F_UNLCK, numbers)

    def _set(self, kind: int, numbers: range) -> None:
        assert _SET is not None
        fcntl.fcntl(self._descriptor, _SET, _LOCK.pack(kind, os.SEEK_SET, numbers.start, len(numbers), 0))


def is_network_folder(folder: str) -> bool:
    """Return True if a folder, or the folder above it that exists, lies on a network file system.

    Where the system has no list of mounts, the answer is False.
    """
    folder = os.path.realpath(folder)
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as file:
            mounts = [line.split()[1:3] for line in file if line.count(" ") >= 2]  # noqa: PLR2004 - its fields
    except OSError:
        return False
    best, kind = "", ""
    for path, name in mounts:
        point = path.encode("utf-8", "surrogateescape").decode("unicode_escape", "replace").rstrip("/")
        if (folder == point or folder.startswith(f"{point}/")) and len(point) >= len(best):
            best, kind = point, name
    return kind in _NETWORK or (kind.startswith("fuse.") and kind != "fuse.overlayfs")
