"""The content of a data file, read once from its start to its end.

A scanner gets all of a compressed file, decompressed; the seek points of the file are found meanwhile. A
surveyor goes from header to header, and what lies between them is not read.

Seek points lie at the starts of members and frames, and for gzip also in the middle of members, where
``indexed_gzip`` finds them.
"""

from __future__ import annotations

import io
import itertools
import os
import struct
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any, final

import numpy as np
import xxhash

from seekable.errors import MissingDependency, UnsupportedFormat
from seekable.index.digest import END_BYTES
from seekable.index.finder import ByteChunk, ByteSource
from seekable.storage.compression import broken, inflated
from seekable.storage.files import shell_path
from seekable.storage.memory import DiskActivity, advise, disk_reads
from seekable.storage.seek_points import SeekPoint, encode_points

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from seekable.index.digest import PieceHasher
    from seekable.storage.compression import Compression
    from seekable.storage.ranges import SeekableBytes


MOST_BLOCK_BYTES = 16 << 20
"""The most content between two seek points: more would take too long to decompress for one record."""

_BLOCK_BYTES = 256 << 10
"""The least content between two seek points; smaller members and frames share one."""

_CHUNK_BYTES = 1 << 20

_READ_BYTES = 256 << 10

SPACING = 1 << 20
"""Bytes of content between two seek points: to read a record in between takes some 2 ms."""

_WINDOW_BYTES = 32 << 10

_SMALL_BYTES = 256 << 10

_POINT_READ_BYTES = 1 << 20

_STEP_BYTES = 32 << 20

_HEADER = struct.Struct("=5sBBQQIII")

_POINT = np.dtype([("at", "<u8"), ("start", "<u8"), ("bits", "u1"), ("has_window", "u1")])

_KNOWN = b"GZIDX", 1

_HAS_EXTRA, _BGZF = 4, b"BC\x02\x00"

_REPORT_BYTES = 4 << 20
"""The bytes between two reports of progress of a file that is read from header to header."""

_NEAR_BYTES = 64 << 10
"""A disk reads as many bytes that are not needed in less time than it finds another place."""

_AHEAD_BYTES = 512 << 10


