"""The protocol of formats whose files are surveyed from header to header, and not read as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import TypeIs

    from seekable.index.scanner import Scanner
    from seekable.index.table_indexer import TableIndexer


__all__ = [
    "ForwardBytes",
    "ReadsSideFiles",
    "SideFile",
    "Survey",
    "Surveyor",
    "is_splittable",
    "is_surveyor",
]


class ForwardBytes(Protocol):
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

    def survey(self, source: ForwardBytes) -> Survey:
        """Return the records of a file.

        Raises:
            UnsupportedFormat: the file is damaged, or has members that cannot be read; the message says
                which one, where, and what to do.
        """


@dataclass(frozen=True, slots=True)
class SideFile:
    """A file beside a data file that was read to survey it, as it was then."""

    file: str
    """The path of the file relative to the folder of the data file."""

    size: int
    """Its number of bytes; -1 for a file that was not there."""

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


if TYPE_CHECKING:
    Finder = Scanner | TableIndexer | Surveyor


def is_surveyor(finder: object) -> TypeIs[Surveyor]:
    """Return True for a format whose files are surveyed."""
    return hasattr(finder, "survey")


def is_splittable(finder: Finder) -> bool:
    """Return True if the records of a file can be found from its middle on."""
    return bool(getattr(finder, "splittable", False))
