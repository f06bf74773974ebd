"""The writer of tables: archives, archives with a script of offsets, and files that a script names."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any, Final, final

from seekable.errors import CorruptTable, ForkUnsafe, InvalidArgument, KeyNotFound, PipeFailed, WrongType
from seekable.formats.kaldi.basic_types import checked_token, decoded
from seekable.formats.kaldi.files.open_named import open_to_append, open_wx
from seekable.formats.kaldi.files.pipes import checked_pipes, pipes_inside
from seekable.formats.kaldi.files.specifiers import check_wxfilename, parse_wspecifier
from seekable.formats.kaldi.files.streams import Process
from seekable.formats.kaldi.holders.registry import SupportsPacking, find_holder
from seekable.formats.kaldi.script_lines import iter_script
from seekable.formats.kaldi.tables.repair import OffsetLines, find_end, map_archive, offset_line
from seekable.formats.kaldi.tables.single import write_object

if TYPE_CHECKING:
    import mmap
    from collections.abc import Callable
    from types import TracebackType

    from seekable.errors import SeekableError
    from seekable.formats.kaldi.files.pipes import Pipes
    from seekable.formats.kaldi.files.specifiers import Wspecifier
    from seekable.formats.kaldi.files.streams import WxFile
    from seekable.formats.kaldi.holders.registry import Holder
    from seekable.formats.kaldi.tables.repair import ArchiveEnd

_SPACES: Final = b" \t\n\r\f\v"
_LINE_BYTES: Final = 64 << 10
"""The bytes of script lines that are kept until the entries before them are flushed."""

_REFUSALS: Final = frozenset({WrongType, InvalidArgument})
"""The errors of values and keys, which do not say where they stand."""


def _open_behind(archive: str, script: str | None, holder: Holder) -> tuple[WxFile, WxFile | None]:
    """Open an archive and its script to append to them; missing files are made.

    With a script, only the entries after its last line are looked at. Without one, all are skipped by their
    headers. The archive is locked until it is closed, so that no two processes append to it.

    Raises:
        InvalidArgument: a name is not a regular file, or another process appends to the archive.
        CorruptTable: the last entry is torn, or the script does not fit the archive.
        DataNotFound, AccessDenied, UnsupportedFormat: a file cannot be opened, or is compressed.
    """
    for name in (archive, script):
        if name is not None:
            _check_regular(name)
    opened = contextlib.ExitStack()
    with opened:
        archive_file = opened.enter_context(open_to_append(archive))
        data = map_archive(archive)
        lines = None if script is None else OffsetLines(script, archive, data)
        end = _checked_end(data, archive, holder, lines)
        script_file = None
        if lines is not None:
            script_file = opened.enter_context(open_to_append(lines.path))
            if lines.data[-1:] not in {b"", b"\n"}:
                script_file.write(b"\n")
        if _lacks_line_end(data, end):
            archive_file.write(b"\n")
        opened.pop_all()
    return archive_file, script_file


def _check_regular(name: str) -> None:
    kind = check_wxfilename(name)
    if kind != "file" or (os.path.lexists(name) and not os.path.isfile(name)):
        found = "no regular file" if kind == "file" else f"a {kind}"
        raise InvalidArgument(f"append=True is for regular files (got {name!r}, {found}). Leave it out")


def _checked_end(
    data: mmap.mmap | bytes, archive: str, holder: Holder, lines: OffsetLines | None
) -> ArchiveEnd:
    """Return the last entries of an archive that is not torn, and whose script has lines for all of them."""
    last = None if lines is None else lines.last()
    begin = 0 if last is None else last.offset - len(last.key) - 1
    end = find_end(data, archive, holder, begin=begin)
    script = "" if lines is None else f", script={lines.path!r}"
    way = f"kaldi.repair({archive!r}, {holder.name!r}{script})"
    if end.torn is not None:
        raise CorruptTable(
            f"{archive!r} ends with a torn entry, after which none can be written ({end.torn}): cut it off "
            f"with {way}, which keeps the {end.size:,} bytes before it"
        )
    unnamed = len(end.starts) - (last is not None)
    if lines is not None and unnamed:
        raise CorruptTable(
            f"{lines.path!r} has no lines for the last {unnamed:,} entries of {archive!r}: {way} adds them"
        )
    return end


def _lacks_line_end(data: mmap.mmap | bytes, end: ArchiveEnd) -> bool:
    """Return True if the last entry is text without white space after it: the next key would join it."""
    return bool(end.starts) and data[-1] not in _SPACES and data.find(b"\0", end.starts[-1]) < 0


@final
class _ArchiveTarget:
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
        self._is_followed = flush_each or script is not None
        self._packed = holder.packed if binary and isinstance(holder, SupportsPacking) else None
        # A named pipe has no position; it is counted all the same, as the bytes of a command are.
        begin = 0 if archive.kind == "file" and not archive.seekable() else archive.tell()
        self._write = archive.write
        self._entry = _Entry(self._write, begin)
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
        head = key + b" "
        start = entry.position
        if self._packed is not None:
            data = head + self._packed(value)
            try:
                self._write(data)
            except BaseException:
                self._is_torn, self._cut_at = True, start
                raise
            entry.position = start + len(data)
        else:
            self._write_object(head, value)
        if self._is_followed:
            self._follow(key, start + len(head))

    def _write_object(self, head: bytes, value: Any) -> None:
        entry = self._entry
        entry.head = head
        start = entry.position
        try:
            self._holder.write(entry, value, binary=self._binary)
            if entry.head:
                entry.write(b"")
        except BaseException as error:
            if not entry.head or not isinstance(error, (TypeError, ValueError)):
                self._is_torn, self._cut_at = True, start
            raise

    def _follow(self, key: bytes, offset: int) -> None:
        """Add the line of an entry to the script, and flush what is to be flushed after each."""
        try:
            if self._script is not None:
                self._add_line(offset_line(key, self._path, offset))
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
        """The byte of the archive after all that was written."""

    def write(self, data: Any, /) -> int:
        if self.head:
            head, self.head = self.head, b""
            self.position += self._write(head)
        count = self._write(data)
        self.position += count
        return count


@final
class _FilesTarget:
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


def _open_files(specifier: Wspecifier, holder: Holder, pipes: Pipes, *, atomic: bool) -> _FilesTarget:
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
    return _FilesTarget(
        holder,
        names,
        lambda name: open_wx(name, binary=specifier.binary, header=False, pipes=inside, atomic=atomic),
        script=script,
        binary=specifier.binary,
        permissive=specifier.permissive,
    )


def _open_archive(
    specifier: Wspecifier, holder: Holder, pipes: Pipes, *, atomic: bool, append: bool
) -> _ArchiveTarget:
    """Return the target of an ``ark:`` or ``ark,scp:`` wspecifier, with its files open.

    Raises:
        InvalidArgument: an archive with a script is not a regular file, or is its own script; ``atomic`` or
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
            archive_file, script_file = _open_behind(archive, script, holder)
        else:
            if script is not None:
                script_file = open_wx(script, binary=False, pipes=pipes, atomic=atomic)
                opened.callback(script_file.discard)
            archive_file = open_wx(archive, binary=specifier.binary, header=False, pipes=pipes, atomic=atomic)
        opened.pop_all()
    return _ArchiveTarget(
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
            append: True to write after the entries of an existing archive, and of its script; a missing
                archive is made. The end of the archive is checked: an archive whose last entry is torn is
                refused, and `repair` cuts it.
            holder_options: fields of the holder, such as ``precision=9`` for text that reads back exactly, or
                ``method=2`` of a compressed-matrix.

        Raises:
            InvalidArgument: it is not a wspecifier; the holder lacks an option; an archive with a script is
                not a regular file; ``atomic`` or ``append`` is true for something else than files.
            CorruptTable: the script of ``scp:`` has a bad line, or a key twice; with ``append``, the archive
                or its script is torn.
            InvalidArgument, PipeRefused, DataNotFound, AccessDenied, UnsupportedFormat: as in `open_wx`.
        """
        self._process_id = Process.id
        self._target: _ArchiveTarget | _FilesTarget | None = None
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
            WrongType: the key is not a str, or the value is of another type than the holder takes. Nothing
                was written.
            InvalidArgument: the key is not such a word, the value cannot be stored, or the writer is closed.
                Nothing was written.
            KeyNotFound: the script of ``scp:`` has no such key, and the option ``p`` is absent.
            PipeFailed: the command does not read any more.
            CorruptTable: an earlier write failed.
            ForkUnsafe: this process was forked from the one that opened the writer.
            OSError: the disk is full.
        """
        target = self._target
        if target is None or self._failure is not None or Process.id != self._process_id:
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
        if self._target is None or Process.id != self._process_id:
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
        if self._target is not None and Process.id != self._process_id:
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
        if Process.id != self._process_id:
            return ForkUnsafe(
                f"{self.wspecifier!r} was opened in the process {self._process_id} and used in a child of it "
                f"({Process.id}), where its buffer would be written twice: open a table of its own there"
            )
        return self._torn()

    def _torn(self) -> CorruptTable:
        entry = f"the entry {self._failed_key!r}" if self._failed_key else "an entry"
        return CorruptTable(
            f"{self.wspecifier!r}: {entry} could not be written ({self._failure}), so the table may end with "
            f"a torn entry, and nothing is written after it. Remove the cause; then write the table again, "
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
        if target is not None and Process.id == self._process_id:
            target.abandon()

    def __del__(self) -> None:
        """Close the files as after an error, except in a child process."""
        target = getattr(self, "_target", None)
        if target is not None and Process.id == self._process_id:
            with contextlib.suppress(Exception):
                target.abandon()


def _open(
    specifier: Wspecifier, holder: Holder, pipes: Pipes, *, atomic: bool, append: bool
) -> _ArchiveTarget | _FilesTarget:
    if append and atomic:
        raise InvalidArgument("append=True adds to files in place, and atomic=True makes new ones: name one")
    if specifier.kind != "scp":
        return _open_archive(specifier, holder, pipes, atomic=atomic, append=append)
    if append:
        message = "append=True is for archives: with scp: each object has a file of its own. Leave it out"
        raise InvalidArgument(message)
    return _open_files(specifier, holder, pipes, atomic=atomic)
