"""Local files as tables use them: errors name the nearest reason, and content is decompressed."""

from __future__ import annotations

import bz2
import contextlib
import errno
import fcntl
import io
import lzma
import os
import stat
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, TypeVar, final

from seekable.errors import (
    AccessDenied,
    DataNotFound,
    InvalidArgument,
    SeekableError,
    UnsupportedFormat,
)
from seekable.storage.compression import inflated
from seekable.storage.files import failed_read, has_access, unreadable_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from _typeshed import ReadableBuffer, WriteableBuffer

T = TypeVar("T")

Coding = Literal["gz", "zst", "bz2", "xz"]
"""The names of compressions, as suffixes."""

_READ_BYTES: Final = 64 << 10
_ZSTD_READ_BYTES: Final = 8 << 10
"""The bytes of a zstd file that are read at a time: an object often lies in a small frame."""

_MOST_XZ_BYTES: Final = 2 << 30
"""The most memory for the dictionary of an xz file; ``xz -9`` needs 64 MiB."""

_LIMITS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})

_NOT_THERE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EISDIR})


@final
class ReadFile(io.FileIO):
    """A local file, open for reading. An error of the system is one of ours, with the file and the byte.

    It never waits for bytes of what calls itself a regular file and is none, as files of ``/proc`` do.
    """

    def __init__(self, path: str) -> None:
        """Open a file.

        Raises:
            OSError: it cannot be opened.
        """
        is_regular = stat.S_ISREG(os.stat(path).st_mode)
        super().__init__(path, opener=_without_waiting if is_regular else None)

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the next bytes, no more than ``size``; none at the end of the file.

        Raises:
            Unreachable: the system cannot read them.
        """
        found: bytes = self._answer(partial(super().read, -1 if size is None else size))
        return found

    def readall(self) -> bytes:
        """Return all bytes up to the end of the file; the errors are those of ``read``."""
        return self._answer(super().readall)

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill the start of a buffer; return how many bytes it got, 0 at the end; the errors of ``read``."""
        count: int = self._answer(partial(super().readinto, buffer))
        return count

    def _answer(self, call: Callable[[], T | None]) -> T:
        try:
            answer = call()
        except OSError as error:
            raise failed_read(str(self.name), error, at=_place(self)) from None
        if answer is None:
            raise failed_read(str(self.name), _WAITS, at=_place(self))
        return answer


_WAITS: Final = BlockingIOError(errno.EAGAIN, "it has no bytes now, and may have some later")


def _place(file: io.FileIO) -> int:
    with contextlib.suppress(OSError):
        return file.tell()
    return 0


def open_local(path: str, *, regular: bool = False) -> io.FileIO:
    """Return a local file, open for reading, without a buffer.

    Args:
        path: the path of the file.
        regular: True to refuse named pipes, which may wait for ever, and devices, which may have no end.

    Raises:
        DataNotFound: there is no such file; the message has the reason.
        AccessDenied: this user may not read it.
        Unreachable: the system cannot open it.
        UnsupportedFormat: it is refused.
    """
    with local_errors(path, writing=False):
        if not regular:
            return ReadFile(path)
        _check_regular(path, os.stat(path).st_mode)
        file = ReadFile(path)
    try:
        _check_regular(path, os.fstat(file.fileno()).st_mode)
    except UnsupportedFormat:
        file.close()
        raise
    return file


def _check_regular(path: str, mode: int) -> None:
    kind = next((name for is_kind, name in _KINDS if is_kind(mode)), None)
    if kind is not None:
        message = (
            f"{path!r} is {kind}, and a line of a script names regular files alone: others may wait for "
            f"ever, or have no end. Write what it has into a file"
        )
        raise UnsupportedFormat(message)


def _without_waiting(path: str, flags: int) -> int:
    """Open a file for `io.FileIO`; wait for no writer of a named pipe, which may have replaced the file."""
    return os.open(path, flags | os.O_NONBLOCK)


_KINDS: Final = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


@final
class WrittenFile(io.FileIO):
    """A file for writing. Where the disk is full, the error names the file."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write bytes, and return their number.

        Raises:
            OSError: the disk is full, or fails.
        """
        try:
            return super().write(data)
        except OSError as error:
            error.filename = self.name
            raise


