"""The reader of tables by key, and by other keys that a map translates."""

from __future__ import annotations

import copy
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

import numpy as np

from seekable.errors import CorruptTable, ForkUnsafe, InvalidArgument, KeyNotFound
from seekable.formats.kaldi.basic_types import check_token, decoded, encoded
from seekable.formats.kaldi.files.pipes import checked_pipes, pipes_inside
from seekable.formats.kaldi.files.specifiers import UNREADABLE, PermissiveWarnings, parse_rspecifier
from seekable.formats.kaldi.files.store_files import mounted_table, takes_options
from seekable.formats.kaldi.holders.registry import find_holder
from seekable.formats.kaldi.tables.archive import Archive
from seekable.formats.kaldi.tables.key_tables import (
    IndexedTable,
    ScriptTable,
    find_indexed_table,
    load_script,
)
from seekable.formats.kaldi.tables.script_objects import MappedFiles, ScriptObjects

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from seekable.formats.kaldi.files.pipes import Pipes
    from seekable.formats.kaldi.files.specifiers import Rspecifier
    from seekable.formats.kaldi.holders.registry import Holder
    from seekable.formats.kaldi.tables.script_objects import Place

_IMMUTABLE: Final = (int, float, str, bytes)
_MOST_FOUND: Final = 1 << 16
"""The number of lines that are kept after they were found, for the next time."""


