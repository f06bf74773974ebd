"""A text table whose lines are sorted by their keys: a line is found by its key, without an index of keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from seekable.errors import CorruptTable
from seekable.formats.kaldi.objects.tokens import decoded

if TYPE_CHECKING:
    from seekable.index.fileset import FileSet

__all__ = ["SortedTable"]


@final
class SortedTable:
    """One indexed file, sorted by bytes, each key once. Safe from threads; a pickle has the file alone."""

    def __init__(self, files: FileSet) -> None:
        """Take the file; nothing is read.

        Args:
            files: a set of one file.
        """
        self.files = files
        """The set of the one file."""
        self._last = 0

    def __reduce__(self) -> tuple[type[SortedTable], tuple[FileSet]]:
        return SortedTable, (self.files,)

    def find(self, key: bytes, guess: int = -1) -> int:
        """Return the row of the line with a key.

        The guess, and the rows from the one found last, are tried first; else it is a binary search.

        Args:
            key: the key.
            guess: a row, -1 for none.

        Raises:
            CorruptTable: the table has no such key.
            IndexStale: the file was changed.
        """
        files = self.files
        files.mapped(0).check()
        count, last = int(files.records[0]), self._last
        for row in (guess, last, last + 1):
            if 0 <= row < count and self._key(row, len(key)) == key:
                break
        else:
            row = self._search(key, count)
        self._last = row
        return row

    def rest(self, row: int, key: bytes) -> bytes:
        """Return what follows the key in the line of a row, without the white space around it."""
        return bytes(self.files.bytes_of(0, row))[len(key) :].strip()

    def _search(self, key: bytes, count: int) -> int:
        low, high = 0, count
        while low < high:
            middle = (low + high) // 2
            if self._key(middle, len(key)) < key:
                low = middle + 1
            else:
                high = middle
        if low == count or self._key(low, len(key)) != key:
            message = (
                f"{self.files.path(0)!r} has no line for {decoded(key)!r}: add it; `seekable kaldi validate` "
                f"finds all that is missing"
            )
            raise CorruptTable(message)
        return low

    def _key(self, row: int, length: int) -> bytes:
        """Return the first word of a line, cut one byte behind a length, which is enough to compare it."""
        start, end = self.files.range(0, row)
        words = bytes(self.files.mapped(0).view[start : min(end, start + length + 1)]).split(None, 1)
        return words[0] if words else b""
