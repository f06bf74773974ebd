"""Making compressed files for tests."""

from __future__ import annotations

import gzip
import struct
from typing import TYPE_CHECKING

import zstandard

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seekable.storage.compression import Compression

SKIPPABLE = struct.pack("<II", 0x184D2A53, 4) + b"skip"
"""A frame that readers of zstd leave out."""


def zst_frame(content: bytes, level: int = 3) -> bytes:
    return zstandard.ZstdCompressor(level=level, write_checksum=True).compress(content)


def compressed(contents: Iterable[bytes], kind: Compression, level: int = 6) -> bytes:
    """Return a file of a member, or a frame, for each of these contents."""
    if kind == "gz":
        return b"".join(gzip.compress(content, level, mtime=0) for content in contents)
    return b"".join(zst_frame(content, level) for content in contents)


def bgzf(content: bytes) -> bytes:
    """Return a file as bgzip writes it: members of at most 64 KiB, each with its size in its header."""
    members = []
    for at in range(0, len(content), 60_000):
        member = bytearray(gzip.compress(content[at : at + 60_000], mtime=0))
        member[3] |= 4
        extra = struct.pack("<H2sHH", 6, b"BC", 2, len(member) + 8 - 1)
        members.append(bytes(member[:10]) + extra + bytes(member[10:]))
    return b"".join(members)