class DecompressingSource(ByteSource):
    """The content of a compressed file, to be read once from start to end; the file is hashed meanwhile."""

    __slots__ = ("_blocks", "_digest", "_entries", "_kind", "_path", "content_size")

    def __init__(
        self,
        file: SeekableBytes,
        *,
        size: int,
        kind: Compression,
        path: str,
        entries: Sequence[SeekPoint] = (),
        units: PieceHasher | None = None,
        on_bytes: Callable[[int], None] | None = None,
    ) -> None:
        """Read from an open file, whose position changes; closing it stays the caller's task.

        Args:
            file: the file.
            size: its size in bytes.
            kind: its compression.
            path: its name in error messages.
            entries: seek points besides the starts of members and frames, in ascending order.
            units: takes the bytes of the file as well.
            on_bytes: is called with the number of bytes of the file that were read since the last call.
        """
        super().__init__(file, size=size, head=b"", units=units, on_bytes=on_bytes)
        self._kind, self._path = kind, path
        self._entries = deque(entries)
        self._blocks: list[SeekPoint] = []
        self._digest = xxhash.xxh3_64()
        self.content_size = 0
        """The number of bytes of content that were read."""
        for piece in inflated(self._raw(hashed=False), kind, path):
            self.head += piece
            if len(self.head) >= END_BYTES:
                break
        self.head = self.head[:END_BYTES]

    @property
    def content_bytes(self) -> None:
        """None: how much content there is, is known when all of it was decompressed."""
        return None

    def chunks(self) -> Iterator[ByteChunk]:
        """Yield the content in order.

        Raises:
            UnsupportedFormat: the file is damaged.
        """
        held = bytearray()
        for piece in inflated(self._raw(hashed=True), self._kind, self._path, on_part=self._part):
            self._take(memoryview(piece))
            held += piece
            if len(held) >= _CHUNK_BYTES:
                yield _chunk(self.content_size - len(held), held)
                held = bytearray()
        if held:
            yield _chunk(self.content_size - len(held), held)
        self._end_block()

    def beyond(self) -> Iterator[ByteChunk]:
        """Yield nothing: no bytes follow the whole file."""
        return iter(())

    @property
    def largest(self) -> int:
        """The most bytes of content between two seek points."""
        starts = [*(block.start for block in self._blocks), self.content_size]
        return max(np.diff(starts).tolist(), default=0)

    def points(self) -> bytes:
        """Return the table of seek points, after the last chunk was read.

        Raises:
            UnsupportedFormat: the file has too few places for seek points.
        """
        if self.largest > MOST_BLOCK_BYTES:
            raise self._too_few_points()
        return encode_points(self._blocks, bits=8 * self.size, size=self.content_size)

    def _too_few_points(self) -> UnsupportedFormat:
        return UnsupportedFormat(
            f"{self._path!r} can be entered in {len(self._blocks):,} place(s) only, where its frames begin, "
            f"and more than {MOST_BLOCK_BYTES:,} bytes of content follow one, which is the most that is "
            f"decompressed for one record. Write it in small frames with `seekable recompress "
            f"{shell_path(self._path)}`, or read it from its start with sk.open_stream"
        )

    def _raw(self, *, hashed: bool) -> Iterator[bytes]:
        at, buffer = 0, bytearray(min(_READ_BYTES, self.size))
        while count := self._read_at(at, memoryview(buffer)[: self.size - at]):
            at, data = at + count, bytes(memoryview(buffer)[:count])
            if hashed:
                self._hash(memoryview(data))
            yield data
            if hashed and self._on_bytes:
                self._on_bytes(len(data))

    def _part(self, at: int, start: int) -> None:
        """Add a seek point at a member or a frame, unless little content follows the last one."""
        if not self._blocks or start - self._blocks[-1].start >= _BLOCK_BYTES:
            self._begin_block(SeekPoint(8 * at, start, 0, b""))

    def _take(self, piece: memoryview) -> None:
        """Hash content up to the next seek points.

        Raises:
            UnsupportedFormat: so much content follows the last seek point that no record could be read.
        """
        end = self.content_size + len(piece)
        while self._entries and self._entries[0].start < end:
            entry = self._entries.popleft()
            if entry.start - self._blocks[-1].start >= _BLOCK_BYTES:
                before = entry.start - self.content_size
                self._digest.update(piece[:before])
                self.content_size, piece = entry.start, piece[before:]
                self._begin_block(entry)
        self._digest.update(piece)
        self.content_size = end
        # Of gzip, further seek points can be made (`scan`).
        if self._kind == "zst" and end - self._blocks[-1].start > MOST_BLOCK_BYTES:
            raise self._too_few_points()

    def _begin_block(self, block: SeekPoint) -> None:
        self._end_block()
        self._blocks.append(block)

    def _end_block(self) -> None:
        if self._blocks and self._blocks[-1].start == self.content_size:
            self._blocks.pop()  # An empty member, say.
        elif self._blocks:
            self._blocks[-1] = replace(self._blocks[-1], digest=self._digest.intdigest())
        self._digest.reset()


def _chunk(base: int, content: bytearray) -> ByteChunk:
    return ByteChunk(base, content, len(content), np.frombuffer(content, np.uint8))


def needs_points(size: int, head: bytes) -> bool:
    """Return True if a gzip file needs seek points between the starts of its members.

    Args:
        size: its size in bytes.
        head: its first bytes.
    """
    # Members of BGZF, which says so in its header, are 64 KiB at the most.
    is_bgzf = len(head) > 16 and head[3] & _HAS_EXTRA and head[12:16] == _BGZF  # noqa: PLR2004 - the header
    return size > _SMALL_BYTES and not is_bgzf


