"""The arrays of the documents of token files as they are stored, and as records have them."""

from __future__ import annotations

import os
import weakref
from dataclasses import dataclass
from functools import partial
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any, NamedTuple, cast, final

import numpy as np

from seekable._cached import cached
from seekable._spans import SPAN, is_spans, type_of
from seekable.errors import CorruptRecord
from seekable.formats.tokens.words import TokenWords
from seekable.index.fileset import combine
from seekable.storage.far import far
from seekable.storage.mapped import MOST_OPEN_FILES, MappedFile, OpenFiles, next_use

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.contract import OnError
    from seekable.formats.tokens.words import TokenSchema
    from seekable.index.fileset import FileSet
    from seekable.storage.mapped import View

    Array = NDArray[Any]


__all__ = ["FileMaps", "StoredArray", "TokenFiles", "alike", "arrays_of", "copy_elements", "too_short"]

_MOST_ARRAYS = 1 << 16
"""More arrays than a file has: one number stands for a file and one of its arrays."""


_TOGETHER = 1 << 12
"""The slices that are copied together: of more, too many files would be mapped at once."""


class _AlignedFiles:
    """The aligned files of a set of token files, opened when they are read. Safe from threads and after fork.

    Files are given by the index of their token file, arrays by their index in the schema of the file.
    """

    def __init__(self, files: FileSet, words: TokenWords) -> None:
        """Make the set; a file is opened when it is read."""
        self._files = files
        self._words = words
        self._kept_open = OpenFiles(MOST_OPEN_FILES)
        self._known: dict[int, weakref.ref[MappedFile]] = {}

    def mapped(self, file: int, array: int) -> MappedFile:
        """Return the map of an aligned file, after a check.

        Raises:
            IndexStale: the file is not the one that was there when its token file was indexed.
            AccessDenied: this user may not read it.
        """
        key = file * _MOST_ARRAYS + array
        known = self._known.get(key)
        mapped = known() if known else None
        if mapped is None:
            mapped = self._kept_open.open(key, partial(self._open, file, array))
            self._known[key] = weakref.ref(mapped)
        mapped.last_use = next_use()
        mapped.check()
        return mapped

    def path(self, file: int, array: int) -> str:
        """Return the path of an aligned file."""
        name = self._words.schema(file).aligned[array].file
        return os.path.join(os.path.dirname(self._files.path(file)), name)

    def of(self, array: int) -> _OneAligned:
        """Return the files of one array."""
        return _OneAligned(self, array)

    def close(self) -> None:
        """Close all files; a file that is read again is opened again."""
        self._kept_open.close()

    def _open(self, file: int, array: int) -> MappedFile:
        schema = self._words.schema(file)
        name = schema.aligned[array].file
        as_surveyed = next(side for side in schema.beside if side.file == name)
        path = self.path(file, array)
        size, mtime_ns = as_surveyed.size, as_surveyed.mtime_ns
        if "://" in path:
            return far().reads.open(path, (size, mtime_ns), cache=self._files.cache(file))
        return MappedFile(path, size=size, mtime_ns=mtime_ns)


@final
@dataclass(frozen=True, slots=True)
class _OneAligned:
    """The files of one array, by the index of their token file."""

    files: _AlignedFiles
    array: int

    def mapped(self, file: int, /) -> MappedFile:
        """Return the map of a file, after a check; errors are those of `_AlignedFiles.mapped`."""
        return self.files.mapped(file, self.array)

    def path(self, file: int, /) -> str:
        """Return the path of a file."""
        return self.files.path(file, self.array)


_MOST_COMPARED = 1 << 20
"""The most documents whose lengths are compared with each other."""

_TOKENS = "tokens"
"""The name of the tokens in records."""


@final
class StoredArray(NamedTuple):
    """An array of a file as it is stored: an element for each token, or spans for each document."""

    name: str
    dtype: np.dtype[Any]
    """As stored; records have it in native byte order."""

    minus: int
    """A number that is subtracted from each stored element."""

    before: int
    """Of an array in the token file: the bytes of other arrays before it, for each token of the document."""

    aligned: int | None
    """The index of its aligned file; None for an array in the token file."""

    first: int
    """Of an aligned file: the byte of the element of token 0."""


def arrays_of(schema: TokenSchema, columns: Sequence[str] | None) -> tuple[StoredArray, ...]:
    """Return the arrays of the documents of a file.

    Args:
        schema: the form of the documents.
        columns: the names of the arrays to read, in the order of records; None for all.
    """
    found = [StoredArray(_TOKENS, np.dtype(schema.dtype), schema.minus, 0, None, 0)]
    before = found[0].dtype.itemsize
    for name, dtype in schema.inside:
        found.append(StoredArray(name, np.dtype(dtype), 0, before, None, 0))
        before += found[-1].dtype.itemsize
    for number, aligned in enumerate(schema.aligned):
        found.append(StoredArray(aligned.name, type_of(aligned.dtype), 0, 0, number, aligned.first))
    if columns is None:
        return tuple(found)
    by_name = {array.name: array for array in found}
    return tuple(by_name[name] for name in columns if name in by_name)


