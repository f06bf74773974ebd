"""One process at a time, and the others wait."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_QUIETLY_SECONDS = 1.0


@contextlib.contextmanager
def locked(path: str, *, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold a lock file; a process that ends in any way lets go of it.

    Args:
        path: the lock file, which stays; its folder exists.
        waiting: is called once if another process has held it for a second.

    Raises:
        OSError: the folder cannot be written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with locked(os.path.join(folder, "lock"), waiting=lambda: print("somebody has it")):
        ...         print("nobody else has it")
        nobody else has it
    """
    # Whoever may write the folder must be able to take its lock, whatever the umask of the one who made it.
    lock = FileLock(path, mode=os.stat(os.path.dirname(path) or ".").st_mode & 0o666)
    try:
        lock.acquire(timeout=_QUIETLY_SECONDS)
    except Timeout:
        waiting()
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
