"""`seekable kaldi copy`: what it writes is what kaldi_native_io reads, and it fails where data is lost."""

from __future__ import annotations

import gzip
import json
import os
from typing import TYPE_CHECKING

import kaldi_native_io as kn
import numpy as np
import pytest
from tests.cli.command import AT_ONCE, in_terminal, run
from tests.cli.kaldi_tables import (
    MATRICES,
    read_matrices,
    run_script,
    run_with_input,
    same,
    write_alignments,
    write_matrices,
    write_wave,
)

from seekable import kaldi

if TYPE_CHECKING:
    from pathlib import Path

COPY = ("kaldi", "copy")
MATRIX = ("--holder", "matrix")


@pytest.mark.parametrize("source", ["ark:feats.ark", "scp:feats.scp", "ark:cat feats.ark |"])
def test_a_copy_has_the_bytes_of_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    ark = write_matrices(tmp_path)
    done = run(*COPY, source, "ark,scp:copy.ark,copy.scp", *MATRIX, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr == b"seekable: Copied 6 entries (matrix)\n"
    assert (tmp_path / "copy.ark").read_bytes() == ark.read_bytes()
    monkeypatch.chdir(tmp_path)
    assert same(read_matrices("scp:copy.scp"), MATRICES)


def test_a_table_goes_from_stdin_to_stdout(tmp_path: Path) -> None:
    data = write_alignments(tmp_path).read_bytes()
    done = run_with_input(data, *COPY, "ark:-", "ark:-", "--holder", "int32-vector")
    assert (done.returncode, done.stdout) == (0, data)
    assert done.stderr == b"seekable: Copied 6 entries (int32-vector)\n"
    text = run_with_input(data, *COPY, "ark:-", "ark,t:-", "--holder", "int32-vector", "-q")
    assert (text.stdout, text.stderr) == (write_alignments(tmp_path, ",t").read_bytes(), b"")


def test_standard_input_tells_the_type_and_loses_no_byte(tmp_path: Path) -> None:
    data = write_matrices(tmp_path).read_bytes()
    assert run_with_input(data, *COPY, "ark:-", "ark:-", "-q").stdout == data
    assert run_with_input((tmp_path / "feats.scp").read_bytes(), *COPY, "scp:-", "ark:-", "-q").stdout == data
    assert run_with_input(data, "kaldi", "shapes", "ark:-").stdout.startswith(b"utt0 4 3\n")
    assert run_with_input(data[5:], *COPY, "-", "-", "-q").stdout == data[5 : data.index(b"utt1")]
    done = run_with_input(write_alignments(tmp_path).read_bytes(), *COPY, "ark:-", "ark:-")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"Say which it is: --holder int32\n" in done.stderr


def test_commands_in_a_script_that_are_allowed_tell_the_type(tmp_path: Path) -> None:
    data = write_matrices(tmp_path).read_bytes()
    (tmp_path / "a.scp").write_text("utt0 tail -c +6 feats.ark |\n")
    done = run(*COPY, "scp:a.scp", "ark:-", "--pipes", "allow", cwd=tmp_path)
    assert done.stdout == data[: data.index(b"utt1")]


def test_text_goes_in_with_the_line_ends_of_windows(tmp_path: Path) -> None:
    text = write_alignments(tmp_path, ",t").read_bytes()
    binary = write_alignments(tmp_path).read_bytes()
    done = run_with_input(text.replace(b"\n", b"\r\n"), *COPY, "ark:-", "ark:-", "--holder", "int32-vector")
    assert done.stdout == binary


@pytest.mark.parametrize("entries", [0, 1, 1000])
def test_any_number_of_entries(entries: int) -> None:
    text = "".join(f"k{number} {number}\n" for number in range(entries)).encode()
    done = run_with_input(text, *COPY, "ark:-", "ark,t:-", "--holder", "int32")
    assert done.returncode == 0
    assert done.stdout.replace(b" \n", b"\n") == text
    assert f"Copied {entries:,} entr".encode() in done.stderr


def test_a_torn_table_is_a_failure_after_its_good_entries(tmp_path: Path) -> None:
    data = write_matrices(tmp_path).read_bytes()
    with kaldi.SequentialReader(f"ark:{tmp_path}/feats.ark", "matrix") as reader:
        keys = [key for key, _ in reader]
    done = run_with_input(data[:-5], *COPY, "ark:-", "ark:out.ark", *MATRIX, cwd=tmp_path)
    assert done.returncode == 1
    assert b"utt5" in done.stderr
    assert done.stderr.endswith(b"; Copied 5 entries before that\n")
    assert list(read_matrices(f"ark:{tmp_path}/out.ark")) == keys[:5]


def test_a_command_that_fails_is_a_failure(tmp_path: Path) -> None:
    write_matrices(tmp_path)
    done = run(*COPY, "ark:cat feats.ark; exit 3 |", "ark:out.ark", *MATRIX, cwd=tmp_path)
    assert done.returncode == 1
    assert b"exit code 3" in done.stderr
    assert (tmp_path / "out.ark").read_bytes() == (tmp_path / "feats.ark").read_bytes()
    done = run(*COPY, "ark:feats.ark", "ark:| cat > piped.ark; exit 4", *MATRIX, cwd=tmp_path)
    assert done.returncode == 1
    assert b"exit code 4" in done.stderr
    assert (tmp_path / "piped.ark").read_bytes() == (tmp_path / "feats.ark").read_bytes()


def test_an_atomic_copy_of_a_torn_table_leaves_nothing(tmp_path: Path) -> None:
    data = write_matrices(tmp_path).read_bytes()
    (tmp_path / "torn.ark").write_bytes(data[:-5])
    before = sorted(os.listdir(tmp_path))
    for source in ("ark:torn.ark", "ark:cat feats.ark; exit 3 |"):
        assert run(*COPY, source, "ark:out.ark", *MATRIX, "--atomic", cwd=tmp_path).returncode == 1
        assert sorted(os.listdir(tmp_path)) == before


def test_commands_inside_files_run_only_when_they_are_allowed(tmp_path: Path) -> None:
    (tmp_path / "tokens.scp").write_text("utt1 touch ran; echo ran |\n")
    arguments = (*COPY, "scp:tokens.scp", "ark:-", "--holder", "token")
    done = run(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"--pipes allow" in done.stderr
    assert not (tmp_path / "ran").exists()
    assert run(*arguments, "--pipes", "allow", cwd=tmp_path).stdout == b"utt1 ran\n"
    assert (tmp_path / "ran").exists()


def test_commands_in_a_script_of_files_to_write_run_only_when_they_are_allowed(tmp_path: Path) -> None:
    (tmp_path / "out.scp").write_text("utt0 | cat > ran\n")
    (tmp_path / "in.ark").write_text("utt0 a\n")
    arguments = (*COPY, "ark:in.ark", "scp:out.scp", "--holder", "token")
    assert run(*arguments, cwd=tmp_path).returncode == 1
    assert not (tmp_path / "ran").exists()
    assert run(*arguments, "--pipes", "allow", cwd=tmp_path).returncode == 0
    assert (tmp_path / "ran").read_bytes() == b"a\n"


def test_no_command_runs_with_pipes_refuse(tmp_path: Path) -> None:
    for source, target in (("ark:touch ran |", "ark:-"), ("ark:a.ark", "ark:| touch ran")):
        (tmp_path / "a.ark").write_text("a b\n")
        done = run(*COPY, source, target, "--holder", "token", "--pipes", "refuse", cwd=tmp_path)
        assert done.returncode == 1
        assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("method", range(1, 8))
def test_compressed_matrices_have_the_bytes_of_kaldi_native_io(tmp_path: Path, method: int) -> None:
    ark = write_matrices(tmp_path)
    with kn.CompressedMatrixWriter(f"ark:{tmp_path}/theirs.ark") as writer:
        for key, matrix in MATRICES.items():
            writer.write(key, matrix, kn.CompressionMethod(method))
    done = run(*COPY, f"ark:{ark}", f"ark:{tmp_path}/ours.ark", *MATRIX, "--compress", str(method))
    assert done.returncode == 0
    assert (tmp_path / "ours.ark").read_bytes() == (tmp_path / "theirs.ark").read_bytes()


def test_compressed_matrices_are_copied_without_loss(tmp_path: Path) -> None:
    ark = write_matrices(tmp_path)
    run(*COPY, f"ark:{ark}", f"ark:{tmp_path}/3.ark", *MATRIX, "--compress", "3")
    run(*COPY, f"ark:{tmp_path}/3.ark", f"ark:{tmp_path}/copy.ark", "--holder", "compressed-matrix")
    assert (tmp_path / "copy.ark").read_bytes() == (tmp_path / "3.ark").read_bytes()


@pytest.mark.parametrize(
    ("to_holder", "reader"),
    [("double-matrix", "SequentialDoubleMatrixReader"), ("htk-matrix", "SequentialHtkMatrixReader")],
)
def test_objects_are_converted(tmp_path: Path, to_holder: str, reader: str) -> None:
    ark = write_matrices(tmp_path)
    done = run(*COPY, f"ark:{ark}", f"ark:{tmp_path}/out.ark", *MATRIX, "--to-holder", to_holder)
    assert done.stderr == f"seekable: Copied 6 entries ({to_holder})\n".encode()
    with getattr(kn, reader)(f"ark:{tmp_path}/out.ark") as table:
        for key, value in table:
            matrix = value[0] if to_holder == "htk-matrix" else value
            assert np.array_equal(matrix, MATRICES[key])


@pytest.mark.parametrize("holder", ["sparse-matrix", "general-matrix", "htk-matrix", "double-matrix"])
def test_a_way_there_and_back_changes_no_matrix(tmp_path: Path, holder: str) -> None:
    ark = write_matrices(tmp_path)
    there, back = f"ark:{tmp_path}/there.ark", f"ark:{tmp_path}/back.ark"
    run(*COPY, f"ark:{ark}", there, *MATRIX, "--to-holder", holder)
    assert run(*COPY, there, back, "--holder", holder, "--to-holder", "matrix").returncode == 0
    assert (tmp_path / "back.ark").read_bytes() == ark.read_bytes()


def test_a_wave_becomes_the_matrix_of_its_channels(tmp_path: Path) -> None:
    wave = write_wave(tmp_path / "a.wav", channels=2)
    (tmp_path / "wav.scp").write_text(f"a {wave}\n")
    arguments = (f"scp:{tmp_path}/wav.scp", f"ark:{tmp_path}/out.ark")
    assert run(*COPY, *arguments, "--holder", "wave", "--to-holder", "matrix").returncode == 0
    assert read_matrices(f"ark:{tmp_path}/out.ark")["a"].shape == (2, 4000)


def test_what_cannot_be_converted_is_an_error_with_its_key(tmp_path: Path) -> None:
    ark = write_alignments(tmp_path)
    arguments = (f"ark:{ark}", "ark:-", "--holder", "int32-vector", "--to-holder", "posterior")
    done = run(*COPY, *arguments)
    assert done.returncode != 0
    assert b"the entry is 'utt1'" in done.stderr


def test_precision_makes_text_exact(tmp_path: Path) -> None:
    ark = write_matrices(tmp_path)
    for digits, is_exact in ((None, False), (9, True)):
        precision = () if digits is None else ("--precision", str(digits))
        run(*COPY, f"ark:{ark}", f"ark,t:{tmp_path}/text.ark", *MATRIX, *precision)
        assert same(read_matrices(f"ark:{tmp_path}/text.ark"), MATRICES) == is_exact


def test_keys_are_chosen_by_the_first_words_of_lines(tmp_path: Path) -> None:
    ark = write_matrices(tmp_path)
    (tmp_path / "wanted").write_bytes(b"utt4 speaker\r\nutt1\r\n\r\nutt9\n")
    with gzip.open(tmp_path / "unwanted.gz", "wb") as file:
        file.write(b"utt1 x\nutt0\n")
    arguments = (*COPY, f"ark:{ark}", "ark:-", *MATRIX)
    include, exclude = ("--include", "wanted"), ("--exclude", "gunzip -c unwanted.gz |")
    for options, keys in (
        (include, ["utt1", "utt4"]),
        (exclude, ["utt2", "utt3", "utt4", "utt5"]),
        ((*include, *exclude), ["utt4"]),
    ):
        done = run(*arguments, *options, cwd=tmp_path)
        (tmp_path / "out.ark").write_bytes(done.stdout)
        assert list(read_matrices(f"ark:{tmp_path}/out.ark")) == keys
        assert f"Copied {len(keys)} of 6 entries".encode() in done.stderr


def test_segments_are_rows_of_objects(tmp_path: Path) -> None:
    ark = write_matrices(tmp_path)
    (tmp_path / "segments").write_text("a utt2 1 3\nb utt0 0 100\nc utt2 5 6\n")
    arguments = (*COPY, f"ark:{ark}", "ark:out.ark", *MATRIX, "--segments", "segments")
    assert run(*arguments, cwd=tmp_path).returncode == 0
    cut = {"a": MATRICES["utt2"][1:3], "b": MATRICES["utt0"], "c": MATRICES["utt2"][5:6]}
    assert same(read_matrices(f"ark:{tmp_path}/out.ark"), cut)


def test_segments_of_lists_are_items_and_numbers_have_none(tmp_path: Path) -> None:
    (tmp_path / "post.ark").write_text("a [ 1 0.5 2 0.5 ] [ ] [ 3 1 ] \n")
    (tmp_path / "segments").write_text("x a 1 3\n")
    options = ("--holder", "posterior", "--segments", "segments")
    assert run(*COPY, "ark:post.ark", "ark,t:-", *options, cwd=tmp_path).stdout == b"x [ ] [ 3 1 ] \n"
    (tmp_path / "one.ark").write_text("a 5\n")
    options = ("--holder", "int32", "--segments", "segments")
    done = run(*COPY, "ark:one.ark", "ark,t:-", *options, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"needs an object with rows" in done.stderr


def test_segments_with_times_are_rounded_as_kaldi_rounds_them(tmp_path: Path) -> None:
    ark = write_matrices(tmp_path)
    (tmp_path / "segments").write_bytes(b"a utt5 0.03 0.07\r\nb utt5 0.0 0.059\r\n")
    options = ("--segments", "segments", "--frame-shift", "0.01")
    assert run(*COPY, f"ark:{ark}", "ark:out.ark", *MATRIX, *options, cwd=tmp_path).returncode == 0
    cut = {"a": MATRICES["utt5"][3:7], "b": MATRICES["utt5"][:5]}
    assert same(read_matrices(f"ark:{tmp_path}/out.ark"), cut)


def test_segments_of_missing_keys_are_a_failure_after_the_others(tmp_path: Path) -> None:
    ark = write_matrices(tmp_path)
    (tmp_path / "segments").write_text("a nobody 0 3\nb utt1 0 2\n")
    done = run(*COPY, f"ark:{ark}", "ark:out.ark", *MATRIX, "--segments", "segments", cwd=tmp_path)
    assert done.returncode == 1
    assert b"lacks the keys of 1 of 2 segments, the first of them 'nobody' (for 'a')" in done.stderr
    assert list(read_matrices(f"ark:{tmp_path}/out.ark")) == ["b"]


@pytest.mark.parametrize("line", ["a utt1 3", "a utt1 3 3", "a utt1 -1 3", "a utt1 x 3", "a utt1 1.5 3", ""])
def test_a_bad_line_of_segments_is_named(tmp_path: Path, line: str) -> None:
    ark = write_matrices(tmp_path)
    (tmp_path / "segments").write_text(f"a utt1 0 1\n{line}\n")
    done = run(*COPY, f"ark:{ark}", "ark:out.ark", *MATRIX, "--segments", "segments", cwd=tmp_path)
    assert done.returncode == 1
    assert b"'segments': line 2: expected KEY OLD-KEY START END" in done.stderr


def test_segments_of_waves_are_seconds(tmp_path: Path) -> None:
    wave = write_wave(tmp_path / "a.wav", channels=2)
    (tmp_path / "wav.scp").write_text(f"a {wave}\n")
    (tmp_path / "segments").write_text("x a 0.1 0.25\ny a 0.25 -1 1\n")
    arguments = (*COPY, "scp:wav.scp", "ark:out.ark", "--holder", "wave", "--segments", "segments")
    assert run(*arguments, cwd=tmp_path).returncode == 0
    whole = kaldi.read(str(wave), "wave").data
    with kaldi.SequentialReader(f"ark:{tmp_path}/out.ark", "wave") as reader:
        (_, x), (_, y) = reader
    assert np.array_equal(x.data, whole[:, 800:2000])
    assert np.array_equal(y.data, whole[1:, 2000:])
    done = run(*arguments, "--frame-shift", "0.01", cwd=tmp_path)
    assert done.returncode == 2
    (tmp_path / "segments").write_text("x a 0.1 99\n")
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert b"lies beyond the recording 'a'" in done.stderr


def test_one_object_is_copied_between_filenames(tmp_path: Path) -> None:
    ark = write_matrices(tmp_path)
    offset = (tmp_path / "feats.scp").read_text().splitlines()[1].split()[1]
    assert run(*COPY, offset, "one.mat", *MATRIX, cwd=tmp_path).returncode == 0
    assert np.array_equal(kn.FloatMatrix.read(str(tmp_path / "one.mat")).numpy(), MATRICES["utt1"])
    done = run(*COPY, f"{offset}[1:2]", "-", *MATRIX, "--text", "--precision", "9", cwd=tmp_path)
    assert len(done.stdout.splitlines()) == 3
    assert done.stderr == b"seekable: Copied 1 entry (matrix)\n"
    mixed = run(*COPY, f"ark:{ark}", "one.mat", *MATRIX, cwd=tmp_path)
    assert mixed.returncode == 2
    assert b"a table is copied to a table" in mixed.stderr


@pytest.mark.parametrize("target", ["ark:feats.ark", "ark,scp:new.ark,feats.scp", "ark:./feats.ark"])
def test_a_table_is_not_written_over_itself(tmp_path: Path, target: str) -> None:
    data = write_matrices(tmp_path).read_bytes()
    for source in ("scp:feats.scp", "ark:feats.ark"):
        if "scp" in target and "scp" not in source:
            continue
        done = run(*COPY, source, target, *MATRIX, cwd=tmp_path)
        assert done.returncode == 2
        assert b"--atomic" in done.stderr
        assert (tmp_path / "feats.ark").read_bytes() == data
    assert run(*COPY, "scp:feats.scp", target, *MATRIX, "--atomic", cwd=tmp_path).returncode == 0
    assert same(read_matrices(f"ark:{tmp_path}/{'new' if 'new' in target else 'feats'}.ark"), MATRICES)


def test_objects_are_not_written_to_the_files_that_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("word\n")
    (tmp_path / "a.scp").write_text("a a.txt\n")
    done = run(*COPY, "scp:a.scp", "scp:a.scp", "--holder", "token", cwd=tmp_path)
    assert done.returncode == 2
    assert (tmp_path / "a.txt").read_text() == "word\n"


def test_entries_are_appended(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a x\n")
    (tmp_path / "b").write_text("b y\n")
    for source in ("ark:a", "ark:b"):
        assert run(*COPY, source, "ark:out", "--holder", "token", "--append", cwd=tmp_path).returncode == 0
    assert (tmp_path / "out").read_text() == "a x\nb y\n"


def test_the_count_is_json_beside_the_data(tmp_path: Path) -> None:
    data = write_alignments(tmp_path).read_bytes()
    arguments = (f"ark:{tmp_path}/ali.ark", "--holder", "int32-vector", "--json")
    to_file = run(*COPY, arguments[0], f"ark:{tmp_path}/out.ark", *arguments[1:])
    found = {"copied": 6, "read": 6, "holder": "int32-vector", "schema": 1}
    assert json.loads(to_file.stdout) == {**found, "target": f"ark:{tmp_path}/out.ark"}
    to_stdout = run(*COPY, arguments[0], "ark:-", *arguments[1:])
    assert to_stdout.stdout == data
    assert json.loads(to_stdout.stderr) == {**found, "target": "ark:-"}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("ark:none.ark", "ark:-"), 4, b"there is no file 'none.ark'"),
        (("ark,x:a", "ark:-"), 2, b"'x' is not an option"),
        (("ark:a", "scp,ark:b,c"), 2, b"ark,scp in this order"),
        (("ark:a", "ark:-", "--compress", "9"), 2, b"'--compress'"),
        (("ark:a", "ark:-", "--compress", "2", "--to-holder", "vector"), 2, b"--to-holder is vector"),
        (("ark:a", "ark:-", "--text"), 2, b"--text has no meaning for a table"),
        (("a", "-", "--include", "x"), 2, b"--include has no meaning for one object"),
        (("a", "-", "--holder", "matrx"), 2, b"did you mean 'matrix'?"),
    ],
)
def test_wrong_usage_and_missing_files(
    tmp_path: Path, arguments: tuple[str, ...], code: int, message: bytes
) -> None:
    holder = () if "--holder" in arguments else MATRIX
    done = run(*COPY, *arguments, *holder, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, b"")
    assert message in done.stderr
    as_json = run(*COPY, *arguments, *holder, "--json", cwd=tmp_path)
    error = json.loads(as_json.stderr)["error"]
    assert error["exit_code"] == code
    assert os.listdir(tmp_path) == []


def test_commands_stand_in_pipes(tmp_path: Path) -> None:
    write_matrices(tmp_path)
    script = (
        "cat feats.ark | seekable kaldi copy ark:- ark,t:- --holder matrix -q"
        " | seekable kaldi copy 'ark,t:cat - |' 'ark:| gzip -c > out.ark.gz' --holder matrix --compress 2"
    )
    done = run_script(script, tmp_path)
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr == b"seekable: Copied 6 entries (compressed-matrix)\n"
    with kn.SequentialFloatMatrixReader(f"ark:gunzip -c {tmp_path}/out.ark.gz |") as reader:
        for key, matrix in reader:
            assert np.allclose(matrix, MATRICES[key], atol=0.05)


def test_a_failure_at_the_start_of_a_pipe_is_one_at_its_end(tmp_path: Path) -> None:
    data = write_matrices(tmp_path).read_bytes()
    (tmp_path / "torn.ark").write_bytes(data[:-1])
    script = "seekable kaldi copy ark:torn.ark ark:- --holder matrix -q > out.ark"
    done = run_script(script, tmp_path)
    assert done.returncode == 1
    assert list(read_matrices(f"ark:{tmp_path}/out.ark")) == list(MATRICES)[:5]


@pytest.mark.exhaustive
def test_a_reader_that_has_seen_enough_ends_a_copy_quietly(tmp_path: Path) -> None:
    (tmp_path / "long.ark").write_bytes(b"".join(b"k%d some words\n" % number for number in range(100_000)))
    script = "seekable kaldi copy ark:long.ark ark:- --holder token-vector | head -n 1"
    done = run_script(script, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"k0 some words \n", b"")
    script = "seekable kaldi head ark:long.ark -n 100000 --holder token-vector | head -n 1"
    done = run_script(script, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"k0 some words \n", b"")


@pytest.mark.exhaustive
def test_a_terminal_shows_the_count_and_an_interrupt_ends_a_copy(tmp_path: Path) -> None:
    target = tmp_path / "out.ark"
    command = [*COPY, "ark:yes 'key word' |", f"ark:{target}", "--holder", "token"]
    with in_terminal(*command, more=AT_ONCE) as terminal:
        terminal.read_until(rb"Copied [0-9,]+ entries so far")
        terminal.interrupt()
        code, seen = terminal.finish()
    assert code == 130
    assert b"interrupted" in seen
    with kaldi.SequentialReader(f"ark:{target}", "token") as reader:
        assert {value for _, value in reader} == {"word"}


@pytest.mark.exhaustive
def test_a_terminal_to_which_the_data_goes_shows_no_count(tmp_path: Path) -> None:
    (tmp_path / "a.ark").write_bytes(b"".join(b"k%d word\n" % number for number in range(50)))
    command = [*COPY, f"ark:{tmp_path}/a.ark", "ark,t:-", "--holder", "token"]
    with in_terminal(*command, more=AT_ONCE) as terminal:
        code, seen = terminal.finish()
    assert code == 0
    assert b"so far" not in seen
    assert seen.endswith(b"k49 word\r\nseekable: Copied 50 entries (token)\r\n")
