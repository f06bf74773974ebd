"""The protocols of formats whose files the index does not read as a whole.

A `Surveyor` goes from header to header of a file; a `TableIndexer` reads the footer of a table.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec
import numpy as np

from seekable._lazy import lazy
from seekable.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray
    from typing_extensions import TypeIs

    from seekable.index.scanner import Scanner
    from seekable.storage import paths
    from seekable.storage.ranges import RangeSource
else:
    paths = lazy("seekable.storage.paths")


class ForwardReader(Protocol):
    """The bytes of one file, read from its start to its end; what lies between may be left out."""

    @property
    def path(self) -> str:
        """The name of the file in error messages."""

    def read(self, start: int, count: int) -> bytes:
        """Return up to ``count`` bytes, fewer only at the end of the file.

        Args:
            start: the first byte, not before that of an earlier call.
            count: the number of bytes.
        """


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """The places of the records of a file, as the index keeps them."""

    words: NDArray[np.uint64]
    """The numbers that the format reads back: first where each record starts, and where the last one ends."""

    records: int
    """The number of records."""

    schema: bytes
    """The fields of the file and the form of its words, in few distinct values over many files."""

    digest: bytes
    """The digest of all headers, of 8 bytes."""


class Surveyor(Protocol):
    """Finds the records of a file by its headers: a small value without handles, as a ``Scanner`` is.

    The result is a pure function of the headers, and of the fields of the surveyor.
    """

    @property
    def name(self) -> str:
        """The name in the index: of the format, with all options that decide where records start."""

    def check_head(self, head: bytes, path: str) -> None:
        """Check the first 64 KiB of a file (all of it, if it is smaller) before it is surveyed.

        Raises:
            UnsupportedFormat: the file is certainly of another format; the message says of which one and what
                to do.
        """

    def survey(self, source: ForwardReader) -> Survey:
        """Return the records of a file.

        Raises:
            UnsupportedFormat: the file is damaged, or has members that cannot be read; the message says
                which one, where, and what to do.
        """


def is_surveyor(finder: object) -> TypeIs[Surveyor]:
    """Return True for a format whose files are surveyed."""
    return hasattr(finder, "survey")


class TableLayout(msgspec.Struct, frozen=True):
    """The groups and the columns of a table file, as the index keeps them.

    Example:
        >>> layout = TableLayout((2, 0, 3), b"id text")
        >>> layout.starts.tolist(), layout.records
        ([0, 2, 2], 5)
    """

    group_rows: tuple[int, ...]
    """The number of rows of each group, in the order of the file; groups without rows are included."""

    schema: bytes
    """The columns of the file, as the format itself reads them back: at least 1 byte, in few distinct values
    over many files. Of Parquet and Arrow by ``pyarrow.Schema.serialize``, without metadata of the schema."""

    def __post_init__(self) -> None:
        """Check the columns, by which the index knows a table.

        Raises:
            InvalidArgument: there is no byte.
        """
        if not self.schema:
            message = "the schema of a TableLayout must have at least 1 byte (got none)"
            raise InvalidArgument(message)

    @property
    def records(self) -> int:
        """The number of rows of the file."""
        return sum(self.group_rows)

    @property
    def starts(self) -> NDArray[np.uint64]:
        """The first row of each group."""
        return np.array([0, *accumulate(self.group_rows)][:-1], np.uint64)


class TableIndexer(Protocol):
    """Finds the groups of rows of a table file: a small value without handles, as a ``Scanner`` is.

    The result is a pure function of the bytes of the file. Only the list of the groups is read, in the footer
    for instance.
    """

    @property
    def name(self) -> str:
        """The name of the format in the index: lower-case letters, digits and ``-``."""

    def read_layout(self, source: RangeSource) -> TableLayout:
        """Return the groups and the columns of a file.

        Raises:
            UnsupportedFormat: the file is of another format, damaged, encrypted, or needs a codec that is not
                installed; the message says what was found, where, and what to do.
            MissingDependency: a package is needed that is not installed.
        """


def is_table_indexer(finder: object) -> TypeIs[TableIndexer]:
    """Return True for a format of tables."""
    return hasattr(finder, "read_layout")


if TYPE_CHECKING:
    Finder = Scanner | TableIndexer | Surveyor


def is_splittable(finder: Finder) -> bool:
    """Return True if the records of a file can be found from its middle on."""
    return bool(getattr(finder, "splittable", False))


@dataclass(frozen=True, slots=True)
class SideFile:
    """A file beside a data file that was read to survey it, as it was then."""

    file: str
    """The path of the file relative to the folder of the data file."""

    size: int
    """Its size in bytes; -1 for a file that was not there."""

    mtime_ns: int
    """Its modification time; -1 for a file that was not there."""

    @classmethod
    def absent(cls, file: str) -> SideFile:
        """Return the entry of a file that the survey looked for, and that was not there."""
        return cls(file, -1, -1)


@runtime_checkable
class ReadsSideFiles(Protocol):
    """A surveyor that reads files beside a data file: it is surveyed again when one of them has changed."""

    def side_files(self, schema: bytes) -> Iterable[SideFile]:
        """Return the files beside a data file that its survey read, or looked for, given its schema."""


def changed_beside(path: str, beside: Iterable[SideFile]) -> str | None:
    """Return the path of the first file beside a data file that has changed, come or gone; None if none has.

    Args:
        path: the path of the data file.
        beside: the files beside it, as they were when it was surveyed.
    """
    folder = os.path.dirname(path)
    for side in beside:
        there = _beside(folder, side.file)
        if _status(there) != (side.size, side.mtime_ns):
            return there
    return None


def _beside(folder: str, name: str) -> str:
    """Return the path of a file relative to a folder; in a store the folders above are resolved by name."""
    path = os.path.join(folder, name)
    scheme, mark, key = path.partition("://")
    return f"{scheme}://{os.path.normpath(key)}" if mark and ".." in key else path


def _status(path: str) -> tuple[int, int]:
    """Return the size and the modification time of a file, -1 and -1 if it is not there."""
    try:
        if "://" in path:
            found = paths.status(path)
            return found.size, found.mtime_ns
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return -1, -1
    return status.st_size, status.st_mtime_ns
