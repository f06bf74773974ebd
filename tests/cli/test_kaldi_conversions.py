"""`seekable kaldi to-parquet` and `from-jsonl`: types, round trips through both, and their errors."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.command import output, run
from tests.cli.kaldi_tables import (
    MATRICES,
    read_matrices,
    run_with_input,
    same,
    write_alignments,
    write_matrices,
)
from tests.kaldi.holder_cases import CASES, dumped, plain

import seekable as sk
from seekable import kaldi
from seekable.cli.kaldi.object_forms import from_json, table_columns, to_json

if TYPE_CHECKING:
    from pathlib import Path

PARQUET, JSONL = ("kaldi", "to-parquet"), ("kaldi", "from-jsonl")
TYPES = {
    "int32": pa.int32(),
    "uint8": pa.uint8(),
    "double": pa.float64(),
    "bool": pa.bool_(),
    "token": pa.string(),
    "token-vector": pa.list_(pa.string()),
    "int32-vector": pa.list_(pa.int32()),
    "int32-vector-vector": pa.list_(pa.list_(pa.int32())),
    "vector": pa.list_(pa.float32()),
    "double-matrix": pa.list_(pa.list_(pa.float64())),
    "blob": pa.binary(),
}
NO_COLUMN = frozenset({"wave-info"})
"""Holders that are not written, and so not among the cases here."""


def cases() -> list[Any]:
    return [
        pytest.param(case, id=f"{case.holder}-{number}")
        for number, case in enumerate(CASES)
        if case.holder not in NO_COLUMN
    ]


@pytest.mark.parametrize("case", cases())
def test_every_object_goes_through_json_and_back(case: Any) -> None:
    holder = case.holder
    found = from_json(json.loads(json.dumps(to_json(case.value))), holder)
    if holder == "numpy-array":  # JSON does not say how precise its numbers are.
        assert np.array_equal(found, case.value)
    else:
        assert dumped(holder, found) == dumped(holder, decoded(case.value))


def decoded(value: Any) -> Any:
    return value.decode() if isinstance(value, kaldi.CompressedMatrix) else value


@pytest.mark.parametrize("case", cases())
def test_every_object_has_a_column(case: Any) -> None:
    columns = table_columns(kaldi.find_holder(case.holder), flat=False)
    (batch,) = columns.batches([("a", case.value), ("b", case.value)])
    assert batch.column("key").to_pylist() == ["a", "b"]
    assert batch.column("value").to_pylist()[0] == batch.column("value").to_pylist()[1]
    if case.holder in TYPES:
        assert batch.schema.field("value").type == TYPES[case.holder]
        assert plain(batch.column("value").to_pylist()[1]) == plain(to_value(case.value))


def to_value(value: Any) -> Any:
    """An object as Python values, as Arrow returns them."""
    return value.tolist() if isinstance(value, np.ndarray) else value


def test_matrices_are_lists_of_rows(tmp_path: Path) -> None:
    ark = write_matrices(tmp_path)
    done = run(*PARQUET, f"ark:{ark}", "feats.parquet", "--holder", "matrix", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr.startswith(b"seekable: Wrote 6 entries to feats.parquet (")
    table = pq.read_table(tmp_path / "feats.parquet")
    assert table.schema.types == [pa.string(), pa.list_(pa.list_(pa.float32()))]
    rows = sk.open(tmp_path / "feats.parquet")
    assert [row["key"] for row in rows] == list(MATRICES)
    assert all(np.array_equal(np.array(row["value"], "f4"), MATRICES[row["key"]]) for row in rows)


def test_flat_matrices_have_their_shape_beside_them(tmp_path: Path) -> None:
    ark = write_matrices(tmp_path)
    arguments = (f"ark:{ark}", tmp_path / "feats.parquet", "--holder", "matrix", "--flat", "--json")
    found = json.loads(output(*PARQUET, *arguments))
    assert (found["rows"], found["bytes"]) == (6, os.path.getsize(tmp_path / "feats.parquet"))
    table = pq.read_table(tmp_path / "feats.parquet")
    for row in table.to_pylist():
        assert np.array_equal(np.array(row["value"], "f4").reshape(row["shape"]), MATRICES[row["key"]])


@pytest.mark.parametrize("flat", [(), ("--flat",)])
def test_a_table_without_entries_is_a_file_without_rows(tmp_path: Path, flat: tuple[str, ...]) -> None:
    done = run_with_input(b"", *PARQUET, "ark:-", tmp_path / "a.parquet", "--holder", "matrix", *flat)
    assert done.returncode == 0
    table = pq.read_table(tmp_path / "a.parquet")
    assert (table.num_rows, table.column_names[:2]) == (0, ["key", "value"])


def test_matrices_without_elements_are_kept(tmp_path: Path) -> None:
    text = b"a [ ]\nb [\n 1 2\n 3 4 ]\nc [ ]\n"
    for flat, values in (
        ((), [[], [[1, 2], [3, 4]], []]),
        (("--flat",), [[], [1, 2, 3, 4], []]),
    ):
        path = tmp_path / f"{len(flat)}.parquet"
        assert run_with_input(text, *PARQUET, "ark:-", path, "--holder", "matrix", *flat).returncode == 0
        assert pq.read_table(path).column("value").to_pylist() == values


def test_many_entries_are_many_batches(tmp_path: Path) -> None:
    text = b"".join(b"k%d %d\n" % (number, number) for number in range(5000))
    run_with_input(text, *PARQUET, "ark:-", tmp_path / "a.parquet", "--holder", "int32")
    assert pq.read_table(tmp_path / "a.parquet").column("value").to_pylist() == list(range(5000))


def test_a_torn_table_is_no_parquet_file(tmp_path: Path) -> None:
    data = write_matrices(tmp_path).read_bytes()
    (tmp_path / "torn.ark").write_bytes(data[:-1])
    before = sorted(os.listdir(tmp_path))
    for source in ("ark:torn.ark", "ark:cat feats.ark; exit 3 |"):
        assert run(*PARQUET, source, "a.parquet", "--holder", "matrix", cwd=tmp_path).returncode == 1
        assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a.parquet", "--holder", "int32-vector", "--flat"), b"--flat is for matrices"),
        (("ali.ark", "--holder", "int32-vector"), b"--overwrite"),
        (("a.txt", "--holder", "int32-vector"), b"*.parquet"),
        (("a.parquet", "--holder", "int32-vector", "--compression", "none of them"), b"compression"),
    ],
)
def test_wrong_arguments_of_to_parquet(tmp_path: Path, arguments: tuple[str, ...], message: bytes) -> None:
    write_alignments(tmp_path)
    done = run(*PARQUET, "ark:ali.ark", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert os.listdir(tmp_path) == ["ali.ark"]


def test_a_key_that_is_no_utf8_is_named(tmp_path: Path) -> None:
    done = run_with_input(b"\xe9 5\n", *PARQUET, "ark:-", tmp_path / "a.parquet", "--holder", "int32")
    assert done.returncode == 1
    assert b"udce9" in done.stderr


def test_json_lines_become_a_table(tmp_path: Path) -> None:
    lines = "".join(
        json.dumps({"id": key, "feats": matrix.tolist(), "more": 1}) + "\n"
        for key, matrix in MATRICES.items()
    )
    (tmp_path / "a.jsonl").write_text(lines)
    arguments = ("a.jsonl", "ark,scp:a.ark,a.scp", "--key", "id", "--value", "feats", "--holder", "matrix")
    done = run(*JSONL, *arguments, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"seekable: Wrote 6 entries (matrix)\n")
    assert same(read_matrices(f"ark:{tmp_path}/a.ark"), MATRICES)


def test_what_head_prints_becomes_the_table_again(tmp_path: Path) -> None:
    ark = write_matrices(tmp_path)
    printed = output("kaldi", "head", f"ark:{ark}", "--holder", "matrix", "--json", "-n", "99")
    done = run_with_input(printed.replace(b"\n", b"\r\n"), *JSONL, "-", "ark:-", "--holder", "matrix", "-q")
    assert (done.stdout, done.stderr) == (ark.read_bytes(), b"")


def test_blank_lines_and_integer_keys() -> None:
    done = run_with_input(b'\n{"key": 7, "value": "a"}\r\n\r\n', *JSONL, "-", "ark:-", "--holder", "token")
    assert done.stdout == b"7 a\n"


def test_numbers_of_python_json_are_read() -> None:
    line = b'{"key": "a", "value": [NaN, Infinity, "-inf", 1]}'
    done = run_with_input(line, *JSONL, "-", "ark,t:-", "--holder", "vector")
    assert done.stdout == b"a  [ nan inf -inf 1 ]\n"


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        (b'{"key": "a"', 1, b"record 2 at byte 24"),
        (b'["a", 1]', 1, b"with the field 'key' (got list)"),
        (b'{"id": "a", "value": 1}', 1, b"got the fields ['id', 'value']"),
        (b'{"key": "a", "val": 1}', 1, b"with the field 'value'"),
        (b'{"key": "a b", "value": 1}', 2, b"this is line 3 of '-'"),
        (b'{"key": "", "value": 1}', 2, b"this is line 3 of '-'"),
        (b'{"key": true, "value": 1}', 1, b"a key must be text"),
        (b'{"key": "a", "value": "x"}', 1, b"this is line 3 of '-'"),
        (b'{"key": "a", "value": null}', 1, b"this is line 3 of '-'"),
        (b'{"key": "a", "value": [1, [2]]}', 1, b"this is line 3 of '-'"),
        (b'{"key": "a", "value": 3000000000}', 2, b"this is line 3 of '-'"),
    ],
)
def test_a_bad_line_is_named_after_the_good_ones(line: bytes, code: int, message: bytes) -> None:
    done = run_with_input(
        b'{"key":"k","value":1}\r\n\n'[:24] + line, *JSONL, "-", "ark,t:-", "--holder", "int32"
    )
    assert (done.returncode, done.stdout) == (code, b"k 1 \n")
    assert message in done.stderr
    assert b"Wrote 1 entry before that" in done.stderr


@pytest.mark.parametrize(
    ("holder", "value"),
    [
        ("posterior", [1, 2]),
        ("matrix", [[1], [2, 3]]),
        ("wave", {"rate": 8000}),
        ("wave", {"rate": 8000, "data": [[1]], "more": 1}),
        ("sparse-vector", [1, 2]),
        ("htk-matrix", {"data": [[1]], "speed": 1}),
        ("blob", "no base 64"),
        ("int32-pair-vector", [1, 2, 3]),
        ("int32-vector-vector", [1]),
        ("gauss-posterior", [[1]]),
    ],
)
def test_a_value_of_another_form_is_no_traceback(holder: str, value: Any) -> None:
    line = json.dumps({"key": "a", "value": value}).encode()
    done = run_with_input(line, *JSONL, "-", "ark:-", "--holder", holder)
    assert done.returncode in {1, 2}
    assert b"this is line 1 of '-'" in done.stderr


def test_a_command_that_prints_json_lines_may_fail(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"key": "a", "value": "b"}\n')
    arguments = ("ark:a.ark", "--holder", "token", "--atomic")
    done = run(*JSONL, "cat a.jsonl; exit 3 |", *arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert b"exit code 3" in done.stderr
    assert os.listdir(tmp_path) == ["a.jsonl"]
    assert run(*JSONL, "cat a.jsonl |", *arguments, cwd=tmp_path).returncode == 0
    assert (tmp_path / "a.ark").read_text() == "a b\n"
