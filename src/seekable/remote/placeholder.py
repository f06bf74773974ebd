"""Placeholders: small local files that stand for files of the Hub, so that an index can hold these.

A placeholder lies at ``HUB/datasets--NAMESPACE--NAME/COMMIT/PATH``, with the path that the file has in the
repository. It holds the path, the size and the etag of the file, and never the commit: content that stays the
same from one commit to the next is the same data. All placeholders have the same modification time, so that a
placeholder that was lost and written again is the same file for the index.
"""

from __future__ import annotations

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seekable.errors import AccessDenied, UnsupportedFormat
from seekable.storage.files import (
    PLACEHOLDER_HEAD,
    TEMPORARY_SUFFIX,
    create_new,
    locked,
    make_private_folder,
    sync_folder,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "LARGEST_PLACEHOLDER",
    "HubFile",
    "display_path",
    "is_placeholder",
    "is_placeholder_folder",
    "path_of_display",
    "read_placeholder",
    "repo_folder",
    "write_placeholders",
]

LARGEST_PLACEHOLDER = 8 << 10
"""The most bytes of a placeholder: paths in git are shorter."""

_AT_ONCE = 16
"""The files that are synced at once: a disk syncs them together in about the time of one."""

_MODIFIED_NS = 946_684_800 * 10**9
_FOLDER = re.compile(
    r"(?P<hub>.*/hub)/datasets--(?P<repo>[^/]+)/(?P<revision>[0-9a-f]{40})(?P<path>/.*)?", re.DOTALL
)
_SCHEME = "hf://datasets/"


@dataclass(frozen=True, slots=True)
class HubFile:
    """One file of a repository on the Hub, at one commit.

    Example:
        >>> HubFile("/cache/hub", "me/web", "0" * 40, "data/a.parquet", size=9, etag="e").uri
        'hf://datasets/me/web@0000000000000000000000000000000000000000/data/a.parquet'
    """

    hub: str
    """The folder on this machine for placeholders and lists."""

    repo: str
    """``NAMESPACE/NAME``, or a name alone."""

    revision: str
    """The commit, 40 hexadecimal digits."""

    path: str
    """The path of the file in the repository."""

    size: int
    """The number of bytes of the file."""

    etag: str
    """The digest of its content, as the Hub lists it."""

    @property
    def uri(self) -> str:
        """The address of the file, which ``huggingface_hub`` opens too; its name in messages."""
        return f"{_SCHEME}{self.repo}@{self.revision}/{self.path}"

    @property
    def placeholder(self) -> str:
        """The path of the placeholder."""
        return os.path.join(repo_folder(self.hub, self.repo), self.revision, self.path)


def repo_folder(hub: str, repo: str) -> str:
    """Return the folder of a repository.

    Example:
        >>> repo_folder("/cache/hub", "me/web")
        '/cache/hub/datasets--me--web'
    """
    return os.path.join(hub, f"datasets--{repo.replace('/', '--')}")


def display_path(path: str) -> str:
    """Return the name of a file in messages: its path, and for a placeholder the address on the Hub.

    Example:
        >>> display_path(f"/cache/hub/datasets--me--web/{'0' * 40}/data/a.parquet")[:23]
        'hf://datasets/me/web@00'
        >>> display_path("/data/a.parquet")
        '/data/a.parquet'
    """
    found = _FOLDER.fullmatch(path)
    if found is None:
        return path
    return f"{_SCHEME}{_repo(found['repo'])}@{found['revision']}{found['path'] or ''}"


def path_of_display(roots: Iterable[str], name: str) -> str:
    """Return the local path for a name from `display_path`, if it is below one of some roots.

    Any other name is returned as it is.

    Example:
        >>> root = f"/cache/hub/datasets--me--web/{'0' * 40}"
        >>> path_of_display([root], f"hf://datasets/me/web@{'0' * 40}/a.parquet") == f"{root}/a.parquet"
        True
    """
    if name.startswith(_SCHEME):
        for root in roots:
            start = f"{display_path(root)}/"
            if name.startswith(start):
                return os.path.join(root, name[len(start) :])
    return name


