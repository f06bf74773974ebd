"""Numbers, vectors of integers, tokens and pretty text on binary file objects."""

from __future__ import annotations

import io
import math
import mmap
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.kaldi.holder_cases import TABLE_CASES, TABLE_IDS, Case, Pipe, dumped, plain

from seekable.errors import CorruptObject, InvalidArgument, WrongType
from seekable.formats.kaldi.basic_types import (
    BASIC_TYPES,
    expect_pretty,
    expect_token,
    is_token,
    peek_token,
    read_basic_type,
    read_header,
    read_integer_pairs,
    read_integer_vector,
    read_token,
    write_basic_type,
    write_header,
    write_integer_pairs,
    write_integer_vector,
    write_pretty,
    write_token,
)
from seekable.formats.kaldi.cursor import BufferedCursor, FileCursor, MemoryCursor
from seekable.kaldi import find_holder

if TYPE_CHECKING:
    from pathlib import Path


def files(data: bytes) -> list[Any]:
    """Every kind of file that the object layer reads."""
    return [io.BytesIO(data), io.BufferedReader(Pipe(data)), MemoryCursor(data), FileCursor(io.BytesIO(data))]


MARKS = {
    "int8": 0x01,
    "int16": 0x02,
    "int32": 0x04,
    "int64": 0x08,
    "float": 0x04,
    "double": 0x08,
    "uint8": 0xFF,
    "uint16": 0xFE,
    "uint32": 0xFC,
    "uint64": 0xF8,
}


@pytest.mark.parametrize("kind", BASIC_TYPES)
def test_a_number_has_the_byte_of_its_type_before_it(kind: str) -> None:
    file = io.BytesIO()
    write_basic_type(file, 100, kind, binary=True)
    value = np.array([100], BASIC_TYPES[kind].dtype)
    assert file.getvalue() == bytes([MARKS[kind]]) + value.tobytes()
    for each in files(file.getvalue() + b"rest"):
        assert read_basic_type(each, kind, binary=True) == 100
        assert each.read() == b"rest"
    for each in files(file.getvalue()):
        assert read_basic_type(each, kind, binary=True, add=11) == 111


def test_arguments_of_numbers_are_checked() -> None:
    for add in (True, np.True_, "1"):
        with pytest.raises(WrongType, match="add must be the number"):
            read_basic_type(io.BytesIO(b"5 "), "int32", binary=False, add=add)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r"float, double, .*, bool"):
        read_basic_type(io.BytesIO(b"5 "), "long", binary=False)
    with pytest.raises(InvalidArgument, match="precision must be at least 1"):
        write_basic_type(io.BytesIO(), 0.1, "float", binary=False, precision=0)


@pytest.mark.parametrize("kind", ["int8", "uint64", "float"])
def test_a_number_in_text_has_a_space_behind_it(kind: str) -> None:
    file = io.BytesIO()
    write_basic_type(file, 65, kind, binary=False)
    assert file.getvalue() == b"65 "
    for each in files(b"\n 65 rest"):
        assert read_basic_type(each, kind, binary=False) == 65
        assert each.read() == b" rest"


def test_sizes_and_signs_must_agree_but_for_floats() -> None:
    for wrote, read in (("int32", "uint32"), ("int32", "int64"), ("float", "int64"), ("uint8", "int8")):
        file = io.BytesIO()
        write_basic_type(file, 1, wrote, binary=True)
        for each in files(file.getvalue()):
            with pytest.raises(CorruptObject, match=f"of a {read}"):
                read_basic_type(each, read, binary=True)
    file = io.BytesIO()
    write_basic_type(file, 0.1, "double", binary=True)
    assert read_basic_type(io.BytesIO(file.getvalue()), "float", binary=True) == 0.1


def test_booleans_are_one_letter() -> None:
    for value, binary, raw in (
        (True, True, b"T"),
        (False, True, b"F"),
        (True, False, b"T "),
        (False, False, b"F "),
    ):
        file = io.BytesIO()
        write_basic_type(file, value, "bool", binary=binary)
        assert file.getvalue() == raw
        for each in files(raw):
            assert read_basic_type(each, "bool", binary=binary) is value
    for each in files(b" x"):
        with pytest.raises(CorruptObject, match="T or F"):
            read_basic_type(each, "bool", binary=False)
    for each in files(b""):
        with pytest.raises(CorruptObject, match="end of the file"):
            read_basic_type(each, "bool", binary=True)


