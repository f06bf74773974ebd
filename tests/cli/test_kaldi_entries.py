"""`seekable kaldi head` and `shapes`: what they print of the entries of a table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import kaldi_native_io as kn
import numpy as np
import pytest
from tests.cli.command import documents, output, run
from tests.cli.kaldi_tables import (
    ALIGNMENTS,
    MATRICES,
    run_with_input,
    write_alignments,
    write_matrices,
    write_wave,
)
from tests.index.corpus import age

from seekable import kaldi

if TYPE_CHECKING:
    from pathlib import Path

HEAD, SHAPES = ("kaldi", "head"), ("kaldi", "shapes")


@pytest.mark.parametrize(
    ("count", "entries"), [((), 5), (("-n", "0"), 0), (("-n", "2"), 2), (("-n", "99"), 6)]
)
def test_head_is_the_start_of_the_text_archive(tmp_path: Path, count: tuple[str, ...], entries: int) -> None:
    ark = write_alignments(tmp_path)
    text = write_alignments(tmp_path / "..", ",t").read_bytes()
    printed = output(*HEAD, f"ark:{ark}", "--holder", "int32-vector", *count)
    assert printed == b"".join(text.splitlines(keepends=True)[:entries])


def test_head_of_matrices_is_that_of_kaldi_native_io(tmp_path: Path) -> None:
    write_matrices(tmp_path)
    printed = output(*HEAD, f"scp:{tmp_path}/feats.scp", "--holder", "matrix", "-n", "6")
    assert printed == write_matrices(tmp_path, ",t").read_bytes()


def test_head_reads_no_further_than_it_must(tmp_path: Path) -> None:
    data = write_alignments(tmp_path).read_bytes()
    done = run_with_input(data[:-3], *HEAD, "ark:-", "--holder", "int32-vector", "-n", "5")
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 5)
    done = run_with_input(data[:-3], *HEAD, "ark:-", "--holder", "int32-vector", "-n", "6")
    assert (done.returncode, len(done.stdout.splitlines())) == (1, 5)
    assert b"utt5" in done.stderr


def test_head_as_json_has_all_digits(tmp_path: Path) -> None:
    ark = write_matrices(tmp_path)
    found = documents(*HEAD, f"ark:{ark}", "--holder", "matrix", "-n", "6")
    assert [one["key"] for one in found] == list(MATRICES)
    for one in found:
        assert np.array_equal(np.array(one["value"], "f4"), MATRICES[one["key"]])
        assert sorted(one) == ["key", "schema", "value"]


def test_numbers_that_json_lacks_are_texts(tmp_path: Path) -> None:
    with kaldi.Writer(f"ark:{tmp_path}/a", "vector") as writer:
        writer.write("k", [1, float("inf"), float("-inf"), float("nan")])
    printed = output(*HEAD, f"ark:{tmp_path}/a", "--holder", "vector", "--json")
    assert printed == b'{"key":"k","schema":1,"value":[1.0,"inf","-inf","nan"]}\n'


def test_waves_have_no_text_and_are_printed_as_json(tmp_path: Path) -> None:
    wave = write_wave(tmp_path / "a.wav", seconds=0.001)
    (tmp_path / "wav.scp").write_text(f"a {wave}\n")
    key, _, text = output(*HEAD, f"scp:{tmp_path}/wav.scp", "--holder", "wave").partition(b" ")
    samples = (np.sin(np.arange(8)) * 1000).astype("i4").tolist()
    assert (key, json.loads(text)) == (b"a", {"rate": 8000, "data": [samples]})


def test_shapes_are_those_of_the_objects(tmp_path: Path) -> None:
    write_matrices(tmp_path)
    expected = "".join(f"{key} {len(matrix)} 3\n" for key, matrix in MATRICES.items()).encode()
    for source in ("scp:feats.scp", "ark:feats.ark"):
        assert output(*SHAPES, source, "--holder", "matrix", cwd=tmp_path) == expected
    found = documents(*SHAPES, "scp:feats.scp", "--holder", "matrix", cwd=tmp_path)
    assert [(one["key"], one["shape"]) for one in found] == [(k, [*m.shape]) for k, m in MATRICES.items()]


def test_shapes_come_through_a_pipe(tmp_path: Path) -> None:
    data = write_alignments(tmp_path, ",t").read_bytes()
    done = run_with_input(data, *SHAPES, "ark,t:-", "--holder", "int32-vector")
    assert done.stdout == "".join(f"{key} {len(one)}\n" for key, one in ALIGNMENTS.items()).encode()


def test_shapes_agree_with_matrix_shape_of_kaldi_native_io(tmp_path: Path) -> None:
    write_matrices(tmp_path)
    scp = f"scp:{tmp_path}/feats.scp"
    with kn.SequentialMatrixShapeReader(scp) as reader:
        theirs = "".join(f"{key} {shape.num_rows} {shape.num_cols}\n" for key, shape in reader)
    assert output(*SHAPES, scp, "--holder", "matrix") == theirs.encode()


def test_shapes_of_ranges_are_those_of_the_parts(tmp_path: Path) -> None:
    write_matrices(tmp_path)
    lines = (tmp_path / "feats.scp").read_text().splitlines()
    (tmp_path / "parts.scp").write_text(f"{lines[0]}[1:2]\n{lines[1]}[,0:1]\n")
    printed = output(*SHAPES, f"scp:{tmp_path}/parts.scp", "--holder", "matrix")
    assert printed == b"utt0 2 3\nutt1 5 2\n"


def test_shapes_of_scalars_are_empty(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a 5\nb 6\n")
    assert output(*SHAPES, f"ark:{tmp_path}/a", "--holder", "int32") == b"a\nb\n"


def test_waves_have_their_seconds(tmp_path: Path) -> None:
    wave = write_wave(tmp_path / "a.wav", seconds=0.5, channels=2)
    stream = bytearray(wave.read_bytes())
    stream[4:8] = stream[40:44] = b"\xff\xff\xff\xff"  # as a program writes into a pipe
    (tmp_path / "b.wav").write_bytes(stream)
    (tmp_path / "wav.scp").write_text(f"a {wave}\nb cat {tmp_path}/b.wav |\n")
    printed = output(*SHAPES, f"scp:{tmp_path}/wav.scp", "--holder", "wave")
    assert printed == b"a 2 4000 0.5\nb 2 4000 0.5\n"
    found = documents(*SHAPES, f"scp:{tmp_path}/wav.scp", "--holder", "wave-info")
    assert found[0] == {"key": "a", "rate": 8000, "schema": 1, "seconds": 0.5, "shape": [2, 4000]}


@pytest.mark.parametrize("command", [HEAD, SHAPES])
def test_commands_inside_scripts_do_not_run(tmp_path: Path, command: tuple[str, str]) -> None:
    (tmp_path / "a.scp").write_text("a echo 5 |\n")
    done = run(*command, f"scp:{tmp_path}/a.scp", "--holder", "int32")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"--pipes allow" in done.stderr
    done = run(*command, f"scp:{tmp_path}/a.scp", "--holder", "int32", "--pipes", "allow")
    assert done.returncode == 0


def test_the_type_of_objects_is_found_where_their_bytes_tell_it(tmp_path: Path) -> None:
    write_matrices(tmp_path)
    for source in ("scp:feats.scp", "ark:feats.ark", "ark:cat feats.ark |"):
        assert output(*SHAPES, source, cwd=tmp_path).startswith(b"utt0 4 3\n")
    wave = write_wave(tmp_path / "a.wav")
    (tmp_path / "wav.scp").write_text(f"a {wave}\n")
    assert output(*SHAPES, "scp:wav.scp", cwd=tmp_path) == b"a 1 4000 0.5\n"


def test_the_type_of_objects_is_asked_for_where_it_cannot_be_found(tmp_path: Path) -> None:
    write_alignments(tmp_path)
    for source in ("ark:ali.ark", "ark:echo a |"):
        done = run(*SHAPES, source, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, b"")
        assert b"--holder " in done.stderr


def test_a_file_is_a_table_by_its_suffix(tmp_path: Path) -> None:
    write_matrices(tmp_path)
    assert output(*SHAPES, "feats.scp", cwd=tmp_path) == output(*SHAPES, "scp:feats.scp", cwd=tmp_path)
    assert output("kaldi", "head", "feats.ark", cwd=tmp_path).startswith(b"utt0  [\n")
    run("kaldi", "to-parquet", "feats.scp", "feats.parquet", cwd=tmp_path)
    assert (tmp_path / "feats.parquet").exists()


def test_tables_are_indexed(tmp_path: Path) -> None:
    age(write_matrices(tmp_path))
    age(tmp_path / "feats.scp")
    for path in ("feats.scp", "scp:feats.scp", "feats*.ark", "ark:feats.ark"):
        printed = output("index", path, cwd=tmp_path)
        assert printed.startswith(f"{path}: 6 records in 1 file, ".encode())
    assert (tmp_path / ".seekable").is_dir()
    (found,) = documents("index", "feats.scp", "ark:feats.ark", cwd=tmp_path)
    assert [(each["records"], each["files_indexed"]) for each in found["datasets"]] == [(6, 0), (6, 0)]
    write_alignments(tmp_path)
    done = run("index", "ali.ark", cwd=tmp_path)
    assert done.returncode == 2
    assert b"Say which it is: --format ark-int32\n" in done.stderr
    assert output("index", "ali.ark", "--set", "holder=int32-vector", cwd=tmp_path).startswith(b"ali.ark: 6 ")
