"""The headers of WAV files, read forward: of payloads in memory and in files, of streams, of Kaldi's entries.

Whoever writes a WAV file knows the size of its samples only at the end. So the size in a header may be a
number that stands for "unknown" (of a stream), or 0 (of a writer that was killed): `WaveHeader.sample_bytes`
says which samples are meant.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.formats.audio.payload import Payload

__all__ = [
    "FLOAT",
    "PCM",
    "TAGS",
    "ForwardBytes",
    "PayloadBytes",
    "WaveError",
    "WaveHeader",
    "parse_wave_header",
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
        """Move past the next bytes, which are there if anything behind them is."""
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
    """The bytes of the chunk behind samples that the header says to have no bytes; 0 if no chunk is there."""

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
    """Move behind the header of a WAV file, to its first sample.

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
    """Yield the name and the size of each chunk, whose bytes are next; end behind the name ``data``."""
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
