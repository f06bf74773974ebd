"""One object on disk: sparse files of its bytes at its own offsets, and an entry for each unit of 256 KiB.

The folder of an object has these files::

    side            a header, and 16 bytes for each unit: digest, second of last use, second of last need
    00000.ext ...   the extents: consecutive ranges of the object, of up to 64 MiB each; parts may be missing
    about.json      address, size and etag, for people and for ``seekable cache ls``

A unit is written first, and then its entry. A process that is killed between the two leaves no entry. A unit
that a crash has torn has another digest, and counts as damaged: it is fetched again. Nothing is synced.

Extents are unlinked as a whole and never punched: a map of an unlinked file keeps its bytes.

Of the objects of a cache a process has a bounded number open, and of their maps (`OpenObjects`).
"""

from __future__ import annotations

import contextlib
import os
import struct
import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, ClassVar

import msgspec
import numpy as np
import xxhash

from seekable.storage.addresses import UNIT_BYTES, parsed_key, unit_count
from seekable.storage.files import drop_pages, make_private_folder, map_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray
    from typing_extensions import Buffer

    from seekable.storage.addresses import ObjectKey

__all__ = [
    "ABOUT",
    "ENTRY",
    "EXTENT_SUFFIX",
    "HEADER",
    "SIDE",
    "CacheCounts",
    "Extent",
    "KeptObject",
    "OpenObjects",
    "create_object",
    "folder_of",
    "read_entries",
]

SIDE = "side"
ABOUT = "about.json"
EXTENT_SUFFIX = ".ext"

HEADER = struct.Struct("=8sII")
"""The first 16 bytes of ``side``: a magic number, the units of an extent, and zero."""

ENTRY = struct.Struct("=QII")
"""An entry: the digest (0 if the unit is missing), the seconds of last use and of last need, since 1970."""

_MAGIC = b"seekRC1\n"
_DTYPE = np.dtype([("digest", "=u8"), ("used", "=u4"), ("needed", "=u4")])
_MOST_UNITS = 1 << 16
_USED_AT = 8
_NEEDED_AT = 12

_MOST_OBJECTS = 4096
_MOST_MAPS = 16384
"""The system allows 65,530 maps a process. They are counted at each so many reads:"""

_READS = 1024

_RESIDENT_BYTES = 128 << 20
"""The bytes of maps that are read before their pages are given back to the system."""

_COMPARE_SECONDS = 0.5
"""The time after which the files of an object are compared again with those that are mapped."""

_USE_SECONDS = 30
"""The precision of the time of last use."""


def read_entries(folder: str) -> tuple[int, NDArray[np.void]] | None:
    """Return how many units an extent has, and the entries for all units; None without a valid file.

    Args:
        folder: the folder of the object.
    """
    try:
        with open(os.path.join(folder, SIDE), "rb") as file:
            text = file.read()
    except OSError:
        return None
    units = _extent_units(text[: HEADER.size])
    if units is None:
        return None
    whole = (len(text) - HEADER.size) // ENTRY.size
    return units, np.frombuffer(text, _DTYPE, whole, HEADER.size)


class Extent:
    """One extent, mapped, and a flag for each unit whose digest was checked.

    Attributes:
        start: the offset of its first byte in the object.
        stop: the offset of the byte after its last.
        data: its bytes; those of units that are not there are of no use.
    """

    is_kept: ClassVar[bool] = True

    __slots__ = ("__weakref__", "checked", "data", "inode", "looked", "start", "stop")

    def __init__(self, path: str, start: int, size: int, units: int) -> None:
        """Map the file of an extent.

        Raises:
            FileNotFoundError: it is not there.
            OSError: it has another size, or cannot be mapped.
        """
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            status = os.fstat(descriptor)
            if status.st_size != size:
                message = f"{path!r} has {status.st_size} bytes; expected {size}"
                raise OSError(message)
            self.inode = status.st_ino
            self.data = map_file(descriptor, size, random=True)
        finally:
            os.close(descriptor)
        self.start, self.stop = start, start + size
        self.checked = bytearray(units)
        self.looked = 0
        """The look of the object at which the file was compared with the one on disk."""


