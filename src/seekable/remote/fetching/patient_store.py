"""A store whose calls are repeated until they are answered."""

from __future__ import annotations

import operator
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar, final

from seekable.errors import Unreachable
from seekable.remote.fetching.sending import Request
from seekable.remote.stores.store import Passing, Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from typing_extensions import Buffer

    from seekable.remote.fetching.retries import Patience
    from seekable.remote.fetching.sending import Sender
    from seekable.remote.stores.store import FolderListing, Page, Pin, Stat

__all__ = ["PatientStore"]

T = TypeVar("T")


@final
class PatientStore(Store):
    """The calls of a store, each sent as often as the sender permits."""

    def __init__(self, store: Store, sender: Sender, patience: Patience) -> None:
        """Take a store, to which no request is sent yet.

        Args:
            store: sends each request once.
            sender: sends them again; used in its loop.
            patience: how long to try for each.
        """
        self._patience = patience
        self._store = store
        self._sender = sender
        self.fork_safe = store.fork_safe
        self.lists_in_order = getattr(store, "lists_in_order", False)

    def shown(self, key: str) -> str:
        """Return the address of an object for messages, without secrets."""
        return self._store.shown(key)

    async def stat(self, key: str) -> Stat:
        """Return the size and the entity tag of an object."""
        return await self._sent(lambda: self._store.stat(key), partial(self.shown, key))

    async def read(self, key: str, start: int, stop: int, *, pin: Pin) -> Buffer:
        """Return bytes of an object."""
        return await self._sent(
            lambda: self._store.read(key, start, stop, pin=pin),
            lambda: f"{self.shown(key)}, bytes {start} to {stop}",
            size=stop - start,
            may_hedge=True,
        )

    async def list(self, prefix: str, *, after: str = "", before: str = "") -> AsyncIterator[Page]:
        """Yield the objects below a folder in pages; one that fails is listed again behind the last key."""
        shown = f"the listing of {self.shown(prefix)}"
        pages = self._store.list(prefix, after=after, before=before)
        is_ordered = True

        async def next_page() -> Page | None:
            nonlocal pages
            try:
                return await anext(pages, None)
            except Passing:
                if is_ordered:
                    pages = self._store.list(prefix, after=after, before=before)
                    raise
                message = f"{shown} broke off, and cannot go on because its keys are in no order: run again"
                raise Unreachable(message) from None

        while (page := await self._sent(next_page, lambda: shown)) is not None:
            is_ordered = is_ordered and _ascend([after, *(stat.key for stat in page)])
            after = page[-1].key if page else after
            yield page

    async def list_folder(self, prefix: str) -> FolderListing:
        """Return the folders and the objects directly below a folder."""
        shown = f"the listing of {self.shown(prefix)}"
        return await self._sent(lambda: self._store.list_folder(prefix), lambda: shown)

    async def put(self, key: str, data: Buffer, *, replacing: Stat | Literal["any"] | None) -> Stat:
        """Write a whole object and return its description."""
        size = memoryview(data).nbytes
        once = partial(self._store.put, key, data, replacing=replacing)
        return await self._sent(once, partial(self.shown, key), size=size)

    async def delete(self, key: str) -> None:
        """Delete an object; nothing happens if there is none."""
        await self._sent(lambda: self._store.delete(key), partial(self.shown, key))

    async def _sent(
        self,
        once: Callable[[], Awaitable[T]],
        shown: Callable[[], str],
        *,
        size: int = 0,
        may_hedge: bool = False,
    ) -> T:
        request = Request(
            store=self._store,
            shown=shown,
            size=size,
            may_hedge=may_hedge,
            patience=self._patience,
            demanded=lambda: True,
        )
        return await self._sender.send(request, once)


def _ascend(keys: Sequence[str]) -> bool:
    """Return True if keys ascend in the order of bytes."""
    if all(map(str.isascii, keys)):
        return all(map(operator.lt, keys, keys[1:]))
    encoded = [key.encode("utf-8", "surrogateescape") for key in keys]
    return all(map(operator.lt, encoded, encoded[1:]))