def gzip_seek_points(
    file: SeekableBytes, path: str, *, on_bytes: Callable[[int], None] | None = None
) -> list[SeekPoint]:
    """Return seek points in the middle of members, each with its window and without a digest.

    The file is read from its start to its end, and decompressed.

    Args:
        file: the open file; its position changes.
        path: its name in error messages.
        on_bytes: is called with the number of bytes of the file that were read since the last call.

    Raises:
        UnsupportedFormat: the file is not a gzip file, or is damaged.
        MissingDependency: indexed_gzip is not installed.
    """
    try:
        import indexed_gzip
    except ImportError:
        message = (
            f"{path!r} is compressed by gzip; to enter it in its middle the package indexed_gzip is needed: "
            f"pip install 'seekable[gzip]'. Or read it from its start with sk.open_stream"
        )
        raise MissingDependency(message) from None
    exported = io.BytesIO()
    file.seek(0)
    try:
        with indexed_gzip.IndexedGzipFile(
            fileobj=file, spacing=SPACING, window_size=_WINDOW_BYTES, readbuf_size=_POINT_READ_BYTES
        ) as opened:
            _build(opened, file, on_bytes)
            opened.export_index(fileobj=exported)
    except Exception as error:  # It has errors of its own, and those of the operating system.
        _raise_what_is_wrong(file, path)
        raise broken(path, "gz", 0, 0, error) from error
    return list(_blocks(exported.getbuffer()))


def _build(opened: Any, file: SeekableBytes, on_bytes: Callable[[int], None] | None) -> None:
    """Build the index step by step: in one go it could not be interrupted, and other threads would wait."""
    told = target = 0
    while opened.tell() == target:
        target += _STEP_BYTES
        opened.seek(target)
        at = file.tell()
        if on_bytes:
            on_bytes(at - told)
        told = at


def _blocks(exported: memoryview) -> Iterator[SeekPoint]:
    """Yield the points of an index that indexed_gzip exported."""
    magic, version, _, _, content, _, window_bytes, count = _HEADER.unpack_from(exported)
    if (magic, version) != _KNOWN:
        message = (
            f"indexed_gzip exports points as {magic!r} of version {version}, and {_KNOWN} are known here: "
            f"pip install 'indexed_gzip<2'"
        )
        raise MissingDependency(message)
    points: Any = np.frombuffer(exported, _POINT, count, _HEADER.size)
    at = _HEADER.size + count * _POINT.itemsize
    for byte, start, bits, has_window in points.tolist():
        if has_window:
            window, at = bytes(exported[at : at + window_bytes]), at + window_bytes
            # What it calls bits are those of the byte before that belong to the block.
            if start < content:
                yield SeekPoint(8 * byte - bits, start, 0, window)


def _raise_what_is_wrong(file: SeekableBytes, path: str) -> None:
    """Decompress from the start without an index, which raises an error that names the damage."""
    file.seek(0)
    chunks = iter(lambda: file.read(_POINT_READ_BYTES) or b"", b"")
    for _ in itertools.takewhile(bool, inflated(chunks, "gz", path)):
        pass


