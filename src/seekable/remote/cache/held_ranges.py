"""Byte ranges of objects in memory: those that a reader holds, and those that came last.

A block is one answer of a store, or one unit of the cache on disk. It stays in memory as long as a ``Held``
refers to it; besides, the blocks that came last stay, up to a number of bytes.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING, ClassVar, final

from seekable.remote.cache.cells import CELL_BYTES, Cells

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seekable.remote.cache.cells import Bytes

__all__ = ["Block", "Held", "HeldRanges"]


@final
class Block:
    """Consecutive bytes of an object."""

    is_kept: ClassVar[bool] = False

    __slots__ = ("__weakref__", "_cells", "_low", "_source", "data", "start", "stop")

    def __init__(
        self,
        start: int,
        data: memoryview,
        *,
        cells: Cells | None = None,
        first: int = -1,
        source: Bytes | None = None,
    ) -> None:
        """Take bytes over.

        Args:
            start: the offset of the first byte in the object.
            data: the bytes, read-only.
            cells: note what is read of the object.
            first: the first cell of the object.
            source: what is kept as long as the block: the map that the bytes are a part of.
        """
        self.start = start
        self.stop = start + len(data)
        self.data = data
        self._cells = cells
        self._low = first
        self._source = source

    @property
    def is_open(self) -> bool:
        """True if a reader has taken bytes of it: what it still needs of the block is not ahead of it."""
        if self._cells is None or self._low < 0:
            return False
        low, high = self.start // CELL_BYTES, (self.stop - 1) // CELL_BYTES + 1
        return self._cells.is_read(self._low + low, self._low + high)


@final
class Held:
    """Byte ranges that stay in memory as long as this object lives."""

    __slots__ = ("_blocks",)

    def __init__(self, blocks: Iterable[Bytes]) -> None:
        """Keep some blocks in memory."""
        self._blocks = tuple(blocks)

    @property
    def held_bytes(self) -> int:
        """The number of bytes that stay in memory."""
        return sum(len(block.data) for block in self._blocks)


@final
class _BlockRef(weakref.ref[Block]):
    """A weak reference to a block, with the cells that list it."""

    __slots__ = ("cells",)

    cells: tuple[str, int, int]


@final
class HeldRanges:
    """The blocks of this process that are in memory, by object and offset. Safe from threads.

    Attributes:
        cells: the same blocks for lookups of many ranges at once, and maps of the cache on disk.

    Example:
        >>> ranges = HeldRanges(recent_bytes=100)
        >>> block = ranges.put("key", 10, b"abcdef")
        >>> bytes(ranges.view("key", 11, 13))
        b'bc'
        >>> ranges.view("key", 11, 17) is None
        True
    """

    def __init__(self, *, recent_bytes: int) -> None:
        """Start empty.

        Args:
            recent_bytes: the blocks that came last stay in memory up to this many bytes, held or not.
        """
        self.cells = Cells()
        self._most = recent_bytes
        self._recent: deque[Block] = deque()
        self._recent_bytes = 0
        # A tuple is replaced, never changed: readers need no lock.
        self._cells: dict[tuple[str, int], tuple[_BlockRef, ...]] = {}
        # Callbacks of weak references run anywhere, also while this thread holds the lock: they only append.
        self._dead: deque[_BlockRef] = deque()
        self._lock = threading.Lock()

    def put(self, key: str, start: int, data: bytes | memoryview) -> Block:
        """Add bytes of an object, and return their block; they stay as long as it is held.

        Args:
            key: the key of the object.
            start: the offset of the first byte.
            data: the bytes; not copied.
        """
        first = self.cells.first(key)
        block = Block(start, memoryview(data).toreadonly(), cells=self.cells, first=first)
        if not len(block.data):
            return block
        self.cells.mark(first, block, start, block.stop)
        reference = _BlockRef(block, self._dead.append)
        reference.cells = key, start // CELL_BYTES, (block.stop - 1) // CELL_BYTES
        with self._lock:
            self._forget_dead()
            for cell in _cells_of(reference):
                self._cells[cell] = (reference, *self._cells.get(cell, ()))
            self._keep_recent(block)
        return block

    def put_part(self, key: str, source: Bytes, start: int, stop: int) -> Block:
        """Note that a map of a file has some bytes of an object, and return their block.

        Args:
            key: the key of the object.
            source: the map, which somebody else keeps; parts of it may have no bytes of the object.
            start: the offset of the first byte in the object.
            stop: the offset of the byte behind the last.
        """
        first = self.cells.first(key)
        self.cells.mark(first, source, start, stop)
        data = source.data[start - source.start : stop - source.start]
        return Block(start, data, cells=self.cells, first=first, source=source)

    def view(self, key: str, start: int, stop: int) -> memoryview | None:
        """Return some bytes; a copy where they lie in several blocks. None if some are not in memory."""
        found = self.cells.block(self.cells.first(key), start, stop)
        if found is not None:
            return found.data[start - found.start : stop - found.start]
        block = self._reaching_furthest(key, start)
        if block is None:
            return None
        if stop <= block.stop:
            return block.data[start - block.start : stop - block.start]
        blocks, gaps = self.cover(key, start, stop)
        if gaps:
            return None
        whole = bytearray(stop - start)
        for block in blocks:
            first, last = max(start, block.start), min(stop, block.stop)
            whole[first - start : last - start] = block.data[first - block.start : last - block.start]
        return memoryview(whole).toreadonly()

    def cover(self, key: str, start: int, stop: int) -> tuple[list[Block], list[tuple[int, int]]]:
        """Return blocks that contain a range as far as possible, and the parts of it that none contains."""
        found: list[Block] = []
        gaps: list[tuple[int, int]] = []
        while start < stop:
            block = self._reaching_furthest(key, start)
            if block is not None:
                found.append(block)
                start = block.stop
                continue
            end = self._next_start(key, start, stop)
            gaps.append((start, end))
            start = end
        return found, gaps

    @property
    def total_bytes(self) -> int:
        """The number of bytes of all blocks in memory, whoever holds them."""
        with self._lock:
            blocks = {block for cell in self._cells.values() for ref in cell if (block := ref()) is not None}
        return sum(len(block.data) for block in blocks)

    def _reaching_furthest(self, key: str, start: int) -> Block | None:
        """Return the block with the byte at ``start`` that ends last."""
        best = None
        for reference in self._cells.get((key, start // CELL_BYTES), ()):
            block = reference()
            if block is None or not block.start <= start < block.stop:
                continue
            if best is None or block.stop > best.stop:
                best = block
        if best is None:
            first = self.cells.first(key)
            found = self.cells.reach(first, start)
            if found is not None:
                source, low, high = found
                data = source.data[low - source.start : high - source.start]
                return Block(low, data, cells=self.cells, first=first, source=source)
        return best

    def _next_start(self, key: str, start: int, stop: int) -> int:
        """Return where the first block after ``start`` begins, at most ``stop``."""
        for cell in range(start // CELL_BYTES, (stop - 1) // CELL_BYTES + 1):
            blocks = (reference() for reference in self._cells.get((key, cell), ()))
            starts = [block.start for block in blocks if block is not None and block.start > start]
            if starts:
                return min(stop, *starts)
        return stop

    def _keep_recent(self, block: Block) -> None:
        self._recent.append(block)
        self._recent_bytes += len(block.data)
        while self._recent_bytes > self._most:
            self._recent_bytes -= len(self._recent.popleft().data)

    def _forget_dead(self) -> None:
        while self._dead:
            reference = self._dead.popleft()
            for cell in _cells_of(reference):
                left = tuple(other for other in self._cells.get(cell, ()) if other is not reference)
                if left:
                    self._cells[cell] = left
                else:
                    self._cells.pop(cell, None)


def _cells_of(reference: _BlockRef) -> list[tuple[str, int]]:
    key, first, last = reference.cells
    return [(key, cell) for cell in range(first, last + 1)]
