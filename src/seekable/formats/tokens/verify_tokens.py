"""Verifies token files: ids that no token has, and parts in stores whose content has changed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np
import xxhash

from seekable.errors import CorruptRecord, CorruptState
from seekable.formats.tokens.token_store import DOCUMENT, read_document
from seekable.index.integrity import VerificationProblem
from seekable.storage import paths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from seekable.formats.tokens.token_reading import TokensPlan
    from seekable.formats.tokens.token_store import PartFacts, StoreDocument
    from seekable.index.fileset import FileSet
    from seekable.nodes.node import Node

__all__ = ["store_problems", "wrong_ids_in"]

_TOKENS_AT_ONCE = 1 << 20
_READ_BYTES = 8 << 20
_PREVIEW_TOKENS = 8


class _Documents(Protocol):
    """A source of the documents of token files."""

    @property
    def files(self) -> FileSet: ...

    def narrowed(self, columns: frozenset[str]) -> Node: ...

    def lengths_between(self, start: int, stop: int) -> NDArray[np.int64]: ...


def wrong_ids_in(source: _Documents, start: int, stop: int) -> dict[str, tuple[CorruptRecord, int]]:
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


def store_problems(files: FileSet) -> Iterator[VerificationProblem]:
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
