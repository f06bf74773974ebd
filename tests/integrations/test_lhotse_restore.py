"""Lhotse's own restore scenarios, with datasets and streams at the bottom of its graphs."""

from __future__ import annotations

import copy
import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from lhotse.dataset import DynamicBucketingSampler, DynamicCutSampler, SimpleCutSampler
from lhotse.dataset.dataloading import LHOTSE_USE_WORKER_PARTITION, make_worker_init_fn
from lhotse.dataset.sampling.base import CutSampler
from lhotse.lazy import get_graph_origin
from tests.integrations.lhotse_graphs import GRAPHS, READS, dicts, ids, signature, stopped, wrapped
from torchdata.stateful_dataloader import StatefulDataLoader

import seekable as sk
from seekable.integrations.lhotse import cut_set

if TYPE_CHECKING:
    from collections.abc import Callable

    from lhotse import CutSet

pytestmark = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning")  # by torchdata


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_goes_on_after_every_item(name: str) -> None:
    every = signature(GRAPHS[name]())
    cuts = GRAPHS[name]()
    run = iter(cuts)
    for count in range(len(every)):
        state = copy.deepcopy(cuts.state_dict())
        if count % 5 == 0 or name == "in order":
            resumed = GRAPHS[name]()
            resumed.load_state_dict(state)
            assert signature(resumed) == every[count:], count
        assert signature([next(run)]) == every[count : count + 1]


