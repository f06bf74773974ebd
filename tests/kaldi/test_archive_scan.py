"""The entries of archives as the index finds them: of every holder, in chunks of any size, also torn."""

from __future__ import annotations

import gzip
import io
import itertools
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kaldi.holder_cases import CASES, TABLE_CASES, TABLE_IDS, Case, dumped
from tests.kaldi.test_dataset import matrices, write_table
from tests.thrift import some

import seekable as sk
from seekable import kaldi
from seekable.formats.kaldi.entry_reader import EntryReader, ObjectFiles
from seekable.formats.kaldi.table_entries import ArchiveScanner
from seekable.formats.table import format_named
from seekable.index.finder import ByteSource

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray


def scanned(data: bytes, holder: str, chunk_bytes: int) -> NDArray[np.uint64]:
    source = ByteSource(io.BytesIO(data), size=len(data), head=data, chunk_bytes=chunk_bytes)
    scanner = ArchiveScanner(f"ark-{holder}", kaldi.find_holder(holder))
    scanner.check_head(data, "a.ark")
    return scanner.scan(source)


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("case", TABLE_CASES, ids=TABLE_IDS)
def test_every_holder_is_indexed_and_read(case: Case, binary: bool, tmp_path: Path) -> None:  # noqa: FBT001
    if not binary and case.text is None and case.binary is not None:
        pytest.skip("this object has no text form")
    body = dumped(case.holder, case.value, binary=binary)
    data, starts = b"", []
    for row in range(4):
        starts.append(len(data))
        data += f"utt{row} ".encode() + body
    for chunk_bytes in (7, 1 << 20):
        assert scanned(data, case.holder, chunk_bytes).tolist() == starts
    if not binary and case.holder not in {"token-vector", "posterior", "matrix"}:
        return
    (tmp_path / "a.ark").write_bytes(data)
    ds = sk.open(tmp_path / "a.ark", format=sk.formats.Kaldi(holder=case.holder))
    assert [key for key, _ in ds] == list(ds.keys()) == ["utt0", "utt1", "utt2", "utt3"]
    for _, value in ds:
        assert dumped(case.holder, value, binary=binary) == body
    assert [tuple(shape) for shape in sk.kaldi.shapes(ds)] == [case.shape] * 4  # type: ignore[arg-type]


def test_binary_and_text_concatenated_with_spaces_between() -> None:
    rows = [np.array([1.5, 2]), np.array([]), np.array([3])]
    parts = [dumped("vector", row, binary=bool(n % 2)) for n, row in enumerate(rows)]
    data = b" \n a " + parts[0] + b"b\t" + parts[1] + b"\n\n c " + parts[2]
    expected = [data.index(b"a"), data.index(b"b\t"), data.index(b"c ")]
    for chunk_bytes in range(1, 20):
        assert scanned(data, "vector", chunk_bytes).tolist() == expected


@pytest.mark.parametrize(
    ("holder", "cuts"),
    [
        ("matrix", [2, 5, 6, 20, 35, 36, 38, 71, 72]),
        pytest.param("matrix", range(1, 73), marks=pytest.mark.exhaustive),
        pytest.param("int32-vector", range(1, 55), marks=pytest.mark.exhaustive),
    ],
)
def test_an_archive_cut_anywhere_gives_the_whole_entries_and_then_an_error(
    tmp_path: Path, holder: str, cuts: Sequence[int]
) -> None:
    value: Any = np.ones((2, 2), "f4") if holder == "matrix" else np.arange(3)
    body = dumped(holder, value)
    data = b"utt0 " + body + b"utt1 " + body
    whole = [5 + len(body), len(data)]
    assert cuts[-1] == len(data)
    for end in cuts:
        path = tmp_path / f"{end}.ark"
        path.write_bytes(data[:end])
        ds = sk.open(path, format=sk.formats.Kaldi(holder=holder))
        good = sum(edge <= end for edge in whole)
        assert len(ds) == good + (end not in whole), end
        for row in range(good):
            assert ds[row][0] == f"utt{row}"
        if len(ds) > good:
            with pytest.raises(sk.CorruptRecord, match=rf"{end}\.ark: record {good} at byte") as caught:
                ds[good]
            assert caught.value.offset == [0, *whole][good]


