"""The source of the documents of token files."""

from __future__ import annotations

import os
from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, final

import numpy as np

from seekable._cached import cached
from seekable._lazy import lazy
from seekable.errors import InvalidArgument, UnsupportedFormat
from seekable.formats.tokens.stored_arrays import TokenFiles, arrays_of
from seekable.formats.tokens.token_reading import TokensReader, token_axis
from seekable.formats.tokens.token_recognition import TokenSurveyor
from seekable.formats.tokens.token_store import document_of
from seekable.formats.tokens.words import TokenWords
from seekable.nodes.columns.names import no_such_column
from seekable.nodes.files.leaf import SlicedLeaf

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seekable._typing import Int64s
    from seekable.formats.contract import OnError
    from seekable.formats.tokens import verify_tokens
    from seekable.formats.tokens.token_reading import TokenAxis
    from seekable.formats.tokens.words import TokenSchema
    from seekable.index.fileset import FileSet
    from seekable.index.finder import Finder
    from seekable.index.integrity import VerificationProblem
    from seekable.nodes.files.leaf import Bad

else:
    verify_tokens = lazy("seekable.formats.tokens.verify_tokens")

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
        return tuple(verify_tokens.store_problems(self.files))

    def bad_rows(self, start: int, stop: int) -> Bad:
        """Return the documents with an id that no token has."""
        return verify_tokens.wrong_ids_in(self, start, stop)

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
