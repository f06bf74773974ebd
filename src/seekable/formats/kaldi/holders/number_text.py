"""Numbers as text: vectors, matrices and lists in brackets, parsed and written in whole arrays.

Floating-point numbers are written as ``%.7g`` of C writes them. Most are rounded to these digits in arrays:
such a number is a decimal fraction of few digits, and msgspec writes its shortest text, which is that of
``%g``. Numbers with an exponent or close to a tie, infinities and nan are written one by one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np

from seekable.formats.kaldi.basic_types import DIGITS, BasicType, decoded, parse_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.formats.kaldi.cursor import Cursor

_MOST_DIGITS = 9
"""With more digits, a product in double precision does not show which way a number is rounded."""

_LEAST = 1e-4
"""The least number that ``%g`` writes without an exponent."""

_POWERS = 10.0 ** np.arange(16)
_CLOSE_TO_HALF = 1e-6
"""Numbers so close to a tie are not rounded in arrays; the error of a product is less than a tenth of it."""

_NUMBERS_AT_A_TIME = 1 << 10
"""The most numbers that become Python objects at once: these fit into memory that is used again."""

_ROWS = msgspec.json.Decoder(list[list[float]])
_PACK = msgspec.msgpack.Encoder()
_SMALL, _SHORT = (
    16,
    1 << 16,
)  # msgpack: lists of less than 16 items have a header of 1 byte, of less than 2**16, of 3
_BLOCK_BYTES = 1 << 16
"""The bytes that are parsed at a time: what is made of them is small enough for memory that is used again."""

_AFTER_BRACKET = frozenset(b" \t\n\r\f\v]")
_SHOWN_BYTES = 24
_LINE_END, _SPACE, _COMMA, _OPEN, _CLOSE = b"\n ,[]"
_FIRST = re.compile(rb"-|[0-9]|inf|nan", re.IGNORECASE)
_INT64_MOST = (1 << 63) - 1
_INTEGERS = b"0123456789- ;"
_FLOATS = b"0123456789-+.e ;"
_BRACKETED = b"0123456789-+.e []"
_MIXED_DECODER = msgspec.json.Decoder(list[list[int | float]])
_FLOAT_DECODER = msgspec.json.Decoder(list[list[float]])


def _lines_of_numbers(values: NDArray[Any], precision: int, between: bytes) -> bytes:
    r"""Return rows of numbers, each number with a space after it.

    Args:
        values: float32 or float64 of shape (rows, columns), with at least one row.
        precision: the number of significant digits.
        between: the bytes between rows; they have no comma.

    Example:
        >>> _lines_of_numbers(np.array([[0.1, 2], [-1e-7, 1 / 3]]), 7, b"\n")
        b'0.1 2 \n-1e-07 0.3333333 '
    """
    step = max(1, _NUMBERS_AT_A_TIME // max(1, values.shape[1]))
    form = f"%.{precision}g "
    if not 1 <= precision <= _MOST_DIGITS:
        return between.join(((form * len(row)) % tuple(row.tolist())).encode() for row in values)
    with np.errstate(invalid="ignore"):  # signals of nan
        starts = range(0, len(values), step)
        return between.join(_few_lines(values[first : first + step], precision, between) for first in starts)


def _few_lines(values: NDArray[Any], precision: int, between: bytes) -> bytes:
    sizes = np.abs(values, dtype=np.float64)
    is_rare = ~((sizes >= _LEAST) & (sizes < _POWERS[precision]))  # also nan
    sizes[is_rare] = 1
    scales = _POWERS[precision - 1 - np.floor(np.log10(sizes)).astype(np.intp)]
    sizes *= scales
    rounded = np.rint(sizes)
    sizes -= rounded
    np.abs(sizes, out=sizes)
    is_rare |= np.abs(sizes - 0.5) < _CLOSE_TO_HALF
    rounded /= scales
    is_rare |= rounded >= _POWERS[precision]
    is_rare &= values != 0
    rounded[values == 0] = 0
    np.copysign(rounded, values, out=rounded)
    lines: list[list[Any]] = rounded.tolist()
    for row, column in zip(*(places.tolist() for places in is_rare.nonzero()), strict=True):
        lines[row][column] = msgspec.Raw(b"%.*g" % (precision, float(values[row, column])))
    text = msgspec.json.encode(lines)[2:-2].replace(b"],[", b"," + between) + b","
    return text.replace(b".0,", b",").replace(b",", b" ")


def vector_text(values: NDArray[Any], precision: int = DIGITS) -> bytes:
    r"""Return a vector as Kaldi writes it in text.

    Example:
        >>> vector_text(np.array([0.1, 2], "f4")), vector_text(np.array([], "f4"))
        (b' [ 0.1 2 ]\n', b' [ ]\n')
    """
    return (
        b" [ " + _lines_of_numbers(values.reshape(1, -1), precision, b"") + b"]\n"
        if len(values)
        else b" [ ]\n"
    )


def matrix_text(values: NDArray[Any], precision: int = DIGITS) -> bytes:
    r"""Return a matrix as Kaldi writes it in text.

    Example:
        >>> matrix_text(np.array([[1, 2.5], [-3, 4]], "f4"))
        b' [\n  1 2.5 \n  -3 4 ]\n'
    """
    if not values.size:
        return b" [ ]\n"
    return b" [\n  " + _lines_of_numbers(values, precision, b"\n  ") + b"]\n"


def read_vector_text(cursor: Cursor, basic: BasicType) -> NDArray[Any]:
    """Return the vector in brackets at a cursor, and move past its line.

    Raises:
        CorruptObject: it has no brackets, a line end inside, or a word that is not a number.
    """
    found, at = _bracketed(cursor, "a vector")
    body = found[:-1]
    if b"\n" in body or b"\r" in body:
        line_end = re.search(rb"[\r\n]", body)
        assert line_end is not None
        raise cursor.error("']' on the same line", "the end of the line", at=at + line_end.start())
    if not body.strip():
        return np.empty(0, basic.dtype)
    fast = _parse_json([b",".join(body.split())], basic) if b"," not in body else None
    return fast[0] if fast is not None else _parse_slow(cursor, body, basic, at)


def read_matrix_text(cursor: Cursor, basic: BasicType) -> NDArray[Any]:
    """Return the matrix in brackets at a cursor, and move past its line end; rows may end with ``;``.

    Raises:
        CorruptObject: it has no brackets, rows of several lengths, or a word that is not a number.
    """
    found, at = _bracketed(cursor, "a matrix")
    if (fast := _parse_blocks(found, len(found) - 1, basic)) is not None:
        return fast
    body = found[:-1]
    lines = body.replace(b";", b"\n").replace(b"\r", b" ").split(b"\n")
    rows = [row for line in lines if (row := line.strip())]
    if not rows:
        return np.empty((0, 0), basic.dtype)
    if (
        b"," not in body
        and (fast := _parse_json([b",".join(row.split()) for row in rows], basic)) is not None
    ):
        return fast
    parsed, start = [], at
    for line in lines:
        if line.strip():
            parsed.append(_parse_slow(cursor, line, basic, start))
            if len(parsed[-1]) != len(parsed[0]):
                seen = f"{len(parsed[-1])} in row {len(parsed) - 1}"
                raise cursor.error(f"{len(parsed[0])} numbers in each row, as in row 0", seen, at=start)
        start += len(line) + 1
    return np.stack(parsed)


def parse_words(cursor: Cursor, words: list[bytes], basic: BasicType, at: int) -> NDArray[Any]:
    """Return words of text as an array of numbers; `at` is their place in the file, for messages."""
    return np.array([parse_number(cursor, word, basic, at) for word in words], basic.dtype)


def skip_brackets(cursor: Cursor, what: str) -> None:
    """Move past a vector or matrix in brackets and its line end, without parsing it."""
    _bracketed(cursor, what)


def _bracketed(cursor: Cursor, what: str) -> tuple[bytes, int]:
    """Return the bytes after ``[`` through ``]``, and their place; move past the line end too."""
    if cursor.skip_spaces() != ord("["):
        at = cursor.position
        seen = cursor.word(what, at_most=_SHOWN_BYTES)
        found = f"{decoded(seen)!r} (an archive is read by ark:, or by the offset of an entry)"
        raise cursor.error(f"'[' of {what} in text, or the binary header", found, at=at)
    cursor.skip(1, "'['")
    if cursor.peek() not in _AFTER_BRACKET:
        raise cursor.error("whitespace or ']' after '['")
    at = cursor.position
    body = cursor.through(b"]")
    if not body.endswith(b"]"):
        raise cursor.error(f"']' at the end of {what}")
    end_bracket(cursor)
    return body, at


def end_bracket(cursor: Cursor) -> None:
    r"""Move past one ``\n`` or ``\r\n`` after a closing bracket, if it is there."""
    byte = cursor.peek()
    if byte == ord("\r"):
        cursor.skip(1, "a carriage return")
        byte = cursor.peek()
    if byte == ord("\n"):
        cursor.skip(1, "a line end")


def _parse_blocks(body: bytes, stop: int, basic: BasicType) -> NDArray[Any] | None:
    """Return a matrix in the form that Kaldi writes, by some rows at a time; None for any other form.

    Args:
        body: the bytes of the matrix.
        stop: the place of the closing bracket in them.
        basic: the type of the numbers.
    """
    parts: list[NDArray[Any]] = []
    start = 0
    while start < stop:
        end = body.find(b"\n", start + _BLOCK_BYTES, stop)
        end = stop if end < 0 else end
        part = _parse_as_written(body[start:end], basic)
        if part is None or part.shape[1] != (parts[0] if parts else part).shape[1]:
            return None
        parts.append(part)
        start = end
    return np.concatenate(parts) if len(parts) > 1 else parts[0] if parts else None


def _parse_as_written(body: bytes, basic: BasicType) -> NDArray[Any] | None:
    """Return a matrix in the form that Kaldi writes, parsed as JSON; None for any other form."""
    if not (body.startswith(b"\n  ") and body.endswith(b" ")) or b"," in body:
        return None
    data = np.frombuffer(body, np.uint8)
    ends = np.flatnonzero(data == _LINE_END)[1:]
    if len(ends) and ends[-1] + 2 >= len(data):
        return None
    if any((data[ends + place] != _SPACE).any() for place in (-1, 1, 2)):
        return None
    text = data + (data == _SPACE).view(np.uint8) * np.uint8(_COMMA - _SPACE)
    text[:3] = _OPEN, _OPEN, _SPACE
    text[ends - 1], text[ends], text[ends + 1], text[ends + 2] = _CLOSE, _COMMA, _OPEN, _SPACE
    text[-1] = _CLOSE
    return _parse_rows(text.tobytes() + b"]", len(ends) + 1, basic)


def _parse_json(rows: list[bytes], basic: BasicType) -> NDArray[Any] | None:
    """Return rows of numbers with commas as an array; None unless they are plain JSON of one length."""
    return _parse_rows(b"[[" + b"],[".join(rows) + b"]]", len(rows), basic)


def _parse_rows(text: bytes, rows: int, basic: BasicType) -> NDArray[Any] | None:
    array = _decode_json(text, rows, basic)
    if array is not None and not array.all() and (b"-0," in text or b"-0]" in text):
        # JSON has no negative zero among integers, and Kaldi writes one as -0.
        return _decode_json(text.replace(b"-0,", b"-0.0,").replace(b"-0]", b"-0.0]"), rows, basic)
    return array


def _decode_json(text: bytes, rows: int, basic: BasicType) -> NDArray[Any] | None:
    try:
        lists = _ROWS.decode(text)
    except msgspec.DecodeError:
        return None
    width = len(lists[0])
    if len(lists) != rows or any(len(each) != width for each in lists):
        return None
    packed = _PACK.encode(lists)
    row = np.dtype(
        [("head", "u1", _head_bytes(width)), ("number", [("mark", "u1"), ("value", ">f8")], width)]
    )
    numbers = np.frombuffer(packed, row, len(lists), _head_bytes(len(lists)))["number"]["value"]
    with np.errstate(over="ignore"):
        array = numbers.astype(basic.dtype)
    return None if np.isinf(array).any() else array


def _head_bytes(length: int) -> int:
    return 1 if length < _SMALL else 3 if length < _SHORT else 5


def _parse_slow(cursor: Cursor, body: bytes, basic: BasicType, at: int) -> NDArray[Any]:
    numbers = []
    for found in re.finditer(rb"\S+", body):
        word = found.group()
        if not _FIRST.match(word):
            raise cursor.error(
                f"a number of type {basic.name}", repr(decoded(word[:60])), at=at + found.start()
            )
        numbers.append(parse_number(cursor, word, basic, at + found.start()))
    return np.array(numbers, basic.dtype)


def _decoder(least: int, most: int) -> msgspec.json.Decoder[list[list[int]]]:
    return msgspec.json.Decoder(list[list[Annotated[int, msgspec.Meta(ge=least, le=most)]]])


_DECODERS: dict[str, msgspec.json.Decoder[list[list[int]]]] = {}


def parse_groups(line: bytes, basic: BasicType) -> list[list[int]] | None:
    """Return the integers between the semicolons of a line; None of other text than Kaldi's."""
    if line.translate(None, _INTEGERS) or basic.is_float or basic.most > _INT64_MOST:
        return None
    decoder = _DECODERS.get(basic.name)
    if decoder is None:
        decoder = _DECODERS[basic.name] = _decoder(int(basic.least), int(basic.most))
    try:
        return decoder.decode(_json(line))
    except msgspec.DecodeError:
        return None


