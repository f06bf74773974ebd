"""Lists of lists and posteriors that are larger than what is looked at first, and text in other forms."""

from __future__ import annotations

import random
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.kaldi.holder_cases import cursors, dumped, i32

from seekable.errors import CorruptObject, InvalidArgument, WrongType
from seekable.formats.kaldi.cursor import MemoryCursor
from seekable.formats.kaldi.holders import basic_values, posteriors
from seekable.kaldi import SequentialReader, find_holder

if TYPE_CHECKING:
    from pathlib import Path

RNG = random.Random(3)
inf, nan = float("inf"), float("nan")


def lists(count: int, most: int) -> list[list[int]]:
    return [[RNG.randrange(-(1 << 31), 1 << 31) for _ in range(RNG.randrange(most))] for _ in range(count)]


def frames(count: int, most: int) -> list[list[tuple[int, float]]]:
    return [
        [(RNG.randrange(9000), RNG.randrange(1 << 20) / 1024) for _ in range(RNG.randrange(most))]
        for _ in range(count)
    ]


def vectors_slowly(value: list[list[int]]) -> bytes:
    return b"\0B" + i32(len(value)) + b"".join(i32(len(each), *each) for each in value)


def posterior_slowly(value: list[list[tuple[int, float]]], form: str = "<Bf") -> bytes:
    pair = b"".join
    mark = struct.calcsize(form) - 1
    body = (i32(len(f)) + pair(i32(i) + struct.pack(form, mark, w) for i, w in f) for f in value)
    return b"\0B" + i32(len(value)) + b"".join(body)


@pytest.mark.parametrize(("count", "most"), [(1, 3), (300, 4), (2000, 9), (3, 9000)])
def test_long_lists_are_the_bytes_that_they_are_one_by_one(count: int, most: int) -> None:
    for name, value, raw in (
        ("int32-vector-vector", vectors := lists(count, most), vectors_slowly(vectors)),
        ("posterior", posterior := frames(count, most), posterior_slowly(posterior)),
    ):
        assert dumped(name, value) == raw
        holder = find_holder(name)
        for data in (raw + b"key \0B", dumped(name, value, binary=False, precision=9)):
            for cursor in cursors(data)[:3]:
                assert holder.read(cursor) == value
        assert holder.shape(MemoryCursor(raw)) == (count,)


def test_weights_in_double_precision_are_read_too() -> None:
    value = frames(20, 4)
    for cursor in cursors(posterior_slowly(value, "<Bd")):
        assert find_holder("posterior").read(cursor) == value


@pytest.mark.parametrize("name", ["int32-vector-vector", "posterior"])
def test_a_wrong_byte_anywhere_is_found(name: str) -> None:
    value: Any = lists(4, 3) if name != "posterior" else frames(4, 3)
    raw, holder = dumped(name, value), find_holder(name)
    for at in range(0, len(raw) - 2, 5):  # each mark
        damaged = raw[: 2 + at] + b"\5" + raw[3 + at :]
        for cursor in cursors(damaged)[:1]:
            with pytest.raises(CorruptObject, match="table"):
                holder.read(cursor)
    for size in (-1, -(1 << 31), (1 << 31) - 1):
        for data in (b"\0B" + i32(size), b"\0B" + i32(2, size, 1, 2)):
            with pytest.raises(CorruptObject, match="byte"):
                holder.read(MemoryCursor(data))


def test_no_more_is_looked_at_than_what_is_good(monkeypatch: pytest.MonkeyPatch) -> None:
    """A size that is wrong does not make the reader copy the rest of a large archive."""
    asked: list[int] = []
    ahead = MemoryCursor.ahead

    def watched(cursor: MemoryCursor, count: int) -> bytes:
        asked.append(count)
        return ahead(cursor, count)

    monkeypatch.setattr(MemoryCursor, "ahead", watched)
    huge = b"\0B" + i32((1 << 31) - 1, 5) + bytes(10 << 20)
    for name in ("int32-vector-vector", "int32-vector"):
        with pytest.raises(CorruptObject):
            find_holder(name).read(MemoryCursor(huge))
    with pytest.raises(CorruptObject):
        find_holder("posterior").read(MemoryCursor(b"\0B" + i32(10_000_000, 5) + bytes(10 << 20)))
    assert max(asked) <= 2 * 5 * basic_values._FIRST_RECORDS


def test_long_posteriors_of_files_are_read_as_whole_arrays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = frames(9000, 4)
    (tmp_path / "a.ark").write_bytes(b"k " + posterior_slowly(value))
    monkeypatch.setattr(posteriors, "_read_frame", None)
    with SequentialReader(f"ark:{tmp_path}/a.ark", "posterior") as reader:
        assert reader.value == value


