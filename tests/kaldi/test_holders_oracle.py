"""Every type that kaldi_native_io has, written there and read here, and the other way."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from tests.kaldi.holder_cases import dumped, plain

from seekable.formats.kaldi.cursor import MemoryCursor
from seekable.kaldi import HtkMatrix, Wave, find_holder, parse_range

if TYPE_CHECKING:
    from pathlib import Path

kn = pytest.importorskip("kaldi_native_io")

RNG = np.random.default_rng(3)
MATRIX = RNG.normal(size=(23, 5)).astype("f4")
ODD = np.array([1 / 3, 1e-7, -1e30, 0, 5, 12345678, -0.001], "f4")


class Type(NamedTuple):
    holder: str
    writer: str
    reader: str | None
    values: list[Any]


TYPES = [
    Type("int32", "Int32Writer", "SequentialInt32Reader", [5, -7, 2147483647]),
    Type("float", "FloatWriter", "SequentialFloatReader", [0.5, 1 / 3, -1e30]),
    Type("double", "DoubleWriter", "SequentialDoubleReader", [0.5, -1e300]),
    Type("bool", "BoolWriter", "SequentialBoolReader", [True, False]),
    Type("token", "TokenWriter", "SequentialTokenReader", ["a", "b-ü"]),
    Type("int32-vector", "Int32VectorWriter", "SequentialInt32VectorReader", [[1, -2], [], list(range(100))]),
    Type("int8-vector", "Int8VectorWriter", "SequentialInt8VectorReader", [[1, -2], []]),
    Type(
        "int32-vector-vector",
        "Int32VectorVectorWriter",
        "SequentialInt32VectorVectorReader",
        [[[1, 2], [], [3]], [], [[]], [list(range(50))]],
    ),
    Type(
        "int32-pair-vector",
        "Int32PairVectorWriter",
        "SequentialInt32PairVectorReader",
        [[(1, 2), (3, 4)], []],
    ),
    Type("float-pair-vector", "FloatPairVectorWriter", "SequentialFloatPairVectorReader", [[(0.5, 2.0)], []]),
    Type("vector", "FloatVectorWriter", "SequentialFloatVectorReader", [ODD, ODD[:0]]),
    Type("double-vector", "DoubleVectorWriter", "SequentialDoubleVectorReader", [ODD.astype("f8") / 3]),
    Type(
        "matrix",
        "FloatMatrixWriter",
        "SequentialFloatMatrixReader",
        [MATRIX, MATRIX[:1], np.zeros((0, 0), "f4")],
    ),
    Type("double-matrix", "DoubleMatrixWriter", "SequentialDoubleMatrixReader", [MATRIX.astype("f8") / 3]),
    Type(
        "posterior",
        "PosteriorWriter",
        "SequentialPosteriorReader",
        [[[(1, 0.5), (2, 0.25)], [], [(3, 1.0)]], []],
    ),
    Type("gauss-posterior", "GaussPostWriter", None, [[[(1, ODD[:3]), (2, ODD[:1])], []]]),
]


def written_there(name: str, values: list[Any], path: Path, option: str, *more: Any) -> list[bytes]:
    """The bytes of each value, without its key."""
    entries = []
    for value in values:
        with getattr(kn, name)(f"ark{option}:{path}") as writer:
            writer.write("k", value, *more)
        entries.append(path.read_bytes().removeprefix(b"k "))
    return entries


def read_there(name: str, raw: list[bytes], path: Path) -> list[Any]:
    path.write_bytes(b"".join(f"k{number} ".encode() + each for number, each in enumerate(raw)))
    with getattr(kn, name)(f"ark:{path}") as reader:
        return [np.array(value) if isinstance(value, np.ndarray) else value for _, value in reader]


def as_here(holder: str, value: Any) -> Any:
    """A value as the holder returns it after a way through text."""
    return find_holder(holder).read(MemoryCursor(dumped(holder, value)))


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.holder)
def test_both_write_the_same_bytes_and_read_each_other(kind: Type, tmp_path: Path, *, binary: bool) -> None:
    path = tmp_path / "table.ark"
    theirs = written_there(kind.writer, kind.values, path, "" if binary else ",t")
    ours = [dumped(kind.holder, value, binary=binary) for value in kind.values]
    assert ours == theirs
    holder = find_holder(kind.holder)
    read_here = [holder.read(MemoryCursor(raw)) for raw in theirs]
    if binary:
        assert plain(read_here) == plain([as_here(kind.holder, value) for value in kind.values])
    if kind.reader is not None:
        there = read_there(kind.reader, ours, path)
        for one, two in zip(there, read_here, strict=True):
            assert np.array_equal(one, two) if isinstance(two, np.ndarray) else one == two


def test_lines_of_tokens_differ_by_one_space(tmp_path: Path) -> None:
    path = tmp_path / "table.ark"
    (theirs,) = written_there("TokenVectorWriter", [["a", "b"]], path, "")
    assert theirs == b"a b\n"
    assert find_holder("token-vector").read(MemoryCursor(theirs)) == ["a", "b"]
    assert read_there("SequentialTokenVectorReader", [dumped("token-vector", ["a", "b"])], path) == [
        ["a", "b"]
    ]


def test_blobs_waves_and_htk_files(tmp_path: Path) -> None:
    path = tmp_path / "table.ark"
    assert written_there("BlobWriter", [b"", b"a\0b"], path, "") == [
        dumped("blob", b""),
        dumped("blob", b"a\0b"),
    ]
    data = np.array([[1, -2, 3], [32767, -32768, 0]], "f4")
    (theirs,) = written_there("WaveWriter", [kn.WaveData(16000.0, data)], path, "")
    assert theirs == dumped("wave", Wave(16000, data))
    assert find_holder("wave").read(MemoryCursor(theirs)).data.tolist() == data.tolist()
    header = kn.HtkHeader(len(MATRIX), 100_000, 4 * MATRIX.shape[1], 9)
    (theirs,) = written_there("HtkMatrixWriter", [(MATRIX, header)], path, "")
    assert theirs == dumped("htk-matrix", HtkMatrix(MATRIX, 100_000, 9))


def hard_matrices() -> list[Any]:
    found = []
    for rows, columns in ((1, 1), (2, 2), (3, 1), (4, 3), (5, 2), (8, 2), (9, 2), (31, 4)):
        noise = RNG.normal(size=(rows, columns))
        found += [
            noise,
            noise * 0 + 2.5,
            noise * 0,  # zeros of both signs
            noise * 30000,
            1e6 + noise,
            np.where(noise > 0, 0, noise),
            noise * 1e-30,
        ]
    found.append(RNG.normal(size=(100, 150)))  # more columns, and more elements, than are coded at a time
    return [each.astype("f4") for each in found]


@pytest.mark.parametrize("method", range(1, 8))
def test_compressed_matrices_agree_bit_by_bit(method: int, tmp_path: Path) -> None:
    path = tmp_path / "table.ark"
    theirs_method = list(kn.CompressionMethod.__members__.values())[method - 1]
    for matrix in hard_matrices():
        for binary in (True, False):
            option = "" if binary else ",t"
            (theirs,) = written_there("CompressedMatrixWriter", [matrix], path, option, theirs_method)
            assert theirs == dumped("compressed-matrix", matrix, binary=binary, method=method)
            (there,) = read_there("SequentialFloatMatrixReader", [theirs], path)
            here = find_holder("compressed-matrix").read(MemoryCursor(theirs))
            assert here.tobytes() == there.tobytes()


@pytest.mark.parametrize(
    "text", ["[0:3]", "[2:4,1:2]", "[:,1:1]", "[20:24]", "[20:26]", "[5:2]", "[0:1,0:5]"]
)
@pytest.mark.parametrize("method", [None, 2, 3, 5])
def test_ranges_agree(text: str, method: int | None, tmp_path: Path) -> None:
    raw = dumped("matrix", MATRIX) if method is None else dumped("compressed-matrix", MATRIX, method=method)
    (tmp_path / "m").write_bytes(raw)
    (tmp_path / "scp").write_text(f"k {tmp_path / 'm'}{text}\n")
    here: Any = None
    there: Any = None
    with (
        contextlib.suppress(RuntimeError, ValueError),
        kn.SequentialFloatMatrixReader(f"scp:{tmp_path / 'scp'}") as r,
    ):
        there = np.array(r.value)
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(ValueError):
        patch.setattr("seekable.formats.kaldi.holders.script_ranges.warnings.warn", lambda *_, **__: None)
        here = find_holder("matrix").read_range(MemoryCursor(raw), parse_range(text))  # type: ignore[attr-defined]
    assert (here is None) == (there is None)
    assert here is None or np.array_equal(here, there)
