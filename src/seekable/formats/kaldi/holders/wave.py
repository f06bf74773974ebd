"""Audio in RIFF files, and in FLAC files of their own, which have neither a binary header nor a text form."""

from __future__ import annotations

import struct
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import InvalidArgument, KaldiWarning, WrongType
from seekable.formats.audio.wave_file import PCM, WaveError, is_plain, parse_wave_header, samples_of
from seekable.formats.kaldi.basic_types import BASIC_TYPES
from seekable.formats.kaldi.holders.other_formats import refuse_text
from seekable.nodes.files.decoders import payload_decoder

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from seekable.formats.audio.wave_file import WaveHeader
    from seekable.formats.kaldi.cursor import Cursor, Output

__all__ = [
    "Wave",
    "WaveHolder",
    "WaveInfo",
    "WaveInfoHolder",
    "find_wave_part",
    "read_wave_header",
    "read_wave_part",
]

_SAMPLE_BYTES = 2
_FULL_SCALE = np.float32(32768)
_FLAC = b"fLaC"
_STREAM_INFO_BYTES = 38
_LIMITS = (-32768, 32767)
_NO_GAP = 1  # bytes by which the sizes may disagree, because of odd chunks


@dataclass(frozen=True, slots=True, eq=False)
class Wave:
    """Audio of one or more channels.

    Attributes:
        rate: samples a second.
        data: float32 of shape (channels, samples), in the range of 16-bit integers (not scaled to 1). Samples
            of more bits have fractions there.
    """

    rate: int
    data: NDArray[np.float32]

    @property
    def duration(self) -> float:
        """The length of the audio in seconds."""
        return float(self.data.shape[1] / self.rate)


@dataclass(frozen=True, slots=True)
class WaveInfo:
    """The header of a wave file.

    Attributes:
        rate: samples a second.
        channels: the number of channels.
        samples: the number of samples of each channel; -1 where the header does not say it.
    """

    rate: int
    channels: int
    samples: int

    @property
    def duration(self) -> float:
        """The length in seconds; -1 where the header does not say it."""
        return self.samples / self.rate if self.samples >= 0 else -1.0


@dataclass(frozen=True, slots=True)
class WaveHolder:
    """Audio, as `Wave`. A wave of unknown size, as it comes out of a pipe, reaches to the file's end.

    Samples are integers of 8 to 32 bits, or floats. A FLAC file is read too, by soundfile; it has no size, so
    that it can be a file of its own, and no entry of an archive.
    """

    name: str = "wave"
    keep_short: bool = False
    """Keep, with a warning, what is there of a file that ends before its last sample, as Kaldi does."""

    def read(self, cursor: Cursor) -> Wave:
        """Return the next wave, and move past it."""
        if _is_flac(cursor):
            return _read_flac(cursor)
        header = read_wave_header(cursor)
        raw, start = self._samples(cursor, header), cursor.position
        if len(raw) < header.frame_bytes:
            raise cursor.error("at least one sample", f"{len(raw)} bytes of samples", at=start)
        return header.wave(raw)

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Write a wave; samples are truncated to integers, and clipped with a warning."""
        refuse_text(self.name, binary=binary)
        if not isinstance(value, Wave):
            raise WrongType(f"value must be a Wave (got a {type(value).__name__})")
        file.write(_wave_bytes(value.rate, BASIC_TYPES["float"].checked_array("data", value.data)))

    def skip(self, cursor: Cursor) -> None:
        """Move past the next wave."""
        self.shape(cursor)

    def shape(self, cursor: Cursor) -> tuple[int, int]:
        """Return the shape (channels, samples) of the next wave."""
        if _is_flac(cursor):
            channels, samples = _read_flac(cursor).data.shape
            return channels, samples
        header = read_wave_header(cursor)
        if header.data_bytes is None or self.keep_short:
            return header.channels, len(self._samples(cursor, header)) // header.frame_bytes
        cursor.skip(header.data_bytes, f"{header.data_bytes} bytes of samples")
        return header.channels, header.data_bytes // header.frame_bytes

    def extent(self, cursor: Cursor) -> tuple[int, int]:
        """Return the first byte of the next wave, and the byte after it."""
        start = cursor.position
        if _is_flac(cursor):
            return start, start + (cursor.remaining or 0)
        self.skip(cursor)
        return start, cursor.position

    def _samples(self, cursor: Cursor, header: _Header) -> Any:
        """Return the bytes of the samples, in the order of the file."""
        if header.data_bytes is None:
            return _rest(cursor, header)
        if not self.keep_short:
            return cursor.take(header.data_bytes, f"{header.data_bytes} bytes of samples")
        raw = cursor.read(header.data_bytes)
        if len(raw) < header.data_bytes:
            message = f"{cursor.name}: expected {header.data_bytes} bytes of samples, found {len(raw)}"
            warnings.warn(message, KaldiWarning, stacklevel=2)
        return raw


@dataclass(frozen=True, slots=True)
class WaveInfoHolder:
    """The headers of waves, as `WaveInfo`. They are not written."""

    name: str = "wave-info"

    def read(self, cursor: Cursor) -> WaveInfo:
        """Return the header of the next wave, and move past the wave (not past one of unknown size)."""
        if _is_flac(cursor):
            return _flac_info(cursor)
        header = read_wave_header(cursor)
        if header.data_bytes is None:
            return WaveInfo(header.rate, header.channels, -1)
        cursor.skip(header.data_bytes, f"{header.data_bytes} bytes of samples")
        return WaveInfo(header.rate, header.channels, header.data_bytes // header.frame_bytes)

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Raise InvalidArgument: a header alone is not a file."""
        raise InvalidArgument("wave-info cannot be written; write a Wave with the holder wave")

    def skip(self, cursor: Cursor) -> None:
        """Move past the next wave."""
        self.read(cursor)

    def shape(self, cursor: Cursor) -> tuple[int, int]:
        """Return the shape (channels, samples) of the next wave; -1 samples where it is not known."""
        info = self.read(cursor)
        return info.channels, info.samples