@final
class _ArchiveLookup:
    """The entries of an archive by their keys. Safe from threads."""

    def __init__(
        self, specifier: Rspecifier, holder: Holder, warnings: PermissiveWarnings | None, pipes: Pipes
    ) -> None:
        """Open an archive; nothing is read yet.

        Args:
            specifier: the archive and its options.
            holder: reads the objects.
            warnings: takes the errors that option ``p`` makes warnings; None without that option.
            pipes: ``"allow"`` if the archive may be the output of a command.

        Raises:
            InvalidArgument, PipeRefused, DataNotFound, AccessDenied, ...: as in `open_rx`.
        """
        self._name = specifier.rxfilename
        self._is_sorted = specifier.sorted
        self._is_called_sorted = specifier.sorted and specifier.called_sorted
        self._is_once = specifier.once and not self._is_called_sorted
        self._holder = holder
        self._warnings = warnings
        self._archive = Archive(specifier.rxfilename, pipes=pipes)
        self._kept: dict[str, Any] = {}
        """By key: the byte of the object in a file that can seek, the object itself of a stream."""
        self._used: set[str] = set()
        """The keys whose object was given, with option ``o``."""
        self._last: bytes | None = None
        """The key that was read last, with option ``s``."""
        self._checked: bytes | None = None
        """The last key whose next key was compared with it."""
        self._asked = b""
        """The key that was requested last, with options ``s,cs``."""
        self._ahead: int | None = None
        """The byte of the object of the last key, if it was not read or skipped yet."""
        self._behind: int | None = None
        """The byte after the last entry, if its object was read or skipped."""
        self._is_at_end = False
        self._error: BaseException | None = None
        """The error after the last entry that could be read."""
        self._violation: BaseException | None = None
        """The error after a key that breaks the promised order: nothing more can be answered."""
        self._lock = threading.Lock()
        _lookups.add(self)

    def has(self, key: str) -> bool:
        """Return True if the archive has an entry with a key; read up to it.

        Raises:
            CorruptTable, PipeFailed, ...: the archive cannot be read up to it, or is not sorted as option
                ``s`` promises, or has a key twice.
            InvalidArgument: the caller does not keep the promise of option ``o`` or ``cs``.
        """
        check_token("key", key)
        with self._lock:
            self._check_promises(key)
            return self._find(key)

    def value(self, key: str) -> Any:
        """Return the object of a key. Its memory is its own.

        Raises:
            KeyNotFound: the archive has no such key.
            CorruptTable, InvalidArgument, PipeFailed, ...: as in `has`; the object cannot be read.
        """
        check_token("key", key)
        with self._lock:
            self._check_promises(key)
            if not self._find(key):
                raise KeyNotFound(f"{self._name!r} has no entry with the key {key!r}")
            kept = self._kept[key]
            found = self._read_at(kept, key) if self._archive.can_seek else kept
            if self._is_once:
                self._used.add(key)
                del self._kept[key]
                return found
        return found if self._archive.can_seek else _copied(found)

    def _read_at(self, position: int, key: str) -> Any:
        """Return the object at a byte of a file that can seek."""
        self._archive.seek(position)
        self._archive.cursor.key = key
        found = self._archive.read(self._holder)
        if position == self._ahead:
            self._ahead = None
            self._behind = self._archive.cursor.position
        return found

    def _check_promises(self, key: str) -> None:
        if self._violation is not None:
            raise self._violation
        if self._is_once and key in self._used:
            raise InvalidArgument(
                f"the key {key!r} of {self._name!r} was used before, and option o says that each key is used "
                f"once: leave the option out"
            )
        if self._is_called_sorted:
            raw = encoded(key)
            if raw < self._asked:
                raise InvalidArgument(
                    f"the key {key!r} of {self._name!r} was asked for after {decoded(self._asked)!r}, and "
                    f"option cs says that keys are asked for in ascending order: leave the option out"
                )
            self._asked = raw

    def _find(self, key: str) -> bool:
        """Read up to a key; return False if it is not there."""
        if key in self._kept:
            return True
        raw = encoded(key) if self._is_sorted else None
        while not self._is_at_end:
            if raw is not None and self._last is not None and self._last > raw:
                self._check_next()
                return False
            if self._error is not None:
                raise self._error
            if self._read_next() == key:
                return True
        return False

    def _check_next(self) -> None:
        """Raise an error if a lower key follows the last one: then "the key is not there" would be a guess.

        A stream is not looked at: its next entry may come much later.
        """
        if not self._archive.can_seek or self._error is not None or self._checked == self._last:
            return
        try:
            self._go_on()
            self._behind = self._archive.cursor.position
            key = self._archive.next_key()
        except UNREADABLE:
            return  # It is raised, or warned of, by the first question that leads there.
        if key is not None:
            last = self._last
            self._check_order(key)
            self._last = last
        self._checked = self._last

    def _read_next(self) -> str | None:
        """Read one entry and keep it; return its key, None at the end."""
        try:
            self._go_on()
            key = self._archive.next_key()
            kept = None if key is None else self._read_object()
        except UNREADABLE as error:
            if self._warnings is None:
                self._error = error
                raise
            self._warnings.warn(error, "the rest of the archive")
            key = None
        if key is None:
            self._is_at_end = True
            return None
        self._check_order(key)
        if self._is_called_sorted:
            self._kept.clear()
        self._kept[key] = kept
        return key

    def _read_object(self) -> Any:
        if not self._archive.can_seek:
            return self._archive.read(self._holder)
        position = self._archive.cursor.position
        if self._warnings is None:
            self._ahead = position  # It is skipped when the next key is read, unless it is read before.
        else:
            self._archive.read(self._holder)  # An object that cannot be read counts as missing.
            self._behind = self._archive.cursor.position
        return position

    def _go_on(self) -> None:
        """Move after the last entry of a file that can seek; objects may have been read elsewhere since."""
        if self._archive.can_seek and self._ahead is not None:
            self._archive.seek(self._ahead)
            self._archive.skip(self._holder)
            self._ahead = None
        elif self._archive.can_seek and self._behind is not None:
            self._archive.seek(self._behind)

    def _check_order(self, key: str) -> None:
        """Raise an error for a key that was there before, or that follows a higher one with option ``s``."""
        at = f"{self._archive.name!r}, byte {self._archive.cursor.position:,}"
        if self._is_sorted:
            raw, last = encoded(key), self._last
            if last is not None and raw <= last:
                self._violation = CorruptTable(
                    f"{at}: the key {key!r} follows {decoded(last)!r}, and option s says that keys ascend, "
                    f"as with LC_ALL=C sort: sort the archive, or leave the option out"
                )
                raise self._violation
            self._last = raw
        elif key in self._kept or key in self._used:
            self._violation = CorruptTable(
                f"{at}: the key {key!r} is there twice, so it cannot be looked up: make the keys unique, or "
                f"read the archive in its order"
            )
            raise self._violation

    def close(self) -> None:
        """Close the archive, and drop what is kept."""
        self._archive.close()
        self._kept.clear()

    def renew(self) -> None:
        """Take a new lock, in a forked process, whose other threads are gone."""
        if self._lock.locked():
            self._violation = ForkUnsafe(
                f"another thread read {self._name!r} while this process was forked: open the table again here"
            )
        self._lock = threading.Lock()


