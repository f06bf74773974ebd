"""The folder that files are written to: what is there, what of it stays, and what must not be there."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from seekable.errors import AccessDenied, DataNotFound, InvalidArgument
from seekable.formats.registry import SUFFIXES
from seekable.storage.files import TEMPORARY_SUFFIX
from seekable.storage.listing import find_files
from seekable.writing.manifest import MANIFEST

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seekable.writing.form import Form
    from seekable.writing.manifest import Manifest
    from seekable.writing.shards import Shards

__all__ = [
    "LOCK",
    "finished",
    "made_folder",
    "recorded",
    "refuse_others",
    "remove_all",
    "remove_torn",
    "unfinished_name",
]

LOCK = ".seekable-write.lock"

_TORN = re.compile(
    rf"\.part-\d+-of-\d+(\.[a-z]+)+\.[0-9a-f]{{16}}{re.escape(TEMPORARY_SUFFIX)}"
    rf"|{re.escape(MANIFEST)}\.[0-9a-f]{{16}}{re.escape(TEMPORARY_SUFFIX)}"
)


def unfinished_name(name: str, token: str) -> str:
    """Return what a file is called while it is written: a name that no folder or glob is searched for.

    Example:
        >>> unfinished_name("part-00000-of-00001.jsonl", "0123456789abcdef")
        '.part-00000-of-00001.jsonl.0123456789abcdef.tmp'
    """
    return f".{name}.{token}{TEMPORARY_SUFFIX}"


def made_folder(path: str) -> None:
    """Make a folder, and those above it, unless it is there.

    Raises:
        InvalidArgument: something else is there.
        AccessDenied: this user may not write there.
    """
    try:
        os.makedirs(path, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        message = f"{path!r} cannot be a folder: there is a file of that name, or of one above it"
        raise InvalidArgument(message) from None
    except PermissionError as error:
        raise AccessDenied(f"the folder {path!r} cannot be made: {error}; name another one") from None
    if not os.access(path, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        message = f"the folder {path!r} cannot be written by this user (uid {os.geteuid()}): name another one"
        raise AccessDenied(message)


def refuse_others(path: str, ours: Iterable[str]) -> None:
    """Refuse a folder of which ``sk.open`` would take more for data than the files written there.

    Args:
        path: the folder.
        ours: the names of the files that were, or are to be, written there.

    Raises:
        InvalidArgument: there is such a file.
    """
    try:
        runs = find_files(path, suffixes={*SUFFIXES, ".parquet"})
    except DataNotFound:
        return
    others = sorted({name for run in runs for name in run.names} - set(ours))
    if others:
        more = f" and {len(others) - 1:,} more" if len(others) > 1 else ""
        message = (
            f"the folder {path!r} holds data that was not written by such a call ({others[0]!r}{more}): "
            f"opened as a whole it would be more than the dataset. Name a new folder, or one without data"
        )
        raise InvalidArgument(message)


def recorded(path: str, manifest: Manifest) -> dict[int, tuple[int, int]]:
    """Return the rows and bytes of those files that the manifest tells of and that still have that size."""
    shards = manifest.identity.shards
    return {
        number: (rows, size)
        for number, (rows, size) in manifest.finished.items()
        if 0 <= number < len(shards) and _size(os.path.join(path, shards.name(number))) == size
    }


def finished(path: str, manifest: Manifest, form: Form) -> dict[int, tuple[int, int]]:
    """Return the rows and bytes of all files that are there and whole.

    A file has its name only since it was whole; what is left to ask is whether it still is.
    """
    shards, there = manifest.identity.shards, recorded(path, manifest)
    for name in set(os.listdir(path)) & set(shards.names):
        number = int(name.split("-")[1])
        # One that is recorded and has another size was damaged since.
        if number in manifest.finished:
            continue
        file = os.path.join(path, name)
        rows = form.rows_in(file)
        if rows is not None and rows <= len(shards.rows(number)):
            there[number] = rows, os.path.getsize(file)
    return dict(sorted(there.items()))


def remove_torn(path: str) -> None:
    """Remove what killed processes left; nobody else is writing while the lock is held."""
    for name in os.listdir(path):
        if _TORN.fullmatch(name):
            os.unlink(os.path.join(path, name))


def remove_all(path: str, shards: Shards) -> None:
    """Remove the files that a manifest tells of."""
    for name in set(os.listdir(path)) & set(shards.names):
        os.unlink(os.path.join(path, name))


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return None
