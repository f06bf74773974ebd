"""The arrays of the documents of token files as they are stored, and as records have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from seekable._cached import cached
from seekable.errors import CorruptRecord
from seekable.formats.tokens.source.aligned_files import AlignedFiles
from seekable.formats.tokens.words import TokenWords
from seekable.index.fileset import combine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.contract import OnError
    from seekable.formats.tokens.words import TokenSchema
    from seekable.index.fileset import FileSet
    from seekable.storage.mapped import MappedFile, View

    Array = NDArray[Any]

__all__ = ["TOKENS", "StoredArray", "TokenFiles", "arrays_of", "too_short"]

_MOST_COMPARED = 1 << 20
"""The most documents whose lengths are compared with each other."""

TOKENS = "tokens"
"""The name of the tokens in records."""


@final
class StoredArray(NamedTuple):
    """An array of the documents of a file, as it is stored."""

    name: str
    dtype: np.dtype[Any]
    """As stored; records have it in native byte order."""

    minus: int
    """A number that is subtracted from each stored element."""

    before: int
    """Of an array in the token file: the bytes of other arrays before it, for each token of the document."""

    aligned: int | None
    """The number of its aligned file; None for an array in the token file."""

    first: int
    """Of an aligned file: the byte of the element of token 0."""


def arrays_of(schema: TokenSchema, columns: Sequence[str] | None) -> tuple[StoredArray, ...]:
    """Return the arrays of the documents of a file.

    Args:
        schema: the form of the documents.
        columns: the names of the arrays to read, in the order of records; None for all.
    """
    found = [StoredArray(TOKENS, np.dtype(schema.dtype), schema.minus, 0, None, 0)]
    before = found[0].dtype.itemsize
    for name, dtype in schema.inside:
        found.append(StoredArray(name, np.dtype(dtype), 0, before, None, 0))
        before += found[-1].dtype.itemsize
    for number, aligned in enumerate(schema.aligned):
        found.append(StoredArray(aligned.name, np.dtype(aligned.dtype), 0, 0, number, aligned.first))
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
        self.aligned = AlignedFiles(self.files, self.words)
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

        Of more than a million documents, only fixed samples count as such.
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
            start = int(self.start_in_aligned(file, first, array))
            if start + count * array.dtype.itemsize <= beside.size:
                made[array.name] = _native(beside.view, start, count, array)
                continue
            corrupt, errors = too_short(beside, array, row, start, count), self._errors[file]
            if errors is None:
                raise corrupt
            return errors(corrupt)
        return made

    def start_in_aligned(self, file: Any, first: Any, array: StoredArray) -> Any:
        """Return the byte of an aligned file at which elements begin.

        Args:
            file: the number of the token file, or an array of such numbers.
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
