"""Mapped numbers of the index, such as the record offsets of a segment, and the digests that prove them.

A large file is compared unit by unit, when a unit of 4 KiB is touched first. ``offsets-<digest>.units``
belongs to the segment ``offsets-<digest>.u64``, and ``keys-<digest>.units`` to the pairs of a key index. It
has, as little-endian uint64, the xxh3_64 of each 4 KiB of that file and the number that follows: so one
comparison proves a number and the next one, the start and the end of a record. That is 0.2 % of the file. A
file of up to 64 KiB has no such file: it is read as a whole, and compared with its own digest.

An index that was built before there were such files lacks them, and is read without comparisons. The next
build that adds to it writes them, and so does ``verify``, after it compared the whole file with its digest.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from array import array
from typing import TYPE_CHECKING

import numpy as np
from xxhash import xxh3_64, xxh3_64_intdigest

from seekable.errors import IndexStale
from seekable.storage.files import READ_BYTES, drop_pages, read_or_map, regular_only, write_atomically

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.index.file_table import OffsetSegment

UNIT_SHIFT = 9
"""A number is in the unit of its index shifted right by this: 512 numbers are 4 KiB."""

_WORD_BYTES = 8
_WORDS_PER_UNIT = 1 << UNIT_SHIFT
_UNIT_BYTES = _WORD_BYTES << UNIT_SHIFT
_HASHED_BYTES = _UNIT_BYTES + _WORD_BYTES
_CHUNK_BYTES = 1 << 20

_FEWEST_JOINED = 2


def units_name(name: str) -> str:
    """Return the name, or the path, of the file of digests that belongs to a file.

    Example:
        >>> units_name("offsets-00000000000000ff.u64")
        'offsets-00000000000000ff.units'
    """
    return f"{name.removesuffix('.u64')}.units"


class UnitHasher:
    """Hashes consecutive bytes, unit by unit and as a whole.

    Example:
        >>> hasher = UnitHasher()
        >>> hasher.update(bytes(4096))
        >>> hasher.update(bytes(8))
        >>> len(hasher.digests()) // 8, hasher.whole() == xxh3_64_intdigest(bytes(4104))
        (2, True)
    """

    __slots__ = ("_digests", "_hasher", "_rest")

    def __init__(self) -> None:
        self._digests = array("Q")
        self._hasher = xxh3_64()
        self._rest = b""

    def update(self, data: bytes | memoryview) -> None:
        """Take the next bytes."""
        self._hasher.update(data)
        view, at = memoryview(self._rest + data if self._rest else data), 0
        while len(view) - at >= _HASHED_BYTES:
            self._digests.append(xxh3_64_intdigest(view[at : at + _HASHED_BYTES]))
            at += _UNIT_BYTES
        self._rest = bytes(view[at:])

    def whole(self) -> int:
        """Return the digest of all bytes."""
        return self._hasher.intdigest()

    def digests(self) -> bytes:
        """Return the digests of all units as little-endian uint64."""
        last = [xxh3_64_intdigest(self._rest)] if self._rest else []
        return np.array([*self._digests, *last], "<u8").tobytes()


class Units:
    """The units of one mapped file, of which each is compared once in a process. Safe from threads.

    A caller looks into ``compared`` before it uses a number, and calls `compare` where it finds 0 there.
    """

    __slots__ = ("_data", "_digest", "_digests", "_flags", "_path", "compared", "damaged")

    def __init__(self, path: str, data: memoryview, digest: int, digests: bytes | memoryview) -> None:
        """Take a file whose units are not compared yet.

        Args:
            path: the path of the file.
            data: its bytes, mapped.
            digest: the xxh3_64 of its bytes, as they were written.
            digests: those of its units.
        """
        self.compared = bytearray(_count(len(data)))
        """For each unit 1 if it was compared, else 0."""
        self.damaged = False
        """True if a unit was found damaged: the file is to be opened again when it was built again."""
        self._path = path
        self._data = data
        self._digest = digest
        self._digests = memoryview(digests).cast("Q")
        self._flags: NDArray[np.bool_] = np.frombuffer(self.compared, np.bool_)

    def compare(self, unit: int) -> None:
        """Compare a unit with its digest.

        Raises:
            IndexStale: the file is damaged; it is removed where this user may do so.
        """
        at = unit * _UNIT_BYTES
        if xxh3_64_intdigest(self._data[at : at + _HASHED_BYTES]) == self._digests[unit]:
            self.compared[unit] = 1
        elif xxh3_64_intdigest(self._data) == self._digest:
            # The digests are what is damaged. The next build makes them anew.
            self._flags[:] = True
            with contextlib.suppress(OSError):
                os.unlink(units_name(self._path))
        else:
            self.damaged = True
            end = min(at + _HASHED_BYTES, len(self._data))
            what = (
                f"a part of the index, is damaged: between byte {at:,} and byte {end:,} it has other bytes "
                f"than were written"
            )
            raise damaged_error(self._path, what)

    def compare_all(self, at: NDArray[np.int64]) -> None:
        """Compare the units of many numbers, given their indexes.

        Raises:
            IndexStale: the file is damaged; it is removed where this user may do so.
        """
        units = at >> UNIT_SHIFT
        left = units[~self._flags[units]]
        if len(left):
            for unit in sorted(set(left.tolist())):
                self.compare(unit)

    def compare_span(self, first: int, stop: int) -> None:
        """Compare the units of consecutive numbers, from one index up to another.

        Raises:
            IndexStale: the file is damaged; it is removed where this user may do so.
        """
        for unit in range(first >> UNIT_SHIFT, (stop - 1 >> UNIT_SHIFT) + 1):
            if not self.compared[unit]:
                self.compare(unit)


def open_units(path: str, data: memoryview, digest: int) -> Units | None:
    """Return the units of a mapped file, None if their digests are not there."""
    try:
        digests = read_or_map(units_name(path), size=_count(len(data)) * _WORD_BYTES)
    except OSError:
        return None
    return Units(path, data, digest, digests)


def keep_units(path: str, hasher: UnitHasher) -> None:
    """Write the unit digests of an index file, if it is large enough to have them.

    Args:
        path: the path of the file, which may not be there yet.
        hasher: has all its bytes.

    Raises:
        OSError: the folder cannot be written.
    """
    digests = hasher.digests()
    if len(digests) // _WORD_BYTES <= READ_BYTES // _UNIT_BYTES:
        return
    with contextlib.suppress(OSError):
        if read_or_map(units_name(path), size=len(digests)) == digests:
            return
    write_atomically(units_name(path), digests)


def complete_units(folder: str, segment: OffsetSegment) -> bool:
    """Return True if a segment has the digests of its units, or needs none, after making those that it lacks.

    Return False if its bytes are not those that were written.

    Raises:
        OSError: the folder cannot be written.
    """
    if segment.bytes <= READ_BYTES:
        return True
    path = os.path.join(folder, segment.file_name)
    with contextlib.suppress(FileNotFoundError):
        if os.path.getsize(units_name(path)) == _count(segment.bytes) * _WORD_BYTES:
            return True
    hasher = hashed_units(path)
    if hasher.whole() != segment.digest:
        return False
    keep_units(path, hasher)
    return True


def hashed_units(path: str) -> UnitHasher:
    """Return the hasher of all bytes of a file.

    Raises:
        OSError: the file cannot be read.
    """
    hasher = UnitHasher()
    with open(path, "rb", buffering=0, opener=regular_only) as file:
        while data := file.read(_CHUNK_BYTES):
            hasher.update(data)
    return hasher


def _count(size: int) -> int:
    return -(-size // _UNIT_BYTES)


def damaged_error(path: str, what: str) -> IndexStale:
    """Remove a damaged file of the index, if this user may do so, and return the error that says so.

    Opening looks whether the files of the index are there, which takes no time, and builds again what is not.

    Args:
        path: the file.
        what: what it is, and how it is damaged.
    """
    done = "it was removed: open the dataset again, which builds it again"
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        done = (
            f"it cannot be removed ({error.strerror}): have it removed, or name another folder with "
            f"sk.Index(folder=), and open the dataset again"
        )
    return IndexStale(f"{path!r}, {what}; {done}")


class Offsets:
    """The record offsets of a segment; each unit of 4 KiB is compared when it is touched first.

    Those of a small segment are in memory, and were compared as a whole when they were read.
    """

    __slots__ = ("__weakref__", "array", "compare", "compared", "in_memory", "units", "view")

    def __init__(self, data: bytes | memoryview, units: Units | None = None) -> None:
        """Make an array and a memoryview of the bytes; without units, none is compared."""
        self.view = memoryview(data).cast("Q")
        """All numbers, for single ones; a reader looks into ``compared`` first."""
        self.array: NDArray[np.uint64] = np.frombuffer(data, np.uint64)
        """All numbers, none of them compared, for readers with a digest of their own."""
        self.in_memory = isinstance(data, bytes)
        self.units = units
        self.compare = units.compare if units else _nothing
        """Compares a unit, where ``compared`` has 0; it raises ``IndexStale`` if the segment is damaged."""
        self.compared = units.compared if units else b"\1" * (len(self.view) // _WORDS_PER_UNIT + 1)
        """For each unit 1 if it was compared, else 0: that of a number is its index >> 9."""

    def number(self, at: int) -> int:
        """Return one number.

        Raises:
            IndexStale: the segment is damaged.
        """
        if not self.compared[at >> UNIT_SHIFT]:
            self.compare(at >> UNIT_SHIFT)
        return self.view[at]

    def pair(self, at: int) -> tuple[int, int]:
        """Return a number and the next one.

        Raises:
            IndexStale: the segment is damaged.
        """
        if not self.compared[at >> UNIT_SHIFT]:
            self.compare(at >> UNIT_SHIFT)
        return self.view[at], self.view[at + 1]

    def pairs(self, at: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return many numbers, and the number after each.

        Raises:
            IndexStale: the segment is damaged.
        """
        if self.units:
            self.units.compare_all(at)
        return self.array[at], self.array[at + 1]

    def span(self, first: int, stop: int) -> memoryview:
        """Return the numbers from one index up to another, without a copy.

        Raises:
            IndexStale: the segment is damaged.
        """
        if self.units:
            self.units.compare_span(first, stop)
        return self.view[first:stop]


