"""Files of an index beside its numbers: seek points of compressed files, schemas and page tables of tables.

Each is named by a digest, and never changes: seek points and page tables by the content digest of their data
file, a schema by its own.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

import msgspec
import xxhash

from seekable._lazy import lazy
from seekable.errors import IndexStale
from seekable.index.offsets import damaged_error
from seekable.storage.compression import compression_of
from seekable.storage.far import far, is_far
from seekable.storage.files import regular_only, write_atomically

if TYPE_CHECKING:
    from seekable.index import object_digests
    from seekable.index.file_table import Entry
    from seekable.index.indexed_files import IndexedFiles
    from seekable.storage import seek_points
    from seekable.storage.mapped import MappedFile
    from seekable.storage.seek_points import SeekPoints
else:
    object_digests = lazy("seekable.index.object_digests")
    seek_points = lazy("seekable.storage.seek_points")


def open_unmapped(
    part: IndexedFiles, content: int, path: str, *, size: int, mtime_ns: int, remote: bool
) -> MappedFile:
    """Open a file that cannot be mapped as it is: a compressed one, an object of a store, or a placeholder.

    Args:
        part: the indexed files that it is one of.
        content: the content digest of the file, compressed as it is.
        path: the path of the file.
        size: its size when it was indexed.
        mtime_ns: its modification time then.
        remote: True if the file is a placeholder.

    Raises:
        IndexStale: the table of its seek points is gone or damaged, or it is not the file that was indexed.
        UnsupportedFormat: it is a placeholder that was moved or damaged.
    """
    kind = compression_of(path)
    points = None if kind is None else _points(part.folder, content, path)
    if is_far(path):
        version: str | None = None
        if part.by_version:
            version = far().builds.version_of(part.folder, path[len(part.root) + 1 :], mtime_ns)
        digests = object_digests.ObjectDigests(part.folder, content, size)
        return far().reads.open(
            path,
            (size, mtime_ns),
            kind=kind,
            points=points,
            version=version,
            cache=part.cache,
            digests=digests if object_digests.has_digests(size) else None,
        )
    if remote:
        return far().placeholders.open(path, (size, mtime_ns), kind=kind, points=points)
    assert kind is not None
    assert points is not None
    return seek_points.CompressedFile(path, size=size, mtime_ns=mtime_ns, kind=kind, points=points)


def _points(folder: str, content: int, path: str) -> SeekPoints:
    table = os.path.join(folder, seek_points.points_name(content))
    try:
        return seek_points.open_points(table)
    except (OSError, ValueError) as error:
        raise damaged_error(table, f"the seek points of {path!r}, is gone or damaged ({error})") from None


def has_points(folder: str, content: int) -> bool:
    """Return True if an index folder has the seek points of a file, given its content digest."""
    return os.path.exists(os.path.join(folder, seek_points.points_name(content)))


def content_size(folder: str, entry: Entry) -> int | None:
    """Return the number of bytes of a file's content, decompressed if it is compressed.

    The digest of its seek points is checked; None if they are gone or damaged.
    """
    if not compression_of(entry.name):
        return entry.size
    try:
        points = seek_points.open_points(os.path.join(folder, seek_points.points_name(entry.content)))
    except (OSError, ValueError):
        return None
    return points.size


def schema_digest(schema: bytes) -> int:
    """Return the digest of the schema of a table; never 0, which stands for no table."""
    return xxhash.xxh3_64_intdigest(schema) or 1


def schema_name(digest: int) -> str:
    """Return the file name of a schema in the index folder."""
    return f"schema-{digest:016x}.bin"


def read_schema(folder: str, digest: int) -> bytes:
    """Return a schema of an index folder.

    Raises:
        IndexStale: the file of the schema is gone or damaged.
    """
    path = os.path.join(folder, schema_name(digest))
    try:
        with open(path, "rb", opener=regular_only) as file:
            schema = file.read()
    except OSError:
        schema = b""
    if schema_digest(schema) != digest:
        raise damaged_error(path, "the schema of a table, is gone or damaged")
    return schema


def has_schema(folder: str, digest: int) -> bool:
    """Return True if an index folder has a schema; a damaged one is removed, so that it is written again."""
    try:
        read_schema(folder, digest)
    except IndexStale:
        return False
    return True


def pages_name(content: int) -> str:
    """Return the file name of the page tables of a data file, by its content digest."""
    return f"pages-{content:016x}.bin"


class PageTableFile(msgspec.Struct, frozen=True):
    """The file that holds the page tables of one table file; its format alone reads the bytes."""

    folder: str
    """The folder of the index."""

    content: int
    """The content digest of the table file."""

    def load(self) -> bytes | None:
        """Return the bytes of the file, None if it does not exist or cannot be read."""
        try:
            with open(self._path, "rb", opener=regular_only) as file:
                return file.read()
        except OSError:
            return None

    def save(self, pages: bytes) -> None:
        """Write the file; if the folder cannot be written, nothing is written and no error is raised."""
        with contextlib.suppress(OSError):
            write_atomically(self._path, pages)

    @property
    def _path(self) -> str:
        return os.path.join(self.folder, pages_name(self.content))
