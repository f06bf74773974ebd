"""Codecs by Parquet's numbers, as pyarrow has them."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from seekable.formats.parquet.thrift import BadThrift

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["CODECS", "leading", "packed", "unpacked"]

_STREAMED = frozenset({2, 4, 6})
"""Codecs that can be left off in the middle."""

_WORTH_IT = 64 << 10
_MOST_OF_IT = 0.7
"""From how many bytes on, and up to which part of them, leaving off is faster than going to the end."""

CODECS = MappingProxyType({1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"})
"""What can be unpacked here; 0 is no compression. What is missing pyarrow's reader may know."""


def unpacked(codec: int, data: memoryview, size: int) -> pa.Buffer:
    """Return bytes as they were before compression.

    Raises:
        BadThrift: this codec is not known here.
        pyarrow.ArrowException, OSError: the bytes are damaged.
    """
    import pyarrow as pa

    if not codec:
        if len(data) != size:
            raise BadThrift(f"a page without compression of {len(data)} bytes that says to have {size}")
        return pa.py_buffer(data)
    return pa.decompress(data, size, _named(codec))


def leading(codec: int, data: memoryview, size: int, most: int) -> pa.Buffer:
    """Return the first bytes as they were before compression; all of them where that is as fast.

    Args:
        codec: how they were compressed.
        data: all of them, compressed.
        size: how many they are before compression.
        most: how many are wanted.

    Raises:
        BadThrift, pyarrow.ArrowException, OSError: as ``unpacked``.
    """
    import pyarrow as pa

    if codec not in _STREAMED or size < _WORTH_IT or most > _MOST_OF_IT * size:
        return unpacked(codec, data, size)
    with pa.CompressedInputStream(pa.BufferReader(data), _named(codec)) as stream:
        return stream.read_buffer(most)


def packed(codec: int, data: bytes) -> bytes:
    """Return bytes compressed."""
    import pyarrow as pa

    if not codec:
        return data
    compressed: bytes = pa.compress(data, _named(codec), asbytes=True)
    return compressed


def _named(codec: int) -> str:
    if codec not in CODECS:
        raise BadThrift(f"the codec {codec} is not known here")
    return CODECS[codec]