def _nothing(_: int) -> None:
    """Compare nothing: all units were compared, or cannot be."""


def join_small(
    offsets: tuple[Offsets, ...],
) -> tuple[tuple[Offsets, ...], NDArray[np.int64], NDArray[np.int64]]:
    """Join the offsets that are in memory, so that they are read as one array.

    Returns:
        The joined offsets; for each given one, the number of the joined one that holds it; and its first
        index there.

    Example:
        >>> one, two = (Offsets(np.array(numbers, np.uint64).tobytes()) for numbers in ([0, 7], [0, 3, 9]))
        >>> (joined,), number, before = join_small((one, two))
        >>> joined.array.tolist(), number.tolist(), before.tolist()
        ([0, 7, 0, 3, 9], [0, 0], [0, 2])
    """
    number, before = np.arange(len(offsets)), np.zeros(len(offsets), np.int64)
    if len(offsets) < _FEWEST_JOINED:
        return offsets, number, before
    small = [i for i, some in enumerate(offsets) if some.in_memory]
    large = [i for i, some in enumerate(offsets) if not some.in_memory]
    if len(small) < _FEWEST_JOINED:
        return offsets, number, before
    number[small], number[large] = 0, np.arange(1, len(large) + 1)
    lengths = np.array([len(offsets[i].array) for i in small])
    before[small] = np.cumsum(lengths) - lengths
    joined = Offsets(b"".join([offsets[i].view for i in small]))
    return (joined, *(offsets[i] for i in large)), number, before


