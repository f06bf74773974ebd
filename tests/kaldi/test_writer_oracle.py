"""Whole tables, written there and here: the archives and scripts are the same files."""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kaldi.holder_cases import plain
from tests.kaldi.test_holders_oracle import MATRIX, TYPES, Type
from tests.kaldi.test_holders_properties import BINARY_VALUES, VALUES, WORDS
from tests.thrift import some

from seekable import kaldi
from seekable.kaldi import HtkMatrix, Wave, Writer

if TYPE_CHECKING:
    from pathlib import Path

kn = pytest.importorskip("kaldi_native_io")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files() -> dict[str, bytes]:
    """The content of every file of the working folder, which are removed."""
    found = {}
    for name in sorted(os.listdir()):
        with open(name, "rb") as file:
            found[name] = file.read()
        os.unlink(name)
    return found


def both(wspecifier: str, kind: Type) -> tuple[dict[str, bytes], dict[str, bytes]]:
    with getattr(kn, kind.writer)(wspecifier) as writer:
        for number, value in enumerate(kind.values):
            writer.write(f"utt{number}", value)
    theirs = files()
    with Writer(wspecifier, kind.holder) as ours:
        for number, value in enumerate(kind.values):
            ours.write(f"utt{number}", value)
    return theirs, files()


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.holder)
@pytest.mark.usefixtures("here")
def test_the_same_files_whatever_the_options(kind: Type) -> None:
    for wspecifier in (
        "ark:a.ark",
        "ark,t:a.ark",
        "ark,scp:a.ark,a.scp",
        "ark,scp,t:./a.ark,a.scp",
        "f,b,ark,scp:a b.ark,a.scp",
        "t,f,ark scp:a.ark,a.scp",
        "p,ark,nf,scp:a.ark,a.scp",
    ):
        theirs, ours = both(wspecifier, kind)
        assert theirs == ours, wspecifier


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.holder)
@pytest.mark.usefixtures("here")
def test_the_same_files_of_a_script(kind: Type) -> None:
    for options in ("scp", "scp,t", "scp,p"):
        results = []
        for writer in (getattr(kn, kind.writer), lambda name: Writer(name, kind.holder)):
            with open("in.scp", "w", encoding="utf-8") as file:
                file.write("".join(f"utt{number} out{number}\n" for number in range(len(kind.values))))
            with writer(f"{options}:in.scp") as table:
                for number, value in enumerate(kind.values):
                    table.write(f"utt{number}", value)
            results.append(files())
        assert results[0] == results[1]


@pytest.mark.usefixtures("here")
def test_waves_htk_files_and_blobs() -> None:
    data = np.array([[1, -2, 3], [32767, -32768, 0]], "f4")
    header = kn.HtkHeader(len(MATRIX), 100_000, 4 * MATRIX.shape[1], 9)
    for writer, theirs, holder, ours in (
        ("WaveWriter", kn.WaveData(16000.0, data), "wave", Wave(16000, data)),
        ("HtkMatrixWriter", (MATRIX, header), "htk-matrix", HtkMatrix(MATRIX, 100_000, 9)),
        ("BlobWriter", b"a\0b", "blob", b"a\0b"),
    ):
        with getattr(kn, writer)("ark,scp:a.ark,a.scp") as there:
            there.write("utt1", theirs)
            there.write("utt2", theirs)
        expected = files()
        with Writer("ark,scp:a.ark,a.scp", holder) as here:
            here.write("utt1", ours)
            here.write("utt2", ours)
        assert files() == expected


@pytest.mark.parametrize("method", range(1, 8))
@pytest.mark.usefixtures("here")
def test_compressed_matrices(method: int) -> None:
    theirs_method = list(kn.CompressionMethod.__members__.values())[method - 1]
    for options in ("", ",t"):
        with kn.CompressedMatrixWriter(f"ark,scp{options}:a.ark,a.scp") as there:
            for rows in (1, 5, 23):
                there.write(f"utt{rows}", MATRIX[:rows].copy(), theirs_method)
        expected = files()
        with Writer(f"ark,scp{options}:a.ark,a.scp", "compressed-matrix", method=method) as here:
            for rows in (1, 5, 23):
                here.write(f"utt{rows}", MATRIX[:rows])
        assert files() == expected


@pytest.mark.usefixtures("here")
def test_infinities_in_text() -> None:
    values = np.array([np.inf, -np.inf, 1 / 3, -0.0, 1e-7, 1e30], "f4")
    theirs, ours = both("ark,t:a.ark", Type("vector", "FloatVectorWriter", None, [values]))
    assert theirs == ours
    assert b" [ inf -inf 0.3333333 -0 1e-07 1e+30 ]\n" in ours["a.ark"]


@pytest.mark.usefixtures("here")
def test_both_are_used_in_the_same_way() -> None:
    for writer in (kn.Int32Writer, lambda name: Writer(name, "int32")):
        with writer("ark,t:a") as table:
            assert table.is_open
            table.write("a", 1)
            table["b"] = 2
            table.flush()
            with pytest.raises((RuntimeError, ValueError)):
                table.write("a b", 1)
            table.close()
            assert not table.is_open
        assert files() == {"a": b"a 1 \nb 2 \n"}


@given(
    entries=st.dictionaries(WORDS, st.lists(st.integers(-(1 << 31), (1 << 31) - 1)), max_size=20),
    options=st.sampled_from(["", ",t", ",f"]),
)
@settings(max_examples=some(20, of=3))
def test_any_table_is_the_same_and_is_read_there(entries: dict[str, list[int]], options: str) -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        results = []
        for writer in (kn.Int32VectorWriter, lambda name: Writer(name, "int32-vector")):
            with writer(f"ark,scp{options}:a.ark,a.scp") as table:
                for key, value in entries.items():
                    table[key] = value
            with open("a.ark", "rb") as archive, open("a.scp", "rb") as script:
                results.append((archive.read(), script.read()))
        assert results[0] == results[1]
        with kn.RandomAccessInt32VectorReader("scp:a.scp") as reader:
            assert all(reader[key] == value for key, value in entries.items())


@pytest.mark.parametrize("holder", sorted(BINARY_VALUES | VALUES))
@given(data=st.data())
@settings(max_examples=some(4, of=2))
def test_a_table_of_every_holder_comes_back(holder: str, data: st.DataObject) -> None:
    strategy = (BINARY_VALUES | VALUES)[holder]
    options = data.draw(st.sampled_from(["", ",t"] if holder in VALUES else [""]))
    entries = data.draw(st.dictionaries(WORDS, strategy, max_size=4))
    extra: dict[str, Any] = {"precision": 17} if hasattr(kaldi.find_holder(holder), "precision") else {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        with Writer(f"ark,scp{options}:a.ark,a.scp", holder, **extra) as writer:
            for key, value in entries.items():
                writer.write(key, value)
        for rspecifier in ("ark:a.ark", "scp:a.scp"):
            with kaldi.SequentialReader(rspecifier, holder) as reader:
                assert plain([(key, value) for key, value in reader]) == plain(list(entries.items()))
        report = kaldi.repair("a.ark", holder, script="a.scp")
        assert (report.entries, report.changed) == (len(entries), False)
