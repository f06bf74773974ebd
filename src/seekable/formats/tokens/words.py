"""The words of a file of tokens in the index: how its documents become numbers, and are read back.

The words of a file with N documents, in this order:

1. where each document starts, and where the last one ends: N + 1 words, in bytes of the file;
2. only where the schema says that documents are explicit: where the tokens of each document start, N words,
   and how many tokens it has, N words.

The schema is JSON, with the fields of `TokenSchema`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._cached import cached
from seekable.index.finder import SideFile, Survey

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.index.fileset import FileSet

    UInt64s = NDArray[np.uint64]

__all__ = ["AlignedFile", "SideFile", "TokenSchema", "TokenWords", "token_survey"]


@dataclass(frozen=True, slots=True)
class AlignedFile:
    """A file with one element for each token of a data file, in the same order; or with spans of tokens."""

    name: str
    """The name of the array in records."""

    dtype: str
    """The type of an element, as ``"|u1"``, ``"|b1"`` or ``"<f4"``.

    ``"spans"`` for spans of tokens: the file has those of all documents, then as uint64 how many there are
    before each document, and in all.
    """

    file: str
    """The name of the file, which lies in the folder of the data file."""

    first: int = 0
    """The byte of the element of token 0; that of token t is ``first + t * itemsize``."""


@dataclass(frozen=True, slots=True)
class TokenSchema:
    """The form in which a file of tokens has its documents.

    The bytes of a document without explicit words are: ``skip`` bytes of a header, its n tokens, then n
    elements of each array of ``inside``.

    Example:
        >>> TokenSchema.decode(TokenSchema("<u2", skip=4).encode()).skip
        4
    """

    dtype: str
    """The type of a token, as ``"<u2"`` or ``"<i4"``."""

    skip: int = 0
    """The bytes before the first token of each document."""

    explicit: bool = False
    """True if words say where the tokens of each document start, and how many they are."""

    minus: int = 0
    """A number that is subtracted from each stored token."""

    sample: int | None = None
    """The number of tokens of each document, if its bytes do not decide it; else None."""

    first: int = 0
    """The byte of token 0 of the file, from which the elements of aligned files are counted."""

    inside: tuple[tuple[str, str], ...] = ()
    """The name and the type of each array after the tokens of a document; it has as many elements."""

    aligned: tuple[AlignedFile, ...] = ()
    """The files with one element for each token."""

    beside: tuple[SideFile, ...] = ()
    """The files that were read to survey this one: if one of them has changed, it is surveyed again."""

    warnings: tuple[str, ...] = ()
    """The texts of warnings about the file, such as that two ways to count its documents differ."""

    @property
    def width(self) -> int:
        """The bytes of one token and its elements in the arrays ``inside``."""
        return np.dtype(self.dtype).itemsize + sum(np.dtype(dtype).itemsize for _, dtype in self.inside)

    @property
    def form(self) -> TokenSchema:
        """The form without what may change between copies of a file: other files, and texts of warnings."""
        aligned = tuple(replace(each, file="") for each in self.aligned)
        return replace(self, aligned=aligned, beside=(), warnings=())

    def described(self) -> dict[str, Any]:
        """Return the fields that are not the default ones, JSON-safe."""
        every, plain = asdict(self), asdict(TokenSchema(""))
        return {name: value for name, value in every.items() if value != plain[name]}

    def encode(self) -> bytes:
        """Return the schema as JSON."""
        return json.dumps(asdict(self), separators=(",", ":")).encode()

    @classmethod
    def decode(cls, schema: bytes) -> TokenSchema:
        """Return the schema that `encode` made the bytes of."""
        fields: dict[str, Any] = json.loads(schema)
        fields["inside"] = tuple((name, dtype) for name, dtype in fields["inside"])
        fields["aligned"] = tuple(AlignedFile(**each) for each in fields["aligned"])
        fields["beside"] = tuple(SideFile(**each) for each in fields["beside"])
        fields["warnings"] = tuple(fields["warnings"])
        return cls(**fields)


def token_survey(
    bounds: UInt64s,
    schema: TokenSchema,
    *,
    digest: bytes,
    payloads: UInt64s | None = None,
    counts: UInt64s | None = None,
) -> Survey:
    """Return the survey of a file of tokens.

    Args:
        bounds: where each document starts, and where the last one ends: uint64 (documents + 1,).
        schema: the form of the documents; if it is explicit, the next two are given.
        digest: the digest, of 8 bytes, of all that was read to find the documents.
        payloads: where the tokens of each document start, uint64 (documents,).
        counts: the number of tokens of each document, uint64 (documents,).
    """
    assert schema.explicit == (payloads is not None) == (counts is not None)
    words = bounds
    if payloads is not None and counts is not None:
        words = np.concatenate([bounds, payloads, counts])
    return Survey(words, len(bounds) - 1, schema.encode(), digest)


class TokenWords:
    """The documents of indexed files of tokens; never changed, safe from threads.

    Files are given by their index in the set, rows within their files. Nothing is checked, and no data file
    is opened.
    """

    def __init__(self, files: FileSet) -> None:
        """Read the schemas of the files."""
        schemas, self.schema_of = files.schemas()
        """The index of each file's schema in ``schemas``, int64."""
        self.schemas = [TokenSchema.decode(schema) for schema in schemas]
        """The distinct schemas of the files."""
        self._files = files
        self._skips = self._of_files([schema.skip for schema in self.schemas])
        self._widths = self._of_files([schema.width for schema in self.schemas])
        self._samples = self._of_files(
            [-1 if schema.sample is None else schema.sample for schema in self.schemas]
        )
        self._explicit = self._of_files([schema.explicit for schema in self.schemas]).astype(np.bool_)
        self._has_fixed = bool((self._samples >= 0).any())
        self._has_explicit = bool(self._explicit.any())

    def schema(self, file: int) -> TokenSchema:
        """Return the schema of a file."""
        return self.schemas[int(self.schema_of[file])]

    def spans(self, files: Int64s, rows: Int64s) -> tuple[Int64s, Int64s]:
        """Return where the tokens of each document start, in bytes, and how many they are.

        Args:
            files: the index of each document's file, int64.
            rows: its row in that file, int64.
        """
        starts, ends = (words.view(np.int64) for words in self._files.words(files, rows))
        firsts = starts + self._skips[files]
        counts = (ends - firsts) // self._widths[files]
        if self._has_fixed:
            samples = self._samples[files]
            counts = np.where(samples >= 0, samples, counts)
        if self._has_explicit:
            at = np.flatnonzero(self._explicit[files])
            own, number, records = files[at], rows[at], self._files.records[files[at]]
            firsts[at] = self._files.words(own, records + 1 + number)[0].view(np.int64)
            counts[at] = self._files.words(own, 2 * records + 1 + number)[0].view(np.int64)
        return firsts, counts

    def span(self, file: int, row: int) -> tuple[int, int]:
        """Return where the tokens of one document start, in bytes, and how many they are."""
        words, at = self._files.file_words(file)
        schema = self.schemas[self._schema_numbers[file]]
        if schema.explicit:
            records = int(self._files.records[file])
            return words.number(at + records + 1 + row), words.number(at + 2 * records + 1 + row)
        start, end = words.pair(at + row)
        first = start + schema.skip
        if schema.sample is not None:
            return first, schema.sample
        return first, (end - first) // self._width_of[file]

    def lengths_of(self, file: int, start: int = 0, stop: int | None = None) -> Int64s:
        """Return how many tokens each of some consecutive documents of a file has: int64.

        Args:
            file: the index of the file.
            start: the row of the first document.
            stop: the row after the last document; all further ones if left out.
        """
        schema = self.schema(file)
        records = int(self._files.records[file])
        stop = records if stop is None else stop
        words, at = self._files.file_words(file)
        if schema.sample is not None:
            return np.full(stop - start, schema.sample, np.int64)
        if schema.explicit:
            at += 2 * records + 1
            return np.array(words.span(at + start, at + stop), np.int64)
        bounds = np.asarray(words.span(at + start, at + stop + 1)).view(np.int64)
        lengths: Int64s = (np.diff(bounds) - schema.skip) // schema.width
        return lengths

    def lengths(self) -> Int64s:
        """Return how many tokens each document has: int64, one file after another."""
        made = [self.lengths_of(file) for file in range(len(self._files))]
        return np.concatenate(made) if made else np.zeros(0, np.int64)

    def _of_files(self, of_schemas: list[int]) -> Int64s:
        found: Int64s = np.array(of_schemas, np.int64)[self.schema_of]
        return found

    @cached
    def _schema_numbers(self) -> list[int]:
        numbers: list[int] = self.schema_of.tolist()
        return numbers

    @cached
    def _width_of(self) -> list[int]:
        widths: list[int] = self._widths.tolist()
        return widths
