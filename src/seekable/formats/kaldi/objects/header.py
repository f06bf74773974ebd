"""The binary header: two bytes before an object in binary form; text has none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.errors import WrongType
from seekable.formats.kaldi.objects.cursor import Cursor
from seekable.formats.kaldi.objects.file_cursor import borrowed

if TYPE_CHECKING:
    from seekable.formats.kaldi.objects.cursor import Output

__all__ = ["BINARY_HEADER", "is_binary", "read_header", "write_header"]

BINARY_HEADER = b"\0B"


def read_header(file: Any) -> bool:
    r"""Return True, and move past the header, if a binary object begins here; return False for text.

    Args:
        file: a binary file, or a cursor.

    Raises:
        CorruptObject: a null byte is there without the ``B`` that must follow it.

    Example:
        >>> import io
        >>> read_header(io.BytesIO(b"\0BFM ")), read_header(io.BytesIO(b"text"))
        (True, False)
    """
    if isinstance(file, Cursor):
        return _read_header(file)
    with borrowed(file) as cursor:
        return _read_header(cursor)


def _read_header(cursor: Cursor) -> bool:
    if cursor.peek() != 0:
        return False
    header = cursor.take(2, "the binary header")
    if header != BINARY_HEADER:
        at = cursor.position - len(header)
        raise cursor.error(f"the binary header {BINARY_HEADER!r}", repr(bytes(header)), at=at)
    return True


def write_header(file: Output, *, binary: bool) -> None:
    """Write the header of a binary object; write nothing for text."""
    if binary:
        checked_output(file).write(BINARY_HEADER)


def checked_output(file: Output) -> Output:
    """Return a file to write to.

    Raises:
        WrongType: nothing can be written to it.
    """
    if not hasattr(file, "write"):
        raise WrongType(f"file must have write() (got {file!r:.200} of type {type(file).__name__})")
    return file


def is_binary(file: Any, binary: bool | None) -> bool:  # noqa: FBT001 - the value that is decided here
    """Return `binary`, or the attribute ``binary`` of an opened Kaldi file if it is None.

    Raises:
        WrongType: it is None, and the file has no such attribute.
    """
    if not hasattr(file, "read"):
        checked_output(file)
    if binary is None:
        binary = getattr(file, "binary", None)
    if not isinstance(binary, bool):
        kind = type(file).__name__
        raise WrongType(f"binary must be True or False (got {binary!r}); a {kind} does not say it itself")
    return binary
