"""Byte ranges of objects in memory: those that a reader holds, and those that came last.

A block is one answer of a store, or one unit of the cache on disk. It stays in memory as long as a ``Held``
refers to it; besides, the blocks that came last stay, up to a number of bytes.

Many ranges are found at once by whole arrays. An object is divided into cells of 64 KiB, and the cells of all
objects have numbers in one sequence. An array has the block that contains each cell; of a block that ends
within a cell, the last one that came counts.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from seekable._typing import Int64s

__all__ = ["CELL_BYTES", "Bytes", "Cells", "Found", "Held", "HeldBlock", "HeldRanges"]

CELL_BYTES = 64 << 10

_MOST_CELLS = 1 << 26
"""The most cells that have numbers: 4 TiB of objects, which take 320 MiB. Others are found one by one."""

_NOWHERE = -1
_READ, _READ_LATELY = 1, 3


class Bytes(Protocol):
    """Bytes of an object in memory, to which weak references are possible."""

    @property
    def start(self) -> int:
        """The offset of the first byte in the object."""

    @property
    def stop(self) -> int:
        """The offset of the byte after the last."""

    @property
    def data(self) -> memoryview:
        """The bytes of the block, read-only."""

    @property
    def is_kept(self) -> bool:
        """True for a map of the cache on disk, which stays open; False if readers must hold the bytes."""


@final
class Found:
    """Ranges that were looked for in memory. What was found stays there as long as this lives."""

    __slots__ = ("_blocks", "_slots", "_starts", "_stops")

    def __init__(self, slots: NDArray[Any], starts: Int64s, stops: Int64s, blocks: dict[int, Bytes]) -> None:
        """Take over what `Cells.find` has found.

        Args:
            slots: the number of the block of each range, -1 for none.
            starts: the first byte of each range, counted from the start of its block.
            stops: the byte after its last.
            blocks: the blocks by number.
        """
        self._slots, self._starts, self._stops = slots, starts, stops
        self._blocks = blocks

    @property
    def missing(self) -> Int64s:
        """The numbers of the ranges that no block contains."""
        return np.flatnonzero(self._slots < 0)

    @property
    def blocks(self) -> list[Bytes]:
        """The blocks that contain the others."""
        return list(self._blocks.values())

    def views(self) -> list[memoryview | None]:
        """Return the bytes of each range; None for a missing one."""
        data = {slot: block.data for slot, block in self._blocks.items()}
        columns = (self._slots.tolist(), self._starts.tolist(), self._stops.tolist())
        if self._slots.size and self._slots.min() >= 0:
            return [data[slot][start:stop] for slot, start, stop in zip(*columns, strict=True)]
        return [
            None if (found := data.get(slot)) is None else found[start:stop]
            for slot, start, stop in zip(*columns, strict=True)
        ]


@final
class _SlotRef(weakref.ref[Any]):
    """A weak reference to a block, with its number and the cells that may name it."""

    __slots__ = ("first", "key", "last", "slot")

    first: int
    last: int
    slot: int
    key: int


@final
class Cells:
    """The blocks of cells. Safe from threads.

    Example:
        >>> from seekable.remote.cache.held_ranges import HeldBlock
        >>> cells, block = Cells(), HeldBlock(0, memoryview(b"abcdef"))
        >>> first = cells.first("key 6 1 s3://bucket/a")
        >>> cells.mark(first, block, 0, 6)
        >>> found = cells.find(np.array([first]), np.array([1]), np.array([3]))
        >>> [bytes(view) for view in found.views()]
        [b'bc']
    """

    def __init__(self) -> None:
        """Begin without cells and blocks."""
        self._firsts: dict[str, int] = {}
        self._count = 0
        self._slots = np.full(1 << 10, _NOWHERE, np.int32)
        self._used = np.zeros(1 << 10, np.uint8)
        self._starts = np.zeros(1 << 6, np.int64)
        self._stops = np.zeros(1 << 6, np.int64)
        self._refs: list[_SlotRef | None] = []
        self._slot_of: dict[int, int] = {}
        self._free: list[int] = []
        # Callbacks of weak references run anywhere, also while this thread holds the lock: they only append.
        self._dead: deque[_SlotRef] = deque()
        self._lock = threading.Lock()

    def first(self, key: str) -> int:
        """Return the index of the first cell of an object; -1 if it has no numbers.

        Args:
            key: the name of the object, as ``object_key`` returned it.
        """
        found = self._firsts.get(key)
        return self._numbered(key) if found is None else found

    def mark(self, first: int, block: Bytes, start: int, stop: int) -> None:
        """Note that a block contains a range of an object.

        Args:
            first: the first cell of the object; nothing is noted if it is -1.
            block: the block.
            start: the first byte of the range.
            stop: the byte after the last.
        """
        if first < 0 or start >= stop:
            return
        low, high = first + start // CELL_BYTES, first + (stop - 1) // CELL_BYTES + 1
        with self._lock:
            self._forget_dead()
            slot = self._slot_of.get(id(block))
            reference = self._new(block) if slot is None else self._refs[slot]
            assert reference is not None
            reference.first, reference.last = min(reference.first, low), max(reference.last, high)
            named = self._slots[low:high]
            self._used[low:high][named != reference.slot] = 0
            named[:] = reference.slot

    def find(self, firsts: Int64s, starts: Int64s, stops: Int64s) -> Found:
        """Find the blocks of ranges, and note that the ranges are read. Empty ranges are not found.

        Args:
            firsts: the first cell of the object of each range; -1 for one that is not found.
            starts: the first byte of each range, int64.
            stops: the byte after its last, int64.
        """
        low = firsts + starts // CELL_BYTES
        high = firsts + (stops - 1) // CELL_BYTES
        if len(firsts) and int(firsts.min()) < 0:
            low, high = np.where(firsts < 0, 0, low), np.where(firsts < 0, 0, high)
        with self._lock:
            self._forget_dead()
            # By indexes of 32 bits NumPy gives the interpreter to another thread, and waits to get it back.
            slots = self._slots[low].astype(np.int64)
            good = (slots >= 0) & (slots == self._slots[high]) & (firsts >= 0) & (stops > starts)
            bases = self._starts[slots]
            good &= (bases <= starts) & (self._stops[slots] >= stops)
            for row in np.flatnonzero(good & (high > low + 1)).tolist():
                good[row] = (self._slots[low[row] : high[row]] == slots[row]).all()
            if not good.all():
                slots = np.where(good, slots, _NOWHERE)
                low, high = low[good], high[good]
            blocks: dict[int, Bytes] = {}
            for slot in set(slots.tolist()):
                reference = self._refs[slot] if slot >= 0 else None
                block = None if reference is None else reference()
                if block is not None:
                    blocks[slot] = block
                elif slot >= 0:
                    slots[slots == slot] = _NOWHERE
            self._used[low] = _READ_LATELY
            self._used[high] = _READ_LATELY
        return Found(slots, starts - bases, stops - bases, blocks)

    def are_kept(self, firsts: Int64s, starts: Int64s, stops: Int64s) -> NDArray[np.bool_]:
        """Return for each range True if a map of the cache on disk has it; see `find` for the arguments."""
        low = np.maximum(firsts + starts // CELL_BYTES, 0)
        high = np.maximum(firsts + (stops - 1) // CELL_BYTES, 0)
        with self._lock:
            self._forget_dead()
            kept = np.zeros(len(self._refs) + 1, np.bool_)
            for slot, reference in enumerate(self._refs):
                block = None if reference is None else reference()
                kept[slot] = block is not None and block.is_kept
            slots = self._slots[low].astype(np.int64)
            found: NDArray[np.bool_] = kept[slots] & (slots == self._slots[high]) & (high <= low + 1)
        return found & (firsts >= 0)

    def block(self, first: int, start: int, stop: int) -> Bytes | None:
        """Return the block that contains one range, None if there is none.

        Args:
            first: the first cell of its object.
            start: the first byte.
            stop: the byte after the last.
        """
        if first < 0 or start >= stop:
            return None
        low, high = first + start // CELL_BYTES, first + (stop - 1) // CELL_BYTES
        with self._lock:
            self._forget_dead()
            slot = self._slots.item(low)
            if slot < 0 or self._slots.item(high) != slot:
                return None
            reference = self._refs[slot]
            block: Bytes | None = None if reference is None else reference()
            if block is None or block.start > start or block.stop < stop:
                return None
            if high > low + 1 and not (self._slots[low:high] == slot).all():
                return None
            self._used[low] = self._used[high] = _READ_LATELY
        return block

    def reach(self, first: int, start: int) -> tuple[Bytes, int, int] | None:
        """Return the block with a byte of an object, and the range around it that it certainly contains.

        Args:
            first: the first cell of the object.
            start: the byte.
        """
        if first < 0:
            return None
        cell = first + start // CELL_BYTES
        with self._lock:
            self._forget_dead()
            slot = self._slots.item(cell)
            reference = self._refs[slot] if slot >= 0 else None
            block: Bytes | None = None if reference is None else reference()
            if reference is None or block is None or not block.start <= start < block.stop:
                return None
            others = np.flatnonzero(self._slots[cell : reference.last] != slot)
            end = cell + int(others[0]) if others.size else reference.last
            self._used[cell] = _READ_LATELY
        low = start - start % CELL_BYTES
        return block, max(block.start, low), min(block.stop, (end - first) * CELL_BYTES)

    def is_read(self, low: int, high: int) -> bool:
        """Return True if bytes of some cells were read since the cells came.

        Args:
            low: the index of the first cell.
            high: the number after the last.
        """
        return bool(self._used[low:high].any())

    def read_lately(self) -> dict[str, Int64s]:
        """Return the cells that were read since the last call, counted from the start of each object."""
        with self._lock:
            found = np.flatnonzero(self._used[: self._count] == _READ_LATELY)
            self._used[found] = _READ
            keys = list(self._firsts.items())
        firsts = np.array([first for _, first in keys], np.int64)
        order = np.argsort(firsts)
        edges = np.searchsorted(found, firsts[order])
        read: dict[str, Int64s] = {}
        for number, low, high in zip(
            order.tolist(), edges.tolist(), [*edges.tolist()[1:], found.size], strict=True
        ):
            key, first = keys[number]
            if first >= 0 and high > low:
                read[key] = found[low:high] - first
        return read

    def _numbered(self, key: str) -> int:
        size = key.split(" ", 2)[1:2]
        count = -(-int(size[0]) // CELL_BYTES) if size and size[0].isdecimal() else _MOST_CELLS
        with self._lock:
            found = self._firsts.get(key)
            if found is not None:
                return found
            fits = self._count + count < _MOST_CELLS
            found = self._firsts[key] = self._count if fits else _NOWHERE
            if fits:
                self._count += count
                if self._count > self._slots.size:
                    self._slots = _longer(self._slots, 2 * self._count, _NOWHERE)
                    self._used = _longer(self._used, 2 * self._count, 0)
        return found

    def _new(self, block: Bytes) -> _SlotRef:
        """Give a number to a block; called with the lock."""
        reference = _SlotRef(block, self._dead.append)
        if self._free:
            reference.slot = self._free.pop()
        else:
            reference.slot = len(self._refs)
            self._refs.append(None)
            if len(self._refs) > self._starts.size:
                self._starts = _longer(self._starts, 2 * len(self._refs), 0)
                self._stops = _longer(self._stops, 2 * len(self._refs), 0)
        reference.first, reference.last, reference.key = _MOST_CELLS, 0, id(block)
        self._refs[reference.slot] = reference
        self._slot_of[reference.key] = reference.slot
        self._starts[reference.slot], self._stops[reference.slot] = block.start, block.stop
        return reference

    def _forget_dead(self) -> None:
        while self._dead:
            reference = self._dead.popleft()
            named = self._slots[reference.first : reference.last]
            named[named == reference.slot] = _NOWHERE
            self._refs[reference.slot] = None
            self._slot_of.pop(reference.key, None)
            self._free.append(reference.slot)


def _longer(array: NDArray[Any], size: int, fill: int) -> NDArray[Any]:
    """Return a copy of an array with more elements."""
    longer = np.full(size, fill, array.dtype)
    longer[: array.size] = array
    return longer


@final
class HeldBlock:
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

    def move_to(self, other: HeldBlock) -> None:
        """Have the same bytes from where another block has them: its own memory is freed."""
        self.data, self._source = other.data, other._source

    @property
    def is_open(self) -> bool:
        """True if a reader has taken bytes from it: the rest is no longer ahead of the reader."""
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
class _BlockRef(weakref.ref[HeldBlock]):
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
        self._recent: deque[HeldBlock] = deque()
        self._recent_bytes = 0
        # A tuple is replaced, never changed: readers need no lock.
        self._cells: dict[tuple[str, int], tuple[_BlockRef, ...]] = {}
        # Callbacks of weak references run anywhere, also while this thread holds the lock: they only append.
        self._dead: deque[_BlockRef] = deque()
        self._lock = threading.Lock()

    def put(self, key: str, start: int, data: bytes | memoryview) -> HeldBlock:
        """Add bytes of an object, and return their block; they stay as long as it is held.

        Args:
            key: the key of the object.
            start: the offset of the first byte.
            data: the bytes; not copied.
        """
        first = self.cells.first(key)
        block = HeldBlock(start, memoryview(data).toreadonly(), cells=self.cells, first=first)
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

    def put_part(self, key: str, source: Bytes, start: int, stop: int) -> HeldBlock:
        """Note that a map of a file has some bytes of an object, and return their block.

        Args:
            key: the key of the object.
            source: the map, which somebody else keeps; parts of it may have no bytes of the object.
            start: the offset of the first byte in the object.
            stop: the offset of the byte after the last.
        """
        first = self.cells.first(key)
        self.cells.mark(first, source, start, stop)
        data = source.data[start - source.start : stop - source.start]
        return HeldBlock(start, data, cells=self.cells, first=first, source=source)

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

    def cover(self, key: str, start: int, stop: int) -> tuple[list[HeldBlock], list[tuple[int, int]]]:
        """Return blocks that contain a range as far as possible, and the parts of it that none contains."""
        found: list[HeldBlock] = []
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

    def _reaching_furthest(self, key: str, start: int) -> HeldBlock | None:
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
                return HeldBlock(low, data, cells=self.cells, first=first, source=source)
        return best

    def _next_start(self, key: str, start: int, stop: int) -> int:
        """Return where the first block after ``start`` begins, at most ``stop``."""
        for cell in range(start // CELL_BYTES, (stop - 1) // CELL_BYTES + 1):
            blocks = (reference() for reference in self._cells.get((key, cell), ()))
            starts = [block.start for block in blocks if block is not None and block.start > start]
            if starts:
                return min(stop, *starts)
        return stop

    def _keep_recent(self, block: HeldBlock) -> None:
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
