"""Padding, against batches that are padded by hand, and the bounds of sampled windows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seekable as sk
from seekable.loader.steerable import made_by
from seekable.viewer.facts import padding as room
from seekable.viewer.facts.lengths import index_unit, position_lengths
from seekable.viewer.facts.named_sources import as_in_files, source_counts, source_names
from seekable.viewer.facts.padding import BATCHES, data_padding, padding
from seekable.viewer.facts.pipelines import Batches, pipeline_of
from seekable.viewer.facts.reading import ResultPace, sample_rows
from seekable.viewer.facts.token_counts import record_measure

if TYPE_CHECKING:
    from pathlib import Path

LENGTHS = [3, 0, 17, 4, 4, 90, 1, 12, 33, 8, 2]
EXACT = "exact, from the index"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lines of known lengths in three files, and the same as documents of tokens."""
    folder = tmp_path_factory.mktemp("padded")
    for name, some in {"a": LENGTHS[:4], "b": [], "c": LENGTHS[4:]}.items():
        lines = [json.dumps({"text": "x" * length}) + "\n" for length in some]
        (folder / f"{name}.jsonl").write_text("".join(lines))
    sk.tokenize(str(folder / "*.jsonl"), to=folder / "tokens", tokenizer=lambda text: [*text.encode()])
    return folder


def by_hand(records: list[int], batch: int, ranks: int) -> tuple[list[int], list[int]]:
    """Return what each batch holds, and what it holds when the part of each rank is padded to its longest."""
    batches = [records[at : at + batch] for at in range(0, len(records), batch)]
    padded = [
        sum(max(some[rank::ranks]) * len(some[rank::ranks]) for rank in range(ranks)) for some in batches
    ]
    return [sum(some) for some in batches], padded


@given(st.integers(0, 5), st.integers(1, 6), st.integers(1, 3), st.integers(1, 3))
def test_each_rank_pads_its_own_part(folder: Path, start: int, steps: int, own: int, ranks: int) -> None:
    batch = own * ranks
    lines = sk.open(str(folder / "*.jsonl"))
    data = sk.mix(
        {"a": lines.shuffle(seed=3), "b": lines.shuffle(seed=4)},
        weights={"a": 2, "b": 1},
        seed=0,
        stop="never",
    )
    loader = sk.Loader(data, global_batch_size=batch, rank=0, world_size=ranks, epochs=None, prefetch=0)
    *_, found = padding(loader, start=start, stop=start + steps)
    positions = np.arange(start * batch, (start + steps) * batch)
    lengths = [len(json.dumps(record)) + 1 for record in data._node.fetch(positions)]
    assert (found.held.tolist(), found.padded.tolist()) == by_hand(lengths, batch, ranks)
    assert (found.made_of, found.unit, found.bounds) == (EXACT, "bytes", (found.share, found.share))
    assert found.share == pytest.approx(1 - sum(lengths) / found.padded.sum())
    measure = record_measure(data._node.record(start * batch))
    *_, read = padding(loader, start=start, stop=start + steps, measure=measure)
    texts = [len(record["text"]) for record in data._node.fetch(positions)]
    assert (read.held.tolist(), read.padded.tolist()) == by_hand(texts, batch, ranks)
    assert (read.unit, read.made_of) == ("characters", "exact, from the characters of all records")


@pytest.mark.parametrize("options", [{}, {"labels": "within"}, {"next_token": True}], ids=str)
def test_packed_samples_are_as_full_as_their_segments_say(folder: Path, options: dict[str, str]) -> None:
    data = sk.open(folder / "tokens").pack(96, seed=2, method="best_fit", **options)  # type: ignore[arg-type]
    count = len(data)
    *_, found = padding(sk.Loader(data.shuffle(seed=1), batch_size=1, prefetch=0), start=0, stop=count)
    width = 96 + (1 if options else 0)
    assert found.is_packed
    assert found.padded.tolist() == [width] * count
    assert found.held.sum() == sum(LENGTHS)
    windows = sk.open(folder / "tokens").windows(16)
    *_, full = padding(sk.Loader(windows, batch_size=1, prefetch=0), start=0, stop=len(windows))
    assert full.share == 0


