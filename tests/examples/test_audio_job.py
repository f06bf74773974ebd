"""The demo on audio proves what it says: its counts see every difference, and it resumes on other ranks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from examples.audio_job.proof import Log, Proof, Step, joined, prove, read_log, read_logs

import seekable as sk

ROOT = Path(__file__).resolve().parent.parent.parent
WHOLE = [
    Step(step, 3 - step / 10, tuple((f"cut-{i % 7}", 7 * step + i) for i in range(4))) for step in range(9)
]


def run_program(name: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "examples" / "audio_job" / name), *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def with_records(*records: tuple[str, int]) -> list[Step]:
    """The whole run with other records in its fourth step."""
    return [*WHOLE[:3], replace(WHOLE[3], records=records), *WHOLE[4:]]


A, B, C, D = WHOLE[3].records


@pytest.mark.parametrize(
    ("interrupted", "proof"),
    [
        pytest.param(list(WHOLE), Proof(0, 0, 0, 0), id="the same"),
        pytest.param(with_records(A, B, C), Proof(0, 1, 1, 0), id="a cut dropped"),
        pytest.param(with_records(A, B, C, C, D), Proof(1, 0, 1, 0), id="a cut repeated"),
        pytest.param(with_records(A, C, B, D), Proof(0, 0, 1, 0), id="two cuts swapped"),
        pytest.param(with_records(A, B, C, (D[0], 0)), Proof(1, 1, 1, 0), id="other noise"),
        pytest.param(
            [*WHOLE[:4], replace(WHOLE[4], loss=2.6 + 1e-15), *WHOLE[5:]], Proof(0, 0, 0, 1), id="loss"
        ),
        pytest.param(WHOLE[:8], Proof(0, 4, 1, 1), id="the last step missing"),
    ],
)
def test_each_difference_is_counted(interrupted: list[Step], proof: Proof) -> None:
    assert prove(interrupted, WHOLE) == proof
    assert proof.holds == (interrupted == WHOLE)


def test_steps_after_the_state_that_was_resumed_from_count_once() -> None:
    logs = [Log(3, 0, 1.0, tuple(WHOLE[:6])), Log(2, 4, 1.0, tuple(WHOLE[4:]))]
    assert joined(logs) == WHOLE


def test_a_log_line_that_was_cut_off_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "log-1.jsonl"
    lines = [
        '{"ranks": 3, "begins_at": 0, "milliseconds": 1.5}\n',
        '{"step": 0, "loss": 0.1, "right": 0.5, "records": [["a", 9]]}\n',
        '{"step": 1, "loss": 0.1, "rec',
    ]
    path.write_text("".join(lines), encoding="utf-8")
    assert read_log(str(path)) == Log(3, 0, 1.5, (Step(0, 0.1, (("a", 9),)),))
    path.write_text("", encoding="utf-8")  # killed before its first step
    assert read_log(str(path)) is None


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a whole demo."""
    folder = tmp_path_factory.mktemp("audio")
    done = run_program("demo.py", "--output", "out", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    (folder / "said").write_text(done.stdout, encoding="utf-8")
    return folder


def test_the_demo_kills_resumes_on_other_ranks_and_proves(finished: Path) -> None:
    said = (finished / "said").read_text(encoding="utf-8")
    assert "all 3 ranks killed by SIGKILL" in said
    assert "cuts repeated       0\ncuts lost           0\n" in said
    assert said.count("in all 60 steps") == 2
    assert "PROVED" in said
    first, second = read_logs(str(finished / "out" / "interrupted"))
    assert (first.ranks, second.ranks) == (3, 2)
    assert 0 < second.begins_at <= first.ends_at < second.ends_at == 60
    assert sorted(os.listdir(finished)) == ["out", "said"]


def test_the_logged_sounds_are_those_of_the_data_or_have_noise(finished: Path) -> None:
    data = sk.open(f"shar:{finished / 'out' / 'data' / 'speech'}", decode="audio")
    clean = {cut["id"]: zlib.crc32(cut["recording"]["data"][0]) for cut in data}
    (whole,) = read_logs(str(finished / "out" / "uninterrupted"))
    records = [record for step in whole.steps for record in step.records]
    assert {name for name, _ in records} == clean.keys()
    assert sum(clean[name] == crc for name, crc in records) == pytest.approx(0.2 * len(records), rel=0.2)


def test_the_model_learns(finished: Path) -> None:
    (whole,) = read_logs(str(finished / "out" / "uninterrupted"))
    losses = [step.loss for step in whole.steps]
    assert sum(losses[-10:]) < 0.75 * sum(losses[:10])


@pytest.mark.parametrize("log", ["log-1", "log-2"])
def test_a_changed_log_is_refused(finished: Path, tmp_path: Path, log: str) -> None:
    for run in ("interrupted", "uninterrupted"):
        shutil.copytree(finished / "out" / run, tmp_path / run)
    assert run_program("proof.py", "interrupted", "uninterrupted", cwd=tmp_path).returncode == 0
    path = tmp_path / "interrupted" / f"{log}.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    entry = json.loads(lines[9])
    del entry["records"][0]
    lines[9] = json.dumps(entry)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    refused = run_program("proof.py", "interrupted", "uninterrupted", cwd=tmp_path)
    assert (refused.returncode, "NOT PROVED" in refused.stdout) == (1, True)


def test_a_folder_that_is_not_a_demos_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("line\n", encoding="utf-8")
    done = run_program("demo.py", "--output", ".", cwd=tmp_path)
    assert done.returncode == 1
    assert "holds other things" in done.stderr
    assert os.listdir(tmp_path) == ["x.txt"]
