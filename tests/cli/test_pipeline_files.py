"""Commands take the files that ds.save writes wherever they take data."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.cli.command import documents, output, run

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of two shards, a pipeline file without functions, and one with a function."""
    for shard in range(2):
        lines = [json.dumps({"id": 10 * shard + row}) for row in range(10)]
        (tmp_path / f"{shard}.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    ds = sk.open(str(tmp_path / "*.jsonl")).filter(where=[("id", ">", 4)]).shuffle(seed=1)
    ds.save(tmp_path / "pipeline.json")
    ds.map(str).save(tmp_path / "mapped.json")
    sk.open(tmp_path / "0.jsonl").save(tmp_path / "plain.json")
    return tmp_path


def test_records_come_in_the_order_of_the_pipeline(folder: Path) -> None:
    expected = list(sk.load_pipeline(folder / "pipeline.json"))
    assert [
        json.loads(line) for line in output("head", folder / "pipeline.json", "-n", "99").splitlines()
    ] == expected
    found = output("get", folder / "pipeline.json", "3", "-1").splitlines()
    assert [json.loads(line) for line in found] == [expected[3], expected[-1]]
    (first,) = documents("get", folder / "pipeline.json", "0")
    assert first["record"] == expected[0]
    assert first["location"]["path"].endswith(f"{expected[0]['id'] // 10}.jsonl")
    sample = [
        json.loads(line) for line in output("sample", folder / "pipeline.json", "-n", "15").splitlines()
    ]
    assert sorted(map(str, sample)) == sorted(map(str, expected))


def test_lines_of_a_plain_source_are_printed_as_they_are(folder: Path) -> None:
    assert output("head", folder / "plain.json", "-n", "1") == b'{"id": 0}\n'


def test_info_shows_the_nodes_and_needs_no_function(folder: Path) -> None:
    (found,) = documents("info", folder / "mapped.json")
    assert (found["records"], found["functions"]) == (15, ["builtins.str"])
    assert found["nodes"][0].startswith("map(")
    text = output("info", folder / "mapped.json").decode()
    assert "functions    builtins.str\n" in text
    assert "    filter(count=15" in text


def test_plan_needs_no_function(folder: Path) -> None:
    (planned,) = documents("plan", folder / "mapped.json", "--batch-size", "4", "--step", "1")
    loader = sk.Loader(sk.load_pipeline(folder / "pipeline.json"), batch_size=4, collate=list)
    assert [record["location"]["offset"] for record in planned["records"]] == [
        place.offset for place in loader.locate(step=1)
    ]
    done = run("plan", folder / "mapped.json")
    assert done.returncode
    assert b"--batch-size" in done.stderr


def test_export_and_index_and_verify_take_it(folder: Path) -> None:
    output("export", folder / "pipeline.json", folder / "out", "--as", "jsonl", "--quiet")
    assert list(sk.open(folder / "out")) == list(sk.load_pipeline(folder / "pipeline.json"))
    assert b"20 records in 2 files" in output("index", folder / "mapped.json")
    assert b"good: 20 records in 2 files" in output("verify", folder / "mapped.json", "--deep", "--decode")


def test_data_that_changed_is_named(folder: Path) -> None:
    with open(folder / "1.jsonl", "a", encoding="utf-8") as file:
        file.write('{"id": 20}\n')
    for command in (("info",), ("verify",), ("head",), ("plan", "--batch-size", "2")):
        done = run(command[0], folder / "pipeline.json", *command[1:])
        assert done.returncode == 3
        assert b"file '1.jsonl'" in done.stderr


@pytest.mark.parametrize("command", ["head", "export"])
def test_functions_are_named_and_the_way_out(folder: Path, command: str) -> None:
    done = run(command, folder / "mapped.json", *([folder / "out"] if command == "export" else []))
    assert done.returncode == 2
    assert b"needs 'builtins.str'" in done.stderr
    assert b"sk.load_pipeline(" in done.stderr


def test_a_pipeline_says_itself_how_its_data_is_opened(folder: Path) -> None:
    done = run("head", folder / "pipeline.json", "--format", "text")
    assert done.returncode == 2
    assert b"leave --format out" in done.stderr


def test_other_json_is_data(tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text('{"seekable": 1}\n{"a": "seekable_pipeline"}\n', encoding="utf-8")
    assert output("head", tmp_path / "data.json").count(b"\n") == 2
