"""Where a compressed file can be entered: a table of points, beside its index.

``points-<digest>.bin`` belongs to the compressed file whose content digest is in its name. All numbers are
little-endian and 8 bytes wide, so that it can be mapped::

    magic "skpoints", version 1, B blocks, digest of all that follows                            4 numbers
    bits:    of each block, at which bit of the file it begins; then where the last one ends     B + 1 numbers
    starts:  of each block, at which byte of the content it begins; then the content's size      B + 1 numbers
    digests: of each block, xxh3_64 of its content                                               B numbers
    windows: of each block, where its window begins below; then where the last one ends          B + 1 numbers
    the windows, each compressed by zlib

A block without a window begins with the header of a gzip member or of zstd frames. One that has a window is
in the middle of deflated data, and the window is the 32 KiB of content before it.
"""

from __future__ import annotations

import itertools
import os
import zlib
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import xxhash

from seekable.storage.whole import whole_file

if TYPE_CHECKING:
    import mmap
    from collections.abc import Sequence

__all__ = ["Block", "Points", "encode_points", "open_points", "points_name"]

_MAGIC = int.from_bytes(b"skpoints", "little")
_VERSION = 1
_HEADER_WORDS = 4
_WORD = 8
_WINDOW_LEVEL = 6


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of content that can be decompressed by itself."""

    bit: int
    """At which bit of the file it begins."""

    start: int
    """At which byte of the content it begins."""

    digest: int
    """xxh3_64 of its content."""

    window: bytes
    """The content before it, as much as it refers to; empty where a member or a frame begins."""


class Points:
    """The blocks of one compressed file, read from a table that is mapped; safe from threads."""

    def __init__(self, data: bytes | mmap.mmap) -> None:
        """Take the bytes of a table.

        Raises:
            ValueError: they are no table of this version, or not all of one.
        """
        words = memoryview(data)[: len(data) // _WORD * _WORD].cast("Q")
        if len(words) < _HEADER_WORDS or tuple(words[:2]) != (_MAGIC, _VERSION):
            message = f"not a table of points of version {_VERSION}"
            raise ValueError(message)
        self.count, self._digest = words[2], words[3]
        """How many blocks there are."""
        ends = list(itertools.accumulate([_HEADER_WORDS, *(self.count + more for more in (1, 1, 0, 1))]))
        if len(words) < ends[-1]:
            message = f"a table of points of {self.count} blocks is cut off"
            raise ValueError(message)
        self._bits, self._starts, self._digests, self._windows = (
            words[start:end] for start, end in itertools.pairwise(ends)
        )
        self._tail = ends[-1] * _WORD
        if self._tail + self._windows[self.count] != len(data):
            message = f"a table of points of {self._tail + self._windows[self.count]} bytes has {len(data)}"
            raise ValueError(message)
        self._data = data

    @property
    def size(self) -> int:
        """How many bytes of content there are."""
        return self._starts[self.count]

    def start(self, number: int) -> int:
        """Return where in the content a block begins; of the number of blocks, where the content ends."""
        return self._starts[number]

    def containing(self, at: int) -> int:
        """Return the block that a byte of the content is in."""
        return bisect_right(self._starts, at) - 1

    def bytes_of(self, number: int) -> tuple[int, int]:
        """Return which bytes of the file hold a block: from the first bit's to behind the last bit's."""
        return self._bits[number] // 8, -(-self._bits[number + 1] // 8)

    def block(self, number: int) -> Block:
        """Return a block."""
        first, last = (self._tail + at for at in self._windows[number : number + 2])
        window = zlib.decompress(self._data[first:last]) if last > first else b""
        return Block(self._bits[number], self._starts[number], self._digests[number], window)

    def is_whole(self) -> bool:
        """Whether the table is as it was written: all of it is read."""
        with memoryview(self._data) as view:
            return xxhash.xxh3_64_intdigest(view[_HEADER_WORDS * _WORD :]) == self._digest


def encode_points(blocks: Sequence[Block], *, bits: int, size: int) -> bytes:
    """Return the bytes of a table.

    Args:
        blocks: in their order, none of them empty.
        bits: where the last one ends in the file.
        size: how many bytes of content there are.

    Example:
        >>> blocks = [Block(0, 0, 7, b""), Block(96, 10, 8, b"window")]
        >>> points = Points(encode_points(blocks, bits=200, size=15))
        >>> points.count, points.size, points.containing(9), points.bytes_of(1), points.block(1).window
        (2, 15, 0, (12, 25), b'window')
    """
    windows = [zlib.compress(block.window, _WINDOW_LEVEL) if block.window else b"" for block in blocks]
    columns = [
        [*(block.bit for block in blocks), bits],
        [*(block.start for block in blocks), size],
        [block.digest for block in blocks],
        list(itertools.accumulate(map(len, windows), initial=0)),
    ]
    body = b"".join([*(np.array(column, "<u8").tobytes() for column in columns), *windows])
    header = np.array([_MAGIC, _VERSION, len(blocks), xxhash.xxh3_64_intdigest(body)], "<u8")
    return header.tobytes() + body


def points_name(content: int) -> str:
    """Return what the table of a file is called.

    Args:
        content: the content digest of the file, compressed as it is.
    """
    return f"points-{content:016x}.bin"


def open_points(path: str) -> Points:
    """Return a table of points.

    Raises:
        FileNotFoundError: it is not there.
        ValueError: it is damaged.
    """
    return Points(whole_file(os.fspath(path)))
