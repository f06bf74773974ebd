"""The grammar of text: what Kaldi reads and refuses, and infinities and Windows line ends."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from tests.kaldi.holder_cases import cursors, dumped

from seekable.errors import CorruptObject, InvalidArgument, WrongType
from seekable.kaldi import find_holder

inf, nan = float("inf"), float("nan")

VECTORS = {
    "[ 1 2.5 ]\n": [1, 2.5],
    "\n\t [ 1 2.5 ]\r\n": [1, 2.5],
    "[ 1 2]": [1, 2],
    "[]": [],
    "[ ]\n": [],
    "[ 1\t2  3 ]\n": [1, 2, 3],
    "[ -1 1e3 1E-2 5. -.5 007 ]\n": [-1, 1000, 0.01, 5, -0.5, 7],
    "[ inf -inf Infinity -INFINITY nan NaN -nan ]\n": [inf, -inf, inf, -inf, nan, nan, nan],
    "[ 1 inf]\n": [1, inf],
}
BAD_VECTORS = [
    *(
        "1 2 ]",
        "[ 1 2",
        "[ 1 x ]",
        "[ +1.5 ]",
        "[ 0x10 ]",
        "[ 1,2 ]",
        "[ .5 ]",
        "[ 1\n2 ]",
        "[ 1\r\n 2 ]",
        "[ 1_0 ]",
    ),
    *(
        "[ 1e39 ]",
        "[ true ]",
        "[ null ]",
        '[ "1" ]',
        "[ [ 1 ]",
        "a10 [ 1 ]",
        "[x]",
        "[1 2 ]",
        "[ infinit ]",
        "[ - ]",
        "[ 1e ]",
    ),
]
MATRICES = {
    "[\n 1 2\n 3 4 ]\n": [[1, 2], [3, 4]],
    "[ 1 2 ; 3 4 ]": [[1, 2], [3, 4]],
    "[ 1 2\r\n3 4\r\n]\r\n": [[1, 2], [3, 4]],
    "[ 1 2 ]\n": [[1, 2]],
    "[\n\n1\n\n2\n;\n]": [[1], [2]],
    "[ 1  2\n3\t4 ]": [[1, 2], [3, 4]],
    "[ -inf inf\n nan 1 ]": [[-inf, inf], [nan, 1]],
    "[ 0.3333333 1e-07 -1e+30 ]\n": [[0.3333333, 1e-07, -1e30]],
}
BAD_MATRICES = [
    "[ 1 2\n3 ]",
    "[ 1 2 ; 3 ]",
    "[ 1 a ]",
    "[ 1,2 ]",
    "[ 1 inf\n 2 ]",
    "1 2\n",
    "[\n1 2\n",
    "[ 1 [ 2 ]",
]


@pytest.mark.parametrize("text", VECTORS)
def test_a_vector_that_kaldi_reads(text: str) -> None:
    for name, dtype in (("vector", "f4"), ("double-vector", "f8")):
        for cursor in cursors(text.encode() + b"next"):
            assert np.array_equal(
                find_holder(name).read(cursor), np.array(VECTORS[text], dtype), equal_nan=True
            )
            assert cursor.read() == b"next"


@pytest.mark.parametrize("text", BAD_VECTORS)
def test_a_vector_that_kaldi_refuses(text: str) -> None:
    for cursor in cursors(text.encode()):
        with pytest.raises(CorruptObject, match=r"table \(key 'k'\): byte \d+: expected"):
            find_holder("vector").read(cursor)


@pytest.mark.parametrize("text", MATRICES)
def test_a_matrix_that_kaldi_reads(text: str) -> None:
    for name, dtype in (("matrix", "f4"), ("double-matrix", "f8")):
        for cursor in cursors(text.encode() + b"next"):
            assert np.array_equal(
                find_holder(name).read(cursor), np.array(MATRICES[text], dtype), equal_nan=True
            )
            assert cursor.read() == b"next"


@pytest.mark.parametrize("text", BAD_MATRICES)
def test_a_matrix_that_kaldi_refuses(text: str) -> None:
    for cursor in cursors(text.encode()):
        with pytest.raises(CorruptObject, match="byte"):
            find_holder("matrix").read(cursor)


def test_an_error_names_the_byte_of_the_word() -> None:
    for cursor in cursors(b" [\n 1 2\n 3 x4 ]\n"):
        with pytest.raises(CorruptObject, match="byte 11: expected a number of type float, found 'x4'"):
            find_holder("matrix").read(cursor)
    for cursor in cursors(b" [\n 1 2\n 3 ]\n"):
        with pytest.raises(
            CorruptObject, match="expected 2 numbers in each row, as in row 0, found 1 in row 1"
        ):
            find_holder("matrix").read(cursor)
    for cursor in cursors(b"a10 \0BFM "):
        with pytest.raises(CorruptObject, match=r"found 'a10' .an archive is read by ark:"):
            find_holder("matrix").read(cursor)


LINES: dict[str, dict[str, Any]] = {
    "int32": {"5\n": 5, "  5 \n": 5, "+5 \r\n": 5, "-2147483648\n": -2147483648},
    "double": {"0.1 \n": 0.1, "inf\n": inf, "-inf \n": -inf, "+1.5\n": 1.5, ".5\n": 0.5},
    "bool": {"T\n": True, "F \n": False, " T\r\n": True},
    "token": {"a\n": "a", "  a-é \r\n": "a-é"},
    "token-vector": {"a  b\tc\r\n": ["a", "b", "c"], "\n": [], "a b": ["a", "b"], "\fa\vb\n": ["a", "b"]},
    "int32-vector-vector": {"1 2;3;;\n": [[1, 2], [3], []], "\n": [], "; \r\n": [[]], ";;\n": [[], []]},
    "int32-pair-vector": {"1 2;3 4\n": [(1, 2), (3, 4)], " 1 2 \r\n": [(1, 2)], "\n": []},
    "posterior": {"[ 1 0.5 ] [ ]\r\n": [[(1, 0.5)], []], "[ 1 inf ] \n": [[(1, inf)]], "\n": []},
}
BAD_LINES = {
    "int32": ["\n", "5", "5 6\n", "a\n", "5.0\n", "2147483648\n", "1_0\n", "", "0x1\n", "٣\n"],
    "uint8": ["-1\n", "256\n"],
    "double": ["1e\n", "\n", "1,5\n", "nan(1)\n", "1e999\n"],
    "bool": ["True\n", "t\n", "1\n", "T", "\n"],
    "token": ["\n", "a b\n", "a", "", "a\x01\n"],
    "token-vector": [""],
    "int32-vector": ["1 x\n", "1,2\n", "", "1.5\n", "99999999999\n", "[ 1 2 ]\n"],
    "int32-vector-vector": ["1 2\n", "1 ; 2\n", "1 ;", "x ;\n"],
    "int32-pair-vector": ["1 2 ;\n", "1\n", "1 2 3\n", "1 2 ; 3\n", ";\n", "1 2"],
    "posterior": ["[ 1 ] \n", "1 0.5\n", "[ 1 0.5\n", "[ 1 0.5 ]", "[ a 0.5 ]\n", "] [\n"],
}


@pytest.mark.parametrize(
    ("holder", "text"), [(name, text) for name, texts in LINES.items() for text in texts]
)
def test_a_line_that_is_read(holder: str, text: str) -> None:
    for cursor in cursors(text.encode()):
        assert find_holder(holder).read(cursor) == LINES[holder][text]
        assert cursor.peek() == -1


@pytest.mark.parametrize(
    ("holder", "text"), [(name, text) for name, texts in BAD_LINES.items() for text in texts]
)
def test_a_line_that_is_refused(holder: str, text: str) -> None:
    for cursor in cursors(text.encode()):
        with pytest.raises(CorruptObject, match="byte"):
            find_holder(holder).read(cursor)


def test_vectors_of_integers_are_lines() -> None:
    for text in ("1 -2 3 \n", "1 -2 3", " 1\t-2  3\r\n", "+1 -2 003\n"):
        for cursor in cursors(text.encode()):
            found = find_holder("int32-vector").read(cursor)
            assert found.tolist() == [1, -2, 3]
            assert found.dtype == np.int32
    for cursor in cursors(b"\nnext"):
        assert find_holder("int32-vector").read(cursor).tolist() == []
        assert cursor.read() == b"next"


def test_seven_digits_by_default_and_more_on_request() -> None:
    values = np.array([1 / 3, 1e-7, -1e30, 12345678], "f4")
    assert dumped("vector", values, binary=False) == b" [ 0.3333333 1e-07 -1e+30 1.234568e+07 ]\n"
    for name, dtype, precision in (("vector", "f4", 9), ("double-vector", "f8", 17)):
        exact = np.random.default_rng(0).normal(size=500).astype(dtype)
        raw = dumped(name, exact, binary=False, precision=precision)
        for cursor in cursors(raw):
            assert np.array_equal(find_holder(name).read(cursor), exact)
    assert dumped("float", 1 / 3, binary=False, precision=3) == b"0.333 \n"


@pytest.mark.parametrize(
    ("holder", "value", "error"),
    [
        ("int32", 1.5, WrongType),
        ("int32", True, WrongType),
        ("int32", 1 << 31, InvalidArgument),
        ("uint8", -1, InvalidArgument),
        ("float", "1", WrongType),
        ("float", 1e39, InvalidArgument),
        ("bool", 1, WrongType),
        ("token", "a b", InvalidArgument),
        ("token", "", InvalidArgument),
        ("token", 5, WrongType),
        ("token-vector", "a b", WrongType),
        ("token-vector", ["a b"], InvalidArgument),
        ("int32-vector", [1.5], WrongType),
        ("int32-vector", [[1]], InvalidArgument),
        ("int8-vector", [200], InvalidArgument),
        ("int32-pair-vector", [(1, 2, 3)], InvalidArgument),
        ("vector", [[1.0]], InvalidArgument),
        ("vector", ["a"], WrongType),
        ("matrix", [1.0], InvalidArgument),
        ("matrix", [[1e39]], InvalidArgument),
        ("sparse-vector", [1.0], WrongType),
        ("posterior", [[(1, "x")]], WrongType),
        ("posterior", [[(1, 10**400)]], InvalidArgument),
        ("double", 10**400, InvalidArgument),
        ("sp-matrix", [[1.0, 2.0], [3.0, 4.0]], InvalidArgument),
        ("tp-matrix", [[1.0, 2.0], [3.0, 4.0]], InvalidArgument),
        ("packed-matrix", [1.0, 2.0], InvalidArgument),
        ("htk-matrix", [[1.0]], WrongType),
        ("sphinx-matrix", [[1.0]], InvalidArgument),
        ("wave", [1.0], WrongType),
        ("blob", "text", WrongType),
        ("numpy-array", [1, 2], WrongType),
        ("wave-info", None, InvalidArgument),
    ],
)
def test_a_value_that_does_not_fit_is_refused_and_nothing_is_written(
    holder: str, value: object, error: type[Exception]
) -> None:
    file = io.BytesIO()
    with pytest.raises(error):
        find_holder(holder).write(file, value, binary=True)
    assert file.getvalue() == b""


@pytest.mark.parametrize("holder", ["htk-matrix", "sphinx-matrix", "wave", "blob", "numpy-array"])
def test_what_has_no_text_form_says_so(holder: str) -> None:
    with pytest.raises(InvalidArgument, match=f"binary must be True for {holder}"):
        find_holder(holder).write(io.BytesIO(), None, binary=False)


@pytest.mark.parametrize(
    ("rows", "columns"), [(1, 15), (1, 16), (15, 2), (16, 2), (17, 17), (2, 65536), (65536, 1)]
)
def test_matrices_around_the_limits_of_the_fast_way(rows: int, columns: int) -> None:
    matrix = np.random.default_rng(rows).integers(-999, 999, (rows, columns)).astype("f4")
    for raw in (
        dumped("matrix", matrix, binary=False),
        dumped("matrix", matrix, binary=False).replace(b" ", b"  "),
    ):
        for cursor in cursors(raw + b"next")[:2]:
            assert np.array_equal(find_holder("matrix").read(cursor), matrix)
            assert cursor.read() == b"next"


def test_a_negative_zero_keeps_its_sign() -> None:
    for text in (b" [\n  -0 1 \n  0 -0 ]\n", b"[ -0 1 ; 0 -0.0 ]", b"[ -0 1e-0 ; 0 -0 ]"):
        for cursor in cursors(text):
            found = find_holder("matrix").read(cursor)
            assert np.signbit(found).tolist() == [[True, False], [False, True]]
