"""A loader says in words whether it ends: in its ``repr``, and with more in ``explain()``."""

from __future__ import annotations

from typing import Any

import pytest

import seekable as sk

RECORDS = sk.from_sequence(range(10))
AT_LENGTH = (
    "2 processes, each up to 2 batches ahead; a batch may take 9 seconds; the first 3 that die are replaced"
)

ENDLESS = sk.mix([RECORDS], weights=[1], seed=0, stop="never")


@pytest.mark.parametrize(
    ("data", "given", "short", "run"),
    [
        (RECORDS, {}, "3 in a run", "3 batches, 1 epoch of 10 records; the last batch has 2"),
        (RECORDS, {"epochs": 2}, "5 in a run", "5 batches, 2 epochs of 10 records"),
        (RECORDS, {"steps": 2}, "2 in a run", "2 batches (steps=) of 1 epoch of 10 records"),
        (RECORDS, {"end": "drop"}, "2 in a run", "an incomplete batch, which is left out"),
        (RECORDS, {"end": "pad"}, "3 in a run", "has 2, and is filled from the start of the run"),
        (ENDLESS, {}, "a run without end", "without end, because the data has none; steps= bounds it"),
        (ENDLESS, {"steps": 1}, "1 in a run", "1 batch (steps=) of data without end; the next run goes on"),
        (RECORDS.stream(), {}, "a run without end", "without end, because the data has none"),
        (RECORDS.stream(), {"steps": 7}, "7 in a run", "7 batches (steps=) of data without end"),
        (RECORDS.stream(epochs=1), {}, "a run to the end of the stream", "to the end of the stream"),
        (
            RECORDS.stream(epochs=1),
            {"steps": 7},
            "at most 7 in a run",
            "end of the stream, or 7 batches (steps=)",
        ),
    ],
)
def test_it_says_whether_a_run_ends(data: Any, given: dict[str, Any], short: str, run: str) -> None:
    loader = sk.Loader(data, batch_size=4, **given)
    assert f"batches of 4, {short}, of <" in repr(loader)
    batches, a_run, _, *tree = loader.explain().splitlines()
    assert batches == "batches: of 4 records"
    assert a_run.startswith("a run: ")
    assert run in a_run
    assert tree == data.explain().splitlines()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"prefetch": 0}, "none, and each batch is made when it is asked for"),
        ({}, "none; a thread makes up to 2 batches ahead while the caller is busy"),
        ({"workers": 3, "prefetch": 1}, "3 processes, each up to 1 batch ahead"),
        (
            {"workers": sk.Workers(1, type="thread", timeout=9, restart=2)},
            "1 thread, each up to 2 batches ahead",
        ),
        (
            {"workers": sk.Workers(2, timeout=9, restart=3)},
            AT_LENGTH,
        ),
        (
            {"workers": sk.Workers(2, restart=None)},
            "2 processes, each up to 2 batches ahead; all that die are replaced",
        ),
    ],
)
def test_it_tells_the_workers(given: dict[str, Any], text: str) -> None:
    assert sk.Loader(RECORDS, **given).explain().splitlines()[2] == f"workers: {text}"


def test_it_tells_the_share_of_a_rank() -> None:
    ranks: Any = {"rank": 1, "world_size": 2}
    loader = sk.Loader(RECORDS, global_batch_size=4, **ranks)
    assert loader.explain().startswith("batches: of 4 records, 2 each on 2 ranks, of which this is 1\n")
    single = sk.Loader(RECORDS, batch_size=None, **ranks)
    assert single.explain().startswith("batches: none, single records on 2 ranks, of which this is 1\n")


def test_the_batch_of_a_rank_is_known_and_fixed() -> None:
    loader = sk.Loader(RECORDS, global_batch_size=4, rank=1, world_size=2)
    assert (loader.batch_size, loader.global_batch_size) == (2, 4)
    assert sk.Loader(RECORDS, batch_size=None).batch_size is None
    with pytest.raises(sk.errors.InvalidArgument, match="a loader keeps its arguments"):
        loader.batch_size = 3  # type: ignore[misc]
