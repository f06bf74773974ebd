"""Placeholders: small local files that stand for files of the Hub, so that an index can hold these.

A placeholder lies at ``HUB/datasets--NAMESPACE--NAME/COMMIT/PATH``, with the path that the file has in the
repository. It holds the path, the size and the etag of the file, and never the commit: content that stays the
same from one commit to the next is the same data. All placeholders have the same modification time, so that a
placeholder that was lost and written again is the same file for the index.

The index has the size, the time and the ends of the placeholder. Offsets of records, seek points and the
digest of the whole file are those of the file on the Hub, which is read as an object of a store, or from its
copy in the cache of ``huggingface_hub``.
"""

from __future__ import annotations

import json
import os
import re
from bisect import bisect_left
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from seekable.errors import AccessDenied, MissingDependency, UnsupportedFormat
from seekable.index.build.data_file import Data
from seekable.index.digest import END_BYTES
from seekable.remote.index.object_file import ObjectFile, ObjectRanges, object_ref
from seekable.remote.stores.hub_store import hub
from seekable.remote.stores.object_store import identity_of
from seekable.storage.file_names import INDEX_SUFFIX
from seekable.storage.files import (
    PLACEHOLDER_HEAD,
    TEMPORARY_SUFFIX,
    create_new,
    locked,
    make_private_folder,
    sync_folder,
)
from seekable.storage.mapped import MappedFile, MappedRanges
from seekable.storage.ranges import HashedRanges, RangeFile
from seekable.storage.seek_points import CompressedFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from seekable.index.build.data_file import DataFile
    from seekable.remote.cache.held_ranges import Held
    from seekable.remote.fetching.wants import ObjectRef
    from seekable.storage.compression import Compression
    from seekable.storage.ranges import RangeSource
    from seekable.storage.seek_points import SeekPoints

