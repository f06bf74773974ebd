"""The ranges of bytes of files that a plan reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.storage.mapped import MappedFile

__all__ = ["DataFiles", "FileRanges"]


class DataFiles(Protocol):
    """Files that are given by their numbers, such as a ``FileSet``."""

    def mapped(self, file: int, /) -> MappedFile:
        """Return an open file.

        Raises:
            IndexStale: the file is not the one that was indexed.
        """
        ...

    def path(self, file: int, /) -> str:
        """Return the absolute path of a file, or its address."""
        ...


@final
@dataclass(frozen=True, slots=True, eq=False)
class FileRanges:
    """Ranges of bytes of some files, in the order of the records that need them; one may be there twice.

    A range counts the bytes of the content: those that ``files.mapped(file).view`` has. Of a compressed file
    that is not the bytes of the file.
    """

    files: DataFiles
    which: Int64s
    """The number of each range's file."""
    starts: NDArray[np.uint64]
    """Its first byte."""
    ends: NDArray[np.uint64]
    """The byte behind its last; equal to ``starts`` where a record has no bytes."""

    @classmethod
    def of(cls, files: DataFiles, which: Int64s, starts: Int64s, ends: Int64s) -> FileRanges:
        """Return ranges whose first and last bytes are int64."""
        return cls(files, which, starts.astype(np.uint64), ends.astype(np.uint64))

    @property
    def bytes(self) -> int:
        """The number of bytes of all ranges; bytes of two ranges count twice."""
        return int((self.ends - self.starts).sum())
