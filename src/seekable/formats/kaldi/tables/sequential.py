"""The reader of tables in their order."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, final

from seekable.errors import ForkUnsafe, InvalidArgument
from seekable.formats.kaldi.cursor import BufferedCursor
from seekable.formats.kaldi.files.open_named import open_rx
from seekable.formats.kaldi.files.pipes import checked_pipes, pipes_inside
from seekable.formats.kaldi.files.specifiers import UNREADABLE, PermissiveWarnings, parse_rspecifier
from seekable.formats.kaldi.files.store_files import mounted_table
from seekable.formats.kaldi.files.streams import Process
from seekable.formats.kaldi.holders.registry import SupportsRuns, find_holder
from seekable.formats.kaldi.script_lines import entries_of
from seekable.formats.kaldi.tables.archive import Archive
from seekable.formats.kaldi.tables.script_objects import BufferedFiles, ScriptObjects

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType

    from seekable.formats.kaldi.files.pipes import Pipes
    from seekable.formats.kaldi.files.specifiers import Rspecifier
    from seekable.formats.kaldi.files.streams import RxFile
    from seekable.formats.kaldi.holders.registry import Holder
    from seekable.formats.kaldi.script_lines import ScriptEntry

_NOTHING: Final = object()


class _Entries(Protocol):
    """The entries of a table, read forward. One thread at a time uses them."""

    def advance(self) -> str | None:
        """Move to the next entry; return its key, or None after the last one.

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
class _ArchiveEntries:
    """The entries of an archive. To move to an entry is to read its object."""

    def __init__(self, archive: Archive, holder: Holder) -> None:
        """Take an archive and what reads its objects."""
        self._archive = archive
        self._holder = holder
        self._value: Any = None
        self._run: Iterator[tuple[str, Any]] = iter(())
        """Entries after the present one that were read with it."""
        cursor = archive.cursor
        # What a forked process takes from a stream of its parent is an error, entry by entry.
        self._cursor = cursor if archive.can_seek and isinstance(cursor, BufferedCursor) else None
        self._read_run = holder.read_run if isinstance(holder, SupportsRuns) else None

    def advance(self) -> str | None:
        """Move to the next entry, and read its object."""
        self._value = None
        entry = next(self._run, None) or self._read_on()
        if entry is None:
            return None
        key, self._value = entry
        return key

    def _read_on(self) -> tuple[str, Any] | None:
        """Read a run of entries, or else one; return the first of them, None at the end."""
        if self._cursor is not None and self._read_run is not None:
            run = self._cursor.run(self._read_run)
            self._run = zip(run.keys, run.values, strict=True)
            if (entry := next(self._run, None)) is not None:
                return entry
        key = self._archive.next_key()
        return None if key is None else (key, self._archive.read(self._holder))

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
class _ScriptEntries:
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


def _open_entries(
    specifier: Rspecifier,
    holder: Holder,
    *,
    pipes: Pipes,
    storage_options: Mapping[str, Any] | None = None,
) -> _Entries:
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
        return _ArchiveEntries(Archive(specifier.rxfilename, pipes=pipes), holder)
    script = open_rx(specifier.rxfilename, pipes=pipes)
    objects = ScriptObjects(
        specifier.rxfilename,
        holder,
        BufferedFiles(),
        pipes=pipes_inside(pipes),
        storage_options=storage_options,
    )
    return _ScriptEntries(script, objects)


class _Read(NamedTuple):
    """An entry that the thread read, or the end of the table."""

    key: str | None
    """None at the end of the table, and where the table cannot be read on."""

    value: Any = None
    error: BaseException | None = None
    """The error of the object, or without a key of the table."""


