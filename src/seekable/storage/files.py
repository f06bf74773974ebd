"""Local files: written whole or not at all, locked for one process at a time, mapped without a descriptor.

Before Python 3.13 ``mmap.mmap`` keeps a descriptor of its own for each map, so an open file would take two,
and one of them could not be closed while a slice of the map is in use. A map of `map_file` takes none: the
descriptor stays the caller's, who may close it at any time.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import mmap
import os
import stat
import weakref
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from seekable._lazy import lazy
from seekable.errors import AccessDenied, DataNotFound, Unreachable

if TYPE_CHECKING:
    import shlex
    from collections.abc import Callable, Iterable, Iterator

    import filelock
else:
    shlex = lazy("shlex")
    filelock = lazy("filelock")

PLACEHOLDER_HEAD = b'{"seekable_hub":1,'
"""The first bytes of a placeholder, a small file that stands for a file that lies elsewhere."""

TEMPORARY_SUFFIX = ".tmp"
"""The end of the name of an unfinished file; a killed writer leaves such a file behind."""

_QUIETLY_SECONDS = 1.0
"""The time for which `locked` waits before it says so."""

_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The errors of a full disk and of limits, for which the system names no file."""

_LOOK_BELOW = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
"""How a folder is opened to look at files below it; on Linux that takes no right to list it."""

READ_BYTES = 64 << 10
"""A file up to this size is read: the number of maps is bounded, and there may be hundreds of indexes."""

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = (
    *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int),
    *(ctypes.c_int, ctypes.c_int, ctypes.c_ssize_t),
)
_LIBC.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_LIBC.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)

_FAILED = ctypes.c_void_p(-1).value


def write_atomically(path: str, data: bytes | Iterable[bytes | memoryview]) -> None:
    """Write a file so that every reader, now or after a crash, sees all of it or none.

    The bytes go to a temporary name in the same folder, are synced to disk, and the name is then
    changed in one step; a file of that name that was there before is replaced.

    Args:
        path: the path of the file; its folder exists.
        data: the content, in one piece or in many.

    Raises:
        AccessDenied: a folder has the name of the file.
        OSError: the folder cannot be written or the disk is full; it names the file, and nothing is left
            behind.

    Example:
        >>> import tempfile, os
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_atomically(os.path.join(folder, "greeting"), [b"good ", b"day"])
        ...     os.listdir(folder)
        ['greeting']
    """
    temporary = f"{path}.{os.urandom(8).hex()}{TEMPORARY_SUFFIX}"
    try:
        with create_new(temporary) as file:
            file.writelines([data] if isinstance(data, bytes) else data)
            file.flush()
            os.fsync(file.fileno())
        put_in_place(temporary, path)
    except IsADirectoryError:
        raise AccessDenied(f"{path!r} is a folder, and a file is written there: remove it") from None
    except OSError as error:
        if error.errno in _NO_ROOM and error.filename is None:
            error.filename = path
        raise
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)


def create_new(path: str) -> BinaryIO:
    """Return a new file, open for writing.

    Raises:
        OSError: the file cannot be made, or one of that name exists.
    """
    # Mode 666 less the umask, as for any new file; tempfile's 600 would hide the file from others.
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), "wb")


def put_in_place(temporary: str, path: str) -> None:
    """Rename a complete, synced file within its folder, and sync the folder, so that the name lasts."""
    os.replace(temporary, path)
    sync_folder(os.path.dirname(path) or ".")


def sync_folder(folder: str) -> None:
    """Sync a folder to disk, so that the names of its files outlast a crash."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def locked(path: str, *, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold a lock file; the lock is released when the process ends, however it ends.

    Args:
        path: the lock file, which stays; its folder exists.
        waiting: is called once if another process has held the lock for a second.

    Raises:
        AccessDenied: the lock file is a link.
        OSError: the folder cannot be written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with locked(os.path.join(folder, "lock"), waiting=lambda: print("somebody has it")):
        ...         print("nobody else has it")
        nobody else has it
    """
    # Every user who may write the folder must be able to take its lock, also after a strict umask.
    lock = filelock.FileLock(path, mode=os.stat(os.path.dirname(path) or ".").st_mode & 0o666)
    try:
        try:
            lock.acquire(timeout=_QUIETLY_SECONDS)
        except filelock.Timeout:
            waiting()
            lock.acquire()
    except OSError as error:
        # filelock follows no link: it would empty the file that the link leads to.
        if error.errno == errno.ELOOP:
            message = f"the lock file {path!r} is a link, and is not followed: remove it"
            raise AccessDenied(message) from None
        if error.errno == errno.EISDIR:
            raise AccessDenied(f"{path!r} is a folder, and a lock file has this name: remove it") from None
        raise
    try:
        yield
    finally:
        lock.release()


