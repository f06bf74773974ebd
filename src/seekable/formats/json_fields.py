"""Some fields of JSON records.

msgspec checks the syntax of the values that it skips, but neither their UTF-8 nor the range of their numbers.
Both are checked here, so that a record is refused no matter which fields of it are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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

    decoder: msgspec.json.Decoder[dict[str, Any]]
    whole: Callable[[bytes], Any]
    """Decodes all fields."""

    count: int
    """The number of the fields."""

    @classmethod
    def of(cls, fields: Sequence[str]) -> JsonFields:
        """Return the decoder of some fields."""
        names = dict.fromkeys(fields, Any)
        kind = TypedDict("kind", names, total=False)  # type: ignore[misc]  # the names are data
        return cls(msgspec.json.Decoder(kind), msgspec.json.Decoder().decode, len(names))

    def decode(self, line: bytes | memoryview) -> Any:
        """Return the fields of a line, or the whole of its value.

        Raises:
            ValueError, msgspec.DecodeError, RecursionError: it is not JSON.
        """
        raw = bytes(line)
        try:
            if len(raw) > _MOST_DIGITS or not raw.isascii():
                _check_skipped(raw)
            record = self.decoder.decode(raw)
        except (ValueError, msgspec.DecodeError):
            return self.whole(raw)
        return record if len(record) == self.count else self.whole(raw)


def _check_skipped(raw: bytes) -> None:
    """Check what the decoder passes over where it skips a value.

    Raises:
        ValueError: it is not UTF-8, or may have an integer with too many digits.
    """
    str(raw, "utf-8")
    # Each integer with too many digits has some digits at one of these places.
    step = _MOST_DIGITS - _SOME_DIGITS
    if any(raw[at : at + _SOME_DIGITS].isdigit() for at in range(0, len(raw), step)):
        message = f"it may have an integer of more than {_MOST_DIGITS} digits"
        raise ValueError(message)
