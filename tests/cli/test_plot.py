"""``seekable plot``: charts that are those of the facts, and their numbers."""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.cli.command import documents, output, run

import seekable as sk
from seekable.viewer.facts.run_mixture import mixture

if TYPE_CHECKING:
    from pathlib import Path

SVG = "{http://www.w3.org/2000/svg}"
TEXTS = {"web": range(40), "code": range(5, 25)}
WEIGHTS = [(0, {"web": 3, "code": 1}), (24, {"web": 1, "code": 1})]


def pipeline(folder: Path) -> sk.Dataset:
    """Return a mixture whose weights change."""
    parts = {name: sk.open(folder / name).shuffle(seed=1) for name in TEXTS}
    return sk.mix(parts, weights=WEIGHTS, seed=0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sources, a saved run of their mixture, and a log of losses."""
    folder = tmp_path_factory.mktemp("plotted")
    for name, lengths in TEXTS.items():
        (folder / name).mkdir()
        for file in range(2):
            lines = [json.dumps({"text": "x" * length}) for length in lengths if length % 2 == file]
            (folder / name / f"{file}.jsonl").write_text("\n".join(lines) + "\n")
    loader = sk.Loader(pipeline(folder), batch_size=4, prefetch=0)
    for steps in (2, 3):
        loader.skip_batches(steps)
        sk.save_state(folder / "checkpoints", loader)
    lines = [f"{step},{2 + step % 3 / 9 + 5 * (step == 60)}" for step in range(70)]
    (folder / "log.csv").write_text("\n".join(["iteration,train_loss", *lines]))
    return folder


def rows(*arguments: str, cwd: Path) -> list[dict[str, str]]:
    """Return the numbers of a chart."""
    return list(csv.DictReader(io.StringIO(output("plot", *arguments, "--csv", cwd=cwd).decode())))


PLOTS = [
    ("lengths", "web"),
    ("files", "web"),
    ("mixture", "checkpoints"),
    ("mixture", "checkpoints", "--in", "bytes"),
    ("schedule", "checkpoints"),
    ("loss", "log.csv:iteration,train_loss"),
    ("loss", "log.csv:iteration,train_loss", "--from", "65"),
]


@pytest.mark.parametrize("arguments", PLOTS, ids=" ".join)
def test_a_chart_is_the_same_svg_each_time_with_a_title_and_a_description(
    folder: Path, arguments: tuple[str, ...]
) -> None:
    made = output("plot", *arguments, "--theme", "dark", cwd=folder)
    root = ET.fromstring(made)
    assert [root.findtext(f"{SVG}{name}") not in ("", None) for name in ("title", "desc")] == [True, True]
    assert run("plot", *arguments, "--theme", "dark", "-o", "again.svg", cwd=folder).stdout == b""
    assert (folder / "again.svg").read_bytes() == made
    assert made != output("plot", *arguments, cwd=folder)
    assert documents("plot", *arguments, cwd=folder)[0]["made_of"]


def test_lengths_are_counts_of_the_lines(folder: Path) -> None:
    (fact,) = documents("plot", "lengths", "web", cwd=folder)
    lengths = [
        len(line) + 1 for file in range(2) for line in (folder / f"web/{file}.jsonl").read_text().splitlines()
    ]
    assert (fact["of"], fact["total"], fact["longest"]) == (40, sum(lengths), max(lengths))
    bins = rows("lengths", "web", cwd=folder)
    for each in bins:
        low, below = float(each["from"]), float(each["below"])
        assert int(each["records"]) == sum(low <= length < below for length in lengths)
    assert sum(int(each["records"]) for each in bins) == 40
    picture = ET.fromstring(output("plot", "lengths", "web", cwd=folder))
    filled = sum(int(each["records"]) > 0 for each in bins)
    assert len(picture.findall(f"{SVG}rect")) == 1 + filled


def test_files_are_sorted_by_their_bytes(folder: Path) -> None:
    found = rows("files", "web", cwd=folder)
    sizes = {f"{file}.jsonl": (folder / "web" / f"{file}.jsonl").stat().st_size for file in range(2)}
    assert {each["file"]: int(each["bytes"]) for each in found} == sizes
    assert [int(each["bytes"]) for each in found] == sorted(sizes.values(), reverse=True)
    texts = [
        each.text for each in ET.fromstring(output("plot", "files", "web", cwd=folder)).iter(f"{SVG}text")
    ]
    assert texts[1:] == [text for each in found for text in (each["file"], f"{int(each['bytes']):,}")]


def test_a_mixture_is_that_of_the_facts_also_of_a_function(folder: Path) -> None:
    fact = mixture(sk.Loader(pipeline(folder), batch_size=4, prefetch=0), start=2, stop=9)
    found = rows("mixture", "checkpoints", "--from", "2", "--to", "9", cwd=folder)
    delivered = np.array([float(each["delivered"]) for each in found]).reshape(-1, 2)
    assert (delivered == fact.delivered).all()
    assert [int(each["from"]) for each in found[::2]] == fact.steps[:-1].tolist()
    program = (
        f"import pathlib, tests.cli.test_plot\n"
        f"def make(): return tests.cli.test_plot.pipeline(pathlib.Path({str(folder)!r}))\n"
    )
    (folder / "train_plot.py").write_text(program)
    again = rows("mixture", "train_plot:make", "--batch-size", "4", "--from", "2", "--to", "9", cwd=folder)
    assert again == found


def test_a_schedule_has_the_weights_of_the_mixture(folder: Path) -> None:
    found = rows("schedule", "checkpoints", cwd=folder)
    assert [(int(each["step"]), each["source"], int(each["weight"])) for each in found] == [
        (start // 4, name, weight) for start, weights in WEIGHTS for name, weight in weights.items()
    ]
    texts = [
        e.text
        for e in ET.fromstring(output("plot", "schedule", "checkpoints", "--to", "12", cwd=folder)).iter()
    ]
    assert {"web", "62.5 %", "code", "37.5 %"} <= {*texts}


def test_losses_are_those_of_the_log_and_the_spike_is_compared_with_all_before_it(folder: Path) -> None:
    found = rows("loss", "log.csv:iteration,train_loss", "--from", "55", "--to", "65", cwd=folder)
    assert [int(each["step"]) for each in found] == [*range(55, 65)]
    assert [int(each["step"]) for each in found if each["spike"] == "1"] == [60]


REFUSED: list[tuple[tuple[str, ...], int, str]] = [
    (("lengths", "nothing"), 4, "nothing"),
    (("mixture", "nothing"), 4, "nothing"),
    (("lengths", "web", "--from", "3"), 2, "which have no steps"),
    (("loss", "log.csv:iteration,train_loss", "--in", "bytes"), 2, "leave it out of plot loss"),
    (("mixture", "checkpoints", "--from", "5", "--to", "5"), 2, "--to must be above --from"),
    (("mixture", "checkpoints", "--in", "tokens"), 2, "tokens are counted by a tokenizer"),
    (("loss", "log.csv"), 2, "name the fields"),
    (("lengths", "web", "--csv", "--json"), 2, "give one of them"),
    (("pies", "web"), 2, "pies"),
]


@pytest.mark.parametrize(("arguments", "code", "says"), REFUSED, ids=[" ".join(each[0]) for each in REFUSED])
def test_what_cannot_be_drawn_says_why(
    folder: Path, arguments: tuple[str, ...], code: int, says: str
) -> None:
    done = run("plot", *arguments, cwd=folder)
    assert (done.returncode, done.stdout) == (code, b"")
    assert says in done.stderr.decode()


def test_data_without_records_is_drawn_too(tmp_path: Path) -> None:
    (tmp_path / "none.jsonl").write_bytes(b"")
    for kind in ("lengths", "files"):
        assert ET.fromstring(output("plot", kind, "none.jsonl", cwd=tmp_path)).tag == f"{SVG}svg"
    found: Any = documents("plot", "lengths", "none.jsonl", cwd=tmp_path)[0]
    assert (found["of"], found["histogram"]) == (0, None)
