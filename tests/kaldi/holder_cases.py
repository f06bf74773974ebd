"""Values of every holder with their bytes in both forms, and how values are written, read and compared."""

from __future__ import annotations

import dataclasses
import io
import struct
from typing import Any, NamedTuple

import numpy as np
from tests.thrift import ALL

from seekable.formats.kaldi.cursor import Cursor, FileCursor, MemoryCursor
from seekable.kaldi import (
    HtkMatrix,
    SparseMatrix,
    SparseVector,
    Wave,
    compress,
    find_holder,
)

F4 = np.float32


class Case(NamedTuple):
    holder: str
    value: Any
    binary: bytes | None
    text: bytes | None
    shape: tuple[int, ...]


def i32(*numbers: int) -> bytes:
    return b"".join(b"\4" + struct.pack("<i", number) for number in numbers)


def f32(*numbers: float) -> bytes:
    return struct.pack(f"<{len(numbers)}f", *numbers)


def f64(*numbers: float) -> bytes:
    return struct.pack(f"<{len(numbers)}d", *numbers)


def riff(data: bytes, *, channels: int = 1, rate: int = 8000, size: int | None = None) -> bytes:
    form = struct.pack("<HHIIHH", 1, channels, rate, rate * 2 * channels, 2 * channels, 16)
    size = len(data) if size is None else size
    head = b"RIFF" + struct.pack("<I", 36 + size) + b"WAVEfmt " + struct.pack("<I", 16)
    return head + form + b"data" + struct.pack("<I", size) + data


SPARSE = SparseVector(5, [0, 3], [0.5, 1.5])  # type: ignore[arg-type]
SV = b"SV " + i32(5, 2) + b"\4\0\0\0\0\4" + f32(0.5) + b"\4\3\0\0\0\4" + f32(1.5)
EMPTY_ROW = SparseVector(5, [], [])  # type: ignore[arg-type]
NPY = (
    b"\x93NUMPY\1\0v\0"
    + b"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }".ljust(117)
    + b"\n"
    + f32(1, 2)
)
B = b"\0B"