@pytest.mark.parametrize("ranks", [1, 2])
def test_each_step_is_made_as_the_journal_says(folder: Path, ranks: int) -> None:
    lines = sk.open(str(folder / "*.jsonl")).shuffle(seed=3)

    def loader(rank: int) -> sk.Loader:
        share: dict[str, Any] = {"global_batch_size": 6, "rank": rank, "world_size": ranks, "end": "drop"}
        made = sk.Loader(lines, **share, epochs=3, collate=list, prefetch=0)
        made.exclude([("c.jsonl", row) for row in (1, 3, 4)], at=2)
        made.exclude([("a.jsonl", 2), ("c.jsonl", 0)], at=3, fill="hole")
        return made

    delivered = [[[len(each["text"]) for each in batch] for batch in loader(rank)] for rank in range(ranks)]
    steps = list(zip(*delivered, strict=True))
    held = [sum(map(sum, parts)) for parts in steps]
    measure = record_measure({"text": ""})
    *_, read = padding(loader(0), start=0, stop=len(steps), measure=measure, source=lambda node: node)
    assert (read.left_out, read.held.tolist()) == (0, held)
    assert read.padded.tolist() == [sum(max(part) * len(part) for part in parts) for parts in steps]
    *_, by_index = padding(loader(0), start=0, stop=len(steps))
    frame = len(json.dumps({"text": ""})) + 1
    counts = [sum(map(len, parts)) for parts in steps]
    assert min(counts) < 6
    assert by_index.held.tolist() == [sum_ + frame * count for sum_, count in zip(held, counts, strict=True)]


def test_tokens_of_documents_that_are_left_out_are_padding(folder: Path) -> None:
    loader = sk.Loader(sk.open(folder / "tokens").pack(32, seed=2), batch_size=4, epochs=2, prefetch=0)
    loader.exclude([loader.locate(step=0)[0][0]], at=1)
    *_, found = padding(loader, start=0, stop=len(loader))
    held = [int((batch["segment_ids"] > 0).sum()) for batch in loader]
    assert found.held.tolist() == held
    assert sum(held) < 2 * sum(LENGTHS)


def test_the_last_batch_of_a_run_is_shorter(folder: Path) -> None:
    lines = sk.open(str(folder / "*.jsonl"))
    loader = sk.Loader(lines, global_batch_size=4, rank=0, world_size=2, prefetch=0)
    lengths = [len(json.dumps(record)) + 1 for record in lines]
    *_, found = padding(loader, start=0, stop=4)
    hands = [by_hand(lengths[at : at + 4], 4, 2) for at in (0, 4, 8)]
    assert found.held.tolist()[:3] == [held for (held,), _ in hands]
    assert found.padded.tolist()[:3] == [padded for _, (padded,) in hands]
    assert found.held[3] == found.held[0]


def test_documents_of_tokens_have_their_lengths(folder: Path) -> None:
    tokens = sk.open(folder / "tokens")
    assert index_unit(tokens.shuffle(seed=1).map(len)._node) == "tokens"
    assert sorted(position_lengths(tokens.shuffle(seed=1)._node, np.arange(11)).held.tolist()) == sorted(
        LENGTHS
    )


