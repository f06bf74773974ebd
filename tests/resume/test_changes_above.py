"""What may have changed when a loader goes on by rows, what may not, and what is said of it."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.resume.datasets import Batches, pipeline, rows_in, source, through_json

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("forked_programs")


def keep(record: dict[str, int]) -> bool:
    return record["n"] % 3 != 0


def keep_others(record: dict[str, int]) -> bool:
    return record["n"] % 2 != 0


def tagged(record: dict[str, int]) -> dict[str, int]:
    return {**record, "tag": 1}


def write(folder: Path, name: str, numbers: range) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(f'{{"n": {number}}}\n' for number in numbers), encoding="utf-8")


def loader_of(dataset: sk.Dataset | sk.Stream, **arguments: Any) -> sk.Loader:
    return sk.Loader(dataset, **{"batch_size": 4, "collate": list, "prefetch": 0, **arguments})


def after(batches: int, dataset: sk.Dataset, **arguments: Any) -> tuple[sk.Loader, list[Any]]:
    loader = loader_of(dataset, **arguments)
    return loader, [record for batch in Batches(loader).next(batches) for record in batch]


def rest_of(loader: sk.Loader) -> list[Any]:
    return [record for batch in loader for record in batch]


def test_files_may_be_added_anywhere_and_records_are_what_the_code_makes_now(tmp_path: Path) -> None:
    data = tmp_path / "data"
    write(data, "b.jsonl", range(20))
    write(data, "d.jsonl", range(20, 50))
    loader, first = after(3, sk.open(data).filter(keep).shuffle(seed=1))
    sk.save_state(tmp_path, loader)
    write(data, "a.jsonl", range(100, 110))
    write(data, "c.jsonl", range(200, 203))
    now = sk.open(data).map(tagged).filter(keep).shuffle(seed=9)
    again = loader_of(now, batch_size=5, epochs=2)
    assert sk.load_state(tmp_path, again, resume="rows")
    run = iter(again)
    begun = [record for _ in range(4) for record in next(run)]
    assert all(record["tag"] for record in begun)
    sk.save_state(tmp_path, again)
    once_more = loader_of(now, batch_size=5, epochs=2)
    assert sk.load_state(tmp_path, once_more)
    later = rest_of(once_more)
    assert later == [record for batch in run for record in batch]
    epoch = [record["n"] for record in [*first, *begun, *later]]
    whole = [number for number in range(50) if number % 3]
    assert sorted(epoch[: len(whole)]) == whole
    assert epoch[len(whole) :] == [record["n"] for record in now.epoch(1)]


def test_a_changed_or_missing_file_is_named(tmp_path: Path) -> None:
    write(tmp_path, "a.jsonl", range(9))
    write(tmp_path, "b.jsonl", range(9, 20))
    state = after(2, sk.open(tmp_path))[0].state_dict()
    write(tmp_path, "b.jsonl", range(10, 21))
    with pytest.raises(sk.StateMismatch, match=r"file 'b.jsonl' was changed: size was 109, is 110, head"):
        loader_of(sk.open(tmp_path).shuffle(seed=1)).load_state_dict(state, resume="rows")
    (tmp_path / "b.jsonl").unlink()
    with pytest.raises(sk.StateMismatch, match=r"file 'b.jsonl' is gone"):
        loader_of(sk.open(tmp_path).shuffle(seed=1)).load_state_dict(state, resume="rows")


def test_rows_that_another_filter_kept_are_not_guessed(tmp_path: Path) -> None:
    write(tmp_path, "a.jsonl", range(30))
    state = after(2, sk.open(tmp_path).filter(keep))[0].state_dict()
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"20 rows that a filter had chosen.*let a stream filter"
    ):
        loader_of(sk.open(tmp_path).filter(keep_others)).load_state_dict(state, resume="rows")


def parts(record: dict[str, int]) -> list[dict[str, int]]:
    return [{**record, "part": part} for part in range(record["n"] % 3)]


def parts_by_two(record: dict[str, int]) -> list[dict[str, int]]:
    return [{**record, "part": part} for part in range(record["n"] % 2)]


def test_items_of_records_go_on_where_files_were_added_and_records_are_made_anew(tmp_path: Path) -> None:
    data = tmp_path / "data"
    write(data, "b.jsonl", range(20))
    write(data, "d.jsonl", range(20, 50))
    loader, first = after(3, sk.open(data).filter(keep_others).flatten(parts).shuffle(seed=1))
    write(data, "a.jsonl", range(100, 110))
    write(data, "c.jsonl", range(200, 203))
    now = sk.open(data).map(tagged).filter(keep_others).map(tagged).flatten(parts).map(tagged).shuffle(seed=9)
    again = loader_of(now, epochs=2)
    again.load_state_dict(loader.state_dict(), resume="rows")
    rest = rest_of(again)
    items = [(n, part) for n in range(1, 50, 2) for part in range(n % 3)]
    left = len(items) - len(first)
    assert sorted((item["n"], item["part"]) for item in [*first, *rest[:left]]) == items
    assert all(item["tag"] for item in rest)
    assert rest[left:] == list(now.epoch(1))


def by_remainder(record: dict[str, int]) -> int:
    return record["n"] % 7


def test_a_sorted_epoch_goes_on_where_files_were_added(tmp_path: Path) -> None:
    data, old = tmp_path / "data", tmp_path / "old.u64"
    write(data, "b.jsonl", range(20))
    write(data, "d.jsonl", range(20, 50))
    before = sk.open(data).sort(by_remainder)
    epoch = [record["n"] for record in before]
    loader, first = after(3, before)
    kept, _ = after(3, sk.open(data).sort(by_remainder, save=old))
    sk.save_state(tmp_path, kept)
    write(data, "a.jsonl", range(100, 110))
    write(data, "c.jsonl", range(200, 203))
    now = sk.open(data).map(tagged).sort(by_remainder)
    again = loader_of(now, epochs=2)
    again.load_state_dict(loader.state_dict(), resume="rows")
    rest = rest_of(again)
    assert [record["n"] for record in [*first, *rest]][:50] == epoch
    assert rest[50 - len(first) :] == list(now.epoch(1))
    another = sk.open(data).map(tagged).sort("n", reverse=True)
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"50 rows that a sort had chosen.*ds.sort\(fn, save=\)"
    ):
        loader_of(another).load_state_dict(loader.state_dict(), resume="rows")
    saved = loader_of(another, epochs=2)
    assert sk.load_state(tmp_path, saved, resume="rows")
    assert rest_of(saved)[: 50 - len(first)] == rest[: 50 - len(first)]


def test_items_whose_numbers_have_changed_need_a_file_of_rows(tmp_path: Path) -> None:
    data, old = tmp_path / "data", tmp_path / "old.u64"
    write(data, "a.jsonl", range(30))
    state = after(2, sk.open(data).flatten(parts).shuffle(seed=1))[0].state_dict()
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"30 rows that a flatten had chosen.*ds.flatten\(fn, save=\)"
    ):
        loader_of(sk.open(data).flatten(parts_by_two)).load_state_dict(state, resume="rows")
    with pytest.raises(sk.StateMismatch, match="what was flatten"):
        loader_of(sk.open(data)).load_state_dict(state, resume="rows")
    plain = after(2, sk.open(data).shuffle(seed=1))[0].state_dict()
    with pytest.raises(sk.StateMismatch, match="is flatten now"):
        loader_of(sk.open(data).flatten(parts)).load_state_dict(plain, resume="rows")
    loader, first = after(2, sk.open(data).flatten(parts, save=old).shuffle(seed=1))
    again = loader_of(sk.open(data).flatten(parts, version=2).shuffle(seed=3))
    again.load_state_dict(through_json(loader.state_dict()), resume="rows")
    numbers = sorted(item["n"] for item in [*first, *rest_of(again)])
    assert numbers == [n for n in range(30) for _ in range(n % 3)]


@pytest.mark.parametrize("weights", [[1, 2], [(0, [1, 2]), (9, [3, 1]), (30, [1, 1])]])
def test_a_folder_says_what_an_endless_mixture_was(tmp_path: Path, weights: Any) -> None:
    before = sk.mix([source("a", 20), source("b", 30)], weights=weights, seed=1, stop="never")
    loader, first = after(5, before)
    sk.save_state(tmp_path, loader)
    again = loader_of(sk.mix([source("a", 20), source("b", 30)], weights=[1, 1], seed=2, stop="never"))
    assert sk.load_state(tmp_path, again, resume="rows")
    rows = [*first, *[row for batch in Batches(again).next(30) for row in batch]]
    for name, size in (("a", 20), ("b", 30)):
        own = [row for row in rows if row[0] == name]
        assert own == [f"{name}{row % size}" for row in range(len(own))]


def test_a_filter_may_change_if_the_rows_that_it_kept_have_a_file(tmp_path: Path) -> None:
    data, old, new = tmp_path / "data", tmp_path / "old.u64", tmp_path / "new.u64"
    write(data, "a.jsonl", range(30))
    loader, first = after(2, sk.open(data).filter(keep, save=old).shuffle(seed=1))
    sk.save_state(tmp_path, loader)
    write(data, "b.jsonl", range(30, 40))
    now = sk.open(data).map(tagged).filter(keep_others, save=new).shuffle(seed=2)
    again = loader_of(now, epochs=2)
    again.load_state_dict(loader.state_dict(), resume="rows")
    folder = loader_of(now, epochs=2)
    assert sk.load_state(tmp_path, folder, resume="rows")
    once_more = loader_of(now, epochs=2)
    once_more.load_state_dict(through_json(folder.state_dict()))
    rest = rest_of(again)
    assert rest == rest_of(folder) == rest_of(once_more)
    assert sorted(record["n"] for record in [*first, *rest[:12]]) == [n for n in range(30) if n % 3]
    assert rest[12:] == list(now.epoch(1))
    old.write_bytes(old.read_bytes()[:-8] + bytes(8))
    with pytest.raises(sk.errors.CorruptState, match=r"old\.u64.*something else changed it"):
        sk.load_state(tmp_path, loader_of(now, epochs=2), resume="rows")
    old.unlink()
    with pytest.raises(sk.errors.InvalidArgument, match=r"20 rows that a filter had chosen"):
        sk.load_state(tmp_path, loader_of(now, epochs=2), resume="rows")


def test_filters_over_filters_may_change_if_the_rows_of_each_have_a_file(tmp_path: Path) -> None:
    data = tmp_path / "data"
    write(data, "a.jsonl", range(60))
    inner = sk.open(data).filter(keep, save=tmp_path / "inner.u64")
    loader, first = after(2, inner.filter(keep_others, save=tmp_path / "outer.u64").shuffle(seed=1))
    sk.save_state(tmp_path, loader)
    state, folder = loader_of(sk.open(data).shuffle(seed=2)), loader_of(sk.open(data).shuffle(seed=2))
    state.load_state_dict(through_json(loader.state_dict()), resume="rows")
    assert sk.load_state(tmp_path, folder, resume="rows")
    rest = rest_of(state)
    assert rest == rest_of(folder)
    assert sorted(record["n"] for record in [*first, *rest]) == [n for n in range(60) if n % 3 and n % 2]


def test_tables_may_grow_and_have_other_columns_now(tmp_path: Path) -> None:
    folder = tmp_path / "tables"
    folder.mkdir()
    pq.write_table(
        pa.table({"id": list(range(20)), "text": ["x"] * 20}), folder / "b.parquet", row_group_size=7
    )
    loader, first = after(2, sk.open(folder).shuffle(seed=1, window=1, lanes=2))
    sk.save_state(tmp_path, loader)
    pq.write_table(pa.table({"id": [100, 101], "more": [1, 2]}), folder / "a.parquet")
    again = loader_of(sk.open(folder).rename({"id": "number"}).shuffle(seed=2))
    assert sk.load_state(tmp_path, again, resume="rows")
    rest = rest_of(again)
    assert sorted([*[row["id"] for row in first], *[row["number"] for row in rest]]) == list(range(20))
    assert {tuple(sorted(row)) for row in rest} == {("more", "number", "text")}


def test_what_was_joined_goes_on_if_it_is_joined_as_it_was() -> None:
    def joined(size: int) -> sk.Dataset:
        left = sk.from_sequence([{"id": row} for row in range(size)], version="left")
        right = sk.from_sequence([{"id": row, "twice": 2 * row} for row in range(40)], version="right")
        return sk.join(left, right, on="id")

    loader, first = after(2, joined(20).shuffle(seed=1))
    again = loader_of(joined(20).map(tagged).shuffle(seed=2))
    again.load_state_dict(loader.state_dict(), resume="rows")
    rest = rest_of(again)
    assert sorted(row["id"] for row in [*first, *rest]) == list(range(20))
    assert all(row["tag"] for row in rest)
    with pytest.raises(sk.StateMismatch, match=r"what was join, .* is join now, .* cannot be told"):
        loader_of(joined(25)).load_state_dict(loader.state_dict(), resume="rows")


def test_each_source_has_a_line_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in "ab":
        write(tmp_path / name, "1.jsonl", range(3))
        write(tmp_path / name, "2.jsonl", range(3, 40))

    def mixed(weights: list[int]) -> sk.Dataset:
        parts = {name: sk.open(tmp_path / name) for name in "ab"}
        return sk.mix(parts, weights=weights, seed=1, stop="never")

    state = after(4, mixed([3, 1]))[0].state_dict()
    with caplog.at_level(logging.INFO, logger="seekable"):
        loader_of(mixed([1, 1])).load_state_dict(state, resume="rows")
    assert [record.getMessage() for record in caplog.records] == [
        f"resume: spec={tmp_path / 'a'} sample_row=13 shard=2.jsonl offset=10",
        f"resume: spec={tmp_path / 'b'} sample_row=3 shard=2.jsonl offset=0",
    ]


def test_a_part_that_is_gone_is_left_out_with_a_warning_and_a_new_one_begins(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def mixed(*names: str) -> sk.Dataset:
        parts = {name: source(name, 20) for name in names}
        return sk.mix(parts, weights=dict.fromkeys(names, 1), seed=1, stop="never")

    loader, first = after(3, mixed("a", "b"))
    again = loader_of(mixed("c", "a"), steps=30)
    with caplog.at_level(logging.WARNING, logger="seekable"):
        again.load_state_dict(loader.state_dict(), resume="rows")
    (warning,) = [record.getMessage() for record in caplog.records]
    gone = 20 - sum(row[0] == "b" for row in first)
    assert warning == (
        f"resume: b is not in the pipeline any more: {gone} rows of its begun epoch are left out"
    )
    rows = rest_of(again)
    assert [row for row in rows if row[0] == "c"][:20] == list(source("c", 20))
    begun = [row for row in first if row[0] == "a"]
    assert [*begun, *[row for row in rows if row[0] == "a"]][:20] == list(source("a", 20))


def test_a_new_source_begins_with_its_epoch_0_wherever_the_mixture_is() -> None:
    def mixed(*names: str) -> sk.Dataset:
        parts = {name: source(name, 4).shuffle(seed=1) for name in names}
        return sk.mix(parts, weights=dict.fromkeys(names, 1), seed=1, stop="never")

    for steps in range(1, 15):
        state = after(steps, mixed("a", "b"))[0].state_dict()
        again = loader_of(mixed("a", "b", "c"), steps=30)
        again.load_state_dict(state, resume="rows")
        assert again.sources()[2]["consumed"] == 0
        assert [row for row in rest_of(again) if row[0] == "c"][:4] == list(source("c", 4).shuffle(seed=1))


def test_a_changed_source_without_a_name_is_not_taken_for_one_that_is_gone() -> None:
    def mixed(*parts: sk.Dataset) -> sk.Dataset:
        return sk.mix(parts, weights=[1] * len(parts), seed=1, stop="never")

    a, b, c = (source(name, 20) for name in "abc")
    state = after(3, mixed(a, b))[0].state_dict()
    for dataset in (mixed(a, source("b", 19)), mixed(a, c), mixed(c, a, c)):
        with pytest.raises(sk.StateMismatch, match="needs the sources as they were, for 1"):
            loader_of(dataset).load_state_dict(state, resume="rows")
    for dataset in (mixed(b, a), mixed(c, b, a), mixed(a)):
        loader_of(dataset).load_state_dict(state, resume="rows")


def test_an_order_above_a_mixture_is_refused() -> None:
    mixed = sk.mix([source("a", 9), source("b", 9)], weights=[1, 1], seed=1)
    state = after(1, mixed.shuffle(seed=1))[0].state_dict()
    for dataset in (mixed, source("a", 9)):
        with pytest.raises(sk.errors.InvalidArgument, match=r"shuffle stands above a mixture.*, then mix"):
            loader_of(dataset).load_state_dict(state, resume="rows")


def test_a_state_without_a_description_goes_on_exactly_and_not_by_rows() -> None:
    """Although the pipeline that it is of is still in this process."""
    loader, _ = after(2, source("a", 20).shuffle(seed=3))
    bare = loader.state_dict(rows=False)
    assert rest_of(loader_of_state(loader.dataset, bare, "exact")) == rest_of(
        loader_of_state(loader.dataset, loader.state_dict(), "exact")
    )
    again = loader_of(source("a", 20))
    with pytest.raises(sk.StateMismatch, match=r"rows=False.*sk\.load_state\(folder, loader, resume='"):
        again.load_state_dict(bare, resume="rows")
    assert again.step == 0


def test_a_description_that_was_changed_is_refused() -> None:
    loader, _ = after(2, source("a", 20).shuffle(seed=3))
    state = loader.state_dict()
    other = loader_of(source("other", 20)).state_dict()["pipeline"]
    again = loader_of(source("a", 20))
    with pytest.raises(sk.errors.CorruptState, match="one of them is of another run"):
        again.load_state_dict({**state, "pipeline": other}, resume="rows")
    for torn in (state["pipeline"][:-9], "", "[]", "{}", '{"files":[],"nodes":[{"kind":"concat","of":[0]}]}'):
        with pytest.raises(sk.errors.CorruptState, match="'pipeline' is not a description"):
            again.load_state_dict({**state, "pipeline": torn}, resume="rows")
    with pytest.raises(sk.errors.CorruptState, match="'pipeline' must be a string"):
        again.load_state_dict({**state, "pipeline": {}}, resume="rows")
    assert again.step == 0


def test_states_of_one_pipeline_share_one_description() -> None:
    dataset = source("a", 20).shuffle(seed=3)
    states = [after(steps, dataset)[0].state_dict() for steps in (0, 1, 2)]
    assert all(state["pipeline"] is states[0]["pipeline"] for state in states)
    iterators = [iter(stream) for stream in [dataset.stream()] for _ in "ab"]
    assert iterators[0].state_dict()["pipeline"] is iterators[1].state_dict()["pipeline"]


def test_once_the_rest_has_come_a_state_is_the_plain_one() -> None:
    loader, first = after(3, source("a", 20).shuffle(seed=3))
    now = source("a", 25).shuffle(seed=4)
    again = loader_of(now, batch_size=2, epochs=3)
    again.load_state_dict(loader.state_dict(), resume="rows")
    run = Batches(again)
    rest = [row for batch in run.next(3) for row in batch]
    assert "rows" in again.state_dict()
    rest += [row for batch in run.next(1) for row in batch]
    assert sorted([*first, *rest]) == sorted(source("a", 20))
    state = again.state_dict()
    assert state == {
        "seekable": 1,
        "fingerprint": now.fingerprint,
        "step": 7,
        "epoch": 0,
        "position": 25,
        "check": state["check"],
        "pipeline": loader_of(now).state_dict()["pipeline"],
    }
    # What is left of the run are whole epochs of the new order.
    once_more = loader_of(now, batch_size=2, epochs=3)
    once_more.load_state_dict(state)
    assert rest_of(once_more) == [*now.epoch(1), *now.epoch(2)]


def test_what_changed_nothing_goes_on_exactly() -> None:
    dataset = sk.mix({"a": source("a", 30).shuffle(seed=1)}, weights=[1], seed=2)
    loader, _ = after(3, dataset)
    expected = rest_of(loader_of_state(dataset, loader.state_dict(), "exact"))
    assert rest_of(loader_of_state(dataset, loader.state_dict(), "rows")) == expected


def loader_of_state(dataset: sk.Dataset, state: dict[str, Any], resume: Any) -> sk.Loader:
    loader = loader_of(dataset)
    loader.load_state_dict(state, resume=resume)
    return loader


@pytest.mark.parametrize(("workers", "worker_type"), [(0, "thread"), (2, "thread"), (1, "process")])
def test_a_live_iterator_moves_and_workers_are_told(workers: int, worker_type: Any) -> None:
    old, now = source("a", 40).shuffle(seed=1), source("a", 44).shuffle(seed=2)
    loader, first = after(3, old)
    with loader_of(now, workers=sk.Workers(workers, type=worker_type), epochs=2) as again:
        run = iter(again)
        assert next(run) == list(now[:4])
        again.load_state_dict(loader.state_dict(), resume="rows")
        begun = [record for _ in range(2) for record in next(run)]
        state = again.state_dict()
        rest = [record for batch in run for record in batch]
        again.load_state_dict(state)
        assert rest_of(again) == rest
        again.load_state_dict(loader_of(now).state_dict())
        assert next(iter(again)) == list(now[:4])
    rows = [*first, *begun, *rest]
    assert sorted(rows[:40]) == sorted(source("a", 40))
    assert rows[40:] == list(now.epoch(1))


@pytest.mark.frameworks(name="torch")
def test_a_sampler_of_positions_refuses() -> None:
    loader, _ = after(2, source("a", 20))
    from seekable.integrations.torch import BatchSampler

    sampler = BatchSampler(source("a", 20).shuffle(seed=1), batch_size=4)
    with pytest.raises(sk.errors.InvalidArgument, match=r"use sk\.Loader"):
        sampler.load_state_dict(loader.state_dict(), resume="rows")


def test_runs_of_several_epochs_are_as_long_as_they_were() -> None:
    first, second = source("a", 12).shuffle(seed=1), source("a", 12).shuffle(seed=2)
    for batches in range(13):
        loader, before = after(batches, first, batch_size=3, epochs=3)
        again = loader_of(second, batch_size=3, epochs=3)
        again.load_state_dict(loader.state_dict(), resume="rows")
        came = Counter([*before, *rest_of(again)])
        assert set(came.values()) == {3}, batches


CHILD = """
import json, sys
from random import Random
from tests.resume.datasets import Batches, pipeline, rows_in
import seekable as sk

