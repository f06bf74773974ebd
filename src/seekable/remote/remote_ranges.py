"""Byte ranges of files that lie elsewhere: whole blocks are fetched, and kept in memory and on disk.

Nothing here depends on the service that holds a file. A client gives the function that fetches a range.
"""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile
from typing import TYPE_CHECKING, final

import xxhash

from seekable.remote.block_plan import (
    STRIDES,
    block_span,
    blocks_ahead,
    blocks_within,
    consecutive,
    continued,
    expected_blocks,
)
from seekable.storage.cache import Cache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from seekable.remote.block_cache import BlockCache

    Numbers = range
    """The numbers of consecutive blocks."""

__all__ = ["AT_ONCE", "RemoteRanges", "fetch_all"]

AT_ONCE = 16
"""The most requests that a process has under way for one reader: the time of a request is mostly waiting."""

_BLOCKS: Cache[bytes] = Cache(len, most_bytes=64 << 20)
"""The blocks that were read last, by the key of their file and their number."""


@final
class RemoteRanges:
    """Byte ranges of a file that lies elsewhere. Safe from threads, and in a forked child."""

    __slots__ = ("_blocks", "_expected", "_fetch", "_key", "_last", "_recent", "_starts", "path", "size")

    def __init__(
        self,
        fetch: Callable[[int, int], bytes],
        *,
        path: str,
        size: int,
        version: str,
        blocks: BlockCache,
    ) -> None:
        """Fetch nothing yet.

        Args:
            fetch: returns the bytes from its first argument up to its second, exactly that many; called in
                several threads at once. It retries and raises errors as the service needs it.
            path: the name of the file in error messages.
            size: the number of bytes of the file.
            version: the etag or the digest of the content, by the service; files of one version share blocks.
            blocks: the blocks on disk.
        """
        self.path = path
        self.size = size
        self._fetch = fetch
        self._key = xxhash.xxh3_128_hexdigest(f"{version} {size}".encode())
        self._blocks = blocks
        self._starts: deque[int] = deque(maxlen=STRIDES)
        self._last = range(0)
        self._expected: list[int] = []
        self._recent = 0, memoryview(b"")

    def expect(self, places: Iterable[int]) -> None:
        """Take note of places that a reader will go to, one behind the other.

        Where it needs a block that must be fetched, the blocks of the next places are fetched with it.

        Args:
            places: offsets in the file, ascending.
        """
        blocks = (blocks_within(place, place + 1, self.size)[0] for place in places if place < self.size)
        self._expected = list(dict.fromkeys(blocks))

    def range(self, start: int, stop: int) -> memoryview:
        """Return some bytes, after fetching the blocks that are neither in memory nor on disk.

        Raises:
            Exception: the error of the function that fetches.
        """
        self._starts.append(start)
        first, whole = self._recent
        if first <= start and stop <= first + len(whole):
            return whole[start - first : stop - first]
        numbers = blocks_within(start, stop, self.size)
        blocks = {number: block for number in numbers if (block := self._kept(number)) is not None}
        missing = [number for number in numbers if number not in blocks]
        if missing:
            blocks.update(self._fetched([*consecutive(missing), *self._ahead(missing)]))
        if not numbers:
            return memoryview(b"")
        first, _ = block_span(numbers[0], self.size)
        if len(numbers) > 1:
            whole = memoryview(b"".join(blocks[number] for number in numbers))
        else:
            whole = memoryview(blocks[numbers[0]])
            self._recent = first, whole
        return whole[start - first : stop - first]

    def missing(self, numbers: Iterable[int]) -> list[int]:
        """Return the blocks that are neither in memory nor on disk, in the order of ``numbers``."""
        return [number for number in numbers if self._kept(number) is None]

    def fetch_blocks(self, numbers: Numbers) -> None:
        """Fetch consecutive blocks in one request, and keep them in memory and on disk.

        More are fetched where they follow those of the last call, as in a pass over the file.

        Raises:
            Exception: the error of the function that fetches.
        """
        wanted = continued(numbers, self._last, self.size)
        more = takewhile(lambda number: self._kept(number) is None, range(numbers.stop, wanted.stop))
        wanted = range(numbers.start, max([numbers.stop, *(number + 1 for number in more)]))
        self._last = wanted
        self._fetch_blocks(wanted)

    @property
    def key(self) -> str:
        """The digest of the content of the file: sources of one key share blocks."""
        return self._key

    def _kept(self, number: int) -> bytes | None:
        """Return a block that is in memory or on disk."""
        block = _BLOCKS.get((self._key, number))
        if block is None:
            block = self._blocks.load(self._key, number)
            if block is not None:
                _BLOCKS.put((self._key, number), block)
        return block

    def _ahead(self, missing: list[int]) -> list[Numbers]:
        """Return the blocks to fetch too: of expected places, or behind reads in equal strides."""
        if self._expected:
            numbers = expected_blocks(self._expected, missing[-1])
        else:
            numbers = blocks_ahead(tuple(self._starts), self.size) if len(missing) == 1 else []
        return [
            range(number, number + 1)
            for number in numbers
            if number not in missing and self._kept(number) is None
        ]

    def _fetched(self, wanted: list[Numbers]) -> Iterable[tuple[int, bytes]]:
        if len(wanted) == 1:
            return self._fetch_blocks(wanted[0])
        # Made for this call: a forked child has none of the threads of its parent.
        with ThreadPoolExecutor(min(len(wanted), AT_ONCE)) as threads:
            return [block for blocks in threads.map(self._fetch_blocks, wanted) for block in blocks]

    def _fetch_blocks(self, numbers: Numbers) -> list[tuple[int, bytes]]:
        """Fetch consecutive blocks in one request, and keep them in memory and on disk."""
        first, stop = block_span(numbers[0], self.size)[0], block_span(numbers[-1], self.size)[1]
        data = self._fetch(first, stop)
        blocks = []
        for number in numbers:
            start, end = block_span(number, self.size)
            block = data[start - first : end - first]
            self._blocks.save(self._key, number, block)
            _BLOCKS.put((self._key, number), block)
            blocks.append((number, block))
        return blocks


def fetch_all(wanted: Iterable[tuple[RemoteRanges, int, int]], *, most_blocks: int | None = None) -> None:
    """Fetch the blocks of many ranges that are neither in memory nor on disk, 16 requests at a time.

    Args:
        wanted: files, each with the first byte of a range and the byte behind its last.
        most_blocks: nothing is fetched if the ranges have more blocks, on this machine or not; None for no
            limit.

    Raises:
        Exception: the error of a function that fetches; the requests that were not sent then never are.
    """
    sources: dict[str, RemoteRanges] = {}
    blocks: dict[str, set[int]] = {}
    for source, start, stop in wanted:
        sources[source.key] = source
        blocks.setdefault(source.key, set()).update(blocks_within(start, stop, source.size))
    if most_blocks is not None and sum(map(len, blocks.values())) > most_blocks:
        return
    jobs = [
        (source, numbers)
        for key, source in sources.items()
        for numbers in consecutive(source.missing(sorted(blocks[key])))
    ]
    if len(jobs) == 1:
        jobs[0][0].fetch_blocks(jobs[0][1])
    elif jobs:
        # Made for this call: a forked child has none of the threads of its parent.
        with ThreadPoolExecutor(min(len(jobs), AT_ONCE)) as threads:
            fetches = [threads.submit(source.fetch_blocks, numbers) for source, numbers in jobs]
            try:
                for fetch in fetches:
                    fetch.result()
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                raise


# In a child process the lock may be held, by a thread that the child does not have.
os.register_at_fork(after_in_child=_BLOCKS.forget)
