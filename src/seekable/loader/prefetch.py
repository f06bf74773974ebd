"""Items of an iterator, made ahead by a thread."""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Prefetched"]

Item = TypeVar("Item")

_PATIENCE_SECONDS = 5.0
"""The most seconds that ``close`` and the end of the program wait for an item that is being made."""


class Prefetched(Generic[Item]):
    """Iterates over a source, which a thread runs up to ``depth`` items ahead.

    An error of the source is raised in the place of its item. The thread ends with the source, with
    ``close()``, when this object is garbage, and at the end of the program.

    Example:
        >>> list(Prefetched(iter([1, 2, 3]), depth=2))
        [1, 2, 3]
    """

    def __init__(self, source: Iterator[Item], *, depth: int) -> None:
        self._buffer: _Buffer[Item] = _Buffer(depth)
        thread = threading.Thread(
            target=_fill, args=(source, self._buffer), name="seekable-prefetch", daemon=True
        )
        # The thread refers to the buffer and not to this object, so that this object can become garbage.
        self._finalizer = weakref.finalize(self, _stop, self._buffer, thread)
        thread.start()

    def __iter__(self) -> Iterator[Item]:
        return self

    def __next__(self) -> Item:
        return self._buffer.take()

    def close(self) -> None:
        """End the thread and drop what it made."""
        self._finalizer()


class _Buffer(Generic[Item]):
    """The items made ahead, shared by the thread and the object that owns it."""

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._items: deque[Item] = deque()
        self._changed = threading.Condition()
        self._ended: BaseException | None = None
        self._waiting = False
        self._hands_over = True
        self.stopped = False
        self.process = os.getpid()

    def put(self, item: Item) -> None:
        """Wait for room and add an item; after ``stop`` add it at once."""
        with self._changed:
            self._changed.wait_for(lambda: self.stopped or len(self._items) < self._depth)
            self._items.append(item)
            self._changed.notify_all()
            if self._hands_over and self._waiting:
                # This thread waits until its first item is taken. Otherwise the thread that waits for the
                # item, after a restart for example, would wait for the interpreter to switch threads too.
                self._hands_over = False
                self._changed.wait_for(lambda: self.stopped or not self._items)

    def end(self, reason: BaseException) -> None:
        """Note that no item follows, and the exception that says why."""
        with self._changed:
            self._ended = reason
            self._changed.notify_all()

    def stop(self) -> None:
        """Drop all items, and note that no more are needed."""
        with self._changed:
            self.stopped = True
            self._items.clear()
            self._ended = self._ended or StopIteration()
            self._changed.notify_all()

    def take(self) -> Item:
        """Wait for the next item and return it, or raise the exception that says why there is none."""
        with self._changed:
            self._waiting = True
            self._changed.wait_for(lambda: self._items or self._ended)
            self._waiting = False
            if self._items:
                item = self._items.popleft()
                self._changed.notify_all()
                return item
            assert self._ended is not None
            raise self._ended


def _fill(source: Iterator[Item], buffer: _Buffer[Item]) -> None:
    reason: BaseException = StopIteration()
    try:
        for item in source:
            buffer.put(item)
            if buffer.stopped:
                break
    except BaseException as error:  # noqa: BLE001 - it is raised in the place of the item
        reason = error
    buffer.end(reason)


def _stop(buffer: _Buffer[Item], thread: threading.Thread) -> None:
    if os.getpid() != buffer.process:
        # A forked child has no such thread; and at the fork the thread may have held the lock of the buffer.
        return
    buffer.stop()
    if thread is not threading.current_thread() and thread.is_alive():
        thread.join(timeout=_PATIENCE_SECONDS)
