"""WAV files: their headers, and samples that numpy can read as they lie."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from seekable.formats.audio.audio_bytes import Payload

__all__ = [
    "FLOAT",
    "PCM",
    "TAGS",
    "ForwardBytes",
    "PayloadBytes",
    "WaveError",
    "WaveFile",
    "WaveHeader",
    "is_plain",
    "is_wave",
    "parse_wave_header",
    "read_wave_frames",
    "read_wave_header",
    "samples_of",
    "wave_file",
]

TAGS = {b"RIFF": "<", b"RIFX": ">", b"RF64": "<", b"BW64": "<"}
"""The first four bytes, and the byte order of the numbers after them."""

PCM, FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE

_GUID_TAILS = {
    bytes.fromhex("00001000800000aa00389b71"): "<",
    bytes.fromhex("00000010800000aa00389b71"): ">",
    bytes.fromhex("00100000aa000080719b3800"): ">",
}
"""What follows the number of the format in the extension of a format of type extensible, by the order of that
number; of RIFX files, programs swap the bytes of its numbers, or of all its words."""

_FMT_BYTES, _GUID_AT, _EXTENSIBLE_BYTES, _DS64_BYTES = 16, 24, 40, 16
_IN_DS64 = 0xFFFFFFFF
_UNKNOWN_64 = (1 << 64) - 1

_MARGIN = 1 << 16
"""Sizes that stand for "unknown" lie so near to 2**31 or 2**32: rounded down to whole frames or pages, or
less the bytes of the header, as by SoX (0x7FFFF000), arecord (0x7FFFFF00), FFmpeg (0xFFFFFFFF) and others."""

_LEAST_UNKNOWN = (1 << 31) - _MARGIN


class WaveError(ValueError):
    """A header that breaks a rule, or promises samples that are not there."""

    def __init__(self, expected: str, found: str, at: int) -> None:
        """Say what was expected and found at a byte.

        Args:
            expected: what the rule wants.
            found: what is there.
            at: the byte, counted as positions of the bytes that were read.
        """
        self.expected, self.found, self.at = expected, found, at
        super().__init__(f"the WAV file is damaged at byte {at}: expected {expected}, found {found}")


class ForwardBytes(Protocol):
    """Bytes that are read forward. What is asked for beyond their end raises an error of their own."""

    @property
    def position(self) -> int:
        """The number of the next byte."""

    def ahead(self, count: int) -> bytes:
        """Return the next bytes without moving; fewer at the end, or where fewer have arrived."""

    def take(self, count: int, what: str) -> bytes | bytearray | memoryview:
        """Return the next bytes, and move past them; errors say that ``what`` was expected."""

    def skip(self, count: int, what: str) -> None:
        """Move past the next bytes."""


class PayloadBytes:
    """The bytes of a payload, read forward."""

    def __init__(self, payload: Payload) -> None:
        """Stand at the first byte."""
        self._payload = payload
        self.position = 0

    def ahead(self, count: int) -> bytes:
        """Return the next bytes without moving; fewer at the end."""
        return bytes(self._payload.range(self.position, self.position + count))

    def take(self, count: int, what: str) -> memoryview:
        """Return the next bytes, and move past them.

        Raises:
            ValueError: fewer are there.
        """
        found = self._payload.range(self.position, self.position + count)
        if len(found) < count:
            message = (
                f"the WAV file is cut off within its header: expected {what} at byte {self.position}, and "
                f"the file has {self._payload.size} bytes"
            )
            raise ValueError(message)
        self.position += count
        return found

    def skip(self, count: int, what: str) -> None:
        """Move past the next bytes, which are there if anything after them is."""
        del what
        self.position += count


@dataclass(frozen=True, slots=True)
class WaveHeader:
    """The header of a WAV file."""

    rate: int
    channels: int
    kind: int
    """The format of the samples: 1 for integers, 3 for floats, others for compressed ones."""
    bits: int
    """The bits of a sample, without those that pad it to whole bytes."""
    width: int
    """The bytes of a sample; 0 if the samples are compressed."""
    byte_rate: int
    """The bytes a second, as the header says."""
    order: str
    """The byte order of the samples, ``<`` or ``>``."""
    start: int
    """The first byte of the samples."""
    stated_bytes: int
    """The bytes of the samples, as the header says."""
    stated_end: int | None
    """The byte at which the file ends, as the header says; None if it says nothing."""
    next_chunk: int
    """The bytes of the chunk after samples that the header says to have no bytes; 0 if no chunk is there."""

    @property
    def is_sized(self) -> bool:
        """True if the header says how long the samples are: `sample_bytes` depends on nothing else then."""
        return 0 < self.stated_bytes < _LEAST_UNKNOWN

    def sample_bytes(self, there: int) -> int:
        """Return the bytes of the samples; more than are there if the file is cut off.

        A size of nearly 2 GiB or more is unknown if it is near 2**31 or 2**32, or more than twice of what is
        there. An empty chunk is that of a writer that was killed before it could write the size, unless other
        chunks follow up to the end of the file. In both cases all that is there is samples.

        Args:
            there: the bytes from the first sample to the end of the file.

        Raises:
            WaveError: the chunk is empty, and what follows is neither samples nor other chunks.
        """
        size = self.stated_bytes
        if self.is_sized:
            return size
        if size:
            near = min(abs(size - (1 << 31)), abs(size - (1 << 32))) <= _MARGIN or size == _UNKNOWN_64
            holds = size <= there <= size + _MARGIN
            is_unknown = not holds if near else size >> 32 == 0 and size > 2 * there
            return there if is_unknown else size
        if self.stated_end is None or self.stated_end - self.start <= 1:
            return there
        if abs(self.stated_end - self.start - there) > 1:
            raise WaveError(
                f"the end of the file at byte {self.stated_end}, as its header says, because its samples are "
                f"an empty chunk",
                f"its end at byte {self.start + there}",
                self.start,
            )
        return 0 if 0 < self.next_chunk <= there else there


def parse_wave_header(source: ForwardBytes) -> WaveHeader:
    """Move past the header of a WAV file, to its first sample.

    Raises:
        WaveError: the header breaks a rule.
        ValueError: it ends too early; or what the bytes raise then.
    """
    at = source.position
    tag = bytes(source.take(4, "RIFF or RIFX (a wave file)"))
    if tag not in TAGS:
        raise WaveError("RIFF or RIFX (a wave file)", repr(tag), at)
    order = TAGS[tag]
    file_bytes = _unsigned(source, order)
    if (form := bytes(source.take(4, "WAVE"))) != b"WAVE":
        raise WaveError("WAVE", repr(form), at + 8)
    found, wide = None, None
    for name, size in _chunks_before_samples(source, order):
        if name == b"fmt ":
            found = _read_format(source, order, size)
        elif name == b"ds64" and size >= _DS64_BYTES:
            wide = struct.unpack("<QQ", source.take(_DS64_BYTES, "the sizes of the chunk 'ds64'"))
    if found is None:
        raise WaveError("the chunk 'fmt ' before the samples", "none", source.position)
    size = _unsigned(source, order)
    if wide is not None and size == _IN_DS64:
        file_bytes, size = wide
    end = at + 8 + file_bytes if 0 < file_bytes < _LEAST_UNKNOWN else None
    next_chunk = 0 if size else _chunk_bytes(source.ahead(8), order)
    return WaveHeader(*found, order, source.position, size, end, next_chunk)


def _chunks_before_samples(source: ForwardBytes, order: str) -> Iterator[tuple[bytes, int]]:
    """Yield the name and the size of each chunk, whose bytes are next; end after the name ``data``."""
    while (name := bytes(source.take(4, "the chunk 'data'"))) != b"data":
        if name == bytes(4):
            raise WaveError(
                "the chunk 'data', which has the samples", "bytes that are 0", source.position - 4
            )
        size = _unsigned(source, order)
        behind = source.position + size
        yield name, size
        source.skip(behind - source.position, f"the chunk {name!r}")
        if size % 2 and source.ahead(1) == b"\0":  # Some programs leave out the byte that makes it even.
            source.skip(1, "the byte behind a chunk of odd size")


def _unsigned(source: ForwardBytes, order: str) -> int:
    (number,) = struct.unpack(f"{order}I", source.take(4, "a size in the header of a wave file"))
    return int(number)


def _chunk_bytes(head: bytes, order: str) -> int:
    """Return the size of a chunk with its head of 8 bytes; 0 if the bytes are none."""
    if len(head) < 8 or not (head[:4].isascii() and head[:4].decode().isprintable()):  # noqa: PLR2004
        return 0
    (size,) = struct.unpack(f"{order}I", head[4:])
    return 8 + int(size)


def _read_format(source: ForwardBytes, order: str, size: int) -> tuple[int, int, int, int, int, int]:
    """Return the rate, the channels, the format, the bits and the bytes of a sample, the bytes a second."""
    at = source.position
    if size < _FMT_BYTES:
        raise WaveError(f"a format of at least {_FMT_BYTES} bytes", f"{size} bytes", at)
    raw = bytes(source.take(min(size, _EXTENSIBLE_BYTES), "the format of the samples"))
    kind, channels, rate, byte_rate, frame_bytes, bits = struct.unpack_from(f"{order}HHIIHH", raw)
    if kind == _EXTENSIBLE and len(raw) == _EXTENSIBLE_BYTES:
        number, tail = raw[_GUID_AT : _GUID_AT + 4], raw[_GUID_AT + 4 :]
        if tail in _GUID_TAILS:
            (kind,) = struct.unpack(f"{_GUID_TAILS[tail]}I", number)
    if not channels or not rate:
        raise WaveError("sound", f"{channels} channels of {rate} frames a second", at)
    width = -(-bits // 8) if kind in (PCM, FLOAT) else 0
    if kind in (PCM, FLOAT) and (not width or frame_bytes != width * channels):
        wanted = f"frames of {width * channels} bytes, as {channels} channels of {bits} bits need"
        raise WaveError(wanted, f"{frame_bytes} bytes", at)
    return rate, channels, kind, bits, width, byte_rate


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
    """Return the samples of whole frames, one after the other: integers as -1 to 1."""
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
    """Return samples as a WAV file of their type: 16-bit integers or 32-bit floats.

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
