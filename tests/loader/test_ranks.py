"""The global batches are the same on any number of ranks, and every record is on one of them."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from tests.loader.flat import batches_of, shuffled
from tests.thrift import some

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path

    from seekable.loader.steps import End

ENDS = ["short", "drop", "pad"]


def ranks_of(dataset: sk.Dataset, batch: int, world_size: int, **arguments: Any) -> list[sk.Loader]:
    given = {"collate": list, "prefetch": 0, **arguments}
    return [
        sk.Loader(dataset, global_batch_size=batch, rank=rank, world_size=world_size, **given)
        for rank in range(world_size)
    ]


def refused(dataset: sk.Dataset, batch: int, world_size: int, end: str) -> bool:
    return end == "short" and 0 < len(dataset) % batch < world_size


def by_place(parts: list[list[Any]], start: int) -> list[Any]:
    """Put the ranks' parts of one global batch together: place p is on rank p % world_size."""
    world_size, total = len(parts), sum(len(part) for part in parts)
    iterators = [iter(part) for part in parts]
    return [next(iterators[(start + i) % world_size]) for i in range(total)]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("n", [12, 13, 24, 35, 100, some(1000, of=4)])
def test_global_batches_do_not_depend_on_the_number_of_ranks(n: int, end: End) -> None:
    for world_size in (1, 2, 3, 4, 6, 12):
        check_global_batches(n, world_size, end)


def check_global_batches(n: int, world_size: int, end: End) -> None:
    dataset = shuffled(n)
    if refused(dataset, 12, world_size, end):
        with pytest.raises(sk.errors.InvalidArgument, match="end='drop' or end='pad'"):
            ranks_of(dataset, 12, world_size, end=end)
        return
    loaders = ranks_of(dataset, 12, world_size, end=end)
    wanted = batches_of(dataset, 12, end=end, runs=3)
    lengths = {len(loader) for loader in loaders}
    assert lengths == {len(wanted) // 3}
    got: list[list[Any]] = []
    for epoch in range(3):
        places = range(epoch * n, epoch * n + 12 * len(wanted), 12)
        for start, *parts in zip(places, *loaders, strict=False):
            assert all(parts)
            got.append(by_place(parts, start))
    assert got == wanted


@pytest.mark.parametrize("world_size", [1, 2, 4])
def test_each_record_comes_once_an_epoch_over_all_ranks(world_size: int) -> None:
    """Four ranks of another library yielded 57 of 80 records."""
    loaders = ranks_of(shuffled(80), 4, world_size)
    for _ in range(2):
        assert sorted(record for loader in loaders for batch in loader for record in batch) == list(range(80))


@pytest.mark.parametrize("before", [1, 2, 4])
@pytest.mark.parametrize("after", [1, 2, 4])
def test_a_state_of_any_rank_loads_on_any_number_of_ranks(before: int, after: int) -> None:
    dataset = shuffled(50)
    states = []
    for loader in ranks_of(dataset, 8, before, end="pad"):
        run = iter(loader)
        for _ in range(3):
            next(run)
        states.append(loader.state_dict())
    assert all(state == states[0] for state in states)
    loaders = ranks_of(dataset, 8, after, end="pad")
    for loader in loaders:
        loader.load_state_dict(states[-1])
    got = [by_place(list(parts), 24 + 8 * i) for i, parts in enumerate(zip(*loaders, strict=True))]
    assert got == batches_of(dataset, 8, end="pad")[3:]


def test_without_a_batch_size_each_rank_gets_a_record_a_step() -> None:
    loaders = [
        sk.Loader(shuffled(9), batch_size=None, rank=rank, world_size=3, prefetch=0) for rank in range(3)
    ]
    assert [record for step in zip(*loaders, strict=True) for record in step] == list(shuffled(9))


def test_a_split_does_not_depend_on_the_number_of_ranks() -> None:
    """Another library slices after it has dealt to ranks, so that test records leak into training."""
    parts = sk.from_sequence(range(3000)).split({"train": 0.8, "test": 0.2}, seed=1)
    whole = {record for batch in ranks_of(parts["train"], 4, 1, end="drop")[0] for record in batch}
    dealt = [record for loader in ranks_of(parts["train"], 4, 4) for batch in loader for record in batch]
    assert set(dealt) == whole
    assert whole.isdisjoint(parts["test"])


def test_ranks_in_the_environment_must_be_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another library reads everything on every rank when it is not told of them."""
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    with pytest.raises(
        sk.errors.AmbiguousRank, match=r"RANK=1 of WORLD_SIZE=4.*rank=0, world_size=1"
    ) as raised:
        sk.Loader(shuffled(8), batch_size=4)
    assert isinstance(raised.value, RuntimeError)
    sk.Loader(shuffled(8), batch_size=4, rank=0, world_size=1)
    sk.Loader(shuffled(8), global_batch_size=4, rank=1, world_size=4)


@pytest.mark.parametrize("size", ["1", "", "many"])
def test_one_rank_in_the_environment_is_no_question(monkeypatch: pytest.MonkeyPatch, size: str) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", size)
    assert sk.Loader(shuffled(8), batch_size=4).world_size == 1


GLOO = """
import sys
from torch import distributed
import seekable as sk
assert sk.distributed() == (0, 1)
rank = int(sys.argv[2])
distributed.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=rank, world_size=2)
try:
    sk.Loader(sk.from_sequence(range(8)))
