"""A user's program as type checkers read it: ``make types`` checks each `assert_type`, these tests run it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_type

import pytest

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent

WRONG = """
import seekable as sk

ds = sk.open("a.jsonl")
ds.shuffle(sed=1)
sk.Loader(ds, batch_size="32")
size: str = len(ds[3:])
"""


def write_corpus(folder: Path) -> None:
    """Write two files of JSON lines."""
    for name in ("web", "code"):
        lines = (json.dumps({"id": row, "text": f"{name} {row}"}) for row in range(100))
        (folder / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")


def length(record: dict[str, Any]) -> int:
    """Return the length of a text."""
    return len(record["text"])


def is_long(record: dict[str, Any]) -> bool:
    """Return True for texts of more than five characters."""
    return length(record) > 5


def test_a_program_is_typed_and_runs(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    web = assert_type(sk.open(tmp_path / "web.jsonl"), sk.Dataset)
    assert_type(len(web), int)
    assert web[5]["id"] == 5
    some = assert_type(web[10:20], sk.Dataset)
    assert [record["id"] for record in web[[3, 1]]] == [3, 1]
    place = web.locate(5)
    assert (place.row, [each.row for each in assert_type(web.locate([7, 6]), list[Any])]) == (5, [7, 6])
    assert assert_type(web.find(place.path, 5), list[int]) == [5]

    code = assert_type(sk.open(tmp_path / "code.jsonl").filter(is_long).shuffle(seed=2), sk.Dataset)
    data = assert_type(sk.mix({"web": web.shuffle(seed=1), "code": code}, seed=0), sk.Dataset)
    epoch = assert_type(data.epoch(3), sk.Dataset)
    assert len(epoch) == len(data)
    parts = assert_type(some.split({"train": 0.5, "test": 0.5}, seed=0), dict[Any, sk.Dataset])
    assert len(parts["train"]) == 5

    loader = assert_type(sk.Loader(data, batch_size=16), sk.Loader)
    run = iter(loader)
    batch = next(run)
    state = assert_type(loader.state_dict(), dict[str, Any])
    again = sk.Loader(data, batch_size=16, workers=sk.Workers(0))
    again.load_state_dict(state)
    assert assert_type(again.step, int) == 1
    assert (next(iter(again))["id"] == next(run)["id"]).all()
    assert len(batch["text"]) == 16
    assert_type(sk.save_state(tmp_path / "states", loader), str)

    stream = assert_type(data.stream(lanes=4, epochs=1), sk.Stream)
    long = assert_type(stream.filter(is_long).map(length), sk.Stream)
    assert all(size > 5 for size in long)
    with pytest.raises(sk.SeekableError):
        web.shuffle(seed=-1)


def test_words_of_others_are_answered(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    ds: Any = sk.open(tmp_path / "web.jsonl")
    untyped: Any = sk
    with pytest.raises(sk.errors.WrongType, match=r"ds\.select_columns\(\['text'\]\) has that column"):
        ds["text"]
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: ds.shuffle(seed=1, buffer_size=10), "write ds.shuffle"),
        (lambda: ds.map(length, batched=True), r"write ds\.map_batches\(fn, size=\)"),
        (lambda: ds.map(length, num_proc=4), r"write sk\.Loader\(\.\.\., workers=\)"),
        (lambda: ds.filter(is_long, num_proc=4), "write jobs="),
        (lambda: ds.filter(is_long, job=4), "did you mean jobs="),
    ]
    for call, told in calls:
        with pytest.raises(sk.errors.InvalidArgument, match=told):
            call()
    with pytest.raises(sk.errors.InvalidArgument, match=r"map\(\) has no argument 'zz': it has fn"):
        ds.map(length, zz=1)
    calls = [
        (lambda: ds.map(length, 3), r"map\(\) takes 1 argument by position \(got 2\)"),
        (ds.map, r"map\(\) needs fn="),
        (ds.shuffle, r"shuffle\(\) needs seed="),
        (lambda: ds.shuffle(7, seed=7), r"shuffle\(\) takes seed once, by position or by name"),
        (untyped.Workers, r"Workers\(\) needs count="),
        (lambda: ds["a":"b"], r"the bounds and the step of a slice are integers \(got 'a'"),
    ]
    for call, told in calls:
        with pytest.raises(sk.errors.WrongType, match=told):
            call()
    with pytest.raises(sk.errors.InvalidArgument, match="the step of a slice is above or below 0"):
        ds[::0]


@pytest.mark.exhaustive
def test_pyright_reads_the_types_as_mypy_does(tmp_path: Path) -> None:
    """``make nightly`` installs basedpyright, which is pyright with a Node.js of its own."""
    pytest.importorskip("basedpyright", reason="make nightly installs it")
    (tmp_path / "wrong.py").write_text(WRONG)
    config = {
        "include": [__file__, str(tmp_path / "wrong.py")],
        "extraPaths": [str(ROOT / "src"), str(ROOT)],
        "pythonVersion": "3.11",
        "typeCheckingMode": "strict",
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    command = [str(Path(sys.executable).parent / "basedpyright"), "--outputjson"]
    command += ["--project", str(tmp_path), "--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [
        (Path(one["file"]).name, one["range"]["start"]["line"], one["rule"])
        for one in json.loads(done.stdout)["generalDiagnostics"]
    ]
    assert found == [
        ("wrong.py", 4, "reportCallIssue"),
        ("wrong.py", 4, "reportCallIssue"),
        ("wrong.py", 5, "reportArgumentType"),
        ("wrong.py", 6, "reportAssignmentType"),
    ]