def parse_float_groups(line: bytes) -> list[list[float]] | None:
    """Return the numbers between the semicolons of a line, not rounded; None of other text than Kaldi's."""
    # JSON has no negative zero among integers, and Kaldi writes one as -0.
    if line.translate(None, _FLOATS) or b"-0 " in line + b" ":
        return None
    try:
        return _FLOAT_DECODER.decode(_json(line))
    except msgspec.DecodeError:
        return None


def parse_bracketed(line: bytes) -> list[list[int | float]] | None:
    """Return the numbers in each pair of brackets, not rounded; None for text that Kaldi does not write."""
    if line.translate(None, _BRACKETED) or b"-0 " in line:
        return None
    text = line.strip(b" ").replace(b"[ ]", b"[]").replace(b"[ ", b"[").replace(b" ]", b"]")
    try:
        return _MIXED_DECODER.decode(b"[" + text.replace(b" ", b",") + b"]")
    except msgspec.DecodeError:
        return None


def _json(line: bytes) -> bytes:
    text = line.strip(b" ").replace(b" ;", b";").replace(b"; ", b";")
    return b"[[" + text.replace(b" ", b",").replace(b";", b"],[") + b"]]"


def integers_text(numbers: list[int]) -> bytes:
    """Return integers as Kaldi writes them in text, each with a space after it."""
    text = msgspec.json.encode(numbers)[1:-1]
    return text.replace(b",", b" ") + b" " if numbers else b""


def groups_text(groups: list[list[int]]) -> bytes:
    """Return lists of integers as Kaldi writes them in text, each with a semicolon and a space after it."""
    text = msgspec.json.encode(groups)[1:-1]
    text = text.replace(b"[]", b";").replace(b"]", b" ;").replace(b"[", b"").replace(b",", b" ")
    return text + b" " if text else b""
