"""The end of an archive, found by skipping its entries one by one, up to the end or to a torn one."""

from __future__ import annotations

import contextlib
import mmap
import os
import re
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seekable.errors import CorruptObject, CorruptTable, DataNotFound, UnsupportedFormat
from seekable.formats.kaldi.files.local_files import check_local, coding_of, open_local
from seekable.formats.kaldi.holders.candidates import candidates_of
from seekable.formats.kaldi.holders.registry import find_holder
from seekable.formats.kaldi.objects.cursor import MemoryCursor
from seekable.formats.kaldi.objects.tokens import TOKEN, decoded, is_token

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.formats.kaldi.holders.holder import Holder

__all__ = ["ArchiveEnd", "find_end", "first_object", "is_entry", "iter_entries", "map_archive", "map_regular"]

_KEY: Final = re.compile(rb"[ \t\n\r\f\v]*([^ \t\n\r\f\v]*)")
_BINARY: Final = re.compile(rb"[\x21-\x7e\x80-\xfe] (?=\0B|RIFF|RIFX)")
"""The bytes before an object in binary form, and before a wave."""

_TEXT: Final = re.compile(rb"[\x21-\x7e\x80-\xfe] (?=\0B|RIFF|RIFX)|\n" + TOKEN + rb" ")
_KEY_AND_SPACE: Final = re.compile(rb"[ \t\n\r\f\v]*(?:" + TOKEN + rb"[ \t\n]|\Z)")
_NEXT_LINE: Final = re.compile(rb"(?<=\n)[\x21-\x7e\x80-\xfe]+[ \t\n]|\r?\n[\x21-\x7e\x80-\xfe]+[ \t\n]")
_NEXT_BINARY: Final = re.compile(rb"[\x21-\x7e\x80-\xfe]+ (?=\0B|RIFF|RIFX)")
_BEHIND_KEY: Final = b" \t\n"
_LINE_END: Final = ord("\n")
_MORE: Final = b" x"
"""Bytes behind a complete object, which its holder leaves alone."""

_HEAD_BYTES: Final = 4096
_LONGEST_HEAD: Final = 32
"""Where fewer bytes are left, an error can come from a header that was cut."""

_END_OF_FILE: Final = "the end of the file"
"""What errors say that they found where an object was cut."""

_SHOWN_CHARACTERS: Final = 60


@dataclass(frozen=True, slots=True)
class ArchiveEnd:
    """The complete entries of an archive, and what is behind them."""

    starts: array[int]
    """The byte of each object, behind its key and the space."""

    size: int
    """The number of bytes of the complete entries, with white space behind the last one."""

    torn: CorruptObject | None
    """The error of the entry behind them, which is not complete; None if there is none."""


def map_archive(path: str) -> mmap.mmap | bytes:
    """Return the bytes of an archive, mapped into memory.

    Raises:
        DataNotFound, AccessDenied: it cannot be read, or is no regular file.
        UnsupportedFormat: it is compressed.
    """
    data = map_regular(path)
    if coding := coding_of(data[:4]):
        raise UnsupportedFormat(
            f"{path!r} is compressed ({coding}), so no entry is added and no end cut off: decompress it"
        )
    return data


def map_regular(path: str) -> mmap.mmap | bytes:
    """Return the bytes of a regular file, mapped into memory.

    Raises:
        DataNotFound, AccessDenied: it cannot be read, or is no regular file.
    """
    check_local(path)
    if not os.path.isfile(path):
        raise DataNotFound(f"{path!r} is no regular file, so it has no end to look at")
    with open_local(path) as file:
        empty = os.fstat(file.fileno()).st_size == 0
        return b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def is_entry(data: mmap.mmap | bytes, start: int, key: bytes) -> bool:
    r"""Return True if a key and a space stand before a byte of an archive.

    Example:
        >>> is_entry(b"utt1 5 \nutt2 6 \n", 13, b"utt2"), is_entry(b"utt1 5 \n", 4, b"utt1")
        (True, False)
    """
    return start > len(key) and data[start - len(key) - 1 : start - 1] == key and data[start - 1] in b" \t"


def find_end(data: mmap.mmap | bytes, path: str, holder: Holder, *, begin: int = 0) -> ArchiveEnd:
    r"""Skip the entries of an archive, up to its end or to an entry that is not complete.

    Args:
        data: the bytes of the archive.
        path: its name, for messages.
        holder: skips the objects; the last one is read if it has no binary header, because the end of a text
            is less clear.
        begin: the byte of the key to begin with.

    Raises:
        CorruptTable: an entry is damaged, and a good one stands behind it, so that the archive is not torn;
            or the entries are of another holder.

    Example:
        >>> from seekable.formats.kaldi.holders.registry import find_holder
        >>> end = find_end(b"utt1 5 \nutt2 6", "a.ark", find_holder("int32"))
        >>> end.starts.tolist(), end.size, end.torn.key
        ([5], 8, 'utt2')
    """
    starts, size, before = array("q"), begin, begin
    torn: CorruptObject | None = None
    try:
        for _, start, stop in iter_entries(data, path, holder, begin=begin):
            starts.append(start)
            before, size = size, stop
    except CorruptObject as error:
        torn = error
    else:
        if starts and (torn := _torn_text(data[starts[-1] : size], path, holder)):
            start = starts.pop()
            key = decoded(data[before:start].split()[0])
            torn = CorruptObject(path, key, start + torn.offset, torn.expected, torn.found)
            size = before
    if torn is None:
        return ArchiveEnd(starts, len(data), None)
    _refuse_damage(data, holder, torn, size)
    _refuse_other_objects(data, torn, size)
    return ArchiveEnd(starts, size, torn)


