"""The global batches of a stream are the same on any ranks and workers, before and after any resumes."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import pytest
from tests.loader.streams.pipelines import BATCH, LANES, everything, first_of, put_together
from tests.thrift import ALL

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path

    from seekable.loader.arguments import WorkerType

STEPS = 8


def ranks_of(world_size: int, *, batch: int = BATCH, **given: Any) -> list[sk.Loader]:
    return [
        sk.Loader(
            everything(), global_batch_size=batch, rank=rank, world_size=world_size, collate=list, **given
        )
        for rank in range(world_size)
    ]


@pytest.mark.parametrize("world_size", [1, 2, 3, 4, 6, 12])
def test_any_number_of_ranks_delivers_the_slots_in_order(world_size: int) -> None:
    delivered = []
    for step, parts in enumerate(zip(*ranks_of(world_size, steps=STEPS, prefetch=0), strict=True)):
        assert {len(part) for part in parts} == {BATCH // world_size}
        delivered += put_together(list(parts), step * BATCH)
    assert delivered == first_of(everything(), STEPS * BATCH)


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"workers": 1}, marks=pytest.mark.exhaustive),
        {"workers": 2},
        pytest.param({"workers": 5}, marks=pytest.mark.exhaustive),
        {"workers": sk.Workers(1, type="thread")},
        {"workers": sk.Workers(3, type="thread")},
        {"workers": sk.Workers(5, type="thread")},
        {"workers": sk.Workers(20, type="thread"), "prefetch": 0},
        {"prefetch": 3},
    ],
    ids=str,
)
def test_whoever_runs_the_lanes_the_batches_are_the_same(how: dict[str, Any]) -> None:
    alone = sk.Loader(everything(), batch_size=BATCH, steps=STEPS, collate=list, prefetch=0)
    wanted, states = [], []
    for batch in alone:
        wanted.append(batch)
        states.append(alone.state_dict())
    with sk.Loader(everything(), batch_size=BATCH, steps=STEPS, collate=list, **how) as loader:
        for batch, state in zip(loader, states, strict=True):
            assert batch == wanted[loader.step - 1]
            assert loader.state_dict() == state


def test_any_chain_of_ranks_workers_and_batches_goes_on_exactly(tmp_path: Path) -> None:
    delivered: list[Any] = []
    for world_size, workers, batch, steps in [
        (4, 0, 24, 2),
        (6, 1, 24, 1),
        (1, 2, 12, 3),
        (3, 0, 48, 2),
        (2, 0, 24, 3),
    ]:
        kind: WorkerType = "process" if ALL or world_size == 1 else "thread"
        loaders = ranks_of(world_size, batch=batch, workers=sk.Workers(workers, type=kind))
        found = {bool(sk.load_state(tmp_path, loader)) for loader in loaders}
        assert found == {bool(delivered)}
        runs = [iter(loader) for loader in loaders]
        for _ in range(steps):
            delivered += put_together([next(run) for run in runs], len(delivered))
        for loader in loaders:
            sk.save_state(tmp_path, loader)
            loader.close()
    assert delivered == first_of(everything(), len(delivered))


KILLS = (2, 5) if ALL else (5,)


def test_a_worker_that_is_killed_is_replaced_and_nothing_is_lost() -> None:
    wanted = first_of(everything(), STEPS * BATCH)
    delivered = []
    with sk.Loader(
        everything(), batch_size=BATCH, steps=STEPS, collate=list, workers=sk.Workers(2, restart=None)
    ) as loader:
        for batch in loader:
            delivered += batch
            if loader.step in KILLS:
                workers = loader._producer._execution.pool.workers  # type: ignore[union-attr]
                os.kill(workers[loader.step % 2].pid, signal.SIGKILL)
    assert delivered == wanted


def test_a_rank_has_a_share_of_the_state_and_says_so(tmp_path: Path) -> None:
    [first, second] = ranks_of(2, prefetch=0)
    for loader in (first, second):
        next(iter(loader))
    with pytest.raises(sk.errors.NotResumable, match=r"rank 0 of 2 has 6 of the 12 lanes.*partial=True"):
        first.state_dict()
    share = first.state_dict(partial=True)
    assert sorted(map(int, share["lanes"])) == list(range(0, LANES, 2))
    with pytest.raises(sk.errors.CorruptState, match="lacks lane 1 of 12"):
        sk.Loader(everything(), batch_size=BATCH).load_state_dict(share)
    sk.save_state(tmp_path, first)
    alone = sk.Loader(everything(), batch_size=BATCH, collate=list)
    with pytest.raises(
        sk.errors.CorruptState, match=r"of its 2 ranks 0 is there, 1 is missing.*all ranks must call"
    ):
        sk.load_state(tmp_path, alone)
    sk.save_state(tmp_path, second)
    assert sk.load_state(tmp_path, alone)
    assert next(iter(alone)) == first_of(everything(), 2 * BATCH)[BATCH:]


def test_shares_of_two_runs_are_not_put_together(tmp_path: Path) -> None:
    [first, second] = ranks_of(2, prefetch=0)
    other = ranks_of(2, prefetch=0, batch=2 * BATCH)[1]
    for loader in (first, second, other):
        next(iter(loader))
    sk.save_state(tmp_path, first)
    sk.save_state(tmp_path, other)
    with pytest.raises(sk.errors.CorruptState, match="differ"):
        sk.load_state(tmp_path, sk.Loader(everything(), batch_size=BATCH))


def test_a_state_of_another_stream_is_refused_with_the_difference(tmp_path: Path) -> None:
    loader = sk.Loader(everything(), batch_size=BATCH, prefetch=0)
    next(iter(loader))
    sk.save_state(tmp_path, loader)
    with pytest.raises(sk.StateMismatch, match="buffer was 7, is 8"):
        sk.load_state(tmp_path, sk.Loader(everything_but(buffer=8), batch_size=BATCH))


def everything_but(*, buffer: int) -> sk.Stream:
    (mixed,) = everything().stage.inputs
    return sk.Stream(mixed).shuffle(buffer=buffer, seed=3)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"global_batch_size": 40, "rank": 0, "world_size": 5}, "world_size must divide the lanes.*12"),
        ({"batch_size": 3, "epochs": 2}, "epochs= to ds.stream"),
        ({"global_batch_size": 25, "rank": 0, "world_size": 2}, "multiple of world_size"),
        ({"batch_size": 3, "end": "never"}, "end must be 'short', 'drop' or 'pad'"),
    ],
)
def test_arguments_are_checked(given: dict[str, Any], match: str) -> None:
    with pytest.raises(sk.errors.InvalidArgument, match=match):
        sk.Loader(everything(), **given)


def test_ranks_that_could_end_at_different_steps_are_refused() -> None:
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"different steps on 2 ranks.*steps=.*ds\.filter\(\)"
    ):
        sk.Loader(everything(epochs=1), global_batch_size=4, rank=0, world_size=2)


def test_what_a_step_holds_cannot_be_planned() -> None:
    with pytest.raises(sk.errors.InvalidArgument, match="depends on what the records are"):
        sk.Loader(everything(), batch_size=4).locate(step=3)