def test_numbers_of_numpy_and_bad_ones_take_the_careful_way() -> None:
    whole = [[np.int64(1), 2], np.array([3], "i8"), ()]
    assert dumped("int32-vector-vector", whole) == vectors_slowly([[1, 2], [3], []])
    assert dumped("int32-vector-vector", whole, binary=False) == b"1 2 ; 3 ; ; \n"
    assert dumped("int8-vector-vector", whole) == b"\0B" + i32(3, 2) + b"\1\1\1\2" + i32(1) + b"\1\3" + i32(0)
    assert dumped("posterior", [((np.int32(1), np.float32(0.5)),), iter([])]) == posterior_slowly(
        [[(1, 0.5)], []]
    )
    for name, value in (
        ("int32-vector-vector", [[1, 1 << 31]]),
        ("int32-pair-vector", [(1, 1 << 31)]),
        ("int32-pair-vector", [(1, 2, 3)]),
        ("posterior", [[(1, 1e39)]]),
        ("posterior", [[(1 << 31, 1.0)]]),
        ("posterior", [[(1, 1.0, 2)]]),
    ):
        with pytest.raises(InvalidArgument):
            dumped(name, value)
    for name, wrong in (
        ("int32-vector-vector", [[1.5]]),
        ("int32-vector-vector", ["ab"]),
        ("posterior", [[(True, 1.0)]]),
        ("posterior", [[(1.5, 1.0)]]),
        ("posterior", [[(1, "x")]]),
    ):
        with pytest.raises(WrongType):
            dumped(name, wrong)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("int32-vector-vector", " 1  2 ;; -0 ;\n", [[1, 2], [], [0]]),
        ("int32-vector-vector", "007 ; ; \n", [[7], []]),
        ("int64-vector-vector", "9223372036854775807 ; \n", [[(1 << 63) - 1]]),
        ("uint64-vector-vector", "18446744073709551615 ; \n", [[(1 << 64) - 1]]),
        ("int32-pair-vector", "1 2;3 4\n", [(1, 2), (3, 4)]),
        ("float-pair-vector", "0.1 -0 ; .5 inf\n", [(float(np.float32(0.1)), 0.0), (0.5, float("inf"))]),
        ("posterior", "[ 1 .5 ][ ]\n", [[(1, 0.5)], []]),
        ("posterior", "[ 1 1e-3 2 -inf ] \n", [[(1, float(np.float32(1e-3))), (2, -float("inf"))]]),
    ],
)
def test_text_that_kaldi_does_not_write_is_read_too(name: str, text: str, value: Any) -> None:
    for cursor in cursors(text.encode() + b"next"):
        assert find_holder(name).read(cursor) == value
        assert cursor.read() == b"next"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("int32-vector-vector", "1] [2 ;\n"),
        ("int32-vector-vector", "1,2 ;\n"),
        ("int32-vector-vector", "1 2147483648 ;\n"),
        ("int32-vector-vector", "1.0 ;\n"),
        ("uint8-vector-vector", "256 ;\n"),
        ("int32-pair-vector", "1 2 ; 3 4 ; \n"),
        ("float-pair-vector", "1 1e39\n"),
        ("float-pair-vector", "1 2 3\n"),
        ("posterior", "[ 1 0.5 ] ]\n"),
        ("posterior", "[ [ 1 0.5 ] ]\n"),
        ("posterior", "[ 1.0 0.5 ]\n"),
        ("posterior", "[ 1 0.5 2 ]\n"),
        ("posterior", "[ 1 1e39 ]\n"),
        ("posterior", "[ 2147483648 1 ]\n"),
    ],
)
def test_text_that_is_none_is_refused(name: str, text: str) -> None:
    for cursor in cursors(text.encode()):
        with pytest.raises(CorruptObject, match="byte"):
            find_holder(name).read(cursor)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_numbers_are_written_with_the_digits_of_printf(dtype: str) -> None:
    rng = np.random.default_rng(7)
    some = [
        rng.normal(size=(3, 700)) * 10.0 ** rng.integers(-7, 10, (3, 1)),
        np.round(rng.normal(size=(40, 50)) * 100),
        (rng.integers(0, 10**8, (20, 50)) + 0.5) * 10.0 ** -rng.integers(0, 10, (20, 50)),  # ties
        10.0 ** rng.integers(-8, 12, (20, 50)) * (1 + rng.normal(size=(20, 50)) * 1e-7),
        np.array([[0.0, -0.0, nan, inf, -inf, 1e-4, 9.9999999e-5, 9999999.5, 9999999.4, 99999995.0, 1e300]]),
        rng.integers(0, 1 << 32, (20, 50), dtype="u4").view("f4"),
    ]
    for values in some:
        with np.errstate(all="ignore"):
            matrix = values.astype(dtype)
        for precision in (1, 7, 9, 10, 17):
            form = f"%.{precision}g " * matrix.shape[1]
            wanted = "\n  ".join(form % tuple(row.tolist()) for row in matrix)
            name = "matrix" if dtype == "f4" else "double-matrix"
            assert dumped(name, matrix, binary=False, precision=precision) == f" [\n  {wanted}]\n".encode()
