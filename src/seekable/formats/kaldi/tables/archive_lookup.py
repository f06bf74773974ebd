"""Archives, read by key: forward up to the key, and in no more memory than the options need.

=============  ==========================================  =======================================
options        what is kept                                a key that is not there
=============  ==========================================  =======================================
none, ``cs``   every entry that was read                   is looked for up to the end
``o``          entries that were read and not used yet     is looked for up to the end
``s``          every entry that was read                   is looked for up to the next higher key
``s,o``        entries that were read and not used yet     is looked for up to the next higher key
``s,cs``       the present entry                           is looked for up to the next higher key
=============  ==========================================  =======================================

Of a local file that is not compressed an entry is kept as its place in the file, of a stream as its object.
"""

from __future__ import annotations

import copy
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from seekable.errors import CorruptTable, ForkUnsafe, InvalidArgument, KeyNotFound
from seekable.formats.kaldi.objects.tokens import check_token, decoded
from seekable.formats.kaldi.tables.archive import Archive
from seekable.formats.kaldi.tables.permissive import UNREADABLE

if TYPE_CHECKING:
    from seekable.formats.kaldi.files.pipes import Pipes
    from seekable.formats.kaldi.files.specifiers import Rspecifier
    from seekable.formats.kaldi.holders.holder import Holder
    from seekable.formats.kaldi.tables.permissive import PermissiveWarnings

__all__ = ["ArchiveLookup"]

_IMMUTABLE: Final = (int, float, str, bytes)


@final
class ArchiveLookup:
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
        """The key that was the last one when the key behind it was looked at."""
        self._asked = b""
        """The key that was requested last, with options ``s,cs``."""
        self._ahead: int | None = None
        """The byte of the object of the last key, if it was not read or skipped yet."""
        self._behind: int | None = None
        """The byte behind the last entry, if its object was read or skipped."""
        self._is_at_end = False
        self._error: BaseException | None = None
        """The error behind the last entry that could be read."""
        self._violation: BaseException | None = None
        """The error of a promise that the archive does not keep: nothing more can be answered."""
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
            raw = _raw(key)
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
        raw = _raw(key) if self._is_sorted else None
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
        """Raise an error for a lower key behind the last one, which would make the answer "no" a guess.

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
        """Move behind the last entry of a file that can seek; objects may have been read elsewhere since."""
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
            raw, last = _raw(key), self._last
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


_lookups: weakref.WeakSet[ArchiveLookup] = weakref.WeakSet()


def _renew_all() -> None:
    for lookup in _lookups:
        lookup.renew()


os.register_at_fork(after_in_child=_renew_all)


def _raw(key: str) -> bytes:
    return key.encode("utf-8", "surrogateescape")


def _copied(value: Any) -> Any:
    """Return a copy of an object, so that a caller who changes it does not change what is kept."""
    if isinstance(value, _IMMUTABLE):
        return value
    return value.copy() if isinstance(value, np.ndarray) else copy.deepcopy(value)
