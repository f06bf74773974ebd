r"""From the bytes of a record to the record.

A decoder is given the range of the record as the index has it: the line, its line end, and blank
lines that may follow. ``\n`` and ``\r\n`` are line ends; a carriage return alone is not.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, AnyStr

import msgspec

from seekable.errors import InvalidArgument, WrongType

Decode = str | Callable[[bytes], Any]
"""How a user names a decoder: "json", "text", "bytes", or a function of the line's bytes."""


@dataclass(frozen=True, slots=True)
class Decoder:
    r"""How records are made of bytes. Small, picklable if its function is, and safe from threads.

    Example:
        >>> decoder_named("text").fast(memoryview(b"good day\r\n"))
        'good day'
    """

    name: str
    """What it is called: "json", "text", "bytes", or the function's qualified name."""

    fast: Callable[[memoryview], Any]
    """Returns the record whose range is given, or raises."""

    recover: Callable[[bytes], Any] | None
    """Returns a record that `fast` raised for, or raises what is wrong with it; None if there is no
    second way."""

    function: Callable[[bytes], Any] | None = None
    """The user's function, if that is what decodes."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by name: some of what decodes is made of C."""
        return decoder_named, (self.function or self.name,)


def decoder_named(decode: Decode) -> Decoder:
    """Return the decoder that a user asks for with ``decode=``.

    Args:
        decode: "json", "text", "bytes", or a function of the line's bytes.

    Raises:
        InvalidArgument: no decoder has this name.
        WrongType: it is neither a name nor a function.
    """
    if isinstance(decode, str):
        if decode not in _DECODERS:
            raise InvalidArgument(
                f"decode must be one of {', '.join(map(repr, _DECODERS))} or a function of the line's "
                f"bytes; got {decode!r}"
            )
        return _DECODERS[decode]
    if not callable(decode):
        raise WrongType(f"decode must be a name or a function of the line's bytes; got {decode!r}")
    return Decoder(_qualified_name(decode), _OnLine(decode), None, decode)


def line_span(view: memoryview) -> int:
    r"""Return the length of the line at the start of a record's range, without its line end.

    Example:
        >>> line_span(memoryview(b"good day\r\n\n"))
        8
    """
    return _end(bytes(view), b"\n", b"\r")


def _end(line: AnyStr, newline: AnyStr, carriage_return: AnyStr) -> int:
    end = line.find(newline)
    return len(line) if end < 0 else end - line.endswith(carriage_return, 0, end)


def _line(view: memoryview) -> bytes:
    line = bytes(view)
    return line[: _end(line, b"\n", b"\r")]


def _text(view: memoryview) -> str:
    line = str(view, "utf-8")
    return line[: _end(line, "\n", "\r")]


def _loosely(raw: bytes) -> Any:
    """Decode JSON as Python's own module does: NaN, Infinity, 1e400, lone surrogates."""
    return json.loads(str(raw, "utf-8"))


@dataclass(frozen=True, slots=True)
class _OnLine:
    function: Callable[[bytes], Any]

    def __call__(self, view: memoryview) -> Any:
        return self.function(_line(view))


def _qualified_name(function: Callable[[bytes], Any]) -> str:
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"


_DECODERS = {
    decoder.name: decoder
    for decoder in (
        Decoder("json", msgspec.json.Decoder().decode, _loosely),
        Decoder("text", _text, None),
        Decoder("bytes", _line, None),
    )
}