def is_placeholder_folder(folder: str) -> bool:
    """Return True if a folder is one in which placeholders are written.

    Example:
        >>> is_placeholder_folder(f"/cache/hub/datasets--me--web/{'0' * 40}"), is_placeholder_folder("/data")
        (True, False)
    """
    return _FOLDER.fullmatch(folder) is not None


def is_placeholder(head: bytes | memoryview, size: int) -> bool:
    """Return True if a file is a placeholder.

    Args:
        head: its first 32 bytes, or all of a smaller file.
        size: its number of bytes.
    """
    return size <= LARGEST_PLACEHOLDER and bytes(head[: len(PLACEHOLDER_HEAD)]) == PLACEHOLDER_HEAD


def read_placeholder(path: str, text: bytes) -> HubFile:
    """Return the file on the Hub that a placeholder stands for.

    Args:
        path: the path of the placeholder.
        text: its content.

    Raises:
        UnsupportedFormat: the placeholder was moved or damaged.
    """
    found = _FOLDER.fullmatch(path)
    try:
        said = json.loads(text)
        size, etag, name = said["size"], said["etag"], said["path"]
    except (ValueError, KeyError, TypeError):
        size = etag = name = None
    if (
        found is None
        or not isinstance(size, int)
        or not isinstance(etag, str)
        or not isinstance(name, str)
        or found["path"] != f"/{name}"
    ):
        message = (
            f"{path!r} is a placeholder for a file of the Hub, and was moved or damaged: remove it, and open "
            f"the data by its name, sk.open('hf:REPO:SPLIT:COLUMN')"
        )
        raise UnsupportedFormat(message)
    return HubFile(found["hub"], _repo(found["repo"]), found["revision"], name, size, etag)


def write_placeholders(files: Sequence[HubFile]) -> None:
    """Write the placeholders of files of one repository, as far as they do not exist.

    Raises:
        AccessDenied: the folder cannot be written.
    """
    missing = [file for file in files if not _is_there(file)]
    if not missing:
        return
    folder = repo_folder(missing[0].hub, missing[0].repo)
    try:
        make_private_folder(folder)
        # One process at a time: a placeholder that another process has open must not be replaced.
        with locked(os.path.join(folder, "lock"), waiting=lambda: None):
            _write([file for file in missing if not _is_there(file)])
    except PermissionError as error:
        message = (
            f"{folder!r} cannot be written, which is to hold the placeholders of {missing[0].repo!r} "
            f"({error}): name another folder with sk.Index(folder=) or SEEKABLE_INDEX_DIR"
        )
        raise AccessDenied(message) from error


def _repo(folder: str) -> str:
    return folder.replace("--", "/")


def _text(file: HubFile) -> bytes:
    said = {"path": file.path, "size": file.size, "etag": file.etag}
    return PLACEHOLDER_HEAD + json.dumps(said, separators=(",", ":")).encode()[1:] + b"\n"


def _is_there(file: HubFile) -> bool:
    try:
        status = os.stat(file.placeholder)
    except OSError:
        return False
    return status.st_mtime_ns == _MODIFIED_NS and status.st_size == len(_text(file))


def _write(files: Sequence[HubFile]) -> None:
    folders = {os.path.dirname(file.placeholder) for file in files}
    for folder in folders:
        make_private_folder(folder)
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        for temporary, file in zip(threads.map(_write_aside, files), files, strict=True):
            os.replace(temporary, file.placeholder)
    for folder in folders:
        sync_folder(folder)


def _write_aside(file: HubFile) -> str:
    """Write a placeholder under a temporary name, and return the name; the caller holds the lock."""
    temporary = f"{file.placeholder}{TEMPORARY_SUFFIX}"
    if os.path.lexists(temporary):
        os.unlink(temporary)  # Left by a process that was killed.
    with create_new(temporary) as made:
        made.write(_text(file))
        made.flush()
        os.utime(made.fileno(), ns=(_MODIFIED_NS, _MODIFIED_NS))
        os.fsync(made.fileno())
    return temporary
