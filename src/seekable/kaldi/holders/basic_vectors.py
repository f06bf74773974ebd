"""Vectors of numbers, each with the byte of its type before it in binary form; and lists of vectors."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec
import numpy as np

from seekable.errors import InvalidArgument, WrongType
from seekable.kaldi.holders.scalars import text_line
from seekable.kaldi.objects.basic_types import BASIC_TYPES, DIGITS, BasicType, parse_number, read_size
from seekable.kaldi.objects.header import BINARY_HEADER, read_header

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.kaldi.objects.cursor import Cursor, Output

__all__ = ["BasicVectorHolder", "PairVectorHolder", "VectorVectorHolder"]

_INT32 = BASIC_TYPES["int32"]
_FLOATS = {each.mark: each for each in (BASIC_TYPES["float"], BASIC_TYPES["double"])}
_INTEGERS = msgspec.json.Decoder(list[int])
_WORDS = re.compile(rb";|[^\s;]+")
_SEMICOLON = b";"
_PAIR = 2
_FEW = 32  # numbers; numpy is slower below


@dataclass(frozen=True, slots=True)
class BasicVectorHolder:
    """Vectors of integers, as arrays of shape (n,)."""

    name: str = "int32-vector"
    basic: BasicType = _INT32
    precision: int = DIGITS

    def read(self, cursor: Cursor) -> NDArray[Any]:
        """Return the next vector, in memory of its own. The last line of a text may lack its line end."""
        if read_header(cursor):
            return _read_marked(cursor, self.basic, read_size(cursor, "the number of elements"))
        at = cursor.position
        line = text_line(cursor, "a line of numbers", may_lack_end=True)
        if (
            not self.basic.is_float
            and b"," not in line
            and (fast := _parse_json(line, self.basic)) is not None
        ):
            return fast
        words = line.split()
        places = (found.start() for found in re.finditer(rb"\S+", line))
        numbers = [
            parse_number(cursor, word, self.basic, at + place)
            for word, place in zip(words, places, strict=True)
        ]
        return np.array(numbers, self.basic.dtype)

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Write a vector."""
        array = _flat(self.basic, value)
        if binary:
            file.write(BINARY_HEADER + _INT32.packed(len(array)) + _marked(self.basic, array))
        else:
            file.write(f"{_spaced(self.basic, array, self.precision)}\n".encode())

    def skip(self, cursor: Cursor) -> None:
        """Move past the next vector."""
        if read_header(cursor):
            _skip_marked(cursor, self.basic, read_size(cursor, "the number of elements"))
        else:
            text_line(cursor, "a line of numbers", may_lack_end=True)

    def shape(self, cursor: Cursor) -> tuple[int]:
        """Return the shape (n,) of the next vector."""
        if read_header(cursor):
            size = read_size(cursor, "the number of elements")
            _skip_marked(cursor, self.basic, size)
            return (size,)
        return (len(text_line(cursor, "a line of numbers", may_lack_end=True).split()),)


@dataclass(frozen=True, slots=True)
class VectorVectorHolder:
    """Lists of vectors of integers, as lists of lists of int."""

    name: str = "int32-vector-vector"
    basic: BasicType = _INT32
    precision: int = DIGITS

    def read(self, cursor: Cursor) -> list[list[int | float]]:
        """Return the next list of vectors."""
        if read_header(cursor):
            return [self._read_one(cursor) for _ in range(read_size(cursor, "the number of vectors"))]
        groups, rest, at = _groups(cursor, self.basic)
        if rest:
            _refuse_rest(cursor, "';' behind each vector", rest, at)
        return groups

    def _read_one(self, cursor: Cursor) -> list[int | float]:
        size = read_size(cursor, "the number of elements")
        if size > _FEW:
            return list(_read_marked(cursor, self.basic, size).tolist())
        start = cursor.position
        raw = cursor.take(size * self.basic.marked.itemsize, "the numbers of a vector")
        items = struct.unpack("<" + size * self.basic.packing[1:], raw)
        if items[::2] != (self.basic.mark,) * size:
            raise cursor.error(f"the byte {self.basic.mark:#04x} before each {self.basic.name}", at=start)
        return list(items[1::2])

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Write a list of vectors."""
        arrays = [_flat(self.basic, each) for each in value]
        if binary:
            parts = [_INT32.packed(len(array)) + _marked(self.basic, array) for array in arrays]
            file.write(BINARY_HEADER + _INT32.packed(len(arrays)) + b"".join(parts))
        else:
            parts_text = [f"{_spaced(self.basic, array, self.precision)}; " for array in arrays]
            file.write(("".join(parts_text) + "\n").encode())

    def skip(self, cursor: Cursor) -> None:
        """Move past the next list."""
        self.shape(cursor)

    def shape(self, cursor: Cursor) -> tuple[int]:
        """Return the shape (n,) of the next list of n vectors."""
        if not read_header(cursor):
            return (text_line(cursor, "a line of vectors", may_lack_end=False).count(_SEMICOLON),)
        size = read_size(cursor, "the number of vectors")
        for _ in range(size):
            _skip_marked(cursor, self.basic, read_size(cursor, "the number of elements"))
        return (size,)


@dataclass(frozen=True, slots=True)
class PairVectorHolder:
    """Vectors of pairs of numbers, as lists of tuples."""

    name: str = "int32-pair-vector"
    basic: BasicType = _INT32
    precision: int = DIGITS

    def read(self, cursor: Cursor) -> list[tuple[int | float, int | float]]:
        """Return the next vector of pairs."""
        if read_header(cursor):
            size = read_size(cursor, "the number of pairs")
            numbers = _read_marked(cursor, self.basic, _PAIR * size).tolist()
            return list(zip(numbers[::2], numbers[1::2], strict=True))
        groups, rest, at = _groups(cursor, self.basic)
        if groups or rest:
            groups.append(rest)
        if any(len(group) != _PAIR for group in groups):
            _refuse_rest(
                cursor, "two numbers between semicolons", next(g for g in groups if len(g) != _PAIR), at
            )
        return [(one, two) for one, two in groups]

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Write a vector of pairs."""
        pairs = [tuple(pair) for pair in value]
        if any(len(pair) != _PAIR for pair in pairs):
            raise InvalidArgument(
                f"value must hold pairs (got {next(p for p in pairs if len(p) != _PAIR)!r})"
            )
        array = _flat(self.basic, [each for pair in pairs for each in pair])
        if binary:
            file.write(BINARY_HEADER + _INT32.packed(len(pairs)) + _marked(self.basic, array))
        else:
            words = [
                _spaced(self.basic, array[first : first + _PAIR], self.precision)
                for first in range(0, len(array), 2)
            ]
            file.write(("; ".join(words) + "\n").encode())

    def skip(self, cursor: Cursor) -> None:
        """Move past the next vector."""
        self.shape(cursor)

    def shape(self, cursor: Cursor) -> tuple[int]:
        """Return the shape (n,) of the next vector of n pairs."""
        if read_header(cursor):
            size = read_size(cursor, "the number of pairs")
            _skip_marked(cursor, self.basic, _PAIR * size)
            return (size,)
        line = text_line(cursor, "a line of pairs", may_lack_end=False)
        return (line.count(_SEMICOLON) + 1 if line.strip() else 0,)


