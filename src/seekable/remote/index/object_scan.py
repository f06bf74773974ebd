"""Objects of stores, read for their index: past all caches, since each byte is read once.

An object is read forward: parts of 8 MiB are under way before they are needed. Of each small object one
request is under way before any thread works on it, so that few threads scan and none of them waits. What a
build transfers is known before its first request.
"""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from collections import OrderedDict, deque
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, final

from seekable.errors import InvalidArgument
from seekable.index.build.content import needs_points
from seekable.index.build.data_file import Data
from seekable.index.build.scan import scan_part
from seekable.index.digest import END_BYTES, ends_digest
from seekable.index.finder import is_table_indexer
from seekable.remote.fetching.fetcher import fetcher
from seekable.remote.stores.object_store import Pin
from seekable.storage.abandoned import awaited, check_not_abandoned
from seekable.storage.addresses import parse, shown
from seekable.storage.compression import compression_of
from seekable.storage.memory import bytes_in_words
from seekable.storage.ranges import HashedRanges, PositionedFile

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator
    from concurrent.futures import Executor
    from typing import IO

    from _typeshed import WriteableBuffer
    from typing_extensions import Buffer

    from seekable.index.build.file_parts import FileToIndex
    from seekable.index.build.kept_parts import Answer
    from seekable.index.build.scan import ScanBatch, ScanJob
    from seekable.index.finder import Finder
    from seekable.remote.stores.object_store import Store

__all__ = [
    "STREAMED_BYTES",
    "Ends",
    "FetchedPieces",
    "ObjectReader",
    "PinnedObject",
    "StoredFile",
    "Transfer",
    "begin_early",
    "check_transfer",
    "newest_version",
    "submit",
    "transfer_of",
]

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

STREAMED_BYTES = 8 << 20
"""The bytes of a request. Larger ones bring no more bytes a second, and cost more where one is lost."""

_AHEAD = 2
"""The requests of one reader that are under way beside the one that it awaits."""

_ALL_AHEAD = 8
"""The requests of all readers of this process that are under way, or answered and not yet awaited."""

_FAR_BYTES = 3 << 20
"""A gap that takes longer to stream than the round trip of another request: 30 ms at 100 MB/s."""

_LEAST_BYTES = END_BYTES
"""The bytes of a request where headers lie far apart, and after the end of a part."""

_WHOLE_BYTES = 4 * END_BYTES
"""A file up to this size is fetched in one request where otherwise its two ends would be."""

T = TypeVar("T")

_WORTH_SAYING = 1 << 30
"""A transfer of more bytes is announced before it begins."""

_GIGABIT = 125_000_000
_MINUTE = 60


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
        """Return some bytes: from a piece, or in a request of their own.

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
    """Return the size and the version of an object, as they are now.

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


_ahead_slots = threading.Semaphore(_ALL_AHEAD)


