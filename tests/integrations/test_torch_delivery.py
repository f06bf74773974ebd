"""What torch has delivered of what it asked for: known exactly, or said not to be known."""

from __future__ import annotations

import gc
import itertools
import multiprocessing
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest
from accelerate import PartialState
from accelerate.data_loader import BatchSamplerShard, prepare_data_loader, skip_first_batches
from tests.integrations.torch_samplers import loader_of, numbers, rest, sampled, through
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter, _SingleProcessDataLoaderIter
from torchdata.stateful_dataloader import StatefulDataLoader

import seekable as sk
from seekable.integrations.torch import BatchSampler

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WANTED, STATES = through(loader_of(numbers()), runs=2)


class Trap:
    """A map function that fails at one record, as long as a file is there."""

    def __init__(self, flag: Path, kind: type[BaseException], at: int) -> None:
        self._flag, self._kind, self._at = str(flag), kind, at

    def __call__(self, record: int) -> int:
        if record == self._at and os.path.exists(self._flag):
            raise self._kind("a trap")
        return record


def trapped(flag: Path, kind: type[BaseException], *, batch: int) -> sk.Dataset:
    """Return the numbers, of which one in some batch cannot be read."""
    flag.touch()
    return numbers().map(Trap(flag, kind, WANTED[batch][1]), version="1")


@pytest.fixture
def no_gc() -> Iterator[None]:
    """Nothing is freed but by its last reference."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_gc")
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("batches", [0, 3, 10, 11])
def test_workers_end_with_their_loader(batches: int, *, persistent: bool) -> None:
    """What counts deliveries is held by torch's iterator, and must not hold it."""
    before = set(multiprocessing.active_children())
    sampler, loader = sampled(numbers(), num_workers=2, persistent_workers=persistent)
    run = iter(loader)
    for _ in itertools.islice(run, batches):
        pass
    assert len(set(multiprocessing.active_children()) - before) == (
        0 if batches == 11 and not persistent else 2
    )
    del run, loader
    assert set(multiprocessing.active_children()) == before
    assert sampler.state_dict() == STATES[batches]


def test_a_batch_that_fails_was_not_delivered(tmp_path: Path) -> None:
    """A checkpoint from an except clause begins with the batch that failed."""
    flag = tmp_path / "flag"
    for workers in (0, 2):
        ds = trapped(flag, ZeroDivisionError, batch=4)
        sampler, loader = sampled(ds, num_workers=workers)
        run = iter(loader)
        found = [next(run) for _ in range(4)]
        with pytest.raises(ZeroDivisionError, match="a trap"):
            next(run)
        state = sampler.state_dict()
        flag.unlink()
        again, loader = sampled(ds, num_workers=workers)
        again.load_state_dict(state)
        assert found + list(loader) == WANTED[:10]


@pytest.mark.parametrize("workers", [0, 2])
def test_who_reads_on_after_a_batch_that_failed_has_passed_over_it(tmp_path: Path, workers: int) -> None:
    sampler, loader = sampled(trapped(tmp_path / "flag", ZeroDivisionError, batch=4), num_workers=workers)
    run = iter(loader)
    for _ in range(4):
        next(run)
    with pytest.raises(ZeroDivisionError, match="a trap"):
        next(run)
    assert next(run) == WANTED[5]
    assert sampler.state_dict()["position"] == STATES[6]["position"]
    assert list(run) == WANTED[6:10]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_batch_that_failed_and_is_skipped_is_dropped(tmp_path: Path, workers: int) -> None:
    sampler, loader = sampled(trapped(tmp_path / "flag", ZeroDivisionError, batch=4), num_workers=workers)
    run = iter(loader)
    for _ in range(3):
        next(run)
    sampler.skip_batches(2)
    assert list(run) == WANTED[5:10]
    assert sampler.step == 10


def test_an_interrupt_loses_no_count(tmp_path: Path) -> None:
    sampler, loader = sampled(trapped(tmp_path / "flag", KeyboardInterrupt, batch=4))
    run = iter(loader)
    for _ in range(4):
        next(run)
    with pytest.raises(KeyboardInterrupt):
        next(run)
    assert sampler.state_dict()["position"] == STATES[4]["position"]
    assert next(run) == WANTED[5]
    assert sampler.state_dict()["position"] == STATES[6]["position"]


def test_an_interrupt_of_the_wait_for_a_worker_loses_no_count(tmp_path: Path) -> None:
    gate = str(tmp_path / "gate")
    os.mkfifo(gate)
    sampler, loader = sampled(numbers().map(Gate(gate, WANTED[1][0]), version="1"), num_workers=2)
    run = iter(loader)
    assert next(run) == WANTED[0]
    old = signal.signal(signal.SIGALRM, _interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01)  # however late it comes: the batch waits at the gate
        with pytest.raises(KeyboardInterrupt):
            next(run)
    finally:
        signal.signal(signal.SIGALRM, old)
    assert sampler.step == 1
    with open(gate, "w"):
        found = list(run)
    assert found == WANTED[1:10]
    assert sampler.state_dict()["position"] == STATES[11]["position"]


