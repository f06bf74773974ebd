"""The entries of a table, one after the other: of an archive, and of a script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, final

from seekable.formats.kaldi.files.opening import open_rx
from seekable.formats.kaldi.files.pipes import pipes_inside
from seekable.formats.kaldi.tables.archive import Archive
from seekable.formats.kaldi.tables.local_data import BufferedFiles
from seekable.formats.kaldi.tables.script import entries_of
from seekable.formats.kaldi.tables.script_objects import ScriptObjects

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seekable.formats.kaldi.files.pipes import Pipes
    from seekable.formats.kaldi.files.rx_file import RxFile
    from seekable.formats.kaldi.files.specifiers import Rspecifier
    from seekable.formats.kaldi.holders.holder import Holder
    from seekable.formats.kaldi.tables.script import ScriptEntry

__all__ = ["Entries", "open_entries"]

_NOTHING: Final = object()


class Entries(Protocol):
    """The entries of a table, read forward. One thread at a time uses them."""

    def advance(self) -> str | None:
        """Move to the next entry; return its key, or None behind the last one.

        Raises:
            CorruptTable, PipeFailed, OSError: the table cannot be read on.
        """

    def value(self) -> Any:
        """Return the object of the present entry; a second call returns it again.

        Raises:
            CorruptTable, InvalidArgument, OSError, ...: it cannot be read; later entries may be.
        """

    def free(self) -> None:
        """Drop the object of the present entry."""

    def close(self) -> None:
        """Close all files that are open."""


@final
class ArchiveEntries:
    """The entries of an archive. To move to an entry is to read its object."""

    def __init__(self, archive: Archive, holder: Holder) -> None:
        """Take an archive and what reads its objects."""
        self._archive = archive
        self._holder = holder
        self._value: Any = None

    def advance(self) -> str | None:
        """Move to the next entry, and read its object."""
        self._value = None
        entry = self._archive.next_entry(self._holder)
        if entry is None:
            return None
        key, self._value = entry
        return key

    def value(self) -> Any:
        """Return the object, which was read before; None if it was freed."""
        return self._value

    def free(self) -> None:
        """Drop the object of the present entry."""
        self._value = None

    def close(self) -> None:
        """Close the file of the archive."""
        self._archive.close()


@final
class ScriptEntries:
    """The entries of a script. An object is read when `value` is called."""

    def __init__(self, script: RxFile, objects: ScriptObjects) -> None:
        """Take an open script and what reads the objects of its lines."""
        self._script = script
        self._lines = entries_of(script)
        self._objects = objects
        self._entry: ScriptEntry | None = None
        self._value: Any = _NOTHING

    def advance(self) -> str | None:
        """Move to the next line."""
        self._value = _NOTHING
        self._entry = next(self._lines, None)
        return None if self._entry is None else self._entry.key

    def value(self) -> Any:
        """Return the object that the line names."""
        if self._value is _NOTHING:
            assert self._entry is not None
            self._value = self._objects.read(*self._entry)
        return self._value

    def free(self) -> None:
        """Drop the object; the next call of `value` reads it again."""
        self._value = _NOTHING

    def close(self) -> None:
        """Close the script and all files."""
        self._script.abandon()
        self._objects.close()


def open_entries(
    specifier: Rspecifier,
    holder: Holder,
    *,
    pipes: Pipes,
    storage_options: Mapping[str, Any] | None = None,
) -> Entries:
    """Open a table to read its entries in order.

    Args:
        specifier: the table, whose store is mounted.
        holder: reads the objects.
        pipes: as in `open_rx`.
        storage_options: the options of the stores of addresses in the lines of a script.

    Raises:
        InvalidArgument, PipeRefused, DataNotFound, AccessDenied, ...: as in `open_rx`.
    """
    if specifier.kind == "ark":
        return ArchiveEntries(Archive(specifier.rxfilename, pipes=pipes), holder)
    script = open_rx(specifier.rxfilename, pipes=pipes)
    objects = ScriptObjects(
        specifier.rxfilename,
        holder,
        BufferedFiles(),
        pipes=pipes_inside(pipes),
        storage_options=storage_options,
    )
    return ScriptEntries(script, objects)
