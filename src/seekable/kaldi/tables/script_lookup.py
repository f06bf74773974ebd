"""Scripts, read by key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, final

from seekable.errors import KeyNotFound
from seekable.kaldi.files.pipes import pipes_inside
from seekable.kaldi.tables.local_data import MappedFiles
from seekable.kaldi.tables.script_objects import ScriptObjects
from seekable.kaldi.tables.script_table import load_script
from seekable.kaldi.tables.unreadable import UNREADABLE

if TYPE_CHECKING:
    from seekable.kaldi.files.pipes import Pipes
    from seekable.kaldi.files.specifiers import Rspecifier
    from seekable.kaldi.holders.holder import Holder
    from seekable.kaldi.tables.unreadable import LeftOut

__all__ = ["ScriptLookup"]


class _Loaded(NamedTuple):
    """An object that `ScriptLookup.has` has read, for the call of `ScriptLookup.value` that follows."""

    key: str
    value: Any


@final
class ScriptLookup:
    """The entries of a script by their keys. Safe from threads, and after a fork."""

    def __init__(self, specifier: Rspecifier, holder: Holder, left_out: LeftOut | None, pipes: Pipes) -> None:
        """Read a script.

        Args:
            specifier: the script and its options. ``o`` and ``cs`` mean nothing.
            holder: reads the objects.
            left_out: takes the errors that option ``p`` makes warnings; None without that option.
            pipes: ``"allow"`` if the script, and its lines, may be commands.

        Raises:
            CorruptTable: a line is none of a script, or a key is there twice, or option ``s`` is given and
                the keys do not ascend.
            InvalidArgument, PipeRefused, DataNotFound, AccessDenied, ...: as in `open_rx`.
        """
        self._name = specifier.rxfilename
        self._left_out = left_out
        self._objects = ScriptObjects(holder, MappedFiles(), pipes=pipes_inside(pipes))
        self._loaded: _Loaded | None = None
        self._table = load_script(specifier.rxfilename, is_sorted=specifier.sorted, pipes=pipes)

    def has(self, key: str) -> bool:
        """Return True if a line has the key and, with option ``p``, its object can be read."""
        xfilename = self._table.find(key)
        if xfilename is None:
            return False
        if self._left_out is not None:
            try:
                self._loaded = _Loaded(key, self._objects.read(key, xfilename))
            except UNREADABLE as error:
                self._left_out.warn(error, f"the entry {key!r}")
                return False
        return True

    def value(self, key: str) -> Any:
        """Return the object of a key; its arrays may be read-only views of a file.

        Raises:
            KeyNotFound: the script has no such key.
            CorruptTable, DataNotFound, PipeFailed, ...: as in `ScriptObjects.read`.
        """
        loaded, self._loaded = self._loaded, None
        if loaded is not None and loaded.key == key:
            return loaded.value
        xfilename = self._table.find(key)
        if xfilename is None:
            raise KeyNotFound(f"{self._name!r} has no entry with the key {key!r}")
        return self._objects.read(key, xfilename)

    def close(self) -> None:
        """Close all files; objects that were given stay as they are."""
        self._objects.close()
        self._loaded = None
