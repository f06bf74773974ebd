"""The content of a compressed file, given to a scanner as if it were a file's; blocks are noted meanwhile."""

from __future__ import annotations

import os
import shlex
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import xxhash

from seekable.errors import UnsupportedFormat
from seekable.index.digest import END_BYTES
from seekable.index.scanner import ByteSource, Chunk
from seekable.storage.compression import inflated
from seekable.storage.points import Block, encode_points

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seekable.storage.compression import Compression

__all__ = ["MOST_BLOCK_BYTES", "ContentSource"]

MOST_BLOCK_BYTES = 16 << 20
"""A block with more content is no cheap way to a record."""

_BLOCK_BYTES = 256 << 10
"""Members and frames that have less are a block together."""

_CHUNK_BYTES = 1 << 20
_READ_BYTES = 256 << 10


class ContentSource(ByteSource):
    """The content of a compressed file, to be read once from start to end; the file is hashed meanwhile."""

    __slots__ = ("_blocks", "_digest", "_entries", "_kind", "_path", "content_size")

    def __init__(
        self,
        descriptor: int,
        *,
        size: int,
        kind: Compression,
        path: str,
        entries: Sequence[Block] = (),
        on_bytes: Callable[[int], None] | None = None,
    ) -> None:
        """Read from an open file that stays the caller's to close, wherever it stands.

        Args:
            descriptor: the file.
            size: how many bytes it has.
            kind: how it is compressed.
            path: what it is called in errors.
            entries: where it can be entered besides the starts of members and frames, in their order.
            on_bytes: is told how many more bytes of the file were read.
        """
        super().__init__(descriptor, size=size, head=b"", on_bytes=on_bytes)
        self._kind, self._path = kind, path
        self._entries = deque(entries)
        self._blocks: list[Block] = []
        self._digest = xxhash.xxh3_64()
        self.content_size = 0
        """How many bytes of content were read."""
        for piece in inflated(self._raw(hashed=False), kind, path):
            self.head += piece
            if len(self.head) >= END_BYTES:
                break
        self.head = self.head[:END_BYTES]

    def chunks(self) -> Iterator[Chunk]:
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

    def beyond(self) -> Iterator[Chunk]:
        """Yield nothing: it is always all of the file that is read."""
        return iter(())

    @property
    def largest(self) -> int:
        """How many bytes of content the largest block has."""
        starts = [*(block.start for block in self._blocks), self.content_size]
        return max(np.diff(starts).tolist(), default=0)

    def points(self) -> bytes:
        """Return the table of points, after the last chunk was read.

        Raises:
            UnsupportedFormat: it can be entered in too few places.
        """
        if self.largest > MOST_BLOCK_BYTES:
            message = (
                f"{self._path!r} can be entered in {len(self._blocks):,} place(s) only, where its frames "
                f"begin, and up to {self.largest:,} bytes of content follow one; for one record at most "
                f"{MOST_BLOCK_BYTES:,} can be decompressed. Write it in small frames with `seekable "
                f"recompress {shlex.quote(self._path)}`, or read it from its start with sk.open_stream"
            )
            raise UnsupportedFormat(message)
        return encode_points(self._blocks, bits=8 * self.size, size=self.content_size)

    def _raw(self, *, hashed: bool) -> Iterator[bytes]:
        at = 0
        while data := os.pread(self._descriptor, min(_READ_BYTES, self.size - at), at):
            at += len(data)
            if hashed:
                self._hasher.update(memoryview(data))
            yield data
            if hashed and self._on_bytes:
                self._on_bytes(len(data))

    def _part(self, at: int, start: int) -> None:
        """Begin a block with a member or a frame, unless the one before it is small."""
        if not self._blocks or start - self._blocks[-1].start >= _BLOCK_BYTES:
            self._begin_block(Block(8 * at, start, 0, b""))

    def _take(self, piece: memoryview) -> None:
        """Take content into the present block, and into those that begin in it."""
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

    def _begin_block(self, block: Block) -> None:
        self._end_block()
        self._blocks.append(block)

    def _end_block(self) -> None:
        if self._blocks and self._blocks[-1].start == self.content_size:
            self._blocks.pop()  # An empty member, say.
        elif self._blocks:
            self._blocks[-1] = replace(self._blocks[-1], digest=self._digest.intdigest())
        self._digest.reset()


def _chunk(base: int, content: bytearray) -> Chunk:
    return Chunk(base, content, len(content), np.frombuffer(content, np.uint8))
