"""The bytes of an object of a store, read forward: parts of 8 MiB are under way before they are needed."""

from __future__ import annotations

import os
import tempfile
import threading
from collections import deque
from typing import TYPE_CHECKING, NamedTuple, final

from seekable.index.digest import END_BYTES
from seekable.storage.ranges import PositionedFile

if TYPE_CHECKING:
    from concurrent.futures import Future
    from typing import IO

    from _typeshed import WriteableBuffer
    from typing_extensions import Buffer

    from seekable.remote.index.pinned_object import PinnedObject

__all__ = ["STREAMED_BYTES", "ObjectReader"]

STREAMED_BYTES = 8 << 20
"""The bytes of a request. Larger ones bring no more bytes a second, and cost more where one is lost."""

_AHEAD = 2
"""The requests of one reader that are under way beside the one that it awaits."""

_ALL_AHEAD = 8
"""The requests of all readers of this process that are under way, or answered and not yet awaited."""

_FAR_BYTES = 3 << 20
"""A gap that takes longer to stream than the round trip of another request: 30 ms at 100 MB/s."""

_LEAST_BYTES = END_BYTES
"""The bytes of a request where headers lie far apart, and behind the end of a part."""

_ahead_slots = threading.Semaphore(_ALL_AHEAD)


class _Piece(NamedTuple):
    """Some bytes that are under way."""

    start: int
    stop: int
    answer: Future[Buffer]


@final
class ObjectReader(PositionedFile):
    """A file over an object, for a reader that goes forward. Not safe from threads.

    It streams: up to three requests of 8 MiB are under way. Where a reader of headers leaves out more than
    3 MB between two, 64 KiB are fetched at each place, and twice as much at each next one that is near.
    """

    def __init__(
        self, source: PinnedObject, *, start: int, stop: int, headers: bool, first: Buffer = b""
    ) -> None:
        """Begin at the first byte; nothing is fetched yet.

        Args:
            source: the object.
            start: the byte at which the reader begins.
            stop: the bytes from here on are fetched when they are read, and not ahead.
            headers: True for a reader that goes from header to header: it streams where they turn out to be
                near each other.
            first: the first bytes of the object, if they are here.
        """
        super().__init__(source.size)
        self._source = source
        self._limit = min(stop, source.size)
        self._ahead: deque[_Piece] = deque()
        self._start, self._window = 0, memoryview(first)
        self._read_to = start
        self._headers = headers
        self._step = _LEAST_BYTES if headers else STREAMED_BYTES
        self._kept: IO[bytes] | None = None
        self._kept_to = 0
        self._failure: Exception | None = None

    def keep(self) -> None:
        """Keep what is streamed in a file of this machine, so that a second pass fetches nothing.

        The file has no name, and ends with the reader.
        """
        if self._size > len(self._window):
            self._kept = tempfile.TemporaryFile(prefix="seekable-")  # noqa: SIM115 - closed by `close`

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read the next bytes into a buffer, up to the end of a request; return their number, 0 at the end.

        Raises:
            IndexStale: the object is of another version now.
            DataNotFound, AccessDenied, Unreachable: it cannot be read.
        """
        target = memoryview(buffer).cast("B")
        piece = self.next_view(len(target))
        target[: len(piece)] = piece
        return len(piece)

    def next_view(self, most: int) -> memoryview:
        """Return up to so many of the next bytes, up to the end of a request; none at the end of the file.

        Raises:
            IndexStale, DataNotFound, AccessDenied, Unreachable: as `readinto`.
        """
        if self._at >= self._size or not most:
            return memoryview(b"")
        if not self._start <= self._at < self._start + len(self._window):
            self._fill()
        first = self._at - self._start
        piece = self._window[first : first + most]
        self._at += len(piece)
        self._read_to = self._at
        return piece

    def close(self) -> None:
        """Cancel what is under way."""
        self._drop_ahead()
        self._window = memoryview(b"")
        if self._kept is not None:
            self._kept.close()
        super().close()

    def begin(self) -> None:
        """Have the first bytes under way, before they are read."""
        if self._read_to >= self._start + len(self._window):
            self._fetch_ahead(self._read_to)

    def _fill(self) -> None:
        """Have the window begin at or before the position, and end behind it."""
        if self._failure is not None:
            # A decoder may hide an error of its file, and go on to read.
            raise self._failure
        try:
            self._start, self._window = self._next_window()
        except Exception as error:
            self._failure = error
            raise
        if self._kept is not None and self._start == self._kept_to:
            self._kept.seek(self._kept_to)
            self._kept.write(self._window)
            self._kept_to += len(self._window)

    def _next_window(self) -> tuple[int, memoryview]:
        at = self._at
        if self._kept is not None and at < self._kept_to:
            self._kept.seek(at)
            return at, memoryview(self._kept.read(STREAMED_BYTES))
        # The old window is given back first: a reader holds one, beside what is under way.
        self._window = memoryview(b"")
        while self._ahead:
            piece = self._ahead.popleft()
            _ahead_slots.release()
            if piece.start <= at < piece.stop:
                self._fetch_ahead(self._ahead[-1].stop if self._ahead else piece.stop)
                return piece.start, self._source.wait(piece.answer)
            piece.answer.cancel()
        gap = at - self._read_to
        if at >= self._limit or (self._headers and gap >= _FAR_BYTES):
            self._step = _LEAST_BYTES
        else:
            self._step = min(2 * self._step, STREAMED_BYTES)
        if self._step < STREAMED_BYTES:
            return at, self._source.range(at, min(at + self._step, self._size))
        stop = self._cut(at)
        answer = self._source.begin(at, stop)
        self._fetch_ahead(stop)
        return at, self._source.wait(answer)

    def _cut(self, start: int) -> int:
        """Return the end of the request that begins at a byte; the last one is not much smaller."""
        stop = start + STREAMED_BYTES
        return self._limit if self._limit - stop < _LEAST_BYTES else stop

    def _fetch_ahead(self, at: int) -> None:
        while at < self._limit and len(self._ahead) < _AHEAD and _ahead_slots.acquire(blocking=False):
            stop = self._cut(at)
            self._ahead.append(_Piece(at, stop, self._source.begin(at, stop)))
            at = stop

    def _drop_ahead(self) -> None:
        while self._ahead:
            self._ahead.popleft().answer.cancel()
            _ahead_slots.release()


def _start_anew() -> None:
    """Free the places of the requests of the parent process: a forked child has none under way."""
    global _ahead_slots  # noqa: PLW0603 - a thread of the parent may hold its lock
    _ahead_slots = threading.Semaphore(_ALL_AHEAD)


os.register_at_fork(after_in_child=_start_anew)