found = []
for given in json.load(sys.stdin):
    loader = sk.Loader(
        pipeline(given["sizes"], Random(given["seed"])), batch_size=3, collate=list, prefetch=0
    )
    loader.load_state_dict(given["state"], resume=given["resume"])
    batches = Batches(loader).next(given["count"])
    found.append([list(rows_in(batches)), loader.state_dict()])
print(json.dumps(found))
"""


def in_a_new_process(cases: list[dict[str, Any]]) -> list[Any]:
    done = subprocess.run(
        [sys.executable, "-c", CHILD], input=json.dumps(cases), capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return found


def test_a_new_process_goes_on_by_rows_and_another_one_exactly() -> None:
    sizes = {"a": 40, "b": 30, "c": 20}
    grown = {name: size + 5 for name, size in sizes.items()}
    cases: list[dict[str, Any]] = []
    for seed in range(3):
        loader, _ = after(7, pipeline(sizes, Random(seed)))
        state = through_json(loader.state_dict())
        cases.append({"sizes": grown, "seed": seed + 10, "state": state, "resume": "rows", "count": 6})
    begun = in_a_new_process(cases)
    then = [
        {**case, "state": between, "resume": "exact", "count": 9}
        for case, (_, between) in zip(cases, begun, strict=True)
    ]
    rests = in_a_new_process(then)
    for case, (first, _), (rest, after_all) in zip(cases, begun, rests, strict=True):
        here = loader_of(pipeline(grown, Random(case["seed"])), batch_size=3)
        here.load_state_dict(case["state"], resume="rows")
        assert list(rows_in(Batches(here).next(15))) == first + rest, case["seed"]
        assert here.state_dict() == after_all, case["seed"]


def test_a_sample_index_is_a_state() -> None:
    dataset = source("a", 10).shuffle(seed=1)
    for count in range(25):
        loader = loader_of(dataset, batch_size=2)
        loader.load_state_dict(sk.state_from_sample_index(count, loader))
        passed = [row for epoch in range(3) for row in dataset.epoch(epoch)]
        first = Batches(loader).next(1)[0]
        assert first == passed[count : count + 2][: 10 - count % 10]
    loader = loader_of(dataset, batch_size=2)
    delivered = Batches(loader)
    for batches in range(12):
        assert sk.state_from_sample_index(2 * batches, loader) == loader.state_dict()
        delivered.next(1)


def test_a_sample_index_of_a_stream_is_a_state() -> None:
    stream = source("a", 30).stream(lanes=2).shuffle(buffer=5, seed=1)
    loader = loader_of(stream, batch_size=3)
    Batches(loader).next(4)
    assert sk.state_from_sample_index(12, loader_of(stream, batch_size=3)) == loader.state_dict()
    ends = source("a", 30).stream(epochs=1)
    with pytest.raises(
        sk.errors.OutOfRange, match="the stream has 30 items in a run, and the sample index is 31"
    ):
        sk.state_from_sample_index(31, loader_of(ends))
