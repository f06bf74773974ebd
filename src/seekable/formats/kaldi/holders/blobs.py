"""Bytes as they are, and arrays in numpy's own format; neither has a text form."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import WrongType
from seekable.formats.kaldi.holders.feature_files import refuse_text
from seekable.formats.kaldi.objects.header import BINARY_HEADER, read_header

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.formats.kaldi.holders.ranges import Range
    from seekable.formats.kaldi.objects.cursor import Cursor, Output

__all__ = ["BlobHolder", "NumpyArrayHolder"]

_BLOB_MAGIC = bytes.fromhex("14112220")
_NPY_MAGIC = b"\x93NUMPY\x01\x00"
_ALIGNMENT = 64
_NPY_HEADER = re.compile(
    rb"\{'descr': '([<>])f([48])', 'fortran_order': (True|False), 'shape': \(([0-9, ]*)\),? ?\} *\n"
)


@dataclass(frozen=True, slots=True)
class BlobHolder:
    """Bytes as they are: read as bytes, written from anything with their buffer protocol."""

    name: str = "blob"

    def read(self, cursor: Cursor) -> bytes:
        """Return the bytes of the next blob, and move past it."""
        size = _blob_size(cursor)
        return bytes(cursor.take(size, f"{size} bytes of a blob"))

    def read_range(self, cursor: Cursor, part: Range) -> bytes:
        """Return some of the next bytes; the others are not touched."""
        size = _blob_size(cursor)
        chosen = part.without_columns("blob").row_slice(size, cursor.name)
        cursor.skip(chosen.start, "the bytes before the range")
        found = bytes(cursor.take(chosen.stop - chosen.start, "the bytes of the range"))
        cursor.skip(size - chosen.stop, "the bytes after the range")
        return found

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Write bytes, in binary form; text is refused."""
        refuse_text(self.name, binary=binary)
        if not isinstance(value, bytes | bytearray | memoryview):
            raise WrongType(f"value must be bytes (got a {type(value).__name__})")
        size = memoryview(value).nbytes
        file.write(BINARY_HEADER + _BLOB_MAGIC + size.to_bytes(8, "little") + bytes(value))

    def skip(self, cursor: Cursor) -> None:
        """Move past the next bytes."""
        self.shape(cursor)

    def shape(self, cursor: Cursor) -> tuple[int]:
        """Return the shape (n,) of the next n bytes."""
        size = _blob_size(cursor)
        cursor.skip(size, f"{size} bytes of a blob")
        return (size,)


@dataclass(frozen=True, slots=True)
class NumpyArrayHolder:
    """Arrays of float32 or float64 of any shape, in numpy's format (version 1.0)."""

    name: str = "numpy-array"

    def read(self, cursor: Cursor) -> NDArray[Any]:
        """Return the next array, in the byte order of the machine."""
        dtype, shape, by_columns = _npy_header(cursor)
        data = cursor.array(dtype, prod(shape), f"an array of the shape {shape}")
        native = data.astype(dtype.newbyteorder("="), copy=False)
        return native.reshape(shape, order="F" if by_columns else "C")

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Write an array, in binary form; text is refused."""
        refuse_text(self.name, binary=binary)
        array = np.asarray(value)
        if array.dtype.kind != "f" or array.itemsize not in {4, 8}:
            raise WrongType(f"value must be an array of float32 or float64 (got {array.dtype})")
        blob = io.BytesIO()
        little = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(array.shape)
        np.lib.format.write_array(blob, little, version=(1, 0), allow_pickle=False)
        file.write(BINARY_HEADER + blob.getvalue())

    def skip(self, cursor: Cursor) -> None:
        """Move past the next array."""
        self.shape(cursor)

    def shape(self, cursor: Cursor) -> tuple[int, ...]:
        """Return the shape of the next array."""
        dtype, shape, _ = _npy_header(cursor)
        cursor.skip(dtype.itemsize * prod(shape), f"an array of the shape {shape}")
        return shape


def _blob_size(cursor: Cursor) -> int:
    _expect_binary(cursor, "blob")
    start = cursor.position
    magic = bytes(cursor.take(len(_BLOB_MAGIC), "the magic number of a blob"))
    if magic != _BLOB_MAGIC:
        raise cursor.error(f"the magic number {_BLOB_MAGIC!r} of a blob", repr(magic), at=start)
    size = int.from_bytes(cursor.take(8, "the size of a blob"), "little", signed=True)
    if size < 0:
        raise cursor.error("the size of a blob", str(size), at=start + len(_BLOB_MAGIC))
    return size


def _npy_header(cursor: Cursor) -> tuple[np.dtype[Any], tuple[int, ...], bool]:
    _expect_binary(cursor, "numpy array")
    start = cursor.position
    magic = bytes(cursor.take(len(_NPY_MAGIC), "the magic string of an .npy file"))
    if magic != _NPY_MAGIC:
        raise cursor.error("the magic string of an .npy file of version 1.0", repr(magic), at=start)
    size = int.from_bytes(cursor.take(2, "the size of the header"), "little")
    at = cursor.position
    header = bytes(cursor.take(size, "the header of an .npy file"))
    found = _NPY_HEADER.fullmatch(header)
    if found is None or (len(_NPY_MAGIC) + 2 + size) % _ALIGNMENT:
        raise cursor.error(
            "a header of '<f4' or '<f8' items, a multiple of 64 bytes", repr(header[:80]), at=at
        )
    shape = tuple(int(each[:19]) for each in found[4].decode().replace(" ", "").split(",") if each)
    return np.dtype(f"{found[1].decode()}f{found[2].decode()}"), shape, found[3] == b"True"


def _expect_binary(cursor: Cursor, kind: str) -> None:
    if not read_header(cursor):
        raise cursor.error(f"the binary header of a {kind}, which has no text form")
