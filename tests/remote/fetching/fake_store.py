"""A store in memory whose answers follow a script."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from seekable.errors import DataNotFound
from seekable.remote.fetching.fetcher import Fetcher
from seekable.remote.fetching.wants import ObjectRef
from seekable.remote.stores.object_store import FolderListing, Page, Pin, Stat, Store

Fault = Callable[[], Awaitable[None]]
"""Awaited before a request is answered: it may wait, or raise."""


async def good() -> None:
    """The request is answered."""


def failing(error: Exception) -> Fault:
    async def fail() -> None:
        raise error

    return fail


async def hang() -> None:
    await asyncio.Event().wait()


def content(size: int, seed: int = 0) -> bytes:
    index = np.arange(size)
    return ((index * 131 + index // 251 + seed) % 256).astype(np.uint8).tobytes()


@dataclass
class FakeStore(Store):
    """Objects in memory. Requests are recorded, and each meets the next fault of the script."""

    objects: dict[str, bytes]
    faults: Iterable[Fault] = ()
    fork_safe: bool = True
    reads: list[tuple[str, int, int]] = field(default_factory=list)
    cancelled: int = 0
    open: int = 0
    most_open: int = 0

    def __post_init__(self) -> None:
        self.script: Iterator[Fault] = itertools.chain(self.faults, itertools.repeat(good))

    def shown(self, key: str) -> str:
        return f"fake://bucket/{key}"

    async def _meet(self) -> None:
        self.open += 1
        self.most_open = max(self.open, self.most_open)
        try:
            await next(self.script)()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.open -= 1

    async def stat(self, key: str) -> Stat:
        await self._meet()
        if key not in self.objects:
            raise DataNotFound(self.shown(key))
        return Stat(key, len(self.objects[key]), "etag", None, 0)

    async def read(self, key: str, start: int, stop: int, *, pin: Pin) -> bytes:
        assert 0 <= start < stop <= pin.size
        self.reads.append((key, start, stop))
        await self._meet()
        return self.objects[key][start:stop]

    async def list(self, prefix: str, *, after: str = "", before: str = "") -> AsyncIterator[Page]:
        keys = sorted(key for key in self.objects if key > after and (not before or key < before))
        for first in range(0, len(keys), 2):
            await self._meet()
            yield [Stat(key, len(self.objects[key]), "etag", None, 0) for key in keys[first : first + 2]]

    async def list_folder(self, prefix: str) -> FolderListing:
        await self._meet()
        return [], []

    async def put(self, key: str, data: object, *, replacing: object) -> Stat:
        await self._meet()
        self.objects[key] = bytes(data)  # type: ignore[call-overload]
        return Stat(key, len(self.objects[key]), "etag", None, 0)

    async def delete(self, key: str) -> None:
        await self._meet()
        self.objects.pop(key, None)

    def ref(self, key: str) -> ObjectRef:
        return ObjectRef(f"fake://bucket/{key}", Pin(len(self.objects[key]), 1))

    def store_of(self, path: str) -> tuple[Store, str]:
        return self, path.removeprefix("fake://bucket/")

    def fetcher(self) -> Fetcher:
        return Fetcher(self.store_of)
