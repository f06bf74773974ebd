"""Holders by name, the user's own holders, and classes with Read and Write."""

from __future__ import annotations

import io
import pickle
from typing import Any

import pytest
from tests.kaldi.holder_cases import cursors, dumped, plain

from seekable.errors import CorruptObject, InvalidArgument, WrongType
from seekable.formats.kaldi.basic_types import (
    expect_token,
    read_basic_type,
    write_basic_type,
    write_token,
)
from seekable.formats.kaldi.cursor import Cursor, MemoryCursor, Output
from seekable.formats.kaldi.holders.registry import _HOLDERS
from seekable.kaldi import Holder, find_holder, holder_names, register_holder

NAMES = [
    "int32",
    "float",
    "double",
    "bool",
    "token",
    "token-vector",
    "int32-vector",
    "int8-vector",
    "int32-vector-vector",
    "int32-pair-vector",
    "float-pair-vector",
    "vector",
    "double-vector",
    "matrix",
    "double-matrix",
    "compressed-matrix",
    "sparse-vector",
    "sparse-matrix",
    "general-matrix",
    "posterior",
    "gauss-posterior",
    "htk-matrix",
    "sphinx-matrix",
    "wave",
    "wave-info",
    "numpy-array",
    "blob",
    "packed-matrix",
    "sp-matrix",
    "tp-matrix",
    "int64",
    "int64-vector",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "uint32-vector",
    "int64-vector-vector",
    "uint64-pair-vector",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_holder_of_each_name_exists_and_can_be_pickled(name: str) -> None:
    holder = find_holder(name)
    assert isinstance(holder, Holder)
    assert holder.name == name
    assert pickle.loads(pickle.dumps(holder)) == holder
    assert find_holder(holder) is holder


@pytest.mark.parametrize(
    "name", ["float", "double", "sp-matrix", "double-sp-matrix", "vector", "double-matrix"]
)
def test_a_holder_from_another_process_writes_and_reads_the_same(name: str) -> None:
    value = {"float": 0.1, "double": 0.1, "vector": [0.1]}.get(name, [[0.1]])
    holder, copy = find_holder(name), pickle.loads(pickle.dumps(find_holder(name)))
    for binary in (True, False):
        raw = dumped(copy, value, binary=binary)
        assert raw == dumped(holder, value, binary=binary)
        assert plain(copy.read(MemoryCursor(raw))) == plain(holder.read(MemoryCursor(raw)))


def test_a_wrong_name_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(InvalidArgument, match="did you mean 'matrix'"):
        find_holder("matrx")
    for wrong in (5, None, int, object()):
        with pytest.raises(WrongType, match="holder must be"):
            find_holder(wrong)


def test_options_are_fields() -> None:
    assert find_holder("compressed-matrix", method=3).method == 3  # type: ignore[attr-defined]
    with pytest.raises(InvalidArgument, match="method= has no meaning for the holder matrix"):
        find_holder("matrix", method=3)


class Line:
    """A holder of lines, as a user writes one."""

    name = "my-line"

    def read(self, cursor: Cursor) -> str:
        return cursor.through(b"\n").decode().rstrip("\n")

    def write(self, file: Output, value: str, *, binary: bool) -> None:
        file.write(f"{value}\n".encode())

    def skip(self, cursor: Cursor) -> None:
        self.read(cursor)

    def shape(self, cursor: Cursor) -> tuple[int, ...]:
        return (len(self.read(cursor)),)


def test_a_holder_of_the_user() -> None:
    try:
        register_holder(Line())
        assert "my-line" in holder_names()
        assert find_holder("my-line").read(MemoryCursor(dumped("my-line", "a b"))) == "a b"
    finally:
        _HOLDERS.pop("my-line", None)
    for wrong in (Line, object(), "my-line"):
        with pytest.raises(WrongType, match="read, write, skip and shape"):
            register_holder(wrong)  # type: ignore[arg-type]
    own = Line()
    for own.name in ("matrix", ""):
        with pytest.raises(InvalidArgument, match="name of a holder must be new"):
            register_holder(own)


class Stats:
    """A class in the style of Kaldi."""

    def __init__(self) -> None:
        self.count = 0

    def Read(self, file: Any, binary: bool) -> None:  # noqa: FBT001, N802
        expect_token(file, "<Stats>", binary=binary)
        self.count = int(read_basic_type(file, "int32", binary=binary, add=self.count))
        expect_token(file, "</Stats>", binary=binary)

    def Write(self, file: Any, binary: bool) -> None:  # noqa: FBT001, N802
        write_token(file, "<Stats>", binary=binary)
        write_basic_type(file, self.count, "int32", binary=binary)
        write_token(file, "</Stats>", binary=binary)


@pytest.mark.parametrize("binary", [True, False])
def test_a_class_with_read_and_write_is_a_holder(*, binary: bool) -> None:
    value = Stats()
    value.count = 7
    raw = dumped(Stats, value, binary=binary)
    assert raw == (b"\0B<Stats> \4\7\0\0\0</Stats> " if binary else b"<Stats> 7 </Stats> ")
    holder = find_holder(Stats)
    assert holder.name == "Stats"
    for cursor in cursors(raw + b"next"):
        assert holder.read(cursor).count == 7
        assert cursor.read() == b"next"
    for cursor in cursors(raw + b"next"):
        assert holder.shape(cursor) == ()
    for length in range(len(raw)):
        for cursor in cursors(raw[:length]):
            with pytest.raises(CorruptObject, match="table"):
                holder.skip(cursor)
    with pytest.raises(WrongType, match="method Write"):
        holder.write(io.BytesIO(), 5, binary=binary)


def test_a_precision_is_a_number_of_digits() -> None:
    for bad, error in ((0, InvalidArgument), (-1, InvalidArgument), ("7", WrongType), (1.5, WrongType)):
        with pytest.raises(error, match="precision must be"):
            find_holder("matrix", precision=bad)
