"""Compressed files of which any range can be read: by seek points, or because they are small zstd frames.

A seek point is a place in a compressed file from which it can be decompressed. The content between two seek
points is a *stretch*. The stretches that were read last stay in memory.

``points-<digest>.bin`` has the seek points of the file whose content digest is in its name. All numbers are
little-endian and 8 bytes wide, so that the table can be memory-mapped::

    magic "skpoints", version 1, B seek points, digest of all that follows                       4 numbers
    bits:    the first bit of each point in the file; then the end of the last one               B + 1 numbers
    starts:  the first byte of each point in the content; then the size of the content           B + 1 numbers
    digests: xxh3_64 of the content from each point to the next                                  B numbers
    windows: the first byte of each point's window below; then the end of the last one           B + 1 numbers
    the windows, each compressed by zlib

A point without a window is at the header of a gzip member or of a zstd frame. A point with a window is in the
middle of deflated data, and the window is the 32 KiB of content before it.

A block of deflated data begins at any bit, and refers to the content before it. zlib takes that content as a
dictionary, but begins at whole bytes only. So the bits before the block in its first byte are replaced by
deflated blocks without content, which make up the right number of bits.

This module also writes data as many small zstd frames, which every reader of zstd takes for one content. At
the end of such a file is the frame table of zstd's seekable format, in a frame that readers skip: compressed
and decompressed size of each frame, 4 bytes each, little-endian; then the number of frames, a zero byte and
the magic number 0x8F92EAB1.
"""

from __future__ import annotations

import itertools
import os
import secrets
import struct
import zlib
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Final, final

import numpy as np
import xxhash

from seekable.errors import IndexStale, InvalidArgument, UnsupportedFormat
from seekable.storage.compression import compression_of, inflated, zstd
from seekable.storage.files import TEMPORARY_SUFFIX, create_new, file_identity, put_in_place, read_or_map
from seekable.storage.mapped import MappedFile
from seekable.storage.memory import Cache, most_record_bytes, record_too_large

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from seekable.storage.compression import Compression
    from seekable.storage.mapped import View


_MAGIC = int.from_bytes(b"skpoints", "little")

_VERSION = 1

_HEADER_WORDS = 4

_WORD = 8

_WINDOW_LEVEL = 6

_MOST_HASHED_BYTES = 16 << 20

CACHE_BYTES = 128 << 20
"""The most bytes of content that are kept in memory, of all compressed files of the process."""

_RAW = -15

_TRAILER_BYTES = 8

_AT_ONCE = 1 << 20

# A block with fixed codes: not the last one, kind 01, and the end at once. Bits are in the file's order.
_EVEN: Final = "0" + "10" + "0000000"

# A block with codes of its own, of an odd number of bits. It defines three codes of lengths (0 is "0", 1 is
# "10", 18 is "11"), and by these that the symbols 0 to 255 have no code, that 256, the end, has a code of one
# bit, and that distances have none. Then the end at once.
_ORDER: Final = (16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1)

_LENGTHS: Final = {18: "010", 0: "100", 1: "010"}  # lowest bit first