def test_garbage_behind_an_entry_is_one_record_that_cannot_be_read(tmp_path: Path) -> None:
    archive, _ = write_table(tmp_path, matrices(2))
    size = archive.stat().st_size
    with archive.open("ab") as file:
        file.write(b"\1\2\3" + bytes(5000))
    ds = sk.open(archive)
    assert len(ds) == 3
    with pytest.raises(sk.CorruptRecord, match="expected a key and a space") as caught:
        ds[2]
    assert caught.value.offset == size
    assert ds.key("utt1")[0] == "utt1"


@pytest.mark.parametrize(
    ("holder", "told"),
    [
        ("vector", "it looks like matrix.*expected FV"),
        ("token-vector", None),
        ("wave", "expected.*RIFF|RIFF"),
    ],
)
def test_an_archive_of_another_holder_is_refused(tmp_path: Path, holder: str, told: str | None) -> None:
    archive, _ = write_table(tmp_path, matrices(40))
    if told is not None:
        with pytest.raises(sk.errors.UnsupportedFormat, match=told):
            sk.open(archive, format=sk.formats.Kaldi(holder=holder))
    with pytest.raises(sk.errors.UnsupportedFormat, match="is not an archive: expected a key"):
        sk.open(made(tmp_path / "b.ark", b"\0B" + bytes(100)), format=sk.formats.Kaldi(holder="vector"))


def made(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("body", "holder"),
    [
        (dumped("matrix", np.ones((2, 2))), "matrix"),
        (dumped("matrix", np.ones((2, 2)), binary=False), "matrix"),
        (dumped("compressed-matrix", np.ones((20, 2))), "matrix"),
        (dumped("compressed-matrix", np.ones((2, 2)), method=5), "matrix"),
        (dumped("double-matrix", np.ones((2, 2))), "double-matrix"),
        (dumped("vector", np.ones(2)), "vector"),
        (dumped("vector", np.ones(2), binary=False), "vector"),
        (dumped("double-vector", np.ones(2)), "double-vector"),
        (dumped("bool", value=True), "bool"),
        (dumped("blob", b"x"), "blob"),
        *((dumped(case.holder, case.value), case.holder) for case in CASES if case.holder in {
            "sparse-vector", "sparse-matrix", "numpy-array", "wave", "double-sp-matrix"}),
    ],
)  # fmt: skip
def test_the_holder_is_found_from_the_first_entries(tmp_path: Path, body: bytes, holder: str) -> None:
    path = made(tmp_path / "a.ark", b"utt1 " + body + b"utt2 " + body)
    found = "double-packed-matrix" if holder == "double-sp-matrix" else holder
    assert sk.open(path)._node.decoder.name == found  # type: ignore[attr-defined]
    made(tmp_path / "a.scp", f"utt1 {path}:5\n".encode())
    assert sk.open(tmp_path / "a.scp")._node.decoder.name == found  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (dumped("int32-vector", [1, 2]), "int32, float, int32-vector.*posterior"),
        (dumped("int32", 5), "int32, float"),
        (dumped("double", 5), "int64, double"),
        (dumped("int32-vector", [1, 2], binary=False), "token.*int32-vector"),
        (dumped("vector", [], binary=False), "matrix, vector"),
        (
            dumped("htk-matrix", next(case.value for case in CASES if case.holder == "htk-matrix")),
            "no holder",
        ),
    ],
)
def test_a_holder_that_cannot_be_told_is_asked_for(tmp_path: Path, body: bytes, told: str) -> None:
    path = made(tmp_path / "a.ark", b"utt1 " + body)
    with pytest.raises(sk.errors.InvalidArgument, match=rf"(?s)byte 5: .*{told}.*holder='.*format='ark-"):
        sk.open(path)
    made(tmp_path / "a.scp", f"utt1 {path}:5\n".encode())
    with pytest.raises(sk.errors.InvalidArgument, match=rf"(?s)named by .*{told}.*format='scp-"):
        sk.open(tmp_path / "a.scp")


def test_several_holders_are_asked_for(tmp_path: Path) -> None:
    made(tmp_path / "a.ark", b"a " + dumped("matrix", np.ones((1, 1))))
    made(tmp_path / "b.ark", b"a " + dumped("vector", np.ones(1)))
    with pytest.raises(sk.errors.InvalidArgument, match=r"several holders: matrix \(.*vector \("):
        sk.open(f"{tmp_path}/*.ark")


