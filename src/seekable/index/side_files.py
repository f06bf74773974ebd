"""The files beside data files that surveys have read, compared with the files that are there now."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from seekable._lazy import lazy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seekable.index.surveyor import SideFile
    from seekable.storage import paths
else:
    paths = lazy("seekable.storage.paths")

__all__ = ["changed_beside"]


def changed_beside(path: str, beside: Iterable[SideFile]) -> str | None:
    """Return the path of the first file beside a data file that has changed, come or gone; None if none has.

    Args:
        path: the path of the data file.
        beside: the files beside it, as they were when it was surveyed.
    """
    folder = os.path.dirname(path)
    for side in beside:
        there = _beside(folder, side.file)
        if _status(there) != (side.size, side.mtime_ns):
            return there
    return None


def _beside(folder: str, name: str) -> str:
    """Return the path of a file relative to a folder; in a store the folders above are resolved by name."""
    path = os.path.join(folder, name)
    scheme, mark, key = path.partition("://")
    return f"{scheme}://{os.path.normpath(key)}" if mark and ".." in key else path


def _status(path: str) -> tuple[int, int]:
    """Return the size and the modification time of a file, -1 and -1 if it is not there."""
    try:
        if "://" in path:
            found = paths.status(path)
            return found.size, found.mtime_ns
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return -1, -1
    return status.st_size, status.st_mtime_ns