def regular_only(path: str, flags: int) -> int:
    """Open a file that ends: an ``opener`` for ``open``, which waits for no writer of a named pipe.

    Raises:
        AccessDenied: there is a named pipe, a device or a socket.
        OSError: it cannot be opened.

    Example:
        >>> with open(__file__, "rb", opener=regular_only) as file:
        ...     file.read(3)
        b'\"\"\"'
        >>> open("/dev/zero", "rb", opener=regular_only)
        Traceback (most recent call last):
        ...
        seekable.errors.AccessDenied: '/dev/zero' is not a regular file but a pipe, a device or a socket, ...
    """
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):  # ``open`` itself refuses a folder
        return descriptor
    os.close(descriptor)
    raise AccessDenied(
        f"{path!r} is not a regular file but a pipe, a device or a socket, which may have no end: remove it"
    )


def read_or_map(path: str, *, size: int | None = None) -> bytes | memoryview:
    """Return all bytes of a file that does not change: read if they are few, memory-mapped if they are many.

    No descriptor stays open.

    Args:
        path: the path of the file.
        size: the expected number of bytes; None for any.

    Raises:
        FileNotFoundError: the file does not exist, has another size, or is a folder.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     _ = file.write(b"good day"), file.flush()
        ...     read_or_map(file.name, size=8)
        b'good day'
    """
    if os.path.isdir(path):
        raise FileNotFoundError(f"{path!r} is a folder, and should be a file")
    with open(path, "rb", opener=regular_only) as file:
        found = os.fstat(file.fileno()).st_size
        if size is not None and found != size:
            raise FileNotFoundError(f"{path!r} has {found} bytes and not {size}")
        if found <= READ_BYTES:
            return file.read()
        return map_file(file.fileno(), found)


def shell_path(path: str) -> str:
    """Return a path as it is written in a shell; of an address elsewhere the name of the file alone.

    Example:
        >>> shell_path("/data/a b.gz"), shell_path("hf://datasets/me/web@01/data/a.gz")
        ("'/data/a b.gz'", 'a.gz')
    """
    return shlex.quote(path.rpartition("/")[2] if "://" in path else path)


def make_private_folder(folder: str) -> None:
    """Make a folder, and those above it that lack, which this user alone may read.

    What is fetched from a private bucket, its listings and its index are no more public than the bucket.

    Args:
        folder: the folder; one that is there keeps its rights.

    Raises:
        OSError: it cannot be made.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     make_private_folder(os.path.join(folder, "a", "b"))
        ...     [oct(os.stat(os.path.join(folder, name)).st_mode & 0o777) for name in ("a", "a/b")]
        ['0o700', '0o700']
    """
    lacking = []
    while folder and not os.path.isdir(folder):
        lacking.append(folder)
        folder = os.path.dirname(folder)
    for each in reversed(lacking):
        with contextlib.suppress(FileExistsError):
            os.mkdir(each, 0o700)
    if lacking and not os.path.isdir(lacking[0]):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), lacking[0])


def cache_folder() -> str:
    """Return the folder of seekable in the user's cache folder, ``XDG_CACHE_HOME`` or ``~/.cache``."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "seekable")


def file_identity(path: str) -> tuple[int, int] | None:
    """Return the numbers of the device and the inode of a file, None if it is not there."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino


def stat_file(path: str) -> os.stat_result:
    """Return the status of a data file.

    Raises:
        DataNotFound: the file does not exist, or is not a regular file.
        AccessDenied: this user may not search a folder above it.
    """
    try:
        status = os.stat(path)
    except PermissionError:
        raise unreadable_error(path) from None
    except OSError as error:
        if error.errno not in _NOT_THERE:
            raise
        raise DataNotFound(f"there is no file {path!r}, or it links to one that is gone") from None
    if not stat.S_ISREG(status.st_mode):
        raise DataNotFound(f"{path!r} is not a regular file; only those can be indexed")
    return status