class KeptObject:
    """The units of one object that are on disk. Reads are safe from threads; the ledger's lock guards writes.

    Attributes:
        key: the name of the object, and what is to be known of it.
        damaged: the number of units that were found with another digest.
        compared_at: the ``time.monotonic`` at which its files were last compared with those on disk.
    """

    def __init__(self, folder: str, key: ObjectKey) -> None:
        """Open what is on disk.

        Args:
            folder: the folder of the object.
            key: its name.

        Raises:
            OSError: nothing of the object is on disk, or the entries are damaged.
        """
        self.key = key
        self.damaged = 0
        self._folder = folder
        self._seed = int(key.digest[:16], 16)
        self._side = os.path.join(folder, SIDE)
        size = HEADER.size + ENTRY.size * unit_count(key.size)
        descriptor = os.open(self._side, os.O_RDONLY | os.O_CLOEXEC)
        try:
            status = os.fstat(descriptor)
            units = _extent_units(os.pread(descriptor, HEADER.size, 0))
            if units is None or status.st_size != size:
                message = f"{self._side!r} is no list of {unit_count(key.size)} units"
                raise OSError(message)
            self._inode = status.st_ino
            mapped = map_file(descriptor, size)
        finally:
            os.close(descriptor)
        # Words are read in tens of nanoseconds, fields of an array of NumPy in hundreds.
        self._digests = mapped.cast("Q")
        self._seconds = mapped.cast("I")
        self._size = size
        self._extent_units = units
        self._extents: dict[int, Extent] = {}
        self._look = 1
        self.compared_at = time.monotonic()

    @property
    def maps(self) -> int:
        """The number of extents that are mapped."""
        return len(self._extents)

    @property
    def views(self) -> list[memoryview]:
        """The maps of the extents."""
        return [extent.data for extent in list(self._extents.values())]

    def is_current(self) -> bool:
        """Return True if the open file of entries is still the one on disk.

        The files of the extents are then compared with those on disk as well, each before its next use.
        """
        try:
            status = os.stat(self._side)
        except OSError:
            return False
        self._look += 1
        self.compared_at = time.monotonic()
        return status.st_ino == self._inode and status.st_size == self._size

    def drop_old_extents(self) -> None:
        """Drop the maps of extents that are no longer the files on disk."""
        for number, extent in list(self._extents.items()):
            if not self._is_on_disk(number, extent):
                self._extents.pop(number, None)

    def has(self, unit: int) -> bool:
        """Return True if there is an entry for a unit; its bytes may be damaged all the same."""
        return bool(self._digests[2 * unit + 2])

    def read(self, unit: int) -> Extent | None:
        """Return the extent that has a unit, None if the unit is missing or damaged.

        The digest is checked once for each map of an extent.
        """
        digest = self._digests[2 * unit + 2]
        if not digest:
            return None
        number, within = divmod(unit, self._extent_units)
        extent = self._extents.get(number)
        if extent is None or extent.looked != self._look or not extent.checked[within]:
            extent = self._checked(unit, digest)
        return extent

    def used_before(self, unit: int, second: int) -> bool:
        """Return True if the last noted use of a unit was before a time in seconds since 1970."""
        return self._seconds[4 * unit + 6] < second

    def note_use(self, units: Iterable[int], second: int) -> None:
        """Write the time of last use of some units; a folder that cannot be written is not an error."""
        self._write_fields(units, _USED_AT, second)

    def note_need(self, units: range, second: int) -> None:
        """Write the time of last need of some units; a folder that cannot be written is not an error."""
        self._write_fields(units, _NEEDED_AT, second)

    def write(self, units: range, data: Buffer, second: int) -> None:
        """Write units and then their entries. Only the holder of the ledger's lock may call this.

        Args:
            units: the indexes of the units, which follow each other.
            data: all of their bytes.
            second: the time of use, in seconds since 1970.

        Raises:
            OSError: the disk is full, or cannot be written; units whose bytes were not written have no entry.
        """
        whole, first = memoryview(data).cast("B"), units.start
        parts = [whole[at : at + UNIT_BYTES] for at in range(0, whole.nbytes, UNIT_BYTES)]
        while first < units.stop:
            number, within = divmod(first, self._extent_units)
            stop = min(units.stop, first + self._extent_units - within)
            low, high = (first - units.start) * UNIT_BYTES, (stop - units.start) * UNIT_BYTES
            inode = self._write_bytes(number, within * UNIT_BYTES, whole[low:high])
            self._note_own(number, inode, range(within, within + stop - first))
            first = stop
        entries = b"".join(
            ENTRY.pack(self._digest(unit, part), second, self._seconds[4 * unit + 7])
            for unit, part in zip(units, parts, strict=True)
        )
        with _opened(self._side, os.O_WRONLY) as side:
            os.pwrite(side, entries, HEADER.size + ENTRY.size * units.start)

    def _note_own(self, number: int, inode: int, units: range) -> None:
        """Note that units of an extent need no check, because this process has just written them."""
        with contextlib.suppress(OSError):
            extent = self._current_extent(number)
            if extent.inode == inode:
                extent.checked[units.start : units.stop] = bytes([1]) * len(units)

    def _write_bytes(self, number: int, start: int, data: Buffer) -> int:
        """Write a part of an extent, and return the inode of its file."""
        size = self._extent_bytes(number)
        with _opened(self._extent_path(number), os.O_RDWR | os.O_CREAT) as file:
            status = os.fstat(file)
            if status.st_size != size:
                os.ftruncate(file, size)
            left = memoryview(data).cast("B")
            while left:
                count = os.pwrite(file, left, start)
                left, start = left[count:], start + count
        return status.st_ino

    def _checked(self, unit: int, digest: int) -> Extent | None:
        """Return the extent of a unit after a check of the unit's digest, None if it does not fit."""
        number, within = divmod(unit, self._extent_units)
        try:
            extent = self._current_extent(number)
            start = within * UNIT_BYTES
            data = extent.data[start : start + self.key.unit_bytes(unit)]
            fits = bool(extent.checked[within]) or self._digest(unit, data) == digest
        except FileNotFoundError:  # It was evicted meanwhile, or someone has deleted it.
            self._drop_entry(unit, digest)
            return None
        except OSError:
            fits = False
        if not fits:
            self.damaged += 1
            self._drop_entry(unit, digest)
            return None
        extent.checked[within] = 1
        return extent

    def _current_extent(self, number: int) -> Extent:
        """Return an extent of which the map is of the file that is on disk now.

        Raises:
            OSError: it is not there (FileNotFoundError), or has another size.
        """
        extent = self._extents.get(number)
        size, path = self._extent_bytes(number), self._extent_path(number)
        looked = self._look
        if extent is not None and not self._is_on_disk(number, extent):
            extent = None
        if extent is None:
            extent = self._extents[number] = Extent(
                path, number * self._extent_units * UNIT_BYTES, size, self._extent_units
            )
        extent.looked = looked
        return extent

    def _is_on_disk(self, number: int, extent: Extent) -> bool:
        try:
            status = os.stat(self._extent_path(number))
        except OSError:
            return False
        # A map of a file that was cut would end the process at the first read after its end.
        return status.st_ino == extent.inode and status.st_size == extent.stop - extent.start

    def _drop_entry(self, unit: int, digest: int) -> None:
        if self._digests[2 * unit + 2] == digest:
            with contextlib.suppress(OSError), _opened(self._side, os.O_WRONLY) as side:
                if os.fstat(side).st_ino == self._inode:
                    os.pwrite(side, bytes(8), HEADER.size + ENTRY.size * unit)

    def _write_fields(self, units: Iterable[int], at: int, second: int) -> None:
        text = struct.pack("<I", second)
        with contextlib.suppress(OSError), _opened(self._side, os.O_WRONLY) as side:
            if os.fstat(side).st_ino == self._inode:
                for unit in units:
                    os.pwrite(side, text, HEADER.size + ENTRY.size * unit + at)

    def _extent_bytes(self, number: int) -> int:
        whole = self._extent_units * UNIT_BYTES
        return min(whole, self.key.size - number * whole)

    def _extent_path(self, number: int) -> str:
        return os.path.join(self._folder, f"{number:05d}{EXTENT_SUFFIX}")

    def _digest(self, unit: int, data: Buffer) -> int:
        # The seed ties the bytes to their place. No unit has the digest 0.
        return xxhash.xxh3_64_intdigest(data, (self._seed + unit) & (1 << 64) - 1) or 1


