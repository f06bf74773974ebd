"""A few cases of each target at each run of the tests; ``make fuzz`` runs as many as there is time for."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from tests.fuzz import run
from tests.fuzz.targets import TARGETS
from tests.thrift import some

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("target", TARGETS)
def test_a_few_cases(target: str, tmp_path: Path) -> None:
    for case in range(some(10)):
        folder = tmp_path / str(case)
        folder.mkdir()
        TARGETS[target](folder, random.Random(f"{target} {case}"))


def test_a_failure_is_shown_with_the_command_that_repeats_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(folder: Path, rng: random.Random) -> None:  # noqa: ARG001 - as targets are
        raise AssertionError

    monkeypatch.setitem(TARGETS, "text", failing)
    assert not run.run("text", 7)
    assert '--only text --seed 7"' in capsys.readouterr().out


def test_the_command_runs() -> None:
    command = [sys.executable, run.__file__, "--seconds", "0", "--only", "jsonl"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seed, last = done.stdout.splitlines()
    assert re.fullmatch(r'seed (\d+): make fuzz ARGS="--seed \1" repeats it', seed)
    assert last == "1 cases of jsonl: none failed"


def test_properties_draw_from_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def note(command: list[str], **given: Any) -> Done:
        asked.append((command, given))
        return Done()

    monkeypatch.setattr(subprocess, "run", note)
    assert run.check_properties(5, 300) == 3
    ((command, given),) = asked
    assert {"--hypothesis-profile=fuzz", "--hypothesis-seed=5"} < {*command}
    assert given["env"]["SEEKABLE_FUZZ_EXAMPLES"] == "300"


class Done:
    """A process that has ended."""

    returncode = 3
