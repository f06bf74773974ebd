"""The reader of tables in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from seekable.errors import InvalidArgument
from seekable.formats.kaldi.files.pipes import checked_pipes
from seekable.formats.kaldi.files.specifiers import parse_rspecifier
from seekable.formats.kaldi.files.stored_file import mounted_table
from seekable.formats.kaldi.holders.registry import find_holder
from seekable.formats.kaldi.tables.entries import open_entries
from seekable.formats.kaldi.tables.permissive import UNREADABLE, PermissiveWarnings
from seekable.formats.kaldi.tables.read_ahead import ReadAhead

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType

    from seekable.formats.kaldi.files.pipes import Pipes
    from seekable.formats.kaldi.holders.holder import Holder
    from seekable.formats.kaldi.tables.entries import Entries

__all__ = ["SequentialReader"]


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
        InvalidArgument: it is no rspecifier, there is no such holder, or no such option.
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
        entries = open_entries(specifier, found, pipes=allowed, storage_options=storage_options)
        self._entries: Entries = ReadAhead(entries) if specifier.background else entries
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
        """True if there is no present entry: behind the last one, and after an error of the table.

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
        """Yield the key and the object of the present entry and of those behind it."""
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
