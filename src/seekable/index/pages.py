"""Where the page tables of table files are kept: beside their index, one file each, named by the content."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass

from seekable.storage.atomic import write_atomically

__all__ = ["KeptPages", "pages_name"]


def pages_name(content: int) -> str:
    """Return what the page tables of a file are called in the index folder, by its content digest."""
    return f"pages-{content:016x}.bin"


@dataclass(frozen=True, slots=True)
class KeptPages:
    """The page tables of one file; bytes that only its format knows."""

    folder: str
    """The index folder."""

    content: int
    """The content digest of the file."""

    def load(self) -> bytes | None:
        """Return what was kept, None if there is nothing that can be read."""
        try:
            with open(self._path, "rb") as file:
                return file.read()
        except OSError:
            return None

    def save(self, pages: bytes) -> None:
        """Keep it; where the folder cannot be written, or is gone, it is made anew the next time."""
        with contextlib.suppress(OSError):
            write_atomically(self._path, pages)

    @property
    def _path(self) -> str:
        return os.path.join(self.folder, pages_name(self.content))
