"""The contract of the last step of writing a folder: files that describe all others."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from seekable.storage.local import output_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.writing.file_format import FileFormat

__all__ = ["Ending", "has_ended", "unend"]


class Ending(ABC):
    """The last step of the writing of a folder."""

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
    def end(self, folder: str, form: FileFormat, paths: Sequence[str]) -> None:
        """Write the files, each atomically; the same folder gives the same bytes.

        Args:
            folder: the absolute path of the folder, or its address.
            form: the format of the other files, settled.
            paths: the absolute paths of the other files, of several that belong together the first one.

        Raises:
            OSError: the folder cannot be written, or the disk is full.
        """


def has_ended(folder: str, names: Sequence[str]) -> bool:
    """Return True if a folder has all files of its ending."""
    return all(output_of(folder).size(os.path.join(folder, name)) is not None for name in names)


def unend(folder: str, names: Sequence[str]) -> None:
    """Remove the files of an ending, the last one first; those that are not there do no harm."""
    for name in reversed(names):
        output_of(folder).delete(os.path.join(folder, name))
