"""A run that is steered, and from which records are left out, is killed at each step around these changes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path

STEPS, STEER_AT, EXCLUDE_AT = 16, 6, 9
GONE = range(0, 90, 4)


def make() -> sk.Loader:
    a, b = (sk.from_sequence(range(first, first + 90), version=first) for first in (0, 100))
    mixture = sk.mix({"a": a.shuffle(1), "b": b.shuffle(2)}, weights={"a": 3, "b": 1}, seed=3, stop="never")
    return sk.Loader(mixture, batch_size=8, steps=STEPS, collate=list)


def change(loader: sk.Loader) -> None:
    loader.steer({"a": 1, "b": 4}, at=STEER_AT)
    loader.exclude([("<builtins.range 0>", row) for row in GONE], at=EXCLUDE_AT)


def live(folder: Path, kill_at: int) -> None:
    """Go on from the last state, save one after each step, and change the run at step 3."""
    loader = make()
    sk.load_state(folder / "states", loader)
    with (folder / "log").open("a") as log:
        for batch in loader:
            if loader.step == 3:
                change(loader)
            log.write(f"{json.dumps([loader.step, batch])}\n")
            log.flush()
            sk.save_state(folder / "states", loader)
            if loader.step == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.exhaustive
def test_what_was_changed_outlives_the_process(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from tests.loader.test_journal_killed import live\n"
        "live(Path(sys.argv[1]), int(sys.argv[2]))"
    )
    ends = []
    for kill_at in (2, 3, 5, 6, 7, 8, 9, 10, STEPS + 1):
        done = subprocess.run([sys.executable, "-c", program, tmp_path, str(kill_at)], check=False)
        ends.append(done.returncode)
    assert ends == [-signal.SIGKILL] * 8 + [0]
    found = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    whole = make()
    change(whole)
    assert found == [[step, batch] for step, batch in enumerate(whole, 1)]
    assert not {row for step, batch in found if step > EXCLUDE_AT for row in batch} & {*GONE}
