"""The way back from the documents of a token store to the lines that they were made of."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import SeekableError
from seekable.formats.classify import card_of_file
from seekable.formats.lines.csv_dialect import is_csv
from seekable.formats.lines.line_source import line_span
from seekable.formats.tokens.families.store import SOURCES, is_part, read_sources
from seekable.index.location import Location
from seekable.index.opening import find_indexed
from seekable.storage import paths

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.index.fileset import FileSet

__all__ = ["source_of"]

_LINES = frozenset({"jsonl", "text"})
"""The formats whose records are lines; those of CSV are too, or several lines."""


@dataclass(frozen=True, slots=True, eq=False)
class _Sources:
    """The rows that the documents of one part come from."""

    files: tuple[str, ...]
    """The paths of all source files of the store."""

    runs: NDArray[Any]
    """The runs of documents."""

    ends: NDArray[np.int64]
    """The number of documents up to the end of each run."""


def source_of(path: str, row: int, *, mtime_ns: int) -> Location | None:
    """Return the location of the record that a document was made of.

    The offset and the length of a line are those of the index of its file; both are 0 where there is none,
    and where the file has changed or has no lines.

    Args:
        path: the file of tokens.
        row: the number of the document in it.
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
