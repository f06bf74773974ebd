"""What an index keeps of a compressed file besides its offsets: where it can be entered."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from seekable.errors import IndexStale
from seekable.storage.blocks import CompressedFile
from seekable.storage.compression import compression_of
from seekable.storage.points import open_points, points_name

if TYPE_CHECKING:
    from seekable.index.entry import Entry

__all__ = ["content_size", "has_points", "open_compressed"]


def open_compressed(folder: str, content: int, path: str, *, size: int, mtime_ns: int) -> CompressedFile:
    """Open a compressed file of which any range can be read.

    Args:
        folder: the index folder.
        content: the content digest of the file, compressed as it is.
        path: the file.
        size: its size when it was indexed.
        mtime_ns: its modification time then.

    Raises:
        IndexStale: the table of its points is gone or damaged; or it is not the file that was indexed.
    """
    kind = compression_of(path)
    assert kind is not None
    table = os.path.join(folder, points_name(content))
    try:
        points = open_points(table)
    except (FileNotFoundError, ValueError) as error:
        message = (
            f"{table!r}, which tells where {path!r} can be entered, is gone or damaged ({error}): remove it, "
            f"and open the dataset again"
        )
        raise IndexStale(message) from None
    return CompressedFile(path, size=size, mtime_ns=mtime_ns, kind=kind, points=points)


def has_points(folder: str, content: int) -> bool:
    """Tell whether an index has the table of points of a file."""
    return os.path.exists(os.path.join(folder, points_name(content)))


def content_size(folder: str, entry: Entry) -> int | None:
    """Return how many bytes of content a file has, decompressed if it is compressed.

    The whole table of its points is read then; None if that is not there, or not as it was written.
    """
    if not compression_of(entry.name):
        return entry.size
    try:
        points = open_points(os.path.join(folder, points_name(entry.content)))
    except (FileNotFoundError, ValueError):
        return None
    return points.size if points.is_whole() else None
