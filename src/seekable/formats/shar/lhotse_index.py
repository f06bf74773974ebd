"""The index that Lhotse keeps beside a file: ``cuts.000000.jsonl.idx``, ``recording.000000.tar.idx``.

It has a little-endian uint64 for the first byte of each record, and one more for the end: N + 1 numbers and
nothing else. Of JSON lines a record is a line with its line end, blank lines too, and the last number is the
size of the file. No mark tells such a file from another one, such as the decimal text that Lhotse's
StatelessSampler writes under the same name, so its numbers are compared with the data.
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from seekable._lazy import lazy
from seekable.errors import Unreachable
from seekable.index.finder import ALWAYS_NS, OtherOffsets
from seekable.storage.far import far
from seekable.storage.file_names import INDEX_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from seekable.storage import paths
else:
    paths = lazy("seekable.storage.paths")

__all__ = ["NUMBERS", "LhotseIndexes", "consecutive_ranges", "index_path", "indexes_over"]

NUMBERS = np.dtype("<u8")
"""The type of the numbers."""

_LINES_AT_ONCE = 1 << 20

_FEW = 8
"""The files of a folder of a store beside which indexes are looked for."""


def index_path(path: str, *, folder: str | None = None) -> str:
    """Return the path of the index of a file.

    Args:
        path: the path of the file.
        folder: the folder of the index; None for that of the file.

    Example:
        >>> index_path("data/cuts.jsonl"), index_path("data/cuts.jsonl", folder="new")
        ('data/cuts.jsonl.idx', 'new/cuts.jsonl.idx')
    """
    return (path if folder is None else os.path.join(folder, os.path.basename(path))) + INDEX_SUFFIX


@dataclass(frozen=True, slots=True)
class LhotseIndexes:
    """The indexes beside the files below a folder; an `OtherIndex`."""

    folder: str
    """The folder of the data."""

    @property
    def label(self) -> str:
        """The name of these indexes in messages."""
        return f"Lhotse's indexes (.idx) beside the files in {self.folder!r}"

    def find(self, name: str) -> OtherOffsets | None:
        """Return the lines of a file; None if no index is beside it, or one of another size.

        Raises:
            Unreachable: the store does not answer.
        """
        path = index_path(os.path.join(self.folder, name))
        try:
            status = paths.status(path)
        except Unreachable:
            raise
        except OSError:
            return None
        if not status.size or status.size % NUMBERS.itemsize:
            return None
        if "://" in path:
            return OtherOffsets(ALWAYS_NS, _ranges(path))
        return OtherOffsets(status.mtime_ns, _ranges(path)) if os.access(path, os.R_OK) else None


def indexes_over(folder: str, names: Sequence[str], _named: str) -> LhotseIndexes | None:
    """Return the indexes beside the files below a folder; a `FindIndex`.

    In a store a few files are asked for theirs, since each is a request: Lhotse makes them of all.
    """
    if "://" in folder:
        few = names[:: -(-len(names) // _FEW) or 1]
        if all(size is None for size in far().sizes(folder, list(map(index_path, few)))):
            return None
    return LhotseIndexes(folder)


def _ranges(path: str) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.uint64]]]:
    with io.BufferedReader(paths.open_file(path), _LINES_AT_ONCE * NUMBERS.itemsize) as file:
        last = np.frombuffer(file.read(NUMBERS.itemsize), NUMBERS)
        while data := file.read(_LINES_AT_ONCE * NUMBERS.itemsize):
            bounds = np.concatenate((last, np.frombuffer(data, NUMBERS)))
            yield consecutive_ranges(bounds)
            last = bounds[-1:]


def consecutive_ranges(bounds: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the starts and the lengths of ranges that lie one after the other, from their N + 1 bounds.

    Bounds that descend give a length that leads beyond 2 ** 64 back to the next bound.

    Example:
        >>> [part.tolist() for part in consecutive_ranges(np.array([0, 4, 9], np.uint64))]
        [[0, 4], [4, 5]]
    """
    return bounds[:-1], bounds[1:] - bounds[:-1]
