"""Local folders for what writers of stores keep: locks, unfinished files, states, copies of small objects."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import time
from typing import TYPE_CHECKING, Final

import xxhash

from seekable._lazy import lazy
from seekable.storage.addresses import parse
from seekable.storage.files import cache_folder, make_private_folder

if TYPE_CHECKING:
    import filelock

    from seekable.remote import mounts
else:
    filelock = lazy("filelock")
    mounts = lazy("seekable.remote.mounts")

__all__ = ["scratch_folder"]

_ABANDONED_SECONDS: Final = 60 * 24 * 3600.0
"""A folder that was not used for so long is removed."""

_LOCK: Final = ".seekable-write.lock"
"""A part of the names of lock files."""

_REMOVED: Final = ".removed-"

_swept: set[str] = set()


def scratch_folder(folder: str) -> str:
    """Return the local folder for what is not for readers: locks, unfinished files, states.

    It is in the cache folder of this user, and is made if it does not exist. The first call of a process
    removes those that were not used for 60 days and whose locks are free: no call has continued what was
    written there.

    Args:
        folder: the address of a folder.
    """
    place = f"{folder} {mounts.options_of(folder).place(parse(folder).scheme)}"
    root = os.path.join(cache_folder(), "writing")
    made = os.path.join(root, xxhash.xxh3_128_hexdigest(place.encode()))
    make_private_folder(made)
    with contextlib.suppress(OSError):
        os.utime(made)
    if root not in _swept:
        _swept.add(root)
        _remove_abandoned(root)
    return made


def _remove_abandoned(root: str) -> None:
    """Remove the folders that were not used for long; other processes may do so at the same time."""
    oldest = time.time() - _ABANDONED_SECONDS
    for name in os.listdir(root):
        path = os.path.join(root, name)
        with contextlib.suppress(OSError, filelock.Timeout):
            if name.startswith(_REMOVED):  # A process was killed while it removed this folder.
                shutil.rmtree(path, ignore_errors=True)
            elif _last_use(path) < oldest:
                _remove(path, os.path.join(root, f"{_REMOVED}{secrets.token_hex(8)}"))


def _last_use(folder: str) -> float:
    """Return the latest modification time of a folder and of what is in it, in seconds."""
    times = [os.stat(folder).st_mtime]
    for above, folders, files in os.walk(folder):
        times += [os.lstat(os.path.join(above, name)).st_mtime for name in (*folders, *files)]
    return max(times)


def _remove(folder: str, renamed: str) -> None:
    """Remove a folder of which no lock is held.

    Raises:
        Timeout: a lock is held.
        OSError: the folder cannot be removed, or is gone.
    """
    with contextlib.ExitStack() as locks:
        for name in os.listdir(folder):
            if _LOCK in name:
                locks.enter_context(filelock.FileLock(os.path.join(folder, name), timeout=0))
        os.rename(folder, renamed)
        shutil.rmtree(renamed, ignore_errors=True)
