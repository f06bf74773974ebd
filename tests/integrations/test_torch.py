"""torch's DataLoader over a dataset, and with seekable's order: the batches of an sk.Loader."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.integrations.torch_samplers import (
    BATCH,
    RECORDS,
    context,
    corpus,
    loader_of,
    numbers,
    rest,
    sampled,
    through,
)
from torch.utils.data import DataLoader, Sampler

import seekable as sk
from seekable import _other_words
from seekable.integrations.torch import BatchSampler

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def _is_odd(number: int) -> bool:
    return number % 2 == 1


def _mixed() -> sk.Dataset:
    parts = {"a": sk.from_sequence(range(20)).shuffle(seed=1), "b": sk.from_sequence(range(100, 130))}
    return sk.mix(parts, weights={"a": 0.3, "b": 0.7}, seed=2)


def _endless() -> sk.Dataset:
    return sk.mix([numbers(), sk.from_sequence(range(50, 60))], weights=[2, 1], seed=0, stop="never")


PIPELINES: dict[str, Callable[[], sk.Dataset]] = {
    "in order": lambda: sk.from_sequence(range(RECORDS)),
    "shuffled": numbers,
    "windowed": lambda: sk.from_sequence(range(3000)).shuffle(seed=1, window=1, lanes=2).take(60),
    "mixed": _mixed,
    "filtered": lambda: sk.from_sequence(range(60)).filter(_is_odd).shuffle(seed=4),
    "batched": lambda: numbers().batch(3),
}


@pytest.mark.parametrize(
    ("method", "persistent"),
    [("fork", False), ("fork", True), ("forkserver", False), ("forkserver", True), ("spawn", True)],
)
def test_a_shuffled_loader_delivers_every_record_once(
    tmp_path: Path, method: str, *, persistent: bool
) -> None:
    ds: Any = corpus(tmp_path)
    assert ds[5]["id"] == 5  # read before workers are started: they read with handles of their own
    loader: Any = DataLoader(
        ds,
        batch_size=5,
        shuffle=True,
        num_workers=2,
        collate_fn=list,
        multiprocessing_context=context(method),
        persistent_workers=persistent,
    )
    epochs = [[record for batch in loader for record in batch] for _ in range(2)]
    for records in epochs:
        assert sorted(record["id"] for record in records) == list(range(RECORDS))
        assert all(record == ds[record["id"]] for record in records)
    assert epochs[0] != epochs[1]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("method", "persistent"),
    [("forkserver", True), ("fork", False), ("fork", True), ("spawn", False)],
)
def test_the_batches_are_those_of_a_loader(tmp_path: Path, method: str, *, persistent: bool) -> None:
    ds = corpus(tmp_path).shuffle(seed=1)
    _, loader = sampled(
        ds, num_workers=2, multiprocessing_context=context(method), persistent_workers=persistent
    )
    wanted = loader_of(ds)
    assert [*loader, *loader] == [*wanted, *wanted]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", PIPELINES)
def test_each_pipeline_comes_as_from_a_loader(name: str, workers: int) -> None:
    dataset = PIPELINES[name]()
    sampler, loader = sampled(dataset, num_workers=workers)
    assert through(loader, sampler) == through(loader_of(dataset))
    assert len(loader) == len(loader_of(dataset))


@pytest.mark.parametrize(
    "batch",
    [
        {"end": "drop"},
        {"end": "pad"},
        {"epochs": 2},
        {"steps": 3},
        {"epochs": 3, "steps": 20, "end": "drop"},
        {"batch_size": 100},
        {"batch_size": 1},
    ],
    ids=str,
)
def test_each_way_to_cut_batches_is_that_of_a_loader(batch: dict[str, Any]) -> None:
    sampler, loader = sampled(numbers(), batch=batch, num_workers=1, prefetch_factor=3)
    wanted = loader_of(numbers(), **batch)
    assert through(loader, sampler) == through(wanted)
    assert (len(sampler), sampler.drop_last) == (len(wanted), batch.get("end") == "drop")


def test_sizes_that_follow_the_step_are_those_of_a_loader() -> None:
    dataset = sk.from_sequence(range(50)).shuffle(seed=1)
    for rank in range(2):
        given: Any = {"global_batch_size": [(0, 4), (3, 10), (12, 2)], "end": "drop", "rank": rank}
        sampler = BatchSampler(dataset, world_size=2, **given)
        loader = sk.Loader(dataset, world_size=2, collate=list, prefetch=0, **given)
        for _ in range(3):
            assert (len(sampler), sampler.batch_size) == (len(loader), loader.batch_size)
            batches: Any = DataLoader(cast("Any", dataset), batch_sampler=sampler, collate_fn=list)
            assert list(batches) == list(loader)
        assert sampler.state_dict() == loader.state_dict()
        assert "batches of 4, from step 3 on 10, from step 12 on 2, rank" in repr(sampler)


@pytest.mark.parametrize("workers", [0, 2])
def test_an_endless_dataset_is_bounded_by_steps(workers: int) -> None:
    sampler, loader = sampled(_endless(), batch={"steps": 7}, num_workers=workers)
    assert through(loader, sampler) == through(loader_of(_endless(), steps=7))
    unbounded = sampled(_endless())[0]
    with pytest.raises(sk.errors.EndlessDataset, match="bound it with steps="):
        len(unbounded)
    with pytest.raises(TypeError):
        len(DataLoader(numbers(), batch_sampler=unbounded))  # type: ignore[arg-type]


@pytest.mark.parametrize("end", ["drop", "pad"])
def test_ranks_share_the_batches_as_those_of_a_loader(end: Any) -> None:
    for rank in range(3):
        batch = {"batch_size": None, "global_batch_size": 6, "rank": rank, "world_size": 3, "end": end}
        sampler, loader = sampled(numbers(), batch=batch)
        assert through(loader, sampler) == through(loader_of(numbers(), **batch))
        assert (sampler.batch_size, sampler.rank, sampler.world_size) == (2, rank, 3)


@pytest.mark.parametrize("workers", [0, 2])
def test_without_a_batch_size_single_records_come(workers: int) -> None:
    ds: Any = numbers()
    sampler = BatchSampler(ds, batch_size=None)
    loader: Any = DataLoader(ds, sampler=sampler, batch_size=None, num_workers=workers)
    assert through(loader, sampler) == through(loader_of(ds, batch_size=None))
    assert sampler.batch_size is None


def test_the_sampler_alone_gives_the_positions() -> None:
    ds = numbers()
    sampler = BatchSampler(ds, batch_size=BATCH)
    batches = [ds[batch] for batch in [*sampler, *sampler]]
    assert batches == [*loader_of(ds), *loader_of(ds.epoch(1))]
    positions = [sampler.state_dict(delivered=count)["position"] for count, _ in enumerate(sampler, start=1)]
    assert positions == [74 + min(BATCH * count, RECORDS) for count in range(1, 11)]
    assert isinstance(sampler, Sampler)


def test_arguments_have_the_rules_of_a_loader(monkeypatch: pytest.MonkeyPatch) -> None:
    ds: Any = numbers()
    with pytest.raises(sk.errors.InvalidArgument, match="batch_size must be at least 1"):
        BatchSampler(ds, batch_size=0)
    with pytest.raises(sk.errors.InvalidArgument, match="end must be 'short', 'drop' or 'pad'"):
        BatchSampler(ds, end="long")  # type: ignore[arg-type]
    with pytest.raises(sk.errors.WrongType, match=r"takes a Dataset, .*\(got list\)"):
        BatchSampler([1, 2])  # type: ignore[arg-type]
    with pytest.raises(sk.errors.InvalidArgument, match="pass global_batch_size=8 instead of batch_size=4"):
        BatchSampler(ds, batch_size=4, rank=0, world_size=2)
    with pytest.raises(sk.errors.InvalidArgument, match="without a record in the last batch"):
        BatchSampler(ds, global_batch_size=6, rank=0, world_size=3)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(sk.errors.AmbiguousRank, match=r"RANK=1 of WORLD_SIZE=2"):
        BatchSampler(ds)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_run_that_was_left_is_followed_by_the_next_one(workers: int) -> None:
    """Other samplers count what was asked for, or begin the same epoch again."""
    sampler, loader = sampled(numbers(), num_workers=workers)
    for _ in sampler.counting(loader):
        break
    assert sampler.state_dict()["position"] == BATCH
    assert list(loader) == list(loader_of(numbers().epoch(1)))


@pytest.mark.parametrize("workers", [0, 2])
def test_trainers_that_set_epochs_change_nothing_where_they_say_what_is(workers: int) -> None:
    """Accelerate PR 4012: after a restart the epoch counter, and with it the shuffle, began again."""
    sampler, loader = sampled(numbers(), batch={"epochs": 2}, num_workers=workers)
    wanted = rest(loader_of(numbers(), epochs=2), 3 * 19)
    found: list[Any] = []
    for passes in range(3):
        (sampler if passes % 2 else sampler.sampler).set_epoch(passes)
        found += loader
    assert found == wanted
    run = iter(loader)
    state = [next(run), sampler.state_dict(delivered=1, rows=False)][1]
    again, loader = sampled(numbers(), batch={"epochs": 2}, num_workers=workers)
    again.load_state_dict(state)
    again.sampler.set_epoch(3)
    assert again.state_dict(rows=False) == state
    assert list(loader) == list(run)
    again.set_epoch(0)
    assert list(loader) == wanted[:19]


def test_a_repr_names_batches_and_ranks() -> None:
    sampler = BatchSampler(numbers(), global_batch_size=6, rank=1, world_size=3, end="drop")
    assert repr(sampler).startswith("<BatchSampler of batches of 6, rank 1 of 3, of <Dataset, 37 records")


@pytest.mark.parametrize("word", _other_words.BATCH_SAMPLER)
def test_a_word_of_their_samplers_is_answered(word: str) -> None:
    wanted = re.escape(f"BatchSampler() has no argument {word!r}: write {_other_words.BATCH_SAMPLER[word]}")
    given: Any = {word: True}
    with pytest.raises(sk.errors.InvalidArgument, match=f"^{wanted}$"):
        BatchSampler(numbers(), **given)
