"""The folder of a published index, ``.seekable`` beside the data of a store: its files, read and written.

All files but the catalog are named by digests and never change, so one that is there stays. The catalog is
replaced only where it is still the one that was read: of two publishers the slower one reads it again.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, final

from seekable.errors import DataNotFound, IndexStale
from seekable.remote.fetching.fetcher import fetcher
from seekable.remote.stores.store import Pin
from seekable.storage.abandoned import awaited
from seekable.storage.addresses import parse, shown
from seekable.storage.file_names import INDEX_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

    from typing_extensions import Buffer

    from seekable.remote.stores.store import Stat, Store

__all__ = ["PublishedFolder"]

_REQUEST_BYTES = 8 << 20
_AT_ONCE = 4


@final
class PublishedFolder:
    """The folder of the published index of a root. Nothing of it is kept in a cache."""

    __slots__ = ("_address", "_prefix")

    def __init__(self, root: str) -> None:
        """Name the folder; nothing is read.

        Args:
            root: the address of the folder of the data.
        """
        self._address = f"{root.rstrip('/')}/{INDEX_FOLDER}"
        self._prefix = parse(self._address).key

    @property
    def shown(self) -> str:
        """The address of the folder in messages."""
        return shown(self._address)

    def stat(self, name: str) -> Stat | None:
        """Return the description of a file, None if there is none.

        Raises:
            AccessDenied, Unreachable: the store cannot be read.
        """
        key = self._key(name)
        try:
            return fetcher().run(lambda store: store.stat(key), path=self._address)
        except DataNotFound:
            return None

    def pieces(self, stat: Stat, start: int = 0, stop: int | None = None) -> Iterator[memoryview]:
        """Yield the bytes of a file in their order, up to 8 MiB at a time.

        Args:
            stat: the file.
            start: the first byte.
            stop: the byte after the last; None for the end of the file.

        Raises:
            DataNotFound: the file is gone.
            IndexStale: it was replaced.
            AccessDenied, Unreachable: it cannot be read.
        """
        stop = stat.size if stop is None else stop
        starts = iter(range(start, stop, _REQUEST_BYTES))
        under_way: deque[Future[Buffer]] = deque()
        try:
            while True:
                while len(under_way) < _AT_ONCE and (at := next(starts, None)) is not None:
                    under_way.append(self._begin(stat, at, min(at + _REQUEST_BYTES, stop)))
                if not under_way:
                    return
                yield memoryview(awaited(under_way.popleft())).cast("B")
        finally:
            for request in under_way:
                request.cancel()

    def read(self, stat: Stat, start: int = 0, stop: int | None = None) -> bytes:
        """Return bytes of a file; arguments and errors are those of `pieces`."""
        return b"".join(self.pieces(stat, start, stop))

    def write(self, name: str, data: Buffer) -> None:
        """Write a file whose name is the digest of its content; one that is there stays.

        Raises:
            AccessDenied: the store cannot be written.
            Unreachable: the store cannot be reached.
        """
        try:
            self._put(name, data, replacing=None)
        except FileExistsError:
            return

    def replace(self, name: str, data: Buffer, *, old: Stat | None) -> bool:
        """Replace a file; return False if it is not the old one any more.

        Args:
            name: its name.
            data: the new content.
            old: the description of the file that is replaced; None if there must be none.

        Raises:
            AccessDenied: the store cannot be written.
            Unreachable: the store cannot be reached.
        """
        try:
            self._put(name, data, replacing=old)
        except (FileExistsError, IndexStale, DataNotFound):
            return False
        return True

    def between(self, first: str, last: str) -> list[Stat]:
        """Return the descriptions of the files whose names are between two others.

        Raises:
            AccessDenied, Unreachable, InvalidArgument: the store cannot be listed.
        """
        after, before = self._key(first), self._key(last)

        async def listed(store: Store) -> list[Stat]:
            pages = store.list(self._prefix, after=after, before=before)
            return [stat async for page in pages for stat in page]

        return fetcher().run(listed, path=self._address)

    def delete(self, name: str) -> None:
        """Delete a file; nothing happens if there is none."""
        key = self._key(name)
        fetcher().run(lambda store: store.delete(key), path=self._address)

    def _put(self, name: str, data: Buffer, *, replacing: Stat | None) -> None:
        key = self._key(name)
        fetcher().run(lambda store: store.put(key, data, replacing=replacing), path=self._address)

    def _begin(self, stat: Stat, start: int, stop: int) -> Future[Buffer]:
        pin = Pin(stat.size, stat.identity, stat.etag, stat.version)
        return fetcher().start(lambda store: store.read(stat.key, start, stop, pin=pin), path=self._address)

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}"
