"""The objects that the lines of a script name: an rxfilename each, maybe with a range of rows and columns."""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

import numpy as np

from seekable.errors import CorruptObject, CorruptTable, InvalidArgument
from seekable.kaldi.files.filenames import check_rxfilename, split_offset, split_range
from seekable.kaldi.files.local_files import coding_by_magic, open_local
from seekable.kaldi.files.opening import open_rx
from seekable.kaldi.holders.holder import SupportsRange
from seekable.kaldi.holders.matrix_coding import CompressedMatrix
from seekable.kaldi.holders.ranges import Range, parse_range
from seekable.kaldi.holders.sparse import SparseMatrix
from seekable.kaldi.objects.cursor import MemoryCursor
from seekable.kaldi.objects.file_cursor import FileCursor
from seekable.kaldi.tables.archive import cause_of
from seekable.storage.map_file import map_file

if TYPE_CHECKING:
    from seekable.kaldi.files.pipes import Pipes
    from seekable.kaldi.holders.holder import Holder
    from seekable.kaldi.objects.cursor import Cursor

__all__ = ["ScriptObjects"]

_SMALL_BYTES: Final = 256 << 10
"""A file of at most this size is read as a whole: that is faster than a map."""

_MOST_OPEN: Final = 64
"""The number of files of one reader that stay mapped, each with a descriptor."""

_MOST_DIGITS: Final = 18
_FIRST_KEY: Final = re.compile(rb"[\x21-\x7e\x80-\xfe]+[ \t]")
_CUT: Final = (np.ndarray, SparseMatrix, CompressedMatrix, bytes)


class _MappedFile:
    """A local file, mapped. Arrays keep the map; the descriptor lasts as long as this object."""

    __slots__ = ("descriptor", "path", "size", "view")

    def __init__(self, path: str, descriptor: int, size: int) -> None:
        self.path = path
        self.descriptor = descriptor
        self.size = size
        self.view = map_file(descriptor, size)

    def __del__(self) -> None:
        os.close(self.descriptor)


class _Whole(NamedTuple):
    """An object that was read as a whole, because lines name several ranges of it."""

    rxfilename: str
    value: Any


