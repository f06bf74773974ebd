"""The bytes of a data file as it is read for its index: its own, or those that a placeholder stands for."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seekable._lazy import lazy
from seekable.index.digest import END_BYTES
from seekable.storage.compression import compression_of
from seekable.storage.files import PLACEHOLDER_HEAD

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import FileIO

    from seekable.remote.index import remote_file
    from seekable.storage.compression import Compression
    from seekable.storage.ranges import SeekableBytes
else:
    remote_file = lazy("seekable.remote.index.remote_file")

__all__ = ["Data", "data_of"]


@dataclass(frozen=True, slots=True)
class Data:
    """The bytes of a data file, open: of a placeholder, those of the file that it stands for."""

    file: SeekableBytes
    """The open file."""

    size: int
    """Its number of bytes."""

    head: bytes
    """Its first 64 KiB."""

    name: str
    """Its name in error messages: its path, or its address on the Hub."""

    @property
    def compression(self) -> Compression | None:
        """The compression of the file by its name."""
        return compression_of(self.name)


@contextmanager
def data_of(file: FileIO, path: str, size: int, *, head: bytes) -> Iterator[Data]:
    """Yield the bytes that a scanner reads of an open data file.

    Args:
        file: the file.
        path: its path.
        size: its number of bytes.
        head: its first 64 KiB.

    Raises:
        UnsupportedFormat: it is a placeholder that was moved or damaged.
    """
    source = None
    if head.startswith(PLACEHOLDER_HEAD):
        source = remote_file.remote_ranges_of(file.fileno(), path)
    if source is None:
        yield Data(file, size, head, path)
        return
    with remote_file.forward_file(source, path) as remote:
        head = bytes(source.range(0, min(END_BYTES, source.size)))
        yield Data(remote, source.size, head, source.path)
