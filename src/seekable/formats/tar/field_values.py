"""Values of fields that are text, numbers, JSON, arrays and other data: from bytes to Python.

Each function takes the bytes of one member, as a memoryview or bytes, and returns a value that holds no
reference to them. Nothing pickled is loaded. What cannot be decoded raises ValueError with what was
expected and what was found.
"""

from __future__ import annotations

import io
import json
import struct
import zlib
from functools import lru_cache
from gzip import GzipFile
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from seekable._optional import optional
from seekable.storage.memory import most_record_bytes, record_too_large

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import cbor2
    import lilcom
    import torch
    from numpy.typing import NDArray
else:
    cbor2 = optional("cbor2", extra="cbor")
    lilcom = optional("lilcom", extra="audio")
    torch = optional("torch", extra="torch")

__all__ = [
    "Bytes",
    "as_cbor",
    "as_integer",
    "as_json",
    "as_lilcom",
    "as_msgpack",
    "as_numpy",
    "as_tenbin",
    "as_tensors",
    "as_text",
    "beginning",
    "gunzipped",
    "to_tenbin",
]

Bytes = bytes | memoryview
"""The bytes of a member."""

_SHOWN_BYTES = 40

_HEADERS_REMEMBERED = 256

_NPY_HEADS = {b"\x93NUMPY\x01": 10, b"\x93NUMPY\x02": 12}
"""The number of bytes before the header of an npy file, by magic and major version."""

_fast_json = msgspec.json.Decoder().decode


def beginning(data: Bytes) -> str:
    """Return the first bytes of a value, and their number, for error messages.

    Example:
        >>> beginning(b"cat")
        "3 bytes: b'cat'"
        >>> beginning(b"")
        'no bytes'
    """
    count = len(data)
    if not count:
        return "no bytes"
    more = "..." if count > _SHOWN_BYTES else ""
    return f"{count:,} byte{'s' * (count != 1)}: {bytes(data[:_SHOWN_BYTES])!r}{more}"


def as_text(data: Bytes) -> str:
    """Return text in UTF-8.

    Raises:
        ValueError: the bytes are not UTF-8; the message has the first wrong byte and its offset.
    """
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        wrong = bytes(data[error.start : error.start + 1])
        message = f"expected text in UTF-8, found {wrong!r} at byte {error.start} of {beginning(data)}"
        raise ValueError(message) from error


def as_integer(data: Bytes) -> int:
    """Return an integer that is written in decimal digits; spaces and line ends around it are left out.

    Raises:
        ValueError: the bytes are not an integer.
    """
    try:
        return int(bytes(data))
    except ValueError as error:
        message = f"expected an integer, found {beginning(data)}"
        raise ValueError(message) from error


