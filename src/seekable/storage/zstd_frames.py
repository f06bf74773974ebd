"""Data written as many small zstd frames, so that any range of it can be read.

The file is what ``zstd -d`` and every other reader take for one content. At its end is the frame table of
zstd's seekable format, in a frame that readers skip: compressed and decompressed size of each frame, 4 bytes
each, little-endian; then the number of frames, a zero byte and the magic number 0x8F92EAB1.
"""

from __future__ import annotations

import os
import secrets
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import xxhash

from seekable.errors import InvalidArgument, UnsupportedFormat
from seekable.storage.compression import compression_of, inflated, zstd
from seekable.storage.files import TEMPORARY_SUFFIX, create_new, put_in_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

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
    """Write the content of a file as zstd frames of about 1 MiB of whole lines.

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
    """Write content as frames of about 1 MiB of whole lines, and the table of them.

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
