"""Levels and dictionary numbers: runs of one value, and values of a few bits each, taking turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from seekable.formats.parquet.thrift import BadThrift, varint

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["constant", "hybrid", "picked"]

_WIDEST = 32
_MOST_RUNS = 500
"""How many runs are stepped over one by one before pyarrow is faster at decoding them all."""


def hybrid(data: memoryview | bytes, width: int, count: int) -> NDArray[np.int64]:
    """Return the first values of a hybrid of runs and bit-packed groups.

    Args:
        data: its bytes; more may follow.
        width: how many bits a value has.
        count: how many values are wanted.

    Raises:
        BadThrift: there are not as many.

    Example:
        >>> hybrid(bytes([0x06, 0x01, 0x03, 0b10101010]), 1, 7).tolist()
        [1, 1, 1, 0, 1, 0, 1]
    """
    if not width:
        return np.zeros(count, np.int64)
    if width > _WIDEST:
        raise BadThrift(f"values of {width} bits; there are at most {_WIDEST}")
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
            raise BadThrift(f"{have} values of {count}, and the next run is cut off")
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
    """Return the value that all of a hybrid's first values have, None if one run does not tell.

    Raises:
        BadThrift: the bytes are cut off.

    Example:
        >>> constant(memoryview(bytes([0x06, 0x01])), 1, 3)
        1
    """
    head, at = varint(data, 0)
    if head & 1 or head >> 1 < count:
        return None
    return int.from_bytes(data[at : at + (width + 7) // 8], "little")


def picked(data: memoryview, width: int, places: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Return some values of a hybrid; None if there are so many runs before them that decoding all is faster.

    Args:
        data: its bytes.
        width: how many bits a value has.
        places: which values, ascending.

    Raises:
        BadThrift: it has fewer.

    Example:
        >>> picked(memoryview(bytes([0x06, 0x01, 0x03, 0b10101010])), 1, np.array([2, 3, 4])).tolist()
        [1, 0, 1]
    """
    if width > _WIDEST:
        raise BadThrift(f"values of {width} bits; there are at most {_WIDEST}")
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
            raise BadThrift(f"value {place} lies behind the end of its page")
        found.append(int.from_bytes(data[body + bit // 8 : last], "little") >> bit % 8 & mask)
    return np.array(found, np.int64) if width else np.zeros(len(wanted), np.int64)
