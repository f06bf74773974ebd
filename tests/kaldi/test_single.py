"""Single objects: read and written by an extended filename, whole or in part."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.kaldi.holder_cases import TABLE_CASES, TABLE_IDS, Case, dumped, plain

import seekable as sk
from seekable import kaldi
from seekable.formats.kaldi.files import open_named as opening

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MATRIX = np.arange(200 * 12, dtype="f4").reshape(200, 12)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("case", TABLE_CASES, ids=TABLE_IDS)
def test_an_object_is_read_back_as_it_was_written(case: Case, here: Path, *, binary: bool) -> None:
    try:
        expected = dumped(case.holder, case.value, binary=binary)
    except sk.errors.InvalidArgument:
        with pytest.raises(sk.errors.InvalidArgument):
            kaldi.write("a", case.value, case.holder, binary)
        assert not (here / "a").exists()
        return
    kaldi.write("a", case.value, case.holder, binary)
    assert (here / "a").read_bytes() == expected
    (here / "b").write_bytes(b"utt " + expected)
    for name in ("a", "b:4", "cat a |", here / "a"):
        found = kaldi.read(name, case.holder)
        if case.holder != "general-matrix" or binary:
            assert plain(found) == plain(case.value) or dumped(case.holder, found, binary=binary) == expected


def test_binary_is_the_default_and_may_be_named(here: Path) -> None:
    kaldi.write("a", 5, "int32")
    kaldi.write("b", 5, "int32", binary=False)
    kaldi.write("c", 5, "int32", False)  # noqa: FBT003 - as in Kaldi
    assert [(here / name).read_bytes() for name in "abc"] == [b"\0B\4\5\0\0\0", b"5 \n", b"5 \n"]


@pytest.mark.usefixtures("here")
def test_options_of_the_holder() -> None:
    kaldi.write("a", [1 / 3], "double-vector", binary=False, precision=17)
    assert kaldi.read("a", "double-vector").tolist() == [1 / 3]
    with pytest.raises(sk.errors.InvalidArgument, match="depth= has no meaning"):
        kaldi.read("a", "vector", depth=3)


@pytest.mark.parametrize("rest", [b"rest", b"\0", b"utt2 \0BFM "])
def test_bytes_behind_the_object_are_left_alone(rest: bytes, here: Path) -> None:
    (here / "a").write_bytes(dumped("matrix", MATRIX) + rest)
    assert kaldi.read("a", "matrix").shape == (200, 12)


@pytest.mark.parametrize("rows", [3, 70_000])
@pytest.mark.usefixtures("here")
def test_arrays_have_memory_of_their_own(rows: int) -> None:
    matrix = np.ones((rows, 4), "f4")
    for holder in ("matrix", "double-matrix", "compressed-matrix"):
        kaldi.write("a", matrix, holder)
        with open("b.gz", "wb") as file, open("a", "rb") as plain_file:
            file.write(gzip.compress(plain_file.read(), 1))
        for name in ("a", "a[1:2]", "a:0[1:2,1:3]", "b.gz", "b.gz[1:2]", "cat a |"):
            found = kaldi.read(name, "matrix")
            found += 1
            assert found.min() == 2
    assert kaldi.read("a", "matrix").max() == 1
    kaldi.write("a", matrix[:, 0], "vector")
    kaldi.read("a", "vector")[:] = 5
    kaldi.read("a[1:1]", "vector")[:] = 5
    assert kaldi.read("a", "vector").max() == 1


# ---- ranges


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("holder", ["matrix", "compressed-matrix", "general-matrix"])
@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize(
    ("text", "rows", "columns"),
    [
        ("[0:51]", slice(0, 52), slice(None)),
        ("[3:7,2:5]", slice(3, 8), slice(2, 6)),
        ("[:,2:5]", slice(None), slice(2, 6)),
        ("[,2:5]", slice(None), slice(2, 6)),
        ("[199:199,11:11]", slice(199, None), slice(11, None)),
    ],
)
def test_a_range_is_a_part_of_the_object(
    holder: str, text: str, rows: slice, columns: slice, *, binary: bool
) -> None:
    with kaldi.Writer("ark,scp:a.ark,a.scp" if binary else "ark,scp,t:a.ark,a.scp", holder) as writer:
        writer.write("a", MATRIX)
        writer.write("b", MATRIX + 1)
    for entry in kaldi.read_script("a.scp"):
        whole, part = (kaldi.read(entry.xfilename + end, holder) for end in ("", text))
        assert plain(np.array(part)) == plain(whole[rows, columns].copy())


@pytest.mark.usefixtures("here")
def test_a_range_reads_only_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted below the buffer: rows in the middle of 40 MB cost no more than one buffer beside them."""
    matrix = np.zeros((100_000, 100), "f4")
    matrix[50_000:50_010] = 1
    kaldi.write("a", matrix, "matrix")
    read: list[int] = []

    class Counting(io.FileIO):
        def readinto(self, buffer: Any) -> int | None:
            read.append(super().readinto(buffer) or 0)
            return read[-1]

        def readall(self) -> bytes:
            read.append(1 << 40)
            return super().readall()

    def counted(act: Callable[..., Any]) -> Callable[..., Any]:
        def acted(*arguments: Any) -> Any:
            found = act(*arguments)
            read.append(found if isinstance(found, int) else len(found))
            return found

        return acted

    def opened(path: str, *, regular: bool) -> io.FileIO:
        assert not regular
        return Counting(path)

    monkeypatch.setattr(opening, "open_local", opened)
    for name in ("pread", "preadv"):
        monkeypatch.setattr(os, name, counted(getattr(os, name)))
    found = kaldi.read("a:0[50000:50009]", "matrix")
    assert found.shape == (10, 100)
    assert found.min() == 1
    assert found.nbytes <= sum(read) < 3 * (8 << 10) + found.nbytes


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("name", "holder", "error"),
    [
        ("a[0:1]", "int32", "the holder int32 reads whole objects only"),
        ("a[1:0]", "matrix", "first <= last"),
        ("a[", "matrix", "there is no file"),
        ("a[0:500]", "matrix", "must lie in the 200 rows"),
        ("a[0:1,0:99]", "matrix", "must lie in the 12 columns"),
        ("a]", "matrix", r"must be NAME\[RANGE\]"),
        ("[0:1]", "matrix", r"must be NAME\[RANGE\]"),
    ],
)
def test_bad_ranges(name: str, holder: str, error: str) -> None:
    kaldi.write("a", MATRIX, "matrix")
    with pytest.raises(sk.SeekableError, match=error):
        kaldi.read(name, holder)


