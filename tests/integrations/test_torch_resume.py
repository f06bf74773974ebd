"""Under torch's loaders a run resumes exactly, however it is cut and whatever was requested ahead."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.integrations.torch_samplers import (
    context,
    corpus,
    cuts,
    loader_of,
    numbers,
    rest,
    sampled,
    through,
)
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

import seekable as sk
from seekable.integrations.torch import BatchSampler

if TYPE_CHECKING:
    from pathlib import Path

# StatefulDataLoader calls what this version of torch warns of.
pytestmark = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")

WAYS: dict[str, dict[str, Any]] = {
    "alone": {"num_workers": 0},
    "1 worker, far ahead": {"num_workers": 1, "prefetch_factor": 6},
    "2 workers": {"num_workers": 2},
    "2 that stay": {"num_workers": 2, "persistent_workers": True},
}


@pytest.mark.parametrize("way", WAYS)
def test_the_state_is_that_of_the_batches_delivered(way: str) -> None:
    """Here also before the first batch, after the last, when the end was seen, and in later epochs."""
    sampler, loader = sampled(numbers(), **WAYS[way])
    assert through(loader, sampler) == through(loader_of(numbers()))


@pytest.mark.parametrize("way", ["alone", "2 that stay"])
def test_the_number_of_delivered_batches_is_a_state(way: str) -> None:
    """For each kind of loader, also where it has requested more."""
    wanted, states = through(loader_of(numbers()), runs=1)
    for kind in (DataLoader, StatefulDataLoader):
        sampler, loader = sampled(numbers(), kind=kind, **WAYS[way])
        for count, batch in enumerate(loader, start=1):
            assert batch == wanted[count - 1]
            assert sampler.state_dict(delivered=count, rows=False) == states[count]


def test_every_state_resumes_with_any_number_of_workers() -> None:
    sampler, loader = sampled(numbers(), num_workers=2)
    batches, states = through(loader, sampler, runs=2)
    ways = itertools.cycle([0, 0, 1, 0, 2])
    for cut, state in cuts(states):
        again, loader = sampled(numbers(), num_workers=next(ways))
        again.load_state_dict(state)
        assert rest(loader, len(batches) - cut) == batches[cut:]


@given(st.data())
def test_any_chain_of_ranks_batches_and_cuts(data: st.DataObject) -> None:
    """A loader and samplers take turns: whose the state was is not to be seen."""
    n = data.draw(st.integers(1, 40))
    end = data.draw(st.sampled_from(["drop", "pad"]))
    ranks = data.draw(st.lists(st.sampled_from([1, 2, 3, 6]), min_size=1, max_size=4))
    batch = {"batch_size": None, "global_batch_size": 6, "end": end, "epochs": data.draw(st.integers(1, 2))}
    state: dict[str, Any] = {}
    for world_size in ranks:
        steps = data.draw(st.integers(0, 5))
        states = []
        for rank in range(world_size):
            there = batch | {"rank": rank, "world_size": world_size}
            wanted, (sampler, loader) = loader_of(numbers(n), **there), sampled(numbers(n), batch=there)
            wanted.load_state_dict(state)
            sampler.load_state_dict(state)
            for one, other in itertools.islice(zip(sampler.counting(loader), wanted, strict=True), steps):
                assert one == other
                assert sampler.state_dict(rows=False) == wanted.state_dict(rows=False)
            states += [sampler.state_dict(rows=False), wanted.state_dict(rows=False)]
        assert all(each == states[0] for each in states)
        state = json.loads(json.dumps(states[0]))


@pytest.mark.parametrize("way", ["alone", "2 workers", "2 that stay"])
def test_torchdatas_own_states_resume(way: str) -> None:
    """Torchdata 1437, 1439: the state after a load differed, and an epoch was dropped.

    It has two states for an end: not seen yet, which the next run begins with by ending, and seen.
    """
    _, loader = sampled(numbers(), kind=StatefulDataLoader, **WAYS[way])
    batches, states = through(loader, runs=2)
    counts = [0, *range(1, 11), 10, *range(11, 21), 20]
    chosen = range(len(states)) if way == "alone" else [0, 1, 5, 10, 11, 12, 21, 22]
    for number in chosen:
        _, again = sampled(numbers(), kind=StatefulDataLoader, **WAYS[way])
        again.load_state_dict(json.loads(json.dumps(states[number])))
        first = list(again)
        is_end_unseen = number in {10, 21}
        assert bool(first) != is_end_unseen
        first += rest(again, len(batches) - counts[number] - len(first))
        assert first[: len(batches) - counts[number]] == batches[counts[number] :]


@pytest.mark.parametrize("way", ["alone", "2 workers"])
def test_torchdata_resumes_twice_in_one_epoch(way: str) -> None:
    """KempnerForge 57: the second resume of an epoch was one too far."""
    wanted = list(loader_of(numbers()))
    state: dict[str, Any] = {}
    found: list[Any] = []
    for count in (3, 2, 4):
        _, loader = sampled(numbers(), kind=StatefulDataLoader, **WAYS[way])
        loader.load_state_dict(state)
        found += itertools.islice(loader, count)
        state = json.loads(json.dumps(loader.state_dict()))
    assert found == wanted[:9]


@pytest.mark.parametrize("way", ["alone", "2 workers", "2 that stay"])
def test_torchdata_goes_on_from_a_loader_and_in_later_epochs(tmp_path: Path, way: str) -> None:
    """The states of samplers within that of a StatefulDataLoader are those of an sk.Loader, too."""
    batches, states = through(loader_of(numbers()), runs=3)
    sampler, loader = sampled(numbers(), kind=StatefulDataLoader, **WAYS[way])
    sampler.load_state_dict(states[4])
    found = batches[:4] + list(loader) + list(itertools.islice(loader, 3))
    torch.save(loader.state_dict(), tmp_path / "state.pt")
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    main = state if way == "alone" else state["_snapshot"]["_main_snapshot"]
    ours = loader_of(numbers())
    ours.load_state_dict(main["_sampler_iter_state"])
    assert found + list(ours) == batches[:20]
    sampler, loader = sampled(numbers(), kind=StatefulDataLoader, **WAYS[way])
    loader.load_state_dict(state)
    found += list(itertools.islice(loader, 2))
    assert sampler.state_dict(delivered=2, rows=False)["step"] == 15
    assert found + rest(loader, 10) == batches[:15] + batches[20:30]


def test_torchdata_resumes_where_it_takes_few_snapshots() -> None:
    _, loader = sampled(numbers(), kind=StatefulDataLoader, num_workers=2, snapshot_every_n_steps=3)
    found = list(itertools.islice(loader, 5))
    state = json.loads(json.dumps(loader.state_dict()))
    _, again = sampled(numbers(), kind=StatefulDataLoader, num_workers=2, snapshot_every_n_steps=3)
    again.load_state_dict(state)
    assert found + list(again) == list(loader_of(numbers()))


@pytest.mark.parametrize("way", ["alone", "2 workers"])
def test_torchdata_is_moved_while_it_delivers(way: str) -> None:
    _, loader = sampled(numbers(), kind=StatefulDataLoader, **WAYS[way])
    batches = list(itertools.islice(loader, 2))
    state = loader.state_dict()
    batches += itertools.islice(loader, 3)
    loader.load_state_dict(state)
    assert batches[:2] + list(loader) == list(loader_of(numbers()))


@pytest.mark.parametrize("workers", [0, 2])
def test_torchdata_bounds_data_without_an_end(workers: int) -> None:
    def endless() -> sk.Dataset:
        return sk.mix([numbers()], weights=[1], seed=1, stop="never")

    wanted = rest(loader_of(endless(), steps=7), 21)
    _, loader = sampled(endless(), kind=StatefulDataLoader, batch={"steps": 7}, num_workers=workers)
    found = [*loader, *itertools.islice(loader, 2)]
    state = json.loads(json.dumps(loader.state_dict()))
    _, again = sampled(endless(), kind=StatefulDataLoader, batch={"steps": 7}, num_workers=workers)
    again.load_state_dict(state)
    assert found + rest(again, 12) == wanted


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_workers_started_anew_resume(tmp_path: Path, method: str) -> None:
    ds = corpus(tmp_path).shuffle(seed=1)
    sampler, loader = sampled(ds, num_workers=1, multiprocessing_context=context(method))
    found = list(itertools.islice(loader, 4))
    state = sampler.state_dict(delivered=4)
    again, loader = sampled(ds, num_workers=0)
    again.load_state_dict(state)
    assert found + list(loader) == list(loader_of(ds))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_move_while_batches_come_ends_their_iterator(workers: int) -> None:
    """prime-rl PR 3299: a state that was loaded after iter() was ignored."""
    batches, states = through(loader_of(numbers()), runs=1)
    sampler, loader = sampled(numbers(), num_workers=workers)
    run = sampler.counting(loader)
    assert [next(run) for _ in range(2)] == batches[:2]
    sampler.skip_batches(3)
    assert sampler.state_dict(rows=False) == states[5]
    with pytest.raises(sk.errors.StoppedIterator, match="skip_batches"):
        next(run)
    run = sampler.counting(loader)
    assert next(run) == batches[5]
    sampler.load_state_dict(states[1])
    with pytest.raises(sk.errors.StoppedIterator, match="load_state_dict"):
        next(run)
    assert sampler.state_dict(rows=False) == states[1]
    assert list(sampler.counting(loader)) == batches[1:]
    assert sampler.state_dict(rows=False) == states[-1]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loaded_state_counts_from_the_next_iterator_on(workers: int) -> None:
    batches, states = through(loader_of(numbers()), runs=1)
    sampler, loader = sampled(numbers(), num_workers=workers)
    run = iter(loader)
    assert next(run) == batches[0]
    sampler.load_state_dict(states[7])
    assert sampler.state_dict(rows=False) == states[7]
    with pytest.raises(sk.errors.StoppedIterator, match="call iter"):
        list(run)
    assert list(loader) == batches[7:]


@pytest.mark.parametrize("workers", [0, 2])
def test_states_in_a_folder_are_those_of_a_loader(tmp_path: Path, workers: int) -> None:
    sampler, loader = sampled(numbers(), num_workers=workers)
    found = list(itertools.islice(sampler.counting(loader), 4))
    sk.save_state(tmp_path, sampler)
    wanted = loader_of(numbers())
    assert sk.load_state(tmp_path, wanted)
    run = iter(wanted)
    found.append(next(run))
    sk.save_state(tmp_path, wanted)
    again, loader = sampled(numbers(), num_workers=workers)
    assert sk.load_state(tmp_path, again)
    assert found + list(loader) == list(loader_of(numbers()))
    with pytest.raises(sk.StateMismatch, match="seed"):
        sk.load_state(tmp_path, BatchSampler(sk.from_sequence(range(37)).shuffle(seed=4)))


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")  # no_dist=True says so too
def test_distributed_checkpoints_of_torch_hold_both(tmp_path: Path) -> None:
    (sampler, loader), other = sampled(numbers(), num_workers=2), loader_of(numbers())
    found = list(itertools.islice(sampler.counting(loader), 4))
    assert list(itertools.islice(other, 7)) == list(loader_of(numbers()))[:7]
    save({"sampler": sampler, "loader": other}, checkpoint_id=tmp_path, no_dist=True)
    (again, loader), other = sampled(numbers()), loader_of(numbers())
    load({"sampler": again, "loader": other}, checkpoint_id=tmp_path, no_dist=True)
    assert found + list(loader) == list(loader_of(numbers()))
    assert list(other) == list(loader_of(numbers()))[7:]


def test_a_sampler_refuses_the_state_of_a_run_that_was_steered() -> None:
    """Its positions are those of the dataset as it was declared."""
    mixed = sk.mix([numbers(), numbers()], weights=[1, 1], seed=1, stop="never")
    loader = sk.Loader(mixed, batch_size=4)
    sampler = BatchSampler(mixed, batch_size=4)
    sampler.load_state_dict(loader.state_dict())
    loader.steer([1, 3], at=5)
    with pytest.raises(sk.StateMismatch, match=r"go on with sk\.Loader"):
        sampler.load_state_dict(loader.state_dict())
