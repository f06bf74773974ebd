"""Tables that kaldi_native_io writes, read here in order and by key; and what both answer to damaged ones."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.kaldi.holder_cases import plain
from tests.kaldi.test_holders_oracle import MATRIX, TYPES, Type, as_here

import seekable as sk
from seekable.kaldi import MappedReader, RandomAccessReader, SequentialReader, Writer

if TYPE_CHECKING:
    from pathlib import Path

kn = pytest.importorskip("kaldi_native_io")


def close(one: Any, two: Any) -> bool:
    """True if two values are equal up to the 7 digits of a text."""
    if isinstance(one, np.ndarray):
        return one.shape == two.shape and bool(np.allclose(one, two, rtol=1e-6, atol=0))
    if isinstance(one, list | tuple):
        return len(one) == len(two) and all(map(close, one, two))
    return bool(one == two or np.isclose(one, two, rtol=1e-6, atol=0))


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.holder)
def test_what_is_written_there_is_read_here(kind: Type, tmp_path: Path, *, text: bool) -> None:
    name = f"{tmp_path}/a"
    expected = {}
    with getattr(kn, kind.writer)(f"ark,scp{',t' if text else ''}:{name}.ark,{name}.scp") as writer:
        for number in range(3 * len(kind.values)):
            value = kind.values[number % len(kind.values)]
            writer.write(f"u{number}", value)
            expected[f"u{number}"] = as_here(kind.holder, value)
    for spec in (f"ark:{name}.ark", f"scp:{name}.scp", f"scp,bg:{name}.scp", f"ark:cat {name}.ark |"):
        with SequentialReader(spec, kind.holder) as reader:
            found = list(reader)
        assert [key for key, _ in found] == list(expected)
        for key, value in found:
            assert close(value, expected[key]) if text else plain(value) == plain(expected[key])
    for spec in (f"ark:{name}.ark", f"scp:{name}.scp"):
        with RandomAccessReader(spec, kind.holder) as table:
            for key in reversed(expected):
                value = table[key]
                assert close(value, expected[key]) if text else plain(value) == plain(expected[key])


@pytest.mark.parametrize("kind", [kind for kind in TYPES if kind.reader], ids=lambda kind: kind.holder)
def test_what_is_written_here_is_read_there_by_key(kind: Type, tmp_path: Path) -> None:
    name = f"{tmp_path}/a"
    with Writer(f"ark,scp:{name}.ark,{name}.scp", kind.holder) as writer:
        for number, value in enumerate(kind.values):
            writer.write(f"u{number}", value)
    assert kind.reader is not None
    peer = getattr(kn, kind.reader.replace("Sequential", "RandomAccess"))
    with peer(f"scp:{name}.scp") as theirs, RandomAccessReader(f"scp:{name}.scp", kind.holder) as ours:
        for number in reversed(range(len(kind.values))):
            there, here = theirs[f"u{number}"], ours[f"u{number}"]
            assert np.array_equal(there, here) if isinstance(here, np.ndarray) else there == here


def test_waves_and_blobs(tmp_path: Path) -> None:
    data = np.array([[1, -2, 3], [32767, -32768, 0]], "f4")
    with kn.WaveWriter(f"ark,scp:{tmp_path}/w.ark,{tmp_path}/w.scp") as writer:
        for number in range(3):
            writer.write(f"u{number}", kn.WaveData(16000.0, data))
    for spec in (f"ark:{tmp_path}/w.ark", f"scp:{tmp_path}/w.scp"):
        with SequentialReader(spec, "wave") as reader:
            assert [(key, value.rate, value.data.tolist()) for key, value in reader] == [
                (f"u{number}", 16000, data.tolist()) for number in range(3)
            ]
    with SequentialReader(f"scp:{tmp_path}/w.scp", "wave-info") as reader:
        assert [value.rate for _, value in reader] == [16000] * 3
    with kn.BlobWriter(f"ark:{tmp_path}/b.ark") as writer:
        writer.write("a", b"")
        writer.write("b", b"\0x")
    with SequentialReader(f"ark:{tmp_path}/b.ark", "blob") as reader:
        assert dict(reader) == {"a": b"", "b": b"\0x"}


def test_empty_compressed_matrices_as_kaldi_writes_them(tmp_path: Path) -> None:
    with kn.CompressedMatrixWriter(f"ark:{tmp_path}/a.ark") as writer:
        for number, matrix in enumerate([MATRIX, np.zeros((0, 0), "f4"), MATRIX]):
            writer.write(f"u{number}", matrix, kn.CompressionMethod.kAutomaticMethod)
    with SequentialReader(f"ark:{tmp_path}/a.ark", "compressed-matrix") as reader:
        assert [(key, value.shape) for key, value in reader] == [
            ("u0", MATRIX.shape),
            ("u1", (0, 0)),
            ("u2", MATRIX.shape),
        ]


def test_a_loop_of_kaldi_native_io_runs_unchanged(tmp_path: Path) -> None:
    with Writer(f"ark,scp:{tmp_path}/a.ark,{tmp_path}/a.scp", "matrix") as writer:
        for number in range(5):
            writer.write(f"u{number}", np.full((2, 2), number, "f4"))

    def sums(reader: Any) -> list[tuple[str, float]]:
        found = []
        while not reader.done:
            found.append((reader.key, float(reader.value.sum())))
            reader.next()
        assert reader.is_open
        reader.close()
        assert not reader.is_open
        return found

    for spec in (f"ark:{tmp_path}/a.ark", f"scp,p:{tmp_path}/a.scp"):
        assert sums(SequentialReader(spec, "matrix")) == sums(kn.SequentialFloatMatrixReader(spec))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the peer's destructors
@pytest.mark.parametrize("cut", range(0, 60, 3))
def test_a_cut_archive_gives_the_same_entries_and_here_an_error(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "a.ark"
    with kn.Int32VectorWriter(f"ark:{path}") as writer:
        for number in range(4):
            writer.write(f"u{number}", list(range(number)))
    data = path.read_bytes()[:cut]
    path.write_bytes(data)
    ours: list[str] = []
    try:
        with SequentialReader(f"ark:{path}", "int32-vector") as reader:
            ours.extend(key for key, _ in reader)
        complete = True
    except sk.errors.CorruptObject:
        complete = False
    theirs: list[str] = []
    try:
        with kn.SequentialInt32VectorReader(f"ark:{path}") as peer:
            theirs.extend(key for key, _ in peer)
    except RuntimeError:
        theirs = []
    assert ours == theirs
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with SequentialReader(f"ark,p:{path}", "int32-vector") as reader:
            assert [key for key, _ in reader] == ours
    assert bool(caught) == (not complete)


def test_mapped_readers_of_both(tmp_path: Path) -> None:
    (tmp_path / "utt2spk").write_bytes(b"u1 s2\nu2 s1\nu3 s2\n")
    with Writer(f"ark:{tmp_path}/t.ark", "matrix") as writer:
        writer.write("s1", np.eye(2, dtype="f4"))
        writer.write("s2", np.eye(3, dtype="f4"))
    with MappedReader(f"ark:{tmp_path}/t.ark", f"ark:{tmp_path}/utt2spk", "matrix") as reader:
        assert [len(reader[key]) for key in ("u3", "u2", "u1")] == [3, 2, 3]
