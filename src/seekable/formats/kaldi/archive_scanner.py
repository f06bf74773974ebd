"""Archives: the bytes at which their entries start, found by the headers of the objects."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
import xxhash

from seekable.errors import CorruptObject, CorruptTable, InvalidArgument, UnsupportedFormat
from seekable.formats.kaldi.entry_reader import ENTRY
from seekable.formats.kaldi.holders.candidates import candidates_of
from seekable.formats.kaldi.holders.registry import ObjectHolder, is_own
from seekable.formats.kaldi.objects.cursor import END_OF_FILE, Cursor, MemoryCursor
from seekable.formats.kaldi.objects.tokens import TOKEN
from seekable.storage.first_bytes import check_compression, refuse_foreign

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from seekable.formats.kaldi.holders.registry import Holder
    from seekable.index.scanner import ByteSource

_LEADING_SPACES = re.compile(rb"[ \t\n\r\f\v]*")
_PREVIEW_BYTES = 4096
_LONGEST_KEY = 1 << 20
_OF_KEYS = frozenset(range(0x21, 0xFF)) - {0x7F}
_BEHIND_KEYS = frozenset(b" \t\n\r")
_TAKEN_BEHIND_KEYS = frozenset(b" \t")
_SHOWN_BYTES = 24

_AT_ONCE = 1 << 16

_SPACES = b" \t\n\r\f\v"

_TORN_KEY = re.compile(TOKEN)


@final
class _ChunkCursor(Cursor):
    """A cursor over a source of bytes; one chunk is in memory at a time."""

    __slots__ = ("_at", "_base", "_chunks", "_data", "_end", "_size")

    def __init__(self, source: ByteSource) -> None:
        """Begin at the first byte of the source.

        Args:
            source: the bytes of a whole file.
        """
        self.name, self.key = "", None
        self._chunks = source.chunks()
        self._size = source.content_bytes
        self._data: bytearray | bytes = b""
        self._base = self._at = self._end = 0
        self._more()

    @property
    def position(self) -> int:
        """The number of bytes from the start of the file to the next byte."""
        return self._base + self._at

    @property
    def remaining(self) -> int | None:
        """The count of bytes from here to the end; None for a compressed file."""
        return None if self._size is None else max(self._size - self.position, 0)

    def peek(self) -> int:
        """Return the next byte without moving; -1 at the end of the file."""
        return self._data[self._at] if self._at < self._end or self._more() else -1

    def preview(self) -> bytes:
        """Return at most 4,096 of the next bytes without moving, at least one before the end."""
        if self._at == self._end:
            self._more()
        return bytes(self._data[self._at : min(self._at + _PREVIEW_BYTES, self._end)])

    def ahead(self, count: int) -> bytes:
        """Return the next `count` bytes without moving: fewer at the end of a chunk."""
        return bytes(self._data[self._at : min(self._at + count, self._end)])

    def take(self, count: int, what: str) -> bytes | bytearray:
        """Return the next `count` bytes, copied, and move past them."""
        at = self._at
        if 0 <= count <= self._end - at:
            self._at = at + count
            return bytes(memoryview(self._data)[at : at + count])
        self.check_count(count, what)
        found = bytearray()
        while len(found) < count:
            part = self._data[self._at : min(self._at + count - len(found), self._end)]
            if not part and not self._more():
                raise self.cut_error(count, len(found), what)
            self._at += len(part)
            found += part
        return found

    def skip(self, count: int, what: str) -> None:
        """Move past the next `count` bytes."""
        if 0 <= count <= self._end - self._at:
            self._at += count
            return
        self.check_count(count, what)
        left = count
        while left > self._end - self._at:
            left -= self._end - self._at
            self._at = self._end
            if not self._more():
                raise self.cut_error(count, count - left, what)
        self._at += left

    def array(self, dtype: DTypeLike, count: int, what: str, *, behind: int = 0) -> NDArray[Any]:
        """Return the next `count` items in memory of their own."""
        dtype = np.dtype(dtype)
        if behind:
            self.skip(behind, what)
        return np.frombuffer(self.take(dtype.itemsize * count, what), dtype)

    def through(self, mark: bytes) -> bytes:
        """Return all bytes through the next `mark`; without it, all that remain."""
        found = bytearray()
        while True:
            start, end = self._at, self._data.find(mark, self._at, self._end)
            self._at = self._end if end < 0 else end + 1
            found += memoryview(self._data)[start : self._at]
            if end >= 0 or not self._more():
                return bytes(found)

    def next_entry(self) -> int | None:
        """Move past whitespace; return the position of the next byte, None at the end of the file."""
        while True:
            found = _LEADING_SPACES.match(self._data, self._at, self._end)
            self._at = found.end() if found else self._at
            if self._at < self._end:
                return self._base + self._at
            if not self._more():
                return None

    def skip_key(self) -> bool:
        """Move past a key and the space after it; return False if none is here."""
        found = ENTRY.match(self._data, self._at, self._end)
        if found is not None and found.end() < self._end:
            self._at = found.end()
            return True
        length = 0
        while length < _LONGEST_KEY and (byte := self.peek()) in _OF_KEYS:
            self._at += 1
            length += 1
        if not length or byte not in _BEHIND_KEYS:
            return False
        self._at += byte in _TAKEN_BEHIND_KEYS
        return True

    def finish(self) -> None:
        """Read the rest of the file."""
        while self._more():
            pass

    def _more(self) -> bool:
        """Take the next chunk, after all of this one; return False at the end of the file."""
        chunk = next(self._chunks, None)
        if chunk is None:
            self._base, self._data, self._at, self._end = self._base + self._end, b"", 0, 0
            return False
        self._base, self._data, self._at, self._end = chunk.base, chunk.buffer, 0, chunk.size
        return True


@dataclass(frozen=True, slots=True)
class ArchiveScanner:
    """Finds the entries of an archive, whose holder finds the end of an object.

    Bytes from which on no entry can be found, of a torn or damaged archive, are the last record, which cannot
    be read.
    """

    form: str = "ark"
    """The name of the format."""

    holder: Holder | None = None

    splittable: bool = False
    """False: where an entry starts is known from the one before it."""

    @property
    def name(self) -> str:
        """The name in the index: ``ark-`` and the name of the holder; of the user's own, a digest too."""
        if self.holder is None or is_own(self.holder):
            return self.form
        kind = self.holder.kind if isinstance(self.holder, ObjectHolder) else type(self.holder)
        digest = xxhash.xxh3_64_hexdigest(
            f"{self.holder.name} {kind.__module__}.{kind.__qualname__}".encode()
        )
        return f"ark-user-{digest}"

    def check_head(self, head: bytes, path: str) -> None:
        """Check the first entry of a file.

        Raises:
            InvalidArgument: the archive has no holder.
            UnsupportedFormat: the first entry is not one of the holder.
        """
        check_compression(head, path)
        holder = self._holder()
        start = len(head) - len(head.lstrip(_SPACES))
        key = ENTRY.match(head, start)
        if key is None:
            refuse_foreign(head, path, what="an archive of Kaldi")
            if start < len(head) and not _TORN_KEY.fullmatch(head, start):
                shown = head[start : start + _SHOWN_BYTES]
                message = (
                    f"{path!r} is no archive: expected a key and a space at byte {start}, found {shown!r}"
                )
                raise UnsupportedFormat(message)
            return
        cursor = MemoryCursor(head, name=path, key=str(key[1], "utf-8", "replace"), position=key.end())
        try:
            holder.skip(cursor)
        except CorruptTable as error:
            # An object may be longer than these first bytes, or be torn: then it is an error when it is read.
            is_cut = isinstance(error, CorruptObject) and END_OF_FILE in error.found
            if not is_cut:
                names = [name for name in candidates_of(head[key.end() :]) if name != holder.name]
                hint = f"; it looks like {' or '.join(names)}" if names else ""
                message = f"{path!r} is no archive of the holder {holder.name!r}{hint}: {error}"
                raise UnsupportedFormat(message) from error

    def scan(self, source: ByteSource) -> NDArray[np.uint64]:
        """Return the offsets of the keys, uint64."""
        holder, cursor = self._holder(), _ChunkCursor(source)
        starts: list[int] = []
        found: list[NDArray[np.uint64]] = []
        while (start := cursor.next_entry()) is not None:
            starts.append(start)
            if not cursor.skip_key() or not _skip(holder, cursor):
                break
            if len(starts) == _AT_ONCE:
                found.append(np.array(starts, np.uint64))
                starts.clear()
        cursor.finish()
        return np.concatenate([*found, np.array(starts, np.uint64)])

    def _holder(self) -> Holder:
        if self.holder is None:
            raise InvalidArgument(
                "an archive needs a holder: say sk.formats.Kaldi(holder=...), "
                "or format='ark-matrix' and the like"
            )
        return self.holder


def _skip(holder: Holder, cursor: Any) -> bool:
    """Move past an object; return False if none is there."""
    try:
        holder.skip(cursor)
    except CorruptTable:
        return False
    return True
