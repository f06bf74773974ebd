"""The ends of archives: found, compared with their scripts, and repaired after a writer was killed.

An end is found by skipping entries one by one. A repair cuts off a torn last entry, and makes the script fit.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import re
from array import array
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

from seekable.errors import CorruptObject, CorruptTable, DataNotFound, InvalidArgument, UnsupportedFormat
from seekable.formats.kaldi.basic_types import TOKEN, decoded, is_token
from seekable.formats.kaldi.cursor import MemoryCursor
from seekable.formats.kaldi.files.local_files import check_local, coding_of, local_errors, open_local
from seekable.formats.kaldi.files.specifiers import (
    check_wxfilename,
    filename_text,
    is_specifier,
    parse_wspecifier,
    split_offset,
    split_range,
)
from seekable.formats.kaldi.holder_detection import candidates_of
from seekable.formats.kaldi.holders.registry import find_holder
from seekable.formats.kaldi.script_lines import key_and_xfilename, line_key
from seekable.storage.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seekable.formats.kaldi.holders.registry import Holder

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
"""Bytes after a complete object, which its holder leaves alone."""

_HEAD_BYTES: Final = 4096
_LONGEST_HEAD: Final = 32
"""Where fewer bytes are left, an error can come from a header that was cut."""

_END_OF_FILE: Final = "the end of the file"
"""What errors say that they found where an object was cut."""

_SHOWN_CHARACTERS: Final = 60
_SHOWN_BYTES: Final = 80
_BINARY_HEAD_BYTES: Final = 64 << 10


@dataclass(frozen=True, slots=True)
class ArchiveEnd:
    """The complete entries of an archive, and what is after them."""

    starts: array[int]
    """The byte of each object, after its key and the space."""

    size: int
    """The number of bytes of the complete entries, with white space after the last one."""

    torn: CorruptObject | None
    """The error of the entry after them, which is not complete; None if there is none."""


def map_archive(path: str) -> mmap.mmap | bytes:
    """Return the bytes of an archive, mapped into memory.

    Raises:
        DataNotFound, AccessDenied: it cannot be read, or is not a regular file.
        UnsupportedFormat: it is compressed.
    """
    data = _map_regular(path)
    if coding := coding_of(data[:4]):
        raise UnsupportedFormat(
            f"{path!r} is compressed ({coding}), so no entry is added and no end cut off: decompress it"
        )
    return data


def _map_regular(path: str) -> mmap.mmap | bytes:
    """Return the bytes of a regular file, mapped into memory.

    Raises:
        DataNotFound, AccessDenied: it cannot be read, or is not a regular file.
    """
    check_local(path)
    if not os.path.isfile(path):
        raise DataNotFound(f"{path!r} is not a regular file, so it has no end to look at")
    with open_local(path) as file:
        empty = os.fstat(file.fileno()).st_size == 0
        return b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _is_entry(data: mmap.mmap | bytes, start: int, key: bytes) -> bool:
    r"""Return True if a key and a space stand before a byte of an archive.

    Example:
        >>> _is_entry(b"utt1 5 \nutt2 6 \n", 13, b"utt2"), _is_entry(b"utt1 5 \n", 4, b"utt1")
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
        CorruptTable: an entry is damaged, and a good one stands after it, so that the archive is not torn;
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
        for _, start, stop in _iter_entries(data, path, holder, begin=begin):
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


def _first_object(data: mmap.mmap | bytes, path: str) -> int | None:
    """Return the byte of the first object of an archive, None if not even its key is complete."""
    cursor = MemoryCursor(data, name=path)
    try:
        return None if _key_at(cursor, data, 0) is None else cursor.position
    except CorruptObject:
        return None


def _iter_entries(
    data: mmap.mmap | bytes, path: str, holder: Holder, *, begin: int = 0, end: int | None = None
) -> Iterator[tuple[bytes, int, int]]:
    """Yield the key of each entry, the byte of its object, and the byte after it.

    Args:
        data: the bytes of the archive.
        path: its name, for messages.
        holder: skips the objects.
        begin: the byte of the key to begin with.
        end: the byte after the last entry; None for the end of the archive.

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
    """Return the key at a byte, and move a cursor after it; None at the end of the archive."""
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
        raise cursor.error("a space after the key")
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
    """Raise an error if a good entry stands after the one at a byte, which is not good."""
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
            f"{error}. A good object stands after it, at byte {candidate.end():,}: it is not the end of the "
            f"archive that is torn, so nothing is cut off. Write the archive again"
        ) from error


def _refuse_other_objects(data: mmap.mmap | bytes, error: CorruptObject, begin: int) -> None:
    """Raise an error unless the bytes after the good entries are an object that was cut.

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


