"""Bytes of a record, one range a request, and the waveform of audio."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from starlette.responses import Response

from seekable.errors import BadValue, MissingDependency, OutOfRange
from seekable.viewer.charts.waveform import clock, waveform_svg, words_svg
from seekable.viewer.facts.documents import json_safe
from seekable.viewer.facts.waveform import Waveform, waveform
from seekable.viewer.media import HEAD_BYTES, media_at, media_headers, media_type
from seekable.viewer.page import Page, Svg
from seekable.viewer.pages.row import check_row
from seekable.viewer.ranges import range_of

if TYPE_CHECKING:
    from seekable.viewer.charts.sheet import Theme
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked


def media(opened: Opened, asked: Asked) -> Response:
    """Return the bytes that a place of a record stands for: all of them, or the one range of the header.

    What is of no listed type is an attachment. The place is the end of the address, or ``at=``.
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
    """Return the outline of audio as a picture; of what cannot be decoded a line that says why."""
    theme = cast("Theme", asked.choice("theme", ("auto", "light", "dark")))
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
