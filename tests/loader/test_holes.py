"""A loader leaves holes out of batches, counts them, and has enough of them at some point."""

from __future__ import annotations

import numpy as np
import pytest

import seekable as sk


def dataset(n: int = 20, *, every: int = 5) -> sk.Dataset:
    return sk.from_sequence([sk.HOLE if i % every == 2 else i for i in range(n)], version=every)


@pytest.mark.parametrize("prefetch", [0, 2])
def test_batches_are_without_them_and_steps_are_not(prefetch: int) -> None:
    loader = sk.Loader(dataset(), batch_size=6, collate=list, prefetch=prefetch)
    assert list(loader) == [[0, 1, 3, 4, 5], [6, 8, 9, 10, 11], [13, 14, 15, 16], [18, 19]]
    report = loader.report()
    assert report["holes"] == 4
    assert report["records"] == 16
    assert report["batches"] == 4


def test_records_that_are_arrays_are_not_compared() -> None:
    ds = sk.from_sequence([np.arange(3), sk.HOLE, np.arange(3)])
    (batch,) = sk.Loader(ds, batch_size=3)
    assert batch.shape == (2, 3)


def test_a_batch_of_holes_alone_is_an_error_and_can_be_skipped() -> None:
    ds = sk.from_sequence([0, 1, sk.HOLE, sk.HOLE, 4, 5])
    loader = sk.Loader(ds, batch_size=2, collate=list)
    run = iter(loader)
    assert next(run) == [0, 1]
    with pytest.raises(sk.errors.NothingPassed, match=r"step 1 \(position 2\): all 2 records are holes"):
        next(run)
    assert loader.step == 1
    loader.skip_batches(1)
    assert list(run) == [[4, 5]]


def test_single_records() -> None:
    run = iter(sk.Loader(sk.from_sequence([0, sk.HOLE]), batch_size=None))
    assert next(run) == 0
    with pytest.raises(sk.errors.NothingPassed, match="the only record is a hole"):
        next(run)


@pytest.mark.parametrize("prefetch", [0, 3])
def test_more_than_are_allowed_are_an_error(prefetch: int) -> None:
    loader = sk.Loader(dataset(), batch_size=5, collate=list, max_holes=2, prefetch=prefetch)
    run = iter(loader)
    assert [next(run), next(run)] == [[0, 1, 3, 4], [5, 6, 8, 9]]
    with pytest.raises(sk.errors.TooManyHoles, match=r"max_holes=2 .* at step 3 there were 3"):
        next(run)
    assert loader.step == 2
    assert loader.report()["holes"] == 2
    assert len(list(sk.Loader(dataset(), batch_size=5, collate=list, max_holes=4))) == 4
    assert len(list(sk.Loader(dataset(), batch_size=5, collate=list, max_holes=None))) == 4
    with pytest.raises(sk.errors.TooManyHoles):
        next(iter(sk.Loader(dataset(), batch_size=5, collate=list, max_holes=0)))
    with pytest.raises(sk.errors.InvalidArgument, match="max_holes must be at least 0"):
        sk.Loader(dataset(), batch_size=5, max_holes=-1)


def test_a_run_resumes_over_them() -> None:
    def make() -> sk.Loader:
        return sk.Loader(dataset(97).shuffle(3), batch_size=7, collate=list, epochs=2)

    whole = list(make())
    for cut in range(len(whole) + 1):
        loader = make()
        run = iter(loader)
        before = [next(run) for _ in range(cut)]
        again = make()
        again.load_state_dict(loader.state_dict())
        assert before + list(again) == whole


def test_the_union_over_ranks_is_the_same() -> None:
    def batches(world: int) -> list[list[int]]:
        ranks = [
            list(
                sk.Loader(
                    dataset(60).shuffle(3), global_batch_size=12, rank=r, world_size=world, collate=list
                )
            )
            for r in range(world)
        ]
        return [sorted(record for batch in step for record in batch) for step in zip(*ranks, strict=True)]

    assert batches(1) == batches(2) == batches(3)
