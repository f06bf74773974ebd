"""A store in memory that counts what is asked of it."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import xxhash

from seekable.errors import DataNotFound, IndexStale
from seekable.remote.stores.object_store import Stat

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from typing_extensions import Buffer

    from seekable.remote.stores.object_store import FolderListing, Page, Pin

    Read = tuple[str, int, int]
    """The key of an object, the first byte, and the byte behind the last."""


@dataclass(eq=False)
class CountingStore:
    """Objects in memory; `reads`, `stats`, `lists` and `puts` have all requests, in their order."""

    mount: str
    objects: dict[str, bytes] = field(default_factory=dict)
    reads: list[Read] = field(default_factory=list)
    stats: list[str] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)
    puts: list[str] = field(default_factory=list)
    fork_safe: bool = True
    lacks: str = ""
    lists_in_order: bool = False
    most_reads: int | None = None
    """The reads after which all others fail with `Killed`; None for no such end."""

    together: int = 0
    """Each read waits until so many have begun."""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._have_begun = asyncio.Event()

    @property
    def bytes_read(self) -> int:
        """The number of bytes that were read."""
        return sum(stop - start for _, start, stop in self.reads)

    def forget(self) -> None:
        """Forget what was asked so far."""
        for requests in (self.reads, self.stats, self.lists, self.puts):
            requests.clear()

    def shown(self, key: str) -> str:
        """Return the address of an object."""
        return f"{self.mount}/{key}"

    def stat_now(self, key: str) -> Stat:
        """Return the description of an object, without a request."""
        if key not in self.objects:
            raise DataNotFound(f"there is no object {self.shown(key)!r}")
        data = self.objects[key]
        return Stat(key, len(data), f'"{xxhash.xxh3_64_hexdigest(data)}"', None, 1_600_000_000 * 10**9)

    async def stat(self, key: str) -> Stat:
        """Return the size and the etag of an object."""
        self.stats.append(key)
        return self.stat_now(key)

    async def read(self, key: str, start: int, stop: int, *, pin: Pin) -> Buffer:
        """Return a range of an object."""
        with self._lock:
            if self.most_reads is not None and len(self.reads) >= self.most_reads:
                raise KilledBuild
            self.reads.append((key, start, stop))
        if len(self.reads) >= self.together:
            self._have_begun.set()
        await asyncio.wait_for(self._have_begun.wait(), 20)
        found = self.stat_now(key)
        if (found.size, found.identity) != (pin.size, pin.identity):
            raise IndexStale(f"{self.shown(key)!r} is of another version")
        assert 0 <= start < stop <= found.size
        return self.objects[key][start:stop]

    async def list(self, prefix: str, *, after: str = "", before: str = "") -> AsyncIterator[Page]:
        """Yield all objects of a folder, in one page."""
        self.lists.append(prefix)
        folder = prefix and prefix.rstrip("/") + "/"
        yield [
            self.stat_now(key)
            for key in sorted(self.objects)
            if key.startswith(folder) and key > after and (not before or key < before)
        ]

    async def list_folder(self, prefix: str) -> FolderListing:
        """Return what lies directly in a folder."""
        self.lists.append(prefix)
        folder = prefix and prefix.rstrip("/") + "/"
        below = [key for key in sorted(self.objects) if key.startswith(folder)]
        folders = dict.fromkeys(
            folder + key[len(folder) :].partition("/")[0] for key in below if "/" in key[len(folder) :]
        )
        return list(folders), [self.stat_now(key) for key in below if "/" not in key[len(folder) :]]

    async def put(self, key: str, data: Buffer, *, replacing: Stat | Literal["any"] | None) -> Stat:
        """Write an object."""
        with self._lock:
            self.puts.append(key)
            if replacing is None and key in self.objects:
                raise FileExistsError(key)
            if isinstance(replacing, Stat) and (
                key not in self.objects or self.stat_now(key).etag != replacing.etag
            ):
                raise IndexStale(f"{self.shown(key)!r} is of another version")
            self.objects[key] = bytes(data)
        return self.stat_now(key)

    async def delete(self, key: str) -> None:
        """Remove an object."""
        self.objects.pop(key, None)


class KilledBuild(Exception):
    """Stands for the end of the process."""
