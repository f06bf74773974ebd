"""The writer of tables: archives, archives with a script of offsets, and files that a script names."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any, Final, final

from seekable.errors import CorruptTable, ForkUnsafe, InvalidArgument, WrongType
from seekable.formats.kaldi.files.pipes import checked_pipes
from seekable.formats.kaldi.files.specifiers import parse_wspecifier
from seekable.formats.kaldi.holders.registry import find_holder
from seekable.formats.kaldi.objects.tokens import checked_token
from seekable.formats.kaldi.tables.writer_targets import open_archive, open_files

if TYPE_CHECKING:
    from types import TracebackType

    from seekable.errors import SeekableError
    from seekable.formats.kaldi.files.pipes import Pipes
    from seekable.formats.kaldi.files.specifiers import Wspecifier
    from seekable.formats.kaldi.holders.holder import Holder
    from seekable.formats.kaldi.tables.writer_targets import WriterTarget

__all__ = ["Writer"]

_REFUSALS: Final = frozenset({WrongType, InvalidArgument})
"""The errors of values and keys, which do not say where they stand."""


@final
class Writer:
    r"""A table that is written, entry by entry.

    ===================================  =====================================================================
    wspecifier                           what is written
    ===================================  =====================================================================
    ``ark:out.ark``                      an archive
    ``ark,scp:out.ark,out.scp``          an archive, and a script with the offset of each entry
    ``scp:in.scp``                       each object to the file that an existing script has for its key
    ``ark:-``, ``ark:| gzip -c > a.gz``  an archive to standard output, or to a command
    ===================================  =====================================================================

    Options before the colon: ``t`` writes text, ``b`` binary (the default), ``f`` flushes after each entry,
    ``nf`` does not (the default), ``p`` leaves out keys that the script of ``scp:`` lacks. The files are the
    ones that Kaldi writes, byte for byte. The line of an entry is written to the script after the entry, so
    that a script never points at an object that is not there, even if the process is killed.

    A value or key that is refused leaves the table as it is, and the next entry may be written. If writing
    itself fails, the archive may be torn: every later write raises an error, and so does closing. One thread
    at a time may use a writer.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with Writer(f"ark,scp,t:{folder}/a.ark,{folder}/a.scp", "int32-vector") as writer:
        ...         writer.write("utt1", [1, 2, 3])
        ...         writer["utt2"] = []
        ...     archive, script = [pathlib.Path(folder, name).read_text() for name in ("a.ark", "a.scp")]
        >>> archive, script.replace(folder, "data")
        ('utt1 1 2 3 \nutt2 \n', 'utt1 data/a.ark:5\nutt2 data/a.ark:17\n')
    """

    def __init__(
        self,
        wspecifier: str,
        holder: object,
        *,
        pipes: Pipes = "refuse",
        atomic: bool = False,
        append: bool = False,
        **holder_options: Any,
    ) -> None:
        """Open the files; existing ones are replaced, unless ``append`` is true.

        Args:
            wspecifier: says what is written where.
            holder: the name of a holder such as ``"matrix"``, a holder, or a class with Read and Write.
            pipes: ``"allow"`` to let ``/bin/sh`` run commands of the wspecifier, and those in the script of
                ``scp:``; ``"specifier"`` for the former alone.
            atomic: True to give files their names when the writer is closed, complete and synced to disk: the
                archive, then the script. After an error in a ``with`` block no file appears, and files of the
                same names stay as they were. With ``scp:`` each object is written so.
            append: True to write behind the entries of an existing archive, and of its script; a missing
                archive is made. The end of the archive is checked: an archive whose last entry is torn is
                refused, and `repair` cuts it.
            holder_options: fields of the holder, such as ``precision=9`` for text that reads back exactly, or
                ``method=2`` of a compressed-matrix.

        Raises:
            InvalidArgument: it is no wspecifier; the holder lacks an option; an archive with a script is no
                regular file; ``atomic`` or ``append`` is true for something else than files.
            CorruptTable: the script of ``scp:`` has a bad line, or a key twice; with ``append``, the archive
                or its script is torn.
            InvalidArgument, PipeRefused, DataNotFound, AccessDenied, UnsupportedFormat: as in `open_wx`.
        """
        self._process_id = os.getpid()
        self._target: WriterTarget | None = None
        self._failure: BaseException | None = None
        self._failed_key = ""
        self.wspecifier = wspecifier
        """The wspecifier, as it was given."""
        specifier = parse_wspecifier(wspecifier)
        self._holder = find_holder(holder, **holder_options)
        self._target = _open(specifier, self._holder, checked_pipes(pipes), atomic=atomic, append=append)

    def __repr__(self) -> str:
        state = "" if self.is_open else ", closed"
        return f"Writer({self.wspecifier!r}, {self._holder.name!r}{state})"

    @property
    def is_open(self) -> bool:
        """True until the writer is closed."""
        return self._target is not None

    def write(self, key: str, value: Any) -> None:
        """Write the key and the object of an entry.

        Keys may occur several times, as in Kaldi; random access then refuses the table.

        Args:
            key: a word without white space and control characters.
            value: the object, as the holder takes it.

        Raises:
            WrongType: the key is no str, or the value is of another type than the holder takes. Nothing was
                written.
            InvalidArgument: the key is no such word, the value cannot be stored, or the writer is closed.
                Nothing was written.
            KeyNotFound: the script of ``scp:`` has no such key, and the option ``p`` is absent.
            PipeFailed: the command does not read any more.
            CorruptTable: an earlier write failed.
            ForkUnsafe: this process was forked from the one that opened the writer.
            OSError: the disk is full.
        """
        target = self._target
        if target is None or self._failure is not None or os.getpid() != self._process_id:
            raise self._unusable() from self._failure
        try:
            target.write(checked_token("key", key), value)
        except BaseException as error:
            if target.is_torn:
                self._failure, self._failed_key = error, key
            if type(error) in _REFUSALS:
                raise type(error)(f"{self.wspecifier!r}, key {key!r}: {error}") from None
            raise

    def __setitem__(self, key: str, value: Any) -> None:
        """Write an entry, as `write` does."""
        self.write(key, value)

    def flush(self) -> None:
        """Give all entries, then their lines in the script, to the operating system.

        Entries that are flushed survive the end of the process, however it ends. Atomic files still get their
        names when the writer is closed.

        Raises:
            InvalidArgument: the writer is closed.
            PipeFailed: the command does not read any more.
            OSError: the disk is full.
        """
        if self._target is None or os.getpid() != self._process_id:
            raise self._unusable()
        try:
            self._target.flush()
        except BaseException as error:
            self._failure = error
            raise

    def close(self) -> None:
        """Write what is in the buffers, close the files, and wait for commands. Closing again does nothing.

        Raises:
            PipeFailed: a command failed, or did not read everything.
            CorruptTable: an earlier write failed; atomic files do not appear then.
            OSError: the disk is full.
        """
        if self._target is not None and os.getpid() != self._process_id:
            raise self._unusable()
        target, self._target = self._target, None
        if target is None:
            return
        if self._failure is None:
            target.close()
            return
        target.abandon()
        raise self._torn() from self._failure

    def _unusable(self) -> SeekableError:
        """Return the error of a writer that is closed, or is of another process, or has failed."""
        if self._target is None:
            return InvalidArgument(f"{self.wspecifier!r}: the writer is closed, and nothing more is written")
        if os.getpid() != self._process_id:
            return ForkUnsafe(
                f"{self.wspecifier!r} was opened in the process {self._process_id} and used in a child of it "
                f"({os.getpid()}), where its buffer would be written twice: open a table of its own there"
            )
        return self._torn()

    def _torn(self) -> CorruptTable:
        entry = f"the entry {self._failed_key!r}" if self._failed_key else "an entry"
        return CorruptTable(
            f"{self.wspecifier!r}: {entry} could not be written ({self._failure}), so the table may end with "
            f"a torn entry, and nothing is written behind it. Remove the cause; then write the table again, "
            f"or cut it with kaldi.repair and go on with append=True"
        )

    def __enter__(self) -> Writer:
        """Return the writer, which the end of the block closes."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the writer; after an error in the block, remove atomic files, and keep entries of others."""
        if error is None:
            self.close()
            return
        target, self._target = self._target, None
        if target is not None and os.getpid() == self._process_id:
            target.abandon()

    def __del__(self) -> None:
        """Close the files as after an error, except in a child process."""
        target = getattr(self, "_target", None)
        if target is not None and os.getpid() == self._process_id:
            with contextlib.suppress(Exception):
                target.abandon()


def _open(specifier: Wspecifier, holder: Holder, pipes: Pipes, *, atomic: bool, append: bool) -> WriterTarget:
    if append and atomic:
        raise InvalidArgument("append=True adds to files in place, and atomic=True makes new ones: name one")
    if specifier.kind != "scp":
        return open_archive(specifier, holder, pipes, atomic=atomic, append=append)
    if append:
        message = "append=True is for archives: with scp: each object has a file of its own. Leave it out"
        raise InvalidArgument(message)
    return open_files(specifier, holder, pipes, atomic=atomic)