_ODD: Final = (
    "0" + "01" + "00000" + "00000" + "0111"
    + "".join(_LENGTHS.get(symbol, "000") for symbol in _ORDER)
    + "11" + "1111111" + "11" + "1101011"  # no code for 138 symbols, for 118 more
    + "10" + "0" + "0"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SeekPoint:
    """A place from which a compressed file can be decompressed."""

    bit: int
    """The bit of the file at which it lies."""

    start: int
    """The byte of the content at which it lies."""

    digest: int
    """xxh3_64 of the content from here to the next seek point."""

    window: bytes
    """The last 32 KiB of content before it; empty at the start of a member or a frame."""


class SeekPoints:
    """The seek points of one compressed file, read from the bytes of a table. Safe from threads."""

    def __init__(self, data: bytes | memoryview) -> None:
        """Check the header and the size of a table; the digest is checked by `is_whole`.

        Raises:
            ValueError: the bytes are not a table of this version, or not all of one.
        """
        words = memoryview(data)[: len(data) // _WORD * _WORD].cast("Q")
        if len(words) < _HEADER_WORDS or tuple(words[:2]) != (_MAGIC, _VERSION):
            message = f"not a table of seek points of version {_VERSION}"
            raise ValueError(message)
        self.count, self._digest = words[2], words[3]
        """The number of seek points."""
        ends = list(itertools.accumulate([_HEADER_WORDS, *(self.count + more for more in (1, 1, 0, 1))]))
        if len(words) < ends[-1]:
            message = f"a table of {self.count} seek points is cut off"
            raise ValueError(message)
        self._bits, self._starts, self._digests, self._windows = (
            words[start:end] for start, end in itertools.pairwise(ends)
        )
        self._tail = ends[-1] * _WORD
        if self._tail + self._windows[self.count] != len(data):
            message = (
                f"a table of seek points of {self._tail + self._windows[self.count]} bytes has {len(data)}"
            )
            raise ValueError(message)
        self._data = data

    @property
    def size(self) -> int:
        """The number of bytes of content."""
        return self._starts[self.count]

    def start(self, number: int) -> int:
        """Return the first byte of the content at a point; for number ``count``, the end of the content."""
        return self._starts[number]

    def containing(self, at: int) -> int:
        """Return the index of the last point at or before a byte of the content; in a damaged table, any."""
        return max(min(bisect_right(self._starts, at), self.count) - 1, 0)

    def bytes_of(self, number: int) -> tuple[int, int]:
        """Return the first and the end of the bytes of the file from a point to the next one."""
        return self._bits[number] // 8, -(-self._bits[number + 1] // 8)

    def point(self, number: int) -> SeekPoint:
        """Return a seek point, with its window decompressed.

        Raises:
            zlib.error: the window is damaged.
        """
        first, last = (self._tail + self._windows[at] for at in (number, number + 1))
        window = zlib.decompress(self._data[first:last]) if last > first else b""
        return SeekPoint(self._bits[number], self._starts[number], self._digests[number], window)

    def is_whole(self) -> bool:
        """Return True if the digest of the whole table is as it was written."""
        with memoryview(self._data) as view:
            return xxhash.xxh3_64_intdigest(view[_HEADER_WORDS * _WORD :]) == self._digest


def encode_points(points: Sequence[SeekPoint], *, bits: int, size: int) -> bytes:
    """Return the bytes of a table.

    Args:
        points: the seek points in ascending order; content follows each of them.
        bits: the end of the content of the last one, in bits of the file.
        size: the number of bytes of content.

    Example:
        >>> points = [SeekPoint(0, 0, 7, b""), SeekPoint(96, 10, 8, b"window")]
        >>> table = SeekPoints(encode_points(points, bits=200, size=15))
        >>> table.count, table.size, table.containing(9), table.bytes_of(1), table.point(1).window
        (2, 15, 0, (12, 25), b'window')
    """
    windows = [zlib.compress(point.window, _WINDOW_LEVEL) if point.window else b"" for point in points]
    columns = [
        [*(point.bit for point in points), bits],
        [*(point.start for point in points), size],
        [point.digest for point in points],
        list(itertools.accumulate(map(len, windows), initial=0)),
    ]
    body = b"".join([*(np.array(column, "<u8").tobytes() for column in columns), *windows])
    header = np.array([_MAGIC, _VERSION, len(points), xxhash.xxh3_64_intdigest(body)], "<u8")
    return header.tobytes() + body


def points_name(content: int) -> str:
    """Return the file name of the table of a compressed file.

    Args:
        content: the content digest of the file, compressed as it is.
    """
    return f"points-{content:016x}.bin"


def open_points(path: str) -> SeekPoints:
    """Return the table of a path; its digest is compared when this process opens it first.

    Of a table of up to 16 MiB the digest is compared. A larger one would take long to read; what it leads to
    is compared with the digests of the content then.

    Raises:
        FileNotFoundError: the table does not exist.
        ValueError: the table is damaged.
    """
    data = read_or_map(os.fspath(path))
    points, identity = SeekPoints(data), file_identity(path)
    if len(data) <= _MOST_HASHED_BYTES and (identity is None or _compared.get(path) != identity):
        if not points.is_whole():
            message = "its digest is not that of its bytes"
            raise ValueError(message)
        if identity is not None:
            _compared[path] = identity
    return points


_compared: dict[str, tuple[int, int]] = {}
"""The tables whose digests were compared, by path: a data file that was closed is opened again without it."""


def _filler(bits: int) -> str:
    """Return the bits of blocks without content; their number is ``bits`` modulo 8."""
    filler = _ODD if bits % 2 else ""
    while len(filler) % 8 != bits:
        filler += _EVEN
    return filler


_FILLERS: Final = tuple(_filler(bits) for bits in range(8))


def inflate_from_bit(data: memoryview, *, bit: int, window: bytes, path: str) -> Iterator[bytes]:
    """Yield what deflated data holds from one block on, and after it the next gzip members.

    Args:
        data: the bytes of the file, from the byte in which the block begins.
        bit: the first bit of the block in that byte, counted from the lowest.
        window: the 32 KiB of content before the block.
        path: the name of the file in error messages.

    Raises:
        UnsupportedFormat: a member that follows is damaged.
        zlib.error: the deflated data is damaged.

    Example:
        >>> deflating = zlib.compressobj(wbits=_RAW)
        >>> first = deflating.compress(b"good day, ") + deflating.flush(zlib.Z_SYNC_FLUSH)
        >>> rest = deflating.compress(b"good day") + deflating.flush()
        >>> b"".join(inflate_from_bit(memoryview(rest), bit=0, window=b"good day, ", path="a.gz"))
        b'good day'
    """
    stream = zlib.decompressobj(_RAW, zdict=window)
    rest = bytes(data)
    if bit:
        filler = _FILLERS[bit]
        bits = int(filler[::-1], 2) | rest[0] >> bit << len(filler)
        rest = bits.to_bytes(len(filler) // 8 + 1, "little") + rest[1:]
    while rest and not stream.eof:
        piece = stream.decompress(rest, _AT_ONCE)
        rest = stream.unconsumed_tail
        yield piece
    if stream.eof and (members := stream.unused_data[_TRAILER_BYTES:].lstrip(b"\0")):
        yield from inflated([members], "gz", path)


class CompressedFile(MappedFile):
    """A compressed data file, open, as it was when it was indexed: its view is the content.

    Safe from threads. A range takes the time to decompress its stretches, unless these are in memory.
    """

    __slots__ = ("_points",)

    def __init__(
        self,
        path: str,
        *,
        size: int,
        mtime_ns: int,
        kind: Compression,
        points: SeekPoints,
        name: str | None = None,
    ) -> None:
        """Open a file that has this size and modification time.

        Args:
            path: the file.
            size: its size in bytes, compressed.
            mtime_ns: its modification time.
            kind: its compression.
            points: its seek points.
            name: the name of the file in messages; None for its path.

        Raises:
            IndexStale: the file does not exist, or has another size or modification time.
            AccessDenied: this user may not read it.
        """
        super().__init__(path, size=size, mtime_ns=mtime_ns)
        self._points = points
        self.name = name or path
        self.view = CompressedContent(self.name, (size, mtime_ns), self.view, kind=kind, points=points)

    def advise(self, start: int, end: int) -> None:
        """Let the operating system fetch the bytes of the file that hold some content; wait for nothing."""
        if start < end:
            first, last = self._points.containing(start), self._points.containing(end - 1)
            super().advise(self._points.bytes_of(first)[0], self._points.bytes_of(last)[1])


@final
class CompressedContent:
    """The content of a compressed file, of which slices are decompressed when they are taken."""

    __slots__ = ("_data", "_key", "_kind", "_path", "_points")

    def __init__(
        self, path: str, version: Hashable, data: View, *, kind: Compression, points: SeekPoints
    ) -> None:
        """Map the compressed file; nothing is decompressed yet.

        Args:
            path: the name of the file in messages.
            version: with the path, the identity of its bytes.
            data: the bytes of the file, compressed.
            kind: its compression.
            points: its seek points.
        """
        self._path, self._data, self._kind, self._points = path, data, kind, points
        self._key = path, version

    def __getitem__(self, at: slice) -> memoryview:
        """Return some bytes of the content.

        Raises:
            IndexStale: the content is not the content that was indexed.
            UnsupportedFormat: they are more than a record may have.
        """
        start, stop, _ = at.indices(self._points.size)
        if start >= stop:
            return memoryview(b"")
        if stop - start > most_record_bytes():
            message = f"{self._path!r}, byte {start:,} of the content: {record_too_large(stop - start)}"
            raise UnsupportedFormat(message)
        first, last = self._points.containing(start), self._points.containing(stop - 1)
        begin = self._points.start(first)
        if not begin <= start < stop <= self._points.start(last + 1):
            message = (
                f"the seek points of {self._path!r} do not lead to the bytes {start:,} to {stop:,} of the "
                f"content: they are damaged. Remove its .seekable folder and open it again"
            )
            raise IndexStale(message)
        if first == last:
            return memoryview(self._stretch(first))[start - begin : stop - begin]
        whole = b"".join([self._stretch(number) for number in range(first, last + 1)])
        return memoryview(whole)[start - begin : stop - begin]

    def span_to_read(self, start: int, stop: int) -> tuple[int, int] | None:
        """Return the bytes of the file that hold some content; None if all of it is in memory.

        Args:
            start: the first byte of the content.
            stop: the byte after its last, more than ``start``.
        """
        first, last = self._points.containing(start), self._points.containing(stop - 1)
        if all(_cache.get((*self._key, number)) is not None for number in range(first, last + 1)):
            return None
        return self._points.bytes_of(first)[0], self._points.bytes_of(last)[1]

    def _stretch(self, number: int) -> bytes:
        content = _cache.get((*self._key, number))
        if content is None:
            content = self._read(number)
            _cache.put((*self._key, number), content)
        return content

    def _read(self, number: int) -> bytes:
        first, last = self._points.bytes_of(number)
        size = self._points.start(number + 1) - self._points.start(number)
        why: object = "another digest"
        try:
            point = self._points.point(number)
            content = _up_to(size, decompressed(self._data[first:last], point, self._kind, self._path))
        except (UnsupportedFormat, zlib.error, ValueError, OverflowError) as error:
            why = error
        else:
            if xxhash.xxh3_64_intdigest(content) == point.digest:
                return content
        message = (
            f"{self._path!r}, bytes {first:,} to {last:,}, are not the block {number} of content that was "
            f"indexed ({why}): the file or its index is damaged; `seekable verify --deep` says which. Get "
            f"the file again, or remove its .seekable folder and open it again"
        )
        raise IndexStale(message)


def decompressed(data: memoryview, point: SeekPoint, kind: Compression, path: str) -> Iterator[bytes]:
    """Yield the content from a seek point to the next one, and perhaps more.

    Args:
        data: the bytes of the file that hold this content.
        point: the seek point.
        kind: the compression of the file.
        path: the name of the file in error messages.
    """
    if point.window:
        return inflate_from_bit(data, bit=point.bit % 8, window=point.window, path=path)
    return inflated([bytes(data)], kind, path)


def _up_to(size: int, pieces: Iterator[bytes]) -> bytes:
    """Return the first ``size`` bytes. What follows is not decompressed: it may be cut off."""
    found, held = [], 0
    while held < size and (piece := next(pieces, None)) is not None:
        found.append(piece)
        held += len(piece)
    return b"".join(found)[:size]


_cache: Cache[bytes] = Cache(len, most_bytes=CACHE_BYTES)

# In a child process the lock may be held, by a thread that the child does not have.
os.register_at_fork(after_in_child=_cache.forget)


FRAME_BYTES = 1 << 20
"""A frame ends with the first line that ends after so much content."""

_MOST_FRAME_BYTES = 8 << 20
"""A frame ends here even in the middle of a line."""

_READ_BYTES = 256 << 10
_SKIPPABLE, _SEEKABLE = 0x184D2A5E, 0x8F92EAB1
_SKIPPED, _FOOTER = struct.Struct("<II"), struct.Struct("<IBI")
_MOST_IN_TABLE = (1 << 32) // 8 - 2


@dataclass(frozen=True, slots=True)
class Recompressed:
    """The size of a file that was written."""

    frames: int
    """The number of its frames."""

    content_bytes: int
    """The number of bytes of content."""

    bytes: int
    """The size of the file in bytes."""


def recompress(
    source: str, target: str, *, level: int, on_bytes: Callable[[int], None] | None = None
) -> Recompressed:
    """Write the content of a file as zstd frames, each about 1 MiB of whole lines.

    The new file is read back and compared before it gets its name, and appears whole or not at all.

    Args:
        source: a plain file, or one that ends with ``.gz`` or ``.zst``.
        target: the path of the new file, which does not exist; its folder does.
        level: the level of compression, 1 to 22.
        on_bytes: is called with the number of bytes of the source that were read since the last call.

    Raises:
        InvalidArgument: the target exists.
        UnsupportedFormat: the source is damaged.
        MissingDependency: zstandard is not installed.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "a.txt")
        ...     with open(path, "wb") as file:
        ...         _ = file.write(b"good day" * 1000)
        ...     recompress(path, f"{path}.zst", level=3).content_bytes
        8000
    """
    _refuse_existing(target)
    temporary = f"{target}.{secrets.token_hex(8)}{TEMPORARY_SUFFIX}"
    hasher = xxhash.xxh3_64()
    try:
        with create_new(temporary) as file:
            sizes = write_frames(file, _hashed(_content(source, on_bytes), hasher), level=level)
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
        if _digest(temporary, target) != hasher.intdigest():
            message = f"what was written for {target!r} does not read back as it was: is the disk sound?"
            raise UnsupportedFormat(message)
        _refuse_existing(target)
        put_in_place(temporary, target)
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)
    return Recompressed(len(sizes), sum(content for _, content in sizes), size)


def write_frames(file: BinaryIO, pieces: Iterable[bytes], *, level: int) -> list[tuple[int, int]]:
    """Write content as frames, each about 1 MiB of whole lines, and their table.

    Args:
        file: the file to write to; it stays open.
        pieces: the content, cut anywhere.
        level: the level of compression, 1 to 22.

    Returns:
        The size of each frame, compressed and not.

    Raises:
        MissingDependency: zstandard is not installed.
    """
    sizes = _write_frames(file, _frames(pieces), level)
    _write_table(file, sizes)
    return sizes


def frame_at(descriptor: int, size: int, at: int) -> tuple[int, int] | None:
    """Return where the frame that holds a byte of the content begins: in the file, and in the content.

    Args:
        descriptor: the file, open.
        size: its size in bytes.
        at: the byte of the content; for one after the end, the last frame is returned.

    Returns:
        The byte of the file and the byte of the content; None for a file without a table of its frames.
    """
    footer = os.pread(descriptor, _FOOTER.size, max(0, size - _FOOTER.size))
    if len(footer) < _FOOTER.size:
        return None
    frames, flags, magic = _FOOTER.unpack(footer)
    row = 2 + (flags >> 7)  # A checksum may follow the two sizes.
    table_bytes = _SKIPPED.size + 4 * row * frames + _FOOTER.size
    if magic != _SEEKABLE or not frames or table_bytes > size:
        return None
    table = os.pread(descriptor, table_bytes, size - table_bytes)
    if _SKIPPED.unpack_from(table) != (_SKIPPABLE, table_bytes - _SKIPPED.size):
        return None
    sizes = np.frombuffer(table, "<u4", row * frames, _SKIPPED.size).reshape(frames, row)
    ends = np.cumsum(sizes[:, :2], axis=0, dtype=np.int64)
    if ends[-1, 0] + table_bytes != size:
        return None
    number = min(int(np.searchsorted(ends[:, 1], at, "right")), frames - 1)
    return (int(ends[number - 1, 0]), int(ends[number - 1, 1])) if number else (0, 0)


def _refuse_existing(target: str) -> None:
    if os.path.lexists(target):
        message = f"{target!r} is there already, and nothing is ever overwritten: move it away"
        raise InvalidArgument(message)


def _content(path: str, on_bytes: Callable[[int], None] | None) -> Iterator[bytes]:
    kind = compression_of(path)
    with open(path, "rb", buffering=0) as file:
        chunks = _counted(iter(lambda: file.read(_READ_BYTES), b""), on_bytes)
        yield from inflated(chunks, kind, path) if kind else chunks


def _counted(chunks: Iterator[bytes], on_bytes: Callable[[int], None] | None) -> Iterator[bytes]:
    for chunk in chunks:
        yield chunk
        if on_bytes:
            on_bytes(len(chunk))


def _hashed(pieces: Iterable[bytes], hasher: xxhash.xxh3_64) -> Iterator[bytes]:
    for piece in pieces:
        hasher.update(piece)
        yield piece


def _frames(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the content of each frame."""
    held = bytearray()
    for piece in pieces:
        held += piece
        while len(held) >= FRAME_BYTES:
            end = held.find(b"\n", FRAME_BYTES - 1) + 1 or _MOST_FRAME_BYTES
            if end > len(held):
                break
            yield bytes(held[: min(end, _MOST_FRAME_BYTES)])
            del held[: min(end, _MOST_FRAME_BYTES)]
    if held:
        yield bytes(held)


def _write_frames(file: BinaryIO, frames: Iterable[bytes], level: int) -> list[tuple[int, int]]:
    """Write frames, and return their sizes, compressed and not."""
    compressor = zstd().ZstdCompressor(level=level, write_checksum=True)
    sizes = []
    for content in frames:
        frame = compressor.compress(content)
        file.write(frame)
        sizes.append((len(frame), len(content)))
    return sizes


def _write_table(file: BinaryIO, sizes: list[tuple[int, int]]) -> None:
    if len(sizes) > _MOST_IN_TABLE:
        return  # The table's own size would not fit into its header; readers do without.
    table = b"".join(struct.pack("<II", *pair) for pair in sizes)
    table += struct.pack("<IBI", len(sizes), 0, _SEEKABLE)
    file.write(struct.pack("<II", _SKIPPABLE, len(table)) + table)


def _digest(path: str, name: str) -> int:
    """Return the digest of the content that was written."""
    hasher = xxhash.xxh3_64()
    with open(path, "rb", buffering=0) as file:
        for piece in inflated(iter(lambda: file.read(_READ_BYTES), b""), "zst", name):
            hasher.update(piece)
    return hasher.intdigest()
