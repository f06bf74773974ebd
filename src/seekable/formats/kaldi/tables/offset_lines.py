"""The lines of a script that point into one archive, and how they are made to fit its entries."""

from __future__ import annotations

import os
from bisect import bisect_left
from typing import TYPE_CHECKING, Final, NamedTuple, final

from seekable.errors import CorruptTable
from seekable.formats.kaldi.files.filenames import split_offset, split_range
from seekable.formats.kaldi.objects.tokens import decoded
from seekable.formats.kaldi.tables.archive_end import is_entry, map_regular

if TYPE_CHECKING:
    import mmap
    from collections.abc import Iterable

    from seekable.formats.kaldi.tables.archive_end import ArchiveEnd

__all__ = ["OffsetLine", "OffsetLines", "offset_line"]

_FIELDS: Final = 2
_SHOWN_BYTES: Final = 80


class OffsetLine(NamedTuple):
    """A line that points into an archive."""

    key: bytes
    """The key of the entry."""

    path: str
    """The path of the archive, as it stands in the line."""

    offset: int
    """The byte of the object."""


def offset_line(key: bytes, path: bytes, offset: int) -> bytes:
    r"""Return the line of an entry, with its line end.

    Example:
        >>> offset_line(b"utt1", b"a.ark", 5)
        b'utt1 a.ark:5\n'
    """
    return b"%s %s:%d\n" % (key, path, offset)


@final
class OffsetLines:
    """A script beside an archive, of which lines of the script have offsets."""

    def __init__(self, path: str, archive: str, data: mmap.mmap | bytes) -> None:
        """Read the script; a script that does not exist has no lines.

        Args:
            path: the script.
            archive: the archive.
            data: the bytes of the archive.

        Raises:
            AccessDenied: the script cannot be read.
        """
        self.path = path
        """The path of the script."""
        self.data: mmap.mmap | bytes = b""
        """The bytes of the script; after `fit`, those that fit the archive, as bytes."""
        if os.path.lexists(path):
            self.data = map_regular(path)
        self._found = self.data
        self._archive = archive
        self._bytes = data
        self._is_archive = {archive: True}

    @property
    def is_changed(self) -> bool:
        """True if the script has other bytes than were read."""
        return self.data is not self._found and self.data != bytes(self._found)

    def last(self) -> OffsetLine | None:
        """Return the last line that points into the archive, None if there is none.

        Raises:
            CorruptTable: it points at no entry of its key, or the last line of the script is torn.
        """
        stop = len(self.data)
        if stop and self.data[-1:] != b"\n":
            self._check_unended()
        while stop:
            start = self.data.rfind(b"\n", 0, stop - 1) + 1
            if (line := self._parse(self.data[start:stop])) is not None:
                if not is_entry(self._bytes, line.offset, line.key):
                    raise self._stray(self.data[start:stop])
                return line
            stop = start
        return None

    def _check_unended(self) -> None:
        """Raise an error for a last line without a line end, unless it points at an entry."""
        text = self.data[self.data.rfind(b"\n") + 1 :]
        fields = text.split(None, 1)
        line = self._parse(text) if len(fields) == _FIELDS else None
        if line is None or not is_entry(self._bytes, line.offset, line.key):
            raise CorruptTable(
                f"{self.path!r} ends with a torn line ({self._shown(text)}), behind which none is written: "
                f"kaldi.repair({self._archive!r}, HOLDER, script={self.path!r}) drops it"
            )

    def fit(self, end: ArchiveEnd) -> tuple[int, OffsetLine | None]:
        """Drop the lines of entries that are not complete, and a torn last line.

        Args:
            end: the entries of the archive.

        Returns:
            The number of lines that are dropped, and the line of the last entry that has one.

        Raises:
            CorruptTable: a line points into the complete entries, and at none of its key; or it is no line of
                a script.
        """
        lines = bytes(self.data).split(b"\n")
        count, rest = len(lines), lines.pop()
        if not rest:
            count -= 1
        elif not self._is_torn(rest, end):
            lines.append(rest)
        kept: list[bytes] = []
        farthest: OffsetLine | None = None
        for text in lines:
            line = self._parse(text)
            if line is not None:
                if not self._points_at_entry(line, end):
                    if line.offset < end.size:
                        raise self._stray(text)
                    continue
                if farthest is None or line.offset > farthest.offset:
                    farthest = line
            kept.append(text)
        self.data = b"".join(text + b"\n" for text in kept)
        return count - len(kept), farthest

    def add(self, entries: Iterable[tuple[bytes, int]], path: str) -> int:
        """Add lines, and return their number.

        Args:
            entries: the key and the offset of each entry.
            path: the path of the archive, for the lines.
        """
        lines = [offset_line(key, os.fsencode(path), offset) for key, offset in entries]
        self.data = bytes(self.data) + b"".join(lines)
        return len(lines)

    def _points_at_entry(self, line: OffsetLine, end: ArchiveEnd) -> bool:
        place = bisect_left(end.starts, line.offset)
        is_start = place < len(end.starts) and end.starts[place] == line.offset
        return is_start and is_entry(self._bytes, line.offset, line.key)

    def _is_torn(self, text: bytes, end: ArchiveEnd) -> bool:
        """True if a last line without a line end is less than a line."""
        try:
            line = self._parse(text)
        except CorruptTable:
            return True
        if line is not None:
            return not self._points_at_entry(line, end)
        path = split_offset(split_range(decoded(text.split(None, 1)[1]))[0])[0]
        return self._names_archive(path) or not (path.endswith("|") or os.path.exists(path))

    def _parse(self, text: bytes) -> OffsetLine | None:
        """Return what a line points at, None if that is not in the archive."""
        fields = text.split(None, 1)
        if len(fields) != _FIELDS:
            raise CorruptTable(
                f"{self.path!r}: {self._shown(text)} is no line of a script, which has '<key> <filename>': "
                f"write the script again"
            )
        name = split_range(decoded(fields[1].rstrip()))[0]
        path, offset = split_offset(name)
        if path == name or not self._names_archive(path):
            return None
        return OffsetLine(fields[0], path, offset)

    def _names_archive(self, path: str) -> bool:
        found = self._is_archive.get(path)
        if found is None:
            found = os.path.realpath(path) == os.path.realpath(self._archive)
            self._is_archive[path] = found
        return found

    def _stray(self, text: bytes) -> CorruptTable:
        return CorruptTable(
            f"{self.path!r}: the line {self._shown(text)} points into {self._archive!r}, where no object of "
            f"its key begins, so the script is that of another archive: write both again, or name the right "
            f"one"
        )

    def _shown(self, text: bytes) -> str:
        text = text.rstrip(b"\n")
        text = text.rstrip(b"\n")
        return repr(text[:_SHOWN_BYTES]) + ("..." if len(text) > _SHOWN_BYTES else "")
