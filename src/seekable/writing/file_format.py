"""The contract of a format that datasets are written in, and the error of a record that does not fit it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.nodes.contract import Node


__all__ = ["FileFormat", "UnwritableRecord"]


class FileFormat(ABC):
    """A format that records are written in: JSON lines or Parquet, with its options. Picklable."""

    name: ClassVar[str]
    """The name of the format in error messages."""

    takes_tables: ClassVar[bool]
    """True if ``write`` takes record batches as well as lists of records."""

    @property
    @abstractmethod
    def way_out(self) -> str:
        """The advice for a record that the format cannot hold: the end of an error message."""

    @property
    @abstractmethod
    def suffix(self) -> str:
        """The suffix of the names of files, with its dot."""

    @property
    @abstractmethod
    def options(self) -> dict[str, Any]:
        """The options that decide the bytes of a file, as the user gave them, JSON-safe."""

    @abstractmethod
    def settled(self, dataset: Node, kept: str | None) -> tuple[FileFormat, str | None]:
        """Return the format with all that it needs of the records before the first one is written.

        Args:
            dataset: the node whose records are to be written.
            kept: the text that this method returned when the files in the folder were begun; None for no
                files.

        Returns:
            The format, and the text that the manifest keeps for a later call; None if there is nothing to
            keep.

        Raises:
            WrongType: a record cannot be written.
        """

    @abstractmethod
    def write(self, file: BinaryIO, chunks: Iterator[Any]) -> None:
        """Write the records of one file; the caller syncs and closes the file.

        Args:
            file: the file, open for writing.
            chunks: the records without holes, in lists, or in record batches if ``takes_tables``.

        Raises:
            UnwritableRecord: a record cannot be written; it is one of the last 1,024 that came from
                ``chunks``.
        """

    @abstractmethod
    def rows_in(self, path: str) -> int | None:
        """Return the number of rows of a file that was written, None if the file is damaged."""


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
