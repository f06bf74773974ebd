"""The demo on a cluster of Ray proves what it says: its counts see each document repeated, lost or moved."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from examples.ray_job.proof import Launch, Proof, compare, joined, read_launches

ROOT = Path(__file__).resolve().parent.parent.parent


def run_program(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"examples.ray_job.{name}", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def batches(*numbers: list[int]) -> list[list[tuple[int, int]]]:
    return [[(number, 10 * number) for number in batch] for batch in numbers]


WHOLE = batches([2, 0, 1], [3, 3, 1], [2, 0])
"""Two epochs of four documents."""


@pytest.mark.parametrize(
    ("found", "proof"),
    [
        pytest.param(WHOLE, Proof(0, 0, 0), id="the same"),
        pytest.param(batches([0, 2, 1], [3, 3, 1], [2, 0]), Proof(0, 0, 1), id="another order"),
        pytest.param(batches([2, 0, 1], [0, 3, 1], [2, 0]), Proof(1, 1, 1), id="repeated and lost"),
        pytest.param(WHOLE[:2], Proof(0, 2, 1), id="not finished"),
        pytest.param([*WHOLE, *batches([1])], Proof(0, 3, 1), id="too long"),
        pytest.param([[(2, 20), (0, 1), (1, 10)], *WHOLE[1:]], Proof(0, 0, 1), id="other tokens"),
    ],
)
def test_each_document_is_counted(found: list[list[tuple[int, int]]], proof: Proof) -> None:
    assert compare(found, WHOLE, 4) == proof


def test_batches_after_the_checkpoint_that_a_launch_went_on_from_count_once() -> None:
    first = {step: [(step, 0)] for step in range(1, 6)}
    second = {step: [(10 * step, 0)] for step in range(1, 5)}
    alone = {step: [(step, 0), (10 * step, 0)] for step in range(4, 9)}
    launches = [Launch(0, [first, second]), Launch(3, [{}]), Launch(3, [alone])]
    assert launches[0].ends_at == 4
    assert joined(launches) == [[(step, 0), (10 * step, 0)] for step in range(1, 9)]


def test_a_log_line_that_was_cut_off_and_a_log_that_is_missing_do_not_count(tmp_path: Path) -> None:
    head = '{"ranks": 2, "begins_at": 0}\n'
    (tmp_path / "log-1-1.jsonl").write_text(head + '{"step": 1, "rows": [[4, 5]]}\n{"step": 2, "ro')
    (tmp_path / "log-2-0.jsonl").write_text("")
    assert read_launches(str(tmp_path)) == [Launch(0, [{}, {1: [(4, 5)]}])]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a whole demo."""
    folder = tmp_path_factory.mktemp("ray-demo")
    done = run_program("demo", "--output", str(folder / "out"))
    assert done.returncode == 0, done.stdout + done.stderr
    (folder / "said").write_text(done.stdout, encoding="utf-8")
    return folder


def test_the_demo_loses_a_node_gets_it_back_and_loses_its_driver(finished: Path) -> None:
    said = (finished / "said").read_text(encoding="utf-8")
    assert "repeated 0, lost 0\n" in said
    assert "that of one process, bit for bit" in said
    assert "NOT PROVED" not in said
    launches = read_launches(str(finished / "out" / "run"))
    assert [len(launch.ranks) for launch in launches] == [4, 2, 4, 4]
    assert [launch.begins_at for launch in launches] == [0, 20, 40, 60]


def test_a_changed_log_is_refused(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished / "out" / "run", tmp_path / "run")
    path = tmp_path / "run" / "log-2-1.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    entry = json.loads(lines[3])
    entry["rows"].reverse()
    lines[3] = json.dumps(entry)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    refused = run_program("proof", str(tmp_path / "run"), str(finished / "out" / "tokens"))
    assert (refused.returncode, "NOT PROVED" in refused.stdout) == (1, True)


def test_a_folder_that_is_not_a_demos_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("line\n", encoding="utf-8")
    done = run_program("demo", "--output", str(tmp_path))
    assert done.returncode == 1
    assert "holds other things" in done.stderr
    assert os.listdir(tmp_path) == ["x.txt"]
