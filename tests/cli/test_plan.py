"""Which records are in a step, told from a saved state alone and from the pipeline itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.command import output, run, run_fork, write_corpus

if TYPE_CHECKING:
    from pathlib import Path

TRAIN = """
import seekable as sk

def same(record):
    return record

def make_data():
    parts = {name: sk.open(f"corpus/shard-{name}.jsonl") for name in "012"}
    parts["0"] = parts["0"].map(same).shuffle(seed=1, window=1, lanes=2)
    return sk.mix(parts, weights={"0": 1, "1": 1, "2": 2}, seed=1)

print("the program says hello")

def make_loader():
    return sk.Loader(make_data(), batch_size=10)

class Made:
    loader = staticmethod(make_loader)

def make_nothing():
    return 5

def fail():
    import no_such_package

SELECTED = sk.from_sequence(range(50)).select([3, 1])
number = 7

if __name__ == "__main__":
    loader = make_loader()
    run = iter(loader)
    for _ in range(3):
        next(run)
    sk.save_state("states", loader)
    selected = sk.Loader(SELECTED.shuffle(seed=1), batch_size=1, collate=list)
    sk.save_state("selected", selected)
    for step in range(5):
        print(*(f"{place.path} {place.row} {place.offset} {place.length}" for place in
        loader.locate(step=step)), sep=",")
"""


RUN = "import runpy; runpy.run_path('train.py', run_name='__main__')"


def train(folder: Path) -> Path:
    """Make a corpus, a program, its saved states, and note what each of its steps has."""
    write_corpus(folder / "corpus")
    (folder / "train.py").write_text(TRAIN)
    done = run_fork(program=RUN, cwd=folder)
    assert (done.returncode, done.stderr) == (0, b"")
    (folder / "steps").write_bytes(done.stdout.partition(b"\n")[2])
    return folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that was trained in."""
    return train(tmp_path_factory.mktemp("trained"))


