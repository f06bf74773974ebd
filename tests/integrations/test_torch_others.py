"""Frameworks that make a StatefulDataLoader themselves: verl, and NeMo AutoModel if it is installed."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from torch.utils.data import Sampler
from torchdata.stateful_dataloader import StatefulDataLoader

import seekable as sk
from seekable.integrations.torch import BatchSampler

if TYPE_CHECKING:
    from collections.abc import Iterator

# torchdata's StatefulDataLoader calls it.
pytestmark = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning")

SIZE, BATCH = 50, 12


def data() -> sk.Dataset:
    return sk.from_sequence(range(SIZE), version=1).filter(is_kept).shuffle(seed=3)


def is_kept(number: int) -> bool:
    return number % 5 != 0


def wanted(**given: Any) -> Iterator[list[int]]:
    loader = sk.Loader(data(), batch_size=BATCH, collate=list, **given)
    return itertools.chain.from_iterable(iter(loader) for _ in itertools.count())


class PromptOrder(Sampler[int]):
    """The order of a dataset as docs/howto/llm-trainers.md shows it: the state is that of its iterator."""

    def __init__(self) -> None:
        self._positions = BatchSampler(data(), batch_size=None)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._positions)

    def __len__(self) -> int:
        return len(self._positions)


def verl_loader(workers: int = 0) -> StatefulDataLoader[Any]:
    """Return a loader with the arguments that verl's RayPPOTrainer gives."""
    return StatefulDataLoader(
        dataset=data(),
        batch_size=BATCH,
        num_workers=workers,
        drop_last=True,
        collate_fn=list,
        sampler=PromptOrder(),
    )


@pytest.mark.parametrize("cut", [0, 1, 2])
@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_of_verl_goes_on_within_an_epoch(workers: int, cut: int) -> None:
    loader, order = verl_loader(workers), wanted(end="drop")
    assert len(loader) == len(data()) // BATCH == 3
    run = iter(loader)
    before = [*itertools.islice(run, cut)]
    state = loader.state_dict()
    again = verl_loader(workers)
    again.load_state_dict(state)
    found = [*before, *again, *again]
    assert found == [*itertools.islice(order, 6)]


@dataclass
class Documents:
    """The configuration of a dataset, as NeMo AutoModel builds it."""

    def build(self) -> sk.Dataset:
        return data()


@dataclass
class Order:
    """The configuration of a batch sampler, as NeMo AutoModel builds it."""

    documents: Documents
    global_batch_size: int

    def build(self, *, dataset_len: int, rank: int, world_size: int) -> BatchSampler:
        found = self.documents.build()
        assert dataset_len == len(found)
        return BatchSampler(
            found, global_batch_size=self.global_batch_size, rank=rank, world_size=world_size, end="drop"
        )


def automodel_loaders(count: int) -> list[Any]:
    """Return the loaders of all data-parallel ranks of NeMo AutoModel."""
    loader = pytest.importorskip("nemo_automodel.components.datasets.loader")
    documents = Documents()
    config = loader.DataloaderConfig(
        dataset_config=documents, batch_sampler_config=Order(documents, BATCH), collate_fn=list
    )
    return [config.build(dp_rank=rank, dp_world_size=count) for rank in range(count)]


def test_a_loader_of_automodel_goes_on_on_fewer_ranks() -> None:
    four, order = automodel_loaders(4), wanted(end="drop")
    runs = [iter(each) for each in four]
    for _ in range(2):
        assert sorted(itertools.chain(*map(next, runs))) == sorted(next(order))
    states = [each.state_dict() for each in four]
    two = automodel_loaders(2)
    for each, state in zip(two, states[:2], strict=True):
        each.load_state_dict(state)
    for epoch in range(2):
        for batches in zip(*two, strict=True):
            assert sorted(itertools.chain(*batches)) == sorted(next(order)), epoch
    assert json.dumps(next(order))