@final
class TokenFiles:
    """The files of one or more sources of tokens in one sequence, with all that documents are read by."""

    def __init__(self, sources: Sequence[tuple[FileSet, Sequence[str] | None, OnError | None]]) -> None:
        """Combine the files of some sources.

        Args:
            sources: of each source its indexed files, the names of the arrays to read, in the order of
                records (None for all), and what returns the record instead of a corrupt one.
        """
        self.files = sources[0][0] if len(sources) == 1 else combine([files for files, _, _ in sources])
        self.words = TokenWords(self.files)
        self.aligned = _AlignedFiles(self.files, self.words)
        self._errors = [errors for files, _, errors in sources for _ in range(len(files))]
        schemas = self.words.schemas
        self._token_zero = np.array([schema.first for schema in schemas], np.int64)
        self._token_bytes = np.array([np.dtype(schema.dtype).itemsize for schema in schemas], np.int64)
        names_of = [names for files, names, _ in sources for _ in range(len(files))]
        made: dict[tuple[int, int], tuple[StoredArray, ...]] = {}
        self._arrays = []
        """The arrays that are read of each file, one tuple for all files of a source that are alike."""
        for names, schema in zip(names_of, self.words.schema_of.tolist(), strict=True):
            kind = (id(names), schema)
            if kind not in made:
                made[kind] = arrays_of(self.words.schemas[schema], names)
            self._arrays.append(made[kind])

    @cached
    def kinds(self) -> Int64s:
        """For each file a number, equal for files with the same arrays: int64."""
        numbers: dict[tuple[StoredArray, ...], int] = {}
        return np.array([numbers.setdefault(arrays, len(numbers)) for arrays in self._arrays], np.int64)

    @cached
    def even(self) -> dict[str, np.dtype[Any]] | None:
        """The type of each array that is read, if all documents of all files have one length; else None.

        None too if spans are read, of which a document may have any number. Of more than a million documents,
        only fixed samples count as such.
        """
        fixed = {schema.sample for schema in self.words.schemas}
        if len(fixed) != 1:
            return None
        if fixed == {None}:
            if not 0 < int(self.files.starts[-1]) <= _MOST_COMPARED:
                return None
            lengths = self.words.lengths()
            if (lengths != lengths[0]).any():
                return None
        kinds: dict[str, list[np.dtype[Any]]] = {}
        for array in dict.fromkeys(array for arrays in self._arrays for array in arrays):
            kinds.setdefault(array.name, []).append(array.dtype.newbyteorder("="))
        if any(is_spans(dtype) for of in kinds.values() for dtype in of):
            return None
        alike = all({array.name for array in arrays} == kinds.keys() for arrays in self._arrays)
        recovers = any(errors is not None for errors in self._errors)
        return None if recovers or not alike else {name: np.result_type(*of) for name, of in kinds.items()}

    def arrays(self, file: int) -> tuple[StoredArray, ...]:
        """Return the arrays that are read of a file, in the order of records."""
        return self._arrays[file]

    def mapped(self, file: int) -> MappedFile:
        """Return the map of a file after a check.

        Raises:
            IndexStale: the file is not the one that was indexed.
        """
        mapped = self.files.mapped(file)
        mapped.check()
        return mapped

    def close(self) -> None:
        """Close all files; a file that is read again is opened again."""
        self.files.close()
        self.aligned.close()

    def record(self, mapped: MappedFile, file: int, row: int, first: int, count: int) -> Any:
        """Return the arrays of one document, or what ``errors`` returns if it is corrupt.

        Args:
            mapped: the token file, after a check.
            file: its number.
            row: the row of the document in the file.
            first: the byte of its first token.
            count: its number of tokens.

        Raises:
            CorruptRecord: an aligned file ends before the document does, and the source has no ``errors``.
            IndexStale: an aligned file has changed.
        """
        made = {}
        for array in self.arrays(file):
            if array.aligned is None:
                made[array.name] = _native(mapped.view, first + array.before * count, count, array)
                continue
            beside = self.aligned.mapped(file, array.aligned)
            if is_spans(array.dtype):
                made[array.name] = self._spans(beside, file, row)
                continue
            start = int(self.start_in_aligned(file, first, array))
            if start + count * array.dtype.itemsize <= beside.size:
                made[array.name] = _native(beside.view, start, count, array)
                continue
            corrupt, errors = too_short(beside, array, row, start, count), self._errors[file]
            if errors is None:
                raise corrupt
            return errors(corrupt)
        return made

    def ends_of_spans(self, file: int, array: StoredArray) -> int:
        """Return the byte of a file of spans from which on it says how many are before each document."""
        schema = self.words.schema(file)
        assert array.aligned is not None
        name = schema.aligned[array.aligned].file
        size = next(side.size for side in schema.beside if side.file == name)
        return size - 8 * (int(self.files.records[file]) + 1)

    def _spans(self, beside: MappedFile, file: int, row: int) -> Array:
        """Return the spans of a document.

        Raises:
            CorruptRecord: the file does not say where they are.
        """
        ends = beside.size - 8 * (int(self.files.records[file]) + 1)
        at = ends + 8 * row
        first, last = np.frombuffer(beside.view[at : at + 16], "<u8").tolist()
        if not first <= last <= ends // SPAN.itemsize:
            message = (
                f"the spans of this document are the spans {first:,} to {last:,} of the file, which has "
                f"{ends // SPAN.itemsize:,}: write it again"
            )
            raise CorruptRecord(
                beside.name, row, offset=at, length=16, preview=b"", cause=ValueError(message)
            )
        size = SPAN.itemsize
        made: Array = np.frombuffer(beside.view[first * size : last * size], SPAN)
        made.flags.writeable = False
        return made

    def start_in_aligned(self, file: Any, first: Any, array: StoredArray) -> Any:
        """Return the byte of an aligned file at which elements begin.

        Args:
            file: the index of the token file, or an array of such indices.
            first: the byte of the first token of a document in the token file, or an array of such bytes.
            array: an aligned array of these files.
        """
        schemas = self.words.schema_of[file]
        token = (first - self._token_zero[schemas]) // self._token_bytes[schemas]
        return array.first + token * array.dtype.itemsize


