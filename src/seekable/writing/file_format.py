"""The contract of a format that datasets are written in, and the error of a record that does not fit it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.nodes.contract import Node


__all__ = ["FileFormat", "UnwritableRecord"]


class FileFormat(ABC):
    """How the records of one file are written; a small value, picklable."""

    name: ClassVar[str]
    """What a user calls the format."""

    takes_tables: ClassVar[bool]
    """Whether records may come as record batches too."""

    @property
    @abstractmethod
    def way_out(self) -> str:
        """What to do with records that it cannot hold."""

    @property
    @abstractmethod
    def suffix(self) -> str:
        """What the names of files end with."""

    @property
    @abstractmethod
    def options(self) -> dict[str, Any]:
        """What of it decides the bytes of a file, JSON-safe, as the user asked for it."""

    @abstractmethod
    def settled(self, dataset: Node, kept: str | None) -> tuple[FileFormat, str | None]:
        """Return the form with all that it must know of the records before the first one is written.

        Args:
            dataset: what is to be written.
            kept: what this method returned when the files that are there were begun; None if there are none.

        Returns:
            The form, and what is to be kept of it for a later call; None for nothing.

        Raises:
            WrongType: a record cannot be written.
        """

    @abstractmethod
    def write(self, file: BinaryIO, chunks: Iterator[Any]) -> None:
        """Write the records of one file, which is closed and synced by the caller.

        Args:
            file: the file.
            chunks: the records, some at a time, holes left out: lists, or record batches if it takes those.

        Raises:
            UnwritableRecord: a record cannot be written; it is one of the last 1,024 that were taken.
        """

    @abstractmethod
    def rows_in(self, path: str) -> int | None:
        """Return how many rows a file has that was written; None if it is damaged."""


class UnwritableRecord(Exception):
    """A record that the format cannot hold."""

    def __init__(self, back: int, why: str) -> None:
        """Say which one.

        Args:
            back: how far it is from the end of the records that were taken so far; 1 for the last one.
            why: what is wrong with it.
        """
        super().__init__(back, why)
        self.back = back
        self.why = why
