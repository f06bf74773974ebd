"""What the Read and Write functions of Kaldi classes are made of: the binary header, tokens and basic types.

Tokens are words such as ``<Nnet>``. Basic types are numbers, booleans and vectors of integers.
In binary form the byte before a number says its size and whether it is signed, and an integer of another size
or signedness is refused, as Kaldi does; a floating-point number of either size is accepted.
"""

from __future__ import annotations

import math
import operator
import re
import struct
from dataclasses import dataclass
from numbers import Number
from typing import TYPE_CHECKING, Any, Final, SupportsFloat, SupportsIndex

import numpy as np

from seekable._arguments import checked_count
from seekable.errors import InvalidArgument, WrongType
from seekable.formats.kaldi.cursor import Cursor, borrowed

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from seekable.formats.kaldi.cursor import Output


BINARY_HEADER = b"\0B"
TOKEN: Final = rb"[\x21-\x7e\x80-\xfe]++"
"""The expression for the bytes of a token or a key: no white space, no control characters, no byte 255."""

TOKEN_AND_SPACE: Final = rb"(" + TOKEN + rb")(?:[ \t]|(?=[\r\n]))"
"""The expression for a key and the space after it. A line end after a key belongs to the object."""

SPACED_KEY: Final = rb"[ \t\n\v\f\r]*+(" + TOKEN + rb")[ \t]"
"""The expression for white space, a key and the space after it, as far as it is one."""

_NOT_ASCII: Final = re.compile("[^\\x00-\\x20\\x7f\\ud800-\\udc7f\\udcff-\\udfff]+")
"""A token as text. A surrogate stands for a byte that is not UTF-8; other surrogates are not valid."""

_SPACES: Final = b" \t\n\r\f\v"


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


def decoded(raw: bytes) -> str:
    """Return bytes of a file as text; bytes that are not UTF-8 survive a round trip."""
    return raw.decode("utf-8", "surrogateescape")


def encoded(text: str) -> bytes:
    """Return the bytes of text that `decoded` has returned."""
    return text.encode("utf-8", "surrogateescape")


def is_token(text: str) -> bool:
    r"""Return True if `text` can be a token or a key: not empty, no whitespace, no control characters.

    Example:
        >>> is_token("utt-1"), is_token("a b"), is_token(""), is_token("\x01")
        (True, False, False, False)
    """
    if text.isascii():
        return text.isprintable() and " " not in text and bool(text)
    return _NOT_ASCII.fullmatch(text) is not None


def check_token(name: str, value: object) -> None:
    """Raise an error for an argument that is not a token, and so cannot be a key either.

    Raises:
        WrongType: it is not a str.
        InvalidArgument: it is empty, or contains whitespace or a control character.
    """
    if not isinstance(value, str):
        raise WrongType(f"{name} must be a str (got {value!r} of type {type(value).__name__})")
    if not is_token(value):
        raise InvalidArgument(
            f"{name} must be a word without whitespace or control characters (got {value!r})"
        )


def checked_token(name: str, value: object) -> bytes:
    """Return the bytes of a token; errors as in `check_token`."""
    if type(value) is str and value.isascii() and value.isprintable() and value and " " not in value:
        return value.encode()
    check_token(name, value)
    assert isinstance(value, str)
    return encoded(value)


def write_token(file: Output, token: str, *, binary: bool | None = None) -> None:  # noqa: ARG001 - one form
    """Write a token and one space, in text and in binary alike.

    Raises:
        InvalidArgument: it is empty or contains whitespace.
    """
    checked_output(file).write(checked_token("token", token) + b" ")


def read_token(file: Any, *, binary: bool | None = None) -> str:  # noqa: ARG001 - one form
    """Return the next token, and move past it and the one whitespace byte that must follow.

    Raises:
        CorruptObject: no token is there, or no whitespace follows it.

    Example:
        >>> import io
        >>> read_token(io.BytesIO(b"<Nnet> 5 "), binary=True)
        '<Nnet>'
    """
    with borrowed(file) as cursor:
        return decoded(token_bytes(cursor, "a token"))


def expect_token(file: Any, token: str, *, binary: bool | None = None) -> None:  # noqa: ARG001 - one form
    """Move past a token that must be `token`; ``Foo>`` is taken for ``<Foo>`` too, as Kaldi does.

    Raises:
        CorruptObject: another token is there, or none.
    """
    wanted = checked_token("token", token)
    with borrowed(file) as cursor:
        cursor.skip_spaces()
        start = cursor.position
        found = token_bytes(cursor, f"the token {token!r}")
        if found != wanted and not (wanted[:1] == b"<" and found == wanted[1:]):
            raise cursor.error(f"the token {token!r}", repr(decoded(found)), at=start)


