"""Records left out of datasets: all others stay, through every node, in every epoch, forward and inverse."""

from __future__ import annotations

import pickle
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import seekable as sk
from seekable.nodes.graph import SearchRange
from seekable.nodes.node import LeafNode
from seekable.nodes.rows_to_exclude import excluded_rows
from seekable.nodes.without import excluded
from seekable.resume.from_description import rebuild, rebuild_loosely

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from seekable.nodes.node import Node

A, B = "<builtins.list a>", "<builtins.list b>"
SIZE = 40


def source(name: str = "a", size: int = SIZE) -> sk.Dataset:
    return sk.from_sequence(
        [{"id": row, "part": name, "third": row % 3} for row in range(size)], version=name
    )


def is_kept(record: dict[str, Any]) -> bool:
    return bool(record["third"])


def of_id(record: dict[str, Any]) -> int:
    return int(-record["id"] % 7)


def with_noise(record: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    return {**record, "noise": rng.integers(1000)}


def twice(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [record, record] if record["third"] else []


def with_more(record: dict[str, Any]) -> dict[str, Any]:
    return {**record, "more": -record["id"]}


ENDLESS = [(0, [2, 1]), (90, [1, 3])]

# What stands above the domain, and what is a domain itself.
PIPELINES: dict[str, Callable[[], sk.Dataset]] = {
    "plain": source,
    "shuffle": lambda: source().shuffle(seed=7),
    "fixed": lambda: source().shuffle(seed=7, fixed=True),
    "windows": lambda: source(size=3000).shuffle(seed=7, window=1, lanes=3),
    "interleave": lambda: source().interleave(lanes=7),
    "concat": lambda: sk.concat([source().shuffle(seed=1), source("b")]),
    "shuffled concat": lambda: sk.concat([source(), source("b")]).shuffle(seed=3),
    "first": lambda: sk.mix([source().shuffle(seed=1), source("b")], weights=[1, 2], seed=3),
    "all": lambda: sk.mix({"a": source().shuffle(seed=1), "b": source("b", 9)}, seed=3, stop="all"),
    "never": lambda: sk.mix([source().shuffle(seed=1), source("b")], weights=ENDLESS, seed=3).take(150),
    "lanes": lambda: sk.mix(
        [source().shuffle(seed=1, window=1, lanes=2), source("b").interleave(lanes=3)], seed=3
    ),
    "repeat": lambda: source().shuffle(seed=2).repeat(3),
    "take": lambda: source().shuffle(seed=2).take(11),
    "shard": lambda: source().shuffle(seed=2).shard(1, of=3),
    "map": lambda: source().shuffle(seed=2).map(with_more),
    "rng": lambda: source().map(with_noise, rng=True, seed=1),
    "columns": lambda: source().shuffle(seed=2).rename({"third": "x"}).drop_columns(["part"]),
    "source column": lambda: source().shuffle(seed=2).source_column("file", row="row"),
    "batch": lambda: source().shuffle(seed=2).batch(3),
    "epoch": lambda: source().shuffle(seed=2).epoch(2),
    "filter": lambda: source().filter(is_kept, version=1).shuffle(seed=4),
    "split": lambda: source().split({"train": 0.7, "test": 0.3}, seed=1)["train"].shuffle(seed=4),
    "slice": lambda: source()[30:2:-3],
    "select": lambda: source().select([3, 3, 9, 5, 20, 5]).shuffle(seed=1),
    "doubled": lambda: sk.concat([source(), source()]).shuffle(seed=1),
    "sample": lambda: source().sample(20, seed=1).shuffle(seed=1),
    "sort": lambda: source().sort(of_id),
    "flatten": lambda: source().flatten(twice, version=1, jobs=1).shuffle(seed=4),
    "zip": lambda: sk.zip([source(), source("b")[::-1]]).shuffle(seed=4),
    "join": lambda: sk.join(source(), source("b").rename({"part": "q", "third": "t"}), on="id").shuffle(1),
    "filter of an epoch": lambda: source().shuffle(seed=1).epoch(3).filter(is_kept, version=1),
}

LISTED = [(A, 2), (A, 3), (A, 5), (A, 20), (A, 26), (B, 4)]


def places(dataset: sk.Dataset, epochs: int) -> list[list[tuple[str, int]]]:
    """Return for each position of some epochs the file and row of all that its record is made of."""
    located = dataset._node.plan(np.arange(epochs * len(dataset))).locate()
    return [list(_flat(each)) for each in located]


def _flat(place: Any) -> Any:
    if isinstance(place, list | tuple):
        for each in place:
            yield from _flat(each)
    else:
        yield place.path, place.row


def listed_of(dataset: sk.Dataset) -> list[tuple[str, int]]:
    """Return the listed rows of the files that there are."""
    files = {path for made_of in places(dataset, 1) for path, _ in made_of}
    return [place for place in LISTED if place[0] in files]


@pytest.mark.parametrize("name", PIPELINES)
def test_all_others_stay_and_what_is_listed_never_comes(name: str) -> None:
    dataset = PIPELINES[name]()
    listed = listed_of(dataset)
    clean = dataset.without(listed)
    assert len(clean) == len(dataset)
    assert clean._node.lanes == dataset._node.lanes
    assert clean._node.blocks.tolist() == dataset._node.blocks.tolist()
    before, after = places(dataset, 3), places(clean, 3)
    hits = 0
    for was, found in zip(before, after, strict=True):
        if name in ("zip", "join"):  # A pair is left out as a whole.
            assert was == found or not set(was).isdisjoint(listed)
        else:
            assert all(one == other or one in listed for one, other in zip(was, found, strict=True))
        hits += was != found
        assert set(found).isdisjoint(listed)
    assert hits


@pytest.mark.parametrize("name", PIPELINES)
def test_arrays_single_records_and_searches_agree(name: str) -> None:
    dataset = PIPELINES[name]().without(listed_of(PIPELINES[name]()))
    node, epochs = dataset._node, 2
    positions = np.arange(epochs * len(dataset))
    records = node.fetch(positions)
    assert [node.record(int(position)) for position in positions] == records
    where: dict[tuple[str, int], list[int]] = {}
    for position, made_of in enumerate(places(dataset, epochs)):
        for place in dict.fromkeys(made_of):
            where.setdefault(place, []).append(position)
    for path, row in [*LISTED, (A, 0), (A, 7), (A, 39), (B, 6)]:
        found = [int(at) for epoch in range(epochs) for at in dataset.find(path, row, epoch=epoch)]
        assert found == where.get((path, row), [])


@pytest.mark.parametrize("name", [name for name in PIPELINES if name != "batch"])
def test_holes_stand_just_where_rows_were(name: str) -> None:
    dataset = PIPELINES[name]()
    listed = listed_of(dataset)
    holed = dataset.without(listed, fill="hole")
    records = dataset._node.fetch(np.arange(2 * len(dataset)))
    is_out = [not set(made_of).isdisjoint(listed) for made_of in places(dataset, 2)]
    expected = [sk.HOLE if out else record for record, out in zip(records, is_out, strict=True)]
    node = holed._node
    assert node.fetch(np.arange(2 * len(dataset))) == expected
    assert [node.record(position) for position in range(2 * len(dataset))] == expected
    assert places(holed, 2) == places(dataset, 2)
    assert not any(holed.find(path, row) for path, row in listed)
    assert node.steady == dataset._node.steady


def test_batches_leave_holes_out() -> None:
    clean = source().batch(3).without(LISTED[:3], fill="hole")
    assert [record["id"] for record in clean[0]] == [0, 1]
    assert [record["id"] for record in clean[1]] == [4]


def test_a_replacement_was_chosen_as_the_row_was() -> None:
    train = source().split({"train": 0.7, "test": 0.3}, seed=1)["train"].filter(is_kept, version=1)
    ids = {record["id"] for record in train}
    clean = train.shuffle(seed=3).without([(A, row) for row in range(20)])
    seen = {record["id"] for epoch in range(20) for record in clean.epoch(epoch)}
    assert seen == {row for row in ids if row >= 20}


def test_each_part_of_a_concatenation_fills_its_own_places() -> None:
    clean = sk.concat([source(), source("b")]).without([(A, row) for row in range(30)])
    assert [record["part"] for record in clean] == ["a"] * SIZE + ["b"] * SIZE


def test_a_kept_row_comes_as_often_as_is_said(caplog: pytest.LogCaptureFixture) -> None:
    clean = source().shuffle(seed=1).without([(A, row) for row in range(33)])
    assert "33 of 40 rows are left out, so that a kept row comes up to 6 times" in caplog.text
    for epoch in range(3):
        counts = Counter(record["id"] for record in clean.epoch(epoch))
        assert set(counts) == set(range(33, 40))
        assert set(counts.values()) <= {5, 6}
    caplog.clear()
    source().without([(A, row) for row in range(20)])
    assert not caplog.text


def test_several_lists_are_one() -> None:
    for fill in ("replace", "hole"):
        for dataset in (PIPELINES["shuffled concat"](), PIPELINES["zip"](), PIPELINES["never"]()):
            node = dataset._node
            both = excluded(node, excluded_rows(node, LISTED), fill=fill)
            twice_ = node
            for some in (LISTED[:2], LISTED[1:5], LISTED):
                twice_ = excluded(twice_, excluded_rows(node, some), fill=fill)
            assert twice_.fingerprint == both.fingerprint != node.fingerprint
            assert excluded(both, excluded_rows(node, LISTED[3:]), fill=fill) is both


def of_leaves(rows: list[int], node: Node) -> list[int]:
    return rows if isinstance(node, LeafNode) else []


def test_holes_may_leave_what_fills_the_places_of_others_as_it_is() -> None:
    before = source().shuffle(seed=1).without(LISTED[:5])
    rows = excluded_rows(before._node, [(A, row) for row in range(9, 25)])
    after = excluded(before._node, rows, fill="hole", anew=False)
    positions = np.arange(3 * SIZE)
    was = before._node.fetch(positions)
    wanted = [sk.HOLE if 9 <= record["id"] < 25 else record for record in was]
    assert after.fetch(positions) == [after.record(at) for at in positions.tolist()] == wanted
    for row in range(SIZE):
        found = after.find_within(partial(of_leaves, [row]), SearchRange(0, positions.size, range(3)))
        there = [at for at, record in enumerate(wanted) if record is not sk.HOLE and record["id"] == row]
        assert sorted(found.tolist()) == there


def test_holes_and_replacements_together() -> None:
    shuffled = source().shuffle(seed=1)
    one = shuffled.without(LISTED[:2], fill="hole").without(LISTED[2:5])
    other = shuffled.without(LISTED[2:5]).without(LISTED[:2], fill="hole")
    assert one.fingerprint == other.fingerprint
    seen = [record for epoch in range(5) for record in one.epoch(epoch)]
    assert sum(record is sk.HOLE for record in seen) == 10
    assert {record["id"] for record in seen if record is not sk.HOLE}.isdisjoint({2, 3, 5, 20, 26})


def test_nothing_listed_changes_nothing() -> None:
    dataset = source().filter(is_kept, version=1).shuffle(seed=1)
    assert dataset.without([])._node is dataset._node
    assert dataset.without([(A, 3)])._node is dataset._node  # the filter has dropped it


def test_what_cannot_be_left_out_alone_is_refused() -> None:
    apart = sk.zip([source().shuffle(seed=1), source("b").shuffle(seed=2)])
    with pytest.raises(sk.errors.InvalidArgument, match="put them together first, then shuffle"):
        apart.without([(A, 1)])
    with pytest.raises(sk.errors.InvalidArgument, match="would leave out all 3 rows of 3 records"):
        source(size=3).without([(A, row) for row in range(3)])
    with pytest.raises(sk.errors.InvalidArgument, match="fill must be 'replace' or 'hole'"):
        source().without([], fill="none")  # type: ignore[arg-type]


CHOICES: dict[str, Callable[[sk.Dataset], sk.Dataset]] = {
    "filter": lambda ds: ds.filter(is_kept, version=1),
    "split": lambda ds: ds.split({"train": 0.8, "test": 0.2}, seed=1)["train"],
    "sort": lambda ds: ds.sort(of_id),
    "sample": lambda ds: ds.sample(25, seed=3),
    "flatten": lambda ds: ds.flatten(twice, version=1, jobs=1),
    "pack": lambda ds: ds.map(with_tokens).pack(8, seed=1, key="tokens"),
    "two filters": lambda ds: ds.filter(is_kept, version=1).filter(is_late, version=1),
    "map": lambda ds: ds.map(with_more).filter(is_kept, version=1),
}


def with_tokens(record: dict[str, Any]) -> dict[str, Any]:
    return {"tokens": [record["id"]] * 3}


def is_late(record: dict[str, Any]) -> bool:
    return bool(record["id"] > 3)


@pytest.mark.parametrize("fill", ["replace", "hole"])
@pytest.mark.parametrize("name", CHOICES)
def test_what_chooses_rows_goes_below(name: str, fill: Any) -> None:
    def left_out(dataset: sk.Dataset) -> sk.Dataset:
        return dataset.without(LISTED[:3]).without(LISTED[3:5], fill=fill)

    choose, dataset = CHOICES[name], source()
    late, early = left_out(choose(dataset)), choose(left_out(dataset))
    assert early.fingerprint == late.fingerprint != choose(dataset).fingerprint
    wide = sk.concat([dataset, source("b")])
    assert choose(left_out(wide)).fingerprint == left_out(choose(wide)).fingerprint


def test_a_part_that_cannot_be_told_apart_is_refused() -> None:
    once = sk.concat([source().without([(A, 1)]), source()])
    with pytest.raises(sk.errors.InvalidArgument, match=r"filter\(\) cannot go below without\(\) here"):
        once.filter(is_kept, version=1)
    shuffled = source().shuffle(seed=1).without([(A, 1)])
    with pytest.raises(sk.errors.InvalidArgument, match="put it before shuffle, pack, mix"):
        shuffled.filter(is_kept, version=1)


def test_of_one_epoch_what_came_is_chosen() -> None:
    came = list(source().without([(A, 1)]).epoch(3))
    chosen = source().without([(A, 1)]).epoch(3).filter(is_kept, version=1)
    assert list(chosen) == [record for record in came if is_kept(record)]


@pytest.mark.parametrize("fill", ["replace", "hole"])
@pytest.mark.parametrize("name", ["shuffle", "never", "zip", "windows"])
def test_a_description_decides_the_order(name: str, fill: Any) -> None:
    dataset = PIPELINES[name]().without(LISTED[:5], fill=fill)
    again = rebuild(dataset._node.describe(None))
    assert again.fingerprint == dataset.fingerprint
    found = again.plan(np.arange(2 * len(dataset))).locate()
    assert [list(_flat(each)) for each in found] == places(dataset, 2)


def test_of_many_rows_a_description_has_the_digest() -> None:
    dataset = sk.from_sequence(range(10_000), version="a").shuffle(seed=1)
    clean = dataset.without([("<builtins.range a>", row) for row in range(4097)])
    description = clean._node.describe(None)
    assert "list" not in description["of"][0]
    with pytest.raises(sk.errors.InvalidArgument, match="a digest of the rows that were left out"):
        rebuild(description)
    assert rebuild_loosely(description).size == 10_000


@pytest.mark.parametrize("fill", ["replace", "hole"])
@pytest.mark.parametrize("count", [3, 5000])
def test_it_is_saved_loaded_and_pickled(fill: Any, count: int, tmp_path: Path) -> None:
    records = list(range(12_000))
    dataset = sk.from_sequence(records, version="a").shuffle(seed=1)
    clean = dataset.without([(A, row) for row in range(count)], fill=fill)
    clean.save(tmp_path / "pipeline.json")
    again = sk.load_pipeline(tmp_path / "pipeline.json", sequences={"a": records})
    assert again.fingerprint == clean.fingerprint
    assert list(again.take(200)) == list(clean.take(200))
    copied = pickle.loads(pickle.dumps(clean))
    assert copied.fingerprint == clean.fingerprint
    assert list(copied.take(100)) == list(clean.take(100))


def test_explain_says_what_it_costs() -> None:
    text = source().shuffle(seed=1).without(LISTED[:5]).explain()
    assert "5 of 40 rows left out; 5 random reads an epoch in their places" in text
    text = source().shuffle(seed=1).without(LISTED[:5], fill="hole").explain()
    assert "5 of 40 rows left out: holes in their places" in text
    assert repr(source().without(LISTED[:5])).endswith(".without(<5 rows>)>")
