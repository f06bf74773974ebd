"""The targets of a writer: an archive, maybe with a script, or the files that a script names."""

from __future__ import annotations

import contextlib
import os
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final, final

from seekable.errors import CorruptTable, InvalidArgument, KeyNotFound, PipeFailed
from seekable.formats.kaldi.files.filenames import check_wxfilename
from seekable.formats.kaldi.files.opening import open_wx
from seekable.formats.kaldi.files.pipes import pipes_inside
from seekable.formats.kaldi.objects.tokens import decoded
from seekable.formats.kaldi.tables.offset_lines import offset_line
from seekable.formats.kaldi.tables.script import iter_script
from seekable.formats.kaldi.tables.single import write_object
from seekable.formats.kaldi.tables.writer_append import open_behind

if TYPE_CHECKING:
    from collections.abc import Callable

    from seekable.formats.kaldi.files.pipes import Pipes
    from seekable.formats.kaldi.files.specifiers import Wspecifier
    from seekable.formats.kaldi.files.wx_file import WxFile
    from seekable.formats.kaldi.holders.holder import Holder

__all__ = ["ArchiveTarget", "FilesTarget", "WriterTarget", "open_archive", "open_files"]

_LINE_BYTES: Final = 64 << 10
"""The bytes of script lines that are kept until the entries before them are flushed."""


class WriterTarget(ABC):
    """The files of a table that is written."""

    @property
    @abstractmethod
    def is_torn(self) -> bool:
        """True if a failed write may have left a part of an entry."""

    @abstractmethod
    def write(self, key: bytes, value: Any) -> None:
        """Write the key and object of an entry.

        Raises:
            Exception: the errors of the holder, which leave the table as it is, and of the files.
        """

    @abstractmethod
    def flush(self) -> None:
        """Give all that was written to the operating system."""

    @abstractmethod
    def close(self) -> None:
        """Close the files; atomic ones get their names."""

    @abstractmethod
    def abandon(self) -> None:
        """Close the files as after an error: atomic ones are removed, others keep their complete entries."""


@final
class ArchiveTarget(WriterTarget):
    """An archive, and maybe a script with the offset of each entry."""

    def __init__(
        self,
        holder: Holder,
        archive: WxFile,
        script: WxFile | None,
        *,
        binary: bool,
        flush_each: bool,
    ) -> None:
        """Take the open files of a table.

        Args:
            holder: writes the objects.
            archive: the archive; a regular file if there is a script.
            script: the script, or None.
            binary: False to write text.
            flush_each: flush after each entry.
        """
        self._holder = holder
        self._archive = archive
        self._script = script
        self._binary = binary
        self._flush_each = flush_each
        # A named pipe has no position; it is counted all the same, as the bytes of a command are.
        begin = 0 if archive.kind == "file" and not archive.seekable() else archive.tell()
        self._entry = _Entry(archive.write, begin)
        self._path = os.fsencode(archive.wxfilename)
        self._lines: list[bytes] = []
        self._line_bytes = 0
        self._cut_at: int | None = None
        self._is_torn = False

    @property
    def is_torn(self) -> bool:
        """True if a failed write may have left a part of an entry."""
        return self._is_torn

    def write(self, key: bytes, value: Any) -> None:
        """Write an entry, then its line in the script."""
        entry = self._entry
        entry.head = head = key + b" "
        start = entry.position
        try:
            self._holder.write(entry, value, binary=self._binary)
            if entry.head:
                entry.write(b"")
        except BaseException as error:
            if not entry.head or not isinstance(error, (TypeError, ValueError)):
                self._is_torn, self._cut_at = True, start
            raise
        try:
            if self._script is not None:
                self._add_line(offset_line(key, self._path, start + len(head)))
            if self._flush_each:
                self.flush()
        except BaseException:
            self._is_torn = True
            raise

    def _add_line(self, line: bytes) -> None:
        self._lines.append(line)
        self._line_bytes += len(line)
        if self._line_bytes > _LINE_BYTES:
            self.flush()

    def flush(self) -> None:
        """Flush the archive, then the lines of its entries."""
        self._archive.flush()
        if self._script is not None:
            self._script.write(b"".join(self._lines))
            self._lines, self._line_bytes = [], 0
            self._script.flush()

    def close(self) -> None:
        """Close the archive, then the script; both are on disk before an atomic one gets its name."""
        script = self._script
        if script is None:
            self._archive.close()
            return
        try:
            self._archive.sync()
            # The error of a command comes again when the script is closed, with the exit code.
            with contextlib.suppress(PipeFailed):
                self.flush()
                script.sync()
            self._archive.close()
        except BaseException:
            self.abandon()
            raise
        script.close()

    def abandon(self) -> None:
        """Close the files; of a regular file, a torn entry is cut off where that is possible."""
        # After an error of the disk or of a command, the buffers cannot be written.
        with contextlib.suppress(OSError, ValueError):
            self._archive.flush()
            if self._cut_at is not None and self._archive.seekable():
                os.ftruncate(self._archive.fileno(), self._cut_at)
            self.flush()
        for file in (self._archive, self._script):
            if file is not None:
                with contextlib.suppress(OSError):
                    file.discard()


