"""A store that has keys alone, for tests of listings."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING
from unittest import mock

from seekable.errors import DataNotFound
from seekable.remote.fetching.fetcher import Fetcher
from seekable.remote.listing import key_listing
from seekable.remote.stores.object_store import Stat, Store
from seekable.storage.addresses import parse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from collections.abc import Set as AbstractSet

    from seekable.remote.stores.object_store import FolderListing, Page, Pin

BUCKET = "s3://keys"


class KeyStore(Store):
    fork_safe = True

    def __init__(self, keys: dict[str, bytes]) -> None:
        self.keys = keys
        self.requests: list[str] = []
        self.begun: list[tuple[str, str]] = []

    def shown(self, key: str) -> str:
        return f"{BUCKET}/{key}"

    async def stat(self, key: str) -> Stat:
        self.requests.append(f"stat {key}")
        if key not in self.keys:
            raise DataNotFound(key)
        return self._stat(key)

    def _stat(self, key: str) -> Stat:
        return Stat(key, len(self.keys[key]), f'"{key}"', None, 0)

    async def list(self, prefix: str, *, after: str = "", before: str = "") -> AsyncIterator[Page]:
        self.begun.append((after, before))
        start = f"{prefix.rstrip('/')}/" if prefix else ""
        keys = [key for key in sorted(self.keys) if key.startswith(start) and key > after]
        keys = [key for key in keys if not before or key < before]
        for first in range(0, len(keys), 3):
            self.requests.append(f"list {prefix}")
            yield [self._stat(key) for key in keys[first : first + 3]]

    async def list_folder(self, prefix: str) -> FolderListing:
        self.requests.append(f"list_folder {prefix}")
        start = f"{prefix.rstrip('/')}/" if prefix else ""
        below = [key for key in sorted(self.keys) if key.startswith(start)]
        folders = {start + key[len(start) :].partition("/")[0] for key in below if "/" in key[len(start) :]}
        return sorted(folders), [self._stat(key) for key in below if "/" not in key[len(start) :]]

    async def read(self, key: str, start: int, stop: int, *, pin: Pin) -> bytes:
        raise NotImplementedError

    async def put(self, key: str, data: object, *, replacing: object) -> Stat:
        raise NotImplementedError

    async def delete(self, key: str) -> None:
        raise NotImplementedError


@contextlib.contextmanager
def mounted_keys(keys: set[str], *, empty: AbstractSet[str] = frozenset()) -> Iterator[KeyStore]:
    """Let all addresses lead to a store of these keys, and of empty objects."""
    store = KeyStore(dict.fromkeys(keys, b"x\n") | dict.fromkeys(empty, b""))
    fetcher = Fetcher(lambda path: (store, parse(path).key))
    with mock.patch.object(key_listing, "fetcher", return_value=fetcher), contextlib.closing(fetcher):
        yield store