def _native(view: View, start: int, count: int, array: StoredArray) -> Array:
    """Return an array of native byte order that cannot be written, without a copy where that is possible."""
    dtype = array.dtype
    made: Array = np.frombuffer(view[start : start + count * dtype.itemsize], dtype)
    if array.minus:
        made = made - dtype.type(array.minus)
    if not made.flags.aligned or not dtype.isnative:
        made = made.astype(dtype.newbyteorder("="))
    made.flags.writeable = False
    return made


def too_short(beside: MappedFile, array: StoredArray, row: int, start: int, count: int) -> CorruptRecord:
    """Return the error for a document whose elements an aligned file does not have."""
    size = array.dtype.itemsize
    message = (
        f"the elements of {array.name!r} of this document are at the bytes {start:,} to "
        f"{start + count * size:,}, and the file has {beside.size:,}: it needs {size} a token; write it again"
    )
    return CorruptRecord(
        beside.name, row, offset=start, length=count * size, preview=b"", cause=ValueError(message)
    )


def alike(kinds: Int64s) -> Iterator[Any]:
    """Yield the indices of slices of one kind, as slices or arrays, at most 4,096 at a time.

    Args:
        kinds: the kind of each slice, int64.

    Example:
        >>> [np.arange(3)[some].tolist() for some in alike(np.array([5, 7, 5]))]
        [[0, 2], [1]]
    """
    for low in range(0, len(kinds), _TOGETHER):
        some = slice(low, low + _TOGETHER)
        of = kinds[some]
        if (of == of[0]).all():
            yield some
        else:
            yield from (low + np.flatnonzero(of == kind) for kind in np.unique(of))


@final
class FileMaps:
    """The open files of some slices, each opened once."""

    def __init__(self, files: Int64s, mapped: Callable[[int], MappedFile]) -> None:
        """Open each file once.

        Args:
            files: the index of each slice's file, at least one.
            mapped: returns the map of a file after a check.
        """
        self._numbers: list[int] = []
        if (files == files[0]).all():
            self._maps = [mapped(int(files[0]))]
            return
        present, numbers = np.unique(files, return_inverse=True)
        self._maps = [mapped(file) for file in present.tolist()]
        self._numbers = numbers.tolist()

    @property
    def views(self) -> View | list[View]:
        """The bytes of the one file, or a list with the bytes of each slice's file."""
        views = [mapped.view for mapped in self._maps]
        return [views[number] for number in self._numbers] if self._numbers else views[0]

    @property
    def sizes(self) -> Int64s:
        """The size of each slice's file in bytes; one number if all are in one file."""
        sizes = np.array([mapped.size for mapped in self._maps])
        return sizes[self._numbers] if self._numbers else sizes

    def of(self, number: int) -> MappedFile:
        """Return the file of a slice."""
        return self._maps[self._numbers[number] if self._numbers else 0]


