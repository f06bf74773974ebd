"""The reading of documents of token files: as arrays over memory maps, and as slices copied into batches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, final

import numpy as np

from seekable.formats.tokens.source.file_maps import FileMaps, alike
from seekable.formats.tokens.source.stored_arrays import too_short
from seekable.formats.tokens.source.token_copies import copy_elements
from seekable.formats.tokens.source.token_origins import source_of
from seekable.index.location import Location
from seekable.nodes.graph import FileRanges, Origins, Reader, SlicedPlan, held, of_files
from seekable.storage.memory import DiskActivity, disk_reads
from seekable.storage.ranges import merge_near

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.tokens.source.stored_arrays import StoredArray, TokenFiles
    from seekable.nodes.graph import DataFiles

    Array = NDArray[Any]

__all__ = ["TokensPlan", "TokensReader"]

_GAP_BYTES = 4 << 10
"""Ranges of a file that are nearer than this are fetched in one go."""


@final
class TokensReader(Reader):
    """Reads many sources as one: the files of all sources are numbered in one sequence."""

    def __init__(self, source: TokenFiles, sizes: Int64s) -> None:
        """Read the files of some sources.

        Args:
            source: the files of all sources.
            sizes: the number of documents of each source, int64.
        """
        self.source = source
        self.files = source.files
        self.activity = DiskActivity()
        self.from_stores = self.files.has_objects
        self._sizes = sizes
        self._first_rows = np.cumsum(sizes) - sizes

    def plan(self, which: Int64s, positions: Int64s) -> TokensPlan:
        """Return the plan to read documents."""
        rows = self._first_rows[which] + positions % self._sizes[which]
        starts = self.files.starts
        files = np.zeros(rows.size, np.int64)
        if len(self.files) > 1:
            files = np.searchsorted(starts, rows, side="right") - 1
        firsts, counts = self.source.words.spans(files, rows - starts[files])
        return TokensPlan(self, rows, files, firsts, counts)


@final
@dataclass(frozen=True, slots=True)
class TokensPlan(SlicedPlan):
    """The plan of documents of token files, of which slices can be copied without a record between."""

    reader: TokensReader
    rows: Int64s
    """Counted over all files, so that sorting by row is sorting by file and row in it."""
    files: Int64s
    firsts: Int64s
    """The byte of the first token of each document in its file."""
    counts: Int64s
    """The number of tokens of each document."""

    def __len__(self) -> int:
        """Return the number of documents."""
        return self.rows.size

    def slice(self, start: int, stop: int) -> TokensPlan:
        """Return the plan of some of the documents."""
        at = slice(start, stop)
        return TokensPlan(self.reader, self.rows[at], self.files[at], self.firsts[at], self.counts[at])

    def copy_into(
        self, out: Mapping[str, Array], rows: Int64s, at: Int64s, starts: Int64s, counts: Int64s
    ) -> None:
        """Copy a slice of each document into arrays: ``out[name][rows[i], at[i] : at[i] + counts[i]]``.

        All other elements of the arrays stay as they are. Arrays whose type is not that of the file are
        converted.

        Args:
            out: an array of each name that is wanted: two dimensions, C-contiguous.
            rows: the row of the arrays that the slice of each document goes to, int64.
            at: the first column that it goes to, int64.
            starts: its first token in the document, int64.
            counts: its number of tokens, int64; slices must lie within their documents and rows.

        Raises:
            CorruptRecord: an aligned file ends before a document does.
            IndexStale: a file has changed.
        """
        assert bool((starts + counts <= self.counts).all())
        with held(self, self.ranges_of_slices(starts, counts)):
            self._copy_into(out, rows, at, starts, counts)

    def _copy_into(
        self, out: Mapping[str, Array], rows: Int64s, at: Int64s, starts: Int64s, counts: Int64s
    ) -> None:
        source, before = self.reader.source, disk_reads()
        if self.reader.activity.may_wait:
            self._advise_slices(starts, counts)
        for some in alike(source.kinds[self.files]):
            files, firsts = self.files[some], self.firsts[some]
            begins, lengths = starts[some], counts[some]
            maps = FileMaps(files, source.mapped)
            for array in source.arrays(int(files[0])):
                if (target := out.get(array.name)) is None:
                    continue
                views, size = maps.views, array.dtype.itemsize
                if array.aligned is None:
                    stored = firsts + array.before * self.counts[some] + begins * size
                else:
                    beside = FileMaps(files, partial(source.aligned.mapped, array=array.aligned))
                    views = beside.views
                    stored = source.start_in_aligned(files, firsts, array) + begins * size
                    self._check_ends(beside, array, some, stored + lengths * size)
                copy_elements(
                    target,
                    views,
                    to=rows[some] * target.shape[1] + at[some],
                    starts=stored,
                    counts=lengths,
                    dtype=array.dtype,
                    minus=array.minus,
                )
        self.reader.activity.note(disk_reads() - before)

    def arrays(self) -> dict[str, Any] | None:
        """Return each array of all documents, of shape (documents, tokens), if all have one length.

        Raises:
            CorruptRecord: an aligned file ends before a document does.
            IndexStale: a file has changed.
        """
        dtypes = self.reader.source.even
        if not dtypes or not len(self):
            return None
        shape = len(self), int(self.counts[0])
        out = {name: np.empty(shape, dtype) for name, dtype in dtypes.items()}
        nothing = np.zeros_like(self.counts)
        self.copy_into(out, np.arange(len(self)), nothing, nothing, self.counts)
        return out

    def read(self) -> list[Any]:
        """Read file by file in the order of rows; return the records in the order of the positions.

        Raises:
            CorruptRecord: an aligned file ends before a document does, and its source has no ``errors``.
            IndexStale: a file has changed.
        """
        with held(self):
            return self._read()

    def _read(self) -> list[Any]:
        fileset, source, before = self.reader.files, self.reader.source, disk_reads()
        if self.reader.activity.may_wait:
            self._advise_slices(np.zeros_like(self.counts), self.counts)
        out: list[Any] = [None] * len(self)
        for file, some in self._by_file():
            mapped = fileset.mapped(file)
            mapped.check()
            first_row = int(fileset.starts[file])
            places = np.arange(len(self))[some]
            columns = (places, self.rows[some] - first_row, self.firsts[some], self.counts[some])
            for place, row, first, count in zip(*(column.tolist() for column in columns), strict=True):
                out[place] = source.record(mapped, file, row, first, count)
        self.reader.activity.note(disk_reads() - before)
        return out

    @property
    def paths(self) -> set[str]:
        """The paths of the files that the plan reads."""
        return {self.reader.files.shown_path(file) for file in np.unique(self.files).tolist()}

    @property
    def bytes(self) -> int:
        """The number of bytes of the documents in the token files."""
        return int((self._ends() - self.firsts).sum())

    @property
    def from_stores(self) -> bool:
        """True if token files are objects of stores."""
        return self.reader.from_stores

    def ranges(self) -> Iterator[FileRanges]:
        """Yield the ranges of bytes of each array of the documents."""
        return self.ranges_of_slices(np.zeros_like(self.counts), self.counts)

    def ranges_of_slices(self, starts: Int64s, counts: Int64s) -> Iterator[FileRanges]:
        """Yield the ranges of bytes of some tokens of each document, array by array.

        Args:
            starts: the first token of each slice in its document.
            counts: its number of tokens.
        """
        source = self.reader.source
        for some in alike(source.kinds[self.files]):
            files, firsts = self.files[some], self.firsts[some]
            for array in source.arrays(int(files[0])):
                size, inside = array.dtype.itemsize, array.before * self.counts[some]
                if array.aligned is None:
                    of: DataFiles = source.files
                    stored = firsts + inside
                else:
                    stored = source.start_in_aligned(files, firsts, array)
                    of = source.aligned.of(array.aligned)
                begins = stored + starts[some] * size
                yield FileRanges.of(of, files, begins, begins + counts[some] * size)

    def advise(self) -> None:
        """Announce the reads to the operating system, if reads have waited for a disk."""
        activity = self.reader.activity
        if activity.may_wait:
            before = disk_reads()
            self._advise(self.firsts, self._ends())
            activity.note(disk_reads() - before)

    def origins(self) -> Origins:
        """Return the file and row of each document."""
        return of_files(self.reader.files, self.files, self.rows)

    def locate(self) -> list[Any]:
        """Return the location of each document: the bytes of its tokens, and of the arrays behind them."""
        return self._located(self.firsts, self._ends() - self.firsts)

    def advise_slices(self, starts: Int64s, counts: Int64s) -> None:
        """Announce the reads of some tokens of each document, if reads have waited for a disk.

        Args:
            starts: the first token of each slice in its document.
            counts: its number of tokens.
        """
        activity = self.reader.activity
        if activity.may_wait:
            before = disk_reads()
            self._advise_slices(starts, counts)
            activity.note(disk_reads() - before)

    def locate_slices(self, starts: Int64s, counts: Int64s) -> list[Any]:
        """Return the location of some tokens of each document: the bytes of these tokens alone.

        Args:
            starts: the first token of each slice in its document.
            counts: its number of tokens.
        """
        sizes = self._token_bytes()
        return self._located(self.firsts + starts * sizes, counts * sizes)

    def _located(self, starts: Int64s, lengths: Int64s) -> list[Location]:
        """Return the location of some bytes of each document."""
        fileset = self.reader.files
        columns = (self.files, self.rows - fileset.starts[self.files], starts, lengths)
        located = []
        for file, row, start, length in zip(*(column.tolist() for column in columns), strict=True):
            mapped = fileset.mapped(file)
            mapped.check()
            source = source_of(mapped.path, row, mtime_ns=mapped.mtime_ns)
            located.append(Location(mapped.name, row, start, length, source))
        return located

    def _token_bytes(self) -> Int64s:
        """Return the number of bytes of a token of each document."""
        words = self.reader.source.words
        sizes = np.array([np.dtype(schema.dtype).itemsize for schema in words.schemas], np.int64)
        return sizes[words.schema_of[self.files]]

    def _ends(self) -> Int64s:
        """Return the byte behind each document."""
        words = self.reader.source.words
        widths = np.array([schema.width for schema in words.schemas], np.int64)
        ends: Int64s = self.firsts + self.counts * widths[words.schema_of[self.files]]
        return ends

    def _by_file(self) -> Iterator[tuple[int, Any]]:
        """Yield each file, and the indices of its documents, in the order of rows if there are several."""
        files = self.files
        if not files.size:
            return
        if (files == files[0]).all():
            yield int(files[0]), slice(None)
            return
        order = np.argsort(self.rows, kind="stable")
        edges = np.flatnonzero(np.diff(files[order])) + 1
        for some in np.split(order, edges):
            yield int(files[some[0]]), some

    def _check_ends(self, beside: FileMaps, array: StoredArray, some: Any, ends: Int64s) -> None:
        short = np.flatnonzero(ends > beside.sizes)
        if not short.size:
            return
        wrong = int(short[0])
        file, first = int(self.files[some][wrong]), int(self.firsts[some][wrong])
        row = int(self.rows[some][wrong] - self.reader.files.starts[file])
        start = int(self.reader.source.start_in_aligned(file, first, array))
        raise too_short(beside.of(wrong), array, row, start, int(self.counts[some][wrong]))

    def _advise_slices(self, starts: Int64s, counts: Int64s) -> None:
        """Advise the system to fetch some tokens of each document."""
        size = self._token_bytes()
        begins = self.firsts + starts * size
        self._advise(begins, begins + counts * size)

    def _advise(self, starts: Int64s, ends: Int64s) -> None:
        """Advise the system to fetch some bytes of the files of the documents."""
        order = np.lexsort((starts, self.files))
        columns = (self.files[order], starts[order].view(np.uint64), ends[order].view(np.uint64))
        merged = merge_near(*columns, gap=_GAP_BYTES)
        for file, start, end in zip(*(column.tolist() for column in merged), strict=True):
            self.reader.files.mapped(file).advise(start, end)
