"""Objects in the formats of other tools: HTK, Sphinx, numpy, and bytes; none has a text form."""

from __future__ import annotations

import io
import re
import struct
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import InvalidArgument, WrongType
from seekable.formats.kaldi.basic_types import BASIC_TYPES, BINARY_HEADER, read_header
from seekable.formats.kaldi.holders.matrices import checked_matrix

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.formats.kaldi.cursor import Cursor, Output
    from seekable.formats.kaldi.holders.script_ranges import Range

_HEADER = struct.Struct(">iihH")
_COUNT = struct.Struct(">i")
_FLOAT = BASIC_TYPES["float"]
_FLOAT_BYTES = 4
_BIG_ENDIAN = np.dtype(">f4")

_COMPRESSED, _CHECKSUM, _QUANTISED, _BASE = 0o2000, 0o10000, 0o40000, 0o77
_WITHOUT_FLOATS = {0: "waveform", 5: "irefc", 10: "discrete"}
_BLOB_MAGIC = bytes.fromhex("14112220")
_NPY_MAGIC = b"\x93NUMPY\x01\x00"
_ALIGNMENT = 64
_NPY_HEADER = re.compile(
    rb"\{'descr': '([<>])f([48])', 'fortran_order': (True|False), 'shape': \(([0-9, ]*)\),? ?\} *\n"
)


@dataclass(frozen=True, slots=True, eq=False)
class HtkMatrix:
    """Features in the form of HTK.

    Attributes:
        data: float32 of shape (frames, columns).
        period: the time between frames, in units of 100 ns.
        kind: HTK's number of the kind of features, such as 6 (MFCC), with its flags.
    """

    data: NDArray[np.float32]
    period: int = 100_000
    kind: int = 9


@dataclass(frozen=True, slots=True)
class HtkHolder:
    """Features in HTK form, as `HtkMatrix`."""

    name: str = "htk-matrix"

    def read(self, cursor: Cursor) -> HtkMatrix:
        """Return the next features. The flag of a checksum is cleared."""
        rows, columns, period, kind = _read_header(cursor)
        data = cursor.array(_BIG_ENDIAN, rows * columns, f"{rows} x {columns} elements")
        return HtkMatrix(data.astype(np.float32).reshape(rows, columns), period, kind)

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Write features in binary form; text is refused."""
        refuse_text(self.name, binary=binary)
        if not isinstance(value, HtkMatrix):
            raise WrongType(f"value must be an HtkMatrix (got a {type(value).__name__})")
        array = checked_matrix(value.data, _FLOAT)
        try:
            header = _HEADER.pack(len(array), value.period, _FLOAT_BYTES * array.shape[1], value.kind)
        except struct.error:
            found = f"shape {array.shape}, period {value.period}, kind {value.kind}"
            raise InvalidArgument(f"value must fit the header of HTK (got {found})") from None
        file.write(header + array.astype(_BIG_ENDIAN).tobytes())

    def skip(self, cursor: Cursor) -> None:
        """Move past the next features."""
        self.shape(cursor)

    def shape(self, cursor: Cursor) -> tuple[int, int]:
        """Return the shape (frames, columns) of the next features."""
        rows, columns, _, _ = _read_header(cursor)
        cursor.skip(_FLOAT_BYTES * rows * columns, f"{rows} x {columns} elements")
        return rows, columns


@dataclass(frozen=True, slots=True)
class SphinxHolder:
    """Features in Sphinx form: float32 of shape (frames, columns); the file does not say the columns."""

    name: str = "sphinx-matrix"
    columns: int = 13

    def read(self, cursor: Cursor) -> NDArray[np.float32]:
        """Return the next features, and move past them."""
        count = self._read_count(cursor)
        data = cursor.array(_BIG_ENDIAN, count, f"{count} elements")
        return data.astype(np.float32).reshape(-1, self.columns)

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Write features in binary form; text is refused."""
        refuse_text(self.name, binary=binary)
        array = checked_matrix(value, _FLOAT)
        if array.size and array.shape[1] != self.columns:
            raise InvalidArgument(f"value must have {self.columns} columns (got the shape {array.shape})")
        file.write(_COUNT.pack(array.size) + array.astype(_BIG_ENDIAN).tobytes())

    def skip(self, cursor: Cursor) -> None:
        """Move past the next features."""
        self.shape(cursor)

    def shape(self, cursor: Cursor) -> tuple[int, int]:
        """Return the shape (frames, columns) of the next features."""
        count = self._read_count(cursor)
        cursor.skip(_FLOAT_BYTES * count, f"{count} elements")
        return count // self.columns, self.columns

    def _read_count(self, cursor: Cursor) -> int:
        start = cursor.position
        (count,) = _COUNT.unpack(cursor.take(_COUNT.size, "the number of elements"))
        if count < 0 or count % self.columns:
            raise cursor.error(f"a number of elements that {self.columns} divides", str(count), at=start)
        return int(count)


def refuse_text(name: str, *, binary: bool) -> None:
    """Raise InvalidArgument where a type without a text form is to be written as text."""
    if not binary:
        raise InvalidArgument(
            f"binary must be True for {name}, which has no text form (leave out the option t)"
        )


def _read_header(cursor: Cursor) -> tuple[int, int, int, int]:
    start = cursor.position
    rows, period, row_bytes, kind = _HEADER.unpack(cursor.take(_HEADER.size, "the header of an HTK file"))
    kind &= ~_CHECKSUM
    base = kind & _BASE
    if kind & (_COMPRESSED | _QUANTISED) or base in _WITHOUT_FLOATS:
        why = _WITHOUT_FLOATS.get(base, "compressed" if kind & _COMPRESSED else "with vector quantisation")
        raise cursor.error("an HTK file of floats", f"kind {kind:#o} ({why})", at=start + 10)
    if rows < 0 or row_bytes < 0 or row_bytes % _FLOAT_BYTES or (rows == 0) != (row_bytes == 0):
        found = f"{rows} frames of {row_bytes} bytes"
        raise cursor.error("an HTK file with whole floats in each frame", found, at=start)
    return rows, row_bytes // _FLOAT_BYTES, period, kind


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
