"""The benchmarks measure what they say, on data so small that it takes a moment; no time is looked at."""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import platform
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from benchmarks import (
    at_scale,
    at_scale_jobs,
    bare,
    chats,
    competitors,
    data,
    epochs,
    floors,
    formats,
    index,
    kaldi,
    lanes,
    layers,
    loaders,
    opening,
    order,
    records,
    remote,
    remote_run,
    remote_store,
    restore,
    run,
    shar,
    startup,
    subprocess_peer,
    table,
    tars,
    tokenizing,
    tokens,
    workers,
    writing,
)
from benchmarks.measure import Contestant, Row, Target, absolute, missing, one_core, race, relative
from benchmarks.setting import Setting
from tests.remote.servers import nginx

import seekable as sk
from seekable.nodes import filter as filter_node
from seekable.remote.fetching.fetcher import fetcher

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

TINY = data.Sizes(
    records=60,
    short_lines=300,
    sources=6,
    rounds=1,
    trials=1,
    converted=40,
    large=300_000,
    opened=((3, 30), (5, 10)),
    script_lines=2,
    samples=40,
    archives=4,
    scale=(30, 20, 4),
)
MET = relative("met", 2.0, "us", Target("at most", 3), against="the floor 1.0", ratio=2.0)
UNTOLD = missing("untold", 2.0, "us", Target("at least", 5), peer="Somebody 1.0")
TOLD = relative("told", 2.0, "us", None, against="Somebody 1.0", ratio=2.0)
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
    assert list(sk.open(data.beginning(tiny))) == list(sk.open(tiny.long))[: TINY.converted]


def test_large_data_is_as_large_in_one_file_as_in_several(tiny: data.Data) -> None:
    one, many = data.large(tiny)
    assert list(sk.open(one)) == list(sk.open(list(many))) == list(sk.open(tiny.long)) * len(many)
    assert os.path.getsize(one) >= TINY.large


def test_numbered_rows_are_all_there(tiny: data.Data) -> None:
    for files, rows in TINY.opened:
        folder = data.numbered(tiny, files=files, rows=rows)
        assert [record["id"] for record in sk.open(folder)] == list(range(rows))
        assert len(list(Path(folder).rglob("*.jsonl"))) == files


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


@pytest.mark.parametrize(
    "topic", [index, records, epochs, order, opening, restore, startup, workers, writing]
)
def test_every_topic_measures_and_marks_what_it_has_no_opponent_for(
    tiny: data.Data, monkeypatch: pytest.MonkeyPatch, topic: object
) -> None:
    monkeypatch.setattr(competitors, "_version", lambda *_: None)
    rows: list[Row] = list(topic.rows(tiny))  # type: ignore[attr-defined]
    assert rows
    for row in rows:
        assert row.value > 0
        assert (row.ok is None) == row.against.endswith("not installed")


def test_layers_of_each_way_add_up_to_it(tiny: data.Data) -> None:
    rows = list(layers.rows(tiny))
    ways = itertools.groupby(rows, key=lambda row: row.name.partition(":")[0])
    found = {way: list(each) for way, each in ways}
    assert len(found) == 5
    for each in found.values():
        assert each[0].ratio == 1
        whole = float(each[-1].against.removeprefix("up to here "))
        assert sum(row.value for row in each) == pytest.approx(whole, abs=0.01)


@pytest.mark.filterwarnings("ignore:.*keep .* open at a time:seekable.errors.CacheTooSmall")
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_jobs_at_scale_are_measured(tiny: data.Data, monkeypatch: pytest.MonkeyPatch) -> None:
    def here(job: str, place: at_scale_jobs.Place) -> at_scale.Taken:
        if job == "opening":
            return in_a_process(job, place)
        return at_scale.Taken(at_scale_jobs.timed(job, place), 1, 1)  # processes would take seconds to start

    in_a_process = at_scale.measured
    monkeypatch.setattr(at_scale, "measured", here)
    monkeypatch.setattr("seekable.nodes.filter.kept_rows", filter_node.kept_rows)  # a job replaces it
    rows = list(at_scale.rows(tiny))
    assert len(rows) == 2 * len(at_scale.BOUNDS) == 2 * len(at_scale_jobs.JOBS)
    assert all(row.value > 0 for row in rows)


