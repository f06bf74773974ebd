"""What docs/from/kaldi.md says of kaldi_native_io holds for the version that is installed."""

from __future__ import annotations

import pickle
import re
from importlib import metadata
from pathlib import Path
from typing import Any

import kaldi_native_io as kn
import numpy as np
import pytest
from tests.cli.command import output

import seekable as sk
from seekable import kaldi

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "from" / "kaldi.md").read_text(encoding="utf-8")
MATRICES = {f"utt{number}": np.full((50, 40), number, "f4") for number in range(5)}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive and a script of five matrices, in the present folder."""
    monkeypatch.chdir(tmp_path)
    with kaldi.Writer("ark,scp:feats.ark,feats.scp", "matrix") as writer:
        for key, matrix in MATRICES.items():
            writer.write(key, matrix)


def theirs(rspecifier: str) -> dict[str, Any]:
    with kn.SequentialFloatMatrixReader(rspecifier) as reader:
        return {key: np.array(matrix) for key, matrix in reader}


def ours(rspecifier: str, **options: Any) -> dict[str, Any]:
    with kaldi.SequentialReader(rspecifier, "matrix", **options) as reader:
        return dict(reader)


def test_the_page_names_the_version() -> None:
    assert f"({metadata.version('kaldi_native_io')})" in PAGE


def test_a_torn_archive_ends_there_without_an_error() -> None:
    Path("torn.ark").write_bytes(Path("feats.ark").read_bytes()[:-5])
    assert list(theirs("ark:torn.ark")) == list(MATRICES)[:4]
    with pytest.raises(sk.errors.CorruptTable, match=r"torn.ark \(key 'utt4'\): byte"):
        ours("ark:torn.ark")


def test_the_exit_code_of_a_command_is_dropped_there() -> None:
    assert list(theirs("ark:cat feats.ark; exit 3 |")) == list(MATRICES)
    with pytest.raises(sk.errors.PipeFailed, match="exit code 3"):
        ours("ark:cat feats.ark; exit 3 |", pipes="allow")


def test_close_returns_none_there() -> None:
    writer = kn.FloatMatrixWriter("ark:| cat > /dev/null; exit 3")
    writer.write("utt0", MATRICES["utt0"])
    assert writer.close() is None
    writer = kaldi.Writer("ark:| cat > /dev/null; exit 3", "matrix", pipes="allow")
    writer.write("utt0", MATRICES["utt0"])
    with pytest.raises(sk.errors.PipeFailed, match="exit code 3"):
        writer.close()


def test_matrices_of_a_sequential_reader_share_its_memory_there() -> None:
    with kn.SequentialFloatMatrixReader("ark:feats.ark") as reader:
        assert any(not matrix.flags.owndata for _, matrix in reader)
    with kaldi.SequentialReader("ark:feats.ark", "matrix") as reader:
        found = list(reader)
    assert all(np.array_equal(matrix, MATRICES[key]) for key, matrix in found)


def test_minus_infinity_in_text_is_refused_there() -> None:
    with kn.FloatVectorWriter("ark,t:inf.ark") as writer:
        writer.write("a", np.array([-np.inf, 1], "f4"))
    assert "-inf" in Path("inf.ark").read_text()
    with pytest.raises(RuntimeError):
        kn.FloatVector.read("inf.ark:2")
    assert kaldi.read("inf.ark:2", "vector").tolist() == [-np.inf, 1]


def test_a_missing_row_range_is_refused_there() -> None:
    Path("part.scp").write_text(Path("feats.scp").read_text().splitlines()[0] + "[,0:1]\n")
    with pytest.raises(RuntimeError):
        theirs("scp:part.scp")
    assert ours("scp:part.scp")["utt0"].shape == (50, 2)


def test_an_empty_compressed_matrix_changes_the_next_key_there() -> None:
    method = kn.CompressionMethod.kSpeechFeature
    with kn.CompressedMatrixWriter("ark:empty.ark") as writer:
        writer.write("a", np.zeros((0, 0), "f4"), method)
        writer.write("b", MATRICES["utt1"], method)
    assert list(theirs("ark:empty.ark")) == ["a", "\0\0\0\0b"]
    assert list(ours("ark:empty.ark")) == ["a", "b"]
    with kaldi.Writer("ark:ours.ark", "compressed-matrix", method=2) as table:
        table.write("a", np.zeros((0, 0), "f4"))
        table.write("b", MATRICES["utt1"])
    assert list(theirs("ark:ours.ark")) == list(ours("ark:ours.ark")) == ["a", "b"]


def test_readers_there_cannot_be_pickled() -> None:
    with kn.RandomAccessFloatMatrixReader("scp:feats.scp") as reader, pytest.raises(TypeError):
        pickle.dumps(reader)
    copy = pickle.loads(pickle.dumps(sk.open("scp:feats.scp")))
    assert np.array_equal(copy.key("utt3")[1], MATRICES["utt3"])


def test_a_command_inside_a_script_runs_there() -> None:
    Path("commands.scp").write_text("utt0 touch ran; cat nothing |\n")
    with pytest.raises(RuntimeError):
        theirs("scp:commands.scp")
    assert Path("ran").exists()
    Path("ran").unlink()
    for pipes in ("refuse", "specifier"):
        with pytest.raises(sk.errors.PipeRefused):
            ours("scp:commands.scp", pipes=pipes)
    assert not Path("ran").exists()


def test_lines_of_tokens_end_with_the_space_that_kaldi_writes() -> None:
    with kaldi.Writer("ark:tokens.ark", "token-vector") as writer:
        writer.write("a", ["b", "c"])
    assert Path("tokens.ark").read_text() == "a b c \n"


def commands() -> list[tuple[str, ...]]:
    """The subcommands that the page names, each with its options behind it."""
    spans = re.findall(r"`seekable kaldi ([^`]+)`", PAGE)
    return sorted({(span.split()[0], *re.findall(r"--[a-z-]+", span)) for span in spans})


@pytest.mark.parametrize("named", commands(), ids=" ".join)
def test_the_commands_that_are_named_exist(named: tuple[str, ...]) -> None:
    page = output("kaldi", named[0], "--help").decode()
    assert [option for option in named[1:] if option not in page] == []
