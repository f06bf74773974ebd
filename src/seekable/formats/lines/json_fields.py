"""Some fields of JSON objects, without values of the others, which are checked all the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["JsonFields", "check_skipped"]

_MOST_DIGITS = 4300
"""The most digits of an integer that Python and msgspec read."""
_SOME_DIGITS = 100

_MOST_JOINED = 16 << 20
"""The most bytes of lines that are copied to be looked at together."""


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

    __slots__ = ("_count", "_decode_fields", "_whole")

    def __init__(self, fields: Sequence[str]) -> None:
        """Make the decoders of some fields, and of all."""
        names = dict.fromkeys(fields, Any)
        kind = TypedDict("kind", names, total=False)  # type: ignore[misc]  # the names are data
        self._decode_fields: Any = msgspec.json.Decoder(kind).decode
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
            record = self._decode_fields(line)
        except (ValueError, msgspec.DecodeError):
            return self._whole(bytes(line))
        return record if len(record) == self._count else self._whole(bytes(line))

    def decode_many(self, lines: Sequence[memoryview]) -> list[Any]:
        """Return the fields of many lines, whose bytes are checked together.

        Raises:
            Exception: a line may be none of such fields alone, or no JSON: they are decoded one by one.
        """
        check_skipped(lines)
        records = list(map(self._decode_fields, lines))
        if records and set(map(len, records)) != {self._count}:
            message = "a line lacks a field"
            raise ValueError(message)
        return records


def check_skipped(lines: Sequence[bytes | memoryview]) -> None:
    """Check what msgspec does not check of the values that it skips: their UTF-8, and the digits of integers.

    Raises:
        ValueError: a line is no UTF-8, or may have an integer with too many digits.
    """
    sizes = list(map(len, lines))
    if sum(sizes) > _MOST_JOINED or not b"".join(lines).isascii():
        for line in lines:
            str(line, "utf-8")
    if max(sizes, default=0) > _MOST_DIGITS:
        for line in lines:
            _check_digits(bytes(line))


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
