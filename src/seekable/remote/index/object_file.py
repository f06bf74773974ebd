"""Data files that lie in stores, as they were when they were indexed, and the ranges to fetch of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import numpy as np

from seekable.remote.fetching.fetcher import fetcher
from seekable.remote.fetching.wants import Wants
from seekable.remote.object_ranges import ObjectRanges
from seekable.storage.mapped import MappedFile, next_use
from seekable.storage.seek_points import CompressedContent

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.remote.cache.held_ranges import Held, HeldRanges
    from seekable.remote.fetching.wants import ObjectRef
    from seekable.storage.compression import Compression
    from seekable.storage.far import FilesByNumber
    from seekable.storage.ranges import RangeSource
    from seekable.storage.seek_points import SeekPoints

    Numbers = NDArray[np.int64] | NDArray[np.uint64]

__all__ = ["ObjectFile", "ObjectSlices", "fetch_objects", "wants_of"]

_NO_DESCRIPTOR = -1


@final
class _ObjectContent:
    """The bytes of an object, of which slices are fetched when they are taken."""

    __slots__ = ("_source",)

    def __init__(self, source: RangeSource) -> None:
        self._source = source

    def __getitem__(self, at: slice) -> memoryview:
        """Return some bytes, after fetching those that are not on this machine."""
        start, stop, _ = at.indices(self._source.size)
        return self._source.range(start, max(start, stop))


@final
class ObjectFile(MappedFile):
    """An object of a store, as it was when it was indexed: its view is the content. Safe from threads.

    It takes no descriptor, and `check` sends no request: each answer of the store is compared with the
    version that was indexed.
    """

    __slots__ = ("_content", "_source")

    def __init__(self, ref: ObjectRef, *, kind: Compression | None, points: SeekPoints | None) -> None:
        """Send no request.

        Args:
            ref: the address of the object, and its version.
            kind: the compression of the object, None if it is not compressed.
            points: the seek points of a compressed one.
        """
        self.path = ref.path
        self.size = ref.pin.size
        self.mtime_ns = ref.pin.identity
        self.last_use = next_use()
        self.reader = None
        self._descriptor = _NO_DESCRIPTOR
        self._source = ObjectRanges(ref)
        self.name = self._source.path
        raw = _ObjectContent(self._source)
        self._content: CompressedContent | None = None
        self.view = raw
        if kind is not None and points is not None:
            key = (self.mtime_ns, self.size)
            self.view = self._content = CompressedContent(self.name, key, raw, kind=kind, points=points)

    @property
    def source(self) -> RangeSource:
        """The byte ranges of the object, compressed as it is."""
        return self._source

    @property
    def is_compressed(self) -> bool:
        """True if the view is decompressed content."""
        return self._content is not None

    @property
    def ref(self) -> ObjectRef:
        """The address of the object, and its version."""
        return self._source.ref

    def check(self) -> None:
        """Do nothing: each answer of the store is checked."""

    def advise(self, start: int, end: int) -> None:
        """Do nothing: bytes are fetched by `fetch_objects` and by the look-ahead of loaders."""

    def span_to_fetch(self, start: int, end: int) -> tuple[int, int]:
        """Return the bytes of the object that hold some content; an empty span if they are in memory.

        Args:
            start: the first byte of the content.
            end: the byte after its last.
        """
        if self._content is None or start >= end:
            return start, end
        return self._content.span_to_read(start, end) or (0, 0)


def wants_of(files: FilesByNumber, which: Int64s, starts: Numbers, ends: Numbers) -> Wants:
    """Return the ranges of objects that hold some content; content in memory, and local files, are left out.

    Args:
        files: the files.
        which: the number of each range's file, int64.
        starts: its first byte in the content, int64 or uint64.
        ends: the byte after its last.
    """
    numbers, inverse = np.unique(which, return_inverse=True)
    opened = [files.mapped(file) for file in numbers.tolist()]
    objects = [each for each in opened if isinstance(each, ObjectFile)]
    refs = tuple(each.ref for each in objects)
    is_object = np.array([isinstance(each, ObjectFile) for each in opened], np.bool_)
    rows = np.flatnonzero(is_object[inverse] & (starts < ends))
    among = (np.cumsum(is_object) - 1)[inverse[rows]]
    first, last = starts[rows].astype(np.int64), ends[rows].astype(np.int64)
    if any(each.is_compressed for each in objects):
        spans = [
            objects[number].span_to_fetch(start, end)
            for number, start, end in zip(among.tolist(), first.tolist(), last.tolist(), strict=True)
        ]
        first, last = np.array(spans, np.int64).reshape(-1, 2).T
        some = first < last
        among, first, last = among[some], first[some].copy(), last[some].copy()
    return Wants(refs, among, first, last)


def fetch_objects(files: FilesByNumber, which: Int64s, starts: Numbers, ends: Numbers) -> Held | None:
    """Fetch the bytes of records of objects, many at once; see `wants_of` for the arguments.

    Returns:
        The bytes in memory, which are there as long as the caller keeps this; None if there is nothing to
        fetch.

    Raises:
        IndexStale: an object is of another version than the one that was indexed.
        DataNotFound, AccessDenied, Unreachable: bytes cannot be fetched.
    """
    wants = wants_of(files, which, starts, ends)
    return fetcher().need(wants) if len(wants) else None


@final
class ObjectSlices:
    """Slices of some files for readers of many records: those in memory are found by whole arrays."""

    __slots__ = ("_files", "_firsts", "_memory")

    def __init__(self, files: FilesByNumber, count: int) -> None:
        """Open no file yet.

        Args:
            files: the files, some of which are objects of stores.
            count: the number of the files.
        """
        self._files = files
        self._firsts = np.full(count, -1, np.int64)
        self._memory: HeldRanges | None = None

    def read(self, which: Int64s, starts: Numbers, ends: Numbers) -> list[memoryview]:
        """Return the bytes of ranges, after fetching together those that are not here; see `wants_of`.

        Raises:
            IndexStale: a file is of another version than the one that was indexed.
            DataNotFound, AccessDenied, Unreachable: bytes cannot be fetched.
        """
        reading, first, last = fetcher(), starts.astype(np.int64), ends.astype(np.int64)
        if reading.memory is not self._memory:  # In a forked child, and after the end of a fetcher.
            self._memory = reading.memory
            self._firsts[:] = -1
        found = reading.memory.cells.find(self._firsts[which], first, last)
        missing = found.missing
        if not missing.size:
            reading.note_reads(len(which), int((last - first).sum()))
            return found.views()  # type: ignore[return-value]
        return self._fetched(which, first, last, missing)

    def _fetched(self, which: Int64s, starts: Int64s, ends: Int64s, missing: Int64s) -> list[memoryview]:
        held = fetch_objects(self._files, which, starts, ends)
        cells = fetcher().memory.cells
        for file in np.unique(which[missing]).tolist():
            mapped = self._files.mapped(file)
            mapped.check()
            if isinstance(mapped, ObjectFile) and not mapped.is_compressed:
                self._firsts[file] = cells.first(mapped.ref.key)
        views = cells.find(self._firsts[which], starts, ends).views()
        for row, view in enumerate(views):
            if view is None:
                file, start, end = int(which[row]), int(starts[row]), int(ends[row])
                views[row] = self._files.mapped(file).view[start:end]
        del held
        return views  # type: ignore[return-value]
