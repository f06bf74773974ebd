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


def test_what_lightning_reads_beside_the_sampler_is_there() -> None:
    loader = sk.Loader(sk.from_sequence(range(4)), batch_size=2)
    assert loader.batch_sampler is None
    assert hasattr(loader.sampler, "set_epoch")


def test_a_pass_is_a_run() -> None:
    loader = loader_of(epochs=2, prefetch=0)
    loader.sampler.set_epoch(1)
    assert loader.epoch == 2
    assert list(loader) == batches_of(shuffled(37), 4, epochs=2, runs=2)[19:]


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
    with pytest.raises(sk.errors.StoppedIterator, match="set_epoch"):
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
        sk.errors.InvalidArgument, match=rf"pass 1 over the data, 6 batches before .* pass {number} was"
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
    with pytest.raises(sk.errors.StoppedIterator, match=r"(?s)reads ahead.*steps=.*limit_train_batches="):
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


def shorter_of(kind: str) -> sk.Loader:
    """Three batches a run."""
    if kind == "dataset":
        return sk.Loader(shuffled(10), batch_size=4, collate=list, prefetch=0)
    if kind == "endless":
        return endless_of(steps=3, prefetch=0)
    stream = shuffled(12).stream(lanes=2, epochs=1).shuffle(buffer=3, seed=1)
    return sk.Loader(stream, batch_size=4, collate=list, prefetch=0, steps=3)


class Trainer:
    """Trains on two loaders in the way of Lightning and its CombinedLoader."""

    def __init__(self, kind: str, *, cycle: bool) -> None:
        self.long, self.short = loader_of(prefetch=0, steps=5), shorter_of(kind)
        self.cycle = cycle
        self.seen: list[Any] = []
        self.checkpoints: list[Any] = []

    def fit(self, checkpoint: Any = None) -> list[Any]:
        """Train for two passes of five batches."""
        number, done = (0, 0) if checkpoint is None else (checkpoint[0], checkpoint[1])
        for loader, state in zip((self.long, self.short), (checkpoint or [0, 0, {}, {}])[2:], strict=True):
            loader.load_state_dict(state)
        runs = [iter(self.long), iter(self.short)]
        if done == 5:  # Lightning begins with the pass after it
            number, done = number + 1, 0
        while number < 2:
            self.long.sampler.set_epoch(number)
            self.short.sampler.set_epoch(number)
            if not done and self.seen:
                runs = [iter(self.long), iter(self.short)]
            for count in range(done + 1, 6):
                long, short = next(runs[0]), next(runs[1], None)
                if short is None and self.cycle:
                    runs[1] = iter(self.short)
                    short = next(runs[1])
                self.seen.append((number, long, short))
                states = [each.state_dict(rows=False) for each in (self.long, self.short)]
                self.checkpoints.append((number, count, *states))
            number, done = number + 1, 0
        return self.seen


@pytest.mark.parametrize("mode", ["max_size", "max_size_cycle"])
@pytest.mark.parametrize("kind", ["dataset", "endless", "stream"])
def test_a_shorter_loader_beside_a_longer_one_goes_on_at_every_cut(kind: str, mode: str) -> None:
    """Its place does not say in which pass it is: it was begun anew within one, or has ended in it."""
    whole = Trainer(kind, cycle=mode == "max_size_cycle")
    wanted = whole.fit()
    assert [short is None for _, _, short in wanted[:5]] == [
        mode == "max_size" and at >= 3 for at in range(5)
    ]
    for at, checkpoint in enumerate(whole.checkpoints, start=1):
        assert Trainer(kind, cycle=mode == "max_size_cycle").fit(checkpoint) == wanted[at:], f"cut at {at}"


def test_a_pass_that_was_cut_short_loads_into_a_loader_that_is_cut_short_too() -> None:
    """limit_train_batches=6: the message names this way out."""
    first = loader_of(prefetch=0)
    for number in range(2):
        first.sampler.set_epoch(number)
        run = iter(first)
        for _ in range(6):
            next(run)
    again = loader_of(prefetch=0)
    again.load_state_dict(first.state_dict())
    with pytest.raises(sk.errors.InvalidArgument, match=r"steps= of a pass's batches this checkpoint loads"):
        again.sampler.set_epoch(2)
    again = loader_of(prefetch=0, steps=6)
    again.load_state_dict(first.state_dict())
    again.sampler.set_epoch(2)
    assert list(again) == WHOLE[20:26]
    next(run)
    again.load_state_dict(first.state_dict())
    assert list(again) == []
    first.sampler.set_epoch(2)
    run = iter(first)
    next(run)
    again.load_state_dict(first.state_dict())
    assert list(again) == WHOLE[21:26]


def test_a_later_pass_over_endless_data_is_refused_without_a_state() -> None:
    """Lightning restores no loader from a checkpoint of the end of an epoch."""
    loader = endless_of(steps=3, prefetch=0)
    run = iter(loader)
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"pass 1 over data without an end.*every_n_train_steps="
    ):
        loader.sampler.set_epoch(1)
    assert len(list(run)) == 3
    for_validation = endless_of(steps=3, prefetch=0)
    for_validation.sampler.set_epoch(1)
    assert len(list(for_validation)) == 3


@pytest.mark.parametrize(
    "changed", [{"number": -1, "ended": 0}, {"number": 0}, {"number": 0, "ended": 1, "over": 1}]
)
def test_a_pass_that_was_changed_is_refused(changed: dict[str, Any]) -> None:
    loader = loader_of(prefetch=0)
    state = loader.state_dict()
    del state["check"]
    with pytest.raises(sk.errors.CorruptState, match="'pass'"):
        loader.load_state_dict({**state, "pass": changed})