def first_object(data: mmap.mmap | bytes, path: str) -> int | None:
    """Return the byte of the first object of an archive, None if not even its key is complete."""
    cursor = MemoryCursor(data, name=path)
    try:
        return None if _key_at(cursor, data, 0) is None else cursor.position
    except CorruptObject:
        return None


def iter_entries(
    data: mmap.mmap | bytes, path: str, holder: Holder, *, begin: int = 0, end: int | None = None
) -> Iterator[tuple[bytes, int, int]]:
    """Yield the key of each entry, the byte of its object, and the byte behind it.

    Args:
        data: the bytes of the archive.
        path: its name, for messages.
        holder: skips the objects.
        begin: the byte of the key to begin with.
        end: the byte behind the last entry; None for the end of the archive.

    Raises:
        CorruptObject: an entry is not complete, or damaged.
    """
    cursor, stop = MemoryCursor(data, name=path, end=end), begin
    end = len(data) if end is None else end
    while stop < end and (key := _key_at(cursor, data, stop)) is not None:
        start = cursor.position
        holder.skip(cursor)
        stop = cursor.position
        yield key, start, stop


def _key_at(cursor: MemoryCursor, data: mmap.mmap | bytes, begin: int) -> bytes | None:
    """Return the key at a byte, and move a cursor behind it; None at the end of the archive."""
    found = _KEY.match(data, begin)
    assert found is not None
    key, end = found[1], found.end()
    cursor.key = None
    cursor.seek(end)
    if not key:
        return None
    cursor.key = decoded(key)
    if not is_token(cursor.key):
        raise cursor.error("a key", repr(cursor.key[:_SHOWN_CHARACTERS]), at=found.start(1))
    if end == len(data) or data[end] not in _BEHIND_KEY:
        raise cursor.error("a space behind the key")
    if data[end] != _LINE_END:
        cursor.seek(end + 1)
    return key


def _torn_text(last: bytes, path: str, holder: Holder) -> CorruptObject | None:
    """Return the error of a last object without a binary header, where it is damaged or goes on.

    A line that was cut is a shorter line, and the holders of lines accept a last one without a line end.
    """
    if last[:1] in {b"", b"\0"}:
        return None
    cursor = MemoryCursor(last + _MORE, name=path)
    try:
        holder.read(cursor)
    except CorruptObject as error:
        if error.offset < len(last):
            return error
    else:
        if cursor.position <= len(last) or b"\0" in last:
            return None
    return CorruptObject(path, None, len(last), "a line end", "the end of the file")


def _refuse_damage(data: mmap.mmap | bytes, holder: Holder, error: CorruptObject, begin: int) -> None:
    """Raise an error if a good entry stands behind the one at a byte, which is not good."""
    is_binary = b"\0" in data[begin : begin + _HEAD_BYTES]
    cursor = MemoryCursor(data, name=error.path)
    found = _KEY.match(data, begin)
    assert found is not None
    for candidate in (_BINARY if is_binary else _TEXT).finditer(data, found.end() + 1):
        cursor.seek(candidate.end())
        try:
            holder.skip(cursor)
        except CorruptObject:
            continue
        if cursor.remaining and not _KEY_AND_SPACE.match(data, cursor.position):
            continue
        raise CorruptTable(
            f"{error}. A good object stands behind it, at byte {candidate.end():,}: it is not the end of the "
            f"archive that is torn, so nothing is cut off. Write the archive again"
        ) from error


def _refuse_other_objects(data: mmap.mmap | bytes, error: CorruptObject, begin: int) -> None:
    """Raise an error if the bytes from the end of the good entries on are no object that was cut.

    An object that was cut goes on to the end of the file. With the holder of other objects an error comes
    early, or a holder that fits reads the first object to its end.
    """
    reason = None
    if begin == 0 and (name := _other_holder(data)):
        reason = f"The first object is one of the holder {name}"
    elif _END_OF_FILE not in error.found:
        found = _KEY.match(data, begin)
        assert found is not None
        is_binary = b"\0" in data[begin : begin + _HEAD_BYTES]
        behind = len(data) - _LONGEST_HEAD
        goes_on = (
            _BINARY.search(data, found.end() + 1, max(0, behind)) is not None
            if is_binary
            else data.find(b"\n", begin) >= 0
        )
        is_early = begin == 0 and error.offset + _LONGEST_HEAD < len(data)
        # A disk that lost its power leaves null bytes.
        if goes_on or (is_early and data[error.offset :].strip(b"\0")):
            reason = "It does not go on to the end of the file, so it was not cut"
    if reason is not None:
        raise CorruptTable(
            f"{error}. {reason}: nothing is cut off. Name the holder of the objects, or write the archive "
            f"again"
        ) from error


def _other_holder(data: mmap.mmap | bytes) -> str | None:
    """Return the name of a holder that reads the first object of an archive to its end; None if none does."""
    cursor = MemoryCursor(data)
    with contextlib.suppress(CorruptObject):
        if _key_at(cursor, data, 0) is None:
            return None
        start = cursor.position
        head = data[start : start + _HEAD_BYTES]
        names, following = candidates_of(head), _NEXT_BINARY if head[:1] in b"\0R" else _NEXT_LINE
        for name in names:
            cursor.seek(start)
            with contextlib.suppress(CorruptObject):
                find_holder(name).skip(cursor)
                if following.match(data, cursor.position) or (
                    len(names) == 1 and not cursor.remaining and cursor.position > start + _LONGEST_HEAD
                ):
                    return name
    return None