_lookups: weakref.WeakSet[_ArchiveLookup] = weakref.WeakSet()


def _renew_all() -> None:
    for lookup in _lookups:
        lookup.renew()


os.register_at_fork(after_in_child=_renew_all)


def _copied(value: Any) -> Any:
    """Return a copy of an object, so that a caller who changes it does not change what is kept."""
    if isinstance(value, _IMMUTABLE):
        return value
    return value.copy() if isinstance(value, np.ndarray) else copy.deepcopy(value)


class _Loaded(NamedTuple):
    """An object that `_ScriptLookup.has` has read, for the call of `_ScriptLookup.value` that follows."""

    key: str
    value: Any


@final
class _ScriptLookup:
    """The objects of a table by their keys. Safe from threads, and after a fork."""

    def __init__(
        self,
        name: str,
        table: ScriptTable | IndexedTable,
        objects: ScriptObjects,
        warnings: PermissiveWarnings | None,
    ) -> None:
        """Take a table, and open none of its objects.

        Args:
            name: the extended filename of the table, for messages.
            table: finds the objects.
            objects: reads the objects.
            warnings: takes the errors that option ``p`` makes warnings; None without that option.
        """
        self._name = name
        self._table = table
        self._warnings = warnings
        self._objects = objects
        self._found: dict[str, str | Place] = {}
        self._loaded: _Loaded | None = None

    def has(self, key: str) -> bool:
        """Return True if the table has the key and, with option ``p``, its object can be read.

        Raises:
            WrongType, InvalidArgument: it is not a key.
            CorruptTable: the line of the key was changed.
        """
        found = self._find(key)
        if found is None:
            return False
        if self._warnings is not None:
            try:
                self._loaded = _Loaded(key, self._read(key, found))
            except UNREADABLE as error:
                self._warnings.warn(error, f"the entry {key!r}")
                return False
        return True

    def value(self, key: str) -> Any:
        """Return the object of a key; its arrays may be read-only views of a file.

        Raises:
            KeyNotFound: the table has no such key; or, with option ``p``, its object cannot be read.
            WrongType, InvalidArgument: it is not a key.
            CorruptTable, DataNotFound, PipeFailed, ...: as in `ScriptObjects.read`.
        """
        if self._loaded is not None:
            loaded, self._loaded = self._loaded, None
            if loaded is not None and loaded.key == key:
                return loaded.value
        found = self._find(key)
        if found is None:
            raise KeyNotFound(f"{self._name!r} has no entry with the key {key!r}")
        try:
            return self._read(key, found)
        except UNREADABLE as error:
            if self._warnings is None:
                raise
            self._warnings.warn(error, f"the entry {key!r}")
            message = (
                f"{self._name!r} has no entry with the key {key!r} that can be read, and option p leaves"
            )
            raise KeyNotFound(f"{message} out others: {error}") from error

    def _read(self, key: str, found: str | Place) -> Any:
        return self._objects.read(key, found) if isinstance(found, str) else self._objects.read_at(key, found)

    def _find(self, key: str) -> str | Place | None:
        """Return what a key names: a place of an open file, another extended filename, or None."""
        try:
            return self._found[key]
        except (KeyError, TypeError):
            check_token("key", key)
        xfilename = self._table.find(key)
        if xfilename is None:
            return None
        found = self._objects.place(xfilename) or xfilename
        if len(self._found) >= _MOST_FOUND:
            self._found.clear()
        self._found[key] = found
        return found

    def close(self) -> None:
        """Close all files; objects that were given stay as they are."""
        self._objects.close()
        self._loaded = None


