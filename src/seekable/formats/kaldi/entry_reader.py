"""The entries of archives and scripts: their bytes become a key and an object.

Some of the files that lines of scripts name stay open, and local ones are mapped. Objects in stores are
fetched for many lines at once.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
import stat
import weakref
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from seekable._lazy import lazy
from seekable.errors import (
    AccessDenied,
    CorruptObject,
    CorruptTable,
    DataNotFound,
    IndexStale,
    InvalidArgument,
    SeekableError,
)
from seekable.formats.kaldi.basic_types import TOKEN_AND_SPACE, decoded, encoded
from seekable.formats.kaldi.cursor import BufferedCursor, FileCursor, MemoryCursor
from seekable.formats.kaldi.files.local_files import coding_by_name, local_errors, missing_error
from seekable.formats.kaldi.files.open_named import open_named
from seekable.formats.kaldi.files.store_files import GrowingRanges, check_named, is_stored, mounted_beside
from seekable.formats.kaldi.holders.registry import SupportsExtent, SupportsRange
from seekable.formats.kaldi.script_lines import line_key, parse_line
from seekable.nodes.graph import FileRanges
from seekable.storage.access import chosen_cache
from seekable.storage.far import far
from seekable.storage.mapped import MappedFile, OpenFiles, next_use
from seekable.storage.memory import DiskActivity, disk_reads
from seekable.storage.trust import named_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from seekable.formats.kaldi.cursor import Cursor
    from seekable.formats.kaldi.files.pipes import Pipes
    from seekable.formats.kaldi.holders.registry import Holder
    from seekable.formats.kaldi.script_lines import ScriptLine
    from seekable.storage import addresses
    from seekable.storage.access import CacheChoice
    from seekable.storage.far import Look
    from seekable.storage.mapped import View
else:
    addresses = lazy("seekable.storage.addresses")

_MOST_ATTEMPTS = 3
_MOST_KNOWN = 4096

_FIRST_BYTES = 64 << 10
_MOST_BYTES = 8 << 20
"""The fewest and the most bytes that are fetched of an object of a store before its size is known."""

_Wanted = Literal["object", "key", "shape"]
"""The part of an entry that is read besides its key: the object, nothing, or the shape of the object."""

ENTRY = re.compile(TOKEN_AND_SPACE)
"""The start of an entry of an archive: its key and the space after it; a newline is the object's."""

_KEY_BYTES = 512
"""The bytes of an entry of an archive that are read first for its key; longer keys are rare."""