class _OffsetLine(NamedTuple):
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
    """The script of an archive: its lines have offsets into the archive."""

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
            self.data = _map_regular(path)
        self._found = self.data
        self._archive = archive
        self._bytes = data
        self._is_archive = {archive: True}

    @property
    def is_changed(self) -> bool:
        """True if the script has other bytes than were read."""
        return self.data is not self._found and self.data != bytes(self._found)

    def last(self) -> _OffsetLine | None:
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
                if not _is_entry(self._bytes, line.offset, line.key):
                    raise self._stray(self.data[start:stop])
                return line
            stop = start
        return None

    def _check_unended(self) -> None:
        """Raise an error for a last line without a line end, unless it points at an entry."""
        text = self.data[self.data.rfind(b"\n") + 1 :]
        line = self._parse(text) if line_key(text) else None
        if line is None or not _is_entry(self._bytes, line.offset, line.key):
            raise CorruptTable(
                f"{self.path!r} ends with a torn line ({self._shown(text)}), after which none is written: "
                f"kaldi.repair({self._archive!r}, HOLDER, script={self.path!r}) drops it"
            )

    def fit(self, end: ArchiveEnd) -> tuple[int, _OffsetLine | None]:
        """Drop the lines of entries that are not complete, and a torn last line.

        Args:
            end: the entries of the archive.

        Returns:
            The number of lines that are dropped, and the line of the last entry that has one.

        Raises:
            CorruptTable: a line points into the complete entries, and at none of its key; or it is not a line
                of a script.
        """
        lines = bytes(self.data).split(b"\n")
        count, rest = len(lines), lines.pop()
        if not rest:
            count -= 1
        elif not self._is_torn(rest, end):
            lines.append(rest)
        kept: list[bytes] = []
        farthest: _OffsetLine | None = None
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

    def _points_at_entry(self, line: _OffsetLine, end: ArchiveEnd) -> bool:
        place = bisect_left(end.starts, line.offset)
        is_start = place < len(end.starts) and end.starts[place] == line.offset
        return is_start and _is_entry(self._bytes, line.offset, line.key)

    def _is_torn(self, text: bytes, end: ArchiveEnd) -> bool:
        """Return True if a last line without a line end is less than a line."""
        try:
            line = self._parse(text)
        except CorruptTable:
            return True
        if line is not None:
            return not self._points_at_entry(line, end)
        path = split_offset(split_range(decoded(text.split(None, 1)[1]))[0])[0]
        return self._names_archive(path) or not (path.endswith("|") or os.path.exists(path))

    def _parse(self, text: bytes) -> _OffsetLine | None:
        """Return what a line points at, None if that is not in the archive."""
        fields = key_and_xfilename(text)
        if fields is None:
            raise CorruptTable(
                f"{self.path!r}: {self._shown(text)} is not a line of a script, which has '<key> "
                f"<filename>': write the script again"
            )
        name = split_range(decoded(fields[1]))[0]
        path, offset = split_offset(name)
        if path == name or not self._names_archive(path):
            return None
        return _OffsetLine(fields[0], path, offset)

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
        return repr(text[:_SHOWN_BYTES]) + ("..." if len(text) > _SHOWN_BYTES else "")


@dataclass(frozen=True, slots=True)
class Repair:
    """The report of a repair of an archive."""

    path: str
    """The path of the archive."""

    entries: int
    """The number of entries that are kept: all complete ones."""

    size: int
    """The number of bytes of the archive that are kept."""

    bytes_cut: int
    """The number of bytes that are cut off; 0 for an archive that is not torn."""

    torn_key: str | None
    """The key of the torn entry; None if there is none, or if its key is torn too."""

    reason: str | None
    """The error at the torn entry; None if there is none."""

    lines_dropped: int
    """The number of lines of the script that are dropped: their entries are cut off, or they are torn."""

    lines_added: int
    """The number of lines that are added to the script, for entries that were written without a line."""

    dry_run: bool
    """True if nothing was changed."""

    @property
    def changed(self) -> bool:
        """True if the archive or its script was torn (and, without ``dry_run``, was changed)."""
        return bool(self.bytes_cut or self.lines_dropped or self.lines_added)


