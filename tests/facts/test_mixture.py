"""What sources give over time, against the records of each step and weights added up by hand."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seekable as sk
from seekable.loader.positioned import position_of
from seekable.viewer.facts.pipelines import Batches, pipeline_of
from seekable.viewer.facts.run_mixture import mixture, schedule

if TYPE_CHECKING:
    from pathlib import Path


def source(name: str, n: int) -> sk.Dataset:
    return sk.from_sequence([name] * n, version=name)


def loader_of(dataset: sk.Dataset, batch: int) -> sk.Loader:
    return sk.Loader(dataset, batch_size=batch, collate=list, prefetch=0)


def scheduled() -> sk.Dataset:
    schedule = [(0, {"a": 3, "b": 1}), (100, {"a": 0, "b": 1}), (250, {"a": 1, "b": 1})]
    return sk.mix({"a": source("a", 7), "b": source("b", 400)}, weights=schedule, seed=1)


@given(st.integers(1, 9), st.integers(0, 30), st.integers(0, 40), st.integers(1, 50))
def test_delivered_and_planned_records(batch: int, start: int, more: int, places: int) -> None:
    node = scheduled()._node
    fact = mixture(loader_of(scheduled(), batch), start=start, stop=start + more, places=places)
    assert fact.steps.size == min(places, more) + 1
    assert (fact.steps[0], fact.steps[-1]) == (start, start + more)
    shares = [0.75] * 100 + [0.0] * 150 + [0.5] * 1000
    for i in range(fact.steps.size - 1):
        first, last = int(fact.steps[i]) * batch, int(fact.steps[i + 1]) * batch
        came = Counter(node.fetch(np.arange(first, last)))
        assert fact.delivered[i].tolist() == [came["a"], came["b"]]
        planned = sum(shares[first:last])
        assert fact.planned[i] == pytest.approx([planned, last - first - planned])
    json.dumps(fact.document(), allow_nan=False)
    assert fact.made_of == "exact, computed"


def test_a_run_that_was_steered_has_the_weights_of_its_journal() -> None:
    mixed = sk.mix({"a": source("a", 9), "b": source("b", 40)}, weights=[1, 1], seed=1, stop="never")
    loader = loader_of(mixed, 10)
    loader.steer({"a": 0, "b": 1}, at=3)
    loader.skip_batches(5)
    loader.steer({"a": 3, "b": 1}, at=7)
    found = schedule(loader)
    assert (found.steps, found.positions) == ((0, 3, 7), (0, 30, 70))
    assert found.weights == ((1, 1), (0, 1), (3, 1))
    fact = mixture(loader, start=0, stop=10, places=10)
    records = [record for step in range(10) for record in _records_of(loader, step)]
    came = [Counter(records[first : first + 10]) for first in range(0, 100, 10)]
    assert fact.delivered.tolist() == [[each["a"], each["b"]] for each in came]
    assert fact.planned.tolist() == [[5, 5]] * 3 + [[0, 10]] * 4 + [[7.5, 2.5]] * 3


def _records_of(loader: sk.Loader, step: int) -> list[str]:
    return [record.place.path.split()[-1].strip(">") for record in loader.plan(step=step).records]


def test_steps_of_a_run_with_short_last_batches_are_those_of_its_loader() -> None:
    mixed = sk.mix(
        {"a": source("a", 30), "b": source("b", 11)}, weights={"a": 3, "b": 1}, seed=1, stop="first"
    )
    loader = loader_of(mixed, 7)
    assert mixed._node.size is not None
    assert mixed._node.size % 7
    fact = mixture(loader, start=2, stop=23, places=21)
    for at, step in enumerate(range(2, 23)):
        planned = loader.plan(step=step)
        came = Counter(record.place.path for record in planned.records)
        assert planned.records[0].position == position_of(loader, step)
        assert sorted(fact.delivered[at].tolist()) == sorted([*came.values(), *[0] * (2 - len(came))])
        assert fact.planned[at].sum() == pytest.approx(len(planned.records))


def test_nested_mixtures_and_parts_without_weights() -> None:
    inner = sk.mix({"p": source("p", 300), "q": source("q", 100)}, weights={"p": 3, "q": 1}, seed=1)
    both = sk.concat([source("0", 30), source("1", 10)]).shuffle(seed=2)
    dataset = (
        sk.mix({"x": inner, "y": both}, weights={"x": 1, "y": 1}, seed=2, stop="never").map(str).batch(2)
    )
    fact = mixture(loader_of(dataset, 4), start=0, stop=40, places=1)
    assert fact.names == ("x.p", "x.q", "y.0", "y.1")
    assert fact.planned.tolist() == [[120, 40, 120, 40]]
    assert fact.delivered.sum() == 320
    assert np.abs(fact.delivered - fact.planned).max() < 8


def write_lines(folder: Path, name: str, lengths: list[int]) -> None:
    # The end of a line is read with its record.
    lines = [json.dumps("x" * (length - 3)) + "\n" for length in lengths]
    (folder / f"{name}.jsonl").write_text("".join(lines))


def test_bytes_and_tokens_are_records_times_means(tmp_path: Path) -> None:
    write_lines(tmp_path, "a", [11] * 50)
    write_lines(tmp_path, "b", [101] * 1500)
    parts = {name: sk.open(tmp_path / f"{name}.jsonl").shuffle(seed=1) for name in "ab"}
    loader = loader_of(sk.mix(parts, weights={"a": 1, "b": 1}, seed=0, stop="never"), 64)
    given: Any = {"start": 0, "stop": 8, "places": 1}
    fact = mixture(loader, **given, unit="bytes")
    assert fact.delivered.tolist() == fact.planned.tolist() == [[256 * 11, 256 * 101]]
    tokens = mixture(loader, **given, unit="tokens", tokens_per_byte={"a": 0.5, "b": 0.25})
    assert tokens.delivered.tolist() == [[128 * 11, 64 * 101]]
    with pytest.raises(sk.errors.InvalidArgument, match="not given: 'b'"):
        mixture(loader, **given, unit="tokens", tokens_per_byte={"a": 0.5})
    with pytest.raises(sk.errors.InvalidArgument, match="not given: any source"):
        mixture(loader, **given, unit="tokens")


def test_bytes_of_few_steps_are_those_of_their_records_and_of_many_by_the_mean_of_all(tmp_path: Path) -> None:
    lengths = {"a": [5 + 3 * row % 700 for row in range(2000)], "b": [200] * 1999 + [90_000]}
    for name, own in lengths.items():
        write_lines(tmp_path, name, own)
    parts = {name: sk.open(tmp_path / f"{name}.jsonl").shuffle(seed=1) for name in "ab"}
    dataset = sk.mix(parts, weights={"a": 1, "b": 3}, seed=0, stop="never")
    loader = loader_of(dataset, 64)
    fact = mixture(loader, start=5, stop=25, places=3, unit="bytes")
    assert fact.made_of == "exact, from the index"
    for at, (first, last) in enumerate(itertools.pairwise(fact.steps.tolist())):
        places = dataset._node.plan(np.arange(64 * first, 64 * last)).locate()
        held = Counter[str]()
        for place in places:
            held[place.path[-7]] += place.length + 1
        assert fact.delivered[at].tolist() == [held["a"], held["b"]]
    means = [sum(each) / 2000 for each in lengths.values()]
    assert fact.planned.sum(axis=0) == pytest.approx([320 * means[0], 960 * means[1]])
    many = mixture(loader, start=0, stop=2000, places=1, unit="bytes")
    assert many.made_of == "exact records, times the mean length of the source, from the index"
    assert many.delivered[0] == pytest.approx([32_000 * means[0], 96_000 * means[1]])


def test_bytes_of_a_rebuilt_run_are_those_of_its_files(tmp_path: Path) -> None:
    write_lines(tmp_path, "a", [11, 31, 21] * 20)
    write_lines(tmp_path, "b", [101, 100] * 50)
    parts = {name: sk.open(tmp_path / f"{name}.jsonl").shuffle(seed=1) for name in "ab"}
    loader = loader_of(sk.mix(parts, weights={"a": 1, "b": 1}, seed=0, stop="never"), 8)
    loader.skip_batches(3)
    sk.save_state(tmp_path / "states", loader)
    rebuilt = pipeline_of(
        str(tmp_path / "states"), Batches({"batch_size": 8}), state=None, roots=[], index_dir=None
    ).loader
    for stop in (4, 20_000):
        found, wanted = (
            mixture(each, start=0, stop=stop, places=2, unit="bytes") for each in (rebuilt, loader)
        )
        assert wanted.delivered.min() > 0
        assert found.document() == wanted.document()
    for name in "ab":
        (tmp_path / f"{name}.jsonl").unlink()
    gone = pipeline_of(
        str(tmp_path / "states"), Batches({"batch_size": 8}), state=None, roots=[], index_dir=None
    ).loader
    assert mixture(gone, start=0, stop=4).delivered.sum() == 32
    with pytest.raises(sk.DataNotFound, match="--root"):
        mixture(gone, start=0, stop=4, unit="bytes")


@pytest.mark.parametrize("wrong", [{"start": -1}, {"stop": 1}, {"places": 0}, {"unit": "words"}])
def test_numbers_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    given: dict[str, Any] = {"start": 2, "stop": 8, **wrong}
    with pytest.raises(sk.errors.InvalidArgument):
        mixture(loader_of(scheduled(), 4), **given)


def test_one_source_and_no_step() -> None:
    loader = loader_of(source("a", 5).shuffle(seed=1), 2)
    # The third batch of each epoch is short.
    assert mixture(loader, start=0, stop=6, places=2).delivered.tolist() == [[5], [5]]
    assert mixture(loader, start=3, stop=3).delivered.shape == (0, 1)
