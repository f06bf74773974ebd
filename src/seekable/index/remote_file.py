"""Data files that lie elsewhere, for which placeholders stand: their bytes for scanners and readers.

The index has the size, the time and the ends of the placeholder, which name the content by its etag. Offsets
of records, seek points and the digest of the whole file are those of the file that lies elsewhere.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol, final

import numpy as np

from seekable._lazy import lazy
from seekable.remote.block_plan import BLOCK_BYTES
from seekable.remote.hub import hub_ranges
from seekable.remote.placeholder import LARGEST_PLACEHOLDER, is_placeholder, read_placeholder
from seekable.remote.remote_ranges import RemoteRanges, fetch_all
from seekable.storage.compressed import CompressedContent
from seekable.storage.index_names import INDEX_SUFFIX
from seekable.storage.mapped import MappedFile
from seekable.storage.ranges import RangeFile, merge_near

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from seekable.index import object_file
    from seekable.remote.cache.held_ranges import Held
    from seekable.remote.placeholder import HubFile
    from seekable.storage.compression import Compression
    from seekable.storage.ranges import RangeSource
    from seekable.storage.seek_points import SeekPoints
else:
    object_file = lazy("seekable.index.object_file")

__all__ = ["RemoteFile", "fetch_records", "forward_file", "read_remote_size", "remote_ranges_of"]

_NUMBERS = np.dtype("<u8")
_FEWEST_PLACES = 3
_APART_BYTES = 4 * BLOCK_BYTES
"""Samples of this size in the mean: the blocks of their headers are a quarter of the file or less."""


def _remote_file_of(descriptor: int, path: str) -> HubFile | None:
    size = os.fstat(descriptor).st_size
    if size > LARGEST_PLACEHOLDER:
        return None
    text = os.pread(descriptor, size, 0)
    return read_placeholder(path, text) if is_placeholder(text, size) else None


def read_remote_size(path: str) -> int | None:
    """Return the number of bytes of the file that a placeholder stands for; None if there is no placeholder.

    Raises:
        UnsupportedFormat: the placeholder was moved or damaged.
    """
    try:
        with open(path, "rb", buffering=0) as file:
            found = _remote_file_of(file.fileno(), path)
    except (FileNotFoundError, PermissionError):
        return None
    return None if found is None else found.size


def remote_ranges_of(descriptor: int, path: str) -> RangeSource | None:
    """Return the byte ranges of the file that an open placeholder stands for; None for any other file.

    Args:
        descriptor: the open file.
        path: its path.

    Raises:
        UnsupportedFormat: it is a placeholder that was moved or damaged.
    """
    found = _remote_file_of(descriptor, path)
    return None if found is None else hub_ranges(found)


def forward_file(source: RangeSource, path: str) -> RangeFile:
    """Return a file over the ranges of a remote file, for a reader that goes from its start to its end.

    Where headers lie far apart, as an index beside the file says, the blocks of headers alone are fetched,
    many at a time. The headers are read in any case, so the index need not be true.

    Args:
        source: the ranges of the file.
        path: its placeholder; that of the index is beside it.
    """
    places = _places_beside(path, source.size) if isinstance(source, RemoteRanges) else None
    if places is None or not isinstance(source, RemoteRanges):
        return RangeFile(source)
    source.expect(places)
    return RangeFile(source, window_bytes=BLOCK_BYTES)


def _places_beside(path: str, size: int) -> list[int] | None:
    """Return where samples start by the index beside a remote file, ``x.tar.idx`` of Energon or Lhotse.

    None if there is no such index, if it is of another file, or if samples are so small that all is read.
    """
    beside = path + INDEX_SUFFIX
    count, rest = divmod(read_remote_size(beside) or 0, _NUMBERS.itemsize)
    if rest or count < _FEWEST_PLACES or size < count * _APART_BYTES:
        return None
    with open(beside, "rb", buffering=0) as file:
        ranges = remote_ranges_of(file.fileno(), beside)
    assert ranges is not None
    places = np.frombuffer(ranges.range(0, ranges.size), _NUMBERS)
    if places[0] or (places[1:] <= places[:-1]).any() or places[-1] > size:
        return None
    found: list[int] = places.tolist()
    return found


@final
class _RemoteContent:
    """The bytes of a file that lies elsewhere, of which slices are fetched when they are taken."""

    __slots__ = ("_source",)

    def __init__(self, source: RangeSource) -> None:
        self._source = source

    def __getitem__(self, at: slice) -> memoryview:
        """Return some bytes, after fetching those that are not on this machine."""
        start, stop, _ = at.indices(self._source.size)
        return self._source.range(start, max(start, stop))


@final
class RemoteFile(MappedFile):
    """A file that lies elsewhere, as it was when it was indexed: its view is the content.

    Safe from threads. The placeholder is open and mapped; bytes of the file are fetched when they are read.
    """

    __slots__ = ("_content", "_source")

    def __init__(
        self, path: str, *, size: int, mtime_ns: int, kind: Compression | None, points: SeekPoints | None
    ) -> None:
        """Open a placeholder that has this size and modification time.

        Args:
            path: the placeholder.
            size: the number of bytes of the placeholder.
            mtime_ns: its modification time.
            kind: the compression of the file, None for a file that is not compressed.
            points: the seek points of a compressed file.

        Raises:
            IndexStale: the placeholder does not exist, or has another size or modification time.
            AccessDenied: this user may not read it.
            UnsupportedFormat: it was moved or damaged.
        """
        super().__init__(path, size=size, mtime_ns=mtime_ns)
        file = read_placeholder(path, bytes(self.view[:]))
        self.name = file.uri
        self._source = hub_ranges(file)
        raw = _RemoteContent(self._source)
        self._content: CompressedContent | None = None
        self.view = raw
        if kind is not None and points is not None:
            version = (file.etag, file.size)
            self.view = self._content = CompressedContent(self.name, version, raw, kind=kind, points=points)

    @property
    def source(self) -> RangeSource:
        """The byte ranges of the file, compressed as it is."""
        return self._source

    def ranges_to_fetch(self, start: int, end: int) -> tuple[RemoteRanges, int, int] | None:
        """Return the bytes of the file that hold some content; None if they are on this machine.

        Args:
            start: the first byte of the content.
            end: the byte behind its last.
        """
        source = self._source
        if start >= end or not isinstance(source, RemoteRanges):
            return None
        if self._content is None:
            return source, start, end
        span = self._content.span_to_read(start, end)
        return None if span is None else (source, *span)


class RemoteFiles(Protocol):
    """Files by number, such as those of a `FileSet`."""

    @property
    def has_objects(self) -> bool:
        """True if a file is an object of a store."""

    @property
    def has_placeholders(self) -> bool:
        """True if a file is a placeholder."""

    def mapped(self, file: int, /) -> MappedFile:
        """Return a file by its number, open."""


def fetch_records(
    files: RemoteFiles,
    which: NDArray[np.int64],
    starts: NDArray[np.uint64],
    ends: NDArray[np.uint64],
    *,
    most_blocks: int | None = None,
) -> Held | None:
    """Fetch the bytes of records of remote files, many at a time, after a check of each file.

    Args:
        files: the files; nothing is done for local ones.
        which: the number of each record's file, int64.
        starts: its first byte in the content, uint64.
        ends: the first byte of the next record, uint64.
        most_blocks: nothing is fetched of the Hub if the records lie in more blocks, and nothing of stores,
            which loaders read ahead themselves; None to fetch all.

    Returns:
        The bytes of objects of stores, which stay in memory as long as the caller keeps this; None if there
        are none.

    Raises:
        IndexStale: a file is not the one that was indexed.
        Unreachable, AccessDenied, DataNotFound: bytes cannot be fetched.
    """
    held = None
    if files.has_objects and most_blocks is None:
        held = object_file.fetch_objects(files, which, starts, ends)
    if files.has_placeholders:
        _fetch_placeholders(files.mapped, which, starts, ends, most_blocks=most_blocks)
    return held


def _fetch_placeholders(
    mapped: Callable[[int], MappedFile],
    files: NDArray[np.int64],
    starts: NDArray[np.uint64],
    ends: NDArray[np.uint64],
    *,
    most_blocks: int | None,
) -> None:
    order = np.lexsort((starts, files))
    merged = merge_near(files[order], starts[order], ends[order], gap=0)
    opened = {file: mapped(file) for file in np.unique(files).tolist()}
    for known in opened.values():
        known.check()
    found = (
        known.ranges_to_fetch(start, end)
        for file, start, end in zip(*(column.tolist() for column in merged), strict=True)
        if isinstance(known := opened[file], RemoteFile)
    )
    fetch_all([ranges for ranges in found if ranges is not None], most_blocks=most_blocks)
