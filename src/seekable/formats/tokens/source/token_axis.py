"""The tokens of all documents of a source end to end, where the files have nothing between them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, final

import numpy as np

from seekable.formats.tokens.source.file_maps import FileMaps, alike
from seekable.formats.tokens.source.token_copies import copy_elements
from seekable.nodes.files.leaf import SlicedAxis
from seekable.nodes.graph import FileRanges
from seekable.storage.memory import DiskActivity, disk_reads
from seekable.storage.ranges import merge_near

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.tokens.source.stored_arrays import TokenFiles
    from seekable.nodes.graph import DataFiles

__all__ = ["TokenAxis", "token_axis"]

_GAP_BYTES = 4 << 10
"""Ranges of a file that are nearer than this are fetched in one go."""


@final
class TokenAxis(SlicedAxis):
    """The tokens of some files in one sequence: a window of them is a copy of a range of bytes or two."""

    def __init__(self, source: TokenFiles, bases: Int64s, tokens: Int64s) -> None:
        """Put files end to end.

        Args:
            source: the files.
            bases: the byte of the first token of each file, int64.
            tokens: the number of tokens of each file, int64.
        """
        self.source = source
        self._bases = bases
        sizes = [np.dtype(schema.dtype).itemsize for schema in source.words.schemas]
        self._size_of = np.array(sizes, np.int64)[source.words.schema_of]
        self._starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(tokens)])
        self._activity = DiskActivity()

    @property
    def from_stores(self) -> bool:
        """True if token files are objects of stores."""
        return self.source.files.has_objects

    def copy_into(self, out: Mapping[str, NDArray[Any]], starts: Int64s) -> None:
        """Copy a window of tokens, and of the arrays aligned with them, into each row of arrays."""
        width = next(iter(out.values())).shape[1]
        if self._activity.may_wait:
            self.advise(starts, width)
        before = disk_reads()
        files, to, firsts, counts = self._parts(starts, width)
        for some in alike(self.source.kinds[files]):
            maps = FileMaps(files[some], self.source.mapped)
            for array in self.source.arrays(int(files[some][0])):
                if (target := out.get(array.name)) is None:
                    continue
                views, stored = maps.views, firsts[some]
                if array.aligned is not None:
                    views = FileMaps(
                        files[some], partial(self.source.aligned.mapped, array=array.aligned)
                    ).views
                    stored = self.source.start_in_aligned(files[some], stored, array)
                copy_elements(
                    target,
                    views,
                    to=to[some],
                    starts=stored,
                    counts=counts[some],
                    dtype=array.dtype,
                    minus=array.minus,
                )
        self._activity.note(disk_reads() - before)

    def advise(self, starts: Int64s, width: int) -> None:
        """Advise the system to fetch windows of tokens, if reads have waited for a disk."""
        if not self._activity.may_wait:
            return
        files, _, firsts, counts = self._parts(np.sort(starts), width)
        ends = firsts + counts * self._size_of[files]
        merged = merge_near(files, firsts.view(np.uint64), ends.view(np.uint64), gap=_GAP_BYTES)
        for file, start, end in zip(*(column.tolist() for column in merged), strict=True):
            self.source.files.mapped(file).advise(start, end)

    def ranges(self, starts: Int64s, width: int, columns: Container[str]) -> Iterator[FileRanges]:
        """Yield the ranges of bytes of windows, array by array."""
        files, _, firsts, counts = self._parts(starts, width)
        for some in alike(self.source.kinds[files]):
            for array in self.source.arrays(int(files[some][0])):
                if array.name not in columns:
                    continue
                of: DataFiles = self.source.files
                begins = firsts[some]
                if array.aligned is not None:
                    begins = self.source.start_in_aligned(files[some], begins, array)
                    of = self.source.aligned.of(array.aligned)
                yield FileRanges.of(of, files[some], begins, begins + counts[some] * array.dtype.itemsize)

    def paths(self, starts: Int64s, width: int) -> set[str]:
        """Return the paths of the token files of some windows."""
        files = np.unique(self._parts(starts, width)[0])
        return {self.source.files.shown_path(file) for file in files.tolist()}

    def _parts(self, starts: Int64s, width: int) -> tuple[Int64s, Int64s, Int64s, Int64s]:
        """Return the parts of windows in each file, window after window, without those of no token.

        Returns:
            For each part the number of its file, the element of the flat array of windows that it goes to,
            its first byte in the file, and its number of tokens.
        """
        edges = self._starts
        if len(self._bases) == 1:
            every = np.arange(starts.size, dtype=np.int64) * width
            firsts = self._bases[0] + starts * self._size_of[0]
            return np.zeros_like(every), every, firsts, np.full_like(every, width)
        first = np.searchsorted(edges, starts, side="right") - 1
        last = np.searchsorted(edges, starts + (width - 1), side="right") - 1
        of = np.repeat(np.arange(starts.size), last - first + 1)
        files = first[of] + np.arange(of.size) - np.searchsorted(of, of)
        begins = np.maximum(starts[of], edges[files])
        counts = np.minimum(starts[of] + width, edges[files + 1]) - begins
        to = of * width + (begins - starts[of])
        stored = self._bases[files] + (begins - edges[files]) * self._size_of[files]
        if counts.all():
            return files, to, stored, counts
        held = counts > 0
        return files[held], to[held], stored[held], counts[held]


def token_axis(source: TokenFiles) -> TokenAxis | None:
    """Return the tokens of all documents end to end.

    Returns:
        None if something else lies between the documents of a file, or if an aligned file is too short.
    """
    words, files = source.words, source.files
    plain = not any(
        schema.explicit or schema.skip or schema.inside or schema.sample is not None
        for schema in words.schemas
    )
    if not plain:
        return None
    bases, tokens = np.zeros((2, len(files)), np.int64)
    for file in range(len(files)):
        numbers, at = files.file_words(file)
        first, end = numbers.number(at), numbers.number(at + int(files.records[file]))
        bases[file] = first
        tokens[file] = (end - first) // np.dtype(words.schema(file).dtype).itemsize
        sizes = {side.file: side.size for side in words.schema(file).beside}
        for array in source.arrays(file):
            if array.aligned is not None:
                name = words.schema(file).aligned[array.aligned].file
                if source.start_in_aligned(file, end, array) > sizes[name]:
                    return None
    return TokenAxis(source, bases, tokens)
