"""The files of one shard of a Shar folder, written cut by cut, with Lhotse's indexes."""

from __future__ import annotations

import zlib
from array import array
from typing import TYPE_CHECKING, BinaryIO, final

import msgspec
import numpy as np

from seekable.formats.tar.header import BLOCK_BYTES
from seekable.formats.tar.tar_archive import RECORD_BYTES, end_mark, member
from seekable.storage.compression import WITH_HEADER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.formats.shar.shar_layout import SharLayout

__all__ = ["EncodedCut", "SharShard"]

_GZIP_LEVEL = 6


class EncodedCut(msgspec.Struct, frozen=True):
    """One cut, ready to be written."""

    id: str

    entries: list[list[tuple[str, bytes]]]
    """For each file of ``SharLayout.contents``, the names and contents of two members, or a nameless line."""

    unused: tuple[str, ...] = ()
    """The fields with data that is not written."""


@final
class SharShard:
    """The files of a shard, open for writing; the caller syncs and closes them.

    Args:
        layout: the fields, and the form of the files.
        files: the files in the order of ``layout.patterns``.
    """

    def __init__(self, layout: SharLayout, files: Sequence[BinaryIO]) -> None:
        contents = layout.contents
        self._sinks = [
            _Pairs(file) if name.endswith(".tar") else _Lines(file, compressed=name.endswith(".gz"))
            for name, file in zip(contents, files, strict=False)
        ]
        indexed = [sink for name, sink in zip(contents, self._sinks, strict=True) if layout.is_indexed(name)]
        self._indexes = list(zip(indexed, files[len(contents) :], strict=True))

    def add(self, cut: EncodedCut) -> None:
        """Write a cut behind those before it."""
        for sink, entry in zip(self._sinks, cut.entries, strict=True):
            sink.add(entry)

    def end(self) -> None:
        """Write the ends of all files, and the indexes."""
        for sink in self._sinks:
            sink.end()
        for sink, index in self._indexes:
            # Unsigned 64 bits, little-endian: the first byte of each record, and the end.
            index.write(np.array([*sink.starts, sink.end_in_index], dtype="<u8").tobytes())


@final
class _Pairs:
    """A tar file with two members for each cut."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.starts = array("Q")
        self.size = 0
        self.end_in_index = 0

    def add(self, entry: list[tuple[str, bytes]]) -> None:
        self.starts.append(self.size)
        for name, content in entry:
            for piece in member(name, content):
                self._write(piece)

    def end(self) -> None:
        # Lhotse notes what it had read, in records, when it saw the first block of the end mark.
        self.end_in_index = -(-(self.size + BLOCK_BYTES) // RECORD_BYTES) * RECORD_BYTES
        self._write(end_mark(self.size))

    def _write(self, piece: bytes) -> None:
        self._file.write(piece)
        self.size += len(piece)


@final
class _Lines:
    """A file of JSON lines, plain or compressed."""

    def __init__(self, file: BinaryIO, *, compressed: bool) -> None:
        self._file = file
        # No name and no time in the header: the same lines make the same bytes.
        self._gzip = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, WITH_HEADER) if compressed else None
        self.starts = array("Q")
        self.size = 0

    def add(self, entry: list[tuple[str, bytes]]) -> None:
        self.starts.append(self.size)
        for _, line in entry:
            self._file.write(line if self._gzip is None else self._gzip.compress(line))
            self.size += len(line)

    def end(self) -> None:
        if self._gzip is not None:
            self._file.write(self._gzip.flush())

    @property
    def end_in_index(self) -> int:
        """The number of bytes of all lines."""
        return self.size
