from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.command import Corpus, documents, in_terminal, output, run

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path

QUICKLY = ("--seconds", "0.1", "--batch-size", "8")
"""A batch of each way, or a few."""


def ways_of(told: dict[str, Any]) -> list[tuple[str, str, int]]:
    return [(way["order"], way["decode"], way["workers"]) for way in told["ways"]]


def test_each_order_and_decoding_is_measured(corpus: Corpus) -> None:
    (told,) = documents("bench", corpus.folder, *QUICKLY, "--workers", "0", "--window", "3")
    orders = ["in order", "window=3", "shuffled"]
    assert ways_of(told)[:4] == [*((order, "records", 0) for order in orders), ("shuffled", "bytes", 0)]
    assert (told["records"], told["bytes"]) == (120, sum(len(line) + 1 for line in corpus.lines))
    for way in told["ways"]:
        assert way["measured"] >= 1
        size = way["bytes_per_second"] / way["records_per_second"]
        assert size == pytest.approx(told["bytes"] / told["records"])
        assert 0 <= way["waiting"] <= 1
    assert set(told["seconds_by_part"]) == {"order", "reading", "decoding", "waiting"}
    assert all(seconds >= 0 for seconds in told["seconds_by_part"].values())
    assert told["advice"]


def test_tables_are_measured_as_record_batches_and_workers_beside_none(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": list(range(50))}), tmp_path / "a.parquet", row_group_size=10)
    (told,) = documents("bench", tmp_path, *QUICKLY, "--workers", "1")
    assert ways_of(told)[2:] == [
        ("shuffled", "records", 0),
        ("shuffled", "arrow", 0),
        ("shuffled", "records", 1),
    ]
    assert told["ways"][-1]["processor_seconds"] is None
    assert set(told["seconds_by_part"]) == {"order", "reading and decoding", "waiting"}


def test_a_pipeline_file_keeps_its_order(corpus: Corpus, tmp_path: Path) -> None:
    sk.open(corpus.folder).shuffle(seed=3)[:50].save(tmp_path / "a.pipeline.json")
    (told,) = documents("bench", tmp_path / "a.pipeline.json", *QUICKLY, "--workers", "0")
    assert ways_of(told) == [("its own", "records", 0)]
    assert told["records"] == 50


def test_people_get_a_table_and_a_bar(corpus: Corpus) -> None:
    lines = output("bench", corpus.folder, *QUICKLY, "--workers", "0").decode().splitlines()
    assert re.match(r"in order +records +0 +[\d,]+ +[\d,.]+ +[\d,.]+ +\d+ +[\d.]+(e-\d+)? s$", lines[1])
    assert any(line.startswith("a record without workers, in us: order ") for line in lines)
    assert lines[-1].startswith("advice: ")
    with in_terminal("bench", corpus.folder, *QUICKLY, "--workers", "0") as terminal:
        code, seen = terminal.finish()
    assert code == 0
    assert re.search(rb"\[#*\.*\] in order, records, 0 workers", seen)


def test_what_cannot_be_measured_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "none.jsonl").write_bytes(b"")
    done = run("bench", tmp_path / "none.jsonl")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"there is no record to read" in done.stderr
    (tmp_path / "bad.jsonl").write_bytes(b'{"a": 1}\n' * 20 + b"{\n")
    done = run("bench", tmp_path / "bad.jsonl", *QUICKLY, "--json")
    assert done.returncode == 1
    assert json.loads(done.stderr)["error"]["type"] == "CorruptRecord"
