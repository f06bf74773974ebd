"""Deflated data decompressed from the middle.

A block of deflated data begins at any bit, and refers to the content before it. zlib takes that content as a
dictionary, but begins at whole bytes only. So what is before the block in its first byte is filled up with
deflated blocks of our own that are empty, and as long as it takes.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

from seekable.storage.compression import inflated

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["resumed"]

_RAW = -15
_TRAILER_BYTES = 8
_AT_ONCE = 1 << 20

# A block by fixed codes: not the last one, kind 01, and the end at once. As all bits here, in their order.
_EVEN: Final = "0" + "10" + "0000000"

# A block with codes of its own: its number of bits is odd. Three codes of lengths are told (0 is "0", 1 is
# "10", 18 is "11"); with them that the symbols 0 to 255 have no code, 256, the end, has one of one bit, and
# distances have none. Then the end at once.
_ORDER: Final = (16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1)
_LENGTHS: Final = {18: "010", 0: "100", 1: "010"}  # lowest bit first
_ODD: Final = (
    "0" + "01" + "00000" + "00000" + "0111"
    + "".join(_LENGTHS.get(symbol, "000") for symbol in _ORDER)
    + "11" + "1111111" + "11" + "1101011"  # no code for 138 symbols, for 118 more
    + "10" + "0" + "0"
)  # fmt: skip


def _filler(bits: int) -> str:
    """Return the bits of empty blocks whose number, modulo 8, is this one."""
    filler = _ODD if bits % 2 else ""
    while len(filler) % 8 != bits:
        filler += _EVEN
    return filler


_FILLERS: Final = tuple(_filler(bits) for bits in range(8))


def resumed(data: memoryview, *, bit: int, window: bytes, path: str) -> Iterator[bytes]:
    """Yield the content of deflated data from one of its blocks on, and of gzip members that follow.

    Args:
        data: the bytes of the file, from the one on that the block begins in.
        bit: at which bit of it, counted from the lowest.
        window: the 32 KiB of content before it.
        path: what the file is called in errors.

    Raises:
        UnsupportedFormat: a member that follows is damaged.
        zlib.error: the data is.

    Example:
        >>> deflating = zlib.compressobj(wbits=_RAW)
        >>> first = deflating.compress(b"good day, ") + deflating.flush(zlib.Z_SYNC_FLUSH)
        >>> rest = deflating.compress(b"good day") + deflating.flush()
        >>> b"".join(resumed(memoryview(rest), bit=0, window=b"good day, ", path="a.gz"))
        b'good day'
    """
    stream = zlib.decompressobj(_RAW, zdict=window)
    rest = bytes(data)
    if bit:
        filler = _FILLERS[bit]
        bits = int(filler[::-1], 2) | rest[0] >> bit << len(filler)
        rest = bits.to_bytes(len(filler) // 8 + 1, "little") + rest[1:]
    while rest and not stream.eof:
        piece = stream.decompress(rest, _AT_ONCE)
        rest = stream.unconsumed_tail
        yield piece
    if stream.eof:
        yield from inflated([stream.unused_data[_TRAILER_BYTES:].lstrip(b"\0")], "gz", path)