@pytest.mark.usefixtures("here")
def test_a_range_behind_a_command() -> None:
    kaldi.write("| gzip -c > a.gz", MATRIX, "matrix", pipes="allow")
    for name in ("gunzip -c a.gz |[3:4]", "a.gz:0[3:4]", "a.gz[3:4]"):
        assert plain(np.array(kaldi.read(name, "matrix"))) == plain(MATRIX[3:5].copy())


# ---- errors


def test_errors_name_the_file_and_the_byte(here: Path) -> None:
    (here / "a").write_bytes(b"utt " + dumped("matrix", MATRIX)[:-1])
    with pytest.raises(sk.errors.CorruptObject, match=r"^a: byte 19: expected 200 x 12"):
        kaldi.read("a:4", "matrix")
    with pytest.raises(sk.DataNotFound, match="there is no file 'none'"):
        kaldi.read("none", "matrix")
    with pytest.raises(sk.errors.PipeRefused):
        kaldi.read("make |", "matrix")
    with pytest.raises(sk.errors.InvalidArgument, match="is not an rxfilename"):
        kaldi.read("| make", "matrix")
    with pytest.raises(sk.errors.InvalidArgument, match="holder must be one of"):
        kaldi.read("a", "matrices")


def test_a_command_that_fails_is_an_error(here: Path) -> None:
    kaldi.write("a", 5, "int32", binary=False)
    with pytest.raises(sk.errors.PipeFailed):
        kaldi.read("cat < a; exit 3 |", "int32", pipes="allow")
    assert kaldi.read("cat < a; yes |", "int32", pipes="allow") == 5
    with pytest.raises(sk.errors.PipeFailed):
        kaldi.write("| cat > b; exit 3", 5, "int32", pipes="allow")
    with pytest.raises(sk.errors.PipeRefused):
        kaldi.write("| cat > c", 5, "int32")
    assert not (here / "c").exists()


def test_a_refused_value_leaves_the_file_alone(here: Path) -> None:
    (here / "a").write_bytes(b"old")
    with pytest.raises(sk.errors.WrongType):
        kaldi.write("a", "text", "matrix")
    with pytest.raises(sk.errors.InvalidArgument, match="is not a wxfilename"):
        kaldi.write("a:5", 5, "int32")
    assert (here / "a").read_bytes() == b"old"


class Half:
    def Read(self, file: Any, binary: bool) -> None:  # noqa: FBT001, N802
        self.data = file.read()

    def Write(self, file: Any, binary: bool) -> None:  # noqa: FBT001, N802
        file.write(b"half")
        message = "the other half is lost"
        raise RuntimeError(message)


def test_an_atomic_file_appears_whole_or_not(here: Path) -> None:
    kaldi.write("a", 5, "int32", atomic=True)
    assert (here / "a").read_bytes() == dumped("int32", 5)
    with pytest.raises(RuntimeError, match="other half"):
        kaldi.write("a", Half(), Half, atomic=True)
    assert os.listdir(here) == ["a"]
    assert kaldi.read("a", "int32") == 5
    with pytest.raises(sk.errors.InvalidArgument, match="atomic=True is for files"):
        kaldi.write("-", 5, "int32", atomic=True)


# ---- standard streams


def test_standard_streams() -> None:
    code = (
        "from seekable import kaldi\n"
        "kaldi.write('-', kaldi.read('-', 'matrix') + 1, 'matrix', binary=False)\n"
        "kaldi.write('', kaldi.read('', 'int32'), 'int32')\n"
    )
    data = dumped("matrix", [[1, 2]]) + dumped("int32", 7)
    done = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, check=True)
    assert done.stdout == b" [\n  2 3 ]\n" + dumped("int32", 7)
