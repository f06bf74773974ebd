"""The reader of tables by key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from seekable.errors import InvalidArgument
from seekable.formats.kaldi.files.pipes import checked_pipes, pipes_inside
from seekable.formats.kaldi.files.specifiers import parse_rspecifier
from seekable.formats.kaldi.files.stored_file import mounted_table
from seekable.formats.kaldi.holders.registry import find_holder
from seekable.formats.kaldi.tables.archive_lookup import ArchiveLookup
from seekable.formats.kaldi.tables.indexed_table import IndexedTable, find_indexed_table
from seekable.formats.kaldi.tables.local_data import MappedFiles
from seekable.formats.kaldi.tables.permissive import PermissiveWarnings
from seekable.formats.kaldi.tables.script_lookup import ScriptLookup
from seekable.formats.kaldi.tables.script_objects import ScriptObjects
from seekable.formats.kaldi.tables.script_table import ScriptTable, load_script

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from seekable.formats.kaldi.files.pipes import Pipes
    from seekable.formats.kaldi.holders.holder import Holder

__all__ = ["RandomAccessReader"]


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
        InvalidArgument: it is no rspecifier, there is no such holder, or no such option.
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
        self._lookup: ArchiveLookup | ScriptLookup
        table: ScriptTable | IndexedTable | None = find_indexed_table(specifier, found)
        if table is None and specifier.kind == "ark":
            self._lookup = ArchiveLookup(specifier, found, warnings, allowed)
        else:
            name = specifier.rxfilename
            table = table or load_script(name, is_sorted=specifier.sorted, pipes=allowed)
            objects = ScriptObjects(
                name, found, MappedFiles(), pipes=pipes_inside(allowed), storage_options=storage_options
            )
            self._lookup = ScriptLookup(name, table, objects, warnings)
        self._is_open = True

    @property
    def is_open(self) -> bool:
        """True until `close` is called."""
        return self._is_open

    def __contains__(self, key: str) -> bool:
        """Return True if the table has an entry with this key.

        Raises:
            WrongType, InvalidArgument: it is no key; the reader is closed; a promise of an option is broken.
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
            WrongType, InvalidArgument: it is no key; the reader is closed; a promise of an option is broken;
                the object does not have the range that a script names.
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
