"""Media of a record: its bytes, one range a request, and the waveform of audio."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from seekable.errors import BadValue, InvalidArgument, MissingDependency, OutOfRange
from seekable.viewer.charts.waveform import clock, waveform_svg, words_svg
from seekable.viewer.facts.documents import json_safe
from seekable.viewer.facts.waveform import Waveform, waveform
from seekable.viewer.media import HEAD_BYTES, media_at, media_headers, media_type
from seekable.viewer.page import Page, Svg
from seekable.viewer.pages.row import check_row

if TYPE_CHECKING:
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked


LARGEST_ANSWER = 64 << 20
"""An answer has at most this many bytes, so that memory is bounded: 64 MiB."""

_ONE_RANGE = re.compile(r"bytes[ \t]*=[ \t]*([0-9]{0,19})-([0-9]{0,19})[ \t]*", re.ASCII | re.IGNORECASE)


def media(opened: Opened, asked: Asked) -> Response:
    """Return the bytes that a place of a record stands for: all, or the one range that a header names.

    What is not of a listed type is an attachment. The place is the end of the address, or ``at=``.
    """
    record, at, name = _record(opened, asked)
    with media_at(record, at, opened.media) as payload:
        try:
            part = range_of(asked.byte_range, payload.size)
        except OutOfRange as error:
            return Response(str(error), 416, {"Content-Range": f"bytes */{payload.size}"}, "text/plain")
        found = media_type(bytes(payload.range(0, HEAD_BYTES)))
        headers = dict(media_headers(found, name=name))
        if part.partial:
            headers["Content-Range"] = part.content_range
        return Response(payload.range(part.start, part.stop), 206 if part.partial else 200, headers)


def wave(opened: Opened, asked: Asked) -> Page:
    """Return the outline of audio, and its length, rate and channels."""
    found = _waveform(opened, asked)
    document = {
        "name": asked.name,
        "row": int(asked.path["row"]),
        "at": json_safe(asked.text("at")),
        **found.document(),
    }
    title = f"{asked.name}, row {document['row']:,}, audio"
    return Page("wave", title, document, {"length": clock(found.seconds)})


def wave_picture(opened: Opened, asked: Asked) -> Svg:
    """Return the outline of audio as a picture; a line that says why where it cannot be decoded."""
    theme = asked.theme
    try:
        found = _waveform(opened, asked)
    except (BadValue, MissingDependency) as error:
        why = str(error.__cause__ or error).partition(" (")[0]
        return Svg(words_svg(f"no waveform: {why}"[:100], theme=theme))
    title = f"Waveform of row {int(asked.path['row']):,}"
    return Svg(waveform_svg(found.low, found.high, seconds=found.seconds_read, title=title, theme=theme))


def _waveform(opened: Opened, asked: Asked) -> Waveform:
    key = ("waveform", asked.name, int(asked.path["row"]), asked.text("at"))

    def made() -> Waveform:
        record, at, _ = _record(opened, asked)
        with media_at(record, at, opened.media) as payload:
            return waveform(payload)

    found: Waveform = opened.kept.get(key, made)
    return found


def _record(opened: Opened, asked: Asked) -> tuple[Any, str, str]:
    """Return the record, the place within it, and the name of a saved file."""
    dataset, row = opened.dataset(asked.name), int(asked.path["row"])
    check_row(dataset, row, asked.name)
    at = str(asked.path.get("place") or asked.text("at"))
    return dataset[row], at, f"{asked.name}-{row}-{at}"


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
        """The header Content-Range of an answer with status 206."""
        return f"bytes {self.start}-{self.stop - 1}/{self.size}"


def range_of(header: str | None, size: int) -> ByteRange:
    """Return the bytes that an answer has. Pure.

    A header that names several ranges or another unit, or is not a range, is ignored, as HTTP says. A range
    of more than ``LARGEST_ANSWER`` bytes is cut at its end; the browser asks for the rest.

    Args:
        header: the value of the header Range, or None.
        size: the number of bytes of the whole value.

    Raises:
        OutOfRange: the range begins after the last byte, or is empty; the answer is 416.
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