def peek_token(file: Any, *, binary: bool | None = None) -> str:
    """Return the first character of the next token, skipping one ``<``; an empty string at the end.

    The file must be able to go back by a byte: it is a file of ``open(path, "rb")``, seekable, or in memory.

    Example:
        >>> import io
        >>> peek_token(io.BytesIO(b"<Nnet> 5 "), binary=True)
        'N'
    """
    with borrowed(file) as cursor:
        if not is_binary(file, binary):
            cursor.skip_spaces()
        ahead = cursor.preview()[:2]
        if ahead == b"<":  # the last byte that has arrived: as in Kaldi, expect_token accepts the rest alone
            cursor.skip(1, "<")
            ahead = cursor.preview()
        return decoded(ahead.removeprefix(b"<")[:1])


def token_bytes(cursor: Cursor, what: str) -> bytes:
    """Return the next word; leading whitespace is skipped, and one whitespace byte after it is consumed."""
    cursor.skip_spaces()
    found = cursor.word(what)
    if cursor.peek() < 0:
        raise cursor.error(f"whitespace after {decoded(found)!r}")
    cursor.skip(1, "whitespace")
    return found


def write_pretty(file: Output, text: str, *, binary: bool | None = None) -> None:
    """Write any text as it is in a text file; write nothing in a binary file."""
    if not is_binary(file, binary):
        file.write(encoded(text))


def expect_pretty(file: Any, text: str, *, binary: bool | None = None) -> None:
    r"""Move past `text` in a text file; read nothing in a binary file.

    Any run of whitespace matches any other run of whitespace; leading and trailing whitespace of `text` may
    be absent.

    Raises:
        CorruptObject: another text is there.

    Example:
        >>> import io
        >>> file = io.BytesIO(b"num  frames\n= 5")
        >>> expect_pretty(file, "num frames = ", binary=False)
        >>> file.read()
        b'5'
    """
    if is_binary(file, binary):
        return
    raw = encoded(text)
    with borrowed(file) as cursor:
        if raw[:1].isspace():
            cursor.skip_spaces()
        for number, word in enumerate(raw.split()):
            if number:
                _expect_spaces(cursor, text)
            start = cursor.position
            if cursor.peek() < 0 or (found := bytes(cursor.take(len(word), f"the text {text!r}"))) != word:
                shown = None if cursor.peek() < 0 and cursor.position == start else repr(decoded(found))
                raise cursor.error(f"the text {text!r}", shown, at=start)
        if raw.strip(_SPACES) and raw[-1:].isspace():
            cursor.skip_spaces()


def _expect_spaces(cursor: Cursor, text: str) -> None:
    start = cursor.position
    cursor.skip_spaces()
    if cursor.position == start:
        raise cursor.error(f"the text {text!r} with whitespace here")


DIGITS = 7
"""The significant digits with which Kaldi writes floating-point numbers in text, also doubles."""

