"""Files in which scripts name objects by offsets. They stay open for the next object."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Final, Protocol, final

from seekable.formats.kaldi.files.local_files import coding_by_magic, coding_by_name, open_local
from seekable.formats.kaldi.files.opening import open_rx
from seekable.formats.kaldi.files.stored_file import GrowingRanges, is_stored, stored_ranges
from seekable.formats.kaldi.objects.buffered_cursor import BufferedCursor
from seekable.formats.kaldi.objects.cursor import MemoryCursor
from seekable.storage.files import map_file
from seekable.storage.mapped import most_maps

if TYPE_CHECKING:
    import io

    from seekable.storage.ranges import RangeSource

__all__ = ["BufferedFiles", "LocalData", "MappedFiles", "open_plain"]

_MOST_BUFFERED: Final = 8
"""The number of files of a sequential reader that stay open, each with a descriptor."""

_MOST_STORED: Final = 4096

_SHARE: Final = 4
"""A reader by key has this part of the files that the process may map, and at least as many as the other."""

_SMALL_BYTES: Final = 256 << 10
"""A file of at most this size is read as a whole: that is faster than a map."""


class LocalData(Protocol):
    """Regular files that are not compressed, by their paths."""

    def __contains__(self, path: str) -> bool:
        """Return True if a file is open."""

    def cursor(self, path: str, offset: int | None, key: str) -> BufferedCursor | MemoryCursor | None:
        """Return a cursor at a byte of a file.

        Args:
            path: the file.
            offset: the byte; None for a file that is one object.
            key: for messages.

        Returns:
            None if it is no regular file, or is compressed, or cannot be opened.

        Raises:
            CorruptTable: the byte is behind the end of the file.
        """

    def close(self) -> None:
        """Close all files that are open."""


@final
class _StoredFiles:
    """Files of stores, each of the version that it had when it was used first. Safe from threads."""

    def __init__(self) -> None:
        self._sources: dict[str, RangeSource] = {}

    def cursor(self, path: str, offset: int | None, key: str) -> BufferedCursor | None:
        """Return a cursor at a byte of a file, as of `LocalData`; it reads in pieces of its own."""
        source = self._sources.get(path)
        if source is None or (offset or 0) > source.size:  # It may have grown.
            if len(self._sources) >= _MOST_STORED:
                self._sources.clear()
            source = self._sources[path] = stored_ranges(path)
        ranges = GrowingRanges(source)
        if (coding_by_name(path) if offset else ranges.coding(path)) is not None:
            return None
        if (offset or 0) > source.size:
            _raise_beyond(path, offset or 0)
        return BufferedCursor(ranges, name=source.path, key=key, position=offset or 0, size=source.size)


class _MappedFile:
    """A file, mapped. Arrays keep the map; the descriptor lasts as long as this object."""

    __slots__ = ("descriptor", "path", "size", "view")

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self.descriptor = descriptor
        self.size = os.fstat(descriptor).st_size
        self.view = map_file(descriptor, self.size)

    def __del__(self) -> None:
        os.close(self.descriptor)


@final
class MappedFiles:
    """Files that are mapped: arrays are read-only views of them. Safe from threads, and after a fork."""

    def __init__(self) -> None:
        """Begin without an open file."""
        self._files: dict[str, _MappedFile] = {}
        self._stored = _StoredFiles()

    def __contains__(self, path: str) -> bool:
        """Return True if a file is mapped."""
        return path in self._files

    def cursor(self, path: str, offset: int | None, key: str) -> BufferedCursor | MemoryCursor | None:
        """Return a cursor at a byte of a file, as of `LocalData`."""
        if is_stored(path):
            return self._stored.cursor(path, offset, key)
        file = self._files.get(path)
        if file is None:
            raw = open_plain(path)
            if raw is None:
                return None
            with raw:
                if offset is None and os.fstat(raw.fileno()).st_size <= _SMALL_BYTES:
                    return MemoryCursor(bytearray(raw.readall()), name=path, key=key)
                file = self._keep(_MappedFile(path, os.dup(raw.fileno())))
        # A file that was cut would kill the process where its map is read.
        elif os.lseek(file.descriptor, 0, os.SEEK_END) != file.size:
            file = self._keep(_MappedFile(path, os.dup(file.descriptor)))
        if offset is not None and offset > file.size:
            _raise_beyond(path, offset)
        return MemoryCursor(file.view, name=path, key=key, position=offset or 0)

    def _keep(self, file: _MappedFile) -> _MappedFile:
        while len(self._files) >= max(_MOST_BUFFERED, most_maps() // _SHARE):
            # Another thread may drop the same one.
            self._files.pop(next(iter(tuple(self._files)), ""), None)
        self._files[file.path] = file
        return file

    def close(self) -> None:
        """Close all files; arrays in their maps stay as they are."""
        self._files.clear()


class _BufferedFile:
    """A file, and the only cursor over it."""

    __slots__ = ("cursor", "raw", "size")

    def __init__(self, raw: io.FileIO, path: str) -> None:
        self.raw = raw
        self.size = os.fstat(raw.fileno()).st_size
        self.cursor = BufferedCursor(raw, name=path, size=self.size)


@final
class BufferedFiles:
    """Files that are read by way of buffers: arrays have their own memory. One thread at a time uses them."""

    def __init__(self) -> None:
        """Begin without an open file."""
        self._files: dict[str, _BufferedFile] = {}
        self._stored = _StoredFiles()

    def __contains__(self, path: str) -> bool:
        """Return True if a file is open."""
        return path in self._files

    def cursor(self, path: str, offset: int | None, key: str) -> BufferedCursor | None:
        """Return a cursor at a byte of a file, as of `LocalData`; one of a file at a time can be used."""
        if is_stored(path):
            return self._stored.cursor(path, offset, key)
        known = self._files.get(path)
        if known is not None and (offset or 0) > known.size:
            self._drop(path)  # It may have grown.
            known = None
        if known is None:
            raw = open_plain(path)
            if raw is None:
                return None
            while len(self._files) >= _MOST_BUFFERED:
                self._drop(next(iter(self._files)))
            known = self._files[path] = _BufferedFile(raw, path)
        if (offset or 0) > known.size:
            _raise_beyond(path, offset or 0)
        known.cursor.seek(offset or 0)
        known.cursor.key = key
        return known.cursor

    def _drop(self, path: str) -> None:
        self._files.pop(path).raw.close()

    def close(self) -> None:
        """Close all files that are open."""
        while self._files:
            self._drop(next(iter(self._files)))


def open_plain(path: str) -> io.FileIO | None:
    """Return a regular file that is not compressed, open; None for all others, and where it cannot be opened.

    `open_rx` names the reason why a file cannot be opened.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # What a named pipe has must not be lost.
            return None
        raw = open_local(path)
    except (OSError, ValueError):
        return None
    if coding_by_magic(raw) is None:
        return raw
    raw.close()
    return None


def _raise_beyond(path: str, offset: int) -> None:
    """Raise the error of an offset behind the end of a file."""
    open_rx(f"{path}:{offset}", header=False).close()