@final
class ScriptObjects:
    """The objects of one holder that rxfilenames name. Safe from threads, and after a fork.

    Local files that are not compressed stay mapped, so that an object is found by arithmetic alone.
    """

    def __init__(self, holder: Holder, *, pipes: Pipes, own: bool) -> None:
        """Open nothing yet.

        Args:
            holder: reads the objects.
            pipes: ``"allow"`` if rxfilenames may be commands.
            own: True if arrays have memory of their own; False if they may be read-only views of a file.
        """
        self._holder = holder
        self._pipes: Pipes = pipes
        self._own = own
        self._files: dict[str, _MappedFile] = {}
        self._whole: _Whole | None = None

    def read(self, key: str, xfilename: str) -> Any:
        """Return the object of a line.

        Args:
            key: the key of the line, for messages.
            xfilename: the rest of the line: an rxfilename, maybe with a range.

        Raises:
            CorruptTable: the rxfilename is none, or its offset is behind the end of the file.
            CorruptObject: no object of the holder is there.
            InvalidArgument: the range is none, or the object has no such rows or columns, or the holder has
                no ranges.
            PipeRefused, PipeFailed, DataNotFound, AccessDenied, ...: as in `open_rx`.
        """
        if xfilename.endswith("]"):
            return self._read_part(key, xfilename)
        path, _, digits = xfilename.rpartition(":")
        file = self._files.get(path)
        if file is None or not (digits.isdecimal() and digits.isascii() and len(digits) <= _MOST_DIGITS):
            return self._read_other(key, xfilename, None)
        return self._holder.read(self._cursor(file, int(digits), key))

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
        """Return an object, or a part of it, of an rxfilename of any kind."""
        try:
            kind = check_rxfilename(rxfilename)
        except InvalidArgument as error:
            raise CorruptTable(f"the line of key {key!r}: {error}") from None
        if kind in {"file", "offset"}:
            path, offset = split_offset(rxfilename) if kind == "offset" else (rxfilename, 0)
            cursor = self._local_cursor(path, offset, key, is_whole=kind == "file")
            if cursor is not None:
                return self._read_local(cursor, rxfilename, part)
        return self._read_stream(key, rxfilename, part)

    def _read_local(self, cursor: MemoryCursor, rxfilename: str, part: Range | None) -> Any:
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
        """Return a part of an object of which all must be read: the next line may name another part of it."""
        value = self._holder.read(cursor)
        if isinstance(value, _CUT):
            self._whole = _Whole(rxfilename, value)
            return _cut(value, part, cursor.name)
        raise InvalidArgument(
            f"the holder {self._holder.name} reads ranges of files that can seek, and {rxfilename!r} is none"
        )

    def _read_stream(self, key: str, rxfilename: str, part: Range | None) -> Any:
        with open_rx(rxfilename, header=False, pipes=self._pipes) as file:
            cursor = FileCursor(file, key=key)
            try:
                if part is None:
                    return self._holder.read(cursor)
                return self._read_whole(cursor, rxfilename, part)
            except CorruptObject as error:
                raise cause_of(error, file) from None

    def _archive_error(self, cursor: MemoryCursor) -> CorruptObject | None:
        """The error of a file that is an archive, where a line should name one object; None for others."""
        start = cursor.position
        found = _FIRST_KEY.match(cursor.preview())
        if start or found is None:
            return None
        cursor.seek(found.end())
        try:
            self._holder.skip(cursor)
        except CorruptObject:
            return None
        key = found[0].strip().decode("utf-8", "surrogateescape")
        seen = (
            f"the key {key!r} of an archive, which has an object at byte {found.end()}. A script names it by "
            f"'{cursor.name}:{found.end()}'; ark:{cursor.name} reads the whole archive"
        )
        return cursor.error(f"an object of the holder {self._holder.name}", seen, at=0)

    def _local_cursor(self, path: str, offset: int, key: str, *, is_whole: bool) -> MemoryCursor | None:
        """A cursor at a byte of a local file; None for a file that is a stream, or cannot be opened."""
        file = self._files.get(path)
        if file is None:
            try:
                raw = open_local(path)
            except OSError:
                return None  # `open_rx` names the reason.
            with raw:
                status = os.fstat(raw.fileno())
                if not stat.S_ISREG(status.st_mode) or coding_by_magic(raw):
                    return None
                if is_whole and status.st_size <= _SMALL_BYTES:
                    return MemoryCursor(bytearray(raw.readall()), name=path, key=key)
                file = self._keep(_MappedFile(path, os.dup(raw.fileno()), status.st_size))
        return self._cursor(file, offset, key)

    def _keep(self, file: _MappedFile) -> _MappedFile:
        while len(self._files) >= _MOST_OPEN:
            # Another thread may have dropped the same one.
            self._files.pop(next(iter(tuple(self._files)), ""), None)
        self._files[file.path] = file
        return file

    def _cursor(self, file: _MappedFile, offset: int, key: str) -> MemoryCursor:
        size = os.lseek(file.descriptor, 0, os.SEEK_END)
        if size != file.size:
            file = self._keep(_MappedFile(file.path, os.dup(file.descriptor), size))
        if offset > size:
            open_rx(f"{file.path}:{offset}").close()  # It raises the error.
        return MemoryCursor(
            file.view,
            name=file.path,
            key=key,
            position=offset,
            file=file.descriptor if self._own else None,
        )

    def close(self) -> None:
        """Close all files; arrays in their maps stay as they are."""
        self._files.clear()
        self._whole = None


def _cut(value: Any, part: Range, path: str) -> Any:
    """A part of an object, as `SupportsRange.read_range` returns it, in memory of its own."""
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
