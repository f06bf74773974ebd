"""A fingerprint tells pipelines apart, and nothing else."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from tests.dataset.common import endless, flow, numbers

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path


def squared(record: int) -> int:
    return record * record


def scheduled(last: list[int], start: int = 100) -> sk.Dataset:
    return sk.mix([numbers(9), numbers(9, "b")], weights=[(0, [1, 1]), (50, [2, 1]), (start, last)], seed=1)


def variants() -> list[sk.Dataset]:
    """Pipelines no two of which are the same."""
    ds = numbers(20)
    mixed = functools.partial(sk.mix, [ds, numbers(30)])
    return [
        ds,
        numbers(21),
        numbers(20, "named"),
        sk.from_sequence(list(range(20))),
        ds.shuffle(seed=1),
        ds.shuffle(seed=2),
        ds.shuffle(seed=2**32 + 1),
        ds.shuffle(seed=1).shuffle(seed=1),
        ds.take(5),
        ds.take(6),
        ds.skip(5),
        ds[::2],
        ds[::-1],
        ds.shuffle(seed=1).take(5),
        ds.take(5).shuffle(seed=1),
        ds.shard(0, of=2).take(5),
        ds.select([1, 2]),
        ds.select([2, 1]),
        ds.repeat(2),
        ds.repeat(3),
        ds.batch(2),
        ds.batch(3),
        ds.epoch(0),
        ds.epoch(1),
        ds.map(squared),
        ds.map(squared, version=1),
        ds.map(squared, version="1"),
        ds.map(abs),
        ds.map(functools.partial(pow, 2)),
        ds.map(functools.partial(pow, 3)),
        ds.map(squared, rng=True, seed=1),
        ds.map(squared, rng=True, seed=2),
        ds.map_batches(squared),  # type: ignore[arg-type]  # it is never called
        sk.concat([ds]),
        sk.concat([ds, ds]),
        sk.concat([ds, numbers(30)]),
        sk.concat([numbers(30), ds]),
        sk.zip([ds]),
        sk.zip([ds, ds]),
        mixed(weights=[1, 2], seed=1),
        mixed(weights=[1, 2], seed=2),
        mixed(weights=[2, 1], seed=1),
        mixed(weights=[1, 2], seed=1, stop="all"),
        mixed(weights=[1, 2], seed=1, stop="never"),
        mixed(weights=[(0, [1, 2]), (50, [1, 1])], seed=1),
        sk.mix({"a": ds, "b": numbers(30)}, weights=[1, 2], seed=1),
        ds.split({"a": 0.5, "b": 0.5}, seed=1)["a"],
        ds.split({"a": 0.5, "b": 0.5}, seed=1)["b"],
        ds.split({"a": 0.5, "b": 0.5}, seed=2)["a"],
        ds.split({"a": 0.5, "b": 0.5}, seed=1, stable=True)["a"],
        ds.split({"a": 0.5, "b": 0.5}, seed=1, stable=True)["b"],
    ]


def test_no_two_pipelines_share_one() -> None:
    prints = [dataset.fingerprint for dataset in variants()]
    assert len(set(prints)) == len(prints)


def test_the_same_pipeline_has_the_same_one() -> None:
    assert [a.fingerprint for a in variants()] == [b.fingerprint for b in variants()]


def test_it_is_the_same_in_every_process() -> None:
    code = (
        "import seekable as sk; a = sk.from_sequence(range(20)).shuffle(seed=1);"
        "print(sk.mix({'a': a, 'b': a.map(abs)}, weights={'b': .25, 'a': .75}, seed=3).batch(2).fingerprint)"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    a = numbers(20).shuffle(seed=1)
    here = sk.mix({"a": a, "b": a.map(abs)}, weights={"a": 3, "b": 1}, seed=3).batch(2)
    assert printed == {f"{here.fingerprint}\n"}


def test_a_description_is_plain() -> None:
    for dataset in variants():
        description = dataset._node.describe(None)
        assert json.loads(json.dumps(description)) is not None
        assert description["kind"] == type(dataset._node).kind


def test_where_the_data_lies_does_not_matter(tmp_path: Path) -> None:
    prints = set()
    for folder in ("here", "elsewhere"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.txt").write_text("x\ny\n")
        prints.add(sk.open(str(tmp_path / folder)).fingerprint)
    assert len(prints) == 1


def test_what_is_in_the_data_matters(tmp_path: Path) -> None:
    prints = set()
    for i, text in enumerate(["x\ny\n", "x\nz\n", "x\ny\nz\n"]):
        (tmp_path / str(i)).mkdir()
        (tmp_path / str(i) / "a.txt").write_text(text)
        prints.add(sk.open(str(tmp_path / str(i))).fingerprint)
    assert len(prints) == 3


def test_weights_that_come_later_do_not_count_before() -> None:
    one, other = scheduled([1, 0]), scheduled([0, 1])
    assert one.fingerprint != other.fingerprint
    for position in (0, 1, 50, 51, 100):
        assert one._node.fingerprint_at(position) == other._node.fingerprint_at(position)
    for position in (101, 1000):
        assert one._node.fingerprint_at(position) != other._node.fingerprint_at(position)


def test_where_weights_change_counts_from_the_block_of_draws_that_is_cut_short() -> None:
    one, other = scheduled([1, 1], 100), scheduled([1, 1], 101)
    assert one._node.fingerprint_at(50) == other._node.fingerprint_at(50)
    assert one._node.fingerprint_at(51) != other._node.fingerprint_at(51)
    assert scheduled([1, 1], 114)._node.fingerprint_at(114) == scheduled([1, 1], 178)._node.fingerprint_at(
        114
    )


@given(
    st.lists(st.tuples(st.integers(1, 400), st.integers(0, 5)), max_size=3, unique_by=lambda entry: entry[0]),
    st.tuples(st.integers(1, 400), st.integers(0, 5)),
    st.integers(1, 3),
)
def test_pipelines_that_are_equal_up_to_a_position_deliver_the_same_up_to_it(
    entries: list[tuple[int, int]], more: tuple[int, int], lanes: int
) -> None:
    def mixed(some: list[tuple[int, int]]) -> sk.Dataset:
        schedule = [(0, [1, 1, 0]), *((start, [weight, 2, weight // 5]) for start, weight in sorted(some))]
        parts = [
            numbers(900),
            numbers(900, "b").interleave(lanes=lanes),
            numbers(900, "c").interleave(lanes=2),
        ]
        return sk.mix(parts, weights=schedule, seed=3)

    others = [entry for entry in entries if entry[0] != more[0]]
    one, other = mixed(others), mixed([*others, more])
    both = zip(one[list(range(600))], other[list(range(600))], strict=True)
    equal = [a == b for a, b in both]
    same_until = equal.index(False) if False in equal else 600
    for position in range(0, 600, 7):
        if one._node.fingerprint_at(position) == other._node.fingerprint_at(position):
            assert same_until >= position
    if 0 < same_until < 600:
        assert one._node.fingerprint_at(same_until + 1) != other._node.fingerprint_at(same_until + 1)


def test_weights_that_come_later_do_not_count_below_other_nodes_either() -> None:
    def below(last: list[int]) -> sk.Dataset:
        return sk.zip([scheduled(last).take(300).batch(4).map(len), numbers(75)])

    assert below([1, 0]).fingerprint != below([0, 1]).fingerprint
    assert below([1, 0])._node.fingerprint_at(0) == below([0, 1])._node.fingerprint_at(0)
    assert below([1, 0])._node.fingerprint_at(75) != below([0, 1])._node.fingerprint_at(75)


def test_without_a_schedule_it_is_the_same_everywhere() -> None:
    for dataset in (numbers(9).shuffle(seed=1), endless(), endless().take(30)):
        assert {dataset._node.fingerprint_at(position) for position in (0, 1, 10**9)} == {dataset.fingerprint}


def test_weights_of_a_mixture_in_a_mixture_count_from_the_record_that_they_decide() -> None:
    def nested(last: list[int]) -> sk.Dataset:
        inner = sk.mix([numbers(9), numbers(9, "b")], weights=[(0, [1, 1]), (40, last)], seed=1)
        return sk.mix({"inner": inner, "other": numbers(9)}, weights=[1, 1], seed=2, stop="never")

    one, other = nested([1, 0]), nested([0, 1])
    records = flow(one, 100)
    assert records[:70] == flow(other, 70)
    drawn = 0
    for position in range(100):
        assert (one._node.fingerprint_at(position) == other._node.fingerprint_at(position)) == (
            drawn <= 40
        ), position
        drawn += one._node.route_one(position)[0] == 0  # type: ignore[attr-defined]
