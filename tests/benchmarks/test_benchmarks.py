"""The benchmarks measure what they say, on data so small that it takes a moment; no time is looked at."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from benchmarks import data, epochs, floors, index, order, peers, records, restore, run, table
from benchmarks.measure import Contestant, Row, Target, absolute, missing, one_core, race, relative

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TINY = data.Sizes(records=60, short_lines=300, sources=6, rounds=1, trials=1)
MET = relative("met", 2.0, "us", Target("at most", 3), against="the floor 1.0", ratio=2.0)
UNTOLD = missing("untold", 2.0, "us", Target("at least", 5), peer="Somebody 1.0")
MISSED = absolute("missed", 2.0, "us", Target("at most", 1))


@pytest.fixture
def tiny(tmp_path: Path) -> data.Data:
    return data.make(TINY, str(tmp_path))


def starts_of(path: str) -> list[int]:
    ds = sk.open(path)
    return [place.offset for place in ds.locate(list(range(len(ds))))]


def test_data_is_the_same_each_time_and_in_all_its_files(tiny: data.Data, tmp_path: Path) -> None:
    again = data.make(TINY, str(tmp_path / "again"))
    assert list(sk.open(tiny.long)) == list(sk.open(again.long))
    for paths in (tiny.halves, tiny.small):
        assert list(sk.concat([sk.open(path) for path in paths])) == list(sk.open(tiny.long))
    assert len(sk.open(tiny.short)) == TINY.short_lines


@pytest.mark.parametrize("size", ["long", "short"])
def test_floors_of_the_scan_find_every_line_that_the_index_finds(tiny: data.Data, size: str) -> None:
    path = getattr(tiny, size)
    by_find = floors.newlines_by_find(path)
    assert by_find == floors.newlines_by_numpy(path).tolist()
    assert [0, *(end + 1 for end in by_find[:-1])] == starts_of(path)
    assert floors.page_cache(path) == by_find[-1] + 1


def test_floor_of_reading_gives_the_records_that_the_dataset_gives(tiny: data.Data) -> None:
    ds = sk.mix([sk.open(path).shuffle(seed=1) for path in tiny.small], weights=[1] * TINY.sources, seed=0)
    spans = records.spans_of(ds, np.arange(len(ds)))
    assert floors.decoded(spans) == list(ds)


@pytest.mark.parametrize("topic", [index, records, epochs, order, restore])
def test_every_topic_measures_and_marks_what_it_has_no_opponent_for(
    tiny: data.Data, monkeypatch: pytest.MonkeyPatch, topic: object
) -> None:
    monkeypatch.setattr(peers, "_version", lambda *_: None)
    rows: list[Row] = list(topic.rows(tiny))  # type: ignore[attr-defined]
    assert rows
    for row in rows:
        assert row.value > 0
        assert (row.ok is None) == row.against.endswith("not installed")


def test_contestants_take_turns_in_rounds_after_one_run_each() -> None:
    turns: list[str] = []

    def runner(name: str) -> Callable[[], object]:
        return lambda: turns.append(name)

    contestants = {name: Contestant(runner(name), count=2) for name in "abc"}
    times = race(contestants, rounds=2)
    assert turns == list("abc" + "abc" + "bca")
    assert all(len(seconds) == 2 for seconds in times.seconds.values())


def test_a_ratio_is_the_median_of_the_rounds_ratios() -> None:
    times = race({"a": Contestant(list), "b": Contestant(list)}, rounds=1)
    times.seconds.update(a=[1.0, 8.0, 9.0], b=[1.0, 2.0, 3.0])
    assert times.ratio("a", "b") == 3.0
    assert times.median("a") == 8.0


@pytest.mark.parametrize(
    ("target", "met", "unmet"), [(Target("at least", 2), 2.0, 1.9), (Target("at most", 2), 2.0, 2.1)]
)
def test_a_target_is_met_from_its_bound_on(target: Target, met: float, unmet: float) -> None:
    assert target.met(met)
    assert not target.met(unmet)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux binds processes to processors")
def test_one_core_ends_with_its_block() -> None:
    import os

    before = os.sched_getaffinity(0)
    with one_core():
        assert len(os.sched_getaffinity(0)) == 1
    assert os.sched_getaffinity(0) == before


@pytest.mark.parametrize(
    ("rows", "expected"), [([MET], 0), ([MET, UNTOLD], 0), ([MET, MISSED], 1), ([MISSED, UNTOLD], 1)]
)
def test_only_a_miss_makes_the_status_1(rows: list[Row], expected: int) -> None:
    assert run.status(rows) == expected


def test_what_could_not_be_told_is_named_and_not_passed(capsys: pytest.CaptureFixture[str]) -> None:
    run.status([UNTOLD])
    assert "Somebody 1.0: not installed" in capsys.readouterr().err
    assert "not told" in table.as_text([UNTOLD])
    assert json.loads(table.as_json([UNTOLD]))[0]["ok"] is None


def test_the_page_keeps_its_text_around_a_new_table(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{run.BEGIN}old\n{run.END}after\n", encoding="utf-8")
    for row in (MET, replace(MET, name="newer")):
        run.write_page(str(page), [row])
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "newer" in text
    assert "| met |" not in text
    assert "old" not in text
