"""Ranges of files of the Hub, in blocks that are kept in memory and on disk, and fetched where missing."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict, deque
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, final

import xxhash

from seekable.remote.block_cache import BlockStore, store_bytes
from seekable.remote.hub import fetch, local_copy
from seekable.remote.placeholder import (
    LARGEST_PLACEHOLDER,
    is_placeholder,
    read_placeholder,
)
from seekable.remote.plan import STRIDES, block_span, blocks_ahead, blocks_within, runs
from seekable.storage.mapped import open_mapped
from seekable.storage.source import DescriptorRanges, HashedRanges, MappedRanges

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seekable.remote.placeholder import RemoteFile
    from seekable.storage.mapped import MappedFile
    from seekable.storage.source import RangeSource

__all__ = ["AT_ONCE", "RemoteRanges", "hashed_ranges", "ranges_of", "remote_ranges"]

AT_ONCE = 16
"""How many requests a process has under way for one reader: the time of a request is mostly waiting."""

_MEMORY_BYTES = 64 << 20

Numbers = range
"""The numbers of consecutive blocks."""


@final
class RemoteRanges:
    """Ranges of a file of the Hub; safe from threads."""

    __slots__ = ("_file", "_key", "_starts", "_store", "path", "size")

    def __init__(self, file: RemoteFile, store: BlockStore) -> None:
        """Fetch nothing yet."""
        self.path = file.told
        self.size = file.size
        self._file = file
        self._key = xxhash.xxh3_128_hexdigest(f"{file.etag} {file.size}".encode())
        self._store = store
        self._starts: deque[int] = deque(maxlen=STRIDES)

    def range(self, start: int, stop: int) -> memoryview:
        """Return some bytes, after fetching the blocks that are not here.

        Raises:
            AccessDenied, DataNotFound: the Hub does not give them.
            IndexStale: the file has another content now.
            Unreachable: the Hub cannot be reached.
        """
        numbers = blocks_within(start, stop, self.size)
        self._starts.append(start)
        blocks = {number: block for number in numbers if (block := self._kept(number)) is not None}
        missing = [number for number in numbers if number not in blocks]
        if missing:
            blocks.update(self._fetched([*runs(missing), *self._ahead(missing)]))
        if not numbers:
            return memoryview(b"")
        first, _ = block_span(numbers[0], self.size)
        whole = blocks[numbers[0]] if len(numbers) == 1 else b"".join(blocks[number] for number in numbers)
        return memoryview(whole)[start - first : stop - first]

    def _kept(self, number: int) -> bytes | None:
        block = _MEMORY.get((self._key, number))
        if block is None:
            block = self._store.load(self._key, number)
            if block is not None:
                _MEMORY.put((self._key, number), block)
        return block

    def _ahead(self, missing: list[int]) -> list[Numbers]:
        """Return what else to fetch, for whoever goes through the file in strides."""
        numbers = blocks_ahead(tuple(self._starts), self.size) if len(missing) == 1 else []
        return [
            range(number, number + 1)
            for number in numbers
            if number not in missing and self._kept(number) is None
        ]

    def _fetched(self, wanted: list[Numbers]) -> Iterable[tuple[int, bytes]]:
        if len(wanted) == 1:
            return self._fetch(wanted[0])
        # Made for this call: threads that are kept would be gone in a forked child.
        with ThreadPoolExecutor(min(len(wanted), AT_ONCE)) as threads:
            return [block for blocks in threads.map(self._fetch, wanted) for block in blocks]

    def _fetch(self, numbers: Numbers) -> list[tuple[int, bytes]]:
        """Fetch consecutive blocks, and keep them."""
        first, stop = block_span(numbers[0], self.size)[0], block_span(numbers[-1], self.size)[1]
        data = fetch(self._file, first, stop)
        blocks = []
        for number in numbers:
            start, end = block_span(number, self.size)
            block = data[start - first : end - first]
            self._store.save(self._key, number, block)
            _MEMORY.put((self._key, number), block)
            blocks.append((number, block))
        return blocks


def remote_ranges(file: RemoteFile) -> RangeSource:
    """Return the ranges of a file of the Hub: of its copy on this machine if there is one."""
    copy = local_copy(file)
    if copy is not None:
        status = os.stat(copy)
        mapped = open_mapped(copy, status.st_size, status.st_mtime_ns)
        return MappedRanges(mapped, path=file.told)
    return RemoteRanges(file, _store(os.path.join(file.hub, "blocks"), store_bytes()))


def ranges_of(mapped: MappedFile) -> RangeSource:
    """Return the ranges of a file, or of the file that it is a placeholder of."""
    if mapped.size <= LARGEST_PLACEHOLDER:
        text = bytes(mapped.view[: mapped.size])
        if is_placeholder(text, mapped.size):
            return remote_ranges(read_placeholder(mapped.path, text))
    return MappedRanges(mapped)


def hashed_ranges(descriptor: int, *, path: str, size: int) -> HashedRanges:
    """Return the ranges of an open file, or of the file that it is a placeholder of, read and digested.

    Args:
        descriptor: the file, which stays the caller's to close.
        path: where it lies.
        size: how many bytes it has.
    """
    if size <= LARGEST_PLACEHOLDER:
        text = os.pread(descriptor, size, 0)
        if is_placeholder(text, size):
            return HashedRanges(remote_ranges(read_placeholder(path, text)))
    return HashedRanges(DescriptorRanges(descriptor, path=path, size=size))


class _Memory:
    """The blocks that were used last, in memory."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self._lock = threading.Lock()
        self._blocks: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        self._bytes = 0

    def get(self, key: tuple[str, int]) -> bytes | None:
        with self._lock:
            block = self._blocks.get(key)
            if block is not None:
                self._blocks.move_to_end(key)
            return block

    def put(self, key: tuple[str, int], block: bytes) -> None:
        with self._lock:
            self._bytes += len(block) - len(self._blocks.pop(key, b""))
            self._blocks[key] = block
            while self._bytes > _MEMORY_BYTES:
                self._bytes -= len(self._blocks.popitem(last=False)[1])


_MEMORY = _Memory()


@cache
def _store(folder: str, most_bytes: int) -> BlockStore:
    """Return the store of a folder, one in each process, which counts what is added."""
    return BlockStore(folder, most_bytes=most_bytes)


def _forget() -> None:
    _MEMORY.forget()
    _store.cache_clear()


# In a child process a lock may be held, by a thread that the child does not have.
os.register_at_fork(after_in_child=_forget)