def test_entries_that_tell_no_holder_do_not_hide_those_that_do(tmp_path: Path) -> None:
    whole = dumped("matrix", np.ones((2, 3)))
    made(tmp_path / "a.ark", b"a " + whole + b"b " + whole)
    made(tmp_path / "a.scp", f"a {tmp_path}/a.ark:2\nb {tmp_path}/a.ark:30\n".encode())
    ds = sk.open(tmp_path / "a.scp")  # The second line points into the middle of an object.
    assert ds[0][1].shape == (2, 3)
    with pytest.raises(sk.CorruptRecord, match="not the key"):
        ds[1]
    text = made(tmp_path / "a.txt", b"a  [ ]\nb  [ ]\nc  [\n  1 2\n  3 4 ]\n")
    shapes = sk.kaldi.shapes(sk.open(f"ark:{text}"))
    assert np.asarray(shapes).tolist() == [[0, 0], [0, 0], [2, 2]]


def test_commands_that_are_allowed_tell_the_holder(tmp_path: Path) -> None:
    made(tmp_path / "a.ark", b"a " + dumped("matrix", np.ones((2, 3))))
    made(tmp_path / "a.scp", f"a tail -c +3 {tmp_path}/a.ark |\n".encode())
    assert sk.open(tmp_path / "a.scp", format=sk.formats.Kaldi(pipes="allow"))[0][1].shape == (2, 3)
    for pipes in ("refuse", "specifier"):
        with pytest.raises(sk.errors.InvalidArgument, match="run only with pipes='allow'"):
            sk.open(tmp_path / "a.scp", format=sk.formats.Kaldi(pipes=pipes))


def test_a_first_line_that_is_longer_than_what_is_looked_at_tells_nothing(tmp_path: Path) -> None:
    made(tmp_path / "a.ark", b"a  [ " + b"1 " * 50_000 + b"]\n")
    with pytest.raises(sk.errors.InvalidArgument, match="it can be matrix, vector"):
        sk.open(tmp_path / "a.ark")


def test_a_script_that_names_a_whole_archive_says_so(tmp_path: Path) -> None:
    made(tmp_path / "a.ark", b"a " + dumped("matrix", np.ones((2, 3))))
    made(tmp_path / "a.scp", f"a {tmp_path}/a.ark\n".encode())
    with pytest.raises(sk.errors.InvalidArgument, match=r"the file is an archive, .* PATH:OFFSET"):
        sk.open(tmp_path / "a.scp")


def test_a_format_may_name_the_holder(tmp_path: Path) -> None:
    path = made(tmp_path / "a.txt", b"utt1 1 2\nutt2 \n")
    ds = sk.open(path, format="ark-int32-vector")
    assert [len(value) for _, value in ds] == [2, 0]
    assert format_named("scp-matrix").name == "scp"
    assert format_named("ark-matrix").name == "ark-matrix"
    for name in ("ark-none", "jsonl-matrix", "scp-"):
        with pytest.raises(sk.errors.InvalidArgument, match="must be one of"):
            format_named(name)
    assert sk.formats.Kaldi().with_name("ark").holder is None
    lines = tmp_path / "lines"
    lines.mkdir()
    made(lines / "a.jsonl", b"{}\n")
    with pytest.raises(sk.errors.InvalidArgument, match=r"Kaldi\(\.\.\.\) is for ark, scp.* is jsonl"):
        sk.open(lines, format=sk.formats.Kaldi(holder="matrix"))
    with pytest.raises(sk.errors.WrongType, match="holder must be"):
        sk.open(path, format=sk.formats.Kaldi(holder=5))  # type: ignore[arg-type]
    with pytest.raises(sk.errors.InvalidArgument, match="did you mean 'matrix'"):
        sk.open(path, format=sk.formats.Kaldi(holder="matrx"))
    for options in ({"key": "id"}, {"decode": "json"}, {"columns": ["a"]}):
        with pytest.raises(sk.errors.InvalidArgument):
            sk.open(path, format=sk.formats.Kaldi(holder="int32-vector"), **options)


