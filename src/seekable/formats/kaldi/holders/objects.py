"""Objects of the user's own classes, which have Read and Write in the style of Kaldi."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from seekable.errors import WrongType
from seekable.formats.kaldi.objects.header import read_header, write_header

if TYPE_CHECKING:
    from seekable.formats.kaldi.objects.cursor import Cursor, Output

__all__ = ["KaldiObject", "ObjectHolder"]


class KaldiObject(Protocol):
    """An object that reads and writes itself."""

    def Read(self, file: Any, binary: bool) -> None:  # noqa: FBT001, N802 - as in Kaldi
        """Read the members of the object from a binary file object, which stands behind the binary header."""

    def Write(self, file: Any, binary: bool) -> None:  # noqa: FBT001, N802 - as in Kaldi
        """Write the members of the object."""


@dataclass(frozen=True, slots=True)
class ObjectHolder:
    r"""Objects of one class. The class is called without arguments, then Read of the object.

    Example:
        >>> from seekable.formats.kaldi.objects.basic_types import read_basic_type, write_basic_type
        >>> class Count:
        ...     number = 0
        ...     def Read(self, file, binary):
        ...         self.number = read_basic_type(file, "int32", binary=binary, add=self.number)
        ...     def Write(self, file, binary):
        ...         write_basic_type(file, self.number, "int32", binary=binary)
        >>> from seekable.formats.kaldi.objects.cursor import MemoryCursor
        >>> ObjectHolder(Count).read(MemoryCursor(b"\0B\4\5\0\0\0")).number
        5
    """

    kind: type[KaldiObject]

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.kind.__name__

    def read(self, cursor: Cursor) -> KaldiObject:
        """Return a new object, after its Read."""
        binary = read_header(cursor)
        found = self.kind()
        found.Read(cursor, binary)
        return found

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Write the binary header, if any, and call Write of an object."""
        if not callable(getattr(value, "Write", None)):
            raise WrongType(
                f"value must have a method Write, as {self.name} has (got a {type(value).__name__})"
            )
        write_header(file, binary=binary)
        value.Write(file, binary)

    def skip(self, cursor: Cursor) -> None:
        """Move past the next object by reading it."""
        self.read(cursor)

    def shape(self, cursor: Cursor) -> tuple[()]:
        """Return the shape () of an object, and move past it."""
        self.read(cursor)
        return ()