class Gate:
    """A map function that waits at one record until a pipe was opened by somebody else too."""

    def __init__(self, path: str, at: int) -> None:
        self._path, self._at = path, at

    def __call__(self, record: int) -> int:
        if record == self._at:
            open(self._path).close()
        return record


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_killed_worker_is_an_error_and_the_state_stays() -> None:
    before = set(multiprocessing.active_children())
    sampler, loader = sampled(numbers(), num_workers=2)
    run = iter(loader)
    found = [next(run) for _ in range(3)]
    for process in set(multiprocessing.active_children()) - before:
        os.kill(process.pid or 0, signal.SIGKILL)
    with pytest.raises(RuntimeError, match=r"killed|exited unexpectedly"):  # noqa: PT012 - some are there already
        while True:
            found.append(next(run))
    assert sampler.state_dict() == STATES[len(found)]
    again, loader = sampled(numbers())
    again.load_state_dict(sampler.state_dict())
    assert found + list(loader) == WANTED[:10]


@pytest.mark.parametrize("workers", [0, 2])
def test_an_iterator_that_was_replaced_says_so(workers: int) -> None:
    sampler, loader = sampled(numbers(), num_workers=workers)
    old = iter(loader)
    next(old)
    new = iter(loader)
    with pytest.raises(sk.StoppedIterator, match="later iter"):
        next(old)
    assert list(new) == WANTED[10:]
    assert sampler.epoch == 2


def test_deliveries_in_any_order_are_said_to_be_unknown() -> None:
    sampler, loader = sampled(numbers(), num_workers=2, in_order=False)
    run = iter(loader)
    next(run)
    with pytest.raises(sk.DeliveryUnknown, match=r"in_order=False .* state_dict\(delivered=count\)"):
        sampler.state_dict()
    list(run)
    assert sampler.state_dict() == STATES[11]
    run = iter(loader)
    next(run)
    sampler.load_state_dict(STATES[3])
    assert sampler.state_dict() == STATES[3]


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
def test_torchdata_is_not_told_since_it_has_its_own_way() -> None:
    _, loader = sampled(numbers(), kind=StatefulDataLoader, num_workers=2, in_order=False)
    assert sorted(itertools.chain(*loader)) == list(range(37))


@pytest.fixture
def accelerate_alone() -> None:
    PartialState(cpu=True)


@pytest.mark.usefixtures("accelerate_alone")
@pytest.mark.parametrize("workers", [0, 2])
def test_accelerate_reads_ahead_and_has_to_count(workers: int) -> None:
    sampler, loader = sampled(numbers(), num_workers=workers)
    prepared: Any = prepare_data_loader(loader, put_on_device=False)
    for count, batch in enumerate(prepared, start=1):
        assert batch == WANTED[count - 1]
        if count < 10:
            with pytest.raises(sk.DeliveryUnknown, match="one batch more than they deliver"):
                sampler.state_dict()
        assert sampler.state_dict(delivered=count) == STATES[count]
    assert sampler.state_dict() == STATES[11]
    assert list(prepared) == WANTED[10:]


@pytest.mark.usefixtures("accelerate_alone")
@pytest.mark.parametrize("workers", [0, 2])
def test_what_stands_between_has_to_be_counted(workers: int) -> None:
    sampler, loader = sampled(numbers(), num_workers=workers)
    skipping = skip_first_batches(loader, 2)
    run = iter(skipping)
    assert next(run) == WANTED[2]
    with pytest.raises(sk.DeliveryUnknown, match="something that stands between"):
        sampler.state_dict()
    assert sampler.state_dict(delivered=3) == STATES[3]
    ds: Any = numbers()
    shard = BatchSamplerShard(sampler, num_processes=2, process_index=1)
    sampler.load_state_dict(STATES[0])
    run = iter(DataLoader(ds, batch_sampler=shard, num_workers=workers, collate_fn=list))
    assert next(run) == WANTED[1]
    with pytest.raises(sk.DeliveryUnknown, match="something that stands between"):
        sampler.state_dict()


def test_more_than_was_asked_for_cannot_have_been_delivered() -> None:
    sampler = BatchSampler(numbers(), batch_size=4)
    assert sampler.state_dict(delivered=0) == STATES[0]
    with pytest.raises(sk.InvalidArgument, match=r"at most 0, .* \(got 1\)"):
        sampler.state_dict(delivered=1)
    for _ in itertools.islice(sampler, 3):
        pass
    assert [sampler.state_dict(delivered=count) for count in range(4)] == STATES[:4]
    for count in (4, -1):
        with pytest.raises(sk.InvalidArgument, match="delivered must be"):
            sampler.state_dict(delivered=count)


def test_a_torch_that_tells_nothing_makes_states_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A later version of torch, say, in which the method that is overlaid has another name."""
    fetch = _SingleProcessDataLoaderIter._next_data
    monkeypatch.delattr(_SingleProcessDataLoaderIter, "_next_data")
    monkeypatch.delattr(_BaseDataLoaderIter, "_next_data")
    monkeypatch.setattr(_BaseDataLoaderIter, "__next__", fetch)
    sampler, loader = sampled(numbers())
    for count, batch in enumerate(loader, start=1):
        assert batch == WANTED[count - 1]
        with pytest.raises(sk.DeliveryUnknown, match="this version of torch"):
            sampler.state_dict()
        assert sampler.state_dict(delivered=count) == STATES[count]
    assert rest(loader, 10) == WANTED[10:]


def test_a_loader_after_a_fork_reads_in_the_child_too() -> None:
    """A DataLoader that was begun before a fork goes on in the parent; the child begins anew."""
    sampler, loader = sampled(numbers())
    run = iter(loader)
    found = [next(run)]
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with pytest.raises(sk.ForkUnsafe):
                next(run)
            code = int(list(loader) != WANTED[10:])
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert found + list(run) == WANTED[:10]
    assert sampler.state_dict() == STATES[11]