def _stored(cursor: Cursor, basic: BasicType, size: int) -> BasicType:
    """The type of the numbers at a cursor: floats have the precision that the first byte says."""
    mark = cursor.peek()
    if basic.is_float and mark in _FLOATS:
        return _FLOATS[mark]
    if size and mark not in {basic.mark, -1}:
        raise cursor.error(f"the byte {basic.mark:#04x} of a {basic.name}")
    return basic


def _read_marked(cursor: Cursor, basic: BasicType, size: int) -> NDArray[Any]:
    """An array of numbers, each of which has the byte of its type before it."""
    start = cursor.position
    stored = _stored(cursor, basic, size)
    records = cursor.array(stored.marked, size, f"{size} numbers of type {stored.name}")
    marks = records["mark"]
    if (marks != stored.mark).any():
        first = int(np.argmax(marks != stored.mark))
        found = f"{int(marks[first]):#04x} before element {first}"
        at = start + first * stored.marked.itemsize
        raise cursor.error(f"the byte {stored.mark:#04x} of a {stored.name}", found, at=at)
    return records["value"].copy()


def _skip_marked(cursor: Cursor, basic: BasicType, size: int) -> None:
    stored = _stored(cursor, basic, size) if size else basic
    cursor.skip(size * stored.marked.itemsize, f"{size} numbers of type {stored.name}")


def _marked(basic: BasicType, array: NDArray[Any]) -> bytes:
    records = np.empty(len(array), basic.marked)
    records["mark"] = basic.mark
    records["value"] = array
    return records.tobytes()


def _flat(basic: BasicType, value: Any) -> NDArray[Any]:
    """A value as an array of one dimension."""
    if isinstance(value, str | bytes):
        raise WrongType(f"value must be a sequence of numbers (got {value!r})")
    array = basic.checked_array("value", value)
    if array.ndim != 1:
        raise InvalidArgument(f"value must have one dimension (got the shape {array.shape})")
    return array


def _spaced(basic: BasicType, array: NDArray[Any], precision: int) -> str:
    numbers = array.tolist()
    form = f"%.{precision}g " if basic.is_float else "%d "
    return (form * len(numbers)) % tuple(numbers)


def _parse_json(line: bytes, basic: BasicType) -> NDArray[Any] | None:
    """Integers with one space between them as an array; None of anything else, or of one too large."""
    try:
        numbers = _INTEGERS.decode(b"[" + line.strip().replace(b" ", b",") + b"]")
        packed = struct.pack(f"<{len(numbers)}{basic.packing[-1]}", *numbers)
    except (msgspec.DecodeError, struct.error):
        return None
    return np.frombuffer(bytearray(packed), basic.dtype)


def _groups(cursor: Cursor, basic: BasicType) -> tuple[list[list[int | float]], list[int | float], int]:
    """The numbers before each semicolon of a line, those behind the last one, and the place of the line."""
    at = cursor.position
    line = text_line(cursor, "a line of numbers and semicolons", may_lack_end=False)
    groups: list[list[int | float]] = []
    rest: list[int | float] = []
    for found in _WORDS.finditer(line):
        word = found.group()
        if word == _SEMICOLON:
            groups.append(rest)
            rest = []
        else:
            rest.append(parse_number(cursor, word, basic, at + found.start()))
    return groups, rest, at


def _refuse_rest(cursor: Cursor, expected: str, numbers: list[int | float], at: int) -> NoReturn:
    raise cursor.error(expected, " ".join(map(str, numbers[:8])) or "nothing", at=at)