except sk.errors.AmbiguousRank as error:
    message = str(error)
rank, world_size = sk.distributed()
loader = sk.Loader(
    sk.from_sequence(range(8)), global_batch_size=4, rank=rank, world_size=world_size, collate=list
)
print(message, rank, world_size, list(loader), sep="; ")
distributed.barrier()
distributed.destroy_process_group()
"""


@pytest.mark.frameworks(name="torch")
def test_ranks_of_torch_must_be_answered(tmp_path: Path) -> None:
    """Two processes that torch alone knows to be ranks: nothing in the environment says so."""
    around = {name: value for name, value in os.environ.items() if name not in {"RANK", "WORLD_SIZE"}}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", GLOO, tmp_path / "rendezvous", str(rank)],
            env=around,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    said = [process.communicate(timeout=60)[0] for process in ranks]
    assert [process.returncode for process in ranks] == [0, 0]
    for rank, batches in enumerate(["[[0, 2], [4, 6]]", "[[1, 3], [5, 7]]"]):
        assert said[rank].startswith("torch.distributed has 2 ranks, and rank= and world_size= were left out")
        assert said[rank].endswith(f"; {rank}; 2; {batches}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rank": 1}, r"given together \(got rank=1, world_size=None\)"),
        ({"world_size": 2}, r"given together \(got rank=None, world_size=2\)"),
        ({"rank": 2, "world_size": 2}, r"rank must be below world_size=2 \(got 2\)"),
        ({"rank": -1, "world_size": 2}, r"rank must be at least 0 \(got -1\)"),
        ({"rank": 0, "world_size": 0}, r"world_size must be at least 1 \(got 0\)"),
        ({"rank": 0, "world_size": 2, "batch_size": 4}, r"global_batch_size=8 instead of batch_size=4"),
        (
            {"rank": 0, "world_size": 3, "global_batch_size": 4},
            r"global_batch_size must be a multiple of world_size=3 \(got 4\)",
        ),
    ],
    ids=str,
)
def test_bad_ranks_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(sk.errors.InvalidArgument, match=message):
        sk.Loader(shuffled(100), **arguments)


def test_a_short_batch_that_a_bound_leaves_out_is_no_obstacle() -> None:
    loaders = ranks_of(shuffled(13), 12, 4, end="short", steps=1)
    assert sum(len(batch) for loader in loaders for batch in loader) == 12


def test_the_environment_says_which_rank_this_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert sk.distributed() == (2, 4)


def test_without_anyone_saying_there_is_one_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert sk.distributed() == (0, 1)


@pytest.mark.parametrize(
    ("rank", "size"), [(None, "4"), ("4", "4"), ("-1", "4"), ("x", "4"), ("0", ""), ("0", "0")]
)
def test_an_environment_that_names_no_rank_is_refused(
    rank: str | None, size: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RANK", raising=False)
    if rank is not None:
        monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", size)
    with pytest.raises(sk.errors.AmbiguousRank, match="RANK"):
        sk.distributed()
