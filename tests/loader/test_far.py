"""A position is as good as another, however far away."""

from __future__ import annotations

from typing import Any

import seekable as sk
from seekable.testing import assert_resumes_exactly


def mixed() -> sk.Dataset:
    web = sk.from_sequence(range(1_000_003), version="web").shuffle(seed=1)
    code = sk.from_sequence(range(999_983), version="code").shuffle(seed=2)
    return sk.mix({"web": web, "code": code}, weights={"web": 0.7, "code": 0.3}, seed=3)


def far() -> sk.Dataset:
    """Make more than 10**12 positions of two sources, which need no memory."""
    return mixed().repeat(10**6)


def loader_of(**arguments: Any) -> sk.Loader:
    given = {"batch_size": 64, "collate": list, "prefetch": 0, **arguments}
    return sk.Loader(far(), **given)


def test_a_pipeline_of_a_million_million_positions_resumes_anywhere() -> None:
    dataset = far()
    assert len(dataset) > 10**12
    for position in (0, 1, 12_345, 10**9, 10**12, len(dataset) - 100):
        step = position // 64
        loader = loader_of()
        loader.load_state_dict(
            {
                "seekable": 1,
                "fingerprint": dataset.fingerprint,
                "step": step,
                "epoch": 0,
                "position": 64 * step,
            }
        )
        batch = next(iter(loader))
        assert batch == [dataset[64 * step + i] for i in range(len(batch))]
        assert loader.state_dict()["step"] == step + 1
        assert [location.row for location in loader.locate(step=step)] == batch


def test_it_resumes_exactly_at_the_end_of_its_epoch() -> None:
    last = -(-len(far()) // 64)

    def near_the_end() -> sk.Loader:
        loader = loader_of()
        loader.skip_batches(last - 3)
        return loader

    # list(loader) would ask for its length, and make room for that many batches.
    assert len(list(iter(near_the_end()))) == 3
    assert_resumes_exactly(near_the_end, runs=1, new_process=False)


def test_records_of_a_far_epoch_are_found_again() -> None:
    dataset = mixed()
    epoch = 10**9
    for row in (0, 7, len(dataset) - 1):
        location = dataset.epoch(epoch).locate(row)
        assert epoch * len(dataset) + row in dataset.find(location.path, location.row, epoch=epoch)


def test_nothing_is_read_but_what_is_delivered() -> None:
    reads: list[int] = []

    class Counting:
        def __len__(self) -> int:
            return 10**12

        def __getitem__(self, row: int) -> int:
            reads.append(row)
            return row

    dataset = sk.from_sequence(Counting()).shuffle(seed=4)
    loader = sk.Loader(dataset, batch_size=8, collate=list, prefetch=0)
    loader.skip_batches(10**10)
    state = loader.state_dict()
    again = sk.Loader(dataset, batch_size=8, collate=list, prefetch=0)
    again.load_state_dict(state)
    assert reads == []
    assert next(iter(again)) == reads
    assert len(reads) == 8
