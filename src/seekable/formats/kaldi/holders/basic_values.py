"""Single numbers, booleans and words, vectors of them, and lists of vectors.

In binary form each number has its type's byte before it.
An int32 and a float, each with its byte, take 5 bytes, and so does the size of a group. So a list of groups
is read as one array of records of 5 bytes, and only the sizes are walked through.
"""

from __future__ import annotations

import re
import struct
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn, final

import msgspec
import numpy as np

from seekable.errors import InvalidArgument, WrongType
from seekable.formats.kaldi.basic_types import (
    BASIC_TYPES,
    BINARY_HEADER,
    DIGITS,
    SPACED_KEY,
    TOKEN,
    BasicType,
    checked_items,
    checked_token,
    decoded,
    is_token,
    parse_bool,
    parse_number,
    read_basic_type,
    read_binary,
    read_header,
    read_size,
)
from seekable.formats.kaldi.cursor import NO_RUN, Run
from seekable.formats.kaldi.holders.number_text import (
    groups_text,
    integers_text,
    parse_float_groups,
    parse_groups,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from seekable.formats.kaldi.cursor import Cursor, Output


_WHOLE = {
    name: (BINARY_HEADER + bytes([basic.mark]), struct.Struct(f"<3s{basic.packing[-1]}"))
    for name, basic in BASIC_TYPES.items()
}
"""The first bytes of a number of each type in binary form, and the form of the whole."""

_WORDS_RUN = re.compile(rb"(?:" + SPACED_KEY + TOKEN + rb" ?\n)*+")
_WORD_LINE, _AHEAD_BYTES = re.compile(rb"([\x21-\x7e\x80-\xfe]+) ?\n"), 64
_BOOLS, _BOOL_BYTES = {BINARY_HEADER + b"T": True, BINARY_HEADER + b"F": False}, 3


@cache
def _number_entry(name: str) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Return the expressions for entries that have a number of a type in binary form, and for one of them."""
    start, form = _WHOLE[name]
    entry = SPACED_KEY + re.escape(start) + rb"(.{%d})" % (form.size - len(start))
    return re.compile(rb"(?:" + entry + rb")*+", re.DOTALL), re.compile(entry, re.DOTALL)


class _SingleValueHolder(ABC):
    """A holder of single values, which are skipped by reading them."""

    __slots__ = ()

    has_no_arrays: ClassVar[bool] = True
    """True where objects are of Python's own types, none of which can be a view of a file."""

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
            number: int | float = form.unpack(head)[1]
            return number
        if (found := _WORD_LINE.match(cursor.ahead(_AHEAD_BYTES))) is not None:
            number = parse_number(cursor, found[1], self.basic, cursor.position)
            cursor.skip(found.end(), "a number")
            return number
        if read_header(cursor):
            return read_binary(cursor, self.basic)
        word, at = _only_word(cursor, f"a number of type {self.basic.name}")
        return parse_number(cursor, word, self.basic, at)

    def read_run(self, data: bytes, start: int) -> Run:
        """Return the entries at `start`, as far as they are whole and in binary form."""
        run, entry = _number_entry(self.basic.name)
        found = run.match(data, start)
        if found is None or found.end() == start:
            return NO_RUN
        end = found.end()
        keys, numbers = zip(*entry.findall(data, start, end), strict=True)
        values = struct.unpack(f"<{len(numbers)}{self.basic.packing[-1]}", b"".join(numbers))
        return Run(decoded(b" ".join(keys)).split(" "), values, end)

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Write a number, in binary form or as text."""
        if binary:
            file.write(self.packed(value))
        else:
            number = self.basic.checked("value", value)
            file.write(f"{self.basic.text(number, self.precision)} \n".encode())

    def packed(self, value: Any) -> bytes:
        """Return the binary form of a number."""
        basic = self.basic
        start, form = _WHOLE[basic.name]
        if type(value) is int and not basic.is_float and basic.least <= value <= basic.most:
            return form.pack(start, value)
        return form.pack(start, basic.checked("value", value))


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

    def read_run(self, data: bytes, start: int) -> Run:
        """Return the entries at `start`, as far as each is a line of two words."""
        found = _WORDS_RUN.match(data, start)
        if found is None or found.end() == start:
            return NO_RUN
        words = decoded(b" ".join(found[0].split())).split(" ")
        return Run(words[::2], words[1::2], found.end())

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Write a word and a line end, in the one form of words."""
        file.write(self.packed(value))

    def packed(self, value: Any) -> bytes:
        """Return a word and a line end."""
        return checked_token("value", value) + b"\n"


@dataclass(frozen=True, slots=True)
class TokenVectorHolder:
    """Lines of words, as lists of str. They have one form, without a binary header."""

    has_no_arrays: ClassVar[bool] = True
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


RECORD_BYTES = 5
"""The bytes of an int32 or a float with the byte of its type."""

_INT32 = BASIC_TYPES["int32"]
_FLOATS = {each.mark: each for each in (BASIC_TYPES["float"], BASIC_TYPES["double"])}
_NONE = np.empty(0, np.int32)
_MARK = bytes([_INT32.mark])
_FIRST_RECORDS, _RECORDS_OF_A_GROUP = 1 << 12, 8
"""The most records that are looked at first, and how many a group may have: more if these are good."""

_INTEGERS = msgspec.json.Decoder(list[int])
_START, _START_BYTES = struct.Struct("<3xi"), BINARY_HEADER + b"\4"
_WORDS = re.compile(rb";|[^\s;]+")
_SEMICOLON = b";"
_PAIR = 2
_FEW = 32  # numbers; numpy is slower below


class _GroupRecords(NamedTuple):
    """The records of a list of groups, and what the walk through their sizes found."""

    found: Any
    raw: bytes
    """The bytes of the records, sizes included."""


def _read_marked(cursor: Cursor, basic: BasicType, size: int) -> NDArray[Any]:
    """Return the next numbers as an array in memory of its own.

    Raises:
        CorruptObject: the file ends, or a number has another type.
    """
    start = cursor.position
    stored = _stored(cursor, basic, size)
    step = stored.marked.itemsize
    raw = cursor.take(size * step, f"{size} numbers of type {stored.name}")
    if not size:
        return np.empty(0, stored.dtype)
    marks = bytes(raw)[::step]
    if marks != bytes([stored.mark]) * size:
        first = next(at for at, mark in enumerate(marks) if mark != stored.mark)
        found = f"{marks[first]:#04x} before element {first}"
        raise cursor.error(f"the byte {stored.mark:#04x} of a {stored.name}", found, at=start + first * step)
    return np.ndarray(size, stored.dtype, raw, 1, (step,)).copy()


def _skip_marked(cursor: Cursor, basic: BasicType, size: int) -> None:
    """Move past the next numbers; only the type of the first one is looked at."""
    stored = _stored(cursor, basic, size)
    cursor.skip(size * stored.marked.itemsize, f"{size} numbers of type {stored.name}")


def _stored(cursor: Cursor, basic: BasicType, size: int) -> BasicType:
    """Return the type of the numbers at a cursor; the first byte has the precision of floats."""
    mark = cursor.peek() if size else basic.mark
    if mark == basic.mark:
        return basic
    if basic.is_float and mark in _FLOATS:
        return _FLOATS[mark]
    if mark >= 0:
        raise cursor.error(f"the byte {basic.mark:#04x} of a {basic.name}")
    return basic


def _marked_bytes(basic: BasicType, array: NDArray[Any]) -> bytes:
    """Return numbers in binary form."""
    records = np.empty(len(array), basic.marked)
    records["mark"] = basic.mark
    records["value"] = array
    return records.tobytes()


def grouped_bytes(sizes: NDArray[np.int64], records: NDArray[Any]) -> bytes:
    """Return groups in binary form, each with its size before it.

    Args:
        sizes: the size of each group, as it is written.
        records: int32 of shape (n,), the numbers of all groups (floats by their bits). Each unit of a size
            has as many numbers as each other one.
    """
    if len(sizes) and (sizes == sizes[0]).all():
        same = np.empty((len(sizes), 1 + len(records) // len(sizes)), np.int32)
        same[:, 0] = sizes
        same[:, 1:] = records.reshape(len(sizes), -1)
        return _marked_bytes(_INT32, same.ravel())
    total = int(sizes.sum())
    ends = np.cumsum(sizes * (len(records) // total if total else 0) + 1)
    is_size = np.zeros(len(sizes) + len(records), bool)
    is_size[ends[:-1]] = True
    is_size[:1] = True
    numbers = np.empty(len(is_size), np.int32)
    numbers[is_size] = sizes
    numbers[~is_size] = records
    return _marked_bytes(_INT32, numbers)


def read_groups(
    cursor: Cursor, groups: int, walk: Callable[[NDArray[np.int32], int], tuple[Any, int]]
) -> _GroupRecords | None:
    """Return the groups of int32 and floats at a cursor; None where the careful way must be taken.

    None is returned where there are no groups, a type differs, a size is wrong, or not all bytes have
    arrived. Then the cursor has not moved.

    Args:
        cursor: it stands after the number of groups.
        groups: the number of groups.
        walk: is called with the numbers of the next records (floats as int32 with their bits) and the number
            of groups; returns what it makes of them, and the number of records that it has walked through:
            more than there are where there are too few, -1 where a size is wrong.
    """
    wanted = min(_RECORDS_OF_A_GROUP * groups + 1, _FIRST_RECORDS)
    while groups:
        size = RECORD_BYTES * wanted
        raw = cursor.ahead(size)
        while len(raw) < size and len(more := cursor.ahead(size)) > len(raw):  # a file, read by pieces
            raw = more
        there = len(raw) // RECORD_BYTES
        records = np.ndarray(there, _INT32.dtype, raw, 1, (RECORD_BYTES,)) if there else _NONE
        found, used = walk(records, groups)
        good = min(used, there)
        if used < 0 or raw[: RECORD_BYTES * good : RECORD_BYTES] != _MARK * good:
            return None
        if used <= there:
            cursor.skip(RECORD_BYTES * used, "the groups")
            return _GroupRecords(found, raw[: RECORD_BYTES * used])
        if there < wanted:
            return None
        wanted *= 2
    return None


@dataclass(frozen=True, slots=True)
class BasicVectorHolder:
    """Vectors of integers, as arrays of shape (n,)."""

    name: str = "int32-vector"
    basic: BasicType = _INT32
    precision: int = DIGITS

    def read(self, cursor: Cursor) -> NDArray[Any]:
        """Return the next vector, in memory of its own. The last line of a text may lack its line end."""
        head = cursor.ahead(_START.size)
        if head[:3] == _START_BYTES and len(head) == _START.size and (size := _START.unpack(head)[0]) >= 0:
            cursor.skip(_START.size, "the number of elements")
            return _read_marked(cursor, self.basic, size)
        if read_header(cursor):
            return _read_marked(cursor, self.basic, read_size(cursor, "the number of elements"))
        at = cursor.position
        line = text_line(cursor, "a line of numbers", may_lack_end=True)
        if b"," not in line and (fast := _parse_json(line, self.basic)) is not None:
            return fast
        words = line.split()
        places = (found.start() for found in re.finditer(rb"\S+", line))
        numbers = [
            parse_number(cursor, word, self.basic, at + place)
            for word, place in zip(words, places, strict=True)
        ]
        return np.array(numbers, self.basic.dtype)

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Write a vector, in binary form or as text."""
        array = _flat(self.basic, value)
        if binary:
            file.write(BINARY_HEADER + _INT32.packed(len(array)) + _marked_bytes(self.basic, array))
        else:
            file.write(integers_text(array.tolist()) + b"\n")

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
    """Lists of integer vectors, as lists of lists."""

    has_no_arrays: ClassVar[bool] = True
    name: str = "int32-vector-vector"
    basic: BasicType = _INT32
    precision: int = DIGITS

    def read(self, cursor: Cursor) -> list[list[int]]:
        """Return the next list of vectors."""
        if read_header(cursor):
            size = read_size(cursor, "the number of vectors")
            if self.basic.mark == _INT32.mark and (read := read_groups(cursor, size, _cut)) is not None:
                found: list[list[int]] = read.found
                return found
            return [self._read_one(cursor) for _ in range(size)]
        at = cursor.position
        line = text_line(cursor, "a line of numbers and semicolons", may_lack_end=False)
        body = line.rstrip(b" ")
        if body.endswith(_SEMICOLON) and (fast := parse_groups(body[:-1], self.basic)) is not None:
            return fast
        groups, rest = _groups(cursor, line, self.basic, at)
        if rest:
            _refuse_rest(cursor, "';' after each vector", rest, at)
        return groups

    def _read_one(self, cursor: Cursor) -> list[int]:
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
        lists = [
            each.tolist() if isinstance(each, np.ndarray) else each for each in checked_items("value", value)
        ]
        if not set(map(type, lists)) <= {list, tuple}:
            lists = [_flat(self.basic, each).tolist() for each in lists]
        array, sizes = _united(self.basic, lists), list(map(len, lists))
        if not binary:
            numbers = iter(array.tolist())
            file.write(groups_text([list(islice(numbers, size)) for size in sizes]) + b"\n")
            return
        if self.basic.mark == _INT32.mark:
            body = grouped_bytes(np.array(sizes, np.int64), array)
        else:
            parts = np.split(array, np.cumsum(sizes)[:-1]) if sizes else []
            body = b"".join(_INT32.packed(len(part)) + _marked_bytes(self.basic, part) for part in parts)
        file.write(BINARY_HEADER + _INT32.packed(len(sizes)) + body)

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
    """Vectors of number pairs, as lists of tuples."""

    has_no_arrays: ClassVar[bool] = True
    name: str = "int32-pair-vector"
    basic: BasicType = _INT32
    precision: int = DIGITS

    def read(self, cursor: Cursor) -> list[tuple[int | float, int | float]]:
        """Return the next vector of pairs."""
        if read_header(cursor):
            size = read_size(cursor, "the number of pairs")
            numbers = _read_marked(cursor, self.basic, _PAIR * size).tolist()
            return list(zip(numbers[::2], numbers[1::2], strict=True))
        at = cursor.position
        line = text_line(cursor, "a line of numbers and semicolons", may_lack_end=False)
        if not line.strip():
            return []
        if (pairs := _parse_pairs(line, self.basic)) is not None:
            return pairs
        groups, rest = _groups(cursor, line, self.basic, at)
        groups.append(rest)
        if any(len(group) != _PAIR for group in groups):
            _refuse_rest(
                cursor, "two numbers between semicolons", next(g for g in groups if len(g) != _PAIR), at
            )
        return [(one, two) for one, two in groups]

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Write a vector of pairs."""
        pairs = [tuple(checked_items("each pair of value", pair)) for pair in checked_items("value", value)]
        if not set(map(len, pairs)) <= {_PAIR}:
            raise InvalidArgument(
                f"value must hold pairs (got {next(p for p in pairs if len(p) != _PAIR)!r})"
            )
        array = _united(self.basic, pairs)
        if binary:
            file.write(BINARY_HEADER + _INT32.packed(len(pairs)) + _marked_bytes(self.basic, array))
        else:
            form = f"%.{self.precision}g" if self.basic.is_float else "%d"
            words = "; ".join([f"{form} {form} "] * len(pairs)) % tuple(array.tolist())
            file.write(f"{words}\n".encode())

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


def _flat(basic: BasicType, value: Any) -> NDArray[Any]:
    """Return a value as an array of one dimension."""
    if isinstance(value, str | bytes):
        raise WrongType(f"value must be a sequence of numbers (got {value!r})")
    array = basic.checked_array("value", value)
    if array.ndim != 1:
        raise InvalidArgument(f"value must have one dimension (got the shape {array.shape})")
    return array


def _united(basic: BasicType, lists: list[Any]) -> NDArray[Any]:
    """Return the numbers of lists as one array."""
    numbers = list(chain.from_iterable(lists))
    if set(map(type, numbers)) == {int}:
        try:
            return np.frombuffer(struct.pack(f"<{len(numbers)}{basic.packing[-1]}", *numbers), basic.dtype)
        except (struct.error, OverflowError):  # the careful way says what is too large
            pass
    return _flat(basic, numbers)


def _parse_json(line: bytes, basic: BasicType) -> NDArray[Any] | None:
    """Return integers with single spaces between them as an array; None for other text and large numbers."""
    try:
        numbers = _INTEGERS.decode(b"[" + line.strip().replace(b" ", b",") + b"]")
        packed = struct.pack(f"<{len(numbers)}{basic.packing[-1]}", *numbers)
    except (msgspec.DecodeError, struct.error):
        return None
    return np.frombuffer(bytearray(packed), basic.dtype)


def _groups(cursor: Cursor, line: bytes, basic: BasicType, at: int) -> tuple[list[list[Any]], list[Any]]:
    """Return the numbers before each semicolon of a line at `at`, and those after the last semicolon."""
    groups: list[list[Any]] = []
    rest: list[Any] = []
    for found in _WORDS.finditer(line):
        word = found.group()
        if word == _SEMICOLON:
            groups.append(rest)
            rest = []
        else:
            rest.append(parse_number(cursor, word, basic, at + found.start()))
    return groups, rest


def _parse_pairs(line: bytes, basic: BasicType) -> list[tuple[Any, Any]] | None:
    """Return the pairs of a line in Kaldi's form; None for another form, or a number that is too large."""
    found = parse_float_groups(line) if basic.is_float else parse_groups(line, basic)
    if found is None or set(map(len, found)) != {_PAIR}:
        return None
    if basic.is_float:
        with np.errstate(over="ignore"):
            array = np.array(found).astype(basic.dtype)
        found = None if np.isinf(array).any() else array.tolist()
    return None if found is None else [(one, two) for one, two in found]


def _cut(records: NDArray[np.int32], groups: int) -> tuple[list[list[int]], int]:
    """Return the vectors whose sizes are in `records`, and the number of records that they take."""
    found: list[list[int]] = []
    values: list[int] = records.tolist()
    at = 0
    try:
        for _ in range(groups):
            end = at + 1 + values[at]
            if end <= at:
                return found, -1
            found.append(values[at + 1 : end])
            at = end
    except IndexError:
        return found, len(values) + 1
    return found, at


def _refuse_rest(cursor: Cursor, expected: str, numbers: list[Any], at: int) -> NoReturn:
    raise cursor.error(expected, " ".join(map(str, numbers[:8])) or "nothing", at=at)
