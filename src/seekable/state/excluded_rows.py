"""Rows of files that a run leaves out, as one value: sorted, without doubles, with one text for one value.

A file is told by its name below the folder that was opened and by the digest of its head and tail, as in
fingerprints: so the value is the same on every machine, and two files of one name in two folders differ. A
sequence in memory has a name in angle brackets, and no digest.

In JSON the rows of a file are the gaps between them, as variable-length integers, base64: about two bytes a
row where one row in a hundred is listed.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
import xxhash

from seekable._cached import cached
from seekable.errors import CorruptState
from seekable.state.canonical import canonical_json, decode_names, fingerprint_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]

__all__ = ["MOST_INLINE", "ExcludedFile", "ExcludedRows", "described_rows", "rows_as_text", "rows_of_text"]

MOST_INLINE: Final = 4096
"""The most rows that stand in a state or a description themselves; of more these have a digest."""

_SEVEN_BITS, _MORE = 0x7F, 0x80
_MOST_BYTES = 9
"""The most bytes of a variable-length integer below 2**63."""


def rows_as_text(rows: Int64s) -> str:
    """Return ascending distinct rows as text: their gaps as variable-length integers, base64.

    Example:
        >>> rows_as_text(np.array([3, 4, 300])), rows_of_text(rows_as_text(np.array([3, 4, 300]))).tolist()
        ('AwCnAg==', [3, 4, 300])
    """
    gaps = np.diff(rows, prepend=-1) - 1
    counts = np.ones(rows.size, dtype=np.int64)
    for number in range(1, _MOST_BYTES):
        counts += gaps >> (7 * number) != 0
    ends = np.cumsum(counts)
    data = np.empty(int(ends[-1]) if rows.size else 0, dtype=np.uint8)
    for number in range(_MOST_BYTES):
        here = np.flatnonzero(counts > number)
        more = np.where(counts[here] - 1 > number, _MORE, 0)
        data[ends[here] - counts[here] + number] = ((gaps[here] >> (7 * number)) & _SEVEN_BITS) | more
    return base64.b64encode(data.tobytes()).decode("ascii")


def rows_of_text(text: str) -> Int64s:
    """Return the rows that `rows_as_text` wrote.

    Raises:
        CorruptState: it wrote no such text.
    """
    try:
        data = np.frombuffer(base64.b64decode(text, validate=True), dtype=np.uint8)
    except (ValueError, binascii.Error) as error:
        message = f"a list of rows is no base64 ({error}): {text[:40]!r}"
        raise CorruptState(message) from None
    lasts = np.flatnonzero(data < _MORE)
    if not data.size:
        return np.empty(0, dtype=np.int64)
    firsts = np.concatenate([[0], lasts[:-1] + 1]) if lasts.size else lasts
    if not lasts.size or lasts[-1] != data.size - 1 or (lasts - firsts).max() >= _MOST_BYTES:
        message = f"a list of rows is cut or changed: {text[:40]!r}"
        raise CorruptState(message)
    places = np.arange(data.size) - np.repeat(firsts, lasts - firsts + 1)
    bits = (data & _SEVEN_BITS).astype(np.int64) << (7 * places)
    rows: Int64s = np.cumsum(np.add.reduceat(bits, firsts) + 1) - 1
    if (rows < 0).any():
        message = f"a list of rows has numbers that are too large: {text[:40]!r}"
        raise CorruptState(message)
    return rows


def described_rows(rows: Int64s) -> dict[str, Any]:
    """Return what a description has of rows that are left out: number and digest, and few rows themselves.

    Args:
        rows: ascending and distinct.

    Example:
        >>> described_rows(np.array([3, 4, 300]))
        {'excluded': 3, 'rows': 'xxh3:6cf3750a65640fea', 'list': 'AwCnAg=='}
    """
    digest = f"xxh3:{xxhash.xxh3_64_hexdigest(rows.astype('<i8').tobytes())}"
    few = {"list": rows_as_text(rows)} if rows.size <= MOST_INLINE else {}
    return {"excluded": int(rows.size), "rows": digest, **few}


@dataclass(frozen=True, slots=True, order=True)
class ExcludedFile:
    """A file as fingerprints know it."""

    name: str
    """The path of the file below the folder that was opened; in angle brackets for a sequence."""

    head_tail: str = ""
    """The digest of its first and last 64 KiB and its size; empty for a sequence."""


class _File(msgspec.Struct):
    name: str
    head_tail: str
    gaps: str


class _Document(msgspec.Struct):
    rows: int
    files: list[_File]


@dataclass(frozen=True, eq=False, repr=False)
class ExcludedRows:
    """Rows of files to leave out; equal if the same rows of the same files are left out.

    Example:
        >>> some = ExcludedRows.of([(ExcludedFile("a.jsonl", "xxh3:1"), np.array([7, 3, 7]))])
        >>> len(some), [(file.name, rows.tolist()) for file, rows in some]
        (2, [('a.jsonl', [3, 7])])
        >>> ExcludedRows.from_bytes(some.to_bytes()) == some
        True
    """

    files: tuple[ExcludedFile, ...]
    """The files that have rows in the list: distinct, ascending."""

    edges: Int64s
    """For each file the index of its first row in ``rows``, and then their number."""

    rows: Int64s
    """The rows of all files, one file after the other: int64, distinct and ascending in each file."""

    @classmethod
    def of(cls, parts: Iterable[tuple[ExcludedFile, Int64s]]) -> ExcludedRows:
        """Return the rows of some files; a file may come several times, and so may a row."""
        found: dict[ExcludedFile, list[Int64s]] = {}
        for file, rows in parts:
            if rows.size:
                found.setdefault(file, []).append(rows)
        files = tuple(sorted(found))
        each = [np.unique(np.concatenate(found[file])).astype(np.int64) for file in files]
        edges = np.cumsum([0, *(rows.size for rows in each)]).astype(np.int64)
        return cls(files, edges, np.concatenate([np.empty(0, dtype=np.int64), *each]))

    def __len__(self) -> int:
        """Return the number of rows in all files."""
        return int(self.rows.size)

    def __iter__(self) -> Iterator[tuple[ExcludedFile, Int64s]]:
        """Yield each file with its rows: int64, ascending."""
        for number, file in enumerate(self.files):
            yield file, self.rows[self.edges[number] : self.edges[number + 1]]

    def __repr__(self) -> str:
        return f"<{len(self):,} excluded rows of {len(self.files):,} files>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ExcludedRows):
            return NotImplemented
        same = self.files == other.files and np.array_equal(self.edges, other.edges)
        return same and np.array_equal(self.rows, other.rows)

    def __hash__(self) -> int:
        return hash(self.digest)

    def __or__(self, other: ExcludedRows) -> ExcludedRows:
        """Return the rows of both."""
        return ExcludedRows.of([*self, *other])

    @cached
    def digest(self) -> str:
        """The digest of ``document``, which is equal for equal rows."""
        return fingerprint_of(self.document())

    def document(self) -> dict[str, Any]:
        """Return the rows, JSON-safe: what ``from_document`` takes."""
        files = [
            {"name": file.name, "head_tail": file.head_tail, "gaps": rows_as_text(rows)}
            for file, rows in self
        ]
        return {"rows": len(self), "files": files}

    @classmethod
    def from_document(cls, document: Any) -> ExcludedRows:
        """Return the rows that ``document`` returned this for, also after a JSON round trip.

        Raises:
            CorruptState: it is no such document, or something changed it.
        """
        try:
            read = msgspec.convert(document, _Document)
        except msgspec.ValidationError as error:
            message = f"not a list of excluded rows: {error}"
            raise CorruptState(message) from None
        return _of_document(read)

    def to_bytes(self) -> bytes:
        """Return the canonical bytes: JSON of ``document``, the same for equal rows."""
        return canonical_json(self.document())

    @classmethod
    def from_bytes(cls, data: bytes) -> ExcludedRows:
        """Return the rows that ``to_bytes`` wrote.

        Raises:
            CorruptState: it wrote no such bytes.
        """
        try:
            read = decode_names(data, _Document)
        except ValueError as error:
            message = f"{len(data):,} bytes are not a list of excluded rows ({error}): it was cut or changed"
            raise CorruptState(message) from None
        return _of_document(read)


def _of_document(read: _Document) -> ExcludedRows:
    parts = [(ExcludedFile(file.name, file.head_tail), rows_of_text(file.gaps)) for file in read.files]
    made = ExcludedRows.of(parts)
    if len(made) != read.rows or len(made.files) != len(parts):
        message = (
            f"a list of excluded rows says {read.rows:,} rows of {len(parts):,} files, and has "
            f"{len(made):,} of {len(made.files):,}: something changed it"
        )
        raise CorruptState(message)
    return made
