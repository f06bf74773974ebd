"""The ranges of bytes that the ranks of a run read, resolved from the order alone, for simulations."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from seekable.remote.simulation.reads import Reads, joined_reads

if TYPE_CHECKING:
    from seekable._typing import Int64s
    from seekable.nodes.graph import DataFiles, FileRanges
    from seekable.nodes.node import Node

__all__ = ["FileNumbers", "reads_of"]

_PLANNED = 1 << 16
_CHUNK = 512
"""The records that share a place in the order of need, where a record has not one range of its own."""


class FileNumbers:
    """One numbering of the files of all sources."""

    def __init__(self) -> None:
        """Begin a numbering without files."""
        self._sets: dict[int, tuple[DataFiles, int]] = {}
        self._others: dict[str, int] = {}
        self._sizes: list[Int64s] = []
        self._folders: list[list[str] | None] = []
        self._count = 0

    @property
    def sizes(self) -> Int64s:
        """The number of bytes of each file."""
        return np.concatenate(self._sizes) if self._sizes else np.zeros(0, np.int64)

    def of(self, ranges: FileRanges) -> Int64s:
        """Return the number of the file of each range."""
        files = ranges.files
        sizes = getattr(files, "data_sizes", None)
        if sizes is None:
            present, at = np.unique(ranges.which, return_inverse=True)
            numbers = [self._other(files, file) for file in present.tolist()]
            return np.array(numbers, np.int64)[at] if numbers else ranges.which
        if id(files) not in self._sets:
            self._sets[id(files)] = files, self._add(np.asarray(sizes, np.int64))
        return ranges.which + self._sets[id(files)][1]

    def folders(self) -> tuple[Int64s, list[str]]:
        """Return the number of each file's folder, and the folders: a store bounds the requests to each."""
        paths: dict[int, str] = {number: path for path, number in self._others.items()}
        for files, first in self._sets.values():
            count = len(files)  # type: ignore[arg-type]  # a FileSet
            paths |= {first + file: files.path(file) for file in range(count)}
        numbers: dict[str, int] = {}
        found = [
            numbers.setdefault(os.path.dirname(paths[file]), len(numbers)) for file in range(self._count)
        ]
        return np.array(found, np.int64), list(numbers)

    def _other(self, files: DataFiles, file: int) -> int:
        path = files.path(file)
        if path not in self._others:
            self._others[path] = self._add(np.array([files.mapped(file).size], np.int64))
        return self._others[path]

    def _add(self, sizes: Int64s) -> int:
        first = self._count
        self._sizes.append(sizes)
        self._count += sizes.size
        return first


def reads_of(node: Node, positions: Int64s, numbers: FileNumbers) -> Reads:
    """Return the ranges of bytes of some records; nothing of the records is read.

    Args:
        node: the dataset.
        positions: the positions of the records, in the order of reading.
        numbers: the numbering of files, which grows.
    """
    parts = []
    for first in range(0, positions.size, _PLANNED):
        plan = node.plan(positions[first : first + _PLANNED])
        for start in range(0, len(plan), _CHUNK):
            part = plan.slice(start, min(start + _CHUNK, len(plan)))
            found = list(part.ranges())
            has_one_each = len(found) == 1 and found[0].which.size == len(part)
            rows = np.arange(len(part)) if has_one_each else np.zeros(1, np.int64)
            parts += [_reads(ranges, first + start + rows, numbers) for ranges in found]
    return joined_reads(parts)


def _reads(ranges: FileRanges, rows: Int64s, numbers: FileNumbers) -> Reads:
    starts, stops = (column.astype(np.int64) for column in (ranges.starts, ranges.ends))
    return Reads(np.broadcast_to(rows, starts.shape), numbers.of(ranges), starts, stops)