def stat_files(folder: str, names: Iterable[str]) -> Iterator[os.stat_result]:
    """Yield the status of many data files, given their paths relative to a folder.

    Raises:
        DataNotFound, AccessDenied: see `stat_file`.

    Example:
        >>> [status.st_size > 0 for status in stat_files(os.path.dirname(__file__), ["files.py"])]
        [True]
    """
    # Below an open folder the system looks up no folders above: whole paths take half as long again.
    try:
        below = os.open(folder, _LOOK_BELOW)
    except OSError:  # That it is gone, or may not be opened, is said of each file.
        yield from (stat_file(os.path.join(folder, name)) for name in names)
        return
    try:
        for name in names:
            try:
                status = os.stat(name, dir_fd=below)
            except OSError:
                status = stat_file(os.path.join(folder, name))
            yield status if stat.S_ISREG(status.st_mode) else stat_file(os.path.join(folder, name))
    finally:
        os.close(below)


def has_access(path: str, mode: int) -> bool:
    """Return True if this user may access a file or folder: `os.access` for the effective user.

    Args:
        path: the file or folder.
        mode: `os.R_OK`, `os.W_OK`, `os.X_OK`, or several of them.

    Example:
        >>> has_access("/no such file", os.R_OK)
        False
    """
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def unreadable_error(path: str) -> AccessDenied:
    """Return the error for a file or folder that this user may not read.

    Example:
        >>> str(unreadable_error("/secret/a.jsonl")).partition(";")[0].rpartition(" (")[0]
        "'/secret/a.jsonl' cannot be read by this user"
    """
    return AccessDenied(
        f"{path!r} cannot be read by this user (uid {os.geteuid()}): {_rights(path)}; "
        f"give the user the right to read it and to search the folders above it, or leave it out"
    )


def _rights(path: str) -> str:
    try:
        status = os.stat(path)
    except OSError:
        return "a folder above it may not be searched"
    return f"it has mode {stat.filemode(status.st_mode)} and belongs to uid {status.st_uid}"


def failed_read(path: str, error: OSError, *, at: int | None = None) -> Unreachable:
    """Return the error of a local file that the system cannot read.

    Args:
        path: the file.
        error: the error of the system.
        at: the byte of the file; None if it could not be opened.
    """
    where = "be opened" if at is None else f"be read at byte {at:,}"
    name = errno.errorcode.get(error.errno or 0, type(error).__name__)
    return Unreachable(
        f"{path!r} cannot {where}: {error.strerror or error} ({name}). It is not a file of data, or its "
        f"disk or its server fails: look into the log of the system, or copy the file from elsewhere"
    )


def map_file(descriptor: int, size: int, *, random: bool = False) -> memoryview:
    """Return the first bytes of an open file, mapped into memory and read-only.

    The map lasts as long as the view or any slice of it; the descriptor may be closed at once.

    Args:
        descriptor: the file.
        size: the number of bytes to map, at most as many as the file has.
        random: True if the system shall not read ahead around the bytes that are used.

    Raises:
        OSError: the file cannot be mapped.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryFile() as file:
        ...     _ = file.write(b"good day"), file.flush()
        ...     view = map_file(file.fileno(), 8)
        >>> bytes(view[5:])
        b'day'
    """
    if not size:
        return memoryview(b"")  # The system refuses a map of no bytes.
    address = _LIBC.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
    if address == _FAILED:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    mapped = _bytes_type(size.bit_length()).from_address(address)
    # When the process exits, other threads may still read: the system removes the map then.
    weakref.finalize(mapped, _LIBC.munmap, address, size).atexit = False
    if random and hasattr(mmap, "MADV_RANDOM"):
        _LIBC.madvise(address, size, mmap.MADV_RANDOM)
    return memoryview(mapped).cast("B")[:size].toreadonly()


def drop_pages(mapped: memoryview) -> None:
    """Give the memory of a map back to the system, after a large file was read from it.

    Later readers find the same bytes: the pages may stay in the cache of the system.

    Args:
        mapped: what `map_file` returned, or a slice of it; other memory would lose its bytes.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryFile() as file:
        ...     _ = file.write(b"good day" * 10_000), file.flush()
        ...     view = map_file(file.fileno(), 80_000)
        >>> drop_pages(view[8:])
        >>> bytes(view) == b"good day" * 10_000
        True
    """
    page, count = mmap.PAGESIZE, mapped.nbytes
    if not count or not hasattr(mmap, "MADV_DONTNEED"):
        return
    start = np.frombuffer(mapped, np.uint8).ctypes.data
    first, end = -(-start // page) * page, (start + count) // page * page
    if first < end:
        _LIBC.madvise(first, end - first, mmap.MADV_DONTNEED)


@functools.cache
def _bytes_type(bits: int) -> Any:
    """Return the type of an array of bytes, longer than any number with so many bits.

    There are few such types, and each takes memory; the view is cut to the size of the file.
    """
    return ctypes.c_char * (1 << bits)