class Count:
    """An object in the style of Kaldi: one number."""

    number = 0

    def Read(self, file: Any, binary: bool) -> None:  # noqa: FBT001, N802
        self.number = int(kaldi.read_basic_type(file, "int32", binary=binary))

    def Write(self, file: Any, binary: bool) -> None:  # noqa: FBT001, N802
        kaldi.write_basic_type(file, self.number, "int32", binary=binary)


class Other(Count):
    """Another class of the same objects."""


def test_a_class_in_the_style_of_kaldi_is_a_holder(tmp_path: Path) -> None:
    data = b"".join(f"utt{n} ".encode() + dumped("int32", n) for n in range(30))
    path = made(tmp_path / "a.ark", data)
    ds, other = (sk.open(path, format=sk.formats.Kaldi(holder=holder)) for holder in (Count, Other))
    assert [value.number for _, value in ds] == list(range(30))
    assert ds.key("utt7")[1].number == 7
    assert other._node.files.entry(0).format != ds._node.files.entry(0).format  # type: ignore[attr-defined]
    assert (
        len(
            {
                sk.open(path, format=sk.formats.Kaldi(holder=Count), version=version).fingerprint
                for version in (None, 1, 2)
            }
        )
        == 3
    )
    loader = sk.Loader(ds.map(number_of).shuffle(seed=1), batch_size=5, workers=1, collate=list)
    assert sorted(number for batch in loader for number in batch) == list(range(30))


def number_of(record: Any) -> int:
    return int(record[1].number)


@pytest.mark.parametrize("binary", [True, False])
def test_objects_longer_than_the_first_bytes_and_than_a_chunk(tmp_path: Path, binary: bool) -> None:  # noqa: FBT001
    value = np.arange(400_000, dtype="f4").reshape(-1, 100)
    archive, script = write_table(tmp_path, {"a": value, "b": value[:9]}, binary=binary)
    for ds in (sk.open(archive, format=sk.formats.Kaldi(holder="matrix")), sk.open(script)):
        assert sk.kaldi.shapes(ds).tolist() == [[4000, 100], [9, 100]]  # type: ignore[union-attr]
        np.testing.assert_array_equal(ds.key("a")[1], value)
    archive.write_bytes(archive.read_bytes()[:70_000])
    with pytest.raises(sk.CorruptRecord, match="the end of the file"):
        sk.open(archive)[0]


_BYTES = st.one_of(
    st.binary(max_size=60),
    st.lists(
        st.sampled_from(
            [b"a ", b"b\t", b"\n", b" ", b"\0B", b"FM ", b"FV \4", b"\4", b"\2\0\0\0", b"[ 1 2 ]", b"7 "]
        ),
        max_size=14,
    ).map(b"".join),
)


@settings(max_examples=some(60, of=3), deadline=None)
@given(
    data=_BYTES, holder=st.sampled_from(["matrix", "vector", "int32-vector", "token", "wave", "posterior"])
)
def test_any_bytes_are_entries_up_to_the_first_that_is_none(data: bytes, holder: str) -> None:
    try:
        starts = scanned(data, holder, 1 << 20).tolist()
    except sk.errors.UnsupportedFormat:
        return
    assert all(scanned(data, holder, size).tolist() == starts for size in (1, 3))
    entries = EntryReader(
        "ark", kaldi.find_holder(holder), pipes="refuse", permissive=False, files=ObjectFiles(1)
    )
    for start, end in itertools.pairwise(starts):
        try:
            key, _ = entries.read(memoryview(data)[start:end])
        except sk.errors.CorruptTable:
            assert b"\0B" not in data[start:end]  # The scan skips text by lines and does not parse it.
        else:
            assert data[start:].startswith(os.fsencode(key))
    assert data[: starts[0] if starts else len(data)].strip() == b""


def test_compressed_archives(tmp_path: Path) -> None:
    archive, _ = write_table(tmp_path, matrices(50))
    made(tmp_path / "z.ark.gz", gzip.compress(archive.read_bytes()))
    one, other = sk.open(archive), sk.open(tmp_path / "z.ark.gz")
    assert list(one.keys()) == list(other.keys())
    assert sk.kaldi.shapes(one).tolist() == sk.kaldi.shapes(other).tolist()  # type: ignore[union-attr]
    np.testing.assert_array_equal(one.key("utt31")[1], other.key("utt31")[1])
