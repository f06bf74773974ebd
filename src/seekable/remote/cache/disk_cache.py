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
import fnmatch
import functools
import os
import shutil
import time
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from seekable.errors import InvalidArgument
from seekable.remote.cache.claims import Claims, UnitClaim
from seekable.remote.cache.disk_room import DiskRoom, Ledger, object_folders
from seekable.remote.cache.extents import (
    ABOUT,
    CacheCounts,
    OpenObjects,
    create_object,
    folder_of,
    read_entries,
)
from seekable.storage.access import CacheChoice
from seekable.storage.addresses import UNIT_BYTES, ObjectKey, extent_units, object_key, parsed_key
from seekable.storage.files import cache_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from typing_extensions import Buffer

    from seekable.remote.cache.disk_room import ObjectFolder
    from seekable.remote.cache.extents import Extent

__all__ = [
    "BYTES_VARIABLE",
    "FOLDER_VARIABLE",
    "UNIT_BYTES",
    "CacheCounts",
    "CachedObject",
    "DiskCache",
    "UnitClaim",
    "disk_cache",
    "disk_caches",
    "is_chosen",
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
        found = _cached_objects(self._objects_folder)
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


def _cached_objects(objects: str) -> Iterator[CachedObject]:
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
