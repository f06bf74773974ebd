"""EntryReader of archives and of scripts: from the bytes of one to a pair of its key and its object."""

from __future__ import annotations

import dataclasses
import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from seekable.errors import CorruptObject, CorruptTable, DataNotFound, IndexStale, InvalidArgument
from seekable.formats.kaldi.files.local_files import coding_by_name, missing_error
from seekable.formats.kaldi.files.opening import open_named
from seekable.formats.kaldi.files.stored_file import GrowingRanges, check_named, is_stored
from seekable.formats.kaldi.holders.holder import SupportsExtent, SupportsRange
from seekable.formats.kaldi.objects.buffered_cursor import BufferedCursor
from seekable.formats.kaldi.objects.cursor import MemoryCursor
from seekable.formats.kaldi.objects.file_cursor import FileCursor
from seekable.formats.kaldi.objects.tokens import TOKEN_AND_SPACE, decoded
from seekable.formats.kaldi.script_lines import line_key, parse_line
from seekable.storage.memory import DiskActivity, disk_reads
from seekable.storage.trust import named_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from seekable.formats.kaldi.files.pipes import Pipes
    from seekable.formats.kaldi.holders.holder import Holder
    from seekable.formats.kaldi.object_files import ObjectFiles
    from seekable.formats.kaldi.objects.cursor import Cursor
    from seekable.formats.kaldi.script_lines import ScriptLine
    from seekable.storage.mapped import MappedFile, View

__all__ = ["ENTRY", "EntryReader", "Wanted", "entry_keys", "owned"]

Wanted = Literal["object", "key", "shape"]
"""The part of an entry that is read besides its key: the object, nothing, or the shape of the object."""

ENTRY = re.compile(TOKEN_AND_SPACE)
"""The start of an entry of an archive: its key and the space behind it; a newline is the object's."""

_KEY_BYTES = 512
"""The bytes of an entry of an archive that are read first for its key; longer keys are rare."""

