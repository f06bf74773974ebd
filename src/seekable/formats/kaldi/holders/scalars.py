"""Single numbers, booleans and words, and lines of words."""

from __future__ import annotations

import re
import struct
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from seekable.errors import WrongType
from seekable.formats.kaldi.objects.basic_types import (
    BASIC_TYPES,
    DIGITS,
    BasicType,
    checked_items,
    parse_bool,
    parse_number,
    read_basic_type,
    read_binary,
)
from seekable.formats.kaldi.objects.tokens import BINARY_HEADER, checked_token, decoded, is_token, read_header

if TYPE_CHECKING:
    from seekable.formats.kaldi.objects.cursor import Cursor, Output

_WHOLE = {
    name: (BINARY_HEADER + bytes([basic.mark]), struct.Struct(f"<3x{basic.packing[-1]}"))
    for name, basic in BASIC_TYPES.items()
}
"""The first bytes of a number of each type in binary form, and the form of the whole."""

_WORD_LINE, _AHEAD_BYTES = re.compile(rb"([\x21-\x7e\x80-\xfe]+) ?\n"), 64
_BOOLS, _BOOL_BYTES = {BINARY_HEADER + b"T": True, BINARY_HEADER + b"F": False}, 3


class _SingleValueHolder(ABC):
    """A holder of single values, which are skipped by reading them."""

    __slots__ = ()

    @abstractmethod
    def read(self, cursor: Cursor) -> Any:
        """Return the next value, and move past it."""

    @final
    def skip(self, cursor: Cursor) -> None:
        """Move past the next value."""
        self.read(cursor)

    @final
    def shape(self, cursor: Cursor) -> tuple[()]:
        """Return the shape () of a single value, and move past it."""
        self.read(cursor)
        return ()


@dataclass(frozen=True, slots=True)
class NumberHolder(_SingleValueHolder):
    """Single numbers, as int or float."""

    name: str = "int32"
    basic: BasicType = BASIC_TYPES["int32"]
    precision: int = DIGITS

    def read(self, cursor: Cursor) -> int | float:
        """Return the next number, and move past it."""
        start, form = _WHOLE[self.basic.name]
        head = cursor.ahead(form.size)
        if head[:3] == start and len(head) == form.size:
            cursor.skip(form.size, "a number")
            number: int | float = form.unpack(head)[0]
            return number
        if (found := _WORD_LINE.match(cursor.ahead(_AHEAD_BYTES))) is not None:
            number = parse_number(cursor, found[1], self.basic, cursor.position)
            cursor.skip(found.end(), "a number")
            return number
        if read_header(cursor):
            return read_binary(cursor, self.basic)
        word, at = _only_word(cursor, f"a number of type {self.basic.name}")
        return parse_number(cursor, word, self.basic, at)

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Write a number, in binary form or as text."""
        number = self.basic.checked("value", value)
        if binary:
            file.write(BINARY_HEADER + self.basic.packed(number))
        else:
            file.write(f"{self.basic.text(number, self.precision)} \n".encode())


@dataclass(frozen=True, slots=True)
class BoolHolder(_SingleValueHolder):
    """Single booleans, as Python bools."""

    name: str = "bool"

    def read(self, cursor: Cursor) -> bool:
        """Return the next boolean, and move past it."""
        head = cursor.ahead(_BOOL_BYTES)
        if head in _BOOLS:
            cursor.skip(_BOOL_BYTES, "a boolean")
            return _BOOLS[head]
        if read_header(cursor):
            return bool(read_basic_type(cursor, "bool", binary=True))
        word, at = _only_word(cursor, "T or F")
        return parse_bool(cursor, word, at)

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Write a boolean, in binary form or as text."""
        if not isinstance(value, bool | np.bool_):
            raise WrongType(f"value must be True or False (got {value!r})")
        letter = b"T" if value else b"F"
        file.write(BINARY_HEADER + letter if binary else letter + b" \n")


@dataclass(frozen=True, slots=True)
class TokenHolder(_SingleValueHolder):
    """Single words, as str. They have one form, without a binary header."""

    name: str = "token"

    def read(self, cursor: Cursor) -> str:
        """Return the next word, and move past it."""
        found = _WORD_LINE.match(cursor.ahead(_AHEAD_BYTES))
        if found is not None:
            cursor.skip(found.end(), "a token")
            return decoded(found[1])
        word, at = _only_word(cursor, "a token")
        token = decoded(word)
        if not is_token(token):
            raise cursor.error("a token without control characters", repr(token), at=at)
        return token

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Write a word and a line end, in the one form of words."""
        file.write(checked_token("value", value) + b"\n")


@dataclass(frozen=True, slots=True)
class TokenVectorHolder:
    """Lines of words, as lists of str. They have one form, without a binary header."""

    name: str = "token-vector"

    def read(self, cursor: Cursor) -> list[str]:
        """Return the next line of words. The last line of a file may lack its line end."""
        at = cursor.position
        line = text_line(cursor, "a line of tokens", may_lack_end=True)
        words = [decoded(word) for word in line.split()]
        if not all(map(is_token, words)):
            bad = next(word for word in words if not is_token(word))
            raise cursor.error("tokens without control characters", repr(bad), at=at)
        return words

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Write a line of words."""
        if isinstance(value, str):
            raise WrongType(f"value must be a list of words (got the str {value!r}); use value.split()")
        words = [checked_token("each word of value", word) for word in checked_items("value", value)]
        file.write(b"".join(word + b" " for word in words) + b"\n")

    def skip(self, cursor: Cursor) -> None:
        """Move past the next line."""
        text_line(cursor, "a line of tokens", may_lack_end=True)

    def shape(self, cursor: Cursor) -> tuple[int]:
        """Return the shape (n,) of the next line of n words, and move past it."""
        return (len(self.read(cursor)),)


def text_line(cursor: Cursor, what: str, *, may_lack_end: bool) -> bytes:
    r"""Return the bytes before the next line end, which may be ``\r\n``, and move past it.

    Raises:
        CorruptObject: the file ends here, or before the line end where it may not be absent.
    """
    at = cursor.position
    line = cursor.through(b"\n")
    if not line.endswith(b"\n") and not (line and may_lack_end):
        found = f"{decoded(line[:60])!r} and the end of the file" if line else None
        raise cursor.error(f"{what}, and a line end", found, at=at + len(line))
    return line.rstrip(b"\r\n")


def _only_word(cursor: Cursor, what: str) -> tuple[bytes, int]:
    """Return the one word of the line at a cursor, and its place in the file."""
    at = cursor.position
    line = text_line(cursor, what, may_lack_end=False)
    words = line.split()
    if len(words) != 1:
        raise cursor.error(f"{what}, alone on its line", repr(decoded(line[:60])), at=at)
    return words[0], at + line.index(words[0])