@pytest.mark.parametrize("name", GRAPHS)
def test_a_sampler_goes_on_without_replay(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    every = [signature(batch) for batch in wrapped(GRAPHS[name]())]
    for count in (1, 2, len(every) - 1):
        before, state = stopped(wrapped(GRAPHS[name]()), count)
        resumed = wrapped(GRAPHS[name]())
        resumed.load_state_dict(state)
        with monkeypatch.context() as context:
            context.setattr(CutSampler, "__next__", None)  # what a replay calls
            iter(resumed)
        assert before + [signature(batch) for batch in resumed] == every


@pytest.mark.parametrize(
    "make",
    [
        lambda: cut_set(dicts(0, 2000).shuffle(seed=1)),
        lambda: cut_set(dicts(0, 2000).shuffle(seed=1).stream(epochs=1)),
    ],
    ids=["dataset", "stream"],
)
def test_a_restore_reads_what_waits_and_no_more(make: Callable[[], CutSet]) -> None:
    def sampler() -> DynamicCutSampler:
        return DynamicCutSampler(make(), max_cuts=4, shuffle=True, shuffle_buffer_size=20)

    _, state = stopped(sampler(), 400)
    resumed = sampler()
    resumed.load_state_dict(state)
    READS.clear()
    next(iter(resumed))
    assert len(READS) <= 20 + 4 + 64  # what waits, a batch, what is read together


@pytest.mark.parametrize(
    "make",
    [
        lambda cuts: DynamicCutSampler(cuts, max_duration=9.0, shuffle=True, seed=1),
        lambda cuts: DynamicBucketingSampler(cuts, max_duration=9.0, num_buckets=2, shuffle=True),
        lambda cuts: SimpleCutSampler(cuts, max_duration=9.0),
    ],
    ids=["dynamic", "bucketing", "simple"],
)
def test_samplers_deliver_every_cut_and_go_on(make: Callable[[CutSet], Any]) -> None:
    def sampler() -> Any:
        return make(cut_set(dicts().shuffle(seed=4)))

    every = [signature(batch) for batch in sampler()]
    assert sorted(cut["id"] for batch in every for cut in batch) == sorted(ids(cut_set(dicts())))
    for count in (1, 4):
        before, state = stopped(sampler(), count)
        resumed = sampler()
        resumed.load_state_dict(state)
        assert before + [signature(batch) for batch in resumed] == every


def loader_of(make: Callable[[], CutSet], workers: int, **given: Any) -> StatefulDataLoader[Any]:
    return StatefulDataLoader(wrapped(make()), batch_size=None, num_workers=workers, **given)


@pytest.mark.parametrize(
    "name",
    [
        "mux",
        *(
            pytest.param(name, marks=pytest.mark.exhaustive)
            for name in GRAPHS
            if name not in {"mux", "stream"}
        ),
    ],
)
def test_workers_go_on(name: str) -> None:
    every = [signature(batch) for batch in loader_of(GRAPHS[name], 2)]
    before, state = stopped(loader_of(GRAPHS[name], 2), 3)
    resumed = loader_of(GRAPHS[name], 2)
    resumed.load_state_dict(state)
    assert before + [signature(batch) for batch in resumed] == every


def by_lanes() -> CutSet:
    return cut_set(dicts().shuffle(seed=1).stream(lanes=4, epochs=1))


@pytest.mark.parametrize(
    "make", [lambda: cut_set(dicts().shuffle(seed=1)), by_lanes], ids=["dataset", "stream"]
)
def test_workers_share_the_cuts(make: Callable[[], CutSet]) -> None:
    delivered = [cut.id for batch in loader_of(make, 2) for cut in batch]
    assert sorted(delivered) == sorted(ids(make()))


def test_ranks_and_workers_share_the_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    delivered = []
    monkeypatch.delenv(LHOTSE_USE_WORKER_PARTITION, raising=False)
    for rank in range(2):
        given: dict[str, Any] = {"worker_init_fn": make_worker_init_fn(rank=rank, world_size=2)}
        delivered += [cut.id for batch in loader_of(by_lanes, 2, **given) for cut in batch]
    assert sorted(delivered) == sorted(ids(by_lanes()))


@pytest.mark.parametrize("make", [lambda: cut_set(dicts(0, 35).shuffle(seed=1), epochs=2), by_lanes])
@pytest.mark.parametrize("world_size", [1, 3, 4])
def test_ranks_share_each_position(
    make: Callable[[], CutSet], world_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares = []
    for rank in range(world_size):
        as_rank(monkeypatch, rank, world_size)
        shares.append(list(make()))
    monkeypatch.delenv(LHOTSE_USE_WORKER_PARTITION)
    tokens = [get_graph_origin(cut) for share in shares for cut in share]
    assert sorted(tokens) == sorted(get_graph_origin(cut) for cut in make())
    if make is not by_lanes:
        assert max(map(len, shares)) - min(map(len, shares)) <= 1


def as_rank(monkeypatch: pytest.MonkeyPatch, rank: int, world_size: int) -> None:
    for name, value in {"RANK": rank, "WORLD_SIZE": world_size, LHOTSE_USE_WORKER_PARTITION: 1}.items():
        monkeypatch.setenv(name, str(value))


def test_map_style_ranks_share_the_batches() -> None:
    def sampler(rank: int) -> DynamicCutSampler:
        return DynamicCutSampler(cut_set(dicts()), max_cuts=4, rank=rank, world_size=2)

    delivered = [cut.id for rank in range(2) for batch in sampler(rank) for cut in batch]
    assert sorted(delivered) == sorted(ids(cut_set(dicts())))


def test_epochs_follow_one_another_and_tokens_say_which() -> None:
    ds = dicts().shuffle(seed=1)
    cuts = cut_set(ds)
    for epoch in range(3):
        assert ids(cuts) == [record["id"] for record in ds.epoch(epoch)]
    for token in (0, 40, 70):
        cut = cuts.data[token]
        assert (cut.id, get_graph_origin(cut)) == (ds[sk.Position(token)]["id"], token)
    run = iter(cuts)
    next(run)
    assert ids(cuts) == [record["id"] for record in ds.epoch(3)]  # a pass that was left begins anew
    cuts.data.set_epoch(1)
    assert ids(cuts) == [record["id"] for record in ds.epoch(1)]


def test_a_restored_pass_is_followed_by_the_next_epoch() -> None:
    ds = dicts().shuffle(seed=1)
    cuts = cut_set(ds)
    ids(cuts)
    run = iter(cuts)
    next(run)
    resumed = cut_set(ds)
    resumed.load_state_dict(json.loads(json.dumps(cuts.state_dict())))
    assert resumed.state_dict() == cuts.state_dict()
    assert ids(resumed) == ids(run)
    assert ids(resumed) == [record["id"] for record in ds.epoch(2)]
    at_the_end = cut_set(ds)
    at_the_end.load_state_dict(cuts.state_dict())
    assert ids(at_the_end) == []
    assert ids(at_the_end) == [record["id"] for record in ds.epoch(2)]


def test_an_item_that_waits_since_an_earlier_epoch_is_rebuilt_from_it() -> None:
    def make() -> CutSet:
        repeated = cut_set(dicts(0, 10).shuffle(seed=1)).repeat(times=3, preserve_id=True)
        return repeated.shuffle(buffer_size=6, rng=random.Random(0))

    cuts = make()
    run = iter(cuts)
    for _ in range(12):
        next(run)
    state = cuts.state_dict()
    epochs = {token[0] for token in state["_state"]["buffer"]}
    assert len(epochs) > 1
    resumed = make()
    resumed.load_state_dict(copy.deepcopy(state))
    assert ids(resumed) == ids(run)


def test_the_wrapper_sets_the_epoch() -> None:
    ds = dicts().shuffle(seed=1)
    loader = wrapped(cut_set(ds))
    loader.set_epoch(2)
    expected = wrapped(cut_set(ds.epoch(2)))
    assert [ids(batch) for batch in loader] == [ids(batch) for batch in expected]


def test_a_dataset_without_end() -> None:
    endless = sk.mix([dicts(), dicts(100)], weights=[1, 1], seed=0, stop="never")
    cuts = cut_set(endless)
    run = iter(cuts)
    first = [next(run).id for _ in range(100)]
    resumed = cut_set(endless)
    resumed.load_state_dict(cuts.state_dict())
    assert next(iter(resumed)).id == next(run).id
    assert len(set(first)) == 64
    with pytest.raises(TypeError, match="no end"):
        len(cut_set(dicts(), epochs=None).data)