_NUMPY_CODES = {"b": "i1", "B": "u1", "q": "i8", "Q": "u8", "f": "f4", "d": "f8"}
_MOST_DIGITS = 32  # of an integer; no type has more
_INTEGER = re.compile(rb"[+-]?[0-9]+")
_FLOAT = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SPECIAL = re.compile(rb"-?(?:inf|infinity|nan)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class BasicType:
    """One number type: its name in Kaldi, its dtype, and the byte that precedes a number in binary form."""

    name: str
    dtype: np.dtype[Any]
    mark: int
    least: float
    """The least number of the type; for floats, a number that already rounds to minus infinity."""
    most: float
    marked: np.dtype[Any]
    """The dtype of a number with the byte before it."""
    packing: str
    """The same for the module struct."""
    is_float: bool
    """True for float and double."""

    def checked(self, name: str, value: object) -> int | float:
        """Return a value as a Python number that this type can hold.

        Raises:
            WrongType: it is not a number, or no integer where one is needed.
            InvalidArgument: it is too large for the type.
        """
        if type(value) is int and not self.is_float and self.least <= value <= self.most:
            return value
        if self.is_float:
            # The protocols of typing are slow to check.
            if type(value) is not float and (
                not isinstance(value, SupportsFloat) or isinstance(value, str | type)
            ):
                raise WrongType(f"{name} must be a number (got {value!r} of type {type(value).__name__})")
            try:
                number = float(value)
            except OverflowError:
                raise InvalidArgument(f"{name} must fit into a {self.name} (got a larger number)") from None
            if not (self.least < number < self.most) and math.isfinite(number):
                raise InvalidArgument(f"{name} must fit into a {self.name} (got {value!r})")
            return float(self.dtype.type(number))
        if not isinstance(value, SupportsIndex) or isinstance(value, bool | type):
            raise WrongType(f"{name} must be an integer (got {value!r} of type {type(value).__name__})")
        integer = operator.index(value)
        if not self.least <= integer <= self.most:
            limits = f"[{self.least}, {self.most}]"
            raise InvalidArgument(f"{name} must be in {limits} for {self.name} (got {integer})")
        return integer

    def checked_array(self, name: str, values: ArrayLike) -> NDArray[Any]:
        """Return values as an array of this type, contiguous and little-endian.

        Raises:
            WrongType: the values are not numbers, or no integers where integers are needed.
            InvalidArgument: a value is too large for the type, or rows have several lengths.
        """
        try:
            array = np.asarray(values)
        except ValueError as error:
            raise InvalidArgument(f"{name} must be an array, or lists of equal length ({error})") from None
        if not array.size:
            return np.zeros(array.shape, self.dtype)
        if array.dtype.kind not in ("iuf" if self.is_float else "iu"):
            raise WrongType(f"{name} must hold {self.name} numbers (got an array of {array.dtype})")
        if array.dtype == self.dtype:
            return np.ascontiguousarray(array)
        if self.is_float:
            with np.errstate(over="ignore"):
                held = array.astype(self.dtype, order="C")
            bad = np.isinf(held) & np.isfinite(array)
        else:
            bad = (array < self.least) | (array > self.most)
            held = array.astype(self.dtype, order="C")
        if bad.any():
            raise InvalidArgument(f"{name} must fit into {self.name} (got {array[bad].ravel()[0]!r})")
        return held

    def text(self, value: float, precision: int = DIGITS) -> str:
        """Return a number as Kaldi writes it in text, without the space after it."""
        return f"{value:.{precision}g}" if self.is_float else str(value)

    def packed(self, value: float) -> bytes:
        """Return a number in binary form: the byte of its type, and its bytes."""
        return struct.pack(self.packing, self.mark, value)


def _made(name: str, code: str, mark: int, least: float, most: float) -> BasicType:
    marked = np.dtype([("mark", "u1"), ("value", f"<{_NUMPY_CODES.get(code, code)}")])
    return BasicType(name, marked["value"], mark, least, most, marked, f"<B{code}", code in "fd")


def _all_types() -> dict[str, BasicType]:
    beyond = 2.0**128 - 2.0**103  # half way between the largest float and what would follow
    found = [_made("float", "f", 4, -beyond, beyond), _made("double", "d", 8, -math.inf, math.inf)]
    for size, code in zip((1, 2, 4, 8), "bhiq", strict=True):
        values = 1 << (8 * size)
        found.append(_made(f"int{8 * size}", code, size, -values // 2, values // 2 - 1))
        found.append(_made(f"uint{8 * size}", code.upper(), 256 - size, 0, values - 1))
    return {each.name: each for each in found}


BASIC_TYPES = _all_types()
"""Every number type by its name."""

_SIZE = struct.Struct("<xi")  # the byte of an int32, which was checked, and the int32
_INT32 = BASIC_TYPES["int32"]
_FLOATS = {4: BASIC_TYPES["float"], 8: BASIC_TYPES["double"]}


def checked_items(name: str, value: Any) -> list[Any]:
    """Return the items of a value as a list.

    Raises:
        WrongType: it has none.
    """
    try:
        return list(value)
    except TypeError:
        raise WrongType(f"{name} must be a list (got {value!r} of type {type(value).__name__})") from None


def find_type(kind: str, *, integer: bool = False) -> BasicType:
    """Return the number type with a name.

    Raises:
        InvalidArgument: there is none, or it is not an integer type where `integer` is True.
    """
    found = BASIC_TYPES.get(kind) if isinstance(kind, str) else None
    if found is None or (integer and found.is_float):
        names = [name for name in [*BASIC_TYPES, "bool"] if not integer or "int" in name]
        raise InvalidArgument(f"kind must be one of {', '.join(names)} (got {kind!r})")
    return found


def read_basic_type(
    file: Any, kind: str, *, binary: bool | None = None, add: float | None = None
) -> int | float | bool:
    r"""Return the next number or boolean of a binary file object.

    Args:
        file: a binary file, also one that `open_rx` opened, or a cursor.
        kind: "int8" to "int64", "uint8" to "uint64", "float", "double" or "bool".
        binary: the form of the object; left out, the file must say it (its `binary`).
        add: a number; the sum of it and of what is read is returned.

    Raises:
        CorruptObject: the file ends, or something else is there: also an integer of another size or sign.

    Example:
        >>> import io
        >>> read_basic_type(io.BytesIO(b"\x04\x05\0\0\0"), "int32", binary=True)
        5
        >>> read_basic_type(io.BytesIO(b" 0.5 "), "float", binary=False, add=1)
        1.5
    """
    in_binary = is_binary(file, binary)
    if add is not None and (isinstance(add, bool | np.bool_) or not isinstance(add, Number)):
        raise WrongType(f"add must be the number that is added to (got {add!r}); Kaldi's true has no number")
    basic = None if isinstance(kind, str) and kind == "bool" else find_type(kind)
    with borrowed(file) as cursor:
        if basic is None:
            value: int | float = _read_bool(cursor, binary=in_binary)
        else:
            value = read_binary(cursor, basic) if in_binary else _read_text(cursor, basic)
    return value if add is None else value + add


def write_basic_type(
    file: Output, value: object, kind: str, *, binary: bool | None = None, precision: int = DIGITS
) -> None:
    r"""Write a number or boolean.

    Raises:
        WrongType: the value is of another type, or the precision is not an int.
        InvalidArgument: the value does not fit, or the precision is less than 1.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> write_basic_type(file, 5, "int32", binary=True)
        >>> write_basic_type(file, 0.1, "float", binary=False)
        >>> file.getvalue()
        b'\x04\x05\x00\x00\x000.1 '
    """
    in_binary = is_binary(file, binary)
    if isinstance(kind, str) and kind == "bool":
        if not isinstance(value, bool | np.bool_):
            raise WrongType(f"value must be True or False (got {value!r})")
        file.write((b"T" if value else b"F") + (b"" if in_binary else b" "))
        return
    basic = find_type(kind)
    number, digits = basic.checked("value", value), checked_count("precision", precision, least=1)
    file.write(basic.packed(number) if in_binary else f"{basic.text(number, digits)} ".encode())


def read_binary(cursor: Cursor, basic: BasicType) -> int | float:
    """Return the number at a cursor in binary form."""
    mark = cursor.peek()
    if basic.is_float and mark in _FLOATS:
        basic = _FLOATS[mark]
    elif mark != basic.mark:
        raise cursor.error(f"the byte {basic.mark:#04x} of a {basic.name}")
    number: int | float = struct.unpack(basic.packing, cursor.take(basic.marked.itemsize, basic.name))[1]
    return number


def read_size(cursor: Cursor, what: str) -> int:
    """Return an int32 in binary form that counts something; a negative one is refused."""
    if cursor.peek() != _INT32.mark:
        raise cursor.error(f"the byte 0x04 of {what}")
    start = cursor.position
    size: int = _SIZE.unpack(cursor.take(_SIZE.size, what))[0]
    if size < 0:
        raise cursor.error(what, str(size), at=start)
    return size


def parse_number(cursor: Cursor, word: bytes, basic: BasicType, at: int) -> int | float:
    """Return the number that a word of text is; also ``inf`` and ``nan``, which Kaldi writes and cannot read.

    Raises:
        CorruptObject: it is none, or one that is too large for the type.
    """
    if basic.is_float:
        number = float(word) if _FLOAT.fullmatch(word) else math.inf
        if basic.least < number < basic.most:
            return float(np.float32(number)) if basic.mark == _FLOATS[4].mark else number
        if _SPECIAL.fullmatch(word):
            return float(word)
    elif _INTEGER.fullmatch(word) and len(word) <= _MOST_DIGITS and basic.least <= int(word) <= basic.most:
        return int(word)
    raise cursor.error(f"a number of type {basic.name}", repr(decoded(word[:60])), at=at)


def parse_bool(cursor: Cursor, word: bytes, at: int) -> bool:
    """Return the boolean that a word of text is: ``T`` or ``F``."""
    if word not in {b"T", b"F"}:
        raise cursor.error("T or F", repr(decoded(word[:60])), at=at)
    return word == b"T"


def _read_bool(cursor: Cursor, *, binary: bool) -> bool:
    if not binary:
        cursor.skip_spaces()
    at = cursor.position
    if cursor.peek() not in {ord("T"), ord("F")}:
        raise cursor.error("T or F")
    return parse_bool(cursor, bytes(cursor.take(1, "T or F")), at)


def _read_text(cursor: Cursor, basic: BasicType) -> int | float:
    cursor.skip_spaces()
    at = cursor.position
    return parse_number(cursor, cursor.word(f"a number of type {basic.name}"), basic, at)


def read_integer_vector(file: Any, kind: str, *, binary: bool | None = None) -> NDArray[Any]:
    r"""Return the next vector of integers, as Kaldi classes (not tables) store it, as an array of shape (n,).

    Raises:
        CorruptObject: the file ends, or something else is there.

    Example:
        >>> import io
        >>> read_integer_vector(io.BytesIO(b"[ 1 -2 ]\n"), "int32", binary=False)
        array([ 1, -2], dtype=int32)
    """
    basic = find_type(kind, integer=True)
    in_binary = is_binary(file, binary)
    with borrowed(file) as cursor:
        return _read_integers(cursor, basic, in_binary=in_binary, columns=1)


def read_integer_pairs(file: Any, kind: str, *, binary: bool | None = None) -> NDArray[Any]:
    r"""Read integer pairs as Kaldi classes store them; return an array, shape (n, 2).

    Raises:
        CorruptObject: the file ends, or something else is there.

    Example:
        >>> import io
        >>> read_integer_pairs(io.BytesIO(b"[ 1,2 3,4 ]\n"), "int32", binary=False).tolist()
        [[1, 2], [3, 4]]
    """
    basic = find_type(kind, integer=True)
    in_binary = is_binary(file, binary)
    with borrowed(file) as cursor:
        return _read_integers(cursor, basic, in_binary=in_binary, columns=2).reshape(-1, 2)


def _read_integers(cursor: Cursor, basic: BasicType, *, in_binary: bool, columns: int) -> NDArray[Any]:
    size = basic.dtype.itemsize
    if in_binary:
        if cursor.peek() != size:
            raise cursor.error(f"the byte {size:#04x} of a vector of {basic.name}")
        start = cursor.position
        length = int.from_bytes(cursor.take(5, "the length of a vector")[1:], "little", signed=True)
        if length < 0:
            raise cursor.error("the length of a vector", str(length), at=start)
        return cursor.array(basic.dtype, length * columns, f"{length} elements").copy()
    if cursor.skip_spaces() != ord("["):
        raise cursor.error("'[' of a vector of integers")
    cursor.skip(1, "'['")
    start = cursor.position
    raw = cursor.through(b"]")
    if not raw.endswith(b"]"):
        raise cursor.error("']' at the end of a vector")
    words = raw[:-1].split()
    numbers = [word for pair in words for word in pair.split(b",")] if columns == 2 else words  # noqa: PLR2004
    if len(numbers) != columns * len(words):
        raise cursor.error("pairs of integers, such as 1,2", repr(decoded(raw[:60])), at=start)
    return np.array([parse_number(cursor, word, basic, start) for word in numbers], basic.dtype)


def write_integer_vector(file: Output, values: ArrayLike, kind: str, *, binary: bool | None = None) -> None:
    """Write a vector of integers as Kaldi classes (not tables) store it.

    Raises:
        WrongType: the values are not integers.
        InvalidArgument: a value does not fit, or the values have more than one dimension.
    """
    basic = find_type(kind, integer=True)
    array = basic.checked_array("values", values)
    if array.ndim != 1:
        raise InvalidArgument(f"values must have one dimension (got the shape {array.shape})")
    if is_binary(file, binary):
        file.write(bytes([array.itemsize]) + len(array).to_bytes(4, "little") + array.tobytes())
    else:
        file.write(("[ " + "".join(f"{each} " for each in array.tolist()) + "]\n").encode())


def write_integer_pairs(file: Output, values: ArrayLike, kind: str, *, binary: bool | None = None) -> None:
    """Write integer pairs, shape (n, 2), as Kaldi classes store them.

    Raises:
        WrongType: the values are not integers.
        InvalidArgument: a value does not fit, or the values are not pairs.
    """
    basic = find_type(kind, integer=True)
    array = basic.checked_array("values", values)
    array = array.reshape(0, 2) if not array.size else array
    if array.ndim != 2 or array.shape[1] != 2:  # noqa: PLR2004 - pairs
        raise InvalidArgument(f"values must have the shape (n, 2) (got {array.shape})")
    if is_binary(file, binary):
        file.write(bytes([array.itemsize]) + len(array).to_bytes(4, "little") + array.tobytes())
    else:
        file.write(("[ " + "".join(f"{one},{two} " for one, two in array.tolist()) + "]\n").encode())
