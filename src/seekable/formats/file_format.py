"""The contract of a format that records are written in, and the error of a record that does not fit it.

A dataset is written by ``write`` alone. The lanes of a stream run in several processes: each writes the
records of its slots as a *piece*, in any form that ``merged`` reads, and ``merged`` puts the pieces of all
lanes together as chunks for ``write``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Executor

    import numpy as np
    from numpy.typing import NDArray

    from seekable._typing import Int64s

__all__ = ["USUAL_ROWS", "Ending", "FileFormat", "Origin", "Preview", "TracedRecords", "UnwritableRecord"]

USUAL_ROWS = 100_000
"""The records of a file, where neither the call nor the format says how many."""


class Preview(Protocol):
    """Some of the records that are to be written, and what their sources declare about all of them."""

    @property
    def is_empty(self) -> bool:
        """True if it is certain that there are no records at all."""
        ...

    @property
    def is_all(self) -> bool:
        """True if it is certain that there are no other records."""
        ...

    def declared(self) -> Mapping[str, Any] | None:
        """Return the columns and their Arrow types as the files declare them; see `Node.declared`."""
        ...

    def read(self) -> Iterator[tuple[Sequence[Any], Callable[[int], str]]]:
        """Yield lists of records, holes included, each with a function of an index that names the record."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class TracedRecords:
    """Some records, with the file and the row that each comes from."""

    records: Sequence[Any]

    files: Int64s
    """The number of each record's file among `origin_paths`; -1 for a record of no file or of several."""

    rows: Int64s
    """The number of each record in its file."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The description of all records that are written."""

    fingerprint: str
    """The fingerprint of the dataset or stream."""

    records: int | None
    """The number of records, holes included; None for a stream, which does not say it."""

    files: Sequence[str]
    """The files that `TracedRecords` count; none for a stream."""


class Ending(ABC):
    """The last step of the writing of a folder: files that describe all others. Picklable."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The names of the files that it writes, in the order in which they appear.

        While one of them is missing, the folder is not finished. They are removed, the last one first, before
        another file of a finished folder is written.
        """

    @property
    @abstractmethod
    def data(self) -> tuple[str, ...]:
        """Those of ``names`` that hold records; none if the other files do."""

    @property
    @abstractmethod
    def replaces_parts(self) -> bool:
        """True if its files hold all records themselves: the other files are removed when it has ended."""

    @abstractmethod
    def end(self, folder: str, form: FileFormat, paths: Sequence[str], origin: Origin) -> None:
        """Write the files, each atomically; the same folder gives the same bytes.

        Args:
            folder: the absolute path of the folder, or its address.
            form: the format of the other files, settled.
            paths: the absolute paths of the other files, of several that belong together the first one.
            origin: the description of the records.

        Raises:
            OSError: the folder cannot be written, or the disk is full.
        """


class FileFormat(ABC):
    """A format that records are written in, with its options. Picklable."""

    name: ClassVar[str]
    """The name of the format in error messages."""

    hidden_suffix: ClassVar[str] = ""
    """The end of the names of the manifest and the lock; empty, unless readers of the format pass over files
    by their suffix alone."""

    takes_tables: ClassVar[bool] = False
    """True if ``write`` takes record batches as well as lists of records."""

    takes_origins: ClassVar[bool] = False
    """True if ``write`` takes the records of a dataset as `TracedRecords`."""

    @property
    @abstractmethod
    def way_out(self) -> str:
        """The advice for a record that the format cannot hold: the end of an error message."""

    @property
    @abstractmethod
    def suffix(self) -> str:
        """The suffix of the names of files, with its dot."""

    @property
    def rows_per_file(self) -> int:
        """The records in each file of a folder, counted, where the call that writes them does not say it."""
        return USUAL_ROWS

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns of the names of the files that hold the same records, with ``%06d`` for their number.

        They appear together, the first one last. Empty for a format whose files are single.
        """
        return ()

    @property
    @abstractmethod
    def options(self) -> dict[str, Any]:
        """The options that decide the bytes of a file, as the user gave them, JSON-safe."""

    @property
    def functions(self) -> Sequence[Callable[..., Any]]:
        """The functions of the user that decide the bytes of a file, whose code may change."""
        return ()

    @property
    def ending(self) -> Ending | None:
        """The last step of the writing of a folder; None if the files are all that there is."""
        return None

    @abstractmethod
    def of_one_file(self, name: str) -> Self:
        """Return the format of a file with a name that the user chose, which ends as that of a data file.

        Raises:
            InvalidArgument: the name ends as that of another format, or of another compression.
        """

    def settled(self, preview: Preview, kept: str | None) -> tuple[FileFormat, str | None]:
        """Return the format with all that it needs of the records before the first one is written.

        By default it needs nothing of them, and is returned unchanged.

        Args:
            preview: some of the records.
            kept: the text that this method returned when the files in the folder were begun; None for no
                files.

        Returns:
            The format, and the text that the manifest keeps for a later call; None if there is nothing to
            keep.

        Raises:
            WrongType: a record cannot be written.
        """
        return self, None

    @abstractmethod
    def write(
        self, file: BinaryIO, chunks: Iterator[Any], *, first: int, beside: Sequence[BinaryIO] = ()
    ) -> None:
        """Write the records of one file; the caller syncs and closes the file.

        Args:
            file: the file, open for writing.
            chunks: the records without holes, in lists, in record batches if ``takes_tables``, in
                `TracedRecords` if ``takes_origins``, or the chunks of ``merged``.
            first: the number of records, holes included, in the files before; of a stream, of slots.
            beside: the files of the further ``patterns``, open for writing.

        Raises:
            UnwritableRecord: a record cannot be written; it is one of the last 1,024 that came from
                ``chunks``.
        """

    @abstractmethod
    def write_piece(self, file: BinaryIO, chunks: Iterator[Any]) -> None:
        """Write some records of one lane of a stream, for ``merged``; the caller syncs and closes the file.

        Args:
            file: the file, open for writing.
            chunks: the records without holes, in lists.

        Raises:
            UnwritableRecord: as ``write``.
        """

    @abstractmethod
    def merged(self, pieces: Sequence[str], turns: Iterable[NDArray[np.intp]]) -> Iterator[Any]:
        """Yield the records of pieces as chunks for ``write``.

        Args:
            pieces: the paths of the pieces.
            turns: arrays, one for each chunk, with the number of the piece whose next record comes next.
        """

    @abstractmethod
    def rows_in(self, path: str, *, beside: Sequence[str] = ()) -> int | None:
        """Return the number of rows of a file that was written, None if the file is damaged.

        Args:
            path: the path of the file.
            beside: the paths of the files of the further ``patterns``, which exist.
        """

    def index(self, path: str, *, jobs: int | None, executor: Executor | None) -> None:
        """Index all files that were written, where opening them would read them otherwise.

        Args:
            path: the folder or the file that the user named.
            jobs: the most processes; None for as many as pay.
            executor: indexes them instead; it stays open.
        """
        return


class UnwritableRecord(Exception):
    """A record that the format cannot hold."""

    def __init__(self, back: int, why: str) -> None:
        """Name the record by its distance from the end.

        Args:
            back: the distance of the record from the end of the records that came so far; 1 for the last one.
            why: the reason, for the error message.
        """
        super().__init__(back, why)
        self.back = back
        self.why = why
