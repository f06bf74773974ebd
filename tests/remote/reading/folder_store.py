"""A store over a folder of this machine, in this process, that notes its requests."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
from dataclasses import fields
from typing import TYPE_CHECKING, Any
from unittest import mock

from msgspec import structs

import seekable as sk
from seekable.errors import DataNotFound, IndexStale
from seekable.index.fileset import FileSet
from seekable.nodes.node import Node
from seekable.remote import mounts
from seekable.remote.fetching import fetcher as fetchers
from seekable.remote.fetching import sending
from seekable.remote.stores.object_store import Stat

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from seekable.remote.stores.object_store import FolderListing, Pin

_NUMBERS = itertools.count()


class FolderStore:
    """The files below a folder as the objects of a bucket; an etag is a file's time."""

    fork_safe = True

    def __init__(self, root: Path, address: str) -> None:
        self.root, self.address = root, address
        self.reads: list[tuple[str, int, int]] = []
        """The key, the first byte and the byte behind the last of each read."""
        self.listings = 0
        self._ended = 0
        self._depths: list[int] = []

    @property
    def read_bytes(self) -> int:
        return sum(stop - start for _, start, stop in self.reads)

    @property
    def round_trips(self) -> int:
        """The length of the longest chain of reads each of which began when the one before had ended."""
        return max(self._depths, default=0)

    def forget(self) -> None:
        self.reads, self._depths, self._ended, self.listings = [], [], 0, 0

    def shown(self, key: str) -> str:
        return f"{self.address}/{key}"

    def _stat(self, path: Path) -> Stat:
        status = path.stat()
        key = path.relative_to(self.root).as_posix()
        return Stat(key, status.st_size, f'"{status.st_mtime_ns}"', None, status.st_mtime_ns)

    async def stat(self, key: str) -> Stat:
        path = self.root / key
        if not path.is_file():
            raise DataNotFound(self.shown(key))
        return self._stat(path)

    async def read(self, key: str, start: int, stop: int, *, pin: Pin) -> bytes:
        self.reads.append((key, start, stop))
        depth = self._ended + 1
        await asyncio.sleep(0.002)
        self._ended = max(self._ended, depth)
        self._depths.append(depth)
        stat = await self.stat(key)
        if stat.size != pin.size:
            message = f"{self.shown(key)} has another etag"
            raise IndexStale(message)
        with (self.root / key).open("rb") as file:
            return os.pread(file.fileno(), stop - start, start)

    async def list(self, prefix: str, *, after: str = "", before: str = "") -> AsyncIterator[list[Stat]]:
        self.listings += 1
        below = sorted(path for path in (self.root / prefix).rglob("*") if path.is_file())
        stats = [self._stat(path) for path in below]
        yield [stat for stat in stats if stat.key > after and (not before or stat.key < before)]

    async def list_folder(self, prefix: str) -> FolderListing:
        self.listings += 1
        folder = self.root / prefix
        if not folder.is_dir():
            return [], []
        below = sorted(folder.iterdir())
        return (
            [path.relative_to(self.root).as_posix() for path in below if path.is_dir()],
            [self._stat(path) for path in below if path.is_file()],
        )

    async def put(self, key: str, data: object, *, replacing: object) -> Stat:
        raise NotImplementedError

    async def delete(self, key: str) -> None:
        raise NotImplementedError


@contextlib.contextmanager
def mounted(root: Path) -> Iterator[FolderStore]:
    """Mount a folder under an address that no other test has, with a new fetcher.

    Its requests are counted: none is sent twice because it is late, as some are on a busy machine.
    """
    address = f"s3://folder-{next(_NUMBERS)}"
    store = FolderStore(root, address)
    place = (address, os.getpid())
    with (
        mock.patch.dict(mounts._stores, {place: store}),
        mock.patch.dict(fetchers._FETCHERS, clear=True),
        mock.patch.object(sending, "may_hedge", return_value=False),
    ):
        yield store
        fetchers.fetcher().close()


def over_objects(dataset: sk.Dataset, root: Path, address: str) -> sk.Dataset:
    """Return a dataset whose files below a folder are objects of the store that it is mounted as.

    The index stays that of the local files.
    """
    made: dict[int, Node] = {}

    def moved(value: Any) -> Any:
        if isinstance(value, FileSet):
            parts = [
                structs.replace(part, root=part.root.replace(str(root), address)) for part in value._parts
            ]
            return FileSet(tuple(parts))
        if isinstance(value, tuple) and any(isinstance(part, Node | FileSet) for part in value):
            return tuple(map(moved, value))
        if not isinstance(value, Node):
            return value
        if id(value) not in made:
            node = object.__new__(type(value))
            for field in fields(value):  # type: ignore[arg-type]  # nodes are dataclasses
                object.__setattr__(node, field.name, moved(getattr(value, field.name)))
            made[id(value)] = node
        return made[id(value)]

    return sk.Dataset(moved(dataset._node))
