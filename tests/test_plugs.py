"""The package without its subjects: the core does its work, each format opens by itself, what lacks is named.

The checks are in tests/plugs.py, which runs in an interpreter of its own.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.format_cases import CASES, source_of
from tests.plugs import ASKED, FORMATS, HIDDEN, OF_THE_CORE

import seekable as sk
from seekable import kaldi

ROOT = Path(__file__).resolve().parent.parent

NAMES = [
    *OF_THE_CORE,
    *(f"{subject}: {name}" for subject, asking in ASKED.items() for name in asking),
    *(f"open {name}" for names in FORMATS.values() for name in names),
]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What goes wrong in each check."""
    folder = tmp_path_factory.mktemp("plugs")
    asked = {}
    for name in ("jsonl", *itertools.chain(*FORMATS.values())):
        below = folder / "inputs" / name
        below.mkdir(parents=True)
        if name in FORMATS["kaldi"]:
            asked[name] = f"{name}:{below}/a.{name}"
            with kaldi.Writer(f"ark,scp:{below}/a.ark,{below}/a.scp", "matrix") as writer:
                for row in range(3):
                    writer.write(str(row), np.full((2, 2), row, np.float32))
        else:
            CASES[name].write(below)
            asked[name] = source_of(CASES[name].asked, str(below))
    (folder / "asked.json").write_text(json.dumps(asked))
    sk.open(asked["tokens"]).pack(4, seed=1).save(folder / "packed.json")
    command = [sys.executable, "-m", "tests.plugs", str(folder)]
    environment = {**os.environ, "SEEKABLE_INDEX_DIR": str(folder / "indexes")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    checked: dict[str, str] = json.loads(done.stdout)
    return checked


@pytest.mark.parametrize("name", NAMES)
def test_nothing_but_the_hidden_subject_is_lacking(found: dict[str, str], name: str) -> None:
    assert found[name] == ""


@pytest.mark.exhaustive
def test_the_core_passes_its_own_tests_without_subjects() -> None:
    rooms = ("order", "state", "storage", "index", "nodes", "stream", "loader")
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not frameworks and not exhaustive"]
    command += [f"tests/{room}" for room in rooms]
    environment = {name: value for name, value in os.environ.items() if name != "SEEKABLE_TESTS"}
    environment["SEEKABLE_ALONE"] = "1"
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_every_check_has_a_case(found: dict[str, str]) -> None:
    assert [*found] == NAMES
    assert {*ASKED} == {*HIDDEN}