@final
class ForwardFile:
    """The bytes of an open file that is not compressed: what is left out is not read."""

    __slots__ = (
        *("_activity", "_descriptor", "_end", "_file", "_on_bytes", "_passed", "_reads", "_size", "_advised"),
        "path",
    )

    def __init__(
        self,
        file: SeekableBytes,
        path: str,
        *,
        size: int,
        on_bytes: Callable[[int], None] | None = None,
    ) -> None:
        """Read from an open file, whose position changes; closing it stays the caller's task.

        Args:
            file: the file.
            path: its name in error messages.
            size: its size in bytes; bytes that are appended meanwhile are not read.
            on_bytes: is called with the number of bytes that were passed since the last call.
        """
        self.path = path
        """The name of the file in error messages."""
        self._file = file
        self._descriptor = file.fileno() if isinstance(file, io.FileIO) else None
        self._end = 0
        self._advised = 0
        self._activity = DiskActivity()
        self._reads = disk_reads()
        self._size = size
        self._passed = 0
        self._on_bytes = on_bytes

    def read(self, start: int, count: int) -> bytes:
        """Return up to ``count`` bytes from a position on, fewer only at the end of the file."""
        count = min(count, self._size - start)
        if count <= 0:
            return b""
        if 0 < start - self._end < _NEAR_BYTES and start > self._advised:
            self._advise(start)
        self._end = start + count
        data = self._part(start, count)
        if len(data) < count:
            parts, missing = [data], count - len(data)
            while missing and (part := self._part(start + count - missing, missing)):
                parts.append(part)
                missing -= len(part)
            data = b"".join(parts)
        if start - self._passed >= _REPORT_BYTES:
            self._pass(start)
        return data

    def _part(self, at: int, count: int) -> bytes:
        if self._descriptor is not None:
            return os.pread(self._descriptor, count, at)  # One call of the system, not two.
        self._file.seek(at)
        return self._file.read(count) or b""

    def _advise(self, start: int) -> None:
        """Have a disk read all of what comes next, as reads are near each other; in memory it costs time."""
        self._advised = start + _AHEAD_BYTES // 2
        reads = disk_reads()
        self._activity.note(reads - self._reads)
        self._reads = reads
        if self._activity.may_wait and self._descriptor is not None:
            advise(self._descriptor, start, _AHEAD_BYTES, "WILLNEED")

    def finish(self) -> None:
        """Report the whole file as passed."""
        self._pass(self._size)

    def _pass(self, at: int) -> None:
        if self._on_bytes is not None and at > self._passed:
            self._on_bytes(at - self._passed)
        self._passed = at


@final
class ForwardStream:
    """The bytes of chunks that follow each other: those of a compressed file, decompressed.

    Example:
        >>> stream = ForwardStream([b"good", b" day"], path="a.tar.gz")
        >>> stream.read(1, 5), stream.read(6, 9)
        (b'ood d', b'ay')
    """

    __slots__ = ("_chunks", "_held", "_start", "path")

    def __init__(self, chunks: Iterable[bytes | bytearray | memoryview], *, path: str) -> None:
        """Read from chunks; each is copied before the next one is made."""
        self.path = path
        self._chunks = iter(chunks)
        self._start = 0
        self._held = b""

    def read(self, start: int, count: int) -> bytes:
        """Return bytes of the stream; what lies before them is dropped where a chunk is added."""
        stop, end = start + count, self._start + len(self._held)
        parts = [] if end >= stop else [self._held[max(start - self._start, 0) :]]
        while end < stop and (chunk := next(self._chunks, None)) is not None:
            parts = parts if end > start else []
            parts.append(bytes(chunk))
            end += len(chunk)
        if parts:
            self._held = b"".join(parts)
            self._start = end - len(self._held)
        return self._held[max(start - self._start, 0) : max(stop - self._start, 0)]


@final
class ForwardContent:
    """The content of a compressed file: all of it is decompressed, and what is left out is dropped."""

    __slots__ = ("_chunks", "_stream", "path")

    def __init__(self, source: ByteSource, path: str) -> None:
        """Read from the start of a source, whose chunks nothing else reads.

        Args:
            source: the content.
            path: the name of the file in error messages.
        """
        self.path = path
        """The name of the file in error messages."""
        self._chunks: Iterator[ByteChunk] = source.chunks()
        self._stream = ForwardStream(
            (memoryview(chunk.held)[: chunk.size] for chunk in self._chunks), path=path
        )

    def read(self, start: int, count: int) -> bytes:
        """Return up to ``count`` bytes from a position on, fewer only at the end of the content."""
        return self._stream.read(start, count)

    def finish(self) -> None:
        """Decompress the rest of the file, so that all of it is hashed and has seek points."""
        for _ in self._chunks:
            pass