CASES = [
    Case("int32", 5, B + i32(5), b"5 \n", ()),
    Case("int32", -7, B + i32(-7), b"-7 \n", ()),
    Case("int8", -1, B + b"\1\xff", b"-1 \n", ()),
    Case("uint8", 255, B + b"\xff\xff", b"255 \n", ()),
    Case("int16", -2, B + b"\2\xfe\xff", b"-2 \n", ()),
    Case("uint16", 65535, B + b"\xfe\xff\xff", b"65535 \n", ()),
    Case("uint32", 1 << 31, B + b"\xfc\0\0\0\x80", b"2147483648 \n", ()),
    Case("int64", -1, B + b"\x08" + b"\xff" * 8, b"-1 \n", ()),
    Case("uint64", 1 << 63, B + b"\xf8" + b"\0" * 7 + b"\x80", b"9223372036854775808 \n", ()),
    Case("float", 0.5, B + b"\4" + f32(0.5), b"0.5 \n", ()),
    Case("double", 0.125, B + b"\x08" + f64(0.125), b"0.125 \n", ()),
    Case("bool", bool(1), B + b"T", b"T \n", ()),
    Case("bool", bool(0), B + b"F", b"F \n", ()),
    Case("token", "a-b", b"a-b\n", b"a-b\n", ()),
    Case("token-vector", ["a", "b"], b"a b \n", b"a b \n", (2,)),
    Case("token-vector", [], b"\n", b"\n", (0,)),
    Case("int32-vector", np.array([1, -2, 3], "i4"), B + i32(3, 1, -2, 3), b"1 -2 3 \n", (3,)),
    Case("int32-vector", np.array([], "i4"), B + i32(0), b"\n", (0,)),
    Case("int8-vector", np.array([1, -2], "i1"), B + i32(2) + b"\1\1\1\xfe", b"1 -2 \n", (2,)),
    Case("uint16-vector", np.array([7], "u2"), B + i32(1) + b"\xfe\7\0", b"7 \n", (1,)),
    Case("int64-vector", np.array([7], "i8"), B + i32(1) + b"\x08\7" + b"\0" * 7, b"7 \n", (1,)),
    Case(
        "int32-vector-vector",
        [[1, 2], [], [3]],
        B + i32(3, 2, 1, 2, 0, 1, 3),
        b"1 2 ; ; 3 ; \n",
        (3,),
    ),
    Case("int32-vector-vector", [], B + i32(0), b"\n", (0,)),
    Case("int32-vector-vector", [[]], B + i32(1, 0), b"; \n", (1,)),
    Case("int32-vector-vector", [list(range(40))], None, None, (1,)),
    Case("int64-vector-vector", [[1]], B + i32(1, 1) + b"\x08\1" + b"\0" * 7, b"1 ; \n", (1,)),
    Case("int32-pair-vector", [(1, 2), (3, 4)], B + i32(2, 1, 2, 3, 4), b"1 2 ; 3 4 \n", (2,)),
    Case("int32-pair-vector", [], B + i32(0), b"\n", (0,)),
    Case(
        "float-pair-vector", [(0.5, 2.0)], B + i32(1) + b"\4" + f32(0.5) + b"\4" + f32(2), b"0.5 2 \n", (1,)
    ),
    Case(
        "vector",
        np.array([0.5, 2, -3.5], F4),
        B + b"FV " + i32(3) + f32(0.5, 2, -3.5),
        b" [ 0.5 2 -3.5 ]\n",
        (3,),
    ),
    Case("vector", np.array([], F4), B + b"FV " + i32(0), b" [ ]\n", (0,)),
    Case("double-vector", np.array([0.5]), B + b"DV " + i32(1) + f64(0.5), b" [ 0.5 ]\n", (1,)),
    Case(
        "matrix",
        np.array([[1, 2.5], [-3, 4]], F4),
        B + b"FM " + i32(2, 2) + f32(1, 2.5, -3, 4),
        b" [\n  1 2.5 \n  -3 4 ]\n",
        (2, 2),
    ),
    Case("matrix", np.zeros((0, 0), F4), B + b"FM " + i32(0, 0), b" [ ]\n", (0, 0)),
    Case("double-matrix", np.array([[0.5]]), B + b"DM " + i32(1, 1) + f64(0.5), b" [\n  0.5 ]\n", (1, 1)),
    Case("sparse-vector", SPARSE, B + SV, b"dim=5 [ 0 0.5 3 1.5 ] ", (5,)),
    Case(
        "sparse-matrix",
        SparseMatrix((SPARSE, EMPTY_ROW)),
        B + b"SM " + i32(2) + SV + b"SV " + i32(5, 0),
        b"rows=2 dim=5 [ 0 0.5 3 1.5 ] dim=5 [ ] \n",
        (2, 5),
    ),
    Case(
        "general-matrix", np.array([[1.5]], F4), B + b"FM " + i32(1, 1) + f32(1.5), b" [\n  1.5 ]\n", (1, 1)
    ),
    Case(
        "general-matrix",
        SparseMatrix((SPARSE,)),
        B + b"SM " + i32(1) + SV,
        b"rows=1 dim=5 [ 0 0.5 3 1.5 ] \n",
        (1, 5),
    ),
    Case(
        "general-matrix",
        compress([[0.0, 255.0]], method=6),
        B + b"CM3 " + f32(0, 255) + struct.pack("<ii", 1, 2) + b"\0\xff",
        None,
        (1, 2),
    ),
    Case(
        "posterior",
        [[(1, 0.5), (2, 0.25)], [], [(3, 1.0)]],
        B + i32(3, 2, 1) + b"\4" + f32(0.5) + i32(2) + b"\4" + f32(0.25) + i32(0, 1, 3) + b"\4" + f32(1),
        b"[ 1 0.5 2 0.25 ] [ ] [ 3 1 ] \n",
        (3,),
    ),
    Case("posterior", [[(n, 0.5) for n in range(100)]], None, None, (1,)),
    Case("posterior", [], B + i32(0), b"\n", (0,)),
    Case(
        "gauss-posterior",
        [[(1, np.array([0.5, 2, -3.5], F4))], []],
        B + i32(2, 1, 1) + b"FV " + i32(3) + f32(0.5, 2, -3.5) + i32(0),
        b"2 1 1  [ 0.5 2 -3.5 ]\n0 \n",
        (2,),
    ),
    Case(
        "packed-matrix", np.array([1, 2, 3], F4), B + b"FP " + i32(2) + f32(1, 2, 3), b"[\n1 \n2 3 ]\n", (3,)
    ),
    Case("packed-matrix", np.array([], F4), B + b"FP " + i32(0), b"[ ]\n", (0,)),
    Case(
        "sp-matrix",
        np.array([[1, 2], [2, 3]], F4),
        B + b"FP " + i32(2) + f32(1, 2, 3),
        b"[\n1 \n2 3 ]\n",
        (2, 2),
    ),
    Case(
        "tp-matrix",
        np.array([[1, 0], [2, 3]], F4),
        B + b"FP " + i32(2) + f32(1, 2, 3),
        b"[\n1 \n2 3 ]\n",
        (2, 2),
    ),
    Case("double-sp-matrix", np.array([[0.5]]), B + b"DP " + i32(1) + f64(0.5), b"[\n0.5 ]\n", (1, 1)),
    Case(
        "htk-matrix",
        HtkMatrix(np.array([[1, 2.5]], F4), 100_000, 9),
        struct.pack(">iihh", 1, 100_000, 8, 9) + struct.pack(">2f", 1, 2.5),
        None,
        (1, 2),
    ),
    Case(
        "sphinx-matrix",
        np.arange(13, dtype=F4).reshape(1, 13),
        struct.pack(">i13f", 13, *range(13)),
        None,
        (1, 13),
    ),
    Case(
        "wave",
        Wave(8000, np.array([[1, -2], [3, 4]], F4)),
        riff(struct.pack("<4h", 1, 3, -2, 4), channels=2),
        None,
        (2, 2),
    ),
    Case("blob", b"abc", B + b"\x14\x11\x22\x20" + (3).to_bytes(8, "little") + b"abc", None, (3,)),
    Case("numpy-array", np.array([1, 2], F4), B + NPY, None, (2,)),
]

