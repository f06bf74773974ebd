"""Archives, read forward: ``<key> <object><key> <object>...``."""

from __future__ import annotations

import io
import os
import re
from typing import TYPE_CHECKING, Any, Final, cast, final

from seekable.errors import CorruptObject, ForkUnsafe, PipeFailed, UnsupportedFormat
from seekable.formats.kaldi.basic_types import TOKEN, TOKEN_AND_SPACE, decoded
from seekable.formats.kaldi.cursor import END_OF_FILE, BufferedCursor, FileCursor
from seekable.formats.kaldi.files.open_named import open_rx
from seekable.formats.kaldi.files.store_files import StoredRawFile
from seekable.formats.kaldi.files.streams import Process

if TYPE_CHECKING:
    from seekable.formats.kaldi.files.pipes import Pipes
    from seekable.formats.kaldi.files.streams import RxFile
    from seekable.formats.kaldi.holders.registry import Holder

_KEY: Final = re.compile(TOKEN)
KEY_AFTER_SPACES: Final = re.compile(rb"[ \t\n\v\f\r]*" + TOKEN_AND_SPACE)
"""White space, and a key with the space after it."""

_EXPECTED: Final = "a key and a space, or the end of the archive"
_LONGEST_KEY: Final = 1 << 20
_SHOWN_BYTES: Final = 24


@final
class Archive:
    """One archive, read forward from key to key. One thread at a time may use it.

    A local file, or a file of a store, that is not compressed can also go back. Everything else is a stream.
    """

    def __init__(self, rxfilename: str, *, pipes: Pipes) -> None:
        """Open an archive, without reading from it.

        Args:
            rxfilename: its extended filename.
            pipes: ``"allow"`` if it may be a command.

        Raises:
            InvalidArgument, PipeRefused, DataNotFound, AccessDenied, ...: as in `open_rx`.
        """
        self._file = open_rx(rxfilename, header=False, pipes=pipes)
        self._process_id = Process.id
        self.can_seek = isinstance(self._file.raw, io.FileIO | StoredRawFile)
        """True for a regular file that is not compressed."""
        # What a reader of standard input does not use is left for the next one.
        self.cursor: BufferedCursor | FileCursor = (
            cursor_over(self._file)
            if self.can_seek or self._file.kind == "stdin"
            else BufferedCursor(cast("io.RawIOBase", self._file.raw), name=str(self._file.name))
        )
        """It stands after the last key or object that was read."""

    @property
    def name(self) -> str:
        """The name of the file, for messages."""
        return self.cursor.name

    def next_key(self) -> str | None:
        """Move past the next key and the space after it; return the key, or None at the end.

        Raises:
            CorruptObject: something else than a key is there, or the archive ends after a key.
            PipeFailed: the archive is the output of a command, which has failed.
            ForkUnsafe: this process was forked from the one that opened the stream.
        """
        cursor = self.cursor
        before, cursor.key = cursor.key, None
        if not self.can_seek:
            self._check_process()
        found = cursor.match(KEY_AFTER_SPACES)
        key = self._rare_key(before) if found is None else found[1].decode("utf-8", "surrogateescape")
        cursor.key = key
        return key

    def seek(self, position: int) -> None:
        """Move to a byte of an archive that can seek."""
        assert isinstance(self.cursor, BufferedCursor)
        self.cursor.seek(position)

    def _rare_key(self, before: str | None) -> str | None:
        """Return a key that is partly in the buffer, or None at the end after the entry `before`."""
        cursor = self.cursor
        if cursor.skip_spaces() < 0:
            if not self.can_seek:
                self._close_stream(before)
            elif cursor.remaining:
                raise cursor.error(f"{cursor.remaining:,} more bytes, which the file had when it was opened")
            return None
        start = cursor.position
        word = cursor.word("a key", at_most=_LONGEST_KEY)
        if not _KEY.fullmatch(word):
            raise cursor.error(_EXPECTED, repr(decoded(word[:_SHOWN_BYTES])), at=start)
        after = bytes(cursor.preview()[:1])
        if after in {b" ", b"\t"}:
            cursor.skip(1, "a space")
        elif after not in {b"\n", b"\r"}:
            cursor.key = decoded(word)
            raise cause_of(cursor.error("a space and an object after the key"), self._file)
        return decoded(word)

    def _close_stream(self, before: str | None) -> None:
        """Close a stream at its end, after the entry with the key `before`."""
        try:
            self._file.close()
        except PipeFailed as error:
            entry = "" if before is None else f", after the entry {before!r}"
            place = f"its output ends at byte {self.cursor.position:,}{entry}"
            raise PipeFailed(error.command, error.exit_code, place) from None

    def read(self, holder: Holder) -> Any:
        """Return the object after the key that was read last.

        Raises:
            CorruptObject: no such object is there, or the archive ends in it.
            PipeFailed: it ends in it because a command has failed.
            UnsupportedFormat: the archive is compressed, and cannot be decompressed on.
        """
        try:
            return holder.read(self.cursor)
        except CorruptObject as error:
            raise cause_of(error, self._file) from None
        except UnsupportedFormat as error:
            at = f"the entry {self.cursor.key!r}, at byte {self.cursor.position:,} of the content"
            raise UnsupportedFormat(f"{error}. It ends in {at}") from None

    def skip(self, holder: Holder) -> None:
        """Move past the object after the key that was read last; errors as in `read`."""
        try:
            holder.skip(self.cursor)
        except CorruptObject as error:
            raise cause_of(error, self._file) from None

    def _check_process(self) -> None:
        if Process.id != self._process_id:
            raise ForkUnsafe(
                f"{self.name!r} is a stream that process {self._process_id} opened, and a forked process "
                f"cannot share it: open the table after the fork"
            )

    def close(self) -> None:
        """Close the file. The exit code of a command that was not read to its end is ignored."""
        if self.can_seek or Process.id == self._process_id:
            self._file.abandon()


def cursor_over(file: RxFile) -> BufferedCursor | FileCursor:
    """Return a cursor over a file: the faster kind if it can seek, else one that takes objects alone."""
    name, raw = str(file.name), file.raw
    if isinstance(raw, io.FileIO):
        return BufferedCursor(raw, name=name, position=file.tell(), size=os.fstat(raw.fileno()).st_size)
    if isinstance(raw, StoredRawFile):
        return BufferedCursor(raw.ranges, name=name, position=file.tell(), size=raw.size)
    return FileCursor(file, name=name)


def cause_of(error: CorruptObject, file: RxFile) -> CorruptObject | PipeFailed:
    """Return the failure of the command whose output ends too early; otherwise the error itself.

    Args:
        error: the error of an object of a file.
        file: the file, which is closed if the error is that it ended.
    """
    # Elsewhere the command may still run, and nobody may wait for it.
    if file.kind == "pipe" and not file.closed and END_OF_FILE in error.found:
        try:
            file.close()
        except PipeFailed as failure:
            return PipeFailed(failure.command, failure.exit_code, str(error))
    return error
