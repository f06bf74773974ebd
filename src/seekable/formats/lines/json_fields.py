"""Some fields of JSON records.

msgspec checks the syntax of the values that it skips, but neither their UTF-8 nor the range of their numbers.
Both are checked here, so that a record is refused no matter which fields of it are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["JsonFields"]

_MOST_DIGITS = 4300
"""The most digits of an integer that Python and msgspec read."""
_SOME_DIGITS = 100


@dataclass(frozen=True, slots=True)
class JsonFields:
    r"""Decodes some fields of JSON objects; no values are made of the others.

    A line that is no such object, or lacks one of the fields, is decoded whole, so that an error can name the
    fields that it has.

    Example:
        >>> of_text = JsonFields.of(["text"])
        >>> of_text.decode(b'{"id": 7, "text": "good day"}\n')
        {'text': 'good day'}
        >>> of_text.decode(b'{"id": 8}')
        {'id': 8}
    """

    decode_fields: Callable[[bytes | memoryview], Mapping[str, Any]]
    """Decodes the fields alone, and checks no more than the syntax of the others."""

    whole: Callable[[bytes], Any]
    """Decodes all fields."""

    count: int
    """The number of the fields."""

    @classmethod
    def of(cls, fields: Sequence[str]) -> JsonFields:
        """Return the decoder of some fields."""
        names = dict.fromkeys(fields, Any)
        kind = TypedDict("kind", names, total=False)  # type: ignore[misc]  # the names are data
        decode_fields: Any = msgspec.json.Decoder(kind).decode
        return cls(decode_fields, msgspec.json.Decoder().decode, len(names))

    def decode(self, line: bytes | memoryview) -> Any:
        """Return the fields of a line, or the whole of its value.

        Raises:
            ValueError, msgspec.DecodeError, RecursionError: it is not JSON.
        """
        try:
            str(line, "utf-8")  # Raises an error where it is none, at half the cost of a look at a copy.
            if len(line) > _MOST_DIGITS:
                _check_digits(bytes(line))
            record = self.decode_fields(line)
        except (ValueError, msgspec.DecodeError):
            return self.whole(bytes(line))
        return record if len(record) == self.count else self.whole(bytes(line))


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
