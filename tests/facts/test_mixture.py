"""What sources give over time, against the records of each step and weights added up by hand."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seekable as sk
from seekable.facts.mixture import mixture

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
    node = scheduled().node
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


def test_steps_of_a_run_with_short_last_batches_are_those_of_its_loader() -> None:
    mixed = sk.mix(
        {"a": source("a", 30), "b": source("b", 11)}, weights={"a": 3, "b": 1}, seed=1, stop="first"
    )
    loader = loader_of(mixed, 7)
    assert mixed.size is not None
    assert mixed.size % 7
    fact = mixture(loader, start=2, stop=23, places=21)
    for at, step in enumerate(range(2, 23)):
        planned = loader.plan(step=step)
        came = Counter(record.place.path for record in planned.records)
        assert planned.records[0].position == loader.position_of(step)
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


def test_bytes_and_tokens_are_records_times_means(tmp_path: Path) -> None:
    for name, length, rows in (("a", 10, 50), ("b", 100, 1500)):
        (tmp_path / f"{name}.jsonl").write_text(
            "".join(json.dumps("x" * (length - 2)) + "\n" for _ in range(rows))
        )
    parts = {name: sk.open(tmp_path / f"{name}.jsonl").shuffle(seed=1) for name in "ab"}
    loader = loader_of(sk.mix(parts, weights={"a": 1, "b": 1}, seed=0, stop="never"), 64)
    given: Any = {"start": 0, "stop": 8, "places": 1}
    # The end of a line is read with its record.
    fact = mixture(loader, **given, unit="bytes")
    assert fact.delivered.tolist() == [[256 * 11, 256 * 101]]
    assert fact.made_of == "exact records, times the mean of the lengths of 1,000 rows of each source, seed 0"
    tokens = mixture(loader, **given, unit="tokens", tokens_per_byte={"a": 0.5, "b": 0.25})
    assert tokens.delivered.tolist() == [[128 * 11, 64 * 101]]
    with pytest.raises(sk.InvalidArgument, match="not given: 'b'"):
        mixture(loader, **given, unit="tokens", tokens_per_byte={"a": 0.5})
    with pytest.raises(sk.InvalidArgument, match="not given: any source"):
        mixture(loader, **given, unit="tokens")


@pytest.mark.parametrize("wrong", [{"start": -1}, {"stop": 1}, {"places": 0}, {"unit": "words"}])
def test_numbers_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    given: dict[str, Any] = {"start": 2, "stop": 8, **wrong}
    with pytest.raises(sk.InvalidArgument):
        mixture(loader_of(scheduled(), 4), **given)


def test_one_source_and_no_step() -> None:
    loader = loader_of(source("a", 5).shuffle(seed=1), 2)
    # The third batch of each epoch is short.
    assert mixture(loader, start=0, stop=6, places=2).delivered.tolist() == [[5], [5]]
    assert mixture(loader, start=3, stop=3).delivered.shape == (0, 1)
