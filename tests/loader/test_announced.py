"""Trainers announce passes with ``loader.sampler.set_epoch(k)``, some of them after ``iter(loader)``."""

from __future__ import annotations

from typing import Any

import pytest
from tests.loader.flat import batches_of, shuffled

import seekable as sk

WHOLE = batches_of(shuffled(37), 4, runs=4)
"""Ten batches a run."""


def loader_of(**arguments: Any) -> sk.Loader:
    return sk.Loader(shuffled(37), **{"batch_size": 4, "collate": list, **arguments})


def endless_of(**arguments: Any) -> sk.Loader:
    endless = sk.mix([shuffled(37)], weights=[1], seed=1, stop="never")
    return sk.Loader(endless, batch_size=4, collate=list, **arguments)


@pytest.fixture(params=[0, 2], ids=["no prefetch", "prefetch"])
def prefetch(request: pytest.FixtureRequest) -> int:
    depth: int = request.param
    return depth


def test_a_pass_is_a_run() -> None:
    loader = loader_of(epochs=2, prefetch=0)
    loader.sampler.set_epoch(1)
    assert loader.epoch == 2
    assert list(loader) == batches_of(shuffled(37), 4, epochs=2, runs=2)[19:]


def test_the_batch_sampler_announces_too() -> None:
    loader = loader_of(prefetch=0)
    loader.batch_sampler.set_epoch(2)
    assert list(loader) == WHOLE[20:30]


@pytest.mark.parametrize("delivered", range(11))
def test_the_pass_to_go_on_in_changes_nothing(delivered: int, prefetch: int) -> None:
    first = loader_of(prefetch=prefetch)
    run = iter(first)
    got = [next(run) for _ in range(delivered)]
    again = loader_of(prefetch=prefetch)
    again.load_state_dict(first.state_dict())
    run = iter(again)
    again.sampler.set_epoch(0)
    assert got + list(run) == WHOLE[:10]
    first.close()


def test_an_iterator_that_has_delivered_nothing_moves_to_the_pass(prefetch: int) -> None:
    """Lightning asks for its iterator first, and then announces which pass that is."""
    loader = loader_of(prefetch=prefetch)
    run = iter(loader)
    loader.sampler.set_epoch(3)
    assert list(run) == WHOLE[30:]


def test_an_iterator_at_the_end_of_the_pass_before_moves_too(prefetch: int) -> None:
    """Else the first pass after a checkpoint of the end of an epoch would be empty."""
    first = loader_of(prefetch=prefetch)
    run = iter(first)
    for _ in range(10):
        next(run)
    again = loader_of(prefetch=prefetch)
    again.load_state_dict(first.state_dict())
    run = iter(again)
    again.sampler.set_epoch(1)
    assert list(run) == WHOLE[10:20]
    first.close()


def test_an_iterator_that_has_delivered_ends_with_another_pass(prefetch: int) -> None:
    loader = loader_of(prefetch=prefetch)
    run = iter(loader)
    next(run)
    loader.sampler.set_epoch(1)
    with pytest.raises(sk.StoppedIterator, match="set_epoch"):
        next(run)
    assert list(loader) == WHOLE[10:20]


@pytest.mark.parametrize("number", [0, 2])
def test_a_state_within_another_pass_is_refused(number: int, prefetch: int) -> None:
    """Lightning counts a pass as done when it stops in it at max_steps, and announces the next one."""
    first = loader_of(prefetch=prefetch)
    got = list(first)
    run = iter(first)
    got += [next(run) for _ in range(4)]
    again = loader_of(prefetch=prefetch)
    again.load_state_dict(first.state_dict())
    with pytest.raises(
        sk.InvalidArgument, match=rf"pass 1 over the data, 6 batches before .* pass {number} was"
    ):
        again.sampler.set_epoch(number)
    again.sampler.set_epoch(1)
    assert got + list(again) == WHOLE[:20]
    first.close()


@pytest.mark.parametrize("steps", [None, 3])
def test_what_is_read_ahead_of_an_endless_pass_is_refused(steps: int | None, prefetch: int) -> None:
    """Lightning reads one batch ahead of a loader without a length, and its checkpoints count that one."""
    loader = endless_of(steps=steps, prefetch=prefetch)
    ahead = iter(loader)
    next(ahead)
    loader.sampler.set_epoch(0)
    with pytest.raises(sk.StoppedIterator, match=r"(?s)reads ahead.*steps=.*limit_train_batches="):
        next(ahead)
    assert loader.state_dict()["position"] == 4
    loader.close()


def test_endless_passes_follow_one_another(prefetch: int) -> None:
    loader = endless_of(steps=3, prefetch=prefetch)
    flat = list(loader.dataset.take(40))
    batches = [flat[at : at + 4] for at in range(0, 40, 4)]
    got = []
    for number in range(3):
        loader.sampler.set_epoch(number)
        got += list(loader)
    assert got == batches[:9]


def test_an_iterator_at_the_end_of_an_endless_pass_moves_to_the_next(prefetch: int) -> None:
    first = endless_of(steps=3, prefetch=prefetch)
    run = iter(first)
    got = [next(run) for _ in range(3)]
    again = endless_of(steps=3, prefetch=prefetch)
    again.load_state_dict(first.state_dict())
    run = iter(again)
    again.sampler.set_epoch(1)
    got += list(run)
    flat = list(first.dataset.take(24))
    assert got == [flat[at : at + 4] for at in range(0, 24, 4)]
    first.close()
