"""Objects that the lines of a script name, read from files that stay open for the next object."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

import numpy as np

from seekable.errors import (
    AccessDenied,
    CorruptObject,
    CorruptTable,
    DataNotFound,
    InvalidArgument,
    PipeFailed,
    PipeRefused,
    UnsupportedFormat,
)
from seekable.formats.kaldi.basic_types import TOKEN, decoded
from seekable.formats.kaldi.cursor import BufferedCursor, FileCursor, MemoryCursor
from seekable.formats.kaldi.files.local_files import coding_by_magic, coding_by_name, open_local
from seekable.formats.kaldi.files.open_named import open_named, open_rx
from seekable.formats.kaldi.files.specifiers import check_rxfilename, split_offset, split_range
from seekable.formats.kaldi.files.store_files import (
    GrowingRanges,
    check_named,
    is_stored,
    mounted,
    scheme_of,
    script_folders,
    stored_ranges,
)
from seekable.formats.kaldi.holders.compressed_matrix import CompressedMatrix
from seekable.formats.kaldi.holders.registry import SupportsRange
from seekable.formats.kaldi.holders.script_ranges import Range, parse_range
from seekable.formats.kaldi.holders.sparse import SparseMatrix
from seekable.formats.kaldi.tables.archive import cause_of
from seekable.storage.files import failed_read, map_file
from seekable.storage.mapped import most_maps

if TYPE_CHECKING:
    import io
    from collections.abc import Mapping

    from seekable.formats.kaldi.cursor import Cursor
    from seekable.formats.kaldi.files.pipes import Pipes
    from seekable.formats.kaldi.holders.registry import Holder
    from seekable.storage.ranges import RangeSource

_MOST_BUFFERED: Final = 8
"""The number of files of a sequential reader that stay open, each with a descriptor."""

_MOST_STORED: Final = 4096

_SHARE: Final = 4
"""A reader by key has this part of the files that the process may map, and at least as many as the other."""

_SMALL_BYTES: Final = 256 << 10
"""A file of at most this size is read as a whole: that is faster than a map."""

_MOST_DIGITS: Final = 18
_FIRST_KEY: Final = re.compile(TOKEN + rb"[ \t]")
_CUT: Final = (np.ndarray, SparseMatrix, CompressedMatrix, bytes)

Place = tuple[str, int]
"""The path of a file, and a byte of it."""


@final
class _StoredFiles:
    """Files of stores, each of the version that it had when it was used first. Safe from threads."""

    def __init__(self) -> None:
        self._sources: dict[str, RangeSource] = {}

    def cursor(self, path: str, offset: int | None, key: str) -> BufferedCursor | None:
        """Return a cursor at a byte of a file; it reads in pieces of its own."""
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
        try:
            self.view = map_file(descriptor, self.size)
        except OSError as error:
            raise failed_read(path, error, at=0) from None

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
        """Return a cursor at a byte of a file.

        Args:
            path: the file.
            offset: the byte; None for a file that is one object.
            key: for messages.

        Returns:
            None if the file is not a regular one, or is compressed, or cannot be opened.

        Raises:
            CorruptTable: the byte is after the end of the file.
        """
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
        """Return a cursor at a byte of a file, as `MappedFiles.cursor` does; each file has one alone."""
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
    with contextlib.suppress(OSError):
        if coding_by_magic(raw) is None:
            return raw
    raw.close()
    return None


def _raise_beyond(path: str, offset: int) -> None:
    """Raise the error of an offset after the end of a file."""
    open_rx(f"{path}:{offset}", header=False).close()


class _Whole(NamedTuple):
    """An object that was read as a whole, because lines name several ranges of it."""

    rxfilename: str
    value: Any


@final
class ScriptObjects:
    """The objects of one holder that rxfilenames name. It is as safe from threads and forks as its files."""

    def __init__(
        self,
        name: str,
        holder: Holder,
        files: MappedFiles | BufferedFiles,
        *,
        pipes: Pipes,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Begin without an open file.

        Args:
            name: the extended filename of the script, for messages.
            holder: reads the objects.
            files: opens local files.
            pipes: ``"allow"`` if rxfilenames may be commands.
            storage_options: the options of the stores of addresses; those of a script in a store are not for
                addresses of other schemes.
        """
        self._name = name
        self._holder = holder
        self._pipes: Pipes = pipes
        self._files = files
        self._storage_options = storage_options
        self._scheme = scheme_of(name)
        self._below = script_folders(name)
        self._whole: _Whole | None = None

    def read(self, key: str, xfilename: str) -> Any:
        """Return the object of a line.

        Args:
            key: the key of the line, for messages.
            xfilename: the rest of the line: an rxfilename, maybe with a range.

        Raises:
            CorruptTable: the rxfilename is none, or its offset is after the end of the file.
            CorruptObject: no object of the holder is there.
            InvalidArgument: the range is none, or the object has no such rows or columns, or the holder has
                no ranges.
            PipeRefused, PipeFailed, DataNotFound, AccessDenied, ...: as in `open_rx`.
        """
        if xfilename[-1:] == "]":
            return self._read_part(key, xfilename)
        place = self.place(xfilename)
        if place is not None:
            return self.read_at(key, place)
        return self._read_other(key, xfilename, None)

    def place(self, xfilename: str) -> Place | None:
        """Return the file and the byte that an rxfilename names; None unless that file is open."""
        path, _, digits = xfilename.rpartition(":")
        if path in self._files and digits.isdecimal() and digits.isascii() and len(digits) <= _MOST_DIGITS:
            return path, int(digits)
        return None

    def read_at(self, key: str, place: Place) -> Any:
        """Return the object at a byte of a file; errors as in `read`."""
        path, offset = place
        try:
            cursor = self._files.cursor(path, offset, key)
        except CorruptTable:
            cursor = None
        if cursor is None:
            return self._read_other(key, f"{path}:{offset}", None)
        return self._holder.read(cursor)

    def _read_part(self, key: str, xfilename: str) -> Any:
        if not isinstance(self._holder, SupportsRange):
            raise InvalidArgument(
                f"{xfilename!r} (key {key!r}) has a range, and the holder {self._holder.name} reads none"
            )
        try:
            rxfilename, text = split_range(xfilename)
            part = parse_range(text or "")
            whole = self._whole
            if whole is not None and whole.rxfilename == rxfilename:
                return _cut(whole.value, part, rxfilename)
            return self._read_other(key, rxfilename, part)
        except InvalidArgument as error:
            raise InvalidArgument(f"{xfilename!r} (key {key!r}): {error}") from None

    def _read_other(self, key: str, rxfilename: str, part: Range | None) -> Any:
        """Return an object, or a part of it, from any kind of rxfilename; errors name the line."""
        try:
            return self._read_any(key, rxfilename, part)
        except PipeFailed as error:
            place = f"the entry {key!r} of {self._name!r}{error.place and ': '}{error.place}"
            raise PipeFailed(error.command, error.exit_code, place) from None
        except CorruptObject:
            raise
        except (CorruptTable, DataNotFound, AccessDenied, PipeRefused, UnsupportedFormat) as error:
            raise type(error)(f"the entry {key!r} of {self._name!r}: {error}") from None

    def _read_any(self, key: str, rxfilename: str, part: Range | None) -> Any:
        try:
            kind = check_rxfilename(rxfilename)
        except InvalidArgument as error:
            raise CorruptTable(str(error)) from None
        if kind != "pipe" or self._pipes != "allow":
            check_named(split_offset(rxfilename)[0] if kind == "offset" else rxfilename, self._below)
        if self._storage_options and "://" in rxfilename and self._scheme in {"", scheme_of(rxfilename)}:
            rxfilename = mounted(rxfilename, self._storage_options)
        if kind in {"file", "offset"}:
            path, offset = split_offset(rxfilename) if kind == "offset" else (rxfilename, None)
            cursor = self._files.cursor(path, offset, key)
            if cursor is not None:
                return self._read_local(cursor, rxfilename, part)
        return self._read_stream(key, rxfilename, part)

    def _read_local(self, cursor: BufferedCursor | MemoryCursor, rxfilename: str, part: Range | None) -> Any:
        start = cursor.position
        try:
            if part is None:
                return self._holder.read(cursor)
            if cursor.peek() == 0:
                assert isinstance(self._holder, SupportsRange)
                return self._holder.read_range(cursor, part)
            return self._read_whole(cursor, rxfilename, part)
        except CorruptObject as error:
            cursor.seek(start)
            raise self._archive_error(cursor) or error from None

    def _read_whole(self, cursor: Cursor, rxfilename: str, part: Range) -> Any:
        """Read a whole object and return a part: the next line may name another part of it."""
        value = self._holder.read(cursor)
        if isinstance(value, _CUT):
            self._whole = _Whole(rxfilename, value)
            return _cut(value, part, cursor.name)
        raise InvalidArgument(
            f"the holder {self._holder.name} reads ranges of files that can seek, and {rxfilename!r} is none"
        )

    def _read_stream(self, key: str, rxfilename: str, part: Range | None) -> Any:
        with open_named(rxfilename, pipes=self._pipes) as file:
            cursor = FileCursor(file, key=key)
            try:
                if part is None:
                    return self._holder.read(cursor)
                return self._read_whole(cursor, rxfilename, part)
            except CorruptObject as error:
                raise cause_of(error, file) from None

    def _archive_error(self, cursor: BufferedCursor | MemoryCursor) -> CorruptObject | None:
        """Return the error of a file that is an archive where a line names one object; None for others."""
        start = cursor.position
        found = _FIRST_KEY.match(cursor.preview())
        if start or found is None:
            return None
        cursor.seek(found.end())
        try:
            self._holder.skip(cursor)
        except CorruptObject:
            return None
        key = decoded(found[0].strip())
        seen = (
            f"the key {key!r} of an archive, which has an object at byte {found.end()}. A script names it by "
            f"'{cursor.name}:{found.end()}'; ark:{cursor.name} reads the whole archive"
        )
        return cursor.error(f"an object of the holder {self._holder.name}", seen, at=0)

    def close(self) -> None:
        """Close all files. Objects stay valid."""
        self._files.close()
        self._whole = None


def _cut(value: Any, part: Range, path: str) -> Any:
    """Return a part of an object, as `SupportsRange.read_range` returns it, in memory of its own."""
    if isinstance(value, SparseMatrix):
        return value.part(part, path)
    if isinstance(value, CompressedMatrix):
        value = value.decode()
    if isinstance(value, bytes) or value.ndim == 1:
        kind = "blob" if isinstance(value, bytes) else "vector"
        found = value[part.without_columns(kind).row_slice(len(value), path)]
    else:
        found = value[part.row_slice(len(value), path), part.column_slice(value.shape[1], path)]
    return found if isinstance(found, bytes) else found.copy()
