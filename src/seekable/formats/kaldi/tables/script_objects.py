"""The objects that the lines of a script name: an rxfilename each, maybe with a range of rows and columns."""

from __future__ import annotations

import re
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
from seekable.formats.kaldi.files.filenames import check_rxfilename, split_offset, split_range
from seekable.formats.kaldi.files.opening import open_named
from seekable.formats.kaldi.files.stored_file import check_named, mounted, scheme_of, script_folders
from seekable.formats.kaldi.holders.holder import SupportsRange
from seekable.formats.kaldi.holders.matrix_coding import CompressedMatrix
from seekable.formats.kaldi.holders.ranges import Range, parse_range
from seekable.formats.kaldi.holders.sparse import SparseMatrix
from seekable.formats.kaldi.objects.file_cursor import FileCursor
from seekable.formats.kaldi.objects.tokens import TOKEN
from seekable.formats.kaldi.tables.archive import cause_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seekable.formats.kaldi.files.pipes import Pipes
    from seekable.formats.kaldi.holders.holder import Holder
    from seekable.formats.kaldi.objects.buffered_cursor import BufferedCursor
    from seekable.formats.kaldi.objects.cursor import Cursor, MemoryCursor
    from seekable.formats.kaldi.tables.local_data import LocalData

__all__ = ["Place", "ScriptObjects"]

_MOST_DIGITS: Final = 18
_FIRST_KEY: Final = re.compile(TOKEN + rb"[ \t]")
_CUT: Final = (np.ndarray, SparseMatrix, CompressedMatrix, bytes)


Place = tuple[str, int]
"""The path of a file, and a byte of it."""


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
        files: LocalData,
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
            CorruptTable: the rxfilename is none, or its offset is behind the end of the file.
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
        """Return an object, or a part of it, of an rxfilename of any kind; errors name the line."""
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
        """Return a part of an object of which all must be read: the next line may name another part of it."""
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
        key = found[0].strip().decode("utf-8", "surrogateescape")
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
