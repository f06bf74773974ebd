"""Which records a step has, before it comes and after it has gone by."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
from tests.loader.flat import batches_of, shuffled
from tests.thrift import sample

import seekable as sk

if TYPE_CHECKING:
    from seekable.loader.steps import End


def loader_of(dataset: sk.Dataset | None = None, **arguments: Any) -> sk.Loader:
    given = {"batch_size": 4, "collate": list, "prefetch": 0, **arguments}
    return sk.Loader(shuffled(37) if dataset is None else dataset, **given)


def rows(loader: sk.Loader, step: int) -> list[int]:
    return [location.row for location in loader.locate(step=step)]


@pytest.mark.parametrize(
    ("end", "epochs", "batch"),
    sample(itertools.product(["short", "drop", "pad"], [1, 2], [1, 4, 36, 37, 38, 100]), of=2),
)
def test_every_step_of_three_runs_is_located(end: End, epochs: int, batch: int) -> None:
    wanted = batches_of(shuffled(37), batch, end=end, epochs=epochs, runs=3)
    loader = loader_of(batch_size=batch, end=end, epochs=epochs)
    assert [rows(loader, step) for step in range(len(wanted))] == wanted


@pytest.mark.parametrize("delivered", [0, 1, 10, 13, 20])
def test_steps_gone_by_are_located_too(delivered: int) -> None:
    wanted = batches_of(shuffled(37), 4, runs=4)
    loader = loader_of(prefetch=2)
    run = iter(loader)
    while loader.step < delivered:
        if next(run, None) is None:
            run = iter(loader)
    assert [rows(loader, step) for step in range(40)] == wanted
    again = loader_of()
    again.load_state_dict(loader.state_dict())
    assert [rows(again, step) for step in range(40)] == wanted


def test_steps_after_a_change_of_batch_size_are_counted_from_there() -> None:
    loader = loader_of()
    run = iter(loader)
    for _ in range(3):
        next(run)
    other = loader_of(batch_size=5)
    other.load_state_dict(loader.state_dict())
    flat, following = list(shuffled(37)), list(shuffled(37).epoch(1))
    assert rows(other, 3) == flat[12:17]
    assert rows(other, 7) == flat[32:37]
    assert rows(other, 8) == following[:5]
    with pytest.raises(sk.errors.InvalidArgument, match=r"step must be at least 3.*\(got 2\)"):
        other.locate(step=2)


def test_steps_after_a_break_are_counted_from_there() -> None:
    loader = loader_of()
    for _ in loader:
        break
    run = iter(loader)
    assert rows(loader, 1) == next(run)
    with pytest.raises(sk.errors.InvalidArgument, match=r"at least 1.*\(got 0\)"):
        loader.locate(step=0)


def test_steps_after_set_epoch_are_counted_from_there() -> None:
    loader = loader_of()
    list(loader)
    loader.set_epoch(7)
    assert rows(loader, 10) == list(shuffled(37).epoch(7))[:4]
    assert rows(loader, 20) == list(shuffled(37).epoch(8))[:4]
    with pytest.raises(sk.errors.InvalidArgument, match=r"at least 10.*\(got 9\)"):
        loader.locate(step=9)


def test_skipped_steps_are_located() -> None:
    loader = loader_of()
    loader.skip_batches(2)
    assert [rows(loader, step) for step in range(10)] == batches_of(shuffled(37), 4)


def test_steps_of_endless_data_are_located() -> None:
    endless = sk.mix([shuffled(10), shuffled(30)], weights=[1, 2], seed=1, stop="never")
    flat = list(endless.take(400))
    for steps in (None, 3):
        loader = loader_of(endless, steps=steps)
        assert [rows(loader, step) for step in (0, 1, 2, 3, 50)] == [
            flat[4 * step : 4 * step + 4] for step in (0, 1, 2, 3, 50)
        ]


def test_a_step_that_never_comes_is_refused() -> None:
    with pytest.raises(sk.errors.InvalidArgument, match="step 0 never comes"):
        loader_of(end="drop", batch_size=38).locate(step=0)
    with pytest.raises(sk.errors.InvalidArgument, match=r"step must be at least 0 \(got -1\)"):
        loader_of().locate(step=-1)


def test_all_ranks_records_are_located() -> None:
    for rank in range(2):
        loader = sk.Loader(shuffled(37), global_batch_size=4, rank=rank, world_size=2, end="pad")
        assert [rows(loader, step) for step in range(10)] == batches_of(shuffled(37), 4, end="pad")


def test_a_far_step_costs_no_more_than_a_near_one() -> None:
    loader = loader_of(shuffled(1000), batch_size=10)
    assert len(rows(loader, 10**12)) == 10
    assert rows(loader, 10**12) == list(shuffled(1000).epoch(10**10))[:10]
