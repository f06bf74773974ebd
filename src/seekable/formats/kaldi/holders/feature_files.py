"""Matrices in the formats of HTK and Sphinx: with big-endian numbers, and without a text form."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import InvalidArgument, WrongType
from seekable.formats.kaldi.holders.dense import checked_matrix
from seekable.formats.kaldi.objects.basic_types import BASIC_TYPES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.formats.kaldi.objects.cursor import Cursor, Output

__all__ = ["HtkHolder", "HtkMatrix", "SphinxHolder", "refuse_text"]

_HEADER = struct.Struct(">iihH")
_COUNT = struct.Struct(">i")
_FLOAT = BASIC_TYPES["float"]
_FLOAT_BYTES = 4
_BIG_ENDIAN = np.dtype(">f4")

_COMPRESSED, _CHECKSUM, _QUANTISED, _BASE = 0o2000, 0o10000, 0o40000, 0o77
_WITHOUT_FLOATS = {0: "waveform", 5: "irefc", 10: "discrete"}


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