@final
class RandomAccessReader:
    r"""The entries of a table by their keys: ``key in reader`` and ``reader[key]``.

    A script is read when the reader is made. An archive is read forward, up to the wanted key. Threads
    may share a reader, and it works after a fork unless it reads a stream.

    Args:
        rspecifier: the table: ``"scp:feats.scp"``, ``"ark:feats.ark"``, with options. For archives, ``o``
            promises that each key is used once, ``s`` that keys ascend, ``s,cs`` that they are requested in
            ascending order too; the reader then keeps less in memory, and raises an error where a promise is
            broken. For scripts, ``s`` promises that keys ascend. ``p`` takes what cannot be read for missing,
            with a `KaldiWarning`. ``bg`` means nothing here.
        holder: what the table holds: a name such as ``"matrix"``, or a holder.
        pipes: ``"allow"`` if the rspecifier and the lines of the script may be commands; ``"specifier"`` if
            the rspecifier may be one, and the lines may not.
        storage_options: the options of the stores of addresses, as in `open_rx`; also of those in the lines
            of a script.
        holder_options: fields of the holder, as in `find_holder`.

    Raises:
        InvalidArgument: it is not an rspecifier, there is no such holder, or no such option.
        PipeRefused, DataNotFound, AccessDenied, UnsupportedFormat: the table cannot be opened.
        CorruptTable: the script has a bad line, a key twice, or does not keep the promise of option ``s``.
        PipeFailed: the command that prints the script has failed.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     _ = file.write(b"utt1 1 2\nutt2 3\n"), file.flush()
        ...     with RandomAccessReader(f"ark:{file.name}", "int32-vector") as reader:
        ...         reader["utt2"].tolist(), "utt3" in reader
        ([3], False)
    """

    def __init__(
        self,
        rspecifier: str,
        holder: str | Holder | type,
        *,
        pipes: Pipes = "refuse",
        storage_options: Mapping[str, Any] | None = None,
        **holder_options: Any,
    ) -> None:
        specifier = mounted_table(parse_rspecifier(rspecifier), storage_options)
        found, allowed = find_holder(holder, **holder_options), checked_pipes(pipes)
        warnings = PermissiveWarnings(rspecifier) if specifier.permissive else None
        self._rspecifier = rspecifier
        self._lookup: _ArchiveLookup | _ScriptLookup
        table: ScriptTable | IndexedTable | None = find_indexed_table(specifier, found)
        if table is None and specifier.kind == "ark":
            self._lookup = _ArchiveLookup(specifier, found, warnings, allowed)
        else:
            name = specifier.rxfilename
            table = table or load_script(name, is_sorted=specifier.sorted, pipes=allowed)
            objects = ScriptObjects(
                name, found, MappedFiles(), pipes=pipes_inside(allowed), storage_options=storage_options
            )
            self._lookup = _ScriptLookup(name, table, objects, warnings)
        self._is_open = True

    @property
    def is_open(self) -> bool:
        """True until `close` is called."""
        return self._is_open

    def __contains__(self, key: str) -> bool:
        """Return True if the table has an entry with this key.

        Raises:
            WrongType, InvalidArgument: it is not a key; the reader is closed; a promise of an option is
                broken.
            CorruptTable, PipeFailed, ...: an archive cannot be read up to the key.
        """
        if not self._is_open:
            raise self._closed_error()
        return self._lookup.has(key)

    def __getitem__(self, key: str) -> Any:
        """Return the object of a key.

        An array of a script may be a read-only view of its file; ``.copy()`` it to change it. It stays valid
        when the reader is closed, and when the file is removed or replaced by another one. A file must not be
        cut or written anew in place while such views are used: that ends the process, as with every memory
        map. Copies are safe from it.

        Raises:
            KeyNotFound: the table has no entry with this key.
            WrongType, InvalidArgument: it is not a key; the reader is closed; a promise of an option is
                broken; the object does not have the range that a script names.
            CorruptTable, PipeFailed, DataNotFound, ...: the object cannot be read.
        """
        if not self._is_open:
            raise self._closed_error()
        return self._lookup.value(key)

    def _closed_error(self) -> InvalidArgument:
        return InvalidArgument(f"the reader of {self._rspecifier!r} is closed: make a new one")

    def close(self) -> None:
        """Close all files. Objects stay valid. Closing again does nothing."""
        if self._is_open:
            self._is_open = False
            self._lookup.close()

    def __enter__(self) -> RandomAccessReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@final
