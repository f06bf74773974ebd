"""Files that a record names: opened only below folders that the user gave, and only if regular.

A record is not trusted: its names may point anywhere. Commands and addresses are refused before any look at
the disk, and a name is followed to its real path before it is compared with the folders.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from seekable._arguments import checked_path
from seekable.errors import AccessDenied, BadValue, DataNotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MediaRoots", "media_roots"]

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://", re.ASCII)
"""The scheme of an address: `https://`, `s3://`, `file://`."""

_OPTION = "--media-root FOLDER"


@dataclass(frozen=True, slots=True)
class MediaRoots:
    """Folders below which files that records name may be read; made by ``media_roots``."""

    folders: tuple[Path, ...]
    """Real paths of folders."""

    def open(self, name: str) -> BinaryIO:
        """Return the open file that a record names, to be closed by the caller.

        A relative name is looked for below each folder in turn.

        Raises:
            BadValue: the name is empty, or no path of a file: a command, an address, with a NUL.
            AccessDenied: the file is not below a folder, or is no regular file (a pipe, a device, a folder).
            DataNotFound: there is no such file below a folder.
        """
        _check_name(name)
        if not self.folders:
            message = f"{name!r} is a file that a record names; such files are read only with {_OPTION}"
            raise AccessDenied(message)
        inside = [path for folder in self.folders if (path := _below(folder, name)) is not None]
        for path in inside:
            try:
                return _open_regular(path, name)
            except FileNotFoundError:
                continue
            except AccessDenied:
                raise
            except PermissionError as error:
                message = f"{name!r}, which a record names, cannot be read: {error.strerror}"
                raise AccessDenied(message) from error
            except OSError as error:
                message = f"{name!r}, which a record names, cannot be opened: {error.strerror}"
                raise BadValue(message) from error
        folders = ", ".join(str(folder) for folder in self.folders)
        if inside:
            message = f"{name!r}, which a record names, is not below {folders}"
            raise DataNotFound(message)
        message = f"{name!r}, which a record names, lies outside of {folders}; give its folder with {_OPTION}"
        raise AccessDenied(message)


def media_roots(folders: Sequence[str | os.PathLike[str]]) -> MediaRoots:
    """Return folders below which files that records name may be read.

    Raises:
        DataNotFound: one is no folder.
    """
    real = []
    for folder in folders:
        path = checked_path(folder)
        if not os.path.isdir(path):
            message = f"{path!r} of {_OPTION} is no folder"
            raise DataNotFound(message)
        real.append(Path(os.path.realpath(path)))
    return MediaRoots(tuple(real))


def _check_name(name: str) -> None:
    stripped = name.strip()
    wrong = {
        "is empty": not stripped,
        "is a command": stripped.startswith("|") or stripped.endswith("|"),
        "is an address": _ADDRESS.match(stripped) is not None,
        "has a NUL": "\0" in name,
    }
    for what, holds in wrong.items():
        if holds:
            message = f"{name[:200]!r}, which a record names, {what}; only paths of files are read"
            raise BadValue(message)
    try:
        os.fsencode(name)
    except UnicodeEncodeError as error:
        message = f"{name[:200]!r}, which a record names, is no path: it has a lone surrogate"
        raise BadValue(message) from error


def _below(folder: Path, name: str) -> Path | None:
    """Return the real path of a name, if it is below the folder; whether it exists is not looked at."""
    path = Path(os.path.realpath(folder / name))
    return path if path != folder and path.is_relative_to(folder) else None


def _open_regular(path: Path, name: str) -> BinaryIO:
    """Open a real path without following a link at its end and without waiting for a pipe's writer."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    message = f"{name!r}, which a record names, is no regular file"
    raise AccessDenied(message)