def test_infinities_are_read_although_kaldi_cannot() -> None:
    assert read_basic_type(io.BytesIO(b"-inf "), "double", binary=False) == -math.inf


def test_the_file_may_say_the_form_itself() -> None:
    class Opened(io.BytesIO):
        binary = True

    file = Opened()
    write_basic_type(file, 5, "int32")
    assert file.getvalue() == b"\4\5\0\0\0"
    assert read_basic_type(Opened(file.getvalue()), "int32") == 5
    with pytest.raises(WrongType, match="binary must be True or False"):
        read_basic_type(io.BytesIO(b"5 "), "int32")


def test_a_file_that_cannot_go_back_is_refused() -> None:
    with pytest.raises(WrongType, match="BufferedReader"):
        read_token(Pipe(b"a b"))


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="kind must be one of"):
        read_basic_type(io.BytesIO(), "int", binary=True)
    with pytest.raises(InvalidArgument, match="kind must be one of"):
        write_integer_vector(io.BytesIO(), [1], "float", binary=True)


@pytest.mark.parametrize("kind", [kind for kind in BASIC_TYPES if "int" in kind])
def test_vectors_of_integers(kind: str) -> None:
    dtype = BASIC_TYPES[kind].dtype
    for values in ([], [1], [1, 2, 100]):
        file = io.BytesIO()
        write_integer_vector(file, values, kind, binary=True)
        raw = bytes([dtype.itemsize]) + len(values).to_bytes(4, "little") + np.array(values, dtype).tobytes()
        assert file.getvalue() == raw
        for each in files(raw + b"x"):
            found = read_integer_vector(each, kind, binary=True)
            assert (found.tolist(), found.dtype, each.read()) == (values, dtype, b"x")
    file = io.BytesIO()
    write_integer_vector(file, [1, 2], kind, binary=False)
    assert file.getvalue() == b"[ 1 2 ]\n"
    for each in files(b" \n[ 1 2 ]\n"):
        assert read_integer_vector(each, kind, binary=False).tolist() == [1, 2]
        assert each.read() == b"\n"


def test_vectors_of_pairs_of_integers() -> None:
    for pairs in ([], [[1, 2], [3, 4]]):
        file = io.BytesIO()
        write_integer_pairs(file, pairs, "int16", binary=True)
        for each in files(file.getvalue()):
            assert read_integer_pairs(each, "int16", binary=True).tolist() == pairs
    file = io.BytesIO()
    write_integer_pairs(file, [[1, 2], [3, 4]], "int32", binary=False)
    assert file.getvalue() == b"[ 1,2 3,4 ]\n"
    for bad in (b"[ 1 2 ]", b"[ 1,2,3 ]", b"[ 1, ]", b"[ 1,2", b"1,2 ]"):
        for each in files(bad):
            with pytest.raises(CorruptObject, match="byte"):
                read_integer_pairs(each, "int32", binary=False)
    for length in (b"\4\xff\xff\xff\x7f", b"\4\xff\xff\xff\xff"):
        for each in files(length + bytes(9)):
            with pytest.raises(CorruptObject, match="byte"):
                read_integer_vector(each, "int32", binary=True)


def test_tokens() -> None:
    file = io.BytesIO()
    write_token(file, "<Nnet>", binary=True)
    write_token(file, "b", binary=False)
    assert file.getvalue() == b"<Nnet> b "
    for each in files(b"<Nnet> b\nrest"):
        assert peek_token(each, binary=True) == "N"
        expect_token(each, "<Nnet>", binary=True)
        assert read_token(each, binary=False) == "b"
        assert each.read() == b"rest"
    for each in files(b"Nnet> "):
        expect_token(each, "<Nnet>")
    for each in files(b" \n<Other> "):
        with pytest.raises(CorruptObject, match="byte 2: expected the token '<Nnet>', found '<Other>'"):
            expect_token(each, "<Nnet>")
    for each in files(b"cut"):
        with pytest.raises(CorruptObject, match="whitespace after 'cut'"):
            read_token(each)
    for each in files(b""):
        assert peek_token(each, binary=False) == ""
        with pytest.raises(CorruptObject, match="a token, found the end of the file"):
            read_token(each)