class MappedReader:
    r"""The entries of a table by other keys, which a map translates: of speakers by their utterances.

    Args:
        table_rspecifier: the table, as in `RandomAccessReader`.
        map_rspecifier: a table of tokens that has the key for each key that is looked up, such as
            ``"ark:data/train/utt2spk"``; empty if no key is translated.
        holder: what the table holds: a name such as ``"matrix"``, or a holder.
        pipes: ``"allow"`` if rspecifiers and the lines of scripts may be commands; ``"specifier"`` if
            rspecifiers may be, and lines may not.
        storage_options: the options of the stores of addresses, as in `open_rx`.
        holder_options: fields of the holder, as in `find_holder`.

    Raises:
        InvalidArgument, DataNotFound, ...: as in `RandomAccessReader`.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as table, tempfile.NamedTemporaryFile() as names:
        ...     _ = table.write(b"spk1 7\n"), table.flush()
        ...     _ = names.write(b"utt1 spk1\nutt2 spk1\n"), names.flush()
        ...     with MappedReader(f"ark:{table.name}", f"ark:{names.name}", "int32") as reader:
        ...         reader["utt1"], reader["utt2"]
        (7, 7)
    """

    def __init__(
        self,
        table_rspecifier: str,
        map_rspecifier: str,
        holder: str | Holder | type,
        *,
        pipes: Pipes = "refuse",
        storage_options: Mapping[str, Any] | None = None,
        **holder_options: Any,
    ) -> None:
        self._map_rspecifier = map_rspecifier
        # The options may be for one of the two alone; where they are for none, the table refuses them.
        is_for_map = bool(map_rspecifier) and takes_options(map_rspecifier)
        is_for_table = takes_options(table_rspecifier) or not is_for_map
        self._table = RandomAccessReader(
            table_rspecifier,
            holder,
            pipes=pipes,
            storage_options=storage_options if is_for_table else None,
            **holder_options,
        )
        self._map: RandomAccessReader | None = None
        if map_rspecifier:
            try:
                self._map = RandomAccessReader(
                    map_rspecifier,
                    "token",
                    pipes=pipes,
                    storage_options=storage_options if is_for_map else None,
                )
            except BaseException:
                self._table.close()
                raise

    @property
    def is_open(self) -> bool:
        """True until `close` is called."""
        return self._table.is_open

    def __contains__(self, key: str) -> bool:
        """Return True if the table has an entry for this key.

        Raises:
            KeyNotFound: the map has no such key.
            InvalidArgument, CorruptTable, ...: as in `RandomAccessReader`.
        """
        return self._translated(key) in self._table

    def __getitem__(self, key: str) -> Any:
        """Return the object for a key; errors and memory as in `RandomAccessReader`.

        Raises:
            KeyNotFound: the map has no such key, or the table none that it is translated to.
        """
        return self._table[self._translated(key)]

    def _translated(self, key: str) -> str:
        if self._map is None:
            return key
        try:
            found: str = self._map[key]
        except KeyNotFound:
            raise KeyNotFound(
                f"the map {self._map_rspecifier!r} has no entry with the key {key!r}, which says nothing of "
                f"the table: complete the map"
            ) from None
        return found

    def close(self) -> None:
        """Close both tables. Objects stay valid. Closing again does nothing."""
        self._table.close()
        if self._map is not None:
            self._map.close()

    def __enter__(self) -> MappedReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
