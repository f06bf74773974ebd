"""Memory: how many bytes of data stay in it, whether reads wait for a disk, and a cache bounded in bytes.

`Cache.should_keep` decides what is worth keeping, by how often it was requested. A block that is requested
again while it would still be here, had it been kept the first time, is worth it. So rows that are spread over
far more blocks than fit are read one by one, and rows that come from few blocks at a time are decoded once.
"""

from __future__ import annotations

import os
import resource
import threading
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from seekable.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable


CACHE_VARIABLE = "SEEKABLE_CACHE_BYTES"

RECORD_VARIABLE = "SEEKABLE_RECORD_BYTES"

WINDOW_VARIABLE = "SEEKABLE_ZSTD_WINDOW_BYTES"

_MOST_RECORD_BYTES = 2 << 30

_ZSTD_WINDOW_BYTES = 128 << 20
"""What ``zstd -d`` takes without ``--long``."""

_GROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")

_STEP = 1000

_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")


def cache_bytes() -> int:
    """Return the number of bytes of data that are assumed to stay in memory once they were read.

    That is ``SEEKABLE_CACHE_BYTES``, or else half of the memory that this process may use. The operating
    system keeps local files in memory, and other processes need memory too.

    Raises:
        InvalidArgument: the variable is not a number of bytes.
    """
    chosen = _chosen_bytes(CACHE_VARIABLE)
    return memory_bytes() // 2 if chosen is None else chosen


def most_record_bytes() -> int:
    """Return the most bytes that one record may have where they are made by decompression, or are streamed.

    That is ``SEEKABLE_RECORD_BYTES``, at least 1 MiB, or else 2 GiB. A stored record is never larger than its
    file; a few bytes of compressed data can stand for a thousand times as many.

    Raises:
        InvalidArgument: the variable is not a number of bytes.
    """
    chosen = _chosen_bytes(RECORD_VARIABLE)
    return _MOST_RECORD_BYTES if chosen is None else max(chosen, 1 << 20)


def record_too_large(size: int | None = None) -> str:
    """Return what is wrong with a record that has more bytes than `most_record_bytes`, and what to do.

    Args:
        size: its size in bytes; None if it is not known, because the rest was not decompressed.
    """
    has = f"{size:,} bytes" if size is not None else "more bytes"
    return (
        f"one record has {has}, and {most_record_bytes():,} are the most that are decompressed or streamed "
        f"for one: the data is damaged or hostile, or set {RECORD_VARIABLE} to a larger number"
    )


def zstd_window_bytes() -> int:
    """Return the largest window of a zstd frame that is decompressed, which takes as much memory.

    That is ``SEEKABLE_ZSTD_WINDOW_BYTES``, or else 128 MiB. The largest that there is, of ``zstd --long=31``,
    has 2 GiB.

    Raises:
        InvalidArgument: the variable is not a number of bytes.
    """
    chosen = _chosen_bytes(WINDOW_VARIABLE)
    return _ZSTD_WINDOW_BYTES if chosen is None else min(max(chosen, 1 << 20), 1 << 31)


def _chosen_bytes(variable: str) -> int | None:
    """Return the number of bytes that a variable of the environment says; None if it is not set."""
    chosen = os.environ.get(variable, "")
    if not chosen:
        return None
    if not chosen.isdecimal():
        message = f"{variable} must be a number of bytes, such as {16 << 30} (got {chosen!r})"
        raise InvalidArgument(message)
    return int(chosen)


def advise(descriptor: int, start: int, count: int, advice: Literal["WILLNEED", "DONTNEED"]) -> None:
    """Tell the system whether bytes of a file will be needed; macOS, which takes no advice, is not told.

    Args:
        descriptor: the open file.
        start: the first byte.
        count: the number of bytes.
        advice: WILLNEED to have them read soon, DONTNEED to have them written and forgotten.

    Example:
        >>> with open(__file__, "rb") as file:
        ...     advise(file.fileno(), 0, 4096, "WILLNEED")
    """
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, start, count, getattr(os, f"POSIX_FADV_{advice}"))


def memory_bytes() -> int:
    """Return the bytes of memory that this process may use: the machine's, or its control group's if less."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *(limit for path in _GROUP_LIMITS if (limit := _limit(path)) is not None)])


def _limit(path: str) -> int | None:
    try:
        with open(path, encoding="ascii") as file:
            text = file.read().strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None


def bytes_in_words(count: int) -> str:
    """Return a number of bytes in words, with one decimal.

    Example:
        >>> bytes_in_words(1), bytes_in_words(999), bytes_in_words(1_234_567)
        ('1 byte', '999 bytes', '1.2 MB')
    """
    size, unit = float(count), 0
    while size >= _STEP and unit + 1 < len(_UNITS):
        size, unit = size / _STEP, unit + 1
    return f"{size:.1f} {_UNITS[unit]}" if unit else f"{count} byte{'s' * (count != 1)}"


_IDLE_READS = 4
"""After this many reads in a row without a disk, all data is assumed to be in memory."""

_CAN_TELL = hasattr(resource, "RUSAGE_THREAD") and hasattr(os, "posix_fadvise")


def disk_reads() -> int:
    """Return a count of this thread that grows with each read from a disk: page faults, and blocks read.

    Network file systems may count page faults alone.
    """
    if not _CAN_TELL:
        return 0
    usage = resource.getrusage(resource.RUSAGE_THREAD)
    return usage.ru_majflt + usage.ru_inblock


class DiskActivity:
    """The recent reads of some files, as far as they met a disk. Safe from threads; each notes its own reads.

    Example:
        >>> activity = DiskActivity()
        >>> for _ in range(4):
        ...     activity.note(0)
        >>> activity.may_wait
        False
    """

    __slots__ = ("_idle_reads",)

    def __init__(self) -> None:
        self._idle_reads = 0 if _CAN_TELL else _IDLE_READS

    @property
    def may_wait(self) -> bool:
        """True if the next read may have to wait for a disk: at first, and after a read that did."""
        return self._idle_reads < _IDLE_READS

    def note(self, reads: int) -> None:
        """Note a read.

        Args:
            reads: the difference of `disk_reads` between its end and its start.
        """
        self._idle_reads = 0 if reads else min(self._idle_reads + 1, _IDLE_READS)


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
