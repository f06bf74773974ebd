"""WAV files: their headers, and samples that numpy can read as they lie."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.sound.payload import Payload

__all__ = ["WaveHeader", "is_wave", "read_wave_frames", "read_wave_header", "wave_file"]

_TAGS = {b"RIFF": "<", b"RIFX": ">", b"RF64": "<", b"BW64": "<"}
"""The first four bytes, and the byte order of the numbers after them."""

_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_GUID = (0, 0x10, bytes.fromhex("800000aa00389b71"))
"""What follows the number of the format in the extension of a format of type extensible."""

_FMT_BYTES, _EXTENSIBLE_BYTES, _DS64_BYTES = 16, 40, 16
_UNKNOWN_SIZES = frozenset({0xFFFFFFFF, 0x7FFFFFFF, 0x7FFFF000, 0x80000000})
"""Written by programs that cannot know the size, such as SoX and FFmpeg when they write into a pipe."""

_IN_DS64 = 0xFFFFFFFF
_PCM_BYTES, _FLOAT_BYTES = frozenset({1, 2, 3, 4}), frozenset({4, 8})


@dataclass(frozen=True, slots=True)
class WaveHeader:
    """The header of a WAV file whose samples are all there."""

    rate: int
    channels: int
    kind: int
    """The format of the samples: 1 for integers, 3 for floats, others for compressed ones."""
    width: int
    """The bytes of a sample."""
    order: str
    """The byte order of the samples, ``<`` or ``>``."""
    start: int
    """The first byte of the samples."""
    frames: int
    """The number of frames; 0 if the samples are compressed."""

    @property
    def is_plain(self) -> bool:
        """True if `read_wave_frames` reads such samples."""
        return self.width in {_PCM: _PCM_BYTES, _FLOAT: _FLOAT_BYTES}.get(self.kind, ())


def is_wave(head: bytes) -> bool:
    """Return True if a payload that starts with these 12 bytes is a WAV file."""
    return head[:4] in _TAGS and head[8:12] == b"WAVE"


def read_wave_header(payload: Payload) -> WaveHeader:
    """Return the header of a WAV file, after a check that its samples are all there.

    Samples of unknown size, as programs write them into pipes, reach to the end of the payload.

    Raises:
        ValueError: the header breaks a rule, or the payload is shorter than the header promises.
    """
    order = _TAGS[bytes(payload.range(0, 4))]
    (riff_bytes,) = _numbers(payload, f"{order}I", 4)
    at, form, wide_bytes = 12, None, None
    while True:
        name, size = bytes(payload.range(at, at + 4)), _numbers(payload, f"{order}I", at + 4)[0]
        if name == b"data":
            break
        if name == bytes(4):
            message = f"the WAV file has no samples: no chunk begins at byte {at}, and none before is 'data'"
            raise ValueError(message)
        if name == b"fmt ":
            form = _read_format(payload, order, at + 8, size)
        elif name == b"ds64" and size >= _DS64_BYTES:
            (wide_bytes,) = _numbers(payload, "<Q", at + 16)
        at += 8 + size + size % 2
    if form is None:
        message = f"a WAV file needs the chunk 'fmt ' before its samples, which begin at byte {at}"
        raise ValueError(message)
    if size == _IN_DS64 and wide_bytes is not None:
        size = wide_bytes
    elif size in _UNKNOWN_SIZES or (size == 0 and riff_bytes in {0, *_UNKNOWN_SIZES}):
        return _sized(form, order, at + 8, payload.size - at - 8, open_end=True)
    if at + 8 + size > payload.size:
        message = (
            f"the WAV file is cut off: its header promises {size:,} bytes of samples from byte {at + 8} "
            f"on, and {payload.size - at - 8:,} are there"
        )
        raise ValueError(message)
    return _sized(form, order, at + 8, size, open_end=False)


_Form = tuple[int, int, int, int]
"""The format, the channels, the rate, and the bytes of a sample (0 if it is compressed)."""


def _numbers(payload: Payload, form: str, at: int) -> tuple[int, ...]:
    try:
        return struct.unpack(form, payload.range(at, at + struct.calcsize(form)))
    except struct.error:
        message = (
            f"the WAV file is cut off within its header, which needs byte {at} (got {payload.size} bytes)"
        )
        raise ValueError(message) from None


def _read_format(payload: Payload, order: str, at: int, size: int) -> _Form:
    if size < _FMT_BYTES:
        message = f"the chunk 'fmt ' at byte {at - 8} of a WAV file has {size} bytes, and needs {_FMT_BYTES}"
        raise ValueError(message)
    kind, channels, rate, _, frame_bytes, bits = _numbers(payload, f"{order}HHIIHH", at)
    if kind == _EXTENSIBLE and size >= _EXTENSIBLE_BYTES:
        number, *rest = struct.unpack(f"{order}IHH8s", payload.range(at + 24, at + 40))
        kind = number if tuple(rest) == _GUID else kind
    if not channels or not rate:
        message = f"a WAV file of {channels} channels and {rate} frames a second has no sound"
        raise ValueError(message)
    width = -(-bits // 8) if kind in (_PCM, _FLOAT) else 0
    if kind in (_PCM, _FLOAT) and frame_bytes != width * channels:
        message = (
            f"a frame of the WAV file has {frame_bytes} bytes, and {channels} channels of {bits} bits need "
            f"{width * channels}"
        )
        raise ValueError(message)
    return kind, channels, rate, width


def _sized(form: _Form, order: str, start: int, size: int, *, open_end: bool) -> WaveHeader:
    kind, channels, rate, width = form
    frames, torn = divmod(size, width * channels) if width else (0, 0)
    if torn and open_end:
        message = f"the WAV file is cut off: its last frame has {torn} of {width * channels} bytes"
        raise ValueError(message)
    return WaveHeader(rate, channels, kind, width, order, start, frames)


def read_wave_frames(payload: Payload, header: WaveHeader, first: int, last: int) -> NDArray[np.float32]:
    """Return the frames from ``first`` to ``last``, equal to those of soundfile to the last bit.

    Returns:
        Float32 of shape (frames,), or (frames, channels) for more than one channel; integers as -1 to 1.
    """
    frame_bytes = header.width * header.channels
    raw = payload.range(header.start + first * frame_bytes, header.start + last * frame_bytes)
    if len(raw) != (last - first) * frame_bytes:
        message = (
            f"the WAV file is cut off: {(last - first) * frame_bytes:,} bytes asked for, {len(raw):,} read"
        )
        raise ValueError(message)
    samples = _floats(raw, header) if header.kind == _FLOAT else _integers(raw, header)
    return samples.reshape(-1, header.channels) if header.channels > 1 else samples


def _floats(raw: memoryview, header: WaveHeader) -> NDArray[np.float32]:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.frombuffer(raw, f"{header.order}f{header.width}").astype(np.float32)


def _integers(raw: memoryview, header: WaveHeader) -> NDArray[np.float32]:
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
        "<HHIIHH", _FLOAT if is_float else _PCM, channels, rate, rate * width, width, 8 * samples.itemsize
    )
    chunks = [(b"fmt ", form), (b"data", content)]
    if is_float:
        chunks[:1] = [(b"fmt ", form + bytes(2)), (b"fact", struct.pack("<I", len(samples)))]
    body = b"".join(name + struct.pack("<I", len(each)) + each for name, each in chunks)
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WAVE" + body
