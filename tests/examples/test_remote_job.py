"""The demo on a bucket proves what it says, on another machine and on other ranks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from examples.main_job.proof import read_logs

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a whole demo."""
    folder = tmp_path_factory.mktemp("remote-demo")
    done = subprocess.run(
        [sys.executable, "-m", "examples.remote_job.demo", "--output", str(folder / "out")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (folder / "said").write_text(done.stdout, encoding="utf-8")
    return folder


def test_the_demo_kills_and_goes_on_elsewhere_on_other_ranks(finished: Path) -> None:
    said = (finished / "said").read_text(encoding="utf-8")
    assert "all 2 ranks killed by SIGKILL" in said
    assert "PROVED" in said
    assert "NOT PROVED" not in said
    first, second = read_logs(str(finished / "out" / "interrupted"))
    assert 0 < second.begins_at <= first.ends_at
    (whole,) = read_logs(str(finished / "out" / "uninterrupted"))
    assert [batch.records for batch in whole.batches[second.begins_at :]] == [
        batch.records for batch in second.batches
    ]
    assert {path.split("/")[0] for batch in whole.batches for path, _, _ in batch.records} == {"s3:"}


def test_requests_failed_and_were_repeated(finished: Path) -> None:
    said = (finished / "said").read_text(encoding="utf-8")
    failed = [int(number) for number in re.findall(r"of which (\d+) failed", said)]
    assert len(failed) == 4
    assert sum(failed) > 0


def test_the_model_learns(finished: Path) -> None:
    (whole,) = read_logs(str(finished / "out" / "uninterrupted"))
    losses = [batch.loss for batch in whole.batches]
    assert sum(losses[-10:]) < 0.75 * sum(losses[:10])


def test_a_folder_that_is_not_a_demos_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("line\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "examples.remote_job.demo", "--output", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "holds other things" in done.stderr
    assert os.listdir(tmp_path) == ["x.txt"]
