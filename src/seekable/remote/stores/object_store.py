"""The protocol of a store: sizes, byte ranges, listings, writes and deletions of objects, one try each."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeVar

import xxhash

from seekable.errors import IndexStale

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from typing_extensions import Buffer

__all__ = [
    "FolderListing",
    "Page",
    "Passing",
    "Pin",
    "Stat",
    "Store",
    "changed",
    "identities_of",
    "identity_of",
    "in_thread",
    "plain_etag",
]

_IDENTITY_MASK = (1 << 63) - 1
_SECOND_NS = 10**9
_T = TypeVar("_T")


class Stat(NamedTuple):
    """One object of a store, as a listing or an answer describes it.

    Attributes:
        key: the name of the object in its store.
        size: its size in bytes.
        etag: its entity tag, as the store gives it; None if the store gives none.
        version: its version; None in a bucket without versions.
        modified_ns: the time of its last change, in nanoseconds since 1970; 0 if the store does not give it.
    """

    key: str
    size: int
    etag: str | None
    version: str | None
    modified_ns: int

    @property
    def identity(self) -> int:
        """A number from 0 to 2^63 - 1 for this content: from its etag, else from time and size."""
        return identity_of(self.etag, modified_ns=self.modified_ns, size=self.size)


Page = list[Stat]
"""A page of a listing."""

FolderListing = tuple[list[str], list[Stat]]
"""The folders and the objects directly below a folder."""


@dataclass(slots=True)
class Pin:
    """The content that an object must have when it is read.

    Attributes:
        size: the size in bytes.
        identity: the identity, as ``Stat.identity``.
        etag: the entity tag; None until a listing or the first answer gives it.
        version: the version to read; None for the newest one.
    """

    size: int
    identity: int
    etag: str | None = None
    version: str | None = None


class Passing(Exception):
    """A request failed for a reason that may pass: it may be sent again.

    Attributes:
        retry_after: the seconds that the store asks to wait; None if it gives none.
        refused: True if the store refuses because of too many requests (429, 503, ``SlowDown``).
    """

    def __init__(self, message: str, *, retry_after: float | None = None, refused: bool = False) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.refused = refused


class Store(Protocol):
    """The objects of one bucket, container or host.

    The methods are awaited in the loop of the fetcher alone. Each sends one request (a listing, one
    a page), and neither waits nor repeats: that is the work of the fetcher. Cancelling a call cancels its
    request.

    Every method may raise:
        Passing: the request may be sent again.
        AccessDenied: the credentials do not permit it; the message says how to set others.
        Unreachable: the store cannot be reached, for a reason that does not pass.
    """

    fork_safe: bool
    """True if a forked child may use the store after its parent has."""

    lists_in_order: bool = False
    """True if listings are sorted by the bytes of keys, and one that ends before a key fetches no more."""

    lacks: str = ""
    """Which secrets did not come to this process, and what to do; errors end with it."""

    @abstractmethod
    def shown(self, key: str) -> str:
        """Return the address of an object for messages, without secrets."""

    @abstractmethod
    async def stat(self, key: str) -> Stat:
        """Return the size and the entity tag of an object.

        Raises:
            DataNotFound: the store has no such object.
        """

    @abstractmethod
    async def read(self, key: str, start: int, stop: int, *, pin: Pin) -> Buffer:
        """Return exactly the bytes from ``start`` to ``stop`` of exactly the content that ``pin`` describes.

        The etag of the answer, its total size and its length are compared. ``pin.etag`` is set if it is None.
        An empty range is empty bytes, without a request.

        Raises:
            IndexStale: the object has other content now; the message has both etags.
            DataNotFound: the store has no such object.
        """

    @abstractmethod
    def list(self, prefix: str, *, after: str = "", before: str = "") -> AsyncIterator[Page]:
        """Yield the objects below a folder in pages of up to 1,000, in the order of the store.

        Args:
            prefix: whole segments of keys (``corpus`` or ``corpus/``); empty for the whole store.
            after: leave out keys up to this one, by the order of bytes; empty for none.
            before: leave out keys from this one on; empty for none.
        """

    @abstractmethod
    async def list_folder(self, prefix: str) -> FolderListing:
        """Return the folders (keys without a slash at their end) and the objects directly below a folder."""

    @abstractmethod
    async def put(self, key: str, data: Buffer, *, replacing: Stat | Literal["any"] | None) -> Stat:
        """Write a whole object and return its description; the object appears at once, or not at all.

        Args:
            key: the name of the object.
            data: its content.
            replacing: the content that the object must have now; None if there must be no such object;
                ``"any"`` for no condition.

        Raises:
            FileExistsError: ``replacing`` is None, and there is such an object.
            IndexStale: the object has other content than ``replacing``.
        """

    @abstractmethod
    async def delete(self, key: str) -> None:
        """Delete an object; nothing happens if there is none."""


def changed(address: str, found: Stat, pin: Pin) -> IndexStale:
    """Return the error for an object that has other content than the pinned one."""
    expected = f"the etag {pin.etag}" if pin.etag else f"an etag of the digest {pin.identity:x}"
    message = (
        f"{address} changed after it was indexed: expected {expected} and {pin.size} bytes, found the etag "
        f"{found.etag} (digest {found.identity:x}) and {found.size} bytes. Open the data again with "
        f"refresh=True, so that it is indexed again"
    )
    return IndexStale(message)


def plain_etag(etag: str) -> str:
    """Return an etag without the mark of a weak one and without quotes.

    Example:
        >>> plain_etag('W/"5d41402a"'), plain_etag('"5d41402a"'), plain_etag("5d41402a")
        ('5d41402a', '5d41402a', '5d41402a')
    """
    return etag.removeprefix("W/").strip('"')


def identities_of(stats: Sequence[Stat]) -> list[int]:
    """Return the identity of each of some objects, in less time than one by one."""
    digest = xxhash.xxh3_64_intdigest
    return [
        digest(stat.etag.strip('"').encode()) & _IDENTITY_MASK
        if stat.etag and not stat.etag.startswith("W/")
        else stat.identity
        for stat in stats
    ]


def identity_of(etag: str | None, *, modified_ns: int, size: int) -> int:
    """Return a digest of the etag; where it is weak or missing, of time and size.

    Times count in whole seconds, because listings of some stores are finer than their other answers.

    Example:
        >>> identity_of('"5d41"', modified_ns=1, size=5) == identity_of("5d41", modified_ns=2, size=5)
        True
    """
    if etag and not etag.startswith("W/"):
        return xxhash.xxh3_64_intdigest(plain_etag(etag).encode()) & _IDENTITY_MASK
    return xxhash.xxh3_64_intdigest(f"{modified_ns // _SECOND_NS} {size}".encode()) & _IDENTITY_MASK


async def in_thread(call: Callable[[], _T]) -> _T:
    """Await a blocking call in a thread of its own, which does not delay the end of the process."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_T] = loop.create_future()

    def run() -> None:
        try:
            outcome = partial(done.set_result, call())
        except BaseException as error:  # noqa: BLE001 - the error belongs to the caller
            outcome = partial(done.set_exception, error)
        with contextlib.suppress(RuntimeError):  # The loop is closed: nobody waits.
            loop.call_soon_threadsafe(lambda: None if done.done() else outcome())

    threading.Thread(target=run, name="seekable-store", daemon=True).start()
    return await done
