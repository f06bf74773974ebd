"""Levels and dictionary numbers: runs of one value, and values of a few bits each, taking turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from seekable.formats.parquet.thrift import BadThrift, varint

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["hybrid"]

_WIDEST = 32


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
