"""The files of a web server of which some are read by their whole URL: each URL has a client of its own."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Literal, final

from seekable.remote.stores.store import Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from typing_extensions import Buffer

    from seekable.remote.stores.obstore_store import ObstoreStore
    from seekable.remote.stores.store import FolderListing, Page, Pin, Stat

__all__ = ["WholeUrls"]

_MOST_CLIENTS: Final = 64
"""The number of whole URLs whose clients stay open."""


@final
class WholeUrls(Store):
    """The files of one host.

    A file whose URL has a query, or a path that obstore would send in another way than it is written, such as
    one with an encoded slash, is read by a client that is made of the whole URL.
    """

    fork_safe = False

    def __init__(self, others: ObstoreStore, whole: Callable[[str], ObstoreStore | None]) -> None:
        """Take the store of most files, and a maker of the others.

        Args:
            others: the store of the files whose keys are enough.
            whole: returns a new store for the key of a file that is read by its whole URL; else None.
        """
        self._others = others
        self._whole = whole
        self._open: OrderedDict[str, ObstoreStore] = OrderedDict()

    @property
    def credentials(self) -> str:
        """The kind of the credentials, without their content."""
        return next(iter(self._open.values()), self._others).credentials

    @property
    def has_answered(self) -> bool:
        """True after the first answer to a request."""
        return self._others.has_answered or any(store.has_answered for store in self._open.values())

    def shown(self, key: str) -> str:
        """Return the address of an object for messages, without secrets."""
        return self._others.shown(key)

    async def stat(self, key: str) -> Stat:
        """Return the size and the entity tag of an object."""
        return await self._of(key).stat(key)

    async def read(self, key: str, start: int, stop: int, *, pin: Pin) -> Buffer:
        """Return exactly the bytes of a range of exactly the content that ``pin`` describes."""
        return await self._of(key).read(key, start, stop, pin=pin)

    def list(self, prefix: str, *, after: str = "", before: str = "") -> AsyncIterator[Page]:
        """Yield the objects below a folder in pages: web servers raise InvalidArgument."""
        return self._others.list(prefix, after=after, before=before)

    async def list_folder(self, prefix: str) -> FolderListing:
        """Return the objects directly below a folder: web servers raise InvalidArgument."""
        return await self._others.list_folder(prefix)

    async def put(self, key: str, data: Buffer, *, replacing: Stat | Literal["any"] | None) -> Stat:
        """Write a whole object and return its description; many web servers raise InvalidArgument."""
        return await self._of(key).put(key, data, replacing=replacing)

    async def delete(self, key: str) -> None:
        """Delete an object; nothing happens if there is none."""
        await self._of(key).delete(key)

    def _of(self, key: str) -> ObstoreStore:
        """Return the store of a file: the open one, or a new one."""
        found = self._open.pop(key, None) or self._whole(key)
        if found is None:
            return self._others
        self._open[key] = found
        if len(self._open) > _MOST_CLIENTS:
            self._open.popitem(last=False)
        return found
