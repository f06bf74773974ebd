"""What is kept in memory because it will be asked for again, bounded in bytes.

What is worth keeping is told from what is asked: something that is asked for again, while it would still be
here had it been kept the first time, is. Rows that are spread over far more blocks than fit are then read one
by one, of as few bytes as that takes, and rows that come from few blocks at a time are decoded once.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from seekable.storage.memory import CACHE_VARIABLE, cache_bytes

if TYPE_CHECKING:
    from collections.abc import Hashable

__all__ = ["Cache", "Sized"]

_SHARE = 8
_MOST_BYTES = 512 << 20
_ASKED_AGAIN = 3
"""The how manyth request makes a block worth keeping: the second may be chance."""


class Sized(Protocol):
    """Something that takes memory."""

    @property
    def nbytes(self) -> int:
        """How many bytes, about."""


T = TypeVar("T", bound=Sized)


class Cache(Generic[T]):
    """Keeps what was used last, up to a number of bytes. Safe from threads.

    Example:
        >>> import numpy as np
        >>> cache = Cache(most_bytes=20)
        >>> cache.put("a", np.zeros(2)), cache.put("b", np.zeros(1)), cache.get("a") is None
        (None, None, True)
    """

    def __init__(self, most_bytes: int | None = None) -> None:
        """Keep nothing yet; without a number of bytes, an eighth of what is to stay in memory.

        That is 512 MiB at most, unless ``SEEKABLE_CACHE_BYTES`` says how much is to stay.
        """
        self._most_bytes = most_bytes
        self.forget()

    def forget(self) -> None:
        """Drop everything."""
        self._lock = threading.Lock()
        self._held: OrderedDict[Hashable, T] = OrderedDict()
        self._bytes = 0
        self._asked: OrderedDict[Hashable, tuple[int, int]] = OrderedDict()
        self._asked_bytes = 0

    @property
    def most_bytes(self) -> int:
        """How many bytes are kept at most."""
        if self._most_bytes is None:
            chosen = os.environ.get(CACHE_VARIABLE)
            self._most_bytes = (
                cache_bytes() // _SHARE if chosen else min(_MOST_BYTES, cache_bytes() // _SHARE)
            )
        return self._most_bytes

    def get(self, key: Hashable) -> T | None:
        """Return what is kept under a key."""
        with self._lock:
            held = self._held.get(key)
            if held is not None:
                self._held.move_to_end(key)
            return held

    def put(self, key: Hashable, value: T) -> None:
        """Keep something, and drop what was not used for longest; what is too large by itself is not kept."""
        size = value.nbytes
        if size > self.most_bytes:
            return
        with self._lock:
            old = self._held.pop(key, None)
            self._bytes += size - (0 if old is None else old.nbytes)
            self._held[key] = value
            while self._bytes > self.most_bytes:
                self._bytes -= self._held.popitem(last=False)[1].nbytes

    def worth_keeping(self, key: Hashable, size: int) -> bool:
        """Note that something was asked for, and tell whether it has been often enough, of late.

        Args:
            key: what.
            size: how many bytes it takes, about.
        """
        if size > self.most_bytes:
            return False
        with self._lock:
            times, before = self._asked.pop(key, (0, 0))
            self._asked_bytes += size - before
            self._asked[key] = times + 1, size
            while self._asked_bytes > self.most_bytes:
                self._asked_bytes -= self._asked.popitem(last=False)[1][1]
        return times + 1 >= _ASKED_AGAIN