_FEWEST_TOGETHER = 4
"""From this many slices of one length on, one call of numpy is faster than a loop."""

_MOST_JOINED = 128
"""The most slices that are joined before they are copied, so that what is joined stays in the cache."""


def copy_elements(
    target: Array,
    source: View | list[View],
    *,
    to: Int64s,
    starts: Int64s,
    counts: Int64s,
    dtype: np.dtype[Any],
    minus: int = 0,
) -> None:
    """Copy slices of stored elements into an array, converted to its type where that is another one.

    Args:
        target: the array to write, of any shape, contiguous.
        source: the bytes of the stored elements: one view of all slices, or a view for each.
        to: the first element of each slice in the flat target, int64.
        starts: its first byte in the source, int64.
        counts: its number of elements, int64.
        dtype: the type of the stored elements.
        minus: a number that is subtracted from each.
    """
    assert target.flags.c_contiguous
    if not target.size or not counts.size:
        return
    wide, narrow = target.dtype.itemsize, dtype.itemsize
    if target.dtype == dtype and not minus:
        _copy_slices(_bytes_of(target), source, to * wide, starts, counts * wide)
        return
    ends = np.cumsum(counts)
    stored = np.empty(int(ends[-1]), dtype)
    if stored.size:
        _copy_slices(_bytes_of(stored), source, (ends - counts) * narrow, starts, counts * narrow)
        made = (stored - dtype.type(minus)).astype(target.dtype)
        _copy_slices(_bytes_of(target), _bytes_of(made), to * wide, (ends - counts) * wide, counts * wide)


def _bytes_of(array: Array) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _copy_slices(
    target: memoryview, source: View | list[View], to: Int64s, starts: Int64s, counts: Int64s
) -> None:
    """Copy slices of buffers into another buffer; slices of the target must not overlap.

    Slices that are side by side in the target are joined, which takes half the time of copying each.

    Args:
        target: the bytes to write, in one dimension.
        source: the bytes to read, one view of all slices, or a list with a view for each; a memory map may
            be aligned or not.
        to: the first byte of each slice in the target, int64.
        starts: its first byte in the source, int64.
        counts: its number of bytes, int64; no slice may go beyond the end of a buffer.

    Example:
        >>> out = bytearray(b"......")
        >>> _copy_slices(memoryview(out), memoryview(b"abcdef"), *np.array([[3, 0], [1, 4], [3, 2]]))
        >>> bytes(out)
        b'ef.bcd'
    """
    several = isinstance(source, memoryview) and len(counts) >= _FEWEST_TOGETHER
    if several and counts[0] and (counts == counts[0]).all():
        _copy_equal(target, cast("memoryview", source), to, starts, int(counts[0]))
        return
    views = source if isinstance(source, list) else repeat(source)
    slices = zip(views, starts.tolist(), (starts + counts).tolist(), strict=False)
    for first, end, size in _side_by_side(to, to + counts):
        target[first:end] = b"".join([view[start:stop] for view, start, stop in islice(slices, size)])


def _side_by_side(firsts: Int64s, ends: Int64s) -> Iterator[tuple[int, int, int]]:
    """Yield the start, the end and the size of each group of slices that are side by side."""
    heads = np.ones(len(firsts), np.bool_)
    heads[1:] = firsts[1:] != ends[:-1]
    heads[::_MOST_JOINED] = True
    begins = np.flatnonzero(heads)
    sizes = np.diff(begins, append=len(firsts))
    lasts = begins + sizes - 1
    return zip(firsts[begins].tolist(), ends[lasts].tolist(), sizes.tolist(), strict=True)


def _copy_equal(target: memoryview, source: memoryview, to: Int64s, starts: Int64s, count: int) -> None:
    """Copy slices of one length as elements of a type with that many bytes."""
    kind = np.dtype((np.void, count))
    phase = int(starts[0]) % count
    picked, rest = np.divmod(starts - phase, count)
    if rest.any():
        _elements(target, kind)[to] = _elements(source, kind)[starts]
        return
    # Elements that stand side by side, as those of fixed windows do, are taken without a copy between.
    whole = np.frombuffer(source, kind, (len(source) - phase) // count, phase)
    if (np.diff(to) == count).all():
        np.take(whole, picked, out=np.frombuffer(target, kind, len(to), int(to[0])), mode="clip")
    else:
        _elements(target, kind)[to] = np.take(whole, picked)


def _elements(view: memoryview, kind: np.dtype[np.void]) -> Any:
    """Return an array of overlapping elements, one for each byte at which one can begin."""
    count = len(view) - kind.itemsize + 1
    return np.ndarray((count,), kind, buffer=cast("Any", view), strides=(1,))
