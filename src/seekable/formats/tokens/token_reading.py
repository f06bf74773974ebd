"""The reading of documents of token files: as arrays over memory maps, and as slices copied into batches."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, final

import numpy as np

from seekable._spans import is_spans
from seekable.errors import SeekableError
from seekable.formats.classify import card_of_file
from seekable.formats.lines.csv import is_csv
from seekable.formats.lines.line_source import line_span
from seekable.formats.tokens.stored_arrays import FileMaps, alike, copy_elements, too_short
from seekable.formats.tokens.token_store import SOURCES, is_part, read_sources
from seekable.index.location import Location
from seekable.index.opening import find_indexed
from seekable.nodes.files.leaf import SlicedAxis
from seekable.nodes.graph import FileRanges, Origins, Reader, SlicedPlan, held, of_files
from seekable.storage import paths
from seekable.storage.memory import DiskActivity, disk_reads
from seekable.storage.ranges import merge_near

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.tokens.stored_arrays import StoredArray, TokenFiles
    from seekable.index.fileset import FileSet
    from seekable.nodes.graph import DataFiles

    Array = NDArray[Any]

__all__ = ["TokenAxis", "TokensPlan", "TokensReader", "token_axis"]

_GAP_BYTES = 4 << 10
"""Ranges of a file that are nearer than this are fetched in one go."""


_LINES = frozenset({"jsonl", "text"})
"""The formats whose records are lines; those of CSV are too, or several lines."""


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
    """Reads documents of token files, and copies slices of them without making records."""

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
        """Yield the ranges of bytes that the documents need, array by array."""
        return self.ranges_of_slices(np.zeros_like(self.counts), self.counts)

    def ranges_of_slices(self, starts: Int64s, counts: Int64s) -> Iterator[FileRanges]:
        """Yield the ranges of bytes that slices of documents need, array by array.

        Args:
            starts: the first token of each slice in its document.
            counts: its number of tokens.
        """
        source = self.reader.source
        for some in alike(source.kinds[self.files]):
            files, firsts = self.files[some], self.firsts[some]
            for array in source.arrays(int(files[0])):
                size, inside = array.dtype.itemsize, array.before * self.counts[some]
                if is_spans(array.dtype):
                    yield self._ranges_of_ends(array, files, self.rows[some])
                    continue
                if array.aligned is None:
                    of: DataFiles = source.files
                    stored = firsts + inside
                else:
                    stored = source.start_in_aligned(files, firsts, array)
                    of = source.aligned.of(array.aligned)
                begins = stored + starts[some] * size
                yield FileRanges.of(of, files, begins, begins + counts[some] * size)

    def _ranges_of_ends(self, array: StoredArray, files: Int64s, rows: Int64s) -> FileRanges:
        """Return the ranges that say where the spans of documents are; these themselves are not known yet."""
        source = self.reader.source
        assert array.aligned is not None
        present, which = np.unique(files, return_inverse=True)
        ends = np.array([source.ends_of_spans(file, array) for file in present.tolist()], np.int64)
        begins = ends[which] + 8 * (rows - self.reader.files.starts[files])
        return FileRanges.of(source.aligned.of(array.aligned), files, begins, begins + 16)

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
        """Return the location of each document: its tokens, and the arrays after them."""
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
        """Return the location of a slice of each document: its tokens alone.

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
            source = _source_of(mapped.path, row, mtime_ns=mapped.mtime_ns)
            located.append(Location(mapped.name, row, start, length, source))
        return located

    def _token_bytes(self) -> Int64s:
        """Return how many bytes a token has in each document."""
        words = self.reader.source.words
        sizes = np.array([np.dtype(schema.dtype).itemsize for schema in words.schemas], np.int64)
        return sizes[words.schema_of[self.files]]

    def _ends(self) -> Int64s:
        """Return the end of each document, in bytes."""
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


@final
class TokenAxis(SlicedAxis):
    """The tokens of some files in one sequence, in which a window is one range of bytes or two."""

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
        """Copy a window of tokens, and what is aligned with it, into each row of arrays."""
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
            For each part the index of its file, the element of the flat array of windows that it goes to,
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
            if array.aligned is not None and not is_spans(array.dtype):
                name = words.schema(file).aligned[array.aligned].file
                if source.start_in_aligned(file, end, array) > sizes[name]:
                    return None
    return TokenAxis(source, bases, tokens)


@dataclass(frozen=True, slots=True, eq=False)
class _Sources:
    """The rows that the documents of one part come from."""

    files: tuple[str, ...]
    """The paths of all source files of the store."""

    runs: NDArray[Any]
    """The runs of documents."""

    ends: NDArray[np.int64]
    """The number of documents up to the end of each run."""


def _source_of(path: str, row: int, *, mtime_ns: int) -> Location | None:
    """Return the location of the record that a document was made of.

    The offset and the length of a line are those of the index of its file; both are 0 where there is none,
    and where the file has changed or has no lines.

    Args:
        path: the file of tokens.
        row: the row of the document in it.
        mtime_ns: the modification time of the file as it was indexed; of a store the number made of its etag.

    Returns:
        The location; None for a file that is no part of a store, and for a document that comes from no
        record of a file, or from several.

    Raises:
        CorruptTokens: the part has another list of rows than it was written with.
    """
    sources = (_kept_sources_of if "://" in path else _sources_of)(path, mtime_ns)
    if sources is None:
        return None
    run = int(np.searchsorted(sources.ends, row, side="right"))
    file, count, first = sources.runs[run].tolist()
    if file >= len(sources.files):
        return None
    origin = sources.files[file]
    at = first + row - (int(sources.ends[run]) - count)
    return Location(origin, at, *_line(origin, at))


@functools.lru_cache(maxsize=256)
def _kept_sources_of(path: str, mtime_ns: int) -> _Sources | None:
    """Return the sources of a file in a store, which are looked for once for each version of the file."""
    return _sources_of(path, mtime_ns)


def _sources_of(path: str, mtime_ns: int) -> _Sources | None:
    try:
        status = paths.status(os.path.splitext(path)[0] + SOURCES)
    except FileNotFoundError:
        return None
    return _read(path, mtime_ns, status.size, status.mtime_ns) if is_part(path) else None


@functools.lru_cache(maxsize=256)
def _read(path: str, _of_tokens: int, _size: int, _mtime_ns: int) -> _Sources:
    files, runs = read_sources(path)
    return _Sources(files, runs, np.cumsum(runs["count"].astype(np.int64)))


def _line(path: str, row: int) -> tuple[int, int]:
    """Return the first byte of a line and its length, as the index of its file has them, else zeros."""
    try:
        files = _indexed(path)
        if files is None or row >= files.entry(0).records:
            return 0, 0
        start, end = files.range(0, row)
        mapped = files.mapped(0)
        mapped.check()
        return start, line_span(mapped.view[start:end])
    except (SeekableError, OSError):
        _indexed.cache_clear()  # The file, or its index, has changed.
        return 0, 0


@functools.lru_cache(maxsize=64)
def _indexed(path: str) -> FileSet | None:
    """Return a file of lines as an index has it; None for other files and where no index has it."""
    if not os.path.isabs(path):
        return None
    name = card_of_file(path).name
    return find_indexed(path, format_name=name) if name in _LINES or is_csv(name) else None
