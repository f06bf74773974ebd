"""What is written of a stream is its items in the order of slots, however it is written and continued."""

from __future__ import annotations

import itertools
import json
import os
import pickle
import re
import subprocess
import sys
import threading
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.stream import functions
from tests.stream.cases import CHEAP_FORMS
from tests.stream.graphs import streams
from tests.stream.matrix import BUILDERS, flow
from tests.stream.writing import FORMS, check_whole, contents, parts, row, shown, uneven, write
from tests.thrift import ALL, sample, some
from tests.thrift import turns as in_turn

import seekable as sk
from seekable.errors import (
    EndlessDataset,
    InvalidArgument,
    NothingPassed,
    NotResumable,
    StateMismatch,
    WorkerDied,
    WrongType,
)
from seekable.formats.table import CARDS
from seekable.writing.written_parts import LanePart, PartSlots, turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seekable.parallel.progress import Progress

EACH = [
    pytest.param(build, id=f"{kind.__name__}-{number}")
    for kind, builders in BUILDERS.items()
    for number, build in enumerate(builders)
]


@pytest.mark.parametrize("build", sample(EACH, of=2))
def test_each_stage_comes_back_in_the_order_of_slots(
    build: Callable[[int, int], sk.Stream], tmp_path: Path
) -> None:
    stream = build(29 if ALL else 17, 3).map(shown)
    check_whole(stream, tmp_path / "out", write(stream, tmp_path / "out", rows_per_file=40, jobs=1))


LANES_AND_FORMS = [(lanes, form) for lanes in (1, 3, 8) for form in FORMS]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("build", "lanes", "form"),
    [
        pytest.param(*each.values, lanes, form, id=f"{each.id}-{lanes}-{form}")
        for each, cases in zip(EACH, in_turn(LANES_AND_FORMS, len(EACH)), strict=True)
        for lanes, form in cases
    ],
)
def test_each_stage_comes_back_for_all_numbers_of_lanes_and_records(
    build: Callable[[int, int], sk.Stream], lanes: int, form: str, tmp_path: Path
) -> None:
    for n in sorted({0, 1, lanes - 1, 300}):
        stream = build(n, lanes).map(shown)
        items = list(stream)
        for rows_per_file in (1, 7, 1000) if n < 300 else (50, 1000):
            folder = tmp_path / f"{n}-{rows_per_file}"
            check_whole(items, folder, write(stream, folder, form, rows_per_file=rows_per_file, jobs=1))
            again = write(stream, folder, form, rows_per_file=rows_per_file, jobs=1)
            assert again.kept == len(again.paths)


@settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=some(12, of=2)
)
@given(stream=streams(), rows_per_file=st.integers(1, 9), form=st.sampled_from(FORMS))
def test_any_stream_that_ends_comes_back(
    stream: sk.Stream, rows_per_file: int, form: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    ends = stream.map(shown) if not stream.endless else stream.map(shown).take(23)
    folder = tmp_path_factory.mktemp("out")
    if not ends.checkpointable:
        with pytest.raises(NotResumable):
            write(ends, folder, form)
        return
    try:
        list(ends)
    except NothingPassed:
        with pytest.raises(NothingPassed):
            write(ends, folder, form)
        return
    check_whole(ends, folder, write(ends, folder, form, rows_per_file=rows_per_file, jobs=1))


@pytest.mark.parametrize(("lanes", "form"), sample(itertools.product([1, 3, 8], FORMS), of=2))
def test_none_one_and_many_items(lanes: int, form: str, tmp_path: Path) -> None:
    for count in {0, 1, lanes - 1, some(1000, of=4)}:
        stream = uneven(count, lanes)
        folder = tmp_path / str(count)
        written = write(stream, folder, form, rows_per_file=some(100, of=4), jobs=1)
        check_whole(stream, folder, written)
        assert os.path.basename(written.paths[0]) == f"part-00000.{form}"


def test_each_file_has_its_slots(tmp_path: Path) -> None:
    """Lane 1 ends early: its slots in later files are empty."""
    numbers = sk.from_sequence(range(40)).stream(lanes=2, epochs=1)
    stream = numbers.filter(lambda n: n % 2 == 0 or n < 10).map(row)
    written = stream.write_jsonl(tmp_path, rows_per_file=10, jobs=1)
    assert [len(sk.open(path)) for path in written.paths] == [10, 5, 5, 5]
    check_whole(stream, tmp_path, written)


def test_files_may_have_fewer_slots_than_there_are_lanes(tmp_path: Path) -> None:
    """Parts without items become files without rows, unless nothing follows."""
    stream = sk.from_sequence(range(64)).stream(lanes=8, epochs=1).filter(lambda n: n % 8 == 1).map(row)
    written = stream.write_jsonl(tmp_path, rows_per_file=3, jobs=1)
    check_whole(stream, tmp_path, written)
    sizes = [len(Path(path).read_bytes().splitlines()) for path in written.paths]
    assert sizes[:4] == [1, 0, 0, 1]
    assert sizes[-1] == 1


SOME = 200


@pytest.mark.parametrize("form", CHEAP_FORMS)
def test_the_same_bytes_whoever_does_it(form: str, tmp_path: Path) -> None:
    with ThreadPoolExecutor(3) as threads:
        ways: list[dict[str, Any]] = [{"jobs": 1}, {"jobs": 2}, {"executor": threads}]
        for number, way in enumerate(ways):
            folder = tmp_path / str(number)
            written = write(uneven(SOME, 3), folder, form, rows_per_file=50, **way)
            check_whole(uneven(SOME, 3), folder, written)
    assert contents(tmp_path / "0") == contents(tmp_path / "1") == contents(tmp_path / "2")
    manifests = {(tmp_path / name / ".seekable-write.json").read_bytes() for name in ("0", "1", "2")}
    assert len(manifests) == 1


@pytest.mark.parametrize("form", FORMS)
def test_many_lanes_need_no_more_open_files(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(uneven(SOME, 9), tmp_path / "open", form, rows_per_file=90, jobs=1)
    monkeypatch.setattr("seekable.writing.encoded_pieces._MOST_OPEN", 8)
    write(uneven(SOME, 9), tmp_path / "read", form, rows_per_file=90, jobs=1)
    assert contents(tmp_path / "open") == contents(tmp_path / "read")


@pytest.mark.parametrize(("form", "lanes"), [*itertools.product(FORMS, sample([300, 1100], of=2))])
def test_there_may_be_more_lanes_than_open_files(form: str, lanes: int, tmp_path: Path) -> None:
    stream = uneven(lanes + 100, lanes)
    check_whole(stream, tmp_path, write(stream, tmp_path, form, jobs=1))


SAMPLES = ["tar", "shar", "tokens"]
"""The formats of some records alone: test_write_tar.py and so on, here and in tests/dataset."""


def test_every_format_that_is_written_is_tested() -> None:
    assert {card.name for card in CARDS if card.writer} == {*FORMS, *SAMPLES}, (
        "put the format into FORMS of tests/stream/writing.py, and of tests/dataset"
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("lanes", [1, 3, 8])
def test_the_same_bytes_in_processes_of_any_kind(lanes: int, form: str, tmp_path: Path) -> None:
    write(uneven(1000, lanes), tmp_path / "one", form, rows_per_file=90, jobs=1)
    write(uneven(1000, lanes), tmp_path / "three", form, rows_per_file=90, jobs=3)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as spawned:
        write(uneven(1000, lanes), tmp_path / "spawned", form, rows_per_file=90, executor=spawned)
    assert contents(tmp_path / "one") == contents(tmp_path / "three") == contents(tmp_path / "spawned")


def test_workers_start_where_the_work_takes_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seekable.parallel.map_ranges._PATIENCE_SECONDS", 1e-9)
    monkeypatch.setattr("seekable.parallel.processes.usable_cpus", lambda: 2)

    def with_pid(record: dict[str, Any]) -> dict[str, Any]:
        return {**record, "pid": os.getpid()}

    stream = uneven(SOME, 3).map(with_pid)
    stream.write_jsonl(tmp_path / "out", rows_per_file=50)
    written = list(sk.open(tmp_path / "out"))
    assert [record["n"] for record in written] == [record["n"] for record in stream]
    assert os.getpid() not in {record["pid"] for record in written}


def test_what_cannot_be_sent_stays_here_unless_workers_were_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seekable.parallel.map_ranges._PATIENCE_SECONDS", 1e-9)
    monkeypatch.setattr("seekable.parallel.processes.usable_cpus", lambda: 2)
    lock = threading.Lock()

    def locked(record: dict[str, Any]) -> dict[str, Any]:
        with lock:
            return record

    stream = uneven(SOME, 3).map(locked, version=1)
    written = stream.write_jsonl(tmp_path / "out", rows_per_file=50)
    assert written.rows == len(list(stream))
    with pytest.raises(InvalidArgument, match="jobs=1"):
        stream.write_jsonl(tmp_path / "other", rows_per_file=50, jobs=2)


@given(
    lanes=st.integers(1, 5),
    slots=st.integers(1, 30),
    part=st.integers(0, 3),
    at_once=st.integers(1, 9),
    data=st.data(),
)
def test_lanes_are_merged_in_the_order_of_slots(
    lanes: int, slots: int, part: int, at_once: int, data: st.DataObject
) -> None:
    division = PartSlots(lanes, slots)
    there: dict[int, list[int]] = {
        lane: [slot for slot in range(part * slots, (part + 1) * slots) if slot % lanes == lane]
        for lane in range(lanes)
    }
    assert [division.of_lane(lane, part) for lane in range(lanes)] == [len(there[lane]) for lane in there]
    pieces: list[LanePart] = []
    wanted: list[tuple[int, int]] = []
    for lane, own in there.items():
        count = data.draw(st.integers(0, len(own)))
        gaps = data.draw(st.sets(st.integers(0, count - 1))) if count else set()
        if count == len(gaps):
            continue
        done = LanePart(
            lane, part, count, count - len(gaps), 0, tuple(sorted(gaps)), ended=False, bytes=1, digest=""
        )
        wanted += [(slot, len(pieces)) for item, slot in enumerate(own[:count]) if item not in gaps]
        pieces.append(done)
    found = [number for array in turns(division, pieces, at_once=at_once) for number in array.tolist()]
    assert found == [number for _, number in sorted(wanted)]


def or_hole(record: dict[str, Any]) -> Any:
    return sk.HOLE if record["n"] % 7 == 0 else record


@pytest.mark.parametrize("form", FORMS)
def test_holes_are_left_out_and_counted_and_keep_their_slots(form: str, tmp_path: Path) -> None:
    below = sk.from_sequence(range(90)).map(lambda n: sk.HOLE if n % 10 == 3 else row(n))
    stream = below.stream(lanes=4, epochs=2).map(or_hole)
    items = list(stream)
    written = write(stream, tmp_path, form, rows_per_file=25, jobs=1)
    assert list(sk.open(tmp_path)) == [item for item in items if item is not sk.HOLE]
    assert written.holes == 180 - written.rows == 18 + items.count(sk.HOLE)
    assert write(stream, tmp_path, form, rows_per_file=25, jobs=1).holes == written.holes


def test_holes_of_a_source_that_begins_anew_are_all_counted(tmp_path: Path) -> None:
    below = sk.from_sequence(range(10)).map(lambda n: sk.HOLE if n > 6 else row(n))
    written = below.stream(epochs=1).repeat(3).write_jsonl(tmp_path, rows_per_file=8)
    assert (written.rows, written.holes) == (21, 9)


@pytest.mark.parametrize("compression", ["gz", "zst"])
def test_compressed_lines_have_random_access(compression: str, tmp_path: Path) -> None:
    stream = uneven(SOME, 3)
    written = stream.write_jsonl(tmp_path, rows_per_file=80, compression=compression)
    assert {Path(path).suffix for path in written.paths} == {f".{compression}"}
    check_whole(stream, tmp_path, written)
    assert sk.open(tmp_path)[77] == list(stream)[77]


def test_arrays_become_lists(tmp_path: Path) -> None:
    stream = flow(100, 2).map(functions.masked).pack(8, key="ids", align=["mask"])
    lists = [{name: value.tolist() for name, value in item.items()} for item in stream]
    for form in FORMS:
        write(stream, tmp_path / form, form, rows_per_file=9, jobs=1)
        assert list(sk.open(tmp_path / form)) == lists


def test_columns_of_any_type_come_back(tmp_path: Path) -> None:
    """Dictionaries differ from piece to piece, and lists and structs are merged as well as numbers."""
    schema = pa.schema(
        {
            "word": pa.dictionary(pa.int32(), pa.string()),
            "ids": pa.list_(pa.int16()),
            "meta": pa.struct({"b": pa.binary(), "at": pa.timestamp("us")}),
            "none": pa.null(),
            "pairs": pa.list_(pa.struct({"x": pa.float32()})),
        }
    )

    def made(n: int) -> dict[str, Any]:
        meta = None if n % 5 == 0 else {"b": bytes([n % 256]), "at": None}
        lists = {"ids": [n] * (n % 4), "pairs": [{"x": n / 2}]}
        return {"word": f"w{n % 17}", "meta": meta, "none": None, **lists}

    stream = sk.from_sequence(range(3000)).stream(lanes=3, epochs=1).map(made)
    stream.write_parquet(tmp_path, rows_per_file=1999, schema=schema, jobs=1)
    assert list(sk.open(tmp_path)) == list(stream)
    assert pq.read_table(tmp_path / "part-00000.parquet").column("word").to_pylist()[:3] == ["w0", "w1", "w2"]


def test_a_list_of_records_is_one_value_of_json(tmp_path: Path) -> None:
    stream = uneven(50, 2).batch(4)
    check_whole(stream, tmp_path, stream.write_jsonl(tmp_path, rows_per_file=5, jobs=1))
    with pytest.raises(WrongType, match=r"lane 0 with token .* is a list"):
        stream.write_parquet(tmp_path / "tables")


def test_an_endless_stream_is_refused_with_the_way_out(tmp_path: Path) -> None:
    stream = sk.from_sequence(range(9)).stream(lanes=3).map(row)
    for form in FORMS:
        with pytest.raises(EndlessDataset, match=r"epochs=1.*take\(n\)"):
            write(stream, tmp_path / "out", form)
    assert not (tmp_path / "out").exists()
    check_whole(stream.take(20), tmp_path / "out", stream.take(20).write_jsonl(tmp_path / "out"))


def letters() -> Iterator[str]:
    yield from "abcdefg"


def test_a_stream_that_cannot_resume_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(NotResumable, match="replay=True"):
        sk.from_iterable(letters).write_jsonl(tmp_path / "out")
    assert not (tmp_path / "out").exists()
    stream = sk.from_iterable(letters, replay=True)
    check_whole(stream, tmp_path / "out", stream.write_jsonl(tmp_path / "out", rows_per_file=3))


def test_what_is_there_is_not_made_again(tmp_path: Path) -> None:
    calls: list[int] = []

    def counted(record: dict[str, Any]) -> dict[str, Any]:
        calls.append(record["n"])
        return record

    stream = uneven(SOME, 3).map(counted, version=1)
    first = stream.write_jsonl(tmp_path, rows_per_file=50, jobs=1)
    made = len(calls)
    again = stream.write_jsonl(tmp_path, rows_per_file=50, jobs=1)
    assert (again.paths, again.rows, again.holes, again.bytes) == (
        first.paths,
        first.rows,
        first.holes,
        first.bytes,
    )
    assert again.kept == len(again.paths)
    assert len(calls) == made
    assert stream.write_jsonl(tmp_path, rows_per_file=50, jobs=1, resume=False).kept == 0
    assert len(calls) == 2 * made


class FailsAfter:
    """Passes records on, notes them, and fails at one."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.seen: list[tuple[int, int]] = []

    def __call__(self, record: dict[str, Any]) -> dict[str, Any]:
        if len(self.seen) == self.most:
            raise ZeroDivisionError("it fails")
        self.seen.append((record["n"], record["part"]))
        return record


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("form", FORMS)
def test_after_an_error_each_lane_goes_on_at_its_last_finished_part(
    form: str, lanes: int, tmp_path: Path
) -> None:
    wanted = tmp_path / "wanted"
    write(uneven(SOME, lanes), wanted, form, rows_per_file=20, jobs=1)
    schema = pq.read_schema(wanted / "part-00000.parquet") if form == "parquet" else None
    given = {"schema": schema, "overwrite": True} if form == "parquet" else {}
    write(uneven(SOME, lanes), wanted, form, rows_per_file=20, jobs=1, **given)
    folder = tmp_path / "out"
    fails = FailsAfter(110)
    with pytest.raises(ZeroDivisionError):
        write(uneven(SOME, lanes).map(fails, version=1), folder, form, rows_per_file=20, jobs=1, **given)
    there = contents(folder)
    assert {name: contents(wanted)[name] for name in there} == there
    assert len(there) == 5
    follows = FailsAfter(10**9)
    written = write(
        uneven(SOME, lanes).map(follows, version=1),
        folder,
        form,
        rows_per_file=20,
        jobs=1,
        **({"schema": schema} if schema else {}),
    )
    assert written.kept == 5
    assert contents(folder) == contents(wanted)
    # A lane does the part again in which it failed, and no other one.
    both = [*fails.seen, *follows.seen]
    again = len(both) - len(set(both))
    assert again == 110 % 20 if lanes == 1 else again <= 20 // lanes
    check_whole(uneven(SOME, lanes), folder, written)


@pytest.mark.parametrize("harm", ["missing", "short", "log torn", "log lost", "manifest old"])
@pytest.mark.parametrize("lanes", [1, 3])
def test_what_is_missing_or_damaged_is_made_again(lanes: int, harm: str, tmp_path: Path) -> None:
    stream = uneven(SOME, lanes)
    written = stream.write_jsonl(tmp_path, rows_per_file=20, jobs=1)
    wanted, count = contents(tmp_path), len(written.paths)
    log, manifest = tmp_path / ".seekable-write.lanes" / "states", tmp_path / ".seekable-write.json"
    victim = Path(written.paths[count // 2])
    if harm == "short":
        victim.write_bytes(victim.read_bytes()[:-3])
    else:
        victim.unlink()
    if harm == "log torn":
        log.write_bytes(log.read_bytes()[:-100])
    elif harm == "log lost":
        log.unlink()
    elif harm == "manifest old":
        old = json.loads(manifest.read_bytes())
        del old["files"]
        old["finished"] = {}
        manifest.write_text(json.dumps(old))
    again = stream.write_jsonl(tmp_path, rows_per_file=20, jobs=1)
    assert contents(tmp_path) == wanted
    assert again.kept == count - 1
    check_whole(stream, tmp_path, again)


def test_a_missing_file_is_made_of_the_states_before_it_alone(tmp_path: Path) -> None:
    made = FailsAfter(10**9)
    stream = uneven(SOME, 3).map(made, version=1)
    written = stream.write_jsonl(tmp_path, rows_per_file=20, jobs=1)
    made.seen.clear()
    os.unlink(written.paths[2])
    assert stream.write_jsonl(tmp_path, rows_per_file=20, jobs=1).kept == len(written.paths) - 1
    assert len(made.seen) == 20
    assert contents(tmp_path).keys() == {os.path.basename(path) for path in written.paths}


@pytest.mark.parametrize(
    ("other", "arguments", "says"),
    [
        (uneven(SOME, 3).filter(bool), {}, "the stream was xxh3:"),
        (uneven(SOME, 4), {}, "in 3 lanes, is xxh3:[0-9a-f]+ in 4 lanes"),
        (uneven(SOME, 3), {"rows_per_file": 31}, "rows_per_file was 30, is 31"),
        (uneven(SOME, 3), {"compression": "gz"}, "compression was None, is 'gz'"),
    ],
)
def test_what_another_call_wrote_is_refused_unless_it_may_go(
    other: sk.Stream, arguments: dict[str, Any], says: str, tmp_path: Path
) -> None:
    uneven(SOME, 3).write_jsonl(tmp_path, rows_per_file=30, jobs=1)
    before = contents(tmp_path)
    given = {"rows_per_file": 30, "jobs": 1, **arguments}
    with pytest.raises(StateMismatch, match=says):
        other.write_jsonl(tmp_path, **given)
    assert contents(tmp_path) == before
    check_whole(other, tmp_path, other.write_jsonl(tmp_path, overwrite=True, **given))


def test_a_dataset_and_a_stream_do_not_take_each_others_files(tmp_path: Path) -> None:
    dataset = sk.from_sequence(range(50)).map(row)
    stream = dataset.stream(epochs=1)
    dataset.write_jsonl(tmp_path, rows_per_file=20)
    with pytest.raises(StateMismatch, match="the pipeline was"):
        stream.write_jsonl(tmp_path, rows_per_file=20)
    check_whole(stream, tmp_path, stream.write_jsonl(tmp_path, rows_per_file=20, overwrite=True))
    dataset.write_jsonl(tmp_path, rows_per_file=20, overwrite=True)
    assert contents(tmp_path).keys() == {f"part-{number:05}-of-00003.jsonl" for number in range(3)}
    assert not (tmp_path / ".seekable-write.lanes").exists()


def factor(by: int) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda record: {**record, "n": record["n"] * by}


def test_changed_code_is_refused_unless_it_is_meant(tmp_path: Path) -> None:
    uneven(SOME, 3).map(factor(2)).write_jsonl(tmp_path, rows_per_file=50, jobs=1)
    with pytest.raises(StateMismatch, match=r"(?s)the code of .*factor.*check_code=False"):
        uneven(SOME, 3).map(factor(3)).write_jsonl(tmp_path, rows_per_file=50, jobs=1)
    kept = uneven(SOME, 3).map(factor(3)).write_jsonl(tmp_path, rows_per_file=50, jobs=1, check_code=False)
    assert kept.kept == len(kept.paths)


def test_changed_code_of_a_dataset_below_is_refused_too(tmp_path: Path) -> None:
    def stream(by: int) -> sk.Stream:
        return sk.from_sequence(range(9)).map(row).map(factor(by)).stream(epochs=1)

    stream(2).write_jsonl(tmp_path)
    with pytest.raises(StateMismatch, match=r"the code of .*factor"):
        stream(3).write_jsonl(tmp_path)


def test_other_data_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text("1\n")
    with pytest.raises(InvalidArgument, match=r"mine\.jsonl"):
        uneven(9, 2).write_jsonl(tmp_path)
    with pytest.raises(InvalidArgument, match=r"mine\.jsonl"):
        uneven(9, 2).write_jsonl(tmp_path, overwrite=True)


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"rows_per_file": 0}, InvalidArgument, "rows_per_file must be at least 1"),
        ({"rows_per_file": "many"}, WrongType, "rows_per_file must be an integer"),
        ({"resume": 1}, WrongType, "resume must be True or False"),
        ({"jobs": 0}, InvalidArgument, "jobs must be at least 1"),
        ({"jobs": 1.5}, WrongType, "jobs must be an integer (got 1.5 of type float)"),
        ({"executor": "x"}, WrongType, "executor must be a concurrent.futures.Executor (got 'x')"),
        (
            {"progress": 3},
            WrongType,
            "progress must be True, False or a function that takes a Progress (got 3)",
        ),
        ({"compression": "xz"}, InvalidArgument, "compression must be 'gz', 'zst' or None"),
    ],
)
def test_arguments_are_checked_before_anything_is_made(
    arguments: dict[str, Any], error: type[Exception], says: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=re.escape(says)):
        uneven(9, 2).write_jsonl(tmp_path / "out", **arguments)
    assert not (tmp_path / "out").exists()


def test_columns_of_tables_keep_their_types(tmp_path: Path) -> None:
    columns = {"n": pa.int16(), "day": pa.date32(), "late": pa.float32(), "kind": pa.list_(pa.int8())}
    rows = [{"n": n, "day": None, "late": 0.5 if n > 1900 else None, "kind": [n % 3]} for n in range(2000)]
    (tmp_path / "in").mkdir()
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(columns.items())), tmp_path / "in" / "a.parquet")
    source = sk.open(tmp_path / "in").stream(lanes=3, epochs=1)
    kept = source.filter(lambda record: record["n"] % 2).shuffle(buffer=5, seed=1).skip(2).take(900).repeat(2)
    nothing = source.filter(lambda _: False)
    mixed = sk.mix([sk.concat([source, nothing]), source], weights=[1, 1], seed=0, stop="first")
    for name, stream in {"kept": kept, "nothing": nothing, "mixed": mixed}.items():
        stream.write_parquet(tmp_path / name, jobs=1)
        written = sk.open(tmp_path / name)
        assert dict(zip(written.schema.names, written.schema.types, strict=True)) == columns
        assert list(written) == list(stream)
    source.map(lambda record: {"n": record["n"]}).write_parquet(tmp_path / "made", jobs=1)
    assert sk.open(tmp_path / "made").schema.types == [pa.int64()]


def late_misfit(record: dict[str, Any]) -> dict[str, Any]:
    return {**record, "text": b"bytes"} if record["n"] == 1998 else record


@pytest.mark.parametrize("form", FORMS)
def test_an_item_that_does_not_fit_is_named(form: str, tmp_path: Path) -> None:
    stream = uneven(2000, 3).map(late_misfit)
    token = next(
        iterator.token for iterator in [iter(stream)] for item in iterator if isinstance(item["text"], bytes)
    )
    with pytest.raises(WrongType, match=re.escape(f"with token {token!r}")):
        write(stream, tmp_path, form, rows_per_file=100, jobs=1)
    assert contents(tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.name.endswith(".tmp")]


def test_an_item_of_a_file_is_named_by_its_record(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"n": 1}\n{"n": 2}\n')
    stream = sk.open(tmp_path / "in.jsonl").stream(epochs=1).map(lambda record: {"n": {record["n"]}})
    with pytest.raises(WrongType, match=r"record 0 of .*in\.jsonl.*type set, which JSON lacks"):
        stream.write_jsonl(tmp_path / "out")


NO_ROOM = """
import resource, sys
import seekable as sk
from tests.stream.writing import uneven, write
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), int(sys.argv[3])))
try:
    given = {"rows_per_file": 500, "jobs": int(sys.argv[4]), "compression": None}
    write(uneven(1000, 2), sys.argv[1], sys.argv[2], **given)
except OSError as error:
    print(type(error).__name__, error.errno, *error.__notes__)
"""


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("form", CHEAP_FORMS)
def test_a_disk_without_room_leaves_no_torn_file(form: str, jobs: int, tmp_path: Path) -> None:
    """A file of the result does not fit, or already a piece of it."""
    room = 20_000 if form == "jsonl" else 6_000
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", NO_ROOM, tmp_path / "out", form, str(room), str(jobs)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert "OSError 27" in done.stdout, done.stderr
    assert "the same call goes on" in done.stdout
    assert contents(tmp_path / "out") == {}
    assert not [path for path in (tmp_path / "out").rglob("*") if path.name.endswith(".tmp")]
    stream = uneven(1000, 2)
    written = write(stream, tmp_path / "out", form, rows_per_file=500, jobs=1, compression=None)
    check_whole(stream, tmp_path / "out", written)


class Refuses(Executor):
    def submit(self, *_: Any, **__: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.cancel()
        return future


def test_an_executor_that_cancels_is_an_error_and_the_next_call_goes_on(tmp_path: Path) -> None:
    with pytest.raises(WorkerDied, match=r"cancelled the work on 'lane-00000-part-00000'"):
        uneven(SOME, 3).write_jsonl(tmp_path, rows_per_file=50, executor=Refuses())
    check_whole(uneven(SOME, 3), tmp_path, uneven(SOME, 3).write_jsonl(tmp_path, rows_per_file=50, jobs=1))


def test_progress_goes_on_and_ends_once(tmp_path: Path) -> None:
    seen: list[Progress] = []
    stream = uneven(SOME, 3)
    stream.write_jsonl(tmp_path, rows_per_file=50, jobs=1, progress=seen.append)
    assert [progress.is_done for progress in seen] == [False] * (len(seen) - 1) + [True]
    assert (seen[-1].task, seen[-1].records, seen[-1].rows) == ("writing", len(list(stream)), None)


def test_a_stream_pickles_with_its_methods() -> None:
    stream = uneven(9, 2)
    assert pickle.loads(pickle.dumps(stream)).fingerprint == stream.fingerprint


def test_numbers_are_json_values(tmp_path: Path) -> None:
    stream = sk.from_sequence(np.arange(10)).stream(lanes=2, epochs=1)
    stream.write_jsonl(tmp_path)
    assert list(sk.open(tmp_path)) == list(range(10))


def test_parts_are_as_the_others_are() -> None:
    assert [len(parts(row(n))) for n in range(10)] == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]