TABLE_CASES = CASES if ALL else [*{case.holder: case for case in reversed(CASES)}.values()][::-1]
"""Of each holder a value, or all: what reads and writes tables does the same with any value of a holder."""
TABLE_IDS = [f"{number}-{case.holder}" for number, case in enumerate(TABLE_CASES)]


def dumped(holder: object, value: Any, *, binary: bool = True, **options: Any) -> bytes:
    file = io.BytesIO()
    find_holder(holder, **options).write(file, value, binary=binary)
    return file.getvalue()


class Pipe(io.RawIOBase):
    """Bytes that come in pieces of at most 7, from a file that cannot seek."""

    def __init__(self, data: bytes) -> None:
        self._inner = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self._inner.read(min(len(buffer), 7))
        buffer[: len(part)] = part
        return len(part)


def cursors(data: bytes) -> list[Cursor]:
    """Every way to read the same bytes."""
    return [
        MemoryCursor(data, name="table", key="k"),
        MemoryCursor(bytearray(data), name="table", key="k"),  # as a memory map: without a fast search
        FileCursor(io.BytesIO(data), name="table", key="k"),
        FileCursor(io.BufferedReader(Pipe(data)), name="table", key="k"),
    ]


def plain(value: Any) -> Any:
    """A value as something that == compares."""
    if isinstance(value, np.ndarray):
        return ("array", value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if dataclasses.is_dataclass(value):
        return [
            type(value).__name__,
            *(plain(getattr(value, each.name)) for each in dataclasses.fields(value)),
        ]
    return value
