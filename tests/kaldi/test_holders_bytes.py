"""Every form of every holder against bytes made by hand, in both directions, whole and cut at every byte."""

from __future__ import annotations

import io
from typing import Any

import pytest
from tests.kaldi.holder_cases import CASES, Case, Pipe, cursors, dumped, f64, i32, plain

from seekable.errors import CorruptObject
from seekable.formats.kaldi.cursor import FileCursor
from seekable.kaldi import find_holder, holder_names

FORMS = [
    pytest.param(case, form, id=f"{number}-{case.holder}-{form}")
    for number, case in enumerate(CASES)
    for form in ("binary", "text")
    if getattr(case, form) is not None
]


def raw_of(case: Case, form: str) -> bytes:
    raw = getattr(case, form)
    assert isinstance(raw, bytes)
    return raw


@pytest.mark.parametrize(("case", "form"), FORMS)
def test_a_value_is_written_as_these_bytes(case: Case, form: str) -> None:
    assert dumped(case.holder, case.value, binary=form == "binary") == raw_of(case, form)


@pytest.mark.parametrize(("case", "form"), FORMS)
def test_these_bytes_are_read_skipped_and_measured(case: Case, form: str) -> None:
    raw, holder = raw_of(case, form), find_holder(case.holder)
    for after in (b"", b"key2 rest"):
        if form == "text" and not after and not raw.endswith(b"\n"):
            continue
        for cursor in cursors(raw + after):
            assert plain(holder.read(cursor)) == plain(case.value)
            assert cursor.read() == after
        for cursor in cursors(raw + after):
            holder.skip(cursor)
            assert cursor.position == len(raw)
        for cursor in cursors(raw + after):
            assert holder.shape(cursor) == case.shape
            assert cursor.position == len(raw)


def types_in(value: Any) -> set[type]:
    """Return the types of a value and of all that it holds."""
    inner = [types_in(each) for each in value] if isinstance(value, list | tuple) else []
    return {type(value)}.union(*inner)


def test_holders_that_make_no_arrays_make_values_of_python_alone() -> None:
    own = [case for case in CASES if getattr(find_holder(case.holder), "has_no_arrays", False)]
    assert {"posterior", "int32", "bool", "token", "token-vector"} <= {case.holder for case in own}
    for case in own:
        (first, *_) = cursors(dumped(case.holder, case.value))
        read = find_holder(case.holder).read(first)
        assert types_in(read) <= {int, float, bool, str, list, tuple}


@pytest.mark.parametrize(("case", "form"), FORMS)
def test_every_cut_is_an_error_that_names_file_key_and_byte(case: Case, form: str) -> None:
    raw, holder = raw_of(case, form), find_holder(case.holder)
    for length in range(len(raw)):
        cut = raw[:length]
        if (form == "text" or case.holder == "token-vector") and is_whole_in_text(case, cut):
            continue
        for action in (holder.read, holder.skip, holder.shape):
            for cursor in cursors(cut):
                with pytest.raises(CorruptObject) as caught:
                    action(cursor)
                assert caught.value.path == "table"
                assert caught.value.key == "k"
                assert 0 <= caught.value.offset <= len(cut)
                assert f"byte {caught.value.offset}: expected" in str(caught.value)


def is_whole_in_text(case: Case, cut: bytes) -> bool:
    """In text some line ends may be absent, so that a cut there is no loss, or cannot be seen."""
    body = cut.rstrip()
    may_lack = case.holder == "token-vector" or (
        case.holder.endswith("-vector") and case.holder[:3] in {"int", "uin"}
    )
    if may_lack and "pair" not in case.holder and case.holder.count("vector") == 1:
        return len(cut) > 0
    return body.endswith(b"]") and case.holder in {
        *("vector", "matrix", "double-vector", "double-matrix", "general-matrix", "sparse-vector"),
        *("packed-matrix", "sp-matrix", "tp-matrix", "double-sp-matrix"),
    }


def test_every_holder_has_a_case() -> None:
    basic = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)} | {"double", "float"}
    families = {f"{each}{kind}" for each in basic for kind in ("-vector", "-vector-vector", "-pair-vector")}
    tested = {case.holder for case in CASES}
    # They are tested in files of their own, or differ from tested ones by a dtype alone.
    elsewhere = {"compressed-matrix", "wave-info", "double-packed-matrix", "double-tp-matrix"}
    assert set(holder_names()) - families - elsewhere <= tested


