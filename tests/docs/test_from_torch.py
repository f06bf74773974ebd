"""What docs/from/torch.md says of torch and torchdata holds for the versions that are installed."""

from __future__ import annotations

import json

import pytest
from torchdata import nodes
from torchdata.stateful_dataloader import StatefulDataLoader

import seekable as sk

pytestmark = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning")  # torchdata calls it


def test_a_state_loads_over_other_records_and_ends_early() -> None:
    def theirs(count: int) -> StatefulDataLoader:
        return StatefulDataLoader(list(range(count)), batch_size=10, shuffle=True)

    loader = theirs(300)
    run = iter(loader)
    for _ in range(12):
        next(run)
    other = theirs(250)
    other.load_state_dict(loader.state_dict())
    assert sum(len(batch) for batch in other) == 250 - 120

    def ours(count: int) -> sk.Loader:
        return sk.Loader(sk.from_sequence(range(count)).shuffle(seed=0), batch_size=10)

    with pytest.raises(sk.StateMismatch, match="300"):
        ours(250).load_state_dict(ours(300).state_dict())


def test_a_state_of_a_mixture_of_nodes_is_no_json() -> None:
    parts = {"low": nodes.IterableWrapper(range(10)), "high": nodes.IterableWrapper(range(10, 20))}
    loader = nodes.Loader(nodes.MultiNodeWeightedSampler(parts, {"low": 0.7, "high": 0.3}, seed=0))
    next(iter(loader))
    with pytest.raises(TypeError, match="Tensor is not JSON serializable"):
        json.dumps(loader.state_dict())