@dataclass(frozen=True, slots=True)
class _Header:
    parsed: WaveHeader
    data_bytes: int | None
    """The number of bytes of the samples; None where the samples reach to the end of the file."""

    @property
    def rate(self) -> int:
        """Samples a second."""
        return self.parsed.rate

    @property
    def channels(self) -> int:
        """The number of channels."""
        return self.parsed.channels

    @property
    def frame_bytes(self) -> int:
        """The bytes of one sample of each channel."""
        return self.parsed.width * self.parsed.channels

    def wave(self, raw: Any) -> Wave:
        """Return the wave of some samples, given as the bytes of the file."""
        count = len(raw) // self.frame_bytes
        if self.parsed.width == _SAMPLE_BYTES:
            samples = np.frombuffer(raw, f"{self.parsed.order}i2", count * self.channels)
        else:
            samples = samples_of(memoryview(raw)[: count * self.frame_bytes], self.parsed) * _FULL_SCALE
        return Wave(self.rate, np.ascontiguousarray(samples.reshape(-1, self.channels).T, np.float32))


def _is_flac(cursor: Cursor) -> bool:
    """Return True if a FLAC file is next, all of which is one object."""
    return cursor.position == 0 and bytes(cursor.ahead(len(_FLAC))) == _FLAC


def _read_flac(cursor: Cursor) -> Wave:
    """Return the wave of a FLAC file, and move to its end.

    Raises:
        CorruptObject: it cannot be decoded.
        MissingDependency: soundfile is not installed.
    """
    try:
        samples, rate = payload_decoder("audio")(cursor.read())
    except ValueError as error:
        raise cursor.error("a FLAC file", str(error), at=0) from None
    return Wave(rate, np.ascontiguousarray(samples.reshape(len(samples), -1).T * _FULL_SCALE))


def _flac_info(cursor: Cursor) -> WaveInfo:
    """Parse the header of a FLAC file: 20 bits for the rate, 3 for channels, 5 unused, 36 for samples."""
    cursor.skip(len(_FLAC), "the tag of a FLAC file")
    raw = bytes(cursor.take(_STREAM_INFO_BYTES, "the header of a FLAC file"))
    word = int.from_bytes(raw[14:22], "big")
    samples = word & (1 << 36) - 1
    return WaveInfo(word >> 44, (word >> 41 & 7) + 1, samples or -1)


