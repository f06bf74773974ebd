"""The demo proves what it says: its counts see every difference, and it runs on data of any kind."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from examples.main_job.picture import drawn, svg
from examples.main_job.proof import Batch, Log, Proof, joined, prove, read_log, read_logs
from examples.main_job.standard_library import passages

from seekable.cli.shared_options import DataOptions, RunOptions, Shown
from seekable.cli.view_targets import opened_targets

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WHOLE = [
    Batch(step, 5.0 - step / 10, tuple(("a.txt", 4 * step + i, 7 * step + i) for i in range(4)))
    for step in range(10)
]


def run_program(name: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, os.path.join(ROOT, "examples", "main_job", name), *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def with_records(batch: Batch, *records: tuple[str, int, int]) -> list[Batch]:
    """The whole run with other records in one of its batches."""
    return [replace(batch, records=records) if other.step == batch.step else other for other in WHOLE]


def test_two_runs_that_are_the_same_hold() -> None:
    assert prove(list(WHOLE), WHOLE, expected=40) == Proof(repeated=0, lost=0, moved=0, unequal=0)
    assert prove(list(WHOLE), WHOLE, expected=40).holds


A, B, C, D = WHOLE[3].records


@pytest.mark.parametrize(
    ("interrupted", "proof"),
    [
        pytest.param(with_records(WHOLE[3], A, B, C), Proof(0, 1, 1, 0), id="a record dropped"),
        pytest.param(with_records(WHOLE[3], A, B, C, C, D), Proof(1, 0, 1, 0), id="a record repeated"),
        pytest.param(with_records(WHOLE[3], A, B, C, A), Proof(1, 1, 1, 0), id="a record in another's place"),
        pytest.param(with_records(WHOLE[3], A, C, B, D), Proof(0, 0, 1, 0), id="two records swapped"),
        pytest.param(with_records(WHOLE[3], A, B, C, (*D[:2], 0)), Proof(0, 0, 1, 0), id="other content"),
        pytest.param(
            [*WHOLE[:4], replace(WHOLE[4], loss=4.6 + 1e-15), *WHOLE[5:]], Proof(0, 0, 0, 1), id="loss"
        ),
        pytest.param(WHOLE[:9], Proof(0, 4, 1, 1), id="the last batch missing"),
        pytest.param([*WHOLE, WHOLE[9]], Proof(4, 0, 1, 1), id="the last batch twice"),
    ],
)
def test_each_difference_is_counted(interrupted: list[Batch], proof: Proof) -> None:
    found = prove(interrupted, WHOLE, expected=40)
    assert found == proof
    assert not found.holds


def test_records_that_neither_run_delivered_are_lost() -> None:
    assert prove(list(WHOLE), WHOLE, expected=43) == Proof(repeated=0, lost=3, moved=0, unequal=0)


def log(begins_at: int, *steps: int) -> Log:
    return Log(begins_at, 1.0, 40, tuple(WHOLE[step] for step in steps))


def test_batches_after_the_state_that_was_resumed_from_count_once() -> None:
    assert joined([log(0, 0, 1, 2, 3, 4, 5), log(4, 4, 5, 6, 7), log(6, 6, 7, 8, 9)]) == WHOLE


def test_a_process_that_resumes_too_late_leaves_a_hole() -> None:
    batches = joined([log(0, 0, 1, 2), log(4, 4, 5, 6, 7, 8, 9)])
    assert prove(batches, WHOLE, expected=40).lost == 4


def test_a_log_line_that_was_cut_off_does_not_count(tmp_path: Path) -> None:
    lines = [
        '{"begins_at": 0, "milliseconds": 1.5, "expected": 8}\n',
        '{"step": 0, "loss": 0.1, "records": [["a.txt", 5, 9]]}\n',
        '{"step": 1, "loss": 0.1, "rec',
    ]
    path = tmp_path / "log-1.jsonl"
    path.write_text("".join(lines), encoding="utf-8")
    assert read_log(str(path)) == Log(0, 1.5, 8, (Batch(0, 0.1, (("a.txt", 5, 9),)),))


def test_logs_are_read_in_the_order_of_their_processes(tmp_path: Path) -> None:
    for number in range(1, 12):
        head = {"begins_at": number, "milliseconds": 0.5, "expected": 8}
        (tmp_path / f"log-{number}.jsonl").write_text(json.dumps(head) + "\n", encoding="utf-8")
    (tmp_path / "log-12.jsonl").write_text("", encoding="utf-8")  # killed before its first batch
    assert [log.begins_at for log in read_logs(str(tmp_path))] == list(range(1, 12))


def test_a_module_is_cut_into_passages_at_blank_lines() -> None:
    made = [
        json.loads(line) for line in passages(os.path.join("json", "__init__.py"), "é = 1\n\n\n\nx\ny\n\n")
    ]
    assert made == [
        {"path": os.path.join("json", "__init__.py"), "module": "json", "text": text}
        for text in ("é = 1", "x\ny")
    ]


def test_the_chart_falls_where_the_loss_falls_and_tells_the_processes_apart() -> None:
    curves = [{0: 3.0, 1: 2.0}, {1: 2.0, 2: 1.0}]
    *rows, processes = drawn(curves, 3, low=1.0, high=3.0)
    heights = [sum(row[6 + column] != " " for row in rows) for column in range(3)]
    assert heights[0] == 6 > heights[1] > heights[2] == 1
    assert len(processes) == 6 + 3
    assert processes.count("╰") == 2


def test_the_svg_shows_each_process_and_the_uninterrupted_run() -> None:
    curves = {"whole": {0: 3.0, 1: 2.0, 2: 1.0}, "first": {0: 3.0, 1: 2.0}, "second": {1: 2.0, 2: 1.0}}
    picture = svg("resumed at batch 1", curves, 3, low=1.0, high=3.0)
    assert picture.count("<polyline") == 3
    assert all(f">{text}<" in picture for text in ["resumed at batch 1", *curves])


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a whole demo over a small folder of JSONL and text."""
    folder = tmp_path_factory.mktemp("demo")
    data = folder / "my data"
    data.mkdir()
    records = [json.dumps({"id": i, "text": f"{i} is a number, is {i}"}) + "\n" for i in range(3000)]
    (data / "a.jsonl").write_text("".join(records[:1000]), encoding="utf-8")
    (data / "b.jsonl").write_text("".join(records[1000:]), encoding="utf-8")
    (data / "c.txt").write_text("".join(f"line {i}\n" for i in range(4000)), encoding="utf-8")
    done = run_program("demo.py", "my data", "--output", "out", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    (folder / "said").write_text(done.stdout, encoding="utf-8")
    return folder


def test_the_demo_kills_resumes_and_proves(finished: Path) -> None:
    said = (finished / "said").read_text(encoding="utf-8")
    assert "killed by SIGKILL" in said
    assert "records delivered   4,285 of 4,285\nrecords repeated    0\nrecords lost        0\n" in said
    assert "PROVED" in said
    first, second = read_logs(str(finished / "out" / "interrupted"))
    assert 0 < second.begins_at <= first.ends_at < second.ends_at
    assert (finished / "out" / "loss.svg").read_text(encoding="utf-8").endswith("</svg>\n")


def test_the_run_opens_in_the_viewer_by_the_command_that_is_printed(
    finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = (finished / "said").read_text(encoding="utf-8")
    (command,) = [shlex.split(line) for line in said.splitlines() if "seekable view " in line]
    target, index_dir, log = command[2], command[4], command[6]
    monkeypatch.chdir(finished)
    options = DataOptions(index=[index_dir])
    opened = opened_targets([target], RunOptions(), options, Shown(quiet=True), logs=[log], pages={})
    assert (list(opened.datasets), list(opened.pipelines)) == (["first", "second"], ["train"])
    assert list(opened.states) == ["interrupted"]
    (whole,) = read_logs("out/uninterrupted")
    assert opened.logs["train"].steps.tolist() == [batch.step for batch in whole.batches]
    assert opened.logs["train"].losses.tolist() == [batch.loss for batch in whole.batches]


def test_the_demo_writes_nothing_but_its_output(finished: Path) -> None:
    assert sorted(os.listdir(finished / "my data")) == ["a.jsonl", "b.jsonl", "c.txt"]
    assert sorted(os.listdir(finished)) == ["my data", "out", "said"]
    assert (finished / "out" / ".gitignore").read_text(encoding="utf-8").endswith("\n*\n")


def test_a_folder_that_is_not_a_demos_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.txt").write_text("line\n" * 500, encoding="utf-8")
    done = run_program("demo.py", "data", "--output", ".", cwd=tmp_path)
    assert done.returncode == 1
    assert "holds other things" in done.stderr
    assert os.listdir(tmp_path) == ["data"]
    assert os.listdir(tmp_path / "data") == ["x.txt"]


def test_the_logged_records_are_those_that_lie_there(finished: Path) -> None:
    lines = {
        os.path.join("my data", path.name): path.read_text(encoding="utf-8").splitlines()
        for path in (finished / "my data").iterdir()
    }
    (whole,) = read_logs(str(finished / "out" / "uninterrupted"))
    assert sum(len(batch.records) for batch in whole.batches) == 4285
    for batch in whole.batches:
        for path, row, checksum in batch.records:
            line = lines[path][row]
            text = json.loads(line)["text"] if path.endswith(".jsonl") else line
            assert zlib.crc32(text.encode()) == checksum


def drop_one(records: list[object]) -> None:
    del records[0]


def repeat_one(records: list[object]) -> None:
    records.append(records[0])


def swap_two(records: list[object]) -> None:
    records[0], records[1] = records[1], records[0]


@pytest.mark.parametrize("change", [drop_one, repeat_one, swap_two])
@pytest.mark.parametrize("log", ["log-1", "log-2"])
def test_a_changed_log_is_refused(
    finished: Path, tmp_path: Path, log: str, change: Callable[[list[object]], None]
) -> None:
    shutil.copytree(finished / "out", tmp_path, dirs_exist_ok=True)
    assert run_program("proof.py", "interrupted", "uninterrupted", cwd=tmp_path).returncode == 0
    path = tmp_path / "interrupted" / f"{log}.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    entry = json.loads(lines[9])
    change(entry["records"])
    lines[9] = json.dumps(entry)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    refused = run_program("proof.py", "interrupted", "uninterrupted", cwd=tmp_path)
    assert refused.returncode == 1
    assert "NOT PROVED" in refused.stdout


def test_one_source_is_mixed_from_its_halves(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("".join(f"line {i}\n" for i in range(3000)), encoding="utf-8")
    done = run_program("demo.py", "x.txt", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "its first half is mixed with its second half" in done.stdout
    assert "PROVED" in done.stdout


@pytest.mark.parametrize(
    ("lines", "message"),
    [(9, "make 5 records, and the demo needs 100"), (0, "make 0 records"), (None, "x.txt")],
)
def test_data_that_cannot_be_used_is_refused_in_one_line(
    tmp_path: Path, lines: int | None, message: str
) -> None:
    if lines is not None:
        (tmp_path / "x.txt").write_text("line\n" * lines, encoding="utf-8")
    done = run_program("demo.py", "x.txt", cwd=tmp_path)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr
