"""Holders of seekable keep the contract of holders, and those that break it in one place are found."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Any

import pytest
from tests.kaldi.holder_cases import CASES

from seekable.errors import CorruptObject, InvalidArgument, WrongType
from seekable.kaldi import holder_names, read_basic_type, write_basic_type
from seekable.testing import assert_holder

if TYPE_CHECKING:
    from seekable.kaldi import Cursor, Output

VALUES = collections.defaultdict(list)
for case in CASES:
    VALUES[case.holder].append(case.value)

OTHERS: dict[str, list[Any]] = {
    name: [[(1, 2)]] if "pair" in name else [[[1], []]] if "vector-vector" in name else [[1, 2]]
    for name in holder_names()
    if name not in VALUES and name.endswith("-vector")
}
OTHERS |= {name: [[[0.5, 0], [1, 2]]] for name in ("double-tp-matrix", "compressed-matrix")}
OTHERS["double-packed-matrix"] = [[1, 2, 3]]


@pytest.mark.parametrize("name", [name for name in holder_names() if name != "wave-info"])
def test_every_holder_keeps_the_contract(name: str) -> None:
    assert_holder(name, VALUES.get(name) or OTHERS[name], lossless=name != "compressed-matrix")


class Count:
    """A class in the style of Kaldi."""

    number = 0

    def Read(self, file: Any, binary: bool) -> None:  # noqa: FBT001, N802
        self.number = int(read_basic_type(file, "int32", binary=binary))

    def Write(self, file: Any, binary: bool) -> None:  # noqa: FBT001, N802
        write_basic_type(file, self.number, "int32", binary=binary)


def test_a_class_with_read_and_write_keeps_it() -> None:
    assert_holder(Count, [Count()])


class Word:
    """A good holder: a length in a byte, and as many bytes."""

    name = "word"

    def read(self, cursor: Cursor) -> bytes:
        (size,) = cursor.take(1, "a size")
        return bytes(cursor.take(size, "a word"))

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        if not binary:
            raise InvalidArgument("binary must be True")
        if not isinstance(value, bytes):
            raise WrongType("value must be bytes")
        file.write(bytes([len(value)]) + value)

    def skip(self, cursor: Cursor) -> None:
        self.read(cursor)

    def shape(self, cursor: Cursor) -> tuple[int, ...]:
        return (len(self.read(cursor)),)


class ReadsTooMuch(Word):
    def read(self, cursor: Cursor) -> bytes:
        (size,) = cursor.take(1, "a size")
        word = bytes(cursor.take(size, "a word"))
        cursor.through(b" ")
        return word


class SkipsTooLittle(Word):
    def skip(self, cursor: Cursor) -> None:
        cursor.skip(1, "a size")


class ReadsTornOnes(Word):
    def read(self, cursor: Cursor) -> bytes:
        (size,) = cursor.take(1, "a size")
        return cursor.read(size)


class RaisesAnother(Word):
    def read(self, cursor: Cursor) -> bytes:
        size = cursor.read(1)[0]
        return bytes(cursor.take(size, "a word"))


class ForgetsAByte(Word):
    def read(self, cursor: Cursor) -> bytes:
        return super().read(cursor)[1:]


class WritesBeforeItRefuses(Word):
    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        file.write(b"\1")
        super().write(file, value[:1], binary=binary)


class RaisesTypeErrors(Word):
    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        super().write(file, b"".join(bytes([each]) for each in value), binary=binary)


class HasNoShape(Word):
    def shape(self, cursor: Cursor) -> Any:
        return len(self.read(cursor))


class NamesNothing(Word):
    def read(self, cursor: Cursor) -> bytes:
        try:
            return super().read(cursor)
        except CorruptObject as error:
            raise CorruptObject("another file", None, 0, error.expected, error.found) from None


class HasState(Word):
    reads = 0

    def read(self, cursor: Cursor) -> bytes:
        self.reads += 1
        return super().read(cursor) if self.reads < 5 else super().read(cursor)[:1]


@pytest.mark.parametrize(
    ("holder", "message"),
    [
        (ReadsTooMuch(), "read ends at byte 9 of 4"),
        (SkipsTooLittle(), "skip ends at byte 1 of 4"),
        (ReadsTornOnes(), "read of the first 1 bytes returns b''"),
        (RaisesAnother(), "read of the first 0 bytes raises IndexError"),
        (ForgetsAByte(), "what was read is written as"),
        (WritesBeforeItRefuses(), "wrote .* before it refused"),
        (RaisesTypeErrors(), "must raise WrongType"),
        (HasNoShape(), "shape must return a tuple of int"),
        (NamesNothing(), "raises an error of 'another file'"),
        (HasState(), "reads another value"),
    ],
    ids=lambda each: type(each).__name__ if not isinstance(each, str) else "",
)
def test_a_holder_that_breaks_it_is_found(holder: Word, message: str) -> None:
    assert_holder(Word(), [b"abc", b""])
    with pytest.raises(AssertionError, match=message):
        assert_holder(holder, [b"abc"])


def test_no_values_test_nothing() -> None:
    with pytest.raises(InvalidArgument, match="values must not be empty"):
        assert_holder("matrix", [])