_open: weakref.WeakValueDictionary[str, Offsets] = weakref.WeakValueDictionary()


def open_offsets(folder: str, segment: OffsetSegment) -> Offsets:
    """Return the offsets of a segment; one open object serves all callers of the process.

    Raises:
        FileNotFoundError: the segment does not exist, is cut off, or is a small one that is damaged.
    """
    path = os.path.join(folder, segment.file_name)
    offsets = _open.get(path)
    if offsets is None or (offsets.units and offsets.units.damaged):
        data = read_or_map(path, size=segment.bytes)
        if isinstance(data, bytes):
            if xxh3_64_intdigest(data) != segment.digest:
                raise FileNotFoundError(f"the bytes of {path!r} are not those that were written")
            offsets = Offsets(data)
        else:
            offsets = Offsets(data, open_units(path, data, segment.digest))
        _open[path] = offsets
    return offsets


def open_if_whole(folder: str, segment: OffsetSegment) -> Offsets | bool:
    """Return the offsets of a small segment, whose bytes are compared; of others True if they can be read.

    Returns:
        False for a segment that cannot be read, or has not its length.
    """
    try:
        # Of another user's index a part may be unreadable: as good as not there.
        if (size := segment.bytes) > READ_BYTES:
            path = os.path.join(folder, segment.file_name)
            return os.path.getsize(path) == size and os.access(path, os.R_OK)
        return open_offsets(folder, segment)
    except OSError:
        return False


def drop_read_pages() -> None:
    """Give back the memory of the pages of all open segments, for a reader that passes over an index once.

    Later reads find the pages in the cache of the system.
    """
    for offsets in list(_open.values()):
        if not offsets.in_memory:
            drop_pages(offsets.view)
