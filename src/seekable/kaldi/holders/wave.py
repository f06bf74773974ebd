"""Audio in RIFF files of 16-bit samples, which have neither a binary header nor a text form."""

from __future__ import annotations

import struct
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import InvalidArgument, KaldiWarning, WrongType
from seekable.kaldi.holders.feature_files import refuse_text
from seekable.kaldi.objects.basic_types import BASIC_TYPES

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from seekable.kaldi.objects.cursor import Cursor, Output

__all__ = [
    "Wave",
    "WaveHolder",
    "WaveInfo",
    "WaveInfoHolder",
    "find_wave_part",
    "read_wave_header",
    "read_wave_part",
]

_PCM, _EXTENSIBLE = 1, 0xFFFE
_PCM_GUID = bytes.fromhex("0100000000001000800000aa00389b71")
_FMT_BYTES, _EXTENSIBLE_BYTES = 16, 40
_BITS, _SAMPLE_BYTES = 16, 2
_UNKNOWN_SIZES = frozenset({0, 0xFFFFFFFF})
_SOX_SIZE = 0x7FFFF000  # what SoX writes where it cannot know the size
_LIMITS = (-32768, 32767)
_NO_GAP = 1  # bytes by which the sizes may disagree, because of odd chunks


@dataclass(frozen=True, slots=True, eq=False)
class Wave:
    """Audio of one or more channels.

    Attributes:
        rate: samples a second.
        data: float32 of shape (channels, samples), in the range of 16-bit integers (not scaled to 1).
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
    """Audio, as `Wave`. A wave of unknown size, as it comes out of a pipe, reaches to the file's end."""

    name: str = "wave"
    keep_short: bool = False
    """Keep, with a warning, what is there of a file that ends before its last sample, as Kaldi does."""

    def read(self, cursor: Cursor) -> Wave:
        """Return the next wave, and move past it."""
        header = read_wave_header(cursor)
        raw, start = self._samples(cursor, header), cursor.position
        frame_bytes = _SAMPLE_BYTES * header.channels
        if len(raw) < frame_bytes:
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
        header = read_wave_header(cursor)
        if header.data_bytes is None or self.keep_short:
            return header.channels, len(self._samples(cursor, header)) // (_SAMPLE_BYTES * header.channels)
        cursor.skip(header.data_bytes, f"{header.data_bytes} bytes of samples")
        return header.channels, header.data_bytes // (_SAMPLE_BYTES * header.channels)

    def _samples(self, cursor: Cursor, header: _Header) -> Any:
        """Return the bytes of the samples, in the order of the file."""
        if header.data_bytes is None:
            return cursor.read()
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
        header = read_wave_header(cursor)
        if header.data_bytes is None:
            return WaveInfo(header.rate, header.channels, -1)
        cursor.skip(header.data_bytes, f"{header.data_bytes} bytes of samples")
        return WaveInfo(header.rate, header.channels, header.data_bytes // (_SAMPLE_BYTES * header.channels))

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Raise InvalidArgument: a header alone is no file."""
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
    rate: int
    channels: int
    order: str
    """The byte order of the samples, ``<`` or ``>``."""
    data_bytes: int | None
    """The number of bytes of the samples; None where the samples reach to the end of the file."""

    def wave(self, raw: Any) -> Wave:
        """Return the wave of some samples, given as the bytes of the file."""
        count = len(raw) // (_SAMPLE_BYTES * self.channels)
        samples = np.frombuffer(raw, f"{self.order}i2", count * self.channels)
        return Wave(self.rate, np.ascontiguousarray(samples.reshape(-1, self.channels).T, np.float32))


def read_wave_part(cursor: Cursor, part: Callable[[int, int], slice]) -> Wave:
    """Return some samples of the next wave, and leave the cursor behind them.

    Args:
        cursor: stands at the first byte of the wave.
        part: returns the samples to read, given the rate and the number of samples of each channel.
    """
    header = read_wave_header(cursor)
    frame_bytes, start = _SAMPLE_BYTES * header.channels, cursor.position
    if header.data_bytes is None:
        raw = cursor.read()
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
    """Return the first byte of some samples of the next wave, and the byte behind the last; read its header.

    Of a wave of unknown size the bytes begin with the first sample, and end with it.

    Args:
        cursor: stands at the first byte of the wave.
        part: returns the samples, as for `read_wave_part`.
    """
    header = read_wave_header(cursor)
    first, end = (0, 0) if header.data_bytes is None else _bytes_of(part, header)
    return cursor.position + first, cursor.position + end


def _bytes_of(part: Callable[[int, int], slice], header: _Header) -> tuple[int, int]:
    """Return the bytes of some samples, counted from the first sample."""
    frame_bytes = _SAMPLE_BYTES * header.channels
    wanted = part(header.rate, (header.data_bytes or 0) // frame_bytes)
    return wanted.start * frame_bytes, wanted.stop * frame_bytes


def read_wave_header(cursor: Cursor) -> _Header:
    """Move behind the header of the next wave, to its first sample."""
    start = cursor.position
    tag = bytes(cursor.take(4, "RIFF or RIFX (a wave file)"))
    if tag not in {b"RIFF", b"RIFX"}:
        raise cursor.error("RIFF or RIFX (a wave file)", repr(tag), at=start)
    order = "<" if tag == b"RIFF" else ">"
    riff_bytes = _unsigned(cursor, order)
    form = bytes(cursor.take(4, "WAVE"))
    if form != b"WAVE":
        raise cursor.error("WAVE", repr(form), at=start + 8)
    fmt_bytes = _find_chunk(cursor, b"fmt ", order)
    rate, channels = _read_format(cursor, order, fmt_bytes)
    data_bytes = _find_chunk(cursor, b"data", order)
    if riff_bytes in _UNKNOWN_SIZES or data_bytes in _UNKNOWN_SIZES or data_bytes == _SOX_SIZE:
        return _Header(rate, channels, order, None)
    stated = start + 8 + riff_bytes
    if abs(cursor.position + data_bytes - stated) > _NO_GAP:
        found = f"the file should end at byte {stated}, its samples at byte {cursor.position + data_bytes}"
        warnings.warn(f"{cursor.name}: the sizes in the header disagree: {found}", KaldiWarning, stacklevel=2)
    return _Header(rate, channels, order, data_bytes)


def _unsigned(cursor: Cursor, order: str) -> int:
    (number,) = struct.unpack(f"{order}I", cursor.take(4, "a size in the header of a wave file"))
    return int(number)


def _find_chunk(cursor: Cursor, wanted: bytes, order: str) -> int:
    """Move behind the tag and the size of a chunk; chunks before it are skipped. Return the size."""
    while True:
        tag = bytes(cursor.take(4, f"the chunk {wanted.decode()!r}"))
        size = _unsigned(cursor, order)
        if tag == wanted:
            return size
        cursor.skip(size, f"the chunk {tag!r}")


def _read_format(cursor: Cursor, order: str, size: int) -> tuple[int, int]:
    """Return the sampling rate and the number of channels, after checks of everything that Kaldi checks."""
    start = cursor.position
    if size < _FMT_BYTES:
        raise cursor.error(f"a format of at least {_FMT_BYTES} bytes", f"{size} bytes", at=start)
    raw = bytes(cursor.take(size, "the format of the samples"))
    kind, channels, rate, byte_rate, frame_bytes, bits = struct.unpack_from(f"{order}HHIIHH", raw)
    if kind == _EXTENSIBLE:
        guid = raw[24:40]
        kind = _PCM if size >= _EXTENSIBLE_BYTES and guid in {_PCM_GUID, _swapped(_PCM_GUID)} else kind
    if kind != _PCM or bits != _BITS:
        raise cursor.error("16-bit PCM samples", f"format {kind:#x} of {bits} bits", at=start)
    if not channels or not rate or frame_bytes != _SAMPLE_BYTES * channels or byte_rate != rate * frame_bytes:
        found = (
            f"{channels} channels, {rate} samples and {byte_rate} bytes a second, {frame_bytes} bytes a frame"
        )
        raise cursor.error("a consistent format", found, at=start)
    return rate, channels


def _swapped(guid: bytes) -> bytes:
    return b"".join(guid[at : at + 4][::-1] for at in range(0, 16, 4))


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
        form = struct.pack("<HHIIHH", _PCM, channels, rate, rate * 2 * channels, 2 * channels, _BITS)
        riff = struct.pack("<4sI4s4sI", b"RIFF", 36 + len(samples), b"WAVE", b"fmt ", len(form))
        return riff + form + struct.pack("<4sI", b"data", len(samples)) + samples
    except struct.error:
        message = f"rate and data must fit a wave file (got rate {rate!r} and the shape {data.shape})"
        raise InvalidArgument(message) from None
