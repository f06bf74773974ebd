"""The demo on tokens proves what it says: its counts see each token that is repeated, lost or moved."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from examples.tokens_job.proof import Count, Log, Step, count, differing, joined, read_log, read_logs

import seekable as sk

ROOT = Path(__file__).resolve().parent.parent.parent


def run_program(name: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "examples" / "tokens_job" / name), *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of the tokens of four documents, in two files: 8 + 5 and 4 + 3 tokens."""
    folder = tmp_path_factory.mktemp("tokens") / "code-tokens"
    documents = [{"tokens": list(range(size))} for size in (8, 5, 4, 3)]
    sk.from_sequence(documents).write_tokens(folder, store=sk.formats.TokenStore(rows_per_file=2))
    return str(folder)


def pieces(folder: str, *tokens: tuple[int, int, int]) -> Step:
    """A step of one sample, given for each piece its file's number, its first token and its length."""
    sample = tuple((f"{folder}/part-{file:06d}.bin", 2 * start, 2 * size) for file, start, size in tokens)
    return Step(0, 0.5, (sample,))


WHOLE = [((0, 0, 8),), ((0, 8, 5), (1, 4, 3)), ((1, 0, 4),)]


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        pytest.param(WHOLE, Count(20, 20, 0, 0), id="an epoch"),
        pytest.param(WHOLE * 2, Count(20, 40, 0, 0), id="two epochs"),
        pytest.param(WHOLE[:2], Count(20, 16, 0, 0), id="a part of an epoch"),
        pytest.param(
            [*WHOLE[:2], ((1, 4, 3), (1, 0, 1))], Count(20, 20, 3, 3), id="tokens repeated and lost"
        ),
        pytest.param([WHOLE[0], WHOLE[0]], Count(20, 16, 8, 0), id="a sample repeated"),
    ],
)
def test_each_token_is_counted(
    tokens: str, steps: list[tuple[tuple[int, int, int], ...]], found: Count
) -> None:
    assert count([pieces(tokens, *step) for step in steps], tokens) == found


def test_tokens_of_another_source_do_not_count(tokens: str) -> None:
    assert count([pieces("elsewhere", (0, 0, 8))], tokens) == Count(20, 0, 0, 0)


def test_differing_steps_are_counted(tokens: str) -> None:
    steps = [replace(pieces(tokens, *step), step=number) for number, step in enumerate(WHOLE)]
    assert differing(steps, steps, 3) == (0, 0)
    assert differing(steps, [steps[0], steps[2], steps[1]], 3) == (2, 0)
    assert differing([replace(steps[0], loss=0.5 + 1e-15), *steps[1:]], steps, 3) == (0, 1)
    assert differing(steps[:2], steps, 3) == (1, 1)


def test_steps_after_the_state_that_was_resumed_from_count_once(tokens: str) -> None:
    steps = [replace(pieces(tokens, (0, 0, 1)), step=number) for number in range(6)]
    logs = [Log(3, 256, 0, 1.0, tuple(steps[:5])), Log(2, 256, 3, 1.0, tuple(steps[3:]))]
    assert joined(logs) == steps


def test_a_log_line_that_was_cut_off_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "log-1.jsonl"
    lines = [
        '{"ranks": 3, "length": 256, "begins_at": 0, "milliseconds": 1.5}\n',
        '{"step": 0, "loss": 0.1, "samples": [[["a", 0, 9]]]}\n',
        '{"step": 1, "loss": 0.1, "sam',
    ]
    path.write_text("".join(lines), encoding="utf-8")
    assert read_log(str(path)) == Log(3, 256, 0, 1.5, (Step(0, 0.1, ((("a", 0, 9),),)),))
    path.write_text("", encoding="utf-8")  # killed before its first step
    assert read_log(str(path)) is None


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a whole demo."""
    folder = tmp_path_factory.mktemp("tokens-demo")
    done = run_program("demo.py", "--output", "out", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    (folder / "said").write_text(done.stdout, encoding="utf-8")
    return folder


def test_the_demo_kills_resumes_on_other_ranks_and_at_another_length(finished: Path) -> None:
    said = (finished / "said").read_text(encoding="utf-8")
    assert "all 3 ranks killed by SIGKILL" in said
    assert said.count("repeated in an epoch 0, lost 0\n") == 2
    assert said.count("in all 30 steps") == 2
    assert "PROVED" in said
    first, second, third = read_logs(str(finished / "out" / "interrupted"))
    assert [(log.ranks, log.length) for log in (first, second, third)] == [(3, 256), (2, 256), (2, 128)]
    assert 0 < second.begins_at <= first.steps[-1].step + 1 < third.begins_at == 30
    sizes = {sum(size // 2 for *_, size in sample) for step in third.steps for sample in step.samples}
    assert {128, 256} <= sizes


def test_the_model_learns(finished: Path) -> None:
    losses = [step.loss for step in joined(read_logs(str(finished / "out" / "interrupted")))]
    assert sum(losses[-10:]) < 0.75 * sum(losses[:10])


def test_a_changed_log_is_refused(finished: Path, tmp_path: Path) -> None:
    for name in ("data", "interrupted", "uninterrupted"):
        shutil.copytree(finished / "out" / name, tmp_path / name)
    shown = ("data", "interrupted", "uninterrupted")
    path = tmp_path / "interrupted" / "log-3.jsonl"
    text = path.read_text(encoding="utf-8").replace(str(Path("out", "data")), "data")
    lines = text.splitlines()
    entry = json.loads(lines[3])
    del entry["samples"][0]
    lines[3] = json.dumps(entry)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    refused = run_program("proof.py", *shown, cwd=tmp_path)
    assert (refused.returncode, "NOT PROVED" in refused.stdout) == (1, True)


def test_a_folder_that_is_not_a_demos_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("line\n", encoding="utf-8")
    done = run_program("demo.py", "--output", ".", cwd=tmp_path)
    assert done.returncode == 1
    assert "holds other things" in done.stderr
    assert os.listdir(tmp_path) == ["x.txt"]