def test_the_page_at_scale_states_the_bounds_that_are_measured() -> None:
    text = Path(run.PAGE).with_name("at-scale.md").read_text(encoding="utf-8")
    lines = [line.strip("| ").split(" | ") for line in text.splitlines()]
    stated = {line[0]: (line[1], line[3]) for line in lines if len(line) == 5}
    for bound in at_scale.BOUNDS:
        assert stated[bound.name] == (f"{bound.seconds:g} s", f"{bound.megabytes:g} MB")


def test_a_job_at_scale_that_fails_is_named(tiny: data.Data) -> None:
    place = at_scale_jobs.Place(tiny.folder, tiny.folder, tiny.folder, 0, 1)
    with pytest.raises(RuntimeError, match="absent ended with status 1"):
        at_scale.measured("absent", place)


def test_tar_files_are_measured_and_what_is_absent_is_named(tiny: data.Data) -> None:
    absent = subprocess_peer.Library("Energon 1.0", "tests.benchmarks.absent")
    rows = list(tars.rows(tiny, absent, "is_not_installed"))  # webdataset leaves files open
    assert len({row.name for row in rows}) >= 12
    for row in rows:
        assert row.value > 0
        assert (row.ok is None) == row.against.endswith("not installed")


def test_tokens_are_measured_and_what_is_absent_is_named(tiny: data.Data) -> None:
    absent = subprocess_peer.Library("Somebody 1.0", "tests.benchmarks.absent")
    rows = list(tokens.rows(tiny, (tokens.Peer(absent, 2), tokens.Peer(absent, None, "batches"))))
    assert len(rows) == 11
    for row in rows:
        assert row.value > 0 or row.unit == "of pairs"
        assert (row.ok is None) == row.against.endswith("not installed")


def test_whole_calls_of_tokenize_are_measured(tiny: data.Data) -> None:
    rows = list(tokenizing.rows(tiny))
    assert [row.unit for row in rows] == ["MB/s"] * 5
    assert all(row.value > 0 for row in rows)


def test_conversations_are_measured_or_what_is_absent_is_named(tiny: data.Data) -> None:
    *tokenized, packed = chats.rows(tiny)
    assert all(row.value > 0 or row.against.endswith("not installed") for row in tokenized)
    assert packed.ratio


