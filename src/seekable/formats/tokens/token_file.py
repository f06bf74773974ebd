"""A file of tokens while its documents are found, and the files beside it that list its documents."""

from __future__ import annotations

import io
import os
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import numpy as np
import xxhash

from seekable.errors import CorruptTokens, IndexStale, InvalidArgument, WrongType
from seekable.formats.tokens.words import SideFile
from seekable.storage import paths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from seekable.index.finder import ForwardReader

__all__ = [
    "CHUNK_BYTES",
    "DTYPES",
    "TOKENS",
    "Side",
    "TokenFile",
    "TokenOptions",
    "checked_dtype",
    "damage",
    "head_of",
    "opened_side",
    "token_options",
]

CHUNK_BYTES = 4 << 20
"""The bytes that are read at a time, of a file of tokens and of one beside it."""

_MAGIC_BYTES = 16
"""The bytes at the start of a file that are compared with the magics of formats."""


TOKENS = "tokens"
"""The name of the format without options."""

DTYPES = ("<u2", "<u4", "<i4", "|u1", "|i1", "<i2", "<u8", "<i8")
"""The types that tokens can have, in the form in which names and schemas have them."""

_NAME = re.compile(rf"{TOKENS}(?:-([iu][1248]))?(?:-eos(\d+))?(?:-bos(\d+))?")


def head_of(path: str) -> bytes:
    """Return the first bytes of a file; none if it is not there."""
    if not paths.is_file(path):
        return b""
    with paths.open_file(path) as file:
        return file.read(_MAGIC_BYTES) or b""


def damage(path: str, offset: int, *, expected: str, found: str, way_out: str, row: int = 0) -> CorruptTokens:
    """Return the error of a file that is not as expected at some byte.

    Args:
        path: the absolute path of the file.
        offset: the byte.
        expected: the description of the bytes that belong there.
        found: the description of the bytes that are there.
        way_out: the advice.
        row: the row of the document there.
    """
    cause = ValueError(f"expected {expected}, found {found}; {way_out}")
    return CorruptTokens(path, row, offset=offset, length=0, preview=b"", cause=cause)


