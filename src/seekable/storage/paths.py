"""The functions of ``os`` that readers and writers need, over local paths and addresses of stores.

A path with ``://`` in it is an address (``s3://bucket/corpus/a.jsonl``); other paths are handed to ``os``.
A folder of a store is a prefix of keys: it exists while a key lies below it. What is written goes through the
`FileOutput` of its path (`output_of`).
"""

from __future__ import annotations

import contextlib
import os
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast, final

from seekable._arguments import checked_path
from seekable._lazy import lazy
from seekable.errors import DataNotFound, InvalidArgument
from seekable.storage.addresses import is_address
from seekable.storage.far import far, is_far
from seekable.storage.files import put_in_place, regular_only, stat_file, write_atomically
from seekable.storage.listing import address_of_path

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from io import RawIOBase

    from seekable.storage import access, ranges
    from seekable.storage.access import Storage
    from seekable.storage.far import FileOutput
else:
    access = lazy("seekable.storage.access")
    ranges = lazy("seekable.storage.ranges")

_WINDOW_BYTES = 1 << 20
"""The bytes that a file of a store fetches at once for a reader: most small files are one request."""


@dataclass(frozen=True, slots=True)
class PathStatus:
    """The size of a file, and the number that changes with its content."""

    size: int
    """The number of bytes."""

    mtime_ns: int
    """The modification time in nanoseconds; of an object in a store, the number made of its etag."""


def absolute(path: str) -> str:
    """Return an address as it is, and the absolute path of every other path.

    Example:
        >>> absolute("s3://bucket/a"), absolute("/data/../a")
        ('s3://bucket/a', '/a')
    """
    return path if is_far(path) else os.path.abspath(path)


def exists(path: str) -> bool:
    """Return True if there is a file or a folder of this path.

    Raises:
        Unreachable, AccessDenied: the store cannot be asked.
    """
    return is_file(path) or is_folder(path) if is_far(path) else os.path.exists(path)


def is_file(path: str) -> bool:
    """Return True if there is a file of this path.

    Raises:
        Unreachable, AccessDenied: the store cannot be asked.
    """
    if not is_far(path):
        return os.path.isfile(path)
    try:
        status(path)
    except DataNotFound:
        return False
    return True


def is_folder(path: str) -> bool:
    """Return True if there is a folder of this path; of web servers, which list nothing, always False.

    Raises:
        Unreachable, AccessDenied: the store cannot be asked.
    """
    return far().is_folder(path) if is_far(path) else os.path.isdir(path)


def list_folder(path: str) -> list[str]:
    """Return the names of the files and folders directly in a folder.

    Raises:
        DataNotFound: there is no such folder.
        UnsupportedFormat: it is an address of a web server, which lists nothing.
        OSError: a local folder cannot be listed.
        Unreachable, AccessDenied: the store cannot be asked.
    """
    return far().list_folder(path) if is_far(path) else os.listdir(path)


def listing_once(path: str) -> AbstractContextManager[None]:
    """List each folder of a store at most once inside of the block, if a path is in one."""
    return far().listing_once() if is_far(path) else nullcontext()


def status(path: str) -> PathStatus:
    """Return the size of a file, and its modification time or the number made of its etag.

    Raises:
        DataNotFound: the file does not exist, or is not a regular file.
        AccessDenied: this user may not read it.
        Unreachable: the store cannot be asked.
    """
    if not is_far(path):
        found = stat_file(path)
        return PathStatus(found.st_size, found.st_mtime_ns)
    return PathStatus(*far().look(path))


def open_file(path: str) -> RawIOBase:
    """Return a file for reading, without a buffer; it can be positioned.

    A file of a store is fetched in pieces of up to 1 MiB, each of the version that was there first.

    Raises:
        OSError: a local file cannot be opened.
        DataNotFound, AccessDenied, Unreachable: a file of a store cannot be read.
        IndexStale: when it is read, the object in the store is another one.
    """
    if not is_far(path):
        return open(path, "rb", buffering=0, opener=regular_only)
    source = far().ranges(path, far().look(path))
    return cast("RawIOBase", ranges.RangeFile(source, window_bytes=_WINDOW_BYTES))


def read_bytes(path: str) -> bytes:
    """Return all bytes of a file.

    Raises:
        OSError: a local file cannot be read.
        DataNotFound, AccessDenied, Unreachable: a file of a store cannot be read.
        IndexStale: the object in the store was replaced meanwhile.
    """
    if not is_far(path):
        with open(path, "rb", opener=regular_only) as file:
            return file.read()
    source = far().ranges(path, far().look(path))
    return bytes(source.range(0, source.size))


@final
class _LocalFiles:
    """`FileOutput` over the functions of ``os``."""

    def size(self, path: str) -> int | None:
        try:
            return os.stat(path).st_size
        except (FileNotFoundError, NotADirectoryError):
            return None

    def sizes(self, folder: str) -> dict[str, int]:
        if not os.path.isdir(folder):
            return {}
        with os.scandir(folder) as entries:
            return {entry.name: entry.stat().st_size for entry in entries if entry.is_file()}

    def names(self, folder: str) -> list[str]:
        return os.listdir(folder)

    def has_folder(self, folder: str) -> bool:
        return os.path.isdir(folder)

    def make_folder(self, folder: str) -> None:
        os.makedirs(folder, exist_ok=True)

    def read(self, path: str) -> bytes:
        with open(path, "rb", opener=regular_only) as file:
            return file.read()

    def write(self, path: str, data: bytes | memoryview) -> None:
        write_atomically(path, [data])

    def seen(self, path: str) -> object:
        """Return None: a lock of this machine keeps other writers out."""

    def replace(self, path: str, data: bytes, *, old: object) -> object:
        self.write(path, data)
        return old

    def place(self, made: str, path: str) -> None:
        put_in_place(made, path)

    def local(self, paths: Sequence[str]) -> AbstractContextManager[list[str]]:
        return contextlib.nullcontext(list(paths))

    def kept_local(self, path: str, size: int) -> str:
        return path

    def delete(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def scratch(self, folder: str) -> str:
        return folder


LOCAL: Final[FileOutput] = _LocalFiles()


def output_of(path: str) -> FileOutput:
    """Return what writes a file, or a folder, of this path.

    Raises:
        MissingDependency: it is an address, and nothing that writes to stores is installed.
    """
    return far().output if is_address(path) else LOCAL


def output_path(path: str | os.PathLike[str], storage: Storage | None = None) -> str:
    """Return the absolute path, or the address, of a file or a folder that is to be written or read.

    The bucket of an address is mounted as ``storage`` says; a slash at its end is left out.

    Raises:
        WrongType: the path is neither a text nor a path, or ``storage`` is no ``sk.Storage``.
        InvalidArgument: options for a local path, or wrong ones; or no file can have such a name.
    """
    reach = None if storage is None else access.checked_reach(storage)
    given = checked_path(path)
    given = (address_of_path(given) if isinstance(path, os.PathLike) else None) or given
    if is_address(given):
        options, file_system = (None, None) if reach is None else (reach.options, reach.filesystem)
        return far().mount(given, options, file_system).rstrip("/")
    if reach is not None and reach.is_for_stores:
        message = f"storage is for addresses of stores, and {given!r} is a local path: leave it out"
        raise InvalidArgument(message)
    return os.path.abspath(os.path.expanduser(given))
