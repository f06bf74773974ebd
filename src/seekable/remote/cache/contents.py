"""The objects that a cache on disk holds, for people."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from seekable.remote.cache.eviction import object_folders
from seekable.remote.cache.extents import ABOUT, read_entries
from seekable.storage.object_key import UNIT_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.remote.cache.eviction import ObjectFolder

__all__ = ["CachedObject", "cached_objects", "is_chosen"]


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