_LINES_AT_ONCE = 1 << 16
_SHOWN_BYTES = 24
_HEAD_BYTES = 1 << 12
_REST_BYTES = 64 << 10
_COMPRESSED = (b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd")
_SPACES = b" \t\n"


class ObjectFiles:
    """Files by path or address, a bounded number open at once. Safe from threads and after fork.

    A local file that was changed since it was opened is opened again. A pickle has the arguments alone.
    """

    def __init__(self, most: int, beside: str = "", cache: CacheChoice | None = None) -> None:
        """Begin without an open file.

        Args:
            most: the most files that are open at once.
            beside: the address of the script in a store, whose options other files of stores have too; empty
                for a local one.
            cache: the cache on disk of files of stores; None for that of the dataset that is being opened.
        """
        self._most = most
        self._beside = beside
        self._cache = cache or chosen_cache()
        self._files = OpenFiles(most)
        self._known: dict[str, weakref.ref[MappedFile]] = {}
        self._number: Callable[[], int] = itertools.count().__next__
        self._ahead_bytes = _FIRST_BYTES

    def __reduce__(self) -> tuple[Any, ...]:
        return ObjectFiles, (self._most, self._beside, self._cache)

    def mapped(self, path: str) -> MappedFile | None:
        """Return a regular file, mapped as it is now; None for a file that can only be read forward.

        Of a file of a store nothing is read; it is an `ObjectFile`, of the version that is there now.

        Args:
            path: the absolute path of the file, or its address in a store.

        Raises:
            DataNotFound: there is no such file.
            AccessDenied: this user may not read it.
            IndexStale: the file changes while it is opened, each time again.
        """
        known = self._known.get(path)
        mapped = known() if known else None
        if mapped is not None:
            try:
                mapped.check()
            except IndexStale:
                self._known.pop(path, None)
            else:
                mapped.last_use = next_use()
                return mapped
        return self._opened(path)

    def stored(self, names: Iterable[str]) -> dict[str, MappedFile]:
        """Return the files in stores that can be read, by address; nothing is read yet.

        Raises:
            Unreachable: a store does not answer.
        """
        found: dict[str, MappedFile] = {}
        missing: dict[str, list[tuple[str, str]]] = {}
        for path in names:
            known = self._known.get(path)
            mapped = known() if known else None
            if mapped is not None:
                found[path] = mapped
                continue
            stored = mounted_beside(path, self._beside) if self._beside else path
            missing.setdefault(addresses.parse(stored).mount, []).append((path, stored))
        for some in missing.values():
            with suppress(AccessDenied):
                for (path, stored), each in zip(
                    some, far().look_each([name for _, name in some]), strict=True
                ):
                    if each is not None:
                        found[path] = self._kept(path, partial(self._stored, stored, each))
        return found

    def first_bytes(self, *, whole: bool) -> int:
        """Return how many bytes to fetch before the size of an object in a store is known.

        Args:
            whole: True for an object that is all of a file.
        """
        return _MOST_BYTES if whole else self._ahead_bytes

    def note(self, size: int) -> None:
        """Note the size of an object that was read from the middle of a file in a store."""
        while self._ahead_bytes < min(size, _MOST_BYTES):
            self._ahead_bytes *= 2

    def forget(self, path: str) -> None:
        """Open a file again when it is used next."""
        self._known.pop(path, None)

    def close(self) -> None:
        """Close all files; a file that is read again is opened again."""
        self._known.clear()
        self._files.close()

    def _opened(self, path: str) -> MappedFile | None:
        if "://" in path:
            stored = mounted_beside(path, self._beside) if self._beside else path
            return self._kept(path, partial(self._stored, stored, far().look(stored)))
        for attempt in range(_MOST_ATTEMPTS):
            with local_errors(path, writing=False):
                status = os.stat(path)
            if stat.S_ISDIR(status.st_mode):
                raise missing_error(path)
            if not stat.S_ISREG(status.st_mode):
                return None
            make = partial(MappedFile, path, size=status.st_size, mtime_ns=status.st_mtime_ns)
            try:
                return self._kept(path, make)
            except IndexStale:
                if attempt == _MOST_ATTEMPTS - 1:
                    raise
        raise AssertionError

    def _stored(self, path: str, look: Look) -> MappedFile:
        return far().reads.open(path, look, cache=self._cache)

    def _kept(self, path: str, make: Callable[[], MappedFile]) -> MappedFile:
        # A file that was changed gets a new number: the old one stays open until it is the oldest.
        mapped = self._files.open(self._number(), make)
        if len(self._known) >= _MOST_KNOWN:
            self._known = {name: known for name, known in list(self._known.items()) if known()}
        self._known[path] = weakref.ref(mapped)
        return mapped


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

    wanted: _Wanted = "object"

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
        if self.wanted == "shape":
            return self.holder.shape(cursor)
        value = self.holder.read(cursor)
        return value if getattr(self.holder, "has_no_arrays", False) else _owned(value)

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
        """Return an object from a file in a store, in the version that was there when it was used first."""
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
        """Return the object at the start of a file that is read forward, or of a command's output.

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
        return _owned(holder.read_range(cursor, line.part))


def _owned(value: Any) -> Any:
    r"""Return an object whose arrays have memory of their own, where they are views of a file.

    Example:
        >>> view = np.frombuffer(b"\0" * 8, np.float32)
        >>> _owned(view).flags.writeable, _owned([1, "a"])
        (True, [1, 'a'])
    """
    if isinstance(value, np.ndarray):
        return value if _has_own_memory(value) else np.array(value)
    if isinstance(value, memoryview):
        return bytes(value)
    if isinstance(value, list) and value and isinstance(value[0], np.ndarray | tuple | list):
        return [_owned(each) for each in value]
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(_owned(each) for each in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = {
            field.name: own
            for field in dataclasses.fields(value)
            if (own := _owned(getattr(value, field.name))) is not getattr(value, field.name)
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
    key = encoded(line.key)
    before = bytes(view[max(line.offset - len(key) - 1, 0) : line.offset])
    return before, before[:-1] == key and before[-1:] in _SPACES


def _extent(holder: Holder, cursor: MemoryCursor) -> tuple[int, int]:
    """Return the first of the bytes that a holder reads, and the byte after the last one."""
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
        ends: the byte after each entry.
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


def fetch_named(reader: EntryReader, lines: Iterable[bytes]) -> list[object]:
    """Fetch the first bytes of the objects that lines name, as many as objects had so far.

    Lines that name no file of a store, or none that can be read, are left out: their reader finds out.

    Args:
        reader: the reader of the lines.
        lines: the lines.

    Returns:
        What keeps the bytes in memory; nothing if no line names a file of a store.

    Raises:
        Unreachable: a store does not answer.
    """
    places: dict[str, list[tuple[int, int]]] = {}
    for line in lines:
        with suppress(SeekableError):
            found = parse_line(line)
            path = reader.path_of(found) if found.kind in {"file", "offset"} else ""
            if is_stored(path) and not coding_by_name(path):
                count = reader.files.first_bytes(whole=found.kind == "file")
                places.setdefault(path, []).append((found.offset, count))
    if not places:
        return []
    files = reader.files.stored(places)
    parts = []
    for path, stored in files.items():
        starts, counts = np.array(places[path], np.int64).T
        starts = np.minimum(starts, stored.size)
        stops = np.minimum(starts + counts, stored.size)
        parts.append(FileRanges.of(_OneFile(stored), np.zeros_like(starts), starts, stops))
    kept: list[object] = [files]
    with suppress(IndexStale, DataNotFound, AccessDenied):
        kept.append(far().reads.fetched(parts))
    return kept


@dataclass(frozen=True, slots=True)
class _OneFile:
    """A file whose number is 0."""

    file: MappedFile

    def mapped(self, _: int, /) -> MappedFile:
        return self.file

    def path(self, _: int, /) -> str:
        return self.file.path
