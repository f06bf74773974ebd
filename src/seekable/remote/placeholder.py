"""Placeholders: small files that stand for files of the Hub, so that an index can be kept of those.

A placeholder lies at ``HUB/datasets--NAMESPACE--NAME/COMMIT/PATH``, where the file lies in the repository. It
says which content the file has, and never at which commit: content that stays the same from one commit to the
next is the same data. All placeholders have one modification time, so that one that was lost is replaced by
one that is no different.
"""

from __future__ import annotations

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seekable.errors import AccessDenied, UnsupportedFormat
from seekable.storage.atomic import TEMPORARY_SUFFIX, create_new, sync_folder
from seekable.storage.lock import locked

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "LARGEST_PLACEHOLDER",
    "RemoteFile",
    "is_placeholder",
    "path_in",
    "read_placeholder",
    "repo_folder",
    "told_path",
    "write_placeholders",
]

LARGEST_PLACEHOLDER = 8 << 10
"""How many bytes a placeholder has at most: a path in git is shorter."""

_AT_ONCE = 16
"""How many files are synced at once: a disk syncs them together in about the time of one."""

_MAGIC = b'{"seekable_hub":1,'
_MODIFIED_NS = 946_684_800 * 10**9
_FOLDER = re.compile(
    r"(?P<hub>.*/hub)/datasets--(?P<repo>[^/]+)/(?P<revision>[0-9a-f]{40})(?P<path>/.*)?", re.DOTALL
)
_TOLD = "hf://datasets/"


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """One file of a repository on the Hub, at one commit.

    Example:
        >>> RemoteFile("/cache/hub", "me/web", "0" * 40, "data/a.parquet", size=9, etag="e").told
        'hf://datasets/me/web@0000000000000000000000000000000000000000/data/a.parquet'
    """

    hub: str
    """The folder on this machine in which placeholders and blocks lie."""

    repo: str
    """``NAMESPACE/NAME``, or a name alone."""

    revision: str
    """The commit."""

    path: str
    """Where it lies in the repository."""

    size: int
    """How many bytes it has."""

    etag: str
    """What the Hub knows its content by: a digest."""

    @property
    def told(self) -> str:
        """What it is called where people read it; ``huggingface_hub`` opens it by that name too."""
        return f"{_TOLD}{self.repo}@{self.revision}/{self.path}"

    @property
    def placeholder(self) -> str:
        """Where its placeholder lies."""
        return os.path.join(repo_folder(self.hub, self.repo), self.revision, self.path)


def repo_folder(hub: str, repo: str) -> str:
    """Return the folder of a repository.

    Example:
        >>> repo_folder("/cache/hub", "me/web")
        '/cache/hub/datasets--me--web'
    """
    return os.path.join(hub, f"datasets--{repo.replace('/', '--')}")


def told_path(path: str) -> str:
    """Return what a file is called where people read it: of a placeholder, its file on the Hub.

    Example:
        >>> told_path(f"/cache/hub/datasets--me--web/{'0' * 40}/data/a.parquet")[:23]
        'hf://datasets/me/web@00'
        >>> told_path("/data/a.parquet")
        '/data/a.parquet'
    """
    place = _FOLDER.fullmatch(path)
    if place is None:
        return path
    return f"{_TOLD}{_repo(place['repo'])}@{place['revision']}{place['path'] or ''}"


def path_in(roots: Iterable[str], told: str) -> str:
    """Return the path of a file that is called so, if it is below one of some roots; else the name itself.

    Example:
        >>> root = f"/cache/hub/datasets--me--web/{'0' * 40}"
        >>> path_in([root], f"hf://datasets/me/web@{'0' * 40}/a.parquet") == f"{root}/a.parquet"
        True
    """
    if told.startswith(_TOLD):
        for root in roots:
            start = f"{told_path(root)}/"
            if told.startswith(start):
                return os.path.join(root, told[len(start) :])
    return told


def is_placeholder(head: bytes | memoryview, size: int) -> bool:
    """Tell whether a file is one.

    Args:
        head: its first bytes, at least 32 if it has so many.
        size: how many it has.
    """
    return size <= LARGEST_PLACEHOLDER and bytes(head[: len(_MAGIC)]) == _MAGIC


def read_placeholder(path: str, text: bytes) -> RemoteFile:
    """Return the file that a placeholder stands for.

    Args:
        path: where it lies.
        text: all of it.

    Raises:
        UnsupportedFormat: it is damaged, or does not lie where it was written.
    """
    place = _FOLDER.fullmatch(path)
    try:
        said = json.loads(text)
        size, etag, name = said["size"], said["etag"], said["path"]
    except (ValueError, KeyError, TypeError):
        size = etag = name = None
    if (
        place is None
        or not isinstance(size, int)
        or not isinstance(etag, str)
        or not isinstance(name, str)
        or place["path"] != f"/{name}"
    ):
        message = (
            f"{path!r} stands for a file of the Hub, and was moved or damaged: remove it, and open the data "
            f"by its name, sk.open('hf:REPO:SPLIT:COLUMN')"
        )
        raise UnsupportedFormat(message)
    return RemoteFile(place["hub"], _repo(place["repo"]), place["revision"], name, size, etag)


def write_placeholders(files: Sequence[RemoteFile]) -> None:
    """Write the placeholders of some files of one repository that are not there yet.

    Raises:
        AccessDenied: the folder cannot be written.
    """
    missing = [file for file in files if not _is_there(file)]
    if not missing:
        return
    folder = repo_folder(missing[0].hub, missing[0].repo)
    try:
        os.makedirs(folder, exist_ok=True)
        # One at a time: a placeholder that somebody has open already must not be replaced by its like.
        with locked(os.path.join(folder, "lock"), waiting=lambda: None):
            _write([file for file in missing if not _is_there(file)])
    except PermissionError as error:
        message = (
            f"{folder!r} cannot be written, where notes on the files of {missing[0].repo!r} are kept "
            f"({error}): name another folder with index_dir= or SEEKABLE_INDEX_DIR"
        )
        raise AccessDenied(message) from error


def _repo(folder: str) -> str:
    return folder.replace("--", "/")


def _text(file: RemoteFile) -> bytes:
    said = {"path": file.path, "size": file.size, "etag": file.etag}
    return _MAGIC + json.dumps(said, separators=(",", ":")).encode()[1:] + b"\n"


def _is_there(file: RemoteFile) -> bool:
    try:
        status = os.stat(file.placeholder)
    except OSError:
        return False
    return status.st_mtime_ns == _MODIFIED_NS and status.st_size == len(_text(file))


def _write(files: Sequence[RemoteFile]) -> None:
    folders = {os.path.dirname(file.placeholder) for file in files}
    for folder in folders:
        os.makedirs(folder, exist_ok=True)
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        for temporary, file in zip(threads.map(_write_aside, files), files, strict=True):
            os.replace(temporary, file.placeholder)
    for folder in folders:
        sync_folder(folder)


def _write_aside(file: RemoteFile) -> str:
    """Write a placeholder under another name, and return that; whoever is here has the lock."""
    temporary = f"{file.placeholder}{TEMPORARY_SUFFIX}"
    if os.path.lexists(temporary):
        os.unlink(temporary)  # Left behind by a process that was killed.
    with create_new(temporary) as made:
        made.write(_text(file))
        made.flush()
        os.utime(made.fileno(), ns=(_MODIFIED_NS, _MODIFIED_NS))
        os.fsync(made.fileno())
    return temporary
