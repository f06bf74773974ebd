"""Commands on scripts and archives of Kaldi, named by path and by rspecifier."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.cli.command import documents, output, run
from tests.kaldi.test_dataset import matrices, write_table

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("kind", ["scp", "ark"])
def test_the_commands_of_data_take_tables(tmp_path: Path, kind: str) -> None:
    values = matrices(5)
    write_table(tmp_path, values)
    path, spec = f"{tmp_path}/feats.{kind}", f"{kind}:{tmp_path}/feats.{kind}"
    (document,) = documents("index", spec, "--json")
    assert document["datasets"][0]["records"] == 5
    (about,) = documents("info", path, "--json")
    assert (about["records"], about["format"]) == (5, "scp" if kind == "scp" else "ark-matrix")
    for line, (key, value) in zip(output("head", path, "-n", "3").splitlines(), values.items(), strict=False):
        found_key, found = json.loads(line)
        assert found_key == key
        np.testing.assert_allclose(found, value, rtol=1e-6)
    (record,) = documents("get", spec, "3", "--json")
    assert record["record"][0] == "utt3"
    assert len(output("sample", spec, "-n", "2", "--seed", "1").splitlines()) == 2
    assert run("verify", spec, "--deep", "--decode").returncode == 0
    output("export", path, tmp_path / "out.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_bytes().splitlines()]
    assert [key for key, _ in rows] == list(values)


def test_a_holder_that_is_not_told_is_named_by_the_format(tmp_path: Path) -> None:
    write_table(tmp_path, {f"utt{n}": np.arange(n) for n in range(4)}, "int32-vector")
    done = run("head", f"{tmp_path}/feats.ark")
    assert done.returncode == 2
    assert b"Say which it is: --format ark-int32" in done.stderr
    for kind in ("ark", "scp"):
        printed = output("head", f"{tmp_path}/feats.{kind}", "--format", f"{kind}-int32-vector")
        assert printed.splitlines()[3] == b'["utt3",[0,1,2]]'