class _StreamedPart(NamedTuple):
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
        self._ahead: deque[_StreamedPart] = deque()
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
        """Return at most so many bytes, up to the end of a request; none at the end of the file.

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
        """Have the window begin at or before the position, and end after it."""
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
            self._ahead.append(_StreamedPart(at, stop, self._source.begin(at, stop)))
            at = stop

    def _drop_ahead(self) -> None:
        while self._ahead:
            self._ahead.popleft().answer.cancel()
            _ahead_slots.release()


def _start_anew() -> None:
    """Forget the requests of the parent process, whose answers a forked child does not get."""
    global _ends_lock, _ahead_slots
    _ends_lock, _ahead_slots = threading.Lock(), threading.Semaphore(_ALL_AHEAD)
    _ends.clear()
    _early.clear()


os.register_at_fork(after_in_child=_start_anew)


@final
class StoredFile:
    """One version of an object, for one scan. Nothing of it is kept in a cache."""

    def __init__(self, address: str, version: tuple[int, int], on_wait: Callable[[int], None] | None) -> None:
        """Fetch nothing yet.

        Args:
            address: the address of the object.
            version: its number of bytes, and the number of its version.
            on_wait: is called with 0 about ten times a second while bytes are awaited.
        """
        self.version = version
        """The number of bytes, and the number of the version."""
        self._size, self._identity = version
        self._address = address
        self._whole: memoryview | None = None
        self._object = PinnedObject(address, size=self._size, identity=self._identity, on_wait=on_wait)

    @property
    def holder(self) -> tuple[int, int]:
        """A zero, and the number of the version."""
        return 0, self._identity

    def head_tail(self) -> int:
        """Return the digest of both ends."""
        return ends_digest(*self._ends(), size=self._size)

    def ranges(self) -> HashedRanges:
        """Return the bytes for a reader of a footer, hashed as they are read."""
        return HashedRanges(_EndsFirst(self._object, *self._ends()))

    @contextmanager
    def data(self, start: int, stop: int, *, headers: bool) -> Iterator[Data]:
        """Yield the bytes for a scanner, those of the part fetched ahead.

        Args:
            start: the first byte of the part.
            stop: the byte after its last.
            headers: True for a scanner that goes from header to header.
        """
        first = self._all() if self._size <= STREAMED_BYTES else memoryview(b"")
        if not first and headers:
            first = memoryview(self._ends()[0])
        # A scanner of a part looks at the byte before it.
        before = max(start - 1, 0)
        with ObjectReader(self._object, start=before, stop=stop, headers=headers, first=first) as reader:
            if not first:
                reader.begin()
            head = self._ends()[0]
            if compression_of(self._object.path) == "gz" and needs_points(self._size, head):
                reader.keep()  # It is read twice.
            # Files beside it are found by the address, which a message has without the suffix of a mount.
            yield Data(reader, self._size, head, self._address)

    def is_unchanged(self) -> bool:
        """Return True: a range of another version is refused when it is fetched."""
        return True

    def _all(self) -> memoryview:
        """Return all bytes of a small object."""
        # No cached_property: until Python 3.12 its lock is one for all objects, and is held during the fetch.
        if self._whole is None:
            self._whole = self._object.range(0, self._size)
        return self._whole

    def _ends(self) -> Ends:
        """Return the first and the last 64 KiB."""
        if self._whole is None and self._size > _WHOLE_BYTES:
            return self._object.ends()
        whole = self._all()
        return bytes(whole[:END_BYTES]), bytes(whole[max(self._size - END_BYTES, 0) :])


@final
class _EndsFirst:
    """The byte ranges of an object whose ends are here."""

    __slots__ = ("_head", "_object", "_tail", "path", "size")

    def __init__(self, source: PinnedObject, head: bytes, tail: bytes) -> None:
        self.path = source.path
        self.size = source.size
        self._object = source
        self._head, self._tail = memoryview(head), memoryview(tail)

    def range(self, start: int, stop: int) -> memoryview:
        """Return some bytes; those between the ends are fetched."""
        if stop <= len(self._head):
            return self._head[start:stop]
        first = self.size - len(self._tail)
        if start >= first:
            return self._tail[start - first : stop - first]
        return self._object.range(start, stop)


def submit(executor: Executor, batch: ScanBatch, read: Callable[[ScanJob, int], None]) -> Future[Answer]:
    """Submit the scan of some parts to threads, and return its future, which can be cancelled.

    Args:
        executor: the threads.
        batch: the parts.
        read: is called with a part and the number of its bytes that were read since the last call.
    """
    work = partial(_scan, batch, read)
    job = batch.jobs[0]
    is_small = 0 < job.size <= STREAMED_BYTES and "://" in job.path
    if len(batch.jobs) > 1 or not is_small or is_table_indexer(batch.scanner):
        return executor.submit(work)
    answer = begin_early(job.path, 0, job.size, size=job.size, identity=job.mtime_ns)
    return _submitted_after(answer, executor, work)


def _scan(batch: ScanBatch, read: Callable[[ScanJob, int], None]) -> Answer:
    return [scan_part(job, batch.scanner, on_bytes=partial(read, job)) for job in batch.jobs]


def _submitted_after(before: Future[Any], executor: Executor, work: Callable[[], T]) -> Future[T]:
    """Submit work when a future has ended, in any way; cancelling the work cancels that future too."""
    found: Future[T] = Future()
    waiting = [before]

    def begin(ended: Future[Any]) -> None:
        waiting.clear()  # Futures keep their callbacks: in a circle the bytes would stay for long.
        if not found.set_running_or_notify_cancel():
            return
        try:
            executor.submit(_answer, work, found, ended)
        except RuntimeError as error:  # The executor was shut down.
            found.set_exception(error)

    def cancel(_: Future[T]) -> None:
        if found.cancelled():
            for future in waiting:
                future.cancel()

    found.add_done_callback(cancel)
    before.add_done_callback(begin)
    return found


def _answer(work: Callable[[], T], found: Future[T], _: Future[Any]) -> None:
    """Do work, and give a future its result; the future of the bytes is an argument so that it exists."""
    try:
        found.set_result(work())
    except BaseException as error:  # noqa: BLE001 - raised where the answer is taken
        found.set_exception(error)


@dataclass(frozen=True, slots=True)
class Transfer:
    """The most that an index build fetches from stores."""

    files: int
    """The number of objects."""

    bytes: int
    """The number of bytes."""

    requests: int
    """The number of requests."""

    def in_words(self) -> str:
        """Return the transfer as a part of a sentence.

        Example:
            >>> Transfer(3, 3 << 30, 384).in_words()
            '3.2 GB of 3 objects in 384 requests (26 s at 1 Gbit/s)'
        """
        seconds = self.bytes / _GIGABIT
        time = f"{seconds / _MINUTE:,.0f} minutes" if seconds > 2 * _MINUTE else f"{seconds:.0f} s"
        size = bytes_in_words(self.bytes)
        return f"{size} of {self.files:,} objects in {self.requests:,} requests ({time} at 1 Gbit/s)"


def transfer_of(tasks: Iterable[FileToIndex], scanner: Finder) -> Transfer:
    """Return the most that a scan fetches: the ends of tables, all bytes of other objects.

    Of archives whose members are large, and of objects of which a killed build has kept parts, it is less.
    """
    sizes = [task.size for task in tasks if task.is_object]
    if is_table_indexer(scanner):
        return Transfer(len(sizes), sum(min(size, 2 * END_BYTES) for size in sizes), 2 * len(sizes))
    # Of an object that is larger than one request both ends are fetched too.
    requests = sum(1 if size <= STREAMED_BYTES else 2 - (-size // STREAMED_BYTES) for size in sizes)
    return Transfer(len(sizes), sum(sizes), requests)


def check_transfer(transfer: Transfer, *, most_bytes: int | None) -> str | None:
    """Return the announcement of a transfer; None for one of less than 1 GiB.

    Args:
        transfer: the transfer.
        most_bytes: the most bytes that the user allows; None for any number.

    Raises:
        InvalidArgument: the transfer may have more bytes than the user allows.
    """
    if most_bytes is not None and transfer.bytes > most_bytes:
        message = (
            f"to index this data may transfer {transfer.in_words()}, and most_bytes is {most_bytes:,}; "
            f"nothing was transferred. Raise most_bytes, build the index once near the data with `seekable "
            f"index --publish`, or begin with sk.Index(sampled=True)"
        )
        raise InvalidArgument(message)
    if transfer.bytes < _WORTH_SAYING:
        return None
    return f"indexing transfers up to {transfer.in_words()}; it is done once, and goes on where it was ended"
