"""The source of the documents of token files, and their verification."""

from __future__ import annotations

import os
from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, cast, final

import numpy as np
import xxhash

from seekable._cached import cached
from seekable.errors import CorruptRecord, CorruptState, InvalidArgument, UnsupportedFormat
from seekable.formats.tokens.stored_arrays import TokenFiles, arrays_of
from seekable.formats.tokens.token_reading import TokensReader, token_axis
from seekable.formats.tokens.token_recognition import TokenSurveyor
from seekable.formats.tokens.token_store import DOCUMENT, document_of, read_document
from seekable.formats.tokens.words import TokenWords
from seekable.index.integrity import VerificationProblem
from seekable.nodes.columns.names import no_such_column
from seekable.nodes.files.leaf import SlicedLeaf
from seekable.storage import paths

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.contract import OnError
    from seekable.formats.tokens.token_reading import TokenAxis, TokensPlan
    from seekable.formats.tokens.token_store import PartFacts, StoreDocument
    from seekable.formats.tokens.words import TokenSchema
    from seekable.index.fileset import FileSet
    from seekable.index.finder import Finder
    from seekable.nodes.files.leaf import Bad
    from seekable.nodes.node import Node

__all__ = ["TokenSource", "check_arrays"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class TokenSource(SlicedLeaf):
    """A source over indexed token files: row ``r`` is document ``r``, one file after another.

    A record is a dict of arrays: ``tokens``, and the arrays of as many elements that are stored with them.
    """

    files: FileSet
    format: str
    asked: str
    columns: tuple[str, ...] | None = None
    """The arrays that the user named, in their order; None for all."""
    needed: frozenset[str] | None = None
    """The arrays that are used above; None for all. The description leaves them out."""
    errors: OnError | None = None

    kind: ClassVar[str] = "tokens"

    @cached
    def words(self) -> TokenWords:
        """The places of all documents."""
        return TokenWords(self.files)

    @property
    def finder(self) -> Finder:
        """The surveyor that found the documents."""
        return TokenSurveyor(self.format)

    @property
    def decodes_itself(self) -> bool:
        """True: arrays need no decoding."""
        return True

    def problems(self) -> Sequence[VerificationProblem]:
        """Return the parts of token stores whose content is not as it was written."""
        return tuple(_store_problems(self.files))

    def bad_rows(self, start: int, stop: int) -> Bad:
        """Return the documents with an id that no token has."""
        return _wrong_ids_in(self, start, stop)

    @property
    def keys(self) -> None:
        """Always None: documents have no keys."""
        return None

    @property
    def version(self) -> None:
        """Always None: no function makes documents."""
        return None

    @cached
    def dtypes(self) -> dict[str, np.dtype[Any]]:
        """The type of each array in records, in native byte order; it holds the types in all files."""
        types: dict[str, list[np.dtype[Any]]] = {}
        for schema in self.words.schemas:
            for array in arrays_of(schema, self.columns):
                types.setdefault(array.name, []).append(array.dtype.newbyteorder("="))
        return {name: np.result_type(*found) for name, found in types.items()}

    @property
    def trained(self) -> int | None:
        """The number of tokens in the loss; None where the files are not of stores that count them."""
        parts: dict[str, dict[str, int | None]] = {}
        trained = 0
        for file in range(len(self.files)):
            folder, name = os.path.split(self.files.path(file))
            if folder not in parts:
                document = document_of(folder)
                parts[folder] = {part.name: part.trained for part in document.parts} if document else {}
            of_part = parts[folder].get(os.path.splitext(name)[0])
            if of_part is None:
                return None
            trained += of_part
        return trained if parts else None

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the format, the columns, the forms of documents, and every file by name and digests."""
        columns = {} if self.columns is None else {"columns": list(self.columns)}
        return {"format": self.format, **columns, **self._forms(), "files": self.files.described()}

    def _forms(self) -> dict[str, Any]:
        """Return how documents lie in the files: each form once, and its number for each file if they differ.

        The offsets of documents, and so the digests of files, can be equal for different types of tokens.
        """
        forms: dict[TokenSchema, int] = {}
        numbers = [forms.setdefault(schema.form, len(forms)) for schema in self.words.schemas]
        described: dict[str, Any] = {"forms": [form.described() for form in forms]}
        if len(forms) > 1:
            described["form_of"] = [numbers[schema] for schema in self.words.schema_of.tolist()]
        return described

    def shown(self, children: Sequence[str]) -> str:
        """Return the call of ``sk.open``."""
        columns = "" if self.columns is None else f", columns={list(self.columns)}"
        return f"open({self.asked}{columns}{self.shown_options()})"

    @classmethod
    def reader(cls, nodes: Sequence[TokenSource]) -> TokensReader:
        """Return a reader that reads the files of all nodes as one source."""
        sizes = np.array([node.size for node in nodes], np.int64)
        if len(nodes) == 1:
            return TokensReader(nodes[0].reading, sizes)
        return TokensReader(TokenFiles([(node.files, node.used, node.errors) for node in nodes]), sizes)

    def record_of(self, file: int, row: int) -> Any:
        """Return the arrays of a document of a file.

        Raises:
            CorruptRecord: an aligned file ends before the document does, and the source has no ``errors``.
            IndexStale: a file has changed.
        """
        mapped = self.files.mapped(file)
        mapped.check()
        first, count = self.words.span(file, row)
        return self.reading.record(mapped, file, row, first, count)

    def lengths_between(self, start: int, stop: int) -> Int64s:
        """Return how many tokens each of some consecutive documents has: int64; no data file is read."""
        starts, found = self._reads.starts, [np.zeros(0, np.int64)]
        file = max(bisect_right(starts, start) - 1, 0)
        while start < stop:
            first, end = starts[file], min(starts[file + 1], stop)
            found.append(self.words.lengths_of(file, start - first, end - first))
            start, file = end, file + 1
        return np.concatenate(found)

    def close_others(self) -> None:
        """Close the files of the arrays that are aligned with tokens."""
        self.reading.close()

    def narrowed(self, columns: frozenset[str]) -> Self:
        """Return the source with fewer arrays to read."""
        needed = columns if self.needed is None else columns & self.needed
        return replace(self, needed=needed)

    def declared(self) -> Mapping[str, Any] | None:
        """Return the names of the arrays; None without a document."""
        return dict.fromkeys(self.dtypes) if self.size else None

    @property
    def used(self) -> tuple[str, ...] | None:
        """The names of the arrays that are read, in the order of records; None for all."""
        if self.needed is None:
            return self.columns
        return tuple(name for name in self.dtypes if name in self.needed)

    @cached
    def reading(self) -> TokenFiles:
        """The files with all that documents are read by."""
        return TokenFiles([(self.files, self.used, self.errors)])

    @cached
    def axis(self) -> TokenAxis | None:
        """The tokens of all documents end to end; None if something else lies between them in a file."""
        return token_axis(self.reading)


def check_arrays(source: TokenSource) -> None:
    """Check that all files have the same arrays, and those that the user named.

    Raises:
        InvalidArgument: the documents lack a column.
        UnsupportedFormat: files differ in their arrays.
    """
    words = source.words
    names = [tuple(array.name for array in arrays_of(schema, None)) for schema in words.schemas]
    other = next((number for number, found in enumerate(names) if set(found) != set(names[0])), None)
    if other is not None:
        first, second = (int(np.flatnonzero(words.schema_of == number)[0]) for number in (0, other))
        message = (
            f"{source.files.shown_path(first)!r} has the arrays {', '.join(names[0])}, and "
            f"{source.files.shown_path(second)!r} has {', '.join(names[other])}: open them apart, or write "
            f"the arrays that are missing"
        )
        raise UnsupportedFormat(message)
    for column in source.columns or ():
        if names and column not in names[0]:
            raise InvalidArgument(no_such_column(column, names[0]))


_TOKENS_AT_ONCE = 1 << 20
_READ_BYTES = 8 << 20
_PREVIEW_TOKENS = 8


class _Documents(Protocol):
    """A source of the documents of token files."""

    @property
    def files(self) -> FileSet: ...

    def narrowed(self, columns: frozenset[str]) -> Node: ...

    def lengths_between(self, start: int, stop: int) -> NDArray[np.int64]: ...


def _wrong_ids_in(source: _Documents, start: int, stop: int) -> dict[str, tuple[CorruptRecord, int]]:
    """Return the documents with an id that no token has; the function can run in any process.

    An id is wrong if it is below 0, or not below the vocabulary that the document of a token store has.

    Args:
        source: the documents.
        start: the first row.
        stop: the row after the last one.

    Returns:
        By path, the first such document of a file, and the number of such documents.
    """
    bad: dict[str, tuple[CorruptRecord, int]] = {}
    known: dict[str, int | None] = {}
    narrowed = source.narrowed(frozenset({"tokens"}))
    for first, last in _stretches(source, start, stop):
        plan = cast("TokensPlan", narrowed.plan(np.arange(first, last, dtype=np.int64)))
        records = plan.read()
        tokens = np.concatenate([record["tokens"] for record in records])
        rows = np.repeat(np.arange(last - first), plan.counts)
        files = plan.files[rows]
        for file in np.unique(files).tolist():
            folder = os.path.dirname(source.files.path(file))
            if folder not in known:
                known[folder] = _vocabulary(folder)
            here = files == file
            wrong = np.flatnonzero(here & _is_wrong(tokens, known[folder]))
            for row in np.unique(rows[wrong]).tolist():
                error = _error(plan, row, records[row]["tokens"], known[folder])
                before, count = bad.get(error.path, (error, 0))
                bad[error.path] = before, count + 1
    return bad


def _store_problems(files: FileSet) -> Iterator[VerificationProblem]:
    """Yield the files of parts of token stores whose content is not as it was written; all is read.

    Args:
        files: token files; those of other tools have no digests and are passed over.
    """
    known: dict[str, dict[str, PartFacts]] = {}
    for file in range(len(files)):
        folder, name = os.path.split(files.path(file))
        stem = os.path.splitext(name)[0]
        if folder not in known:
            known[folder] = _parts_of(folder)
        facts = known[folder].get(stem)
        for suffix, expected in (facts.digests if facts else {}).items():
            path = os.path.join(folder, f"{stem}.{suffix}")
            found = _digest(path) if paths.is_file(path) else "no file"
            if found != expected:
                message = (
                    f"the digest of all of it is {found}, and {DOCUMENT} says {expected}: copy the store "
                    f"again, or remove the files of this part and repeat the call that wrote the store"
                )
                yield VerificationProblem("content", path, message)


def _stretches(source: _Documents, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows with about a million tokens each; a longer document is a range of its own."""
    ends = np.cumsum(source.lengths_between(start, stop))
    first = 0
    while first < stop - start:
        before = int(ends[first - 1]) if first else 0
        last = max(int(np.searchsorted(ends, before + _TOKENS_AT_ONCE, side="right")), first + 1)
        yield start + first, start + last
        first = last


def _is_wrong(tokens: NDArray[np.integer], vocabulary: int | None) -> NDArray[np.bool_]:
    wrong: NDArray[np.bool_] = tokens < 0
    return wrong if vocabulary is None else wrong | (tokens >= vocabulary)


def _error(plan: TokensPlan, row: int, tokens: NDArray[np.integer], vocabulary: int | None) -> CorruptRecord:
    number = int(np.flatnonzero(_is_wrong(tokens, vocabulary))[0])
    limit = "at least 0" if vocabulary is None else f"from 0 to {vocabulary - 1:,}, as {DOCUMENT} says"
    cause = ValueError(f"token {number:,} of the document is {int(tokens[number]):,}, and ids are {limit}")
    (where,) = plan.slice(row, row + 1).locate()
    return CorruptRecord(
        where.path,
        where.row,
        offset=where.offset,
        length=where.length,
        preview=tokens[:_PREVIEW_TOKENS].tobytes(),
        cause=cause,
    )


def _vocabulary(folder: str) -> int | None:
    document = _document(folder)
    return None if document is None else document.vocabulary


def _parts_of(folder: str) -> dict[str, PartFacts]:
    document = _document(folder)
    return {part.name: part for part in document.parts} if document else {}


def _document(folder: str) -> StoreDocument | None:
    """Return the document of a token store; None in other folders, and if it is damaged."""
    try:
        return read_document(folder)
    except CorruptState:
        return None


def _digest(path: str) -> str:
    hasher = xxhash.xxh3_128()
    with paths.open_file(path) as file:
        while data := file.read(_READ_BYTES):
            hasher.update(data)
    return hasher.hexdigest()
