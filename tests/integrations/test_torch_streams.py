"""A stream under torch's loaders: each worker runs lanes of its own, and torchdata's state resumes them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

import seekable as sk
from seekable.integrations.torch import IterableDataset

# torchdata calls what this torch warns of.
pytestmark = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning")

BATCH = 3


def is_even(number: int) -> bool:
    return number % 2 == 0


def twice(number: int) -> list[int]:
    return [number, number]


def stream(lanes: int = 4, *, n: int = 60) -> sk.Stream:
    numbers = sk.from_sequence(range(n)).shuffle(seed=1).stream(lanes=lanes, epochs=2)
    return numbers.filter(is_even).flatten(twice).shuffle(buffer=5, seed=2)


def loader_of(workers: int, **given: Any) -> StatefulDataLoader[Any]:
    dataset = IterableDataset(stream(), **given)
    return StatefulDataLoader(dataset, batch_size=BATCH, num_workers=workers, collate_fn=list)


@pytest.mark.parametrize("workers", [0, 2])
def test_each_item_comes_once(workers: int) -> None:
    batches = DataLoader(IterableDataset(stream()), batch_size=BATCH, num_workers=workers, collate_fn=list)
    assert sorted(item for batch in batches for item in batch) == sorted(stream())


def test_one_process_gives_the_streams_own_order() -> None:
    batches = DataLoader(IterableDataset(stream()), batch_size=BATCH, collate_fn=list)
    assert [item for batch in batches for item in batch] == list(stream())


@pytest.mark.parametrize("workers", [0, 2])
def test_a_state_goes_on_exactly(workers: int) -> None:
    loader = loader_of(workers)
    batches, states = [], []
    for batch in loader:
        batches.append(batch)
        states.append(json.loads(json.dumps(loader.state_dict())))
    for cut in {1, 5, len(batches) // 2, len(batches) - 1}:
        again = loader_of(workers)
        again.load_state_dict(states[cut - 1])
        assert list(again) == batches[cut:], cut


def test_ranks_share_the_lanes() -> None:
    shares = [
        item
        for rank in range(2)
        for item in DataLoader(IterableDataset(stream(), rank=rank, world_size=2), batch_size=None)
    ]
    assert sorted(shares) == sorted(stream())


def test_more_workers_than_lanes_are_refused() -> None:
    batches = DataLoader(IterableDataset(stream(lanes=1)), num_workers=2)
    with pytest.raises(sk.errors.InvalidArgument, match="1 ranks of 2 workers cannot share 1 lanes"):
        next(iter(batches))
    with pytest.raises(sk.errors.InvalidArgument, match="cannot share 4 lanes"):
        IterableDataset(stream(), rank=0, world_size=8)


def test_a_dataset_is_no_stream() -> None:
    with pytest.raises(sk.errors.WrongType, match=r"\.stream\(\)"):
        IterableDataset(sk.from_sequence(range(3)))  # type: ignore[arg-type]