@final
class LockedFile(io.FileIO):
    """A file that one process at a time appends to; a missing one is made.

    The lock is released when the file is closed, also while a forked child still has the file open.
    """

    def __init__(self, path: str) -> None:
        """Open and lock a file.

        Raises:
            InvalidArgument: another process, or another object of this one, has the lock.
            OSError: the file cannot be opened.
        """
        super().__init__(path, "a")
        self._process_id = os.getpid()
        try:
            fcntl.flock(self.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            # Some file systems have no locks.
            if error.errno in {errno.EWOULDBLOCK, errno.EACCES}:
                self.close()
                message = (
                    f"{path!r} is open in another writer with append=True: wait until that one is closed"
                )
                raise InvalidArgument(message) from None

    def close(self) -> None:
        """Release the lock, and close the file."""
        if not self.closed and os.getpid() == self._process_id:
            with contextlib.suppress(OSError):
                fcntl.flock(self.fileno(), fcntl.LOCK_UN)
        super().close()


def check_local(path: str) -> None:
    """Raise an error for a file that cannot be read, without opening it, because it may be a named pipe.

    Raises:
        DataNotFound: there is no such file; the message has the reason.
        AccessDenied: this user may not read it.
    """
    with local_errors(path, writing=False):
        is_folder = stat.S_ISDIR(os.stat(path).st_mode)
    if is_folder:
        raise missing_error(path)
    if not has_access(path, os.R_OK):
        raise unreadable_error(path)


@contextlib.contextmanager
def local_errors(path: str, *, writing: bool) -> Iterator[None]:
    """Replace the errors of the operating system about a path with ours, which name the reason.

    Args:
        path: the file that is opened.
        writing: the file is opened to write it.

    Raises:
        DataNotFound: there is no such file or folder.
        AccessDenied: this user may not open the file.
        Unreachable: the system cannot read the file.
    """
    try:
        yield
    except PermissionError:
        raise (_unwritable_error(path) if writing else unreadable_error(path)) from None
    except OSError as error:
        if error.errno in _NOT_THERE:
            raise missing_error(path) from None
        if writing or error.errno in _LIMITS or isinstance(error, SeekableError):
            raise
        raise failed_read(path, error) from None


def _unwritable_error(path: str) -> AccessDenied:
    return AccessDenied(
        f"{path!r} cannot be written by this user (uid {os.geteuid()}): give the user the right to write the "
        f"file and its folder, or name another place"
    )


def missing_error(path: str) -> DataNotFound:
    """Return the error for a file that cannot be opened, with the nearest reason.

    Example:
        >>> str(missing_error("/no/such/feats.ark"))
        "there is no file '/no/such/feats.ark': the folder '/no' does not exist"
    """
    return DataNotFound(f"there is no file {path!r}: {_nearest_reason(path)}")


def _nearest_reason(path: str) -> str:
    if not path:
        return "the path is empty"
    if os.path.isdir(path):
        return "it is a folder"
    if os.path.islink(path):
        return f"it is a link to {os.readlink(path)!r}, which does not exist"
    folder, missing = os.path.dirname(path), ""
    while folder and not os.path.isdir(folder):
        missing, folder = folder, os.path.dirname(folder)
    if missing:
        problem = "is not a folder" if os.path.lexists(missing) else "does not exist"
        reason = f"the folder {missing!r} {problem}"
    else:
        reason = f"the folder {folder or os.getcwd()!r} has no file of this name"
    is_elsewhere = missing and not os.path.isabs(path)
    return f"{reason} (relative paths begin at {os.getcwd()!r})" if is_elsewhere else reason


def read_pieces(file: io.FileIO) -> Iterator[bytes]:
    """Yield the bytes of a file up to its end, each piece as soon as it is there."""
    return iter(lambda: file.read(_READ_BYTES), b"")


def coding_by_magic(file: io.FileIO) -> Coding | None:
    """Return the compression that the first bytes of a regular file show: gz, zst, or None.

    No uncompressed table or object begins with these bytes: a key has no control character, and is not the
    torn UTF-8 that zstd begins with.
    """
    try:
        return coding_of(os.pread(file.fileno(), 4, 0))
    except OSError as error:
        raise failed_read(str(file.name), error, at=0) from None


def coding_of(head: bytes) -> Coding | None:
    r"""Return the compression that the first four bytes of a file show.

    Example:
        >>> coding_of(b"\x1f\x8b\x08\0"), coding_of(b"utt1")
        ('gz', None)
    """
    if head[:3] == b"\x1f\x8b\x08":
        return "gz"
    return "zst" if head == b"\x28\xb5\x2f\xfd" else None


def coding_by_name(name: str) -> Coding | None:
    """Return the compression by the end of a name: gz, zst, or None.

    Example:
        >>> coding_by_name("/data/a.ark.gz"), coding_by_name("/data/a.ark")
        ('gz', None)
    """
    if name.endswith(".gz"):
        return "gz"
    return "zst" if name.endswith(".zst") else None


def decompressed(file: io.RawIOBase, coding: Coding, path: str) -> Iterator[bytes]:
    """Yield the content of a compressed file, in pieces of bounded size.

    Args:
        file: the file or stream, at its start.
        coding: its compression.
        path: its name in messages.

    Raises:
        UnsupportedFormat: it is empty, torn, damaged, or of another compression.
        MissingDependency: zstandard is not installed.
    """
    size = _ZSTD_READ_BYTES if coding == "zst" else _READ_BYTES
    chunks = iter(lambda: file.read(size), b"")
    first = next(chunks, b"")
    if not first:
        raise _damaged(path, coding, "it is empty", 0)
    several = _chain(first, chunks)
    if coding in {"gz", "zst"}:
        yield from inflated(several, coding, path)
    elif coding == "bz2":
        yield from _inflated_members(several, bz2.BZ2Decompressor, coding, path)
    else:
        yield from _inflated_members(several, _new_xz, coding, path)


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _new_xz() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(memlimit=_MOST_XZ_BYTES)


def _inflated_members(
    chunks: Iterator[bytes],
    new: Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor],
    coding: Coding,
    path: str,
) -> Iterator[bytes]:
    """Yield the content of compressed members that follow each other."""
    member, read, ended = None, 0, 0
    for data in chunks:
        read, rest = read + len(data), data
        while rest or (member is not None and not member.needs_input):
            if member is None:
                rest = rest.lstrip(b"\0") if ended else rest
                if not rest:
                    break
                member = new()
            try:
                piece = member.decompress(rest, _READ_BYTES)
            except (OSError, lzma.LZMAError) as error:
                raise _damaged(path, coding, error, read) from None
            yield piece
            rest = b""
            if member.eof:
                rest, member, ended = member.unused_data, None, ended + 1
    if member is not None:
        raise _damaged(path, coding, "it ends too early", read)


def _damaged(path: str, coding: Coding, why: object, read: int) -> UnsupportedFormat:
    program = {"gz": "gzip", "zst": "zstd", "bz2": "bzip2", "xz": "xz"}[coding]
    return UnsupportedFormat(
        f"{path!r} cannot be decompressed as {program} at about byte {read:,}: {why}. Test it with "
        f"`{program} -t FILE` and get it again"
    )