@final
@dataclass(frozen=True, slots=True)
class TokenFile:
    """A file of tokens that is being surveyed."""

    path: str
    """Its absolute path."""

    size: int
    """Its number of bytes."""

    source: ForwardReader
    """Its bytes, read from start to end."""

    options: TokenOptions
    """The arguments of the user."""

    def sibling(self, suffix: str) -> str:
        """Return the path of the file that has another last suffix."""
        return os.path.splitext(self.path)[0] + suffix

    def chunks(self, first: int, dtype: str) -> Iterator[NDArray[Any]]:
        """Yield the items of the file from a byte on, in arrays of at most 4 MiB."""
        size = np.dtype(dtype).itemsize
        for start in range(first, self.size, CHUNK_BYTES):
            data = self.source.read(start, min(CHUNK_BYTES, self.size - start))
            if not data:
                break  # The file was cut since its survey began, and is surveyed again.
            yield np.frombuffer(data, dtype, len(data) // size)

    def dtype_of(self, found: str, *, where: str) -> str:
        """Return the type of tokens that a file says, which the user may have said too.

        Args:
            found: the type.
            where: the name of what says it, for messages.

        Raises:
            InvalidArgument: the user named another type.
        """
        chosen = self.options.dtype
        if chosen is not None and chosen != found:
            message = (
                f"dtype={np.dtype(chosen).name!r} contradicts {where}, which says that the tokens of "
                f"{self.path!r} are {np.dtype(found).name}: leave dtype= out"
            )
            raise InvalidArgument(message)
        return found

    def torn(self, first: int, dtype: str) -> CorruptTokens:
        """Return the error of a file whose last token is cut."""
        width = np.dtype(dtype).itemsize
        count = (self.size - first) // width
        return damage(
            self.path,
            first + count * width,
            expected=f"a token of {width} bytes ({np.dtype(dtype).name})",
            found=f"the end of the file after {(self.size - first) % width}",
            way_out="the file is cut, or its tokens are of another type: write it again, or say dtype=",
        )


@final
@dataclass(slots=True)
class Side:
    """An open file beside a file of tokens, which is hashed as it is read."""

    path: str
    """Its absolute path."""

    size: int
    """Its number of bytes."""

    mtime_ns: int
    """Its modification time; in a store, the number made of its etag."""

    file: io.BufferedReader[io.RawIOBase]
    """The open file."""

    hasher: xxhash.xxh3_64 = field(default_factory=xxhash.xxh3_64)
    """The hasher of all bytes that were read, in the order in which they were read."""

    def array(self, first: int, count: int, dtype: str) -> NDArray[Any]:
        """Return consecutive numbers of the file, fewer only at its end; nothing is allocated beyond it."""
        size = np.dtype(dtype).itemsize
        data = self.read(first, count * size)
        return np.frombuffer(data, dtype, len(data) // size)

    def read(self, first: int, count: int) -> bytes:
        """Return consecutive bytes of the file, fewer only at its end.

        Raises:
            IndexStale: the file was cut since it was opened.
        """
        count = max(min(count, self.size - first), 0)
        self.file.seek(first)
        data = self.file.read(count)
        if len(data) < count:
            message = f"{self.path!r} was changed while it was read: open it when nothing writes to it"
            raise IndexStale(message)
        self.hasher.update(data)
        return data

    def digest(self) -> bytes:
        """Return the digest of all that was read."""
        return self.hasher.intdigest().to_bytes(8, "little")

    def entry(self, data_file: str) -> SideFile:
        """Return what the schema of a data file keeps of this file."""
        name = os.path.relpath(self.path, os.path.dirname(data_file))
        return SideFile(name, self.size, self.mtime_ns)

    def error(self, offset: int, *, expected: str, found: str, way_out: str, row: int = 0) -> CorruptTokens:
        """Return the error of bytes of this file that are not as expected."""
        return damage(self.path, offset, expected=expected, found=found, way_out=way_out, row=row)


@contextmanager
def opened_side(path: str) -> Iterator[Side]:
    """Yield a file beside a file of tokens, open.

    Raises:
        DataNotFound: there is no such file.
        AccessDenied: this user may not read it.
    """
    status = paths.status(path)
    with io.BufferedReader(paths.open_file(path)) as file:
        yield Side(path, status.size, status.mtime_ns, file)


@dataclass(frozen=True, slots=True)
class TokenOptions:
    """The arguments of the user that decide where documents of tokens start.

    Example:
        >>> TokenOptions("<u2", eos=50256).name
        'tokens-u2-eos50256'
    """

    dtype: str | None = None
    """The type of a token, one of `DTYPES`; None where files say it."""

    eos: int | None = None
    """The last token of each document; None where files say where documents end."""

    bos: int | None = None
    """The first token of each document; None where files say where documents end."""

    @property
    def name(self) -> str:
        """The name of the format with these options."""
        parts = (
            "" if self.dtype is None else f"-{self.dtype[1:]}",
            "" if self.eos is None else f"-eos{self.eos}",
            "" if self.bos is None else f"-bos{self.bos}",
        )
        return TOKENS + "".join(parts)


def token_options(name: str) -> TokenOptions:
    """Return the options in the name of the format.

    Raises:
        InvalidArgument: the name is of another form.

    Example:
        >>> token_options("tokens-u2-eos50256")
        TokenOptions(dtype='<u2', eos=50256, bos=None)
    """
    found = _NAME.fullmatch(name)
    if found is None:
        message = (
            f"format {name!r} is not known; tokens are 'tokens', with the options dtype=, eos= and bos= of "
            f"sk.formats.Tokens"
        )
        raise InvalidArgument(message)
    dtype, eos, bos = found.groups()
    return TokenOptions(
        None if dtype is None else checked_dtype(dtype),
        None if eos is None else int(eos),
        None if bos is None else int(bos),
    )


def checked_dtype(dtype: object) -> str:
    """Return a type of tokens in the form of `DTYPES`.

    Raises:
        InvalidArgument: tokens cannot be of this type.
        WrongType: it is no type.

    Example:
        >>> checked_dtype("uint16"), checked_dtype(np.int32)
        ('<u2', '<i4')
    """
    try:
        found = np.dtype(dtype).str  # type: ignore[call-overload]
    except (TypeError, ValueError):
        message = f"dtype must be the name of a type of integers, as 'uint16' (got {dtype!r})"
        raise WrongType(message) from None
    if dtype is None or found not in DTYPES:
        names = ", ".join(repr(np.dtype(each).name) for each in DTYPES)
        message = f"dtype must be one of {names} (got {dtype!r})"
        raise InvalidArgument(message)
    return str(found)
