"""Audio as the payloads of a Shar field: recognized, decoded and encoded."""

from __future__ import annotations

import io
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._optional import optional
from seekable.formats.audio.wave_file import wave_file

if TYPE_CHECKING:
    import soundfile
    from numpy.typing import NDArray
else:
    soundfile = optional("soundfile", extra="audio")

__all__ = ["audio_form", "decoded_audio", "encoded_audio", "num_samples"]

_SERIAL, _CHECKSUM, _SEGMENTS, _OGG_HEADER = 14, 22, 26, 27
"""Offsets in a page of Ogg, and the bytes of its header without the segment table."""

_MPEG_SYNC = 0xE0


def num_samples(seconds: float, rate: float) -> int:
    """Return the number of samples of a time, rounded as Lhotse rounds: halves away from zero.

    Example:
        >>> num_samples(0.50003125, 16_000), num_samples(1.5, 8_000)
        (8001, 12000)
    """
    return int(Decimal(round(seconds * rate, ndigits=8)).quantize(Decimal(0), rounding=ROUND_HALF_UP))


def audio_form(payload: bytes) -> str:
    """Return the form of encoded audio by its first bytes: ``wav``, ``flac``, ``mp3``, ``opus`` or ``ogg``.

    Raises:
        ValueError: the bytes are none of these.

    Example:
        >>> audio_form(b"fLaC....")
        'flac'
    """
    if payload[:4] in (b"RIFF", b"RF64", b"RIFX") and payload[8:12] == b"WAVE":
        return "wav"
    if payload[:4] == b"fLaC":
        return "flac"
    if payload[:4] == b"OggS":
        return "opus" if b"OpusHead" in payload[:64] else "ogg"
    if payload[:3] == b"ID3" or (payload[:1] == b"\xff" and payload[1:2] >= bytes([_MPEG_SYNC])):
        return "mp3"
    raise ValueError(f"the payload begins with {payload[:12]!r}, which is no audio that is known")


def decoded_audio(payload: bytes) -> tuple[NDArray[np.float32], int]:
    """Return the samples of encoded audio, of shape (frames, channels), and the sampling rate."""
    samples, rate = soundfile.read(io.BytesIO(payload), dtype="float32", always_2d=True)
    return samples, rate


def encoded_audio(samples: NDArray[Any], rate: int, form: str) -> bytes:
    """Return samples as a file, with the bytes of soundfile: 16 bits in ``wav`` and ``flac``.

    The bytes depend on the samples alone: streams of Ogg, whose numbers are random else, have number 0.

    Args:
        samples: an array of shape (frames,) or (frames, channels), of floats in -1 to 1 or of integers.
        rate: the sampling rate.
        form: ``wav``, ``flac``, ``mp3``, ``opus`` or another name of soundfile.

    Raises:
        MissingDependency: soundfile is not installed; ``wav`` of float32 or int16 needs none.
    """
    if form == "wav" and samples.dtype in (np.float32, np.int16):
        return _wav(samples, rate)
    file = io.BytesIO()
    if form == "opus":
        soundfile.write(file, samples, rate, format="ogg", subtype="opus")
    else:
        soundfile.write(file, samples, rate, format=form)
    payload = file.getvalue()
    return _with_serial_0(payload) if payload[:4] == b"OggS" else payload


def _wav(samples: NDArray[Any], rate: int) -> bytes:
    """Return samples as a WAV file of 16 bits, clipped and rounded as soundfile does it."""
    if samples.dtype == np.float32:
        scaled = np.rint(samples * np.float32(1 << 31)).astype(np.int64)
        samples = (scaled.clip(-(1 << 31), (1 << 31) - 1) >> 16).astype(np.int16)
    return wave_file(samples, rate)


def _with_serial_0(payload: bytes) -> bytes:
    """Return a file of Ogg whose stream has the number 0."""
    pages = bytearray(payload)
    start = 0
    while start < len(pages):
        table = start + _OGG_HEADER
        end = table + pages[start + _SEGMENTS]
        end += sum(pages[table:end])
        pages[start + _SERIAL : start + _SERIAL + 4] = bytes(4)
        pages[start + _CHECKSUM : start + _CHECKSUM + 4] = bytes(4)
        checksum = _ogg_checksum(pages[start:end])
        pages[start + _CHECKSUM : start + _CHECKSUM + 4] = checksum.to_bytes(4, "little")
        start = end
    return bytes(pages)


def _ogg_checksum(page: bytes | bytearray) -> int:
    checksum = 0
    for byte in page:
        checksum = (checksum << 8) & 0xFFFFFFFF ^ _CHECKSUMS[checksum >> 24 ^ byte]
    return checksum


def _checksums() -> list[int]:
    """Return the checksum of each byte: CRC-32 with the polynomial 0x04C11DB7, not reflected."""
    table = []
    for byte in range(256):
        value = byte << 24
        for _ in range(8):
            value = (value << 1) ^ (0x04C11DB7 if value >> 31 else 0)
            value &= 0xFFFFFFFF
        table.append(value)
    return table


_CHECKSUMS = _checksums()