@pytest.mark.parametrize("case", CASES, ids=[f"{number}-{case.holder}" for number, case in enumerate(CASES)])
def test_a_value_survives_both_forms(case: Case) -> None:
    for binary in (True, False):
        if not binary and case.text is None and case.binary is not None:
            continue
        raw = dumped(case.holder, case.value, binary=binary)
        for cursor in cursors(raw):
            assert plain(find_holder(case.holder).read(cursor)) == plain(case.value)


@pytest.mark.parametrize("size", [b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff"])
@pytest.mark.parametrize(
    ("holder", "head"),
    [
        ("int32-vector", b"\0B\4"),
        ("int32-vector-vector", b"\0B\4\1\0\0\0\4"),
        ("int32-pair-vector", b"\0B\4"),
        ("vector", b"\0BFV \4"),
        ("matrix", b"\0BFM \4\xff\xff\xff\x7f\4"),
        ("matrix", b"\0BCM \0\0\0\0\0\0\0\0\xff\xff\xff\x7f"),
        ("matrix", b"\0BCM2 \0\0\0\0\0\0\0\0\xff\xff\xff\x7f"),
        ("sparse-vector", b"\0BSV \4\5\0\0\0\4"),
        ("sparse-matrix", b"\0BSM \4"),
        ("posterior", b"\0B\4"),
        ("posterior", b"\0B\4\1\0\0\0\4"),
        ("gauss-posterior", b"\0B\4\1\0\0\0\4\1\0\0\0\4\0\0\0\0DV \4"),
        ("packed-matrix", b"\0BDP \4"),
        ("htk-matrix", b"\x7f\xff\xff\xff"),
        ("blob", b"\0B\x14\x11\x22\x20\0\0\0\0"),
    ],
)
def test_a_hostile_size_takes_no_memory(holder: str, head: bytes, size: bytes) -> None:
    import tracemalloc

    data = head + size + bytes(64)
    if holder == "htk-matrix":
        data = head + b"\0\1\x86\xa0\x7f\xfc\0\x09" + bytes(64)
    for cursor in cursors(data):
        tracemalloc.start()
        try:
            with pytest.raises(CorruptObject, match="table"):
                find_holder(holder).read(cursor)
            assert tracemalloc.get_traced_memory()[1] < 3 << 20
        finally:
            tracemalloc.stop()


def test_a_file_stands_right_behind_the_object() -> None:
    raw = dumped("matrix", [[1.0, 2.0]]) + b"rest"
    for file in (io.BytesIO(raw), io.BufferedReader(Pipe(raw))):
        find_holder("matrix").read(FileCursor(file))
        assert file.read() == b"rest"


def test_an_integer_of_another_size_or_sign_is_refused() -> None:
    raw = dumped("int32", 5)
    for kind in ("int64", "uint32", "int16", "float"):
        expected = "" if kind != "float" else None
        for cursor in cursors(raw):
            if expected is None:
                assert isinstance(find_holder(kind).read(cursor), float)
            else:
                with pytest.raises(CorruptObject, match="byte 2: expected the byte"):
                    find_holder(kind).read(cursor)


def test_either_precision_is_read() -> None:
    for wanted, other in (("vector", "double-vector"), ("double-vector", "vector")):
        for cursor in cursors(dumped(other, [0.5, 2.0])):
            found = find_holder(wanted).read(cursor)
            assert found.tolist() == [0.5, 2.0]
            assert found.dtype == ("f4" if wanted == "vector" else "f8")
    for cursor in cursors(dumped("double", 0.1)):
        assert find_holder("float").read(cursor) == 0.1


def test_pairs_of_either_precision_are_read_skipped_and_measured() -> None:
    for wrote, read in (("float", "double"), ("double", "float")):
        raw = dumped(f"{wrote}-pair-vector", [(0.5, 2.0), (1.0, 3.0)])
        holder = find_holder(f"{read}-pair-vector")
        for action, expected in (("read", [(0.5, 2.0), (1.0, 3.0)]), ("shape", (2,)), ("skip", None)):
            for cursor in cursors(raw + b"next"):
                assert getattr(holder, action)(cursor) == expected
                assert cursor.read() == b"next"


def test_weights_of_either_precision_are_read_skipped_and_measured() -> None:
    for size in (1, 100):
        raw = b"\0B" + i32(1, size) + (i32(7) + b"\x08" + f64(0.5)) * size
        holder = find_holder("posterior")
        for action, expected in (("read", [[(7, 0.5)] * size]), ("shape", (1,)), ("skip", None)):
            for cursor in cursors(raw + b"next"):
                assert getattr(holder, action)(cursor) == expected
                assert cursor.read() == b"next"
