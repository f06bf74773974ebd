"""The objects of a cache that a process has open: a bounded number of them, and of their maps."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

import msgspec

from seekable.remote.cache.extents import Extent, KeptObject
from seekable.storage.files import drop_pages
from seekable.storage.object_key import parsed_key

if TYPE_CHECKING:
    from seekable.storage.object_key import ObjectKey

__all__ = ["CacheCounts", "OpenObjects", "folder_of"]

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
            units: the numbers of the units.
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
        for ref_key, kept in list(self._objects.items()):
            if not self.compare(ref_key):
                kept.drop_old_extents()

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
            for kept in list(self._objects.values()):
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