def create_object(folder: str, key: ObjectKey, *, extent_units: int, etag: str | None) -> KeptObject:
    """Make the files of an object of which no unit is on disk, and open it.

    Only the holder of the ledger's lock may call this. If the folder has files with damaged entries, they are
    removed.

    Args:
        folder: the folder of the object.
        key: its name.
        extent_units: the number of units of an extent.
        etag: its etag for people, None if it has none.

    Raises:
        OSError: the disk is full, or cannot be written.
    """
    make_private_folder(folder)
    for name in os.listdir(folder):
        if name.endswith(EXTENT_SUFFIX) or name == SIDE:
            os.unlink(os.path.join(folder, name))
    about = {"address": key.address, "etag": etag, "identity": key.identity, "size": key.size}
    with open(os.path.join(folder, ABOUT), "wb") as file:
        file.write(msgspec.json.encode(about) + b"\n")
    with _opened(os.path.join(folder, SIDE), os.O_RDWR | os.O_CREAT) as side:
        os.ftruncate(side, HEADER.size + ENTRY.size * unit_count(key.size))
        os.pwrite(side, HEADER.pack(_MAGIC, extent_units, 0), 0)
    return KeptObject(folder, key)


@contextlib.contextmanager
def _opened(path: str, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o666)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _extent_units(header: bytes) -> int | None:
    """Return the units of an extent that a header says, None if it is not a valid header."""
    if len(header) < HEADER.size:
        return None
    magic, units, _ = HEADER.unpack(header)
    return units if magic == _MAGIC and 0 < units <= _MOST_UNITS else None