_LINES_AT_ONCE = 1 << 16
_SHOWN_BYTES = 24
_HEAD_BYTES = 1 << 12
_REST_BYTES = 64 << 10
_COMPRESSED = (b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd")
_SPACES = b" \t\n"


@dataclass(frozen=True, slots=True, eq=False)
class EntryReader:
    """A reader of the entries of a table. Small, picklable if its holder is, and safe from threads."""

    kind: Literal["ark", "scp"]
    """``"ark"`` for entries of an archive, ``"scp"`` for lines of a script."""

    holder: Holder

    pipes: Pipes
    """``"allow"`` runs the commands of lines."""

    permissive: bool
    """True if entries that cannot be read become holes, with a warning."""

    files: ObjectFiles
    """The files that lines name."""

    wanted: Wanted = "object"

    script_ns: int | None = None
    """The time at which the newest script was modified, in nanoseconds; None if it is not known."""

    below: tuple[str, ...] = ()
    """The addresses of the folders of scripts in stores, whose lines name only files below these; empty for
    scripts of this machine, whose lines name any file."""

    allow: tuple[str, ...] = ()
    """The folders and files that lines of scripts in stores may name besides."""

    folder: str | None = None
    """The folder of the script, or its address in a store, in which files are looked for that the current
    folder lacks; None if it is not known."""

    @property
    def read(self) -> Callable[[memoryview], Any]:
        """The function that returns the entry whose bytes are given: a pair, or the key alone."""
        return self._of_archive if self.kind == "ark" else self._of_line

    def _of_archive(self, view: memoryview) -> Any:
        found = ENTRY.match(view)
        if found is None:
            raise CorruptObject("", None, 0, "a key and a space", repr(bytes(view[:_SHOWN_BYTES])))
        key = decoded(found[1])
        if self.wanted == "key":
            return key
        cursor = MemoryCursor(view, name="", key=key, position=found.end())
        value = self._value(cursor)
        if (rest := bytes(view[cursor.position : cursor.position + _SHOWN_BYTES])).strip():
            raise cursor.error("the end of the entry", repr(rest))
        return key, value

    def is_whole(self, entry: memoryview) -> bool:
        """Return True if an entry of an archive is a key and an object, as far as its end can be found.

        The last entry of a damaged archive is not: it has all bytes from the damage on.
        """
        found = ENTRY.match(entry)
        if found is None:
            return False
        cursor = MemoryCursor(entry, name="", key=None, position=found.end())
        try:
            self.holder.skip(cursor)
        except CorruptTable:
            return False
        return not bytes(entry[cursor.position :]).strip()

    def _value(self, cursor: Cursor) -> Any:
        return self.holder.shape(cursor) if self.wanted == "shape" else owned(self.holder.read(cursor))

    def _of_line(self, view: memoryview) -> Any:
        text = bytes(view)
        if self.wanted == "key" and (key := line_key(text)):
            return decoded(key)
        line = parse_line(text)
        if line.kind in {"file", "offset"}:
            path = self.path_of(line)
            if is_stored(path):
                return line.key, self._of_store(line, path)
            mapped = None if "://" in path else self.files.mapped(path)
            if mapped is not None and not mapped.view[:4].tobytes().startswith(_COMPRESSED):
                return line.key, self._of_map(line, mapped)
            return line.key, self._of_stream(line, f"{path}:{line.offset}" if line.kind == "offset" else path)
        if line.kind == "stdin":
            message = "the line names standard input, which cannot be read again: name a file"
            raise InvalidArgument(message)
        if self.pipes != "allow":
            check_named(line.rxfilename, self.below, self.allow)
        return line.key, self._of_stream(line, line.rxfilename)

    def path_of(self, line: ScriptLine) -> str:
        """Return the address or the absolute path of a file: below the current folder, else the script's.

        In a store it is not looked if the file is there; its reader does so.

        Raises:
            DataNotFound: the folder of the script is known, and a relative path leads to a file in neither.
            UnsupportedFormat: the script is in a store, and the file is not below its folder.
        """
        path = line.path
        check_named(path, self.below, self.allow)
        if path.startswith("/") or "://" in path:
            return path
        if self.below and self.folder is not None:
            return named_path(path, self.folder)
        here = os.path.join(os.getcwd(), path)
        if self.folder is None or os.path.exists(here):
            return here
        there = os.path.join(self.folder, path)
        if "://" not in there and not os.path.exists(there):
            message = (
                f"{missing_error(here)}, and the folder of the script, {self.folder!r}, does not have it "
                f"either; paths in scripts begin at the current folder, or else at that of the script"
            )
            raise DataNotFound(message)
        return there

    def _of_map(self, line: ScriptLine, mapped: MappedFile) -> Any:
        if line.offset > mapped.size:
            raise CorruptObject(
                mapped.path, line.key, line.offset, "an object", f"the end of the file at byte {mapped.size}"
            )
        view = mapped.view[:]
        if line.offset and self.script_ns is not None and mapped.mtime_ns > self.script_ns:
            _check_key(line, mapped.path, view)
        cursor = MemoryCursor(view, name=mapped.path, key=line.key, position=line.offset)
        activity = mapped.reader
        if activity is None:
            activity = mapped.reader = DiskActivity()
        before = disk_reads()
        try:
            if activity.may_wait and line.part is None and self.wanted == "object":
                mapped.advise(*_extent(self.holder, cursor))
                cursor.seek(line.offset)
            return self._part(line, cursor)
        except CorruptObject as error:
            if hint := _misplaced(line, mapped):
                raise CorruptTable(f"{error}. {hint}") from error
            raise
        finally:
            activity.note(disk_reads() - before)

    def _of_store(self, line: ScriptLine, path: str) -> Any:
        try:
            return self._of_version(line, path)
        except IndexStale:
            self.files.forget(path)
            return self._of_version(line, path)

    def _of_version(self, line: ScriptLine, path: str) -> Any:
        """Return the object of a file of a store, of the version that was there when it was used first."""
        stored = self.files.mapped(path)
        assert stored is not None  # A file of a store can always be read anywhere.
        first_bytes = self.files.first_bytes(whole=line.kind == "file")
        ranges = GrowingRanges(stored.source, first_bytes=first_bytes)
        if coding_by_name(path) if line.offset else ranges.coding(path):
            return self._of_stream(line, f"{path}:{line.offset}" if line.kind == "offset" else path)
        if line.offset > stored.size:
            found = f"the end of the file at byte {stored.size}"
            raise CorruptObject(stored.name, line.key, line.offset, "an object", found)
        cursor = BufferedCursor(
            ranges, name=stored.name, key=line.key, position=line.offset, size=stored.size
        )
        try:
            found = self._part(line, cursor)
        except CorruptObject as error:
            if hint := _misplaced(line, stored):
                raise CorruptTable(f"{error}. {hint}") from error
            raise
        self.files.note(cursor.position - line.offset)
        return found

    def _of_stream(self, line: ScriptLine, rxfilename: str) -> Any:
        """Return the object at the start of a file that is read forward, or of the output of a command.

        Raises:
            PipeFailed: the command failed, maybe before it had written all of the object.
        """
        with open_named(rxfilename, pipes=self.pipes) as file:
            try:
                return self._part(line, FileCursor(file, name=line.rxfilename, key=line.key))
            finally:
                if line.kind == "pipe":
                    file.read(_REST_BYTES)  # At the end of its output, a command says if it failed.
                    file.close()

    def _part(self, line: ScriptLine, cursor: Cursor) -> Any:
        if line.part is None:
            return self._value(cursor)
        holder = self.holder
        if not isinstance(holder, SupportsRange):
            message = f"objects of the holder {holder.name!r} have no ranges (got {line.part.text})"
            raise InvalidArgument(message)
        if self.wanted == "shape":
            return np.shape(holder.read_range(cursor, line.part))
        return owned(holder.read_range(cursor, line.part))


def owned(value: Any) -> Any:
    r"""Return an object whose arrays have memory of their own, where they are views of a file.

    Example:
        >>> view = np.frombuffer(b"\0" * 8, np.float32)
        >>> owned(view).flags.writeable, owned([1, "a"])
        (True, [1, 'a'])
    """
    if isinstance(value, np.ndarray):
        return value if _has_own_memory(value) else np.array(value)
    if isinstance(value, memoryview):
        return bytes(value)
    if isinstance(value, list) and value and isinstance(value[0], np.ndarray | tuple | list):
        return [owned(each) for each in value]
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(owned(each) for each in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = {
            field.name: own
            for field in dataclasses.fields(value)
            if (own := owned(getattr(value, field.name))) is not getattr(value, field.name)
        }
        return replace(value, **changed) if changed else value
    return value


def _has_own_memory(array: NDArray[Any]) -> bool:
    if not array.flags.writeable:
        return False
    base: object = array
    while isinstance(base, np.ndarray):
        if base.flags.owndata:
            return True
        base = base.base
    return isinstance(base, bytearray)


def _before(line: ScriptLine, view: View) -> tuple[bytes, bool]:
    """Return the bytes before an offset, as many as the key and a space have, and whether they are those."""
    key = line.key.encode("utf-8", "surrogateescape")
    before = bytes(view[max(line.offset - len(key) - 1, 0) : line.offset])
    return before, before[:-1] == key and before[-1:] in _SPACES


def _extent(holder: Holder, cursor: MemoryCursor) -> tuple[int, int]:
    """Return the first of the bytes that a holder reads, and the byte behind the last one."""
    if isinstance(holder, SupportsExtent):
        return holder.extent(cursor)
    start = cursor.position
    holder.skip(cursor)
    return start, cursor.position


def _check_key(line: ScriptLine, path: str, view: memoryview) -> None:
    """Check that an object of an archive that is newer than the script is still that of its key.

    Raises:
        CorruptTable: another key stands before the object.
    """
    before, is_key = _before(line, view)
    if not is_key:
        message = (
            f"{path} (key {line.key!r}): before byte {line.offset} expected the key, found {before!r}, and "
            f"the archive is newer than the script: it was written again, and this may be another object. "
            f"Write the script again; if its keys were renamed on purpose, `touch` it"
        )
        raise CorruptTable(message)


def _misplaced(line: ScriptLine, mapped: MappedFile) -> str:
    """Return why no object is at an offset, as far as the bytes around it say so; else an empty text."""
    if not line.offset:
        head = bytes(mapped.view[:_HEAD_BYTES])
        found = ENTRY.match(head)
        if line.kind == "file" and found and head[found.end() : found.end() + 2] == b"\0B":
            return "The file is an archive: the line must name the offset of the entry, PATH:OFFSET"
        return ""
    before, is_key = _before(line, mapped.view)
    if is_key:
        return ""
    return (
        f"Before the offset stands {before!r} and not the key: the archive was changed after the script was "
        f"written; write both again"
    )


def entry_keys(
    kind: Literal["ark", "scp"], view: View, starts: NDArray[np.uint64], ends: NDArray[np.uint64]
) -> list[bytes]:
    """Return the keys of some entries of one file; an empty key stands for an entry that has none.

    Args:
        kind: ``"ark"`` for an archive, ``"scp"`` for the consecutive lines of a script.
        view: the bytes of the file.
        starts: the first byte of each entry.
        ends: the byte behind each entry.
    """
    if kind == "ark":
        pairs = zip(starts.tolist(), ends.tolist(), strict=True)
        return [_archive_key(view, start, end) for start, end in pairs]
    keys: list[bytes] = []
    for first in range(0, len(starts), _LINES_AT_ONCE):
        last = min(first + _LINES_AT_ONCE, len(starts))
        lines = bytes(view[int(starts[first]) : int(ends[last - 1])]).split(b"\n")
        keys += map(line_key, lines[: last - first])
    return keys


def _archive_key(view: View, start: int, end: int) -> bytes:
    found = ENTRY.match(view[start : min(end, start + _KEY_BYTES)]) or ENTRY.match(view[start:end])
    return found[1] if found else b""