def the(folder: Path, *arguments: str) -> dict[str, Any]:
    done = run("plan", *arguments, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def places(document: dict[str, Any]) -> str:
    found = (record["location"] for record in document["records"])
    return ",".join(f"{at['path']} {at['row']} {at['offset']} {at['length']}" for at in found)


@pytest.mark.parametrize(
    "target", [["states"], ["states", "--batch-size", "10"], ["train:make_loader"], ["train:Made.loader"]]
)
def test_each_step_is_the_one_that_the_loader_has(trained: Path, target: list[str]) -> None:
    wanted = (trained / "steps").read_text().splitlines()
    for step in (0, 4):
        assert places(the(trained, *target, "--step", str(step))) == wanted[step]


def test_the_step_is_the_next_one_unless_it_is_said(trained: Path) -> None:
    state = next((trained / "states").glob("state-*.json"))
    for target in (["states", "--batch-size=10"], [str(state), "--batch-size=10"]):
        assert the(trained, *target)["step"] == 3
    assert the(trained, "train:make_loader")["step"] == 0
    assert the(trained, "train:make_loader", "--state", "states")["step"] == 3
    assert the(trained, "train:make_data", "--batch-size", "10")["step"] == 0


def test_ranks_share_a_step(trained: Path) -> None:
    options = ["states", "--global-batch-size", "10", "--world-size", "5", "--step", "1"]
    whole = the(trained, *options)["records"]
    assert [record["rank"] for record in whole] == [0, 1, 2, 3, 4] * 2
    for rank in range(5):
        one = the(trained, *options, "--rank", str(rank))
        assert (one["rank"], one["world_size"]) == (rank, 5)
        assert one["records"] == whole[rank::5]
        assert sum(file["records"] for file in one["files"]) == 2


def test_people_read_a_table_and_what_each_file_gives(trained: Path) -> None:
    text = output("plan", "states", "--batch-size", "10", cwd=trained).decode()
    head, _, rest = text.partition("\n\n")
    records, _, files = rest.partition("\n\n")
    assert head == "step 3, 1 rank: 10 records"
    assert records.splitlines()[0].split() == [
        "position",
        "epoch",
        "rank",
        "record",
        "offset",
        "length",
        "file",
    ]
    assert len(records.splitlines()) == 11
    document = the(trained, "states", "--batch-size", "10")
    for line, file in zip(files.splitlines()[1:], document["files"], strict=True):
        numbers = [file[key] for key in ("records", "bytes", "start", "stop")]
        assert line.replace(",", "").split() == [*map(str, numbers), file["path"]]


def test_without_the_data_rows_are_told_and_why_bytes_are_not(tmp_path: Path) -> None:
    trained = train(tmp_path)
    (trained / "corpus").rename(trained / "moved")
    done = run("plan", "states", "--batch-size", "10", cwd=trained)
    assert done.returncode == 0
    assert done.stderr.startswith(b"seekable: bytes are not known: there is no index in ")
    document = json.loads(run("plan", "states", "--batch-size", "10", "--json", cwd=trained).stdout)
    assert document["notes"]
    assert {file["bytes"] for file in document["files"]} == {None}
    moved = the(trained, "states", "--batch-size", "10", "--root", "moved")
    assert moved["notes"] == []
    wanted = (trained / "steps").read_text().splitlines()[3].replace("/corpus/", "/moved/")
    assert places(moved) == wanted


def test_a_description_alone_does_not_tell_the_batch(trained: Path) -> None:
    (description,) = (trained / "states").glob("pipeline-*")
    done = run("plan", f"states/{description.name}", cwd=trained)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"the saved states do not tell how many records make a batch" in done.stderr


FAILURES: list[tuple[list[str], int, str]] = [
    (["states", "--batch-size", "10", "--step", "-1"], 2, ""),
    (["states", "--batch-size", "10", "--rank", "1"], 2, "rank must be below --world-size 1"),
    (["states", "--global-batch-size", "10", "--world-size", "3"], 2, "must be a multiple of --world-size 3"),
    (["states", "--batch-size", "10", "--state", "states"], 2, "--state goes with module:function"),
    (["selected", "--batch-size", "1"], 2, "the order of shuffle > select cannot be told"),
    (["nowhere"], 4, "there is no 'nowhere'"),
    (["corpus"], 4, "there is no saved state"),
    (["nowhere:make"], 4, "there is no module 'nowhere'"),
    (["train:nothing"], 4, "'train' has no 'nothing': name a function that returns a pipeline"),
    (["train:number"], 1, "is not a function (got "),
    (["train:make_nothing"], 1, "must return a Dataset or a Loader (got int)"),
    (["train:make_data"], 2, "say with --batch-size how many"),
    (["train:make_loader", "--batch-size", "3"], 2, "returns a Loader, which has --batch-size already"),
]


@pytest.mark.parametrize(("arguments", "code", "why"), FAILURES, ids=[" ".join(case[0]) for case in FAILURES])
def test_what_cannot_be_planned_is_told(trained: Path, arguments: list[str], code: int, why: str) -> None:
    done = run("plan", *arguments, cwd=trained)
    assert (done.returncode, done.stdout) == (code, b"")
    assert why.encode() in done.stderr
    assert b"Traceback" not in done.stderr


def test_what_a_users_program_raises_keeps_its_traceback(trained: Path) -> None:
    done = run_fork("plan", "train:fail", cwd=trained)
    assert done.returncode == 1
    assert b"Traceback" in done.stderr
    assert b"no_such_package" in done.stderr


def test_what_a_users_program_prints_is_not_data(trained: Path) -> None:
    done = run("plan", "train:make_loader", "--json", cwd=trained)
    assert json.loads(done.stdout)["step"] == 0
    assert done.stderr == b"the program says hello\n"


def test_nothing_is_written(trained: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in trained.rglob("*") if "__pycache__" not in str(path)}
    output("plan", "states", "--batch-size", "10", cwd=trained)
    assert {
        path: path.stat().st_mtime_ns for path in trained.rglob("*") if "__pycache__" not in str(path)
    } == before