def repair(
    path: str | os.PathLike[str],
    holder: object = None,
    *,
    script: str | os.PathLike[str] | None = None,
    dry_run: bool = False,
    **options: Any,
) -> Repair:
    r"""Cut off the torn end that a killed writer leaves, so that the archive ends with a complete entry.

    All entries are skipped by their headers, which is fast for binary objects. Complete entries are kept. An
    archive that is damaged in another place than its end is refused. The script is replaced atomically, then
    the archive is cut in one step; both are synced to disk. Nobody may write the archive meanwhile.

    Args:
        path: the archive, a regular file that is not compressed; or the wspecifier by which it was written,
            such as ``ark,scp:out.ark,out.scp``, which names the script too.
        holder: the name of a holder such as ``"matrix"``, a holder, or a class with Read and Write; None to
            find it from the first entry, which is possible where its bytes fit one holder alone.
        script: the script that was written with the archive, if there is one. Lines of entries that are gone
            and a torn last line are dropped; entries after those of the last line get their lines. Lines of
            other archives stay.
        dry_run: True to change nothing, and return the same report.
        options: fields of the holder.

    Raises:
        CorruptTable: the archive is damaged, and a good entry stands after the damage; or its objects are of
            another holder, or do not go on to the end of the file; or a line of the script points at no entry
            of its key. Nothing is changed.
        InvalidArgument: a path is not a file; the holder lacks an option, or cannot be found.
        DataNotFound, AccessDenied: a file cannot be read, or is not a regular file.
        UnsupportedFormat: the archive is compressed.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     _ = file.write(b"utt1 5 \nutt2 6 \nutt3 12"), file.flush()
        ...     report = repair(file.name, "int32")
        ...     file.seek(0), file.read()
        (0, b'utt1 5 \nutt2 6 \n')
        >>> report.entries, report.bytes_cut, report.torn_key
        (2, 7, 'utt3')
    """
    archive, script = _files(path, script)
    data = map_archive(archive)
    found = find_holder(_found_holder(data, archive) if holder is None else holder, **options)
    end = find_end(data, archive, found)
    lines, dropped, added = None, 0, 0
    if script is not None:
        lines = OffsetLines(script, archive, data)
        dropped, last = lines.fit(end)
        begin = 0 if last is None else last.offset - len(last.key) - 1
        entries = _iter_entries(data, archive, found, begin=begin, end=end.size)
        unnamed = [(key, start) for key, start, _ in entries if last is None or start > last.offset]
        added = lines.add(unnamed, archive if last is None else last.path)
    report = Repair(
        path=archive,
        entries=len(end.starts),
        size=end.size,
        bytes_cut=len(data) - end.size,
        torn_key=end.torn.key if end.torn else None,
        reason=str(end.torn) if end.torn else None,
        lines_dropped=dropped,
        lines_added=added,
        dry_run=dry_run,
    )
    if not dry_run:
        if lines is not None and lines.is_changed:
            write_atomically(os.path.realpath(lines.path), bytes(lines.data))
        _cut(archive, end, len(data))
    return report


def _files(path: str | os.PathLike[str], script: str | os.PathLike[str] | None) -> tuple[str, str | None]:
    """Return the path of the archive, and that of the script."""
    text = filename_text(path)
    if script is None and is_specifier(text):
        specifier = parse_wspecifier(text)
        if specifier.archive_wxfilename is None:
            raise InvalidArgument(f"{text!r} names no archive, and only archives are cut: write ark:FILE")
        text, script = specifier.archive_wxfilename, specifier.script_wxfilename
    return _checked_file("path", text), None if script is None else _checked_file("script", script)


def _found_holder(data: mmap.mmap | bytes, path: str) -> str:
    """Return the holder name for the first object; for an archive without one, any name."""
    start = _first_object(data, path)
    names = ("matrix",) if start is None else candidates_of(data[start : start + _BINARY_HEAD_BYTES])
    if len(names) != 1:
        shown = f"it can be one of {', '.join(names)}" if names else "no holder is known by them"
        raise InvalidArgument(
            f"the first bytes of {path!r} do not tell its holder: {shown}. Name it: holder="
        )
    return names[0]


def _checked_file(name: str, path: str | os.PathLike[str]) -> str:
    text = filename_text(path)
    if check_wxfilename(text) != "file":
        raise InvalidArgument(f"{name} must be a file (got {text!r})")
    return text


def _cut(path: str, end: ArchiveEnd, size: int) -> None:
    """Cut off what is after the complete entries, and sync the file to disk."""
    if end.size == size:
        return
    with local_errors(path, writing=True):
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.ftruncate(descriptor, end.size)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
