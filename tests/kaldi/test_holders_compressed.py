"""Compressed matrices: decoding against a second decoder, encoding by each method, parts."""

from __future__ import annotations

import itertools
import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.kaldi.holder_cases import cursors, dumped, f32
from tests.thrift import sample

from seekable.errors import CorruptObject, InvalidArgument, WrongType
from seekable.formats.kaldi.cursor import MemoryCursor
from seekable.formats.kaldi.holders.compressed_matrix import compressed_bytes
from seekable.kaldi import compress, find_holder, parse_range

if TYPE_CHECKING:
    from numpy.typing import NDArray

METHODS = range(1, 8)


def decoded_slowly(raw: bytes) -> NDArray[np.float32]:
    """The values of a compressed matrix, one by one, in the precision of each step in C++."""
    token, rest = raw[2:].split(b" ", 1)
    least, span, rows, columns = struct.unpack_from("<ffii", rest)
    f4, f8 = np.float32, np.float64
    codes = rest[16:]
    out = np.empty((rows, columns), f4)
    for row in range(rows):
        for column in range(columns):
            if token == b"CM":
                heads = struct.unpack_from("<4H", codes, 8 * column)
                p0, p25, p75, p100 = (
                    f4(least) + (f4(span) * f4(1.52590218966964e-05)) * f4(h) for h in heads
                )
                code = codes[8 * columns + column * rows + row]
                start, width, past, steps = p75, p100 - p75, code - 192, 63.0
                if code <= 64:
                    start, width, past, steps = p0, p25 - p0, code, 64.0
                elif code <= 192:
                    start, width, past, steps = p25, p75 - p25, code - 64, 128.0
                out[row, column] = f4(f8(start) + f8(width * f4(past)) * (1 / steps))
            else:
                place = row * columns + column
                most = 65535.0 if token == b"CM2" else 255.0
                code = struct.unpack_from("<H", codes, 2 * place)[0] if token == b"CM2" else codes[place]
                out[row, column] = f4(least) + f4(code) * f4(float(f4(span)) * (1.0 / most))
    return out


def matrices() -> list[NDArray[np.float32]]:
    rng = np.random.default_rng(5)
    shapes = [(1, 1), (2, 3), (3, 2), (4, 2), (5, 2), (8, 3), (9, 3), (23, 4)]
    return [
        *(rng.normal(size=shape).astype("f4") for shape in shapes),
        np.full((9, 2), 3.5, "f4"),
        np.zeros((9, 2), "f4"),
        (1e6 + rng.normal(size=(12, 3))).astype("f4"),
        rng.integers(-40000, 40000, (12, 3)).astype("f4"),
    ]


@pytest.mark.parametrize("method", METHODS)
def test_what_is_encoded_is_decoded_bit_by_bit_as_in_c(method: int) -> None:
    for matrix in matrices():
        raw = dumped("compressed-matrix", matrix, method=method)
        for cursor in cursors(raw):
            found = find_holder("matrix").read(cursor)
            assert found.dtype == np.float32
            assert found.tobytes() == decoded_slowly(raw).tobytes()


def test_the_method_decides_the_form() -> None:
    few, many = np.eye(8, dtype="f4"), np.eye(9, dtype="f4")
    tokens = [dumped("compressed-matrix", many, method=m)[2:6] for m in METHODS]
    assert tokens == [b"CM \0", b"CM \0", b"CM2 ", b"CM2 ", b"CM3 ", b"CM3 ", b"CM3 "]
    assert dumped("compressed-matrix", few, method=1)[2:6] == b"CM2 "


