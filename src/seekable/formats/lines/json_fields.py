"""Many lines of JSON in one call; some fields of objects, without values of the others, which are checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import msgspec
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["JsonFields", "decode_lines"]

T = TypeVar("T")

_MOST_DIGITS = 4300
"""The most digits of an integer that Python and msgspec read."""
_SOME_DIGITS = 100

_MOST_JOINED = 1 << 20
"""The most bytes of lines that are copied to be decoded together: more leave the caches of a processor."""

_OPEN, _CLOSE, _NEWLINE = b"{}\n"


class JsonFields:
    r"""Decodes some fields of JSON objects; no values are made of the others.

    msgspec checks the syntax of the values that it skips, but neither their UTF-8 nor the range of their
    numbers. Both are checked here, so that a record is refused no matter which of its fields are asked for. A
    line that is not such an object, or lacks one of the fields, is decoded whole, so that an error can name
    the fields that it has.

    Example:
        >>> of_text = JsonFields(["text"])
        >>> of_text.decode(b'{"id": 7, "text": "good day"}\n')
        {'text': 'good day'}
        >>> of_text.decode(b'{"id": 8}')
        {'id': 8}
    """

    __slots__ = ("_count", "_fields", "_whole")

    def __init__(self, fields: Sequence[str]) -> None:
        """Make the decoders of some fields, and of all."""
        names = dict.fromkeys(fields, Any)
        kind = TypedDict("kind", names, total=False)  # type: ignore[misc]  # the names are data
        self._fields: msgspec.json.Decoder[Any] = msgspec.json.Decoder(kind)
        self._whole = msgspec.json.Decoder().decode
        self._count = len(names)

    def decode(self, line: bytes | memoryview) -> Any:
        """Return the fields of a line, or the whole of its value.

        Raises:
            ValueError, msgspec.DecodeError, RecursionError: it is not JSON.
        """
        try:
            str(line, "utf-8")  # Raises an error where it is none, at half the cost of a look at a copy.
            if len(line) > _MOST_DIGITS:
                _check_digits(bytes(line))
            record = self._fields.decode(line)
        except (ValueError, msgspec.DecodeError):
            return self._whole(bytes(line))
        return record if len(record) == self._count else self._whole(bytes(line))

    def decode_many(self, lines: Sequence[memoryview]) -> list[Any]:
        """Return the fields of many lines.

        Raises:
            Exception: a line may be none of such fields alone, or no JSON: they are decoded one by one.
        """
        records = decode_lines(self._fields, lines, skips=True)
        if records and set(map(len, records)) != {self._count}:
            message = "a line lacks a field"
            raise ValueError(message)
        return records


def decode_lines(
    decoder: msgspec.json.Decoder[T], lines: Sequence[bytes | memoryview], *, skips: bool = False
) -> list[T]:
    r"""Return the values of many lines, in one call of the decoder where each line looks like an object.

    Between the end of an object and the start of another a line end is never within a value: JSON has none in
    strings, and a comma between objects of a list. So no value goes from one line into the next, and where as
    many values as lines are found, each line has one.

    Args:
        decoder: the decoder of a line.
        lines: the ranges of the lines; each has one line that is not blank.
        skips: True if the decoder skips values. msgspec checks neither their UTF-8 nor the digits of their
            integers; both are checked here.

    Raises:
        Exception: a line cannot be decoded, or may be one that cannot.

    Example:
        >>> decode_lines(msgspec.json.Decoder(), [b'{"id": 7}\n', b'{"id": 8}\n'])
        [{'id': 7}, {'id': 8}]
    """
    sizes = np.fromiter(map(len, lines), np.intp, len(lines))
    joined = b"".join(lines) if sizes.sum() <= _MOST_JOINED else b""
    if joined and _are_objects(joined, sizes):
        if skips:
            _check_skipped(joined, int(sizes.max()))
        values = decoder.decode_lines(joined)
        if len(values) == len(lines):
            return values
    if skips:
        for line in lines:
            _check_skipped(bytes(line), len(line))
    return list(map(decoder.decode, lines))


def _are_objects(joined: bytes, sizes: NDArray[np.intp]) -> bool:
    """Return True if lines begin as an object does, and end with the end of one and a line end.

    Args:
        joined: the lines.
        sizes: the length of each.
    """
    raw, ends = np.frombuffer(joined, np.uint8), sizes.cumsum()
    return bool(
        sizes.min() > len(b"{}")
        and (raw[ends - sizes] == _OPEN).all()
        and (raw[ends - 2] == _CLOSE).all()
        and (raw[ends - 1] == _NEWLINE).all()
    )


def _check_skipped(raw: bytes, longest: int) -> None:
    """Check the UTF-8 of some lines, and the digits of their integers.

    Args:
        raw: the lines.
        longest: the length of the longest one.

    Raises:
        ValueError: they are no UTF-8, or may have an integer with too many digits.
    """
    if not raw.isascii():
        str(raw, "utf-8")
    if longest > _MOST_DIGITS:
        _check_digits(raw)


def _check_digits(raw: bytes) -> None:
    """Check for integers with too many digits, which the decoder passes over where it skips a value.

    Raises:
        ValueError: there may be one.
    """
    # Each integer with too many digits has some digits at one of these places.
    step = _MOST_DIGITS - _SOME_DIGITS
    if any(raw[at : at + _SOME_DIGITS].isdigit() for at in range(0, len(raw), step)):
        message = f"it may have an integer of more than {_MOST_DIGITS} digits"
        raise ValueError(message)