def as_json(data: Bytes) -> Any:
    """Return the value of a JSON document as ``json.loads`` does: ``null`` is None, NaN is a float.

    Raises:
        ValueError: the bytes are not JSON.
    """
    try:
        return _fast_json(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _loosely(bytes(data))


def _loosely(data: bytes) -> Any:
    """Decode what the strict decoder refuses and ``json`` accepts: NaN, 1e400, lone surrogates, UTF-16."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        message = f"expected JSON, found {beginning(data)} ({error})"
        raise ValueError(message) from error


def as_msgpack(data: Bytes) -> Any:
    """Return the value of a MessagePack document; timestamps are ``datetime``, extensions ``msgspec`` ones.

    Raises:
        ValueError: the bytes are not MessagePack, or more than one document.
    """
    try:
        return msgspec.msgpack.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError, RecursionError) as error:
        message = f"expected one MessagePack document, found {beginning(data)} ({error})"
        raise ValueError(message) from error


def as_cbor(data: Bytes) -> Any:
    """Return the value of a CBOR document, as the package cbor2 reads it.

    Raises:
        ValueError: the bytes are not CBOR.
        MissingDependency: cbor2 is not installed.
    """
    loads = cbor2.loads
    try:
        return loads(bytes(data))
    except Exception as error:
        message = f"expected CBOR, found {beginning(data)} ({error})"
        raise ValueError(message) from error


def as_numpy(data: Bytes) -> NDArray[Any] | dict[str, Any]:
    """Return the array of an npy file, writable, or the arrays of an npz file by name.

    Raises:
        ValueError: the bytes are neither, are cut short, or hold pickled objects.
    """
    return _arrays(data) if data[:2] == b"PK" else _array(data)


def _array(data: Bytes) -> NDArray[Any]:
    head = _NPY_HEADS.get(bytes(data[:7]))
    try:
        if head is None or len(data) < head:
            # Version 3 (names of columns in UTF-8) and what is not an npy file at all.
            return np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
        start = head + int.from_bytes(data[8:head], "little")
        shape, in_columns, dtype = _npy_header(bytes(data[:start]))
        if dtype.hasobject:
            message = "it holds pickled objects, which are never loaded"
            raise ValueError(message)  # noqa: TRY301 - one place adds what was found
        count = _product(shape)
        flat = np.frombuffer(data, dtype, count, start) if count * dtype.itemsize else np.empty(count, dtype)
        array = flat.copy()
        return array.reshape(shape[::-1]).transpose() if in_columns else array.reshape(shape)
    except (ValueError, TypeError, SyntaxError, OverflowError, MemoryError) as error:
        message = f"expected an npy file, found {beginning(data)} ({error})"
        raise ValueError(message) from error


@lru_cache(maxsize=_HEADERS_REMEMBERED)
def _npy_header(head: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, True for Fortran order, and dtype. Arrays of one shape have equal headers."""
    stream = io.BytesIO(head[8:])
    if head[6] == 1:
        return np.lib.format.read_array_header_1_0(stream)
    return np.lib.format.read_array_header_2_0(stream)


def _product(shape: tuple[int, ...]) -> int:
    count = 1
    for length in shape:
        count *= length
    return count


def _arrays(data: Bytes) -> dict[str, Any]:
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            size = sum(member.file_size for member in archive.zip.infolist())
            if size > most_record_bytes():
                raise ValueError(record_too_large(size))  # noqa: TRY301 - one place adds what was found
            return dict(archive)
    except Exception as error:
        # zipfile raises its own errors, those of zlib and struct, and KeyError.
        message = f"expected an npz file, found {beginning(data)} ({type(error).__name__}: {error})"
        raise ValueError(message) from error


def as_lilcom(data: Bytes) -> NDArray[np.float32]:
    """Return an array that lilcom compressed, float32.

    Raises:
        ValueError: the bytes are not lilcom's.
        MissingDependency: lilcom is not installed.
    """
    decompressed = lilcom.decompress
    try:
        array: NDArray[np.float32] = decompressed(bytes(data))
    except Exception as error:
        message = f"expected an array compressed by lilcom, found {beginning(data)} ({error})"
        raise ValueError(message) from error
    return array


def as_tensors(data: Bytes) -> Any:
    """Return what ``torch.save`` wrote, on the CPU, if it is made of tensors and plain values alone.

    Raises:
        ValueError: the bytes are not torch's, or hold objects of other classes, which are never loaded.
        MissingDependency: torch is not installed.
    """
    load = torch.load
    try:
        return load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except Exception as error:
        message = (
            f"expected tensors that torch.load(weights_only=True) reads, found {beginning(data)} ({error})"
        )
        raise ValueError(message) from error


def gunzipped(data: Bytes) -> bytes:
    """Return what gzip compressed, whole.

    Raises:
        ValueError: the bytes are not gzip's, are cut short, or fail the checksum; or the content is larger
            than a record may be.
    """
    most = most_record_bytes()
    try:
        with GzipFile(fileobj=io.BytesIO(data)) as file:
            content = file.read(most + 1)
            if len(content) > most:
                raise ValueError(record_too_large())
            return content
    except (OSError, EOFError, zlib.error) as error:
        message = f"expected data compressed by gzip, found {beginning(data)} ({error})"
        raise ValueError(message) from error


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
        ValueError: the bytes are not a tenbin file, or are cut short.

    Example:
        >>> as_tenbin(to_tenbin([np.arange(3)]))
        [array([0, 1, 2])]
    """
    chunks = list(_chunks(memoryview(data)))
    if len(chunks) % 2:
        message = f"expected a header and data for each array of tenbin, found {len(chunks)} chunks"
        raise ValueError(message)
    return [
        _tenbin_array(header, numbers, number)
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


def _tenbin_array(header: memoryview, numbers: memoryview, number: int) -> NDArray[Any]:
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