def test_a_window_is_sampled_and_its_bounds_hold_the_share_of_all(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = sk.open(str(folder / "*.jsonl")).shuffle(seed=7)
    loader = sk.Loader(data, global_batch_size=4, rank=0, world_size=2, epochs=None, prefetch=0)
    *_, whole = padding(loader, start=0, stop=200)
    monkeypatch.setattr(room, "_MOST_STEPS", 60)
    *_, some = padding(loader, start=0, stop=200)
    assert some.made_of == "from 60 of 200 steps, seed 0; lengths exact, from the index"
    assert some.held.tolist() == [whole.held[step] for step in some.steps.tolist()]
    low, high = some.bounds
    assert 0 < low < whole.share < high < 1
    monkeypatch.setattr(room, "_MOST_STEPS", 1)
    *_, one = padding(loader, start=0, stop=200)
    assert one.bounds == (0.0, 1.0)


def test_partial_results_are_of_more_and_more_steps(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_AT_ONCE", 4)
    monkeypatch.setattr(ResultPace, "due", lambda _: True)
    data = sk.open(str(folder / "*.jsonl")).shuffle(seed=7)
    measure = record_measure({"text": ""})
    loader = sk.Loader(data, batch_size=4, epochs=None, prefetch=0)
    parts = list(padding(loader, start=3, stop=8, measure=measure))
    assert [part.done for part in parts] == [1, 2, 3, 4, 5]
    assert parts[-1].steps.tolist() == [3, 4, 5, 6, 7]
    assert set(parts[1].steps.tolist()) > set(parts[0].steps.tolist())


def test_a_corrupt_record_counts_as_empty(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "abc"}\n{"text": \n{"n": 1}\n{"text": "a"}\n')
    data = sk.open(tmp_path / "a.jsonl")
    loader = sk.Loader(data, batch_size=4, prefetch=0)
    *_, found = padding(loader, start=0, stop=1, measure=record_measure(data[0]))
    assert (found.left_out, found.held.tolist(), found.padded.tolist()) == (2, [4], [12])


def test_what_has_no_lengths_says_so() -> None:
    loader = sk.Loader(sk.from_sequence("abc"), batch_size=1, prefetch=0)
    with pytest.raises(sk.errors.InvalidArgument, match="the index has no lengths"):
        next(padding(loader, start=0, stop=1))
    with pytest.raises(sk.errors.InvalidArgument, match="stop must be at least 6"):
        next(padding(loader, start=5, stop=5))
    with pytest.raises(sk.errors.InvalidArgument, match="no text and no list"):
        record_measure(5)
    assert record_measure({"ids": np.zeros(3)}).lengths([{"ids": np.zeros(3)}, {"n": 1}]).tolist() == [3, -1]


def test_a_saved_run_with_a_journal_is_measured_as_it_is_delivered(tmp_path: Path) -> None:
    for name in "ab":
        texts = "".join(json.dumps({"text": name * (row % 13)}) + "\n" for row in range(40))
        (tmp_path / f"{name}.jsonl").write_text(texts)
    sources = {name: sk.open(tmp_path / f"{name}.jsonl").shuffle(seed=1) for name in "ab"}
    mixed = sk.mix(sources, weights={"a": 3, "b": 1}, seed=0, stop="never")
    loader = sk.Loader(mixed, batch_size=8, collate=list, prefetch=0)
    loader.steer({"a": 0, "b": 1}, at=2)
    loader.exclude([("b.jsonl", row) for row in range(10)], at=3, fill="hole")
    loader.exclude([("b.jsonl", 20)], at=5)
    sk.save_state(tmp_path / "states", loader)
    saved = pipeline_of(
        str(tmp_path / "states"), Batches({"batch_size": 8}), state=None, roots=[], index_dir=None
    ).loader
    batches = iter(loader)
    delivered = [[len(record["text"]) for record in next(batches)] for _ in range(8)]
    measure = record_measure({"text": ""})
    *_, found = padding(saved, start=0, stop=8, measure=measure, source=as_in_files)
    assert found.held.tolist() == [sum(batch) for batch in delivered]
    assert found.padded.tolist() == [max(batch) * len(batch) for batch in delivered]
    assert source_names(made_by(saved, 7)) == ("a", "b")
    assert source_counts(made_by(saved, 7), np.array([16, 64])).sum(axis=1).tolist() == [16, 64]


def share_by_hand(lengths: list[int], batch: int) -> float:
    held, padded = by_hand(lengths, batch, 1)
    return 1 - sum(held) / sum(padded) if sum(padded) else 0.0


@given(st.lists(st.integers(0, 50), max_size=400))
def test_the_padding_of_data_by_batch_and_order(lengths: list[int]) -> None:
    data = sk.from_sequence(["x" * length for length in lengths])
    *_, found = data_padding(data._node, measure=record_measure("x"))
    shuffled = [lengths[row] for row in sample_rows(len(lengths), len(lengths), 0).tolist()]
    orders = (shuffled, lengths, sorted(shuffled))
    expected = [share_by_hand(order, batch) for order in orders for batch in BATCHES]
    assert [each.share for each in found.batches] == pytest.approx(expected)
    assert [(each.low, each.high) for each in found.batches] == [
        (each.share, each.share) for each in found.batches
    ]
    assert (found.done, found.of) == (len(lengths), len(lengths))


def test_the_padding_of_large_data_has_bounds_that_hold_that_of_all_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = np.random.default_rng(0).integers(0, 200, 20_000) // np.array([1, 40]).repeat(10_000)
    (tmp_path / "a.txt").write_text("".join("x" * size + "\n" for size in sizes.tolist()))
    data = sk.open(tmp_path / "a.txt")
    *_, exact = data_padding(data._node)
    assert exact.made_of == EXACT
    monkeypatch.setattr(room, "_MOST_INDEXED", 6_000)
    *_, found = data_padding(data._node)
    assert found.made_of == "from 6,000 of 20,000 rows, seed 0; lengths exact, from the index"
    for some, whole in zip(found.batches, exact.batches, strict=True):
        assert some.low <= whole.share <= some.high
        assert some.low < some.share < some.high
        assert some.high - some.low < 0.3