@final
class _ReadAhead:
    """The entries of a table, each read while the caller uses the one before it.

    One thread reads; it begins with an entry when the one before has been taken, so one object is ahead.
    """

    def __init__(self, entries: _Entries) -> None:
        """Take the entries, and start to read the first one."""
        self._entries = entries
        self._process_id = Process.id
        self._wanted = threading.Semaphore(1)
        self._is_read = threading.Semaphore(0)
        self._is_closed = False
        self._next: _Read | None = None
        self._present: _Read | None = None
        self._thread = threading.Thread(target=self._run, name="seekable kaldi bg", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            self._wanted.acquire()
            if self._is_closed:
                return
            # Errors go to the caller, who would wait for ever if this thread ended by one.
            self._next = self._read()
            is_last = self._next.key is None
            self._is_read.release()
            if is_last:
                return

    def _read(self) -> _Read:
        try:
            key = self._entries.advance()
        except BaseException as error:  # noqa: BLE001 - it is raised in the thread of the caller
            return _Read(None, error=error)
        if key is None:
            return _Read(None)
        try:
            return _Read(key, self._entries.value())
        except BaseException as error:  # noqa: BLE001 - it is raised in the thread of the caller
            return _Read(key, error=error)

    def advance(self) -> str | None:
        """Move to the next entry, after it has been read.

        Raises:
            ForkUnsafe: this process was forked from the one that has the thread.
            CorruptTable, PipeFailed, OSError: the table cannot be read on.
        """
        if Process.id != self._process_id:
            raise ForkUnsafe(
                f"option bg reads in a thread of process {self._process_id}, which a forked process does not "
                f"have: open the table after the fork"
            )
        self._present = None
        self._is_read.acquire()
        found, self._next = self._next, None
        assert found is not None
        self._wanted.release()
        if found.key is None and found.error is not None:
            raise found.error
        self._present = found
        return found.key

    def value(self) -> Any:
        """Return the object of the present entry, or raise the error that its reading ended with."""
        if self._present is None:
            raise InvalidArgument(
                "the present object was freed: option bg does not read it again. Call next()"
            )
        if self._present.error is not None:
            raise self._present.error
        return self._present.value

    def free(self) -> None:
        """Drop the object of the present entry."""
        self._present = None

    def close(self) -> None:
        """Wait until the thread has ended, and close all files."""
        self._is_closed = True
        self._wanted.release()
        if Process.id == self._process_id:
            self._thread.join()
        self._entries.close()


@final
class SequentialReader:
    r"""The entries of a table in their order. Keys may occur several times.

    Iterate over it, or move it as a cursor as in Kaldi: ``done``, ``key``, ``value``, ``next()``. Both move
    the same position. One thread at a time may use it.

    Args:
        rspecifier: the table: ``"ark:feats.ark"``, ``"scp:feats.scp"``, with options: ``p`` leaves out what
            cannot be read, with a `KaldiWarning`; ``bg`` reads one entry ahead in a thread. ``o``, ``s`` and
            ``cs`` mean nothing here.
        holder: what the table holds: a name such as ``"matrix"``, or a holder.
        pipes: ``"allow"`` if the rspecifier and the lines of the script may be commands; ``"specifier"`` if
            the rspecifier may be one, and the lines may not.
        storage_options: the options of the stores of addresses, as in `open_rx`; also of those in the lines
            of a script.
        holder_options: fields of the holder, as in `find_holder`.

    Raises:
        InvalidArgument: it is not an rspecifier, there is no such holder, or no such option.
        PipeRefused, DataNotFound, AccessDenied, UnsupportedFormat: the table cannot be opened.
        CorruptTable, PipeFailed: the first entry cannot be read. Later ones raise these errors when they are
            reached, after the entries before them.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     _ = file.write(b"utt1 1 2\nutt2 3\n"), file.flush()
        ...     with SequentialReader(f"ark:{file.name}", "int32-vector") as reader:
        ...         [(key, value.tolist()) for key, value in reader]
        [('utt1', [1, 2]), ('utt2', [3])]
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
        found = find_holder(holder, **holder_options)
        self._rspecifier = rspecifier
        self._warnings = PermissiveWarnings(rspecifier) if specifier.permissive else None
        self._error: BaseException | None = None
        self._key: str | None = None
        self._is_freed = False
        self._can_read_again = specifier.kind == "scp"
        allowed = checked_pipes(pipes)
        entries = _open_entries(specifier, found, pipes=allowed, storage_options=storage_options)
        self._entries: _Entries = _ReadAhead(entries) if specifier.background else entries
        self._is_open = True
        try:
            self._key = self._advance()
        except BaseException:
            self.close()
            raise

    @property
    def is_open(self) -> bool:
        """True until `close` is called."""
        return self._is_open

    @property
    def done(self) -> bool:
        """True if there is no present entry: after the last one, and after an error of the table.

        Raises:
            InvalidArgument: the reader is closed, or the present entry of an archive was freed.
        """
        self._check_open()
        self._check_kept()
        return self._key is None

    @property
    def key(self) -> str:
        """The key of the present entry.

        Raises:
            InvalidArgument: there is none, or it was freed (of an archive), or the reader is closed.
        """
        self._check_entry()
        self._check_kept()
        assert self._key is not None
        return self._key

    @property
    def value(self) -> Any:
        """The object of the present entry.

        Arrays have memory of their own. It is the same object each time, until `next` or `free_current`.

        Raises:
            CorruptTable, DataNotFound, ...: a script names an object that cannot be read; `next` moves past.
            InvalidArgument: there is no present entry, or it was freed (of an archive); it does not have the
                range that a script names.
        """
        self._check_entry()
        self._check_kept()
        return self._entries.value()

    def next(self) -> None:
        """Move to the next entry.

        Raises:
            CorruptTable: the next entry of the archive, or line of the script, cannot be read.
            PipeFailed: a command that printed the table has failed.
            InvalidArgument: the reader is closed, or there is no present entry.
        """
        if self._error is not None:
            raise self._error
        self._check_entry()
        self._key, self._is_freed = None, False
        try:
            self._key = self._advance()
        except BaseException as error:
            self._error = error
            raise

    def free_current(self) -> None:
        """Drop the present object. Of a script `value` reads it again; of an archive `next` must follow."""
        self._check_entry()
        self._is_freed = not self._can_read_again
        self._entries.free()

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Yield the key and the object of the present entry and of those after it."""
        self._check_open()
        self._check_kept()
        entries = self._entries
        while self._key is not None:
            yield self._key, entries.value()
            if not self._is_open or self._warnings is not None:
                self.next()
                continue
            self._key, self._is_freed = None, False
            try:
                self._key = entries.advance()
            except BaseException as error:
                self._error = error
                raise
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Close all files. Objects stay valid. Closing again does nothing."""
        if self._is_open:
            self._is_open = False
            self._entries.close()

    def __enter__(self) -> SequentialReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        """Close all files, and end the thread of option ``bg``."""
        if getattr(self, "_is_open", False):
            self.close()

    def _advance(self) -> str | None:
        """Move to the next entry, with option ``p`` to the next one that can be read; return its key."""
        if self._warnings is None:
            return self._entries.advance()
        while True:
            try:
                key = self._entries.advance()
            except UNREADABLE as error:
                self._warnings.warn(error, "the rest of the table")
                return None
            if key is None:
                return None
            try:
                self._entries.value()
            except UNREADABLE as error:
                self._warnings.warn(error, f"the entry {key!r}")
            else:
                return key

    def _check_open(self) -> None:
        if not self._is_open:
            raise InvalidArgument(f"the reader of {self._rspecifier!r} is closed: make a new one")

    def _check_kept(self) -> None:
        if self._is_freed:
            raise InvalidArgument(
                f"the present entry of {self._rspecifier!r} was freed, and an archive is not read again. "
                f"Call next()"
            )

    def _check_entry(self) -> None:
        self._check_open()
        if self._key is None:
            raise InvalidArgument(
                f"the reader of {self._rspecifier!r} has no present entry: it is done. Look at `done` first"
            ) from self._error
