"""A cache in memory that is bounded in bytes: it drops what was used least recently.

`Cache.should_keep` decides what is worth keeping, by how often it was wanted. A block that is wanted again
while it would still be here, had it been kept the first time, is worth it. So rows that are spread over far
more blocks than fit are read one by one, and rows that come from few blocks at a time are decoded once.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Generic, TypeVar

from seekable.storage.memory import CACHE_VARIABLE, cache_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

_SHARE = 8
_MOST_BYTES = 512 << 20
_WANTED_TIMES = 3
"""The request that makes a block worth keeping: the second may be chance."""

T = TypeVar("T")


class Cache(Generic[T]):
    """The values that were used last, up to a number of bytes. Safe from threads.

    A forked child must call `forget`, because another thread of the parent may have held the lock.

    Example:
        >>> cache = Cache[bytes](len, most_bytes=20)
        >>> cache.put("a", bytes(16)), cache.put("b", bytes(8)), cache.get("a") is None
        (None, None, True)
    """

    def __init__(self, size_of: Callable[[T], int], *, most_bytes: int | None = None) -> None:
        """Begin with an empty cache.

        Args:
            size_of: returns the number of bytes of a value.
            most_bytes: the most bytes that are kept; None for an eighth of `cache_bytes`, which is 512 MiB
                at most unless ``SEEKABLE_CACHE_BYTES`` is set.
        """
        self._size_of = size_of
        self._most_bytes = most_bytes
        self.forget()

    def forget(self) -> None:
        """Drop everything, and take a new lock."""
        self._lock = threading.Lock()
        self._values: OrderedDict[Hashable, T] = OrderedDict()
        self._dropped: deque[Hashable] = deque()
        self._bytes = 0
        self._wanted: OrderedDict[Hashable, tuple[int, int]] = OrderedDict()
        self._wanted_bytes = 0

    @property
    def most_bytes(self) -> int:
        """The most bytes that are kept."""
        if self._most_bytes is None:
            chosen = os.environ.get(CACHE_VARIABLE)
            self._most_bytes = (
                cache_bytes() // _SHARE if chosen else min(_MOST_BYTES, cache_bytes() // _SHARE)
            )
        return self._most_bytes

    def get(self, key: Hashable) -> T | None:
        """Return the value of a key, None if it is not here."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def put(self, key: Hashable, value: T) -> None:
        """Keep a value, and drop the values used least recently; one that is too large alone is not kept."""
        size = self._size_of(value)
        if size > self.most_bytes:
            return
        with self._lock:
            self._drop_noted()
            old = self._values.pop(key, None)
            self._bytes += size - (0 if old is None else self._size_of(old))
            self._values[key] = value
            while self._bytes > self.most_bytes:
                self._bytes -= self._size_of(self._values.popitem(last=False)[1])

    def drop(self, key: Hashable) -> None:
        """Drop a value, now or at the next `put`. The garbage collector may call this at any moment."""
        self._dropped.append(key)
        # Not waited for: this very thread may hold the lock.
        if self._lock.acquire(blocking=False):
            try:
                self._drop_noted()
            finally:
                self._lock.release()

    def _drop_noted(self) -> None:
        while self._dropped:
            value = self._values.pop(self._dropped.popleft(), None)
            self._bytes -= 0 if value is None else self._size_of(value)

    def should_keep(self, key: Hashable, size: int) -> bool:
        """Count a request for a value, and return True if it was requested often enough of late to be kept.

        Args:
            key: the key of the value.
            size: the number of bytes that the value takes, about.
        """
        if size > self.most_bytes:
            return False
        with self._lock:
            times, before = self._wanted.pop(key, (0, 0))
            self._wanted_bytes += size - before
            self._wanted[key] = times + 1, size
            while self._wanted_bytes > self.most_bytes:
                self._wanted_bytes -= self._wanted.popitem(last=False)[1][1]
        return times + 1 >= _WANTED_TIMES
