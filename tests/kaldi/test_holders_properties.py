"""Any value survives a way through bytes, in both forms; any bytes are a value or an error."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.kaldi.holder_cases import CASES, cursors, dumped, plain
from tests.thrift import some

from seekable.errors import CorruptObject, KaldiWarning
from seekable.formats.kaldi.cursor import MemoryCursor
from seekable.kaldi import (
    HtkMatrix,
    SparseMatrix,
    SparseVector,
    Wave,
    compress,
    find_holder,
    holder_names,
)

F4 = st.floats(width=32, allow_nan=False)
WORDS = st.text(
    st.characters(min_codepoint=33, exclude_characters="\x7f", exclude_categories=["C", "Z"]), min_size=1
)
I32 = st.integers(-(1 << 31), (1 << 31) - 1)


def array(dtype: str, dims: int, elements: Any = None) -> st.SearchStrategy[Any]:
    return hnp.arrays(
        dtype, hnp.array_shapes(min_dims=dims, max_dims=dims, min_side=1, max_side=6), elements=elements
    )


@st.composite
def sparse_vectors(draw: st.DrawFn, dim: int = 9) -> SparseVector:
    indices = sorted(draw(st.sets(st.integers(0, dim - 1))))
    values = draw(st.lists(F4, min_size=len(indices), max_size=len(indices)))
    return SparseVector(dim, np.array(indices, "i4"), np.array(values, "f4"))


@st.composite
def symmetric(draw: st.DrawFn) -> Any:
    size = draw(st.integers(0, 4))
    lower = np.tril(
        draw(hnp.arrays("f4", (size, size), elements=st.floats(-100, 100, width=32)))
    ) + np.float32(0)
    return np.where(np.tril(np.ones((size, size), bool)), lower, lower.T)


FINITE4, FINITE8 = st.floats(width=32, allow_nan=False), st.floats(allow_nan=False)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    **{
        f"{s}int{b}": st.integers(-(s == "") << b - 1, (1 << b - (s == "")) - 1)
        for s in ("", "u")
        for b in (8, 16, 32, 64)
    },
    "float": F4,
    "double": FINITE8,
    "bool": st.booleans(),
    "token": WORDS,
    "token-vector": st.lists(WORDS),
    "int32-vector": hnp.arrays("i4", st.integers(0, 9)),
    "int8-vector": hnp.arrays("i1", st.integers(0, 9)),
    "uint64-vector": hnp.arrays("u8", st.integers(0, 9)),
    "int32-vector-vector": st.lists(st.lists(I32)),
    "int32-pair-vector": st.lists(st.tuples(I32, I32)),
    "float-pair-vector": st.lists(st.tuples(F4, F4)),
    "vector": hnp.arrays("f4", st.integers(0, 9), elements=F4),
    "double-vector": hnp.arrays("f8", st.integers(0, 9), elements=FINITE8),
    "matrix": array("f4", 2, FINITE4),
    "double-matrix": array("f8", 2, FINITE8),
    "sparse-vector": sparse_vectors(),
    "sparse-matrix": st.lists(sparse_vectors(), min_size=1).map(lambda rows: SparseMatrix(tuple(rows))),
    "general-matrix": st.one_of(
        array("f4", 2, FINITE4),
        st.lists(sparse_vectors(), min_size=1).map(lambda rows: SparseMatrix(tuple(rows))),
    ),
    "posterior": st.lists(st.lists(st.tuples(I32, F4))),
    "gauss-posterior": st.lists(st.lists(st.tuples(I32, array("f4", 1, FINITE4)), max_size=3), max_size=4),
    "sp-matrix": symmetric(),
    "tp-matrix": symmetric().map(np.tril),
    "packed-matrix": st.integers(0, 4).flatmap(lambda n: hnp.arrays("f4", n * (n + 1) // 2, elements=F4)),
}
BINARY_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "blob": st.binary(),
    "numpy-array": hnp.arrays(st.sampled_from(["f4", "f8"]), hnp.array_shapes(min_dims=0, min_side=0)),
    "wave": hnp.arrays("i2", hnp.array_shapes(min_dims=2, max_dims=2)).map(
        lambda a: Wave(8000, a.astype("f4"))
    ),
    "htk-matrix": array("f4", 2).map(lambda a: HtkMatrix(a, 100_000, 9)),
    "sphinx-matrix": st.integers(0, 4).flatmap(lambda n: hnp.arrays("f4", (n, 13))),
    "general-matrix": array("f4", 2, st.floats(-100, 100, width=32)).map(lambda a: compress(a, 3)),
}


@pytest.mark.parametrize("holder", VALUES)
@given(data=st.data())
@settings(max_examples=10)
def test_a_value_survives_both_forms(holder: str, data: st.DataObject) -> None:
    value = data.draw(VALUES[holder])
    precise = find_holder(holder)
    if hasattr(precise, "precision"):
        precise = find_holder(holder, precision=17)
    for binary in (True, False):
        for cursor in cursors(dumped(precise, value, binary=binary)):
            assert plain(precise.read(cursor)) == plain(value)


@pytest.mark.parametrize("holder", BINARY_VALUES)
@given(data=st.data())
@settings(max_examples=10)
def test_a_value_survives_the_binary_form(holder: str, data: st.DataObject) -> None:
    value = data.draw(BINARY_VALUES[holder])
    for cursor in cursors(dumped(holder, value)):
        assert plain(find_holder(holder).read(cursor)) == plain(value)


@given(matrix=array("f4", 2, st.floats(-(2.0**100), 2.0**100, width=32)), method=st.integers(1, 7))
@settings(max_examples=some(60, of=3))
def test_compressed_values_stay_in_their_span(matrix: Any, method: int) -> None:
    assume(method not in {4, 6, 7})
    decoded = compress(matrix, method).decode()
    span = float(matrix.max()) - float(matrix.min()) + 1 + 2 * abs(float(matrix.min()))
    assert (np.abs(decoded.astype("f8") - matrix) <= 1.01 * span).all()
    assert np.isfinite(decoded).all()


def mutated(raw: bytes, at: int, patch: bytes) -> bytes:
    at %= len(raw) + 1
    return raw[:at] + patch + raw[at + len(patch) :]


RAW = [raw for case in CASES for raw in (case.binary, case.text) if raw]
SIZES = st.sampled_from([struct.pack("<i", n) for n in (-1, 0, 1, 255, 1 << 24, (1 << 31) - 1)])


@given(
    holder=st.sampled_from(holder_names()),
    raw=st.sampled_from(RAW),
    at=st.integers(0, 200),
    patch=st.one_of(st.binary(max_size=5), SIZES),
)
@example(holder="matrix", raw=b"\0BCM \0\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0", at=200, patch=bytes(20))
@settings(max_examples=some(150, of=3))
@pytest.mark.filterwarnings(f"ignore::{KaldiWarning.__module__}.{KaldiWarning.__name__}")
def test_any_bytes_are_a_value_or_an_error(holder: str, raw: bytes, at: int, patch: bytes) -> None:
    data = mutated(raw, at, patch)
    for action in ("read", "skip", "shape"):
        failure = None
        try:
            getattr(find_holder(holder), action)(MemoryCursor(data, name="fuzz"))
        except CorruptObject as error:
            failure = error
        assert failure is None or (failure.path == "fuzz" and 0 <= failure.offset <= len(data))


@given(
    case=st.sampled_from([case for case in CASES if case.binary]),
    patch=st.binary(max_size=6),
    at=st.integers(0, 99),
)
@settings(max_examples=some(80, of=3))
@pytest.mark.filterwarnings(f"ignore::{KaldiWarning.__module__}.{KaldiWarning.__name__}")
def test_all_cursors_agree_on_any_bytes(case: Any, patch: bytes, at: int) -> None:
    outcomes = []
    for cursor in cursors(mutated(case.binary, at, patch)):
        try:
            outcomes.append((repr(plain(find_holder(case.holder).read(cursor))), cursor.position))
        except CorruptObject:
            outcomes.append(("an error", 0))
    assert len(set(outcomes)) == 1
