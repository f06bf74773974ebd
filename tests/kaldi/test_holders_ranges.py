"""Ranges: their text, their tolerance, and that only the bytes of the part are touched."""

from __future__ import annotations

import os
import struct
import tracemalloc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.kaldi.holder_cases import cursors, dumped

from seekable.errors import CorruptObject, InvalidArgument, KaldiWarning, WrongType
from seekable.formats.kaldi.cursor import MemoryCursor
from seekable.kaldi import SparseMatrix, SparseVector, SupportsRange, find_holder, parse_range, read

if TYPE_CHECKING:
    from pathlib import Path

BAD = [
    "",
    "[]",
    "1:",
    ":3",
    "1",
    "3:2",
    "-1:2",
    "0:1,",
    ",",
    "0:1,2:3,4:5",
    "a:b",
    "0:1,:2",
    "1:2:3",
    "[0:1",
    "0 :1",
]


@pytest.mark.parametrize("text", BAD)
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="range"):
        parse_range(text)


def test_a_range_is_a_text() -> None:
    with pytest.raises(WrongType, match="a range must be a str"):
        parse_range(5)  # type: ignore[arg-type]


def read_part(holder: str, raw: bytes, text: str) -> Any:
    found = find_holder(holder)
    assert isinstance(found, SupportsRange)
    return found.read_range(MemoryCursor(raw, name="a.ark"), parse_range(text))


def test_rows_may_end_up_to_two_behind_the_last_one() -> None:
    raw = dumped("matrix", np.ones((10, 2)))
    for last in (10, 11, 12):
        with pytest.warns(KaldiWarning, match=f"a.ark: the range .0:{last}. was clipped to the 10 rows"):
            assert np.shape(read_part("matrix", raw, f"[0:{last}]")) == (10, 2)
    for text in ("[0:13]", "[10:10]", "[10:12]", "[99:100]"):
        with pytest.raises(InvalidArgument, match="must lie in the 10 rows"):
            read_part("matrix", raw, text)
    with pytest.raises(InvalidArgument, match="must lie in the 2 columns"):
        read_part("matrix", raw, "[,0:2]")


def test_vectors_have_one_range() -> None:
    for binary in (True, False):
        raw = dumped("vector", [0.0, 1, 2, 3, 4], binary=binary)
        assert np.asarray(read_part("vector", raw, "[1:2]")).tolist() == [1, 2]
        for text in ("[0:1,0:1]", "[0:1,:]", "[,0:1]"):
            with pytest.raises(InvalidArgument, match="one part"):
                read_part("vector", raw, text)
    assert read_part("blob", dumped("blob", b"abcdef"), "[2:3]") == b"cd"


def test_sparse_matrices_have_ranges_too() -> None:
    rows = tuple(SparseVector(4, [i, 3], [1.0, 2.0]) for i in range(3))  # type: ignore[arg-type]
    matrix = SparseMatrix(rows)
    for holder in ("sparse-matrix", "general-matrix"):
        for cursor in cursors(dumped(holder, matrix)):
            found = find_holder(holder)
            assert isinstance(found, SupportsRange)
            part = found.read_range(cursor, parse_range("[1:2,1:3]"))
            assert part.toarray().tolist() == matrix.toarray()[1:3, 1:4].tolist()


@pytest.mark.parametrize("method", [None, 2, 3, 5])
def test_only_the_bytes_of_the_part_are_touched(method: int | None) -> None:
    matrix = np.random.default_rng(0).normal(size=(200, 20)).astype("f4")
    raw = dumped("matrix", matrix) if method is None else dumped("compressed-matrix", matrix, method=method)
    whole = find_holder("matrix").read(MemoryCursor(raw))
    taken: list[int] = []

    class Watched(MemoryCursor):  # type: ignore[misc]
        def array(self, dtype: Any, count: int, what: str, *, behind: int = 0) -> Any:
            taken.append(np.dtype(dtype).itemsize * count)
            return super().array(dtype, count, what, behind=behind)

    holder = find_holder("matrix")
    assert isinstance(holder, SupportsRange)
    part = holder.read_range(Watched(raw), parse_range("[50:53,2:3]"))
    assert np.array_equal(part, whole[50:54, 2:4])
    # By rows, 4 of 200 rows; by columns (method 2), the heads and 2 of 20 columns.
    assert sum(taken) <= len(raw) * (0.2 if method == 2 else 0.03)


@pytest.mark.parametrize(("block_bytes", "long_bytes"), [(1 << 20, 1 << 16), (200, 1 << 16), (1, 1)])
@pytest.mark.parametrize("method", [None, 2, 3, 5])
def test_parts_are_the_same_however_they_are_read(
    block_bytes: int, long_bytes: int, method: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seekable.formats.kaldi.holders.script_ranges._BLOCK_BYTES", block_bytes)
    monkeypatch.setattr("seekable.formats.kaldi.holders.script_ranges._LONG_BYTES", long_bytes)
    values = np.arange(240, dtype=np.float32).reshape(24, 10)
    options: dict[str, Any] = {} if method is None else {"method": method}
    raw = dumped("matrix" if method is None else "compressed-matrix", values, **options)
    holder = find_holder("matrix")
    assert isinstance(holder, SupportsRange)
    whole = holder.read(MemoryCursor(raw))
    for text, rows, columns in (
        ("[,2:3]", slice(0, 24), slice(2, 4)),
        ("[3:20,0:4]", slice(3, 21), slice(0, 5)),
        ("[0:22,9:9]", slice(0, 23), slice(9, 10)),
        ("[5:5]", slice(5, 6), slice(0, 10)),
    ):
        for cursor in cursors(raw + b"rest"):
            np.testing.assert_array_equal(holder.read_range(cursor, parse_range(text)), whole[rows, columns])
            assert bytes(cursor.take(4, "the rest")) == b"rest"
        for cursor in cursors(raw[:-1]):
            with pytest.raises(CorruptObject):
                holder.read_range(cursor, parse_range(text))


def test_some_columns_of_a_large_matrix_need_little_memory(tmp_path: Path) -> None:
    head = b"\0BFM \4" + struct.pack("<iBi", 100_000, 4, 400)
    (tmp_path / "a.mat").write_bytes(head)
    os.truncate(tmp_path / "a.mat", len(head) + 160_000_000)  # A hole.
    tracemalloc.start()
    try:
        assert read(f"{tmp_path}/a.mat[,2:3]", "matrix").shape == (100_000, 2)
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()
