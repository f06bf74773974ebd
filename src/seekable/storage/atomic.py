"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterable

TEMPORARY_SUFFIX = ".tmp"
"""What the name of an unfinished file ends with; a killed writer leaves such a file behind."""


def write_atomically(path: str, data: bytes | Iterable[bytes | memoryview]) -> None:
    """Write a file so that every reader, now or after a crash, sees all of it or none.

    The bytes go to a temporary name in the same folder, are synced to disk, and the name is then
    changed in one step; a file of that name that was there before is replaced.

    Args:
        path: where the file shall be; its folder exists.
        data: the content, in one piece or in many.

    Raises:
        OSError: the folder cannot be written or the disk is full; nothing is left behind.

    Example:
        >>> import tempfile, os
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_atomically(os.path.join(folder, "greeting"), [b"good ", b"day"])
        ...     os.listdir(folder)
        ['greeting']
    """
    temporary = f"{path}.{secrets.token_hex(8)}{TEMPORARY_SUFFIX}"
    try:
        with create_new(temporary) as file:
            file.writelines([data] if isinstance(data, bytes) else data)
            file.flush()
            os.fsync(file.fileno())
        put_in_place(temporary, path)
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)


def create_new(path: str) -> BinaryIO:
    """Return a new file, open to be written.

    Raises:
        OSError: it cannot be made, or there is one of that name.
    """
    # Mode 666 less the umask, as for any new file; tempfile's 600 would hide the file from others.
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), "wb")


def put_in_place(temporary: str, path: str) -> None:
    """Give a file that is whole and synced its name, in the same folder, and make sure that it keeps it."""
    os.replace(temporary, path)
    sync_folder(os.path.dirname(path) or ".")


def sync_folder(folder: str) -> None:
    """Make sure that the files of a folder keep their names."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