def test_words_that_are_no_tokens() -> None:
    for word in ("", "a b", "a\n", "\x01", "\x7f", "\udcff", "\ud800", "ü\udfff"):
        assert not is_token(word)
        with pytest.raises(InvalidArgument, match="token"):
            write_token(io.BytesIO(), word)
    for word in ("a", "ü", "\u00a0", "\u3000", "<x>", "\udc80", "\udcfe"):
        assert is_token(word)


def test_pretty_text_matches_any_whitespace_and_is_absent_from_binary_files() -> None:
    file = io.BytesIO()
    write_pretty(file, "num frames\n", binary=False)
    write_pretty(file, "num frames\n", binary=True)
    assert file.getvalue() == b"num frames\n"
    for raw in (b"num frames\nrest", b" num \t\n frames rest"):
        for each in files(raw):
            expect_pretty(each, " num frames\n", binary=False)
            assert each.read() == b"rest"
    for raw in (b"numframes ", b"num frame", b"num", b"", b"mum frames"):
        for each in files(raw):
            with pytest.raises(CorruptObject, match="the text 'num frames'"):
                expect_pretty(each, "num frames", binary=False)
    for each in files(b"num frames"):
        expect_pretty(each, "other", binary=True)
        assert each.read() == b"num frames"


def test_the_binary_header() -> None:
    file = io.BytesIO()
    write_header(file, binary=True)
    write_header(file, binary=False)
    assert file.getvalue() == b"\0B"
    for each in files(b"\0Brest"):
        assert read_header(each)
        assert each.read() == b"rest"
    for each in files(b"text"):
        assert not read_header(each)
        assert each.read() == b"text"
    for raw in (b"\0A", b"\0"):
        for each in files(raw):
            with pytest.raises(CorruptObject, match="the binary header"):
                read_header(each)


def test_a_cursor_reads_as_a_file_does() -> None:
    for each in files(b"abcdef")[2:]:
        assert (each.read(2), each.read(0), each.read(100), each.read(), each.peek()) == (
            b"ab",
            b"",
            b"cdef",
            b"",
            -1,
        )


def test_a_memory_map_is_read_without_a_copy(tmp_path: Path) -> None:
    path = tmp_path / "m.ark"
    path.write_bytes(b"key " + dumped("matrix", np.ones((300, 50), "f4")) + b"x" * 300 + b"\n")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        cursor = MemoryCursor(mapped, name=str(path))
        assert cursor.through(b" ") == b"key "
        matrix = find_holder("matrix").read(cursor)
        assert not matrix.flags.owndata
        assert not matrix.flags.writeable
        assert matrix.sum() == 15000
        assert cursor.through(b"\n") == b"x" * 300 + b"\n"
        cursor.seek(4)
        assert find_holder("matrix").shape(cursor) == (300, 50)
        del matrix, cursor


class Live(io.RawIOBase):
    """A stream whose writer has written some bytes, and waits before it writes more."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._data:
            raise AssertionError("a read that waits for more than the object")
        part, self._data = self._data[: len(buffer)], self._data[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("case", TABLE_CASES, ids=TABLE_IDS)
def test_an_object_is_read_without_the_next_one(case: Case, *, binary: bool) -> None:
    try:
        raw = dumped(case.holder, case.value, binary=binary)
    except InvalidArgument:
        pytest.skip("this type has no text form")
    holder = find_holder(case.holder)
    wanted = plain(holder.read(MemoryCursor(raw)))
    for cursor in (
        BufferedCursor(Live(raw), name="stream"),
        FileCursor(io.BufferedReader(Live(raw)), name="stream"),
    ):
        assert plain(holder.read(cursor)) == wanted
