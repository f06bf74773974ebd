"""The demo of stops proves what it says: its counts see what comes twice, is lost or moved."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from examples.preempted_job.proof import Launch, Proof, Step, joined, prove, read_launch, read_launches

ROOT = Path(__file__).resolve().parent.parent.parent
WHOLE = {step: Step((((2 * step, 3),), ((2 * step + 1, 2), (7, 1))), 1.0 / (1 + step)) for step in range(6)}
FIRST, SECOND = WHOLE[2].samples


@pytest.mark.parametrize(
    ("changed", "proof"),
    [
        pytest.param({}, Proof(0, 0, 0, 0), id="the same"),
        pytest.param({2: replace(WHOLE[2], samples=(FIRST,))}, Proof(0, 3, 1, 0), id="a sample lost"),
        pytest.param({2: replace(WHOLE[2], samples=(FIRST, FIRST))}, Proof(3, 3, 1, 0), id="twice and lost"),
        pytest.param({2: replace(WHOLE[2], samples=(SECOND, FIRST))}, Proof(0, 0, 1, 0), id="swapped"),
        pytest.param({2: replace(WHOLE[2], loss=0.3)}, Proof(0, 0, 0, 1), id="another loss"),
        pytest.param({6: WHOLE[0]}, Proof(6, 0, 1, 1), id="a step too many"),
    ],
)
def test_each_difference_is_counted(changed: dict[int, Step], proof: Proof) -> None:
    found = prove(WHOLE | changed, WHOLE)
    assert found == proof
    assert found.holds == (not changed)


def test_steps_that_were_made_again_count_once() -> None:
    parts = [(0, range(4)), (2, range(2, 5)), (5, range(5, 6))]
    launches = [Launch(begins, 2, {step: WHOLE[step] for step in steps}) for begins, steps in parts]
    assert joined(launches) == (WHOLE, 2)


def test_a_step_counts_when_all_ranks_have_logged_it(tmp_path: Path) -> None:
    paths = [tmp_path / f"log-001-{rank}.jsonl" for rank in range(2)]
    for rank, path in enumerate(paths):
        lines: list[dict[str, Any]] = [{"begins_at": 0, "ranks": 2}]
        lines += [{"step": step, "loss": 0.5, "samples": [[[rank, 9]]]} for step in range(3 - rank)]
        path.write_text(
            "".join(json.dumps(line) + "\n" for line in lines) + '{"step": 3, "lo', encoding="utf-8"
        )
    launch = Launch(0, 2, {step: Step((((0, 9),), ((1, 9),)), 0.5) for step in range(2)})
    assert read_launch(list(map(str, paths))) == launch
    assert read_launches(str(tmp_path)) == [launch]
    assert read_launch([str(paths[0])]) is None


def test_the_demo_stops_kills_and_proves(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "examples.preempted_job.demo", "--stops", "5", "--output"]
    done = subprocess.run(
        [*command, str(tmp_path / "out")], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": stopped at step ") == 5
    assert "bytes twice         0\nbytes lost          0\n" in done.stdout
    assert "PROVED" in done.stdout
    launches = read_launches(str(tmp_path / "out" / "stopped"))
    assert [launch.ranks for launch in launches] == [3, 2, 4, 1, 2, 6, 3, 2]