__all__ = [
    "LARGEST_PLACEHOLDER",
    "HubFile",
    "PlaceholderFile",
    "are_on_hub",
    "display_path",
    "forward_file",
    "hub_object",
    "hub_ranges",
    "is_placeholder",
    "is_placeholder_folder",
    "local_copy",
    "open_placeholder",
    "path_of_display",
    "read_placeholder",
    "read_remote_size",
    "remote_ranges_of",
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


_NUMBERS = np.dtype("<u8")
_FEWEST_PLACES = 3
_HEADER_BYTES = 64 << 10
"""The bytes that are fetched at the place of a header; a unit of the cache where there is one."""

_APART_BYTES = 1 << 20
"""Samples of this size in the mean: the units of their headers are a quarter of the file or less."""

_HEADERS_AHEAD = 16


def hub_ranges(file: HubFile) -> RangeSource:
    """Return the byte ranges of a file; of its copy on this machine, if ``huggingface_hub`` has one."""
    copy = local_copy(file)
    if copy is None:
        return ObjectRanges(hub_object(file))
    status = os.stat(copy)
    return MappedRanges(MappedFile(copy, size=status.st_size, mtime_ns=status.st_mtime_ns), path=file.uri)


def hub_object(file: HubFile) -> ObjectRef:
    """Return the reference to a file as an object of a store."""
    identity = identity_of(file.etag, modified_ns=0, size=file.size)
    ref = object_ref(file.uri, size=file.size, identity=identity)
    ref.pin.etag = file.etag
    return ref


def local_copy(file: HubFile) -> str | None:
    """Return the path of a file in the cache of ``huggingface_hub``, None if it was not downloaded."""
    try:
        found = hub().try_to_load_from_cache(
            file.repo, file.path, revision=file.revision, repo_type="dataset"
        )
    except (MissingDependency, OSError, ValueError):
        return None
    if not isinstance(found, str):
        return None
    path = os.path.realpath(found)
    # The cache keeps a file under its digest, and links to it; where links are impossible, it has a copy.
    if os.path.islink(found) and os.path.basename(path) != file.etag:
        return None
    return path if os.path.getsize(path) == file.size else None


def _remote_file_of(descriptor: int, path: str) -> HubFile | None:
    size = os.fstat(descriptor).st_size
    if size > LARGEST_PLACEHOLDER:
        return None
    text = os.pread(descriptor, size, 0)
    return read_placeholder(path, text) if is_placeholder(text, size) else None


def _remote_file(path: str) -> HubFile | None:
    """Return the file that a placeholder stands for; None if there is no placeholder."""
    try:
        with open(path, "rb", buffering=0) as file:
            return _remote_file_of(file.fileno(), path)
    except (FileNotFoundError, PermissionError):
        return None


def read_remote_size(path: str) -> int | None:
    """Return the number of bytes of the file that a placeholder stands for; None if there is no placeholder.

    Raises:
        UnsupportedFormat: the placeholder was moved or damaged.
    """
    found = _remote_file(path)
    return None if found is None else found.size


def are_on_hub(paths: Iterable[str]) -> bool:
    """Return True if one of some placeholders is of a file that has no copy on this machine.

    Raises:
        UnsupportedFormat: a placeholder was moved or damaged.
    """
    return any(file is not None and local_copy(file) is None for file in map(_remote_file, paths))


def open_placeholder(
    path: str, *, size: int, mtime_ns: int, kind: Compression | None, points: SeekPoints | None
) -> MappedFile:
    """Return the file that a placeholder stands for, open: an object of a store, or a copy on this machine.

    Args:
        path: the placeholder.
        size: the number of bytes of the placeholder.
        mtime_ns: its modification time.
        kind: the compression of the file, None for a file that is not compressed.
        points: the seek points of a compressed file.

    Raises:
        IndexStale: the placeholder does not exist, or has another size or modification time.
        AccessDenied: this user may not read it.
        UnsupportedFormat: it was moved or damaged.
    """
    file = read_placeholder(path, bytes(MappedFile(path, size=size, mtime_ns=mtime_ns).view[:]))
    copy = local_copy(file)
    if copy is None:
        return ObjectFile(hub_object(file), kind=kind, points=points)
    status = os.stat(copy)
    version: dict[str, Any] = {"size": status.st_size, "mtime_ns": status.st_mtime_ns}
    if kind is not None and points is not None:
        return CompressedFile(copy, **version, kind=kind, points=points, name=file.uri)
    mapped = MappedFile(copy, **version)
    mapped.name = file.uri
    return mapped


def remote_ranges_of(descriptor: int, path: str) -> RangeSource | None:
    """Return the byte ranges of the file that an open placeholder stands for; None for any other file.

    Args:
        descriptor: the open file.
        path: its path.

    Raises:
        UnsupportedFormat: it is a placeholder that was moved or damaged.
    """
    found = _remote_file_of(descriptor, path)
    return None if found is None else hub_ranges(found)


@final
class PlaceholderFile:
    """An open placeholder, with the bytes of the file that it stands for."""

    __slots__ = ("_descriptor", "_own", "_path")

    def __init__(self, own: DataFile, descriptor: int, path: str) -> None:
        """Read nothing yet.

        Args:
            own: the placeholder as a local file.
            descriptor: its descriptor.
            path: its path.
        """
        self._own = own
        self._descriptor = descriptor
        self._path = path

    @property
    def version(self) -> tuple[int, int]:
        """The number of bytes and the modification time of the placeholder."""
        return self._own.version

    @property
    def holder(self) -> tuple[int, int]:
        """The numbers of the device and the inode of the placeholder."""
        return self._own.holder

    def head_tail(self) -> int:
        """Return the digest of both ends of the placeholder."""
        return self._own.head_tail()

    def is_unchanged(self) -> bool:
        """Return True if the path still has this placeholder."""
        return self._own.is_unchanged()

    def ranges(self) -> HashedRanges:
        """Return the bytes that the placeholder stands for, hashed as they are read."""
        source = remote_ranges_of(self._descriptor, self._path)
        return self._own.ranges() if source is None else HashedRanges(source)

    @contextmanager
    def data(self, start: int, stop: int, *, headers: bool) -> Iterator[Data]:
        """Yield the bytes that the placeholder stands for, for a scanner."""
        source = remote_ranges_of(self._descriptor, self._path)
        if source is None:
            with self._own.data(start, stop, headers=headers) as own:
                yield own
            return
        with forward_file(source, self._path) as remote:
            head = bytes(source.range(0, min(END_BYTES, source.size)))
            yield Data(remote, source.size, head, source.path)


def forward_file(source: RangeSource, path: str) -> RangeFile:
    """Return a file over the ranges of a remote file, for a reader that goes from its start to its end.

    Where headers lie far apart, as an index beside the file says, the bytes at headers alone are fetched,
    many at a time. The headers are read in any case, so the index need not be true.

    Args:
        source: the ranges of the file.
        path: its placeholder; that of the index is beside it.
    """
    places = _places_beside(path, source.size) if isinstance(source, ObjectRanges) else None
    if places is None or not isinstance(source, ObjectRanges):
        return RangeFile(source)
    return RangeFile(_HeadersFirst(source, places), window_bytes=_HEADER_BYTES)


@final
class _HeadersFirst:
    """The byte ranges of an object whose reader is expected to go from header to header."""

    __slots__ = ("_fetched_to", "_held", "_places", "_source", "path", "size")

    def __init__(self, source: ObjectRanges, places: Sequence[int]) -> None:
        self.path = source.path
        self.size = source.size
        self._source = source
        self._places = places
        self._fetched_to = -1
        self._held: Held | None = None

    def range(self, start: int, stop: int) -> memoryview:
        """Return some bytes; those at the next headers are fetched with them, unless they were."""
        if start > self._fetched_to:
            first = bisect_left(self._places, start)
            ahead = self._places[first : first + _HEADERS_AHEAD]
            self._held = self._source.fetch([start, *ahead], stop - start)
            self._fetched_to = ahead[-1] if ahead else start
        return self._source.range(start, stop)


def _places_beside(path: str, size: int) -> list[int] | None:
    """Return where samples start by the index beside a remote file, ``x.tar.idx`` of Energon or Lhotse.

    None if there is no such index, if it is of another file, or if samples are so small that all is read.
    """
    beside = path + INDEX_SUFFIX
    count, rest = divmod(read_remote_size(beside) or 0, _NUMBERS.itemsize)
    if rest or count < _FEWEST_PLACES or size < count * _APART_BYTES:
        return None
    with open(beside, "rb", buffering=0) as file:
        ranges = remote_ranges_of(file.fileno(), beside)
    assert ranges is not None
    places = np.frombuffer(ranges.range(0, ranges.size), _NUMBERS)
    if places[0] or (places[1:] <= places[:-1]).any() or places[-1] > size:
        return None
    found: list[int] = places.tolist()
    return found
