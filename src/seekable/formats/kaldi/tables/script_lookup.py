"""Entries by their keys, where each has an extended filename: in scripts, and in tables with an index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, final

from seekable.errors import KeyNotFound
from seekable.formats.kaldi.objects.tokens import check_token
from seekable.formats.kaldi.tables.permissive import UNREADABLE

if TYPE_CHECKING:
    from seekable.formats.kaldi.tables.permissive import PermissiveWarnings
    from seekable.formats.kaldi.tables.script_objects import Place, ScriptObjects

__all__ = ["ScriptLookup"]

_MOST_FOUND: Final = 1 << 16
"""The number of lines that are kept after they were found, for the next time."""


class FindsObjects(Protocol):
    """A table that has an extended filename for each key."""

    def find(self, key: str) -> str | None:
        """Return the extended filename of a key, maybe with a range; None if the table lacks the key."""


class _Loaded(NamedTuple):
    """An object that `ScriptLookup.has` has read, for the call of `ScriptLookup.value` that follows."""

    key: str
    value: Any


@final
class ScriptLookup:
    """The objects of a table by their keys. Safe from threads, and after a fork."""

    def __init__(
        self,
        name: str,
        table: FindsObjects,
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
            WrongType, InvalidArgument: it is no key.
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
            WrongType, InvalidArgument: it is no key.
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
