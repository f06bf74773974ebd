"""The files to index, the parts of them to scan, and the parts to scan together. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seekable.index.digest import PIECE_BYTES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

_BATCH_BYTES = PIECE_BYTES
_BATCH_FILES = 1000


@dataclass(frozen=True, slots=True)
class FileToIndex:
    """A file that an index folder lacks."""

    folder: str
    """The index folder that lacks it."""

    root: str
    """The folder of the data."""

    name: str
    """The path of the file, relative to the root."""

    path: str
    """The absolute path of the file; of an object of a store, its address."""

    size: int
    """The size of the file in bytes."""

    mtime_ns: int
    """The modification time of the file in nanoseconds; of an object, the number of its version."""

    remote_size: int | None = None
    """If the file is a placeholder, the number of bytes of the file that it stands for."""

    attempt: int = 1
    """Which scan of the file this is, from 1."""

    @property
    def is_object(self) -> bool:
        """True if the file is an object of a store."""
        return "://" in self.path

    @property
    def is_remote(self) -> bool:
        """True if the bytes are not on this machine."""
        return self.remote_size is not None or self.is_object

    @property
    def bytes(self) -> int:
        """The number of bytes that a scan of the whole file reads."""
        return self.size if self.remote_size is None else self.remote_size


@dataclass(frozen=True, slots=True)
class FilePart:
    """A part of a file to scan."""

    file: int
    """The index of its file."""

    number: int
    """The index of the part in its file."""

    start: int
    """The first byte of the part."""

    stop: int
    """The byte after its last."""


def parts_of(size: int, *, part_bytes: int | None) -> int:
    """Count the parts of a file by its size; 1 if ``part_bytes`` is None."""
    return max(-(-size // part_bytes), 1) if part_bytes else 1


def plan_batches(
    sizes: Sequence[int], *, part_bytes: int | None, whole: Collection[int] = (), alone: bool = False
) -> Iterator[list[FilePart]]:
    """Yield the parts to scan together: the largest files first, part by part, small files in one batch.

    Args:
        sizes: the size of each file in bytes.
        part_bytes: the bytes of each part but the last of a file; None for one part a file.
        whole: the indexes of files that are one part in any case.
        alone: True for batches of one part each.

    Example:
        >>> for batch in plan_batches([10, 100 << 20, 30], part_bytes=PIECE_BYTES):
        ...     [(part.file, part.start >> 20) for part in batch]
        [(1, 0)]
        [(1, 64), (2, 0), (0, 0)]
    """
    batch: list[FilePart] = []
    left = _BATCH_BYTES
    for file in sorted(range(len(sizes)), key=sizes.__getitem__, reverse=True):
        cut = None if file in whole else part_bytes
        for number in range(parts_of(sizes[file], part_bytes=cut)):
            start = number * (cut or 0)
            stop = min(start + cut, sizes[file]) if cut else sizes[file]
            if batch and (alone or stop - start > left or len(batch) == _BATCH_FILES):
                yield batch
                batch, left = [], _BATCH_BYTES
            batch.append(FilePart(file, number, start, stop))
            left -= stop - start
    if batch:
        yield batch