@final
class _Entry:
    """The output of objects, which writes the key of each before its first bytes, and counts bytes."""

    __slots__ = ("_write", "head", "position")

    def __init__(self, write: Callable[[Any], int], position: int) -> None:
        self._write = write
        self.head = b""
        """The key and a space; empty once they are written."""
        self.position = position
        """The byte of the archive behind all that was written."""

    def write(self, data: Any, /) -> int:
        if self.head:
            head, self.head = self.head, b""
            self.position += self._write(head)
        count = self._write(data)
        self.position += count
        return count


@final
class FilesTarget(WriterTarget):
    """The files that an existing script names, one for each key."""

    def __init__(
        self,
        holder: Holder,
        names: dict[str, str],
        open_file: Callable[[str], WxFile],
        *,
        script: str,
        binary: bool,
        permissive: bool,
    ) -> None:
        """Take the names of the files.

        Args:
            holder: writes the objects.
            names: the wxfilename of each key.
            open_file: opens a wxfilename.
            script: the extended filename of the script, for messages.
            binary: False to write text.
            permissive: leave out keys that have no wxfilename.
        """
        self._holder = holder
        self._names = names
        self._open_file = open_file
        self._script = script
        self._binary = binary
        self._permissive = permissive

    @property
    def is_torn(self) -> bool:
        """False: each object has a file of its own, so that a failure leaves the others as they are."""
        return False

    def write(self, key: bytes, value: Any) -> None:
        """Write an object to the file of its key."""
        name = self._names.get(text := decoded(key))
        if name is None:
            if self._permissive:
                return
            raise KeyNotFound(
                f"the script {self._script!r} has no line for the key {text!r}, so there is no file to write "
                f"to: add a line, or use the option p (scp,p:...) to leave out such keys"
            )
        write_object(lambda: self._open_file(name), self._holder, value, binary=self._binary)

    def flush(self) -> None:
        """Do nothing: each file is closed as soon as its object is written."""

    def close(self) -> None:
        """Do nothing: each file is closed as soon as its object is written."""

    def abandon(self) -> None:
        """Do nothing: each file is closed as soon as its object is written."""


def open_files(specifier: Wspecifier, holder: Holder, pipes: Pipes, *, atomic: bool) -> FilesTarget:
    """Return the target of a ``scp:`` wspecifier, after reading its script.

    Raises:
        CorruptTable: the script has a bad line, or a key twice.
        InvalidArgument, PipeRefused, DataNotFound, AccessDenied, UnsupportedFormat: as in `open_rx`.
    """
    script, inside = specifier.script_wxfilename, pipes_inside(pipes)
    assert script is not None
    names: dict[str, str] = {}
    for number, (key, name) in enumerate(iter_script(script, pipes=pipes), 1):
        if key in names:
            message = (
                f"{script!r}: line {number:,} has the key {key!r} a second time, and an object is written to "
                f"one file. Leave one of the lines out"
            )
            raise CorruptTable(message)
        names[key] = name
    return FilesTarget(
        holder,
        names,
        lambda name: open_wx(name, binary=specifier.binary, header=False, pipes=inside, atomic=atomic),
        script=script,
        binary=specifier.binary,
        permissive=specifier.permissive,
    )


def open_archive(
    specifier: Wspecifier, holder: Holder, pipes: Pipes, *, atomic: bool, append: bool
) -> ArchiveTarget:
    """Return the target of an ``ark:`` or ``ark,scp:`` wspecifier, with its files open.

    Raises:
        InvalidArgument: an archive with a script is no regular file, or is its own script; ``atomic`` or
            ``append`` for something else than regular files.
        CorruptTable: with ``append``, the archive or its script is torn.
        InvalidArgument, PipeRefused, DataNotFound, AccessDenied, UnsupportedFormat: as in `open_wx`.
    """
    archive, script = specifier.archive_wxfilename, specifier.script_wxfilename
    assert archive is not None
    if script is not None:
        _check_pair(archive, script)
    opened = contextlib.ExitStack()
    with opened:
        script_file = None
        if append:
            archive_file, script_file = open_behind(archive, script, holder)
        else:
            if script is not None:
                script_file = open_wx(script, binary=False, pipes=pipes, atomic=atomic)
                opened.callback(script_file.discard)
            archive_file = open_wx(archive, binary=specifier.binary, header=False, pipes=pipes, atomic=atomic)
        opened.pop_all()
    return ArchiveTarget(
        holder, archive_file, script_file, binary=specifier.binary, flush_each=specifier.flush
    )


def _check_pair(archive: str, script: str) -> None:
    """Raise an error for an archive into which a script cannot have offsets."""
    kind = check_wxfilename(archive)
    found = "" if kind == "file" else {"stdout": "standard output", "pipe": "a command"}[kind]
    if kind == "file" and os.path.lexists(archive) and not os.path.isfile(archive):
        found = "no regular file"
    if found:
        raise InvalidArgument(
            f"with ark,scp the archive must be a regular file, because the script has offsets into it (got "
            f"{archive!r}, {found}). Write ark: alone, or name a file"
        )
    if check_wxfilename(script) == "file" and os.path.realpath(archive) == os.path.realpath(script):
        raise InvalidArgument(
            f"with ark,scp the archive and the script are two files (got {archive!r} for both)"
        )