def read_wave_part(cursor: Cursor, part: Callable[[int, int], slice]) -> Wave:
    """Return some samples of the next wave, and leave the cursor after them.

    Args:
        cursor: stands at the first byte of the wave.
        part: returns the samples to read, given the rate and the number of samples of each channel.
    """
    if _is_flac(cursor):
        whole = _read_flac(cursor)
        return Wave(whole.rate, whole.data[:, part(whole.rate, whole.data.shape[1])].copy())
    header = read_wave_header(cursor)
    frame_bytes, start = header.frame_bytes, cursor.position
    if header.data_bytes is None:
        raw = _rest(cursor, header)
        wanted = part(header.rate, len(raw) // frame_bytes)
        raw = raw[wanted.start * frame_bytes : wanted.stop * frame_bytes]
    else:
        first, end = _bytes_of(part, header)
        cursor.skip(first, "the samples before the part")
        raw = cursor.take(end - first, "the samples of the part")
    if not len(raw):
        raise cursor.error("at least one sample", "none", at=start)
    return header.wave(raw)


def find_wave_part(cursor: Cursor, part: Callable[[int, int], slice]) -> tuple[int, int]:
    """Return the first byte of some samples of the next wave, and the byte after the last; read its header.

    Of a wave of unknown size the bytes begin with the first sample, and end with it.

    Args:
        cursor: stands at the first byte of the wave.
        part: returns the samples, as for `read_wave_part`.
    """
    if _is_flac(cursor):
        return 0, cursor.remaining or 0
    header = read_wave_header(cursor)
    first, end = (0, 0) if header.data_bytes is None else _bytes_of(part, header)
    return cursor.position + first, cursor.position + end


def _bytes_of(part: Callable[[int, int], slice], header: _Header) -> tuple[int, int]:
    """Return the bytes of some samples, counted from the first sample."""
    frame_bytes = header.frame_bytes
    wanted = part(header.rate, (header.data_bytes or 0) // frame_bytes)
    return wanted.start * frame_bytes, wanted.stop * frame_bytes


def read_wave_header(cursor: Cursor) -> _Header:
    """Move past the header of the next wave, to its first sample."""
    start = cursor.position
    try:
        header = parse_wave_header(cursor)
    except WaveError as error:
        raise cursor.error(error.expected, error.found, at=error.at) from None
    _check_format(cursor, header, start)
    if not header.is_sized:
        there = cursor.remaining
        size = None if there is None else _sample_bytes(cursor, header, there)
        return _Header(header, None if size == there else size)
    end = header.start + header.stated_bytes
    if header.stated_end is not None and abs(end - header.stated_end) > _NO_GAP:
        found = f"the file should end at byte {header.stated_end}, its samples at byte {end}"
        warnings.warn(f"{cursor.name}: the sizes in the header disagree: {found}", KaldiWarning, stacklevel=2)
    return _Header(header, header.stated_bytes)


def _sample_bytes(cursor: Cursor, header: WaveHeader, there: int) -> int:
    """Count the bytes of samples in a wave, of which ``there`` bytes follow the header."""
    try:
        return header.sample_bytes(there)
    except WaveError as error:
        raise cursor.error(error.expected, error.found, at=error.at) from None


def _rest(cursor: Cursor, header: _Header) -> Any:
    """Return the samples of a wave that reaches to the end of the file, as far as is known before it is read.

    Raises:
        CorruptObject: the file ends before the samples.
    """
    raw = cursor.read()
    size = _sample_bytes(cursor, header.parsed, len(raw))
    if size > len(raw):
        raise cursor.cut_error(size, len(raw), "samples")
    return raw[:size]


def _check_format(cursor: Cursor, header: WaveHeader, start: int) -> None:
    """Check what Kaldi checks of the format of samples.

    Raises:
        CorruptObject: the samples are compressed, or the numbers contradict each other.
    """
    if not is_plain(header):
        found = f"format {header.kind:#x} of {header.bits} bits"
        raise cursor.error("PCM samples of 8 to 32 bits, or floats", found, at=start)
    wanted = header.rate * header.channels * header.width
    if header.byte_rate != wanted:
        expected = f"a consistent format of {wanted} bytes a second"
        raise cursor.error(expected, f"{header.byte_rate} bytes a second", at=start)


def _wave_bytes(rate: float, data: NDArray[Any]) -> bytes:
    if data.ndim != 2 or not data.size:  # noqa: PLR2004 - channels and samples
        raise InvalidArgument(
            f"data must have the shape (channels, samples), with samples (got {data.shape})"
        )
    if not np.isfinite(data).all():
        raise InvalidArgument("data must be finite (it holds nan or inf)")
    whole = np.trunc(data)
    clipped = np.clip(whole, *_LIMITS)
    if (over := int((whole != clipped).sum())) > 0:
        warnings.warn(f"{over} of {data.size} samples were clipped to 16 bits", KaldiWarning, stacklevel=3)
    rate = int(rate) if isinstance(rate, float) and rate.is_integer() else rate
    samples: bytes = clipped.T.astype("<i2").tobytes()
    channels = len(data)
    try:
        form = struct.pack(
            "<HHIIHH", PCM, channels, rate, rate * 2 * channels, 2 * channels, 8 * _SAMPLE_BYTES
        )
        riff = struct.pack("<4sI4s4sI", b"RIFF", 36 + len(samples), b"WAVE", b"fmt ", len(form))
        return riff + form + struct.pack("<4sI", b"data", len(samples)) + samples
    except struct.error:
        message = f"rate and data must fit a wave file (got rate {rate!r} and the shape {data.shape})"
        raise InvalidArgument(message) from None
