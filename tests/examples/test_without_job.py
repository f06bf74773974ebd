"""The demo of records that are left out proves what it says: its counts see each slot that changed."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from examples.without_job.proof import Found, Launch, Step, compared, differing, joined, read_launches

ROOT = Path(__file__).resolve().parent.parent.parent
OUT = {("a", 1), ("a", 5)}
WHOLE = {step: Step(1.0 / (1 + step), (("a", step), ("b", step))) for step in range(8)}
WITHOUT = WHOLE | {
    1: replace(WHOLE[1], records=(("a", 3), ("b", 1))),
    5: replace(WHOLE[5], records=(("a", 7), ("b", 5))),
}


def swapped(step: int, *records: tuple[str, int]) -> dict[int, Step]:
    """Return the run without the records, of which a step has others."""
    return WITHOUT | {step: replace(WITHOUT[step], records=records)}


@pytest.mark.parametrize(
    ("other", "found"),
    [
        pytest.param(WITHOUT, Found(16, 2, 0, 0, 0, 0), id="without them"),
        pytest.param(WHOLE, Found(16, 0, 2, 0, 0, 0), id="with all"),
        pytest.param(swapped(5, ("a", 5), ("b", 5)), Found(16, 1, 1, 0, 0, 0), id="one came"),
        pytest.param(swapped(5, ("b", 7), ("b", 5)), Found(16, 1, 0, 1, 0, 0), id="of another source"),
        pytest.param(swapped(2, ("b", 2), ("a", 2)), Found(16, 2, 0, 0, 2, 0), id="two moved"),
        pytest.param(swapped(2, ("a", 2)), Found(16, 2, 0, 0, 1, 0), id="one is missing"),
        pytest.param(swapped(2, ("a", 2), ("b", 2), ("a", 1)), Found(16, 2, 0, 0, 1, 0), id="one too many"),
    ],
)
def test_each_slot_that_changed_is_counted(other: dict[int, Step], found: Found) -> None:
    assert compared(WHOLE, other, OUT, since=0) == found
    assert found.holds is (other is WITHOUT)


def test_before_a_takedown_all_is_as_in_the_whole_run() -> None:
    taken_down = {step: (WHOLE if step < 4 else WITHOUT)[step] for step in WHOLE}
    assert compared(WHOLE, taken_down, OUT, since=4) == Found(16, 1, 0, 0, 0, 0)
    assert compared(WHOLE, taken_down | {1: WITHOUT[1]}, OUT, since=4).moved == 1
    assert compared(WHOLE, taken_down | {2: replace(WHOLE[2], loss=9.0)}, OUT, since=4).unequal == 1
    assert differing(WITHOUT, taken_down, since=4) == 0
    assert differing(WITHOUT, taken_down, since=0) == 1


def test_steps_that_were_made_again_count_once() -> None:
    launches = [
        Launch(3, 0, {step: WHOLE[step] for step in range(6)}),
        Launch(1, 4, {step: WITHOUT[step] for step in range(4, 8)}),
    ]
    assert joined(launches) == {step: (WHOLE if step < 4 else WITHOUT)[step] for step in WHOLE}


def test_the_demo_leaves_records_out_and_proves_it(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "examples.without_job.demo", "--output", str(tmp_path / "out")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" ranks killed by SIGKILL") == 3
    assert "\nPROVED" in done.stdout
    picture = (tmp_path / "out" / "loss.svg").read_text(encoding="utf-8")
    assert picture.count("<polyline") == 3
    assert [launch.ranks for launch in read_launches(str(tmp_path / "out" / "takedown"))] == [3, 2, 6, 1]