class CacheCounts(msgspec.Struct):
    """The counts of one process that uses a cache.

    Attributes:
        hits: the units that were found.
        misses: the units that were missing or damaged.
        damaged: the units whose bytes had another digest.
        saved: the units that were written.
        not_kept: the units that were not written, because the disk is full, or cannot be written.
        evicted_bytes: the bytes on disk that were removed to make room.
    """

    hits: int = 0
    misses: int = 0
    damaged: int = 0
    saved: int = 0
    not_kept: int = 0
    evicted_bytes: int = 0


class OpenObjects:
    """The objects of one folder that are open. Safe from threads."""

    def __init__(self, folder: str) -> None:
        """Access no file yet.

        Args:
            folder: the folder of all objects.
        """
        self._folder = folder
        self._mutex = threading.Lock()
        self._objects: OrderedDict[str, KeptObject] = OrderedDict()
        self._reads = 0
        self._resident = 0

    def read(self, ref_key: str, units: range, *, read_bytes: int) -> tuple[list[Extent | None], int]:
        """Return the extents of units of an object, None for each missing or damaged unit.

        The number of damaged units comes second.

        Args:
            ref_key: the object.
            units: the indexes of the units.
            read_bytes: the bytes of them that the caller will read.
        """
        found, damaged = self._found(ref_key, units)
        if not all(found) and self.compare(ref_key):
            found, more = self._found(ref_key, units)
            damaged += more
        self.note_read(read_bytes)
        return found, damaged

    def open(self, ref_key: str) -> KeptObject | None:
        """Return an object, compared with the files on disk now and then; None if it is not there."""
        kept = self._objects.get(ref_key)
        if kept is not None and time.monotonic() - kept.compared_at >= _COMPARE_SECONDS:
            self.compare(ref_key)
            kept = self._objects.get(ref_key)
        if kept is None:
            key = parsed_key(ref_key)
            try:
                kept = KeptObject(folder_of(self._folder, key), key)
            except OSError:
                return None
            self.add(ref_key, kept)
        return kept

    def add(self, ref_key: str, kept: KeptObject) -> None:
        """Add an object, and drop the ones that were opened first if they are too many."""
        with self._mutex:
            self._objects[ref_key] = kept
            while len(self._objects) > _MOST_OBJECTS:
                self._objects.popitem(last=False)

    def compare(self, ref_key: str) -> bool:
        """Drop an open object if the files on disk are others by now; return True if it was dropped."""
        kept = self._objects.get(ref_key)
        if kept is None or kept.is_current():
            return False
        with self._mutex:
            self._objects.pop(ref_key, None)
        return True

    def compare_all(self) -> None:
        """Drop all open objects, and maps of extents, whose files on disk are others by now."""
        for ref_key, kept in self._open_now():
            if not self.compare(ref_key):
                kept.drop_old_extents()

    def _open_now(self) -> list[tuple[str, KeptObject]]:
        # While a list is made, other threads may run and open objects.
        with self._mutex:
            return list(self._objects.items())

    def _found(self, ref_key: str, units: range) -> tuple[list[Extent | None], int]:
        kept = self.open(ref_key)
        if kept is None:
            return [None] * len(units), 0
        before = kept.damaged
        found = [kept.read(unit) for unit in units]
        now = int(time.time())
        if found and found[0] is not None and kept.used_before(units.start, now - _USE_SECONDS):
            kept.note_use(units, now)
        return found, kept.damaged - before

    def note_read(self, read_bytes: int) -> None:
        """Note that bytes are read.

        After many bytes pages are given back to the system, and objects with too many maps are dropped.
        """
        self._resident += read_bytes
        if self._resident > _RESIDENT_BYTES:
            self._resident = 0
            for _, kept in self._open_now():
                for view in kept.views:
                    drop_pages(view)
        self._reads += 1
        if not self._reads % _READS:
            with self._mutex:
                if sum(kept.maps for kept in self._objects.values()) > _MOST_MAPS:
                    self._objects.clear()


def folder_of(objects: str, key: ObjectKey) -> str:
    """Return the folder of an object.

    Args:
        objects: the folder of all objects.
        key: the name of the object.
    """
    return os.path.join(objects, key.digest[:2], key.digest)