@pytest.mark.skipif(not remote_store.is_there(), reason=nginx.MISSING)
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_stores_are_measured_and_what_is_absent_is_named(
    tiny: data.Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answers_of(job: str, several: Sequence[Mapping[str, Any]], variables: Mapping[str, str]) -> list[Any]:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            answers = [remote_run.JOBS[job](**arguments) for arguments in several]
            fetcher().close()  # its thread may still write to the cache, whose folder is removed now
            return answers

    monkeypatch.setattr(remote_store, "answers_of", answers_of)  # processes would take seconds to start
    monkeypatch.setattr(remote_store, "LATENCY", 0.001)
    rows = list(remote.rows(tiny, (subprocess_peer.Library("Somebody 1.0", "tests.benchmarks.absent"),)))
    assert len(rows) == 18 + 2
    for row in rows:
        assert row.value > 0 or row.target.startswith("at most")
        assert (row.ok is None) == row.against.endswith("not installed")


def test_readers_of_a_store_are_processes_of_their_own(tiny: data.Data, tmp_path: Path) -> None:
    given = {"source": list(tiny.halves), "index_dir": str(tmp_path)}
    (built,) = remote_store.answers_of("index", [given], {})
    assert built["seconds"] > 0
    assert any(tmp_path.iterdir())
    with pytest.raises(RuntimeError, match=r"(?s)index ended with status 1.*DataNotFound"):
        remote_store.answers_of("index", [{"source": [str(tmp_path / "absent.jsonl")]}], {})


def test_shar_is_measured_and_what_is_absent_is_named(tiny: data.Data) -> None:
    rows = list(shar.rows(tiny, "is_not_installed"))
    assert len(rows) == 6
    for row in rows:
        assert row.value > 0
        assert (row.ok is None) == row.against.endswith("not installed")


@pytest.mark.parametrize("peer", ["kaldi_native_io", "is_not_installed"])
def test_tables_of_kaldi_are_measured_with_and_without_the_peer(tiny: data.Data, peer: str) -> None:
    rows = list(kaldi.rows(tiny, peer))
    assert len({row.name for row in rows}) == len(rows) > 30
    for row in rows:
        assert row.value > 0
        assert (
            (row.ok is None)
            == row.against.endswith("not installed")
            == (row.against != "" and peer != "kaldi_native_io")
        )


def test_formats_are_measured_on_what_libraries_made_of_the_records(tiny: data.Data) -> None:
    plain = {key: subprocess_peer.Library("Plain 0", "tests.benchmarks.plain") for key in formats.LIBRARIES}
    rows = list(formats.rows(tiny, plain))
    assert [row.name for row in rows] == [
        *["random records, 256 at a time"] * len(formats.BATCHES),
        *["random records, ds[i]"] * len(formats.SINGLE),
        *["epoch, shuffled"] * len(formats.EPOCH),
    ]
    assert all(row.value > 0 and row.ratio for row in rows)
    assert {row.ok is None for row in rows if row.target} == {False}


def test_loaders_are_measured_against_each_other(tiny: data.Data) -> None:
    plain = {key: subprocess_peer.Library("Plain 0", "tests.benchmarks.plain") for key in loaders.LIBRARIES}
    rows = list(loaders.rows(tiny, plain))
    assert len(rows) == 2 + 2 + 3
    assert all(row.value > 0 and row.ratio and row.ok is not None for row in rows)


def test_loaders_that_are_not_there_are_named(tiny: data.Data) -> None:
    absent = {
        key: subprocess_peer.Library(f"{key} 1.0", "tests.benchmarks.absent") for key in loaders.LIBRARIES
    }
    untold = [row for row in loaders.rows(tiny, absent) if row.ok is None]
    assert [row.against.split(" ")[0] for row in untold] == [
        "torch",
        "torch",
        "grain",
        "streaming",
        "litdata",
    ]


def test_lanes_are_measured_against_what_replays(tiny: data.Data) -> None:
    replays = {"zephon": subprocess_peer.Library("Replays 0", "tests.benchmarks.replays")}
    rows = list(lanes.rows(tiny, replays))
    assert all(row.value > 0 for row in rows)
    # A run, and for each chunk size a state and a restart, for two sizes of files; then the rest.
    assert len(rows) == 2 * (1 + 2 * 3) + 1 + 3
    wrong = [row for row in rows if row.ok is None and row.ratio is None]
    assert [row.against.partition(", ")[2] for row in wrong] == ["default chunks: a lane is lost"] * 2
    (ranks,) = (row for row in rows if row.unit == "%")
    assert ranks.value == 100
    assert ranks.against.endswith(", chunks of 256: 126 of 130")


def test_lanes_without_the_other_library_are_untold(tiny: data.Data) -> None:
    absent = {"zephon": subprocess_peer.Library("Absent 1.0", "tests.benchmarks.absent")}
    rows = list(lanes.rows(tiny, absent))
    assert all(row.value > 0 for row in rows)
    assert all(row.ok is None for row in rows)
    assert rows[-1].name == "2 sources mixed, larger files: any document by its number"
    assert rows[-1].ratio
    assert importlib.util.find_spec(lanes.LIBRARIES["zephon"].module)


def test_documents_are_the_same_in_small_and_in_larger_files(tiny: data.Data) -> None:
    folder = Path(lanes.documents(tiny))
    for name in ("a", "b"):
        small, larger = (sk.open(folder / shards / name) for shards in ("small", "larger"))
        assert list(small) == list(larger)
        assert len(list((folder / "small" / name).iterdir())) > len(
            list((folder / "larger" / name).iterdir())
        )


def test_bare_processes_do_all_records_once_between_them(tiny: data.Data, tmp_path: Path) -> None:
    ds = sk.open(data.beginning(tiny)).shuffle(seed=0)
    np.save(tmp_path / "bounds.npy", loaders._bounds(ds))
    shares = [
        bare.share_of(str(tmp_path / "bounds.npy"), data.beginning(tiny), number, 2) for number in (0, 1)
    ]
    batches = [
        floors.decoded(batch) for pair in itertools.zip_longest(*shares, fillvalue=[]) for batch in pair
    ]
    assert [record for batch in batches for record in batch] == list(ds)


def test_private_memory_is_what_no_file_has() -> None:
    before = workers.private(os.getpid())
    block = bytearray(os.urandom(1 << 24))
    assert workers.private(os.getpid()) - before > len(block) // 2


def test_a_library_that_is_not_there_leaves_its_rows_untold(tiny: data.Data) -> None:
    absent = {
        key: subprocess_peer.Library(f"{key} 1.0", "tests.benchmarks.absent") for key in formats.LIBRARIES
    }
    rows = list(formats.rows(tiny, absent))
    assert len(rows) == len(formats.BATCHES) + len(formats.SINGLE) + len(formats.EPOCH)
    for row in rows:
        assert row.ok is None
        assert row.against.endswith(" 1.0: not installed")


def test_a_library_that_does_not_start_says_why(tiny: data.Data, tmp_path: Path) -> None:
    library = subprocess_peer.Library("Broken 1.0", "tests.benchmarks.broken")
    with subprocess_peer.visiting(library, source=data.beginning(tiny), folder=str(tmp_path)) as broken:
        assert broken.absent == "does not start: OSError('no such processor')"
        assert broken.name == "Broken 1.0"


def test_every_library_has_a_module_of_ours() -> None:
    assert all(importlib.util.find_spec(library.module) for library in formats.LIBRARIES.values())


@pytest.mark.parametrize(("module", "complaint"), [("other", "has for record"), ("twice", "is not each of")])
def test_a_library_that_delivers_something_else_is_not_timed(
    tiny: data.Data, module: str, complaint: str
) -> None:
    with pytest.raises(RuntimeError, match=complaint):
        next(formats.rows(tiny, {"it": subprocess_peer.Library("It 0", f"tests.benchmarks.{module}")}))


def test_the_last_words_of_a_library_that_dies_are_told(tiny: data.Data, tmp_path: Path) -> None:
    library = subprocess_peer.Library("Plain 0", "tests.benchmarks.plain")
    with (
        pytest.raises(RuntimeError, match=r"(?s)Plain ended with status 1.*IndexError"),
        subprocess_peer.visiting(library, source=data.beginning(tiny), folder=str(tmp_path)) as plain,
    ):
        plain.ask("rows", rows=[10**6])


def test_no_library_outlives_its_visit(tiny: data.Data, tmp_path: Path) -> None:
    library = subprocess_peer.Library("Plain 0", "tests.benchmarks.plain")
    with subprocess_peer.visiting(library, source=data.beginning(tiny), folder=str(tmp_path)) as plain:
        assert plain.ask("ids") == list(range(TINY.converted))
    assert plain.process.returncode == 0


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
    assert "not told" in table.as_text([UNTOLD], Setting.here())
    assert json.loads(table.as_json([UNTOLD], Setting.here()))["rows"][0]["ok"] is None


def test_what_has_no_target_is_neither_met_nor_missed_nor_untold(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.status([TOLD]) == 0
    assert not capsys.readouterr().err
    assert table.cells(TOLD) == ("told", "2 us", "Somebody 1.0", "2.00 x", "", "")


def test_the_setting_names_the_day_the_processor_and_versions() -> None:
    words = Setting.here().in_words()
    assert words.startswith(f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} x ")
    assert f"numpy {np.__version__}" in words
    assert f"Python {platform.python_version()}, seekable {sk.__version__}" in words
    document = json.loads(table.as_json([MET], Setting.here()))
    assert document["setting"]["versions"]["numpy"] == np.__version__


def test_the_page_keeps_its_text_around_a_new_table(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{run.BEGIN}old\n{run.END}after\n", encoding="utf-8")
    for row in (MET, replace(MET, name="newer")):
        run.write_page(str(page), [row], Setting.here())
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "newer" in text
    assert "| met |" not in text
    assert text.count(Setting.here().in_words()) == 1
    assert "old" not in text
