"""The demo on conversations proves what it says: it sees each trained token that is repeated or lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from examples.chats_job.proof import Count, count, joined

import seekable as sk

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of two documents of 4 and 3 tokens, of which 2 and 1 are in the loss, in two files."""
    folder = tmp_path_factory.mktemp("chats") / "tokens"
    masks = [[0, 0, 1, 1], [0, 0, 1]]
    documents = [{"tokens": list(range(len(mask))), "loss_mask": mask} for mask in masks]
    how = sk.formats.TokenStore(rows_per_file=1, align=["loss_mask"])
    sk.from_sequence(documents).write_tokens(folder, store=how)
    return str(folder)


def step(folder: str, trained: int, *pieces: tuple[int, int, int], number: int = 0) -> dict[str, Any]:
    """Return a step of one sample; each piece has its file, its first token and the number of its tokens."""
    sample = [[f"{folder}/part-{file:06d}.bin", 2 * start, 2 * size] for file, start, size in pieces]
    return {"step": number, "loss": 0.1, "trained": trained, "samples": [sample]}


WHOLE = ((0, 0, 4), (1, 0, 3))


@pytest.mark.parametrize(
    ("steps", "found", "holds"),
    [
        pytest.param([(3, *WHOLE)], Count(7, 3, 1, 3, 3, 0, 0), True, id="an epoch"),
        pytest.param([(2, WHOLE[0]), (1, WHOLE[1])] * 2, Count(7, 3, 2, 6, 6, 0, 0), True, id="two epochs"),
        pytest.param([(3, *WHOLE), (2, WHOLE[0])], Count(7, 3, 1, 5, 5, 0, 0), True, id="more than an epoch"),
        pytest.param([(2, *WHOLE)], Count(7, 3, 1, 3, 2, 0, 0), False, id="one not trained on"),
        pytest.param([(7, *WHOLE)], Count(7, 3, 1, 3, 7, 0, 0), False, id="trained on all"),
        pytest.param([(2, WHOLE[1], (1, 0, 3), (0, 0, 1))], Count(7, 3, 1, 2, 2, 1, 2), False, id="repeated"),
    ],
)
def test_counts(tokens: str, steps: list[tuple[Any, ...]], found: Count, *, holds: bool) -> None:
    made = count([step(tokens, trained, *pieces) for trained, *pieces in steps], tokens)
    assert made == found
    assert made.holds is holds


def test_steps_after_the_state_that_was_resumed_from_count_once() -> None:
    steps = [step("t", 1, (0, 0, 1), number=number) for number in range(6)]
    logs = [[{"ranks": 3, "begins_at": 0}, *steps[:5]], [{"ranks": 2, "begins_at": 3}, *steps[3:]]]
    assert joined(logs) == steps


@pytest.mark.demo
def test_the_demo_is_killed_resumes_on_other_ranks_and_proves_its_counts(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "examples.chats_job.demo", "--output", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all 3 ranks killed by SIGKILL" in done.stdout
    assert "repeated in an epoch 0, lost 0\n" in done.stdout
    assert "as in the uninterrupted run" in done.stdout
    assert "\nPROVED" in done.stdout
