"""Decoding of levels and dictionary indices (RLE and bit-packed runs), and the codecs of compression."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from seekable._optional import optional
from seekable.formats.tables.parquet.thrift import ThriftError, varint

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = ["CODECS", "constant", "decompress_start", "packed", "rle_bitpacked", "select_values", "unpacked"]


_WIDEST = 32

_MOST_RUNS = 500
"""The most runs that are skipped one by one; with more, pyarrow decodes all of them faster."""


def rle_bitpacked(data: memoryview | bytes, width: int, count: int) -> NDArray[np.int64]:
    """Return the first values of a sequence of RLE and bit-packed runs.

    Args:
        data: its bytes; more may follow.
        width: how many bits a value has.
        count: how many values are wanted.

    Raises:
        ThriftError: there are not as many.

    Example:
        >>> rle_bitpacked(bytes([0x06, 0x01, 0x03, 0b10101010]), 1, 7).tolist()
        [1, 1, 1, 0, 1, 0, 1]
    """
    if not width:
        return np.zeros(count, np.int64)
    if width > _WIDEST:
        raise ThriftError(f"values of {width} bits; there are at most {_WIDEST}")
    parts, have, at = [], 0, 0
    octets = (width + 7) // 8
    while have < count:
        head, at = varint(data, at)
        if head & 1:
            size = (head >> 1) * width
            values = _unpacked(data[at : at + size], width, min(count - have, (head >> 1) * 8))
        else:
            size = octets
            value = int.from_bytes(data[at : at + size], "little")
            values = np.full(min(count - have, head >> 1), value, np.int64)
        at += size
        if not len(values) or at > len(data) + size * (head & 1):
            raise ThriftError(f"{have} values of {count}, and the next run is cut off")
        parts.append(values)
        have += len(values)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _unpacked(data: memoryview | bytes, width: int, most: int) -> NDArray[np.int64]:
    """Return values that are packed from the lowest bit on; a group may lack bytes that hold no value."""
    need = (most * width + 7) // 8
    raw = np.frombuffer(data[:need], np.uint8)
    if width in (8, 16, 32):
        return raw[: len(raw) // (width // 8) * (width // 8)].view(f"<u{width // 8}").astype(np.int64)
    bits = np.unpackbits(raw, bitorder="little")
    bits = bits[: len(bits) // width * width].reshape(-1, width)[:most]
    if width == 1:
        return bits[:, 0].astype(np.int64)
    return bits @ (np.int64(1) << np.arange(width, dtype=np.int64))


def constant(data: memoryview, width: int, count: int) -> int | None:
    """Return the value that the first values of a sequence of runs share; None if they are not one RLE run.

    Raises:
        ThriftError: the bytes are cut off.

    Example:
        >>> constant(memoryview(bytes([0x06, 0x01])), 1, 3)
        1
    """
    head, at = varint(data, 0)
    if head & 1 or head >> 1 < count:
        return None
    return int.from_bytes(data[at : at + (width + 7) // 8], "little")


def select_values(data: memoryview, width: int, places: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Return some values of a run-length sequence; None if it has so many runs that decoding all is faster.

    Args:
        data: its bytes.
        width: how many bits a value has.
        places: which values, ascending.

    Raises:
        ThriftError: it has fewer.

    Example:
        >>> select_values(memoryview(bytes([0x06, 0x01, 0x03, 0b10101010])), 1, np.array([2, 3, 4])).tolist()
        [1, 0, 1]
    """
    if width > _WIDEST:
        raise ThriftError(f"values of {width} bits; there are at most {_WIDEST}")
    found: list[int] = []
    wanted = places.tolist()
    begin = end = at = runs = 0
    packed, body, mask = False, 0, (1 << width) - 1
    for place in wanted if width else ():
        while place >= end:
            runs += 1
            if runs > _MOST_RUNS:
                return None
            head, body = varint(data, at)
            packed = bool(head & 1)
            begin, end = end, end + ((head >> 1) * 8 if packed else head >> 1)
            at = body + ((head >> 1) * width if packed else (width + 7) // 8)
        bit = (place - begin) * width if packed else 0
        last = body + (bit + width + 7) // 8
        if last > len(data):
            raise ThriftError(f"value {place} lies behind the end of its page")
        found.append(int.from_bytes(data[body + bit // 8 : last], "little") >> bit % 8 & mask)
    return np.array(found, np.int64) if width else np.zeros(len(wanted), np.int64)


_STREAMED = frozenset({2, 4, 6})
"""Codecs that can be left off in the middle."""

_WORTH_IT = 64 << 10

_MOST_OF_IT = 0.7
"""From how many bytes on, and up to which part of them, leaving off is faster than going to the end."""

CODECS = MappingProxyType({1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"})
"""The codecs that are decompressed here; 0 is no compression. Chunks of others are left to pyarrow."""


def unpacked(codec: int, data: memoryview, size: int) -> pa.Buffer:
    """Return bytes decompressed.

    Raises:
        ThriftError: the codec is none of `CODECS`.
        pyarrow.ArrowException, OSError: the bytes are damaged.
    """
    if not codec:
        if len(data) != size:
            raise ThriftError(f"a page without compression of {len(data)} bytes that says to have {size}")
        return pa.py_buffer(data)
    return pa.decompress(data, size, _named(codec))


def decompress_start(codec: int, data: memoryview, size: int, most: int) -> pa.Buffer:
    """Return the first bytes as they were before compression; all of them where that is as fast.

    Args:
        codec: how they were compressed.
        data: all of them, compressed.
        size: how many they are before compression.
        most: how many are wanted.

    Raises:
        ThriftError, pyarrow.ArrowException, OSError: as ``unpacked``.
    """
    if codec not in _STREAMED or size < _WORTH_IT or most > _MOST_OF_IT * size:
        return unpacked(codec, data, size)
    with pa.CompressedInputStream(pa.BufferReader(data), _named(codec)) as stream:
        return stream.read_buffer(most)


def packed(codec: int, data: bytes) -> bytes:
    """Return bytes compressed by a codec."""
    if not codec:
        return data
    compressed: bytes = pa.compress(data, _named(codec), asbytes=True)
    return compressed


def _named(codec: int) -> str:
    if codec not in CODECS:
        raise ThriftError(f"the codec {codec} is not known here")
    return CODECS[codec]
