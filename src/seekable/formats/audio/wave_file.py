"""WAV files: their headers, and samples that numpy can read as they lie."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.formats.audio.wave_header import FLOAT, PCM, TAGS, PayloadBytes, parse_wave_header

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.formats.audio.payload import Payload
    from seekable.formats.audio.wave_header import WaveHeader

__all__ = [
    "WaveFile",
    "is_plain",
    "is_wave",
    "read_wave_frames",
    "read_wave_header",
    "samples_of",
    "wave_file",
]

_PCM_BYTES, _FLOAT_BYTES = frozenset({1, 2, 3, 4}), frozenset({4, 8})


@dataclass(frozen=True, slots=True)
class WaveFile:
    """A WAV file whose samples are all there."""

    header: WaveHeader
    frames: int
    """The number of frames; 0 if the samples are compressed."""

    @property
    def rate(self) -> int:
        """The number of frames a second."""
        return self.header.rate

    @property
    def is_plain(self) -> bool:
        """True if `read_wave_frames` reads such samples."""
        return is_plain(self.header)


def is_plain(header: WaveHeader) -> bool:
    """Return True if `samples_of` reads the samples: integers of 1 to 4 bytes, or floats."""
    return header.width in {PCM: _PCM_BYTES, FLOAT: _FLOAT_BYTES}.get(header.kind, ())


def is_wave(head: bytes) -> bool:
    """Return True if a payload that starts with these 12 bytes is a WAV file."""
    return head[:4] in TAGS and head[8:12] == b"WAVE"


def read_wave_header(payload: Payload) -> WaveFile:
    """Return the header of a WAV file, after a check that its samples are all there.

    Samples of unknown size, as programs write them into pipes, reach to the end of the payload.

    Raises:
        ValueError: the header breaks a rule, or the payload is shorter than the header promises; or it
            promises no samples, and compressed ones follow.
    """
    header = parse_wave_header(PayloadBytes(payload))
    there = max(payload.size - header.start, 0)
    size = header.sample_bytes(there)
    if size > there:
        message = (
            f"the WAV file is cut off: its header promises {size:,} bytes of samples from byte "
            f"{header.start} on, and {there:,} are there"
        )
        raise ValueError(message)
    if size and not header.stated_bytes and not is_plain(header):
        message = (
            f"the WAV file was not finished: its header promises no samples, and {there:,} bytes follow it, "
            f"which are compressed (format {header.kind}). Write it anew, such as with `ffmpeg -i OLD NEW`"
        )
        raise ValueError(message)
    frame_bytes = header.width * header.channels
    frames, torn = divmod(size, frame_bytes) if frame_bytes else (0, 0)
    if torn and size != header.stated_bytes:
        message = f"the WAV file is cut off: its last frame has {torn} of {frame_bytes} bytes"
        raise ValueError(message)
    return WaveFile(header, frames)


def read_wave_frames(payload: Payload, file: WaveFile, first: int, last: int) -> NDArray[np.float32]:
    """Return the frames from ``first`` to ``last``, equal to those of soundfile to the last bit.

    Returns:
        Float32 of shape (frames,), or (frames, channels) for more than one channel; integers as -1 to 1.
    """
    header = file.header
    frame_bytes = header.width * header.channels
    raw = payload.range(header.start + first * frame_bytes, header.start + last * frame_bytes)
    if len(raw) != (last - first) * frame_bytes:
        message = (
            f"the WAV file is cut off: {(last - first) * frame_bytes:,} bytes asked for, {len(raw):,} read"
        )
        raise ValueError(message)
    samples = samples_of(raw, header)
    return samples.reshape(-1, header.channels) if header.channels > 1 else samples


def samples_of(raw: Any, header: WaveHeader) -> NDArray[np.float32]:
    """Return the samples of whole frames, one behind the other: integers as -1 to 1."""
    return _floats(raw, header) if header.kind == FLOAT else _integers(raw, header)


def _floats(raw: Any, header: WaveHeader) -> NDArray[np.float32]:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.frombuffer(raw, f"{header.order}f{header.width}").astype(np.float32)


def _integers(raw: Any, header: WaveHeader) -> NDArray[np.float32]:
    if header.width == 1:
        samples = np.frombuffer(raw, np.uint8).astype(np.float32)
        samples -= np.float32(128)
        samples *= np.float32(1 / 128)
        return samples
    if header.width == 3:  # noqa: PLR2004 - widened to 4 bytes, the lowest of which is 0
        wide = np.zeros((len(raw) // 3, 4), np.uint8)
        wide[:, slice(1, 4) if header.order == "<" else slice(0, 3)] = np.frombuffer(raw, np.uint8).reshape(
            -1, 3
        )
        samples = wide.view(f"{header.order}i4").reshape(-1).astype(np.float32)
        samples *= np.float32(2.0**-31)
        return samples
    samples = np.frombuffer(raw, f"{header.order}i{header.width}").astype(np.float32)
    samples *= np.float32(2.0 ** (1 - 8 * header.width))
    return samples


def wave_file(samples: NDArray[Any], rate: int) -> bytes:
    """Return samples as a WAV file of the same type: integers of 16 bits, or floats of 32.

    Args:
        samples: int16 or float32, of shape (frames,) or (frames, channels).
        rate: frames a second.

    Example:
        >>> len(wave_file(np.zeros(8, np.float32), 16_000)), len(wave_file(np.zeros(8, np.int16), 16_000))
        (90, 60)
    """
    is_float = samples.dtype.kind == "f"
    content = samples.astype(samples.dtype.newbyteorder("<"), order="C", copy=False).tobytes()
    channels = samples.shape[1] if samples.ndim > 1 else 1
    width = samples.itemsize * channels
    form = struct.pack(
        "<HHIIHH", FLOAT if is_float else PCM, channels, rate, rate * width, width, 8 * samples.itemsize
    )
    chunks = [(b"fmt ", form), (b"data", content)]
    if is_float:
        chunks[:1] = [(b"fmt ", form + bytes(2)), (b"fact", struct.pack("<I", len(samples)))]
    body = b"".join(name + struct.pack("<I", len(each)) + each for name, each in chunks)
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WAVE" + body
