"""The finished parts of large objects, kept on disk until the whole object is indexed.

The build after one that was killed reads none of them again. Each part is a file ``part-<digest>.bin`` in the
index folder, named by the object, its version, the format and the number of the part. It begins with
the digest of all that follows, so a damaged one is read again.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, final

import numpy as np
import xxhash

from seekable.index.build.scan import PartScan
from seekable.storage.files import write_atomically

if TYPE_CHECKING:
    from seekable.index.build.parts import FileToIndex

__all__ = ["KeptParts"]

_WORD = np.dtype("<u8")
_HEADER_WORDS = 7
"""Digest, the three numbers of the identity, begin, number of bytes of content, bytes of piece digests."""


@final
class KeptParts:
    """The finished parts of one object."""

    __slots__ = ("_folder", "_name")

    def __init__(self, task: FileToIndex, *, format_name: str, part_bytes: int) -> None:
        """Name the parts; nothing is read or written.

        Args:
            task: the object.
            format_name: the name of the format that it is scanned as.
            part_bytes: the number of bytes of a part.
        """
        self._folder = task.folder
        version = task.name, format_name, str(task.size), str(task.mtime_ns), str(part_bytes)
        self._name = "\0".join(version).encode("utf-8", "surrogateescape")

    def load(self, number: int) -> PartScan | None:
        """Return a part; None if it is not kept, or damaged."""
        try:
            with open(self._path(number), "rb") as file:
                data = file.read()
        except OSError:
            return None
        header = _HEADER_WORDS * _WORD.itemsize
        if len(data) < header or len(data) % _WORD.itemsize:
            return None
        words = np.frombuffer(data, _WORD)
        digest, first, second, head_tail, begun_ns, size, pieces = words[:_HEADER_WORDS].tolist()
        if xxhash.xxh3_64_intdigest(memoryview(data)[_WORD.itemsize :]) != digest:
            return None
        starts = np.frombuffer(data, _WORD, offset=header + pieces)
        identity = first, second, head_tail
        return PartScan(identity, begun_ns, data[header : header + pieces], starts, content_size=size)

    def save(self, number: int, scan: PartScan) -> None:
        """Keep a part; where the disk is full, it is not kept, and read again by the next build."""
        header = [*scan.identity, scan.begun_ns, scan.content_size, len(scan.pieces)]
        starts = scan.starts.astype(_WORD, copy=False)
        body = b"".join((np.array(header, _WORD).tobytes(), scan.pieces, starts.tobytes()))
        digest = xxhash.xxh3_64_intdigest(body).to_bytes(_WORD.itemsize, "little")
        with contextlib.suppress(OSError):
            write_atomically(self._path(number), [digest, body])

    def discard(self, parts: int) -> None:
        """Remove all parts.

        Args:
            parts: the number of parts of the object.
        """
        for number in range(parts):
            with contextlib.suppress(OSError):
                os.unlink(self._path(number))

    def _path(self, number: int) -> str:
        digest = xxhash.xxh3_64_hexdigest(b"%s\0%d" % (self._name, number))
        return os.path.join(self._folder, f"part-{digest}.bin")
