"""Where gzip files can be entered in their middle."""

from __future__ import annotations

import io
import itertools
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import MissingDependency
from seekable.storage.compression import broken, inflated
from seekable.storage.points import Block

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from io import FileIO

__all__ = ["gzip_points", "needs_points"]

SPACING = 1 << 20
"""Bytes of content between two points: to read a record in between takes some 2 ms."""

_WINDOW_BYTES = 32 << 10
_SMALL_BYTES = 256 << 10
_READ_BYTES = 1 << 20
_STEP_BYTES = 32 << 20

_HEADER = struct.Struct("=5sBBQQIII")
_POINT = np.dtype([("at", "<u8"), ("start", "<u8"), ("bits", "u1"), ("has_window", "u1")])
_KNOWN = b"GZIDX", 1
_HAS_EXTRA, _BGZF = 4, b"BC\x02\x00"


def needs_points(size: int, head: bytes) -> bool:
    """Return whether a gzip file is to be entered between the starts of its members.

    Args:
        size: how many bytes it has.
        head: the first ones.
    """
    # Members of BGZF, which says so in its header, are 64 KiB at the most.
    is_bgzf = len(head) > 16 and head[3] & _HAS_EXTRA and head[12:16] == _BGZF  # noqa: PLR2004 - the header
    return size > _SMALL_BYTES and not is_bgzf


def gzip_points(file: FileIO, path: str, *, on_bytes: Callable[[int], None] | None = None) -> list[Block]:
    """Return points in the middle of members, each with its window and without a digest.

    The file is read from its start to its end, and decompressed.

    Args:
        file: the file, open; it is moved.
        path: what it is called in errors.
        on_bytes: is told how many more bytes of the file were read.

    Raises:
        UnsupportedFormat: it is no gzip file, or is damaged.
        MissingDependency: indexed_gzip is needed.
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
            fileobj=file, spacing=SPACING, window_size=_WINDOW_BYTES, readbuf_size=_READ_BYTES
        ) as opened:
            _build(opened, file, on_bytes)
            opened.export_index(fileobj=exported)
    except Exception as error:  # It has errors of its own, and those of the operating system.
        _raise_what_is_wrong(file, path)
        raise broken(path, "gz", 0, 0, error) from error
    return list(_blocks(exported.getbuffer()))


def _build(opened: Any, file: FileIO, on_bytes: Callable[[int], None] | None) -> None:
    """Build the index step by step: in one go it could not be interrupted, and other threads would wait."""
    told = target = 0
    while opened.tell() == target:
        target += _STEP_BYTES
        opened.seek(target)
        at = file.tell()
        if on_bytes:
            on_bytes(at - told)
        told = at


def _blocks(exported: memoryview) -> Iterator[Block]:
    """Yield the points of an index that indexed_gzip exported."""
    magic, version, _, _, content, _, window_bytes, count = _HEADER.unpack_from(exported)
    if (magic, version) != _KNOWN:
        message = (
            f"indexed_gzip exports points as {magic!r} of version {version}, and {_KNOWN} are known here"
        )
        raise MissingDependency(message)
    points: Any = np.frombuffer(exported, _POINT, count, _HEADER.size)
    at = _HEADER.size + count * _POINT.itemsize
    for byte, start, bits, has_window in points.tolist():
        if has_window:
            window, at = bytes(exported[at : at + window_bytes]), at + window_bytes
            # What it calls bits are those of the byte before that belong to the block.
            if start < content:
                yield Block(8 * byte - bits, start, 0, window)


def _raise_what_is_wrong(file: FileIO, path: str) -> None:
    """Decompress in the plain way, which tells what is wrong, and where."""
    file.seek(0)
    chunks = iter(lambda: file.read(_READ_BYTES), b"")
    for _ in itertools.takewhile(bool, inflated(chunks, "gz", path)):
        pass
