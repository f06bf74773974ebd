"""The Holder concept: how the objects of one type are read from tables and files, and written.

A holder reads and writes all that follows the key and the space in an archive, or all of a file that a script
names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from seekable.formats.kaldi.holders.ranges import Range
    from seekable.formats.kaldi.objects.cursor import Cursor, Output

__all__ = ["Holder", "SupportsExtent", "SupportsRange"]


@runtime_checkable
class Holder(Protocol):
    """A reader and writer of the objects of one type.

    A holder is immutable and can be pickled: threads and processes share it. It has no state between objects.
    `read`, `skip` and `shape` begin at the first byte of an object (its binary header, if it has one), and
    leave the cursor at the first byte behind it; in text, whitespace behind an object may stay unread. They
    raise CorruptObject where the bytes are no object of the type, also where they end too early, and then the
    position is not defined.
    """

    @property
    def name(self) -> str:
        """The name under which the holder is registered, such as ``matrix``."""

    def read(self, cursor: Cursor) -> Any:
        """Return the next object. Its memory is a read-only view where the cursor reads memory."""

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Write an object, in binary form or as text.

        Raises:
            WrongType: the value is of another type.
            InvalidArgument: the value cannot be stored, or has no text form and `binary` is False. Nothing
                was written.
        """

    def skip(self, cursor: Cursor) -> None:
        """Move past the next object, without decoding it where its header has its size."""

    def shape(self, cursor: Cursor) -> tuple[int, ...]:
        """Return the shape of the next object, from its header where possible, and move past the object."""


@runtime_checkable
class SupportsRange(Protocol):
    """A holder of which a part of an object can be read."""

    def read_range(self, cursor: Cursor, part: Range) -> Any:
        """Return the rows and columns of `part`, reading no others where possible; move past the object.

        Raises:
            InvalidArgument: the object has no such rows or columns.
        """


@runtime_checkable
class SupportsExtent(Protocol):
    """A holder that reads a part of the bytes of each object."""

    def extent(self, cursor: Cursor) -> tuple[int, int]:
        """Return the first byte that `read` needs behind the header, and the byte behind the last one."""
