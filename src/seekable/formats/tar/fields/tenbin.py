r"""Tenbin, the format of lists of arrays in fields ``ten`` and ``tb``: chunks on edges of 8 bytes.

A chunk is the magic ``~TenBin~``, its length as int64, the data, and zeros up to a multiple of 64 bytes. An
array is two chunks: a header of int64 numbers (eight characters of dtype such as ``f4``, eight characters of
a note, the number of dimensions, each dimension) and the numbers of the array. All is little-endian.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.formats.tar.fields.values import Bytes, beginning

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

__all__ = ["as_tenbin", "to_tenbin"]

_MAGIC = b"~TenBin~"

_DTYPES = {
    code: np.dtype(f"<{code}") for code in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
}

_UNREADABLE = "u4"
"""The code that webdataset cannot read: arrays of uint32 are not written."""

_MOST_DIMENSIONS = 9

_FIXED_WORDS = 3
"""The words of a header before the dimensions."""

_EDGE = 64


def as_tenbin(data: Bytes) -> list[NDArray[Any]]:
    """Return the arrays of a tenbin file, writable.

    Raises:
        ValueError: the bytes are no tenbin file, or are cut short.

    Example:
        >>> as_tenbin(to_tenbin([np.arange(3)]))
        [array([0, 1, 2])]
    """
    chunks = list(_chunks(memoryview(data)))
    if len(chunks) % 2:
        message = f"expected a header and data for each array of tenbin, found {len(chunks)} chunks"
        raise ValueError(message)
    return [
        _array(header, numbers, number)
        for number, (header, numbers) in enumerate(zip(chunks[::2], chunks[1::2], strict=True))
    ]


def _chunks(view: memoryview) -> Iterator[memoryview]:
    at = 0
    while at < len(view):
        if view[at : at + 8] != _MAGIC or len(view) < at + 16:
            message = f"expected a chunk of tenbin ({_MAGIC!r}) at byte {at}, found {beginning(view[at:])}"
            raise ValueError(message)
        (length,) = struct.unpack("<q", view[at + 8 : at + 16])
        left = len(view) - at - 16
        if not 0 <= length <= left:
            message = f"expected {length:,} bytes in the chunk of tenbin at byte {at}, found {left:,}"
            raise ValueError(message)
        yield view[at + 16 : at + 16 + length]
        at += 16 + _padded(length)


def _array(header: memoryview, numbers: memoryview, number: int) -> NDArray[Any]:
    words = struct.unpack(f"<{len(header) // 8}q", header[: len(header) // 8 * 8])
    dtype = _DTYPES.get(bytes(header[:8]).rstrip(b"\0").decode("latin-1"))
    if len(words) < _FIXED_WORDS or not 0 <= words[2] <= len(words) - _FIXED_WORDS or dtype is None:
        message = f"expected the header of array {number} of tenbin, found {beginning(header)}"
        raise ValueError(message)
    shape = words[_FIXED_WORDS : _FIXED_WORDS + words[2]]
    count = int(np.prod(shape, dtype=object)) if shape else 1
    if min(shape, default=0) < 0 or count * dtype.itemsize > len(numbers):
        message = (
            f"expected an array of shape {shape} and type {dtype.name} as array {number} of tenbin, "
            f"found {len(numbers):,} bytes"
        )
        raise ValueError(message)
    array = np.empty(shape, dtype)
    array.reshape(-1)[:] = np.frombuffer(numbers[: count * dtype.itemsize], dtype)
    return array


def to_tenbin(arrays: Sequence[NDArray[Any]]) -> bytes:
    """Return a tenbin file of some arrays, byte for byte as webdataset writes it.

    Raises:
        ValueError: an array is of a type that tenbin does not have, or has too many dimensions.
    """
    out = bytearray()
    for array in arrays:
        code = array.dtype.str[1:]
        if code not in _DTYPES or code == _UNREADABLE:
            names = ", ".join(dtype.name for code, dtype in _DTYPES.items() if code != _UNREADABLE)
            message = f"tenbin has arrays of {names} (got {array.dtype})"
            raise ValueError(message)
        if array.ndim > _MOST_DIMENSIONS:
            message = f"tenbin has at most {_MOST_DIMENSIONS} dimensions (got {array.ndim})"
            raise ValueError(message)
        words = struct.pack(f"<{1 + array.ndim}q", array.ndim, *array.shape)
        _append(out, code.encode("ascii").ljust(16, b"\0") + words)
        _append(out, array.astype(_DTYPES[code], copy=False).tobytes())
    return bytes(out)


def _append(out: bytearray, chunk: bytes) -> None:
    out += _MAGIC + struct.pack("<q", len(chunk)) + chunk + bytes(_padded(len(chunk)) - len(chunk))


def _padded(length: int) -> int:
    return -(-length // _EDGE) * _EDGE