def test_codes_made_by_hand() -> None:
    matrix = compress([[0.0, 0.5], [1.0, 2.0]], method=7)
    assert compressed_bytes(matrix) == b"CM3 " + f32(0, 1) + struct.pack("<ii", 2, 2) + bytes(
        [0, 127, 255, 255]
    )
    matrix = compress([[-40000.0, 40000.0]], method=4)
    assert matrix.codes.tolist() == [[0, 65535]]  # clamped, never wrapped around
    column = compress([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0], [8.0]], method=2)
    assert column.heads.tolist() == [[0, 16384, 49151, 65535]]
    assert column.codes.tolist() == [[0, 32, 64, 96, 128, 160, 192, 224, 255]]


def test_values_stay_close() -> None:
    matrix = np.random.default_rng(1).normal(size=(100, 5)).astype("f4")
    for method, error in ((2, 0.1), (3, 1e-4), (5, 0.02)):
        assert np.abs(compress(matrix, method).decode() - matrix).max() < error


def test_an_empty_matrix_takes_16_bytes_and_four_more_of_kaldi_are_skipped() -> None:
    raw = dumped("compressed-matrix", np.zeros((0, 0)))
    assert raw == b"\0BCM " + bytes(16)
    for after in (b"key2 x", b"\0\0\0\0key2 x", b""):
        for name in ("matrix", "compressed-matrix", "general-matrix"):
            for action in ("read", "skip", "shape"):
                for cursor in cursors(raw + after):
                    getattr(find_holder(name), action)(cursor)
                    assert cursor.read() == after.lstrip(b"\0")
    with pytest.raises(CorruptObject, match="four null bytes"):
        find_holder("matrix").read(MemoryCursor(raw + b"\0\0k"))


def test_what_cannot_be_compressed_is_refused() -> None:
    for value in ([[np.inf]], [[np.nan, 1.0]], [[-3e38, 3e38]]):
        with pytest.raises(InvalidArgument, match="finite"):
            compress(value)
    with pytest.raises(InvalidArgument, match="two dimensions"):
        compress([1.0, 2.0])
    with pytest.raises(InvalidArgument, match="method must be in 1 to 7"):
        find_holder("compressed-matrix", method=8)
    with pytest.raises(WrongType, match="method"):
        find_holder("compressed-matrix", method="kAutomatic")


RANGES = [
    ("[0:3]", slice(0, 4), slice(None)),
    ("[2:4,1:2]", slice(2, 5), slice(1, 3)),
    ("[,1:1]", slice(None), slice(1, 2)),
    ("[:,0:0]", slice(None), slice(0, 1)),
    ("[:]", slice(None), slice(None)),
    ("11:11", slice(11, 12), slice(None)),
]
RANGE_CASES = [
    (holder, form, *cut)
    for holder, form, cut in sample(
        itertools.product(
            ["matrix", "compressed-matrix", "general-matrix", "double-matrix"],
            ["FM", "DM", "text", "CM", "CM2", "CM3"],
            RANGES,
        ),
        of=len(RANGES) - 1,
    )
]


@pytest.mark.parametrize(("holder", "form", "text", "rows", "columns"), RANGE_CASES)
def test_a_range_is_that_part(holder: str, form: str, text: str, rows: slice, columns: slice) -> None:
    matrix = np.random.default_rng(2).normal(size=(12, 3))
    raw = {
        "FM": lambda: dumped("matrix", matrix.astype("f4")),
        "DM": lambda: dumped("double-matrix", matrix),
        "text": lambda: dumped("matrix", matrix.astype("f4"), binary=False, precision=9),
        "CM": lambda: dumped("compressed-matrix", matrix.astype("f4"), method=2),
        "CM2": lambda: dumped("compressed-matrix", matrix.astype("f4"), method=3),
        "CM3": lambda: dumped("compressed-matrix", matrix.astype("f4"), method=5),
    }[form]()
    whole = find_holder("double-matrix" if holder == "double-matrix" else "matrix").read(MemoryCursor(raw))
    for cursor in cursors(raw + b"next"):
        part = find_holder(holder).read_range(cursor, parse_range(text))  # type: ignore[attr-defined]
        assert np.array_equal(part, whole[rows, columns])
        assert cursor.read() == b"next"
