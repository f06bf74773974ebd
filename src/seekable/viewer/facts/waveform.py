"""The outline of audio: its lowest and highest samples in equal parts of its length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._arguments import checked_count
from seekable.errors import BadValue
from seekable.formats.audio.part import Part
from seekable.formats.audio.payload import payload_of
from seekable.formats.audio.soundfile_formats import read_with_soundfile
from seekable.formats.audio.wave_file import is_wave, read_wave_frames, read_wave_header
from seekable.viewer.facts.made_of import COMPUTED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.formats.audio.payload import Payload

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
        return Waveform(self._frames, self._rate, channels, read, _numbers(low), _numbers(high))

    def _read(self, offset: float) -> NDArray[np.float32]:
        """Return the samples of the next piece, and note the length and the rate."""
        part = Part(offset, _SECONDS_AT_ONCE, "keep")
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


def _numbers(values: NDArray[np.float32]) -> tuple[float, ...]:
    """Return numbers that JSON has: 0 for NaN, which float audio can hold, and full volume for infinity."""
    found: list[float] = np.nan_to_num(values, nan=0.0, posinf=1.0, neginf=-1.0).tolist()
    return tuple(found)
