"""Media of a record: its bytes, one range a request, and the waveform of its audio."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from starlette.responses import Response

from seekable._arguments import checked_count
from seekable.errors import BadValue, InvalidArgument, MissingDependency, OutOfRange
from seekable.formats.audio.audio_bytes import AudioPart, payload_of
from seekable.formats.audio.soundfile_formats import read_with_soundfile
from seekable.formats.audio.wave_file import is_wave, read_wave_frames, read_wave_header
from seekable.viewer.charts import clock, waveform_svg, words_svg
from seekable.viewer.facts.json_documents import json_safe
from seekable.viewer.facts.reading import COMPUTED
from seekable.viewer.media import HEAD_BYTES, media_at, media_headers, media_type
from seekable.viewer.page import Page, Svg
from seekable.viewer.pages.row import check_row

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.formats.audio.audio_bytes import Payload
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


_SECONDS_AT_ONCE = 30.0
"""Decoded together: 12 MB of two channels at 48 kHz."""

_LONGEST_SECONDS = 600.0
"""Of longer audio the beginning is drawn, so that a page waits for at most some seconds."""

_HEAD_BYTES = 12


@dataclass(frozen=True, slots=True)
class Waveform:
    """The outline of audio; all of its channels together."""

    frames: int
    """The frames of all of the audio."""

    rate: int
    """Frames a second."""

    channels: int

    frames_read: int
    """The frames that the outline is made of, from the first one on."""

    low: tuple[float, ...]
    """The lowest sample of each part, usually -1 to 1."""

    high: tuple[float, ...]
    """The highest sample of each part."""

    @property
    def seconds(self) -> float:
        """The length of all of the audio."""
        return self.frames / self.rate

    @property
    def seconds_read(self) -> float:
        """The length of what the outline is made of."""
        return self.frames_read / self.rate

    @property
    def made_of(self) -> str:
        """The samples that the outline comes from."""
        if self.frames_read == self.frames:
            return COMPUTED
        return f"from the first {self.seconds_read:,.0f} of {self.seconds:,.0f} seconds"

    def document(self) -> dict[str, Any]:
        """Return the outline as a JSON-safe dict."""
        return {
            "made_of": self.made_of,
            "seconds": self.seconds,
            "rate": self.rate,
            "channels": self.channels,
            "frames": self.frames,
            "frames_read": self.frames_read,
            "low": self.low,
            "high": self.high,
        }


def waveform(data: Any, *, places: int = 400) -> Waveform:
    """Return the outline of some audio: WAV, and with the extra ``audio`` FLAC, MP3, Ogg and others.

    Of audio longer than ten minutes the first ten are read.

    Args:
        data: the bytes of a file, or an open binary file.
        places: the most parts of equal length that the audio is cut into; no part is shorter than a frame.

    Raises:
        MissingDependency: soundfile is needed, and is not installed.
        BadValue: the bytes are not audio, or are cut off.

    Example:
        >>> import numpy as np
        >>> from seekable.formats.audio.wave_file import wave_file
        >>> found = waveform(wave_file(np.array([0, 16384, -16384, 8192], np.int16), 4), places=2)
        >>> found.seconds, found.low, found.high
        (1.0, (0.0, -0.5), (0.5, 0.25))
    """
    checked_count("places", places, least=1)
    try:
        return _AudioPieces(payload_of(data)).outline(places)
    except ValueError as error:
        message = f"these bytes cannot be decoded as audio: {error}"
        raise BadValue(message) from error


class _AudioPieces:
    """Audio that is read piece by piece; one piece is in memory at a time."""

    def __init__(self, payload: Payload) -> None:
        self._payload = payload
        self._frames = self._rate = 0
        head = bytes(payload.range(0, _HEAD_BYTES))
        if len(head) < _HEAD_BYTES:
            message = f"it has {payload.size} bytes, fewer than any audio"
            raise ValueError(message)
        header = read_wave_header(payload) if is_wave(head) else None
        self._header = header if header is not None and header.is_plain else None

    def outline(self, places: int) -> Waveform:
        """Return the outline of the first ten minutes."""
        samples = self._read(0.0)
        channels = samples.shape[1] if samples.ndim > 1 else 1
        longest = min(self._frames, int(_LONGEST_SECONDS * self._rate))
        places = min(places, longest)
        starts = np.arange(places) * longest // max(places, 1)
        low, high = np.full(places, np.inf, np.float32), np.full(places, -np.inf, np.float32)
        read = 0
        while read < longest:
            if read:
                samples = self._read(read / self._rate)
            each = samples[: longest - read].reshape(-1, channels)
            first = int(np.searchsorted(starts, read, side="right")) - 1
            last = int(np.searchsorted(starts, read + len(each)))
            at = np.maximum(starts[first:last] - read, 0)
            np.minimum(low[first:last], np.minimum.reduceat(each.min(axis=1), at), out=low[first:last])
            np.maximum(high[first:last], np.maximum.reduceat(each.max(axis=1), at), out=high[first:last])
            read += len(each)
        return Waveform(self._frames, self._rate, channels, read, _finite(low), _finite(high))

    def _read(self, offset: float) -> NDArray[np.float32]:
        """Return the samples of the next piece, and note the length and the rate."""
        part = AudioPart(offset, _SECONDS_AT_ONCE, "keep")
        if self._header is None:
            samples, _ = read_with_soundfile(self._payload, part, self._note)
            return samples
        self._note(self._header.frames, self._header.rate)
        if not self._frames:
            return np.empty(0, np.float32)
        first, last = part.frames(self._frames, self._rate)
        return read_wave_frames(self._payload, self._header, first, last)

    def _note(self, frames: int, rate: int) -> None:
        self._frames, self._rate = frames, rate


def _finite(values: NDArray[np.float32]) -> tuple[float, ...]:
    """Return numbers that JSON has: 0 for NaN, which float audio can hold, and full volume for infinity."""
    found: list[float] = np.nan_to_num(values, nan=0.0, posinf=1.0, neginf=-1.0).tolist()
    return tuple(found)
