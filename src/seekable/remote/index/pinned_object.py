"""One version of an object of a store, read for its index: past all caches, since each byte is read once."""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, final

from seekable.index.digest import END_BYTES
from seekable.remote.fetching.fetcher import fetcher
from seekable.remote.stores.store import Pin
from seekable.storage.abandoned import awaited, check_not_abandoned
from seekable.storage.addresses import parse, shown

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from concurrent.futures import Future

    from typing_extensions import Buffer

    from seekable.remote.stores.store import Store

__all__ = ["Ends", "FetchedPieces", "PinnedObject", "begin_early", "newest_version"]

_MOST_ENDS = 64
"""The objects whose ends are remembered, 128 KiB each: the parts of one object follow each other."""

Ends = tuple[bytes, bytes]
"""The first and the last 64 KiB of an object; both are all of a smaller one."""

_Range = tuple[str, int, int, int, int]
"""The address of an object, its number of bytes, the number of its version, a first byte and an end."""

_ends: OrderedDict[tuple[str, int, int], tuple[Future[Buffer], Future[Buffer]]] = OrderedDict()
_ends_lock = threading.Lock()

_early: weakref.WeakValueDictionary[_Range, Future[Buffer]] = weakref.WeakValueDictionary()
"""Requests that were begun before the reader of their object was made. It takes them, if they still exist."""


@final
class PinnedObject:
    """The byte ranges of an object, which must be of one size and one etag. Safe from threads.

    An answer of another version raises ``IndexStale``.
    """

    __slots__ = ("_address", "_on_wait", "_pin", "path", "size")

    def __init__(
        self, address: str, *, size: int, identity: int, on_wait: Callable[[int], None] | None = None
    ) -> None:
        """Describe an object, of which nothing is fetched yet.

        Args:
            address: the address of the object.
            size: its number of bytes.
            identity: the number of its version, as ``Stat.identity``.
            on_wait: is called with 0 about ten times a second while bytes are awaited; an error that it
                raises ends the wait.
        """
        self.path = shown(address)
        """The address in error messages."""
        self.size = size
        """The number of bytes."""
        self._address = address
        self._pin = Pin(size, identity)
        self._on_wait = on_wait

    def begin(self, start: int, stop: int) -> Future[Buffer]:
        """Begin to fetch some bytes; a caller that does not await them cancels the future.

        A request of `begin_early` is taken.
        """
        early = _early.pop((self._address, self.size, self._pin.identity, start, stop), None)
        if early is not None:
            return early
        return fetcher().start(_reading(self._address, start, stop, self._pin), path=self._address)

    def wait(self, answer: Future[Buffer]) -> memoryview:
        """Return the bytes of a fetch.

        Raises:
            IndexStale: the object is of another version now.
            DataNotFound: it is gone.
            AccessDenied, Unreachable: it cannot be read.
        """
        return memoryview(awaited(answer, self._look)).cast("B")

    def range(self, start: int, stop: int) -> memoryview:
        """Return some bytes; each call is a request, and an empty range is none."""
        return self.wait(self.begin(start, stop)) if start < stop else memoryview(b"")

    def ends(self) -> Ends:
        """Return both ends, fetched at once and once for all parts of the object in this process."""
        key = self._address, self.size, self._pin.identity
        with _ends_lock:
            found = _ends.get(key)
            if found is None:
                count = min(END_BYTES, self.size)
                found = self.begin(0, count), self.begin(self.size - count, self.size)
                _ends[key] = found
                if len(_ends) > _MOST_ENDS:
                    _ends.popitem(last=False)
        try:
            head, tail = (bytes(self.wait(answer)) for answer in found)
        except Exception:
            with _ends_lock:
                _ends.pop(key, None)
            raise
        return head, tail

    def _look(self) -> None:
        check_not_abandoned()
        if self._on_wait is not None:
            self._on_wait(0)


@final
class FetchedPieces:
    """Pieces of an object, all fetched at once."""

    __slots__ = ("_answers", "_object")

    def __init__(self, source: PinnedObject, pieces: Iterable[tuple[int, int]]) -> None:
        """Begin to fetch pieces, each given by its first byte and the byte after its last."""
        self._object = source
        self._answers = {(start, stop): source.begin(start, stop) for start, stop in pieces if start < stop}

    def range(self, start: int, stop: int) -> memoryview:
        """Return some bytes, of a piece or, in a request of their own, of what lies between.

        Raises:
            IndexStale: the object is of another version now.
            DataNotFound, AccessDenied, Unreachable: it cannot be read.
        """
        for (first, last), answer in self._answers.items():
            if first <= start and stop <= last:
                return self._object.wait(answer)[start - first : stop - first]
        return self._object.range(start, stop)


def begin_early(address: str, start: int, stop: int, *, size: int, identity: int) -> Future[Buffer]:
    """Begin to fetch bytes for a reader that is made later, while the future is kept.

    Args:
        address: the address of the object.
        start: the first byte.
        stop: the byte after the last.
        size: the number of bytes of the object.
        identity: the number of its version.
    """
    answer = PinnedObject(address, size=size, identity=identity).begin(start, stop)
    _early[address, size, identity, start, stop] = answer
    return answer


def newest_version(address: str) -> tuple[int, int]:
    """Return the number of bytes of an object and the number of its version, as they are now.

    Raises:
        DataNotFound: there is no such object.
        AccessDenied, Unreachable: the store cannot be read.
    """
    key = parse(address).key
    stat = fetcher().run(lambda store: store.stat(key), path=address)
    return stat.size, stat.identity


def _reading(address: str, start: int, stop: int, pin: Pin) -> Callable[[Store], Awaitable[Buffer]]:
    key = parse(address).key

    def read(store: Store) -> Awaitable[Buffer]:
        return store.read(key, start, stop, pin=pin)

    return read


def _start_anew() -> None:
    """Forget the requests of the parent process, whose answers a forked child does not get."""
    global _ends_lock  # noqa: PLW0603 - a thread of the parent may hold the lock
    _ends_lock = threading.Lock()
    _ends.clear()
    _early.clear()


os.register_at_fork(after_in_child=_start_anew)
