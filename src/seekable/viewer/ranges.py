"""Finds the bytes of a value that an answer has: all, or the one range that the header Range names."""

from __future__ import annotations

import re
from dataclasses import dataclass

from seekable.errors import InvalidArgument, OutOfRange

LARGEST_ANSWER = 64 << 20
"""An answer has at most this many bytes, so that memory is bounded: 64 MiB."""

_ONE_RANGE = re.compile(r"bytes[ \t]*=[ \t]*([0-9]{0,19})-([0-9]{0,19})[ \t]*", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ByteRange:
    """The bytes ``start <= place < stop`` of a value of ``size`` bytes."""

    start: int
    stop: int
    size: int

    partial: bool
    """True if the answer is to be 206 Partial Content, because the request named a range."""

    @property
    def content_range(self) -> str:
        """The value of the header Content-Range of an answer of status 206."""
        return f"bytes {self.start}-{self.stop - 1}/{self.size}"


def range_of(header: str | None, size: int) -> ByteRange:
    """Return the bytes that an answer has. Pure.

    A header that names several ranges, another unit, or is no range at all is ignored, as HTTP has it. A
    range of more than ``LARGEST_ANSWER`` bytes is cut at its end; the browser asks for the rest.

    Args:
        header: the value of the header Range, or None.
        size: the number of bytes of the whole value.

    Raises:
        OutOfRange: the range begins after the last byte, or is of no bytes; the answer is 416.
        InvalidArgument: no range is named and the value is larger than ``LARGEST_ANSWER``.

    Example:
        >>> found = range_of("bytes=0-99", 1000)
        >>> found.start, found.stop, found.content_range
        (0, 100, 'bytes 0-99/1000')
        >>> found = range_of("bytes=-10", 1000)
        >>> found.start, found.stop
        (990, 1000)
        >>> range_of(None, 1000).partial
        False
    """
    named = _ONE_RANGE.fullmatch(header or "")
    first, last = named.groups() if named else ("", "")
    if (not first and not last) or (first and last and int(first) > int(last)):
        return _whole(size)
    if first:
        start = int(first)
        stop = min(int(last) + 1, size) if last else size
    else:
        start, stop = max(0, size - int(last)), size
    if start >= stop:
        message = f"the range {header!r} has no byte of the value, which has {size:,} bytes"
        raise OutOfRange(message)
    return ByteRange(start, min(stop, start + LARGEST_ANSWER), size, partial=True)


def _whole(size: int) -> ByteRange:
    if size > LARGEST_ANSWER:
        message = (
            f"the value has {size:,} bytes, and an answer at most {LARGEST_ANSWER:,}: "
            f"send the header 'Range: bytes=0-{LARGEST_ANSWER - 1}', or write the record with `seekable get`"
        )
        raise InvalidArgument(message)
    return ByteRange(0, size, size, partial=False)
