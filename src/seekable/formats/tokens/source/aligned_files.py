"""The open files beside token files that hold one element a token: masks of the loss, weights."""

from __future__ import annotations

import os
import weakref
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, final

from seekable.storage.far import far
from seekable.storage.mapped import MOST_OPEN_FILES, MappedFile, OpenFiles, next_use

if TYPE_CHECKING:
    from seekable.formats.tokens.words import TokenWords
    from seekable.index.fileset import FileSet

__all__ = ["AlignedFiles", "OneAligned"]

_MOST_ARRAYS = 1 << 16
"""More arrays than a file has: one number stands for a file and one of its arrays."""


class AlignedFiles:
    """The aligned files of a set of token files, opened when they are read. Safe from threads and after fork.

    Files are given by the numbers of their token files, arrays by their numbers in the schema of the file.
    """

    def __init__(self, files: FileSet, words: TokenWords) -> None:
        """Make the set; a file is opened when it is read."""
        self._files = files
        self._words = words
        self._kept_open = OpenFiles(MOST_OPEN_FILES)
        self._known: dict[int, weakref.ref[MappedFile]] = {}

    def mapped(self, file: int, array: int) -> MappedFile:
        """Return the map of an aligned file, after a check.

        Raises:
            IndexStale: the file is not the one that was there when its token file was indexed.
            AccessDenied: this user may not read it.
        """
        key = file * _MOST_ARRAYS + array
        known = self._known.get(key)
        mapped = known() if known else None
        if mapped is None:
            mapped = self._kept_open.open(key, partial(self._open, file, array))
            self._known[key] = weakref.ref(mapped)
        mapped.last_use = next_use()
        mapped.check()
        return mapped

    def path(self, file: int, array: int) -> str:
        """Return the path of an aligned file."""
        name = self._words.schema(file).aligned[array].file
        return os.path.join(os.path.dirname(self._files.path(file)), name)

    def of(self, array: int) -> OneAligned:
        """Return the files of one array."""
        return OneAligned(self, array)

    def close(self) -> None:
        """Close all files; a file that is read again is opened again."""
        self._kept_open.close()

    def _open(self, file: int, array: int) -> MappedFile:
        schema = self._words.schema(file)
        name = schema.aligned[array].file
        as_surveyed = next(side for side in schema.beside if side.file == name)
        path = self.path(file, array)
        size, mtime_ns = as_surveyed.size, as_surveyed.mtime_ns
        if "://" in path:
            return far().reads.open(path, (size, mtime_ns), cache=self._files.cache(file))
        return MappedFile(path, size=size, mtime_ns=mtime_ns)


@final
@dataclass(frozen=True, slots=True)
class OneAligned:
    """The files of one array, by the numbers of their token files."""

    files: AlignedFiles
    array: int

    def mapped(self, file: int, /) -> MappedFile:
        """Return the map of a file, after a check; errors as of `AlignedFiles.mapped`."""
        return self.files.mapped(file, self.array)

    def path(self, file: int, /) -> str:
        """Return the path of a file."""
        return self.files.path(file, self.array)
