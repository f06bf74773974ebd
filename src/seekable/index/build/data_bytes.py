"""The bytes of a data file as it is read for its index: its own, or those that a placeholder stands for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seekable.storage.compression import compression_of

if TYPE_CHECKING:
    from seekable.storage.compression import Compression
    from seekable.storage.ranges import SeekableBytes

__all__ = ["Data"]


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
