"""How many of the requested batches torch has delivered: counted, or an error that says the ways out."""

from __future__ import annotations

import gc
import itertools
import json
import multiprocessing
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from accelerate import PartialState
from accelerate.data_loader import BatchSamplerShard, prepare_data_loader, skip_first_batches
from tests.integrations.torch_samplers import BATCH, loader_of, numbers, sampled, through
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

import seekable as sk
from seekable.integrations.torch import BatchSampler

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# StatefulDataLoader calls what this version of torch warns of.
pytestmark = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")

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
@pytest.mark.parametrize("batches", [0, 3, 10])
def test_workers_end_with_their_loader(batches: int, *, persistent: bool) -> None:
    """The iterator that counts deliveries holds torch's iterator, and is not held by it."""
    before = set(multiprocessing.active_children())
    sampler, loader = sampled(numbers(), num_workers=2, persistent_workers=persistent)
    run = sampler.counting(loader)
    for _ in itertools.islice(run, batches):
        pass
    assert len(set(multiprocessing.active_children()) - before) == 2
    del run, loader
    assert set(multiprocessing.active_children()) == before
    assert sampler.state_dict(rows=False) == STATES[batches]


def test_a_plain_loader_with_workers_does_not_say_what_it_has_delivered() -> None:
    sampler, loader = sampled(numbers(), num_workers=2)
    assert sampler.state_dict(rows=False) == STATES[0]
    for count, batch in enumerate(loader, start=1):
        assert batch == WANTED[count - 1]
        with pytest.raises(sk.errors.DeliveryUnknown) as caught:
            sampler.state_dict()
        for way_out in ("state_dict(delivered=count)", "counting(loader)", "StatefulDataLoader", "sk.Loader"):
            assert way_out in str(caught.value)
        for asks in (lambda: sampler.step, lambda: sampler.skip_batches(1)):
            with pytest.raises(sk.errors.DeliveryUnknown):
                asks()
        assert sampler.state_dict(delivered=count, rows=False) == STATES[count]
    assert sampler.epoch == 1


@pytest.mark.parametrize("kind", [DataLoader, StatefulDataLoader])
def test_without_workers_what_was_read_is_delivered(kind: type[DataLoader[Any]]) -> None:
    sampler, loader = sampled(numbers(), kind=kind)
    found = [sampler.state_dict(rows=False)]
    for _ in range(2):
        for batch in loader:
            assert batch == WANTED[sampler.step - 1]
            found.append(sampler.state_dict(rows=False))
        found.append(sampler.state_dict(rows=False))
    assert found == STATES


@pytest.mark.parametrize("columns", [False, True])
def test_single_records_and_columns_are_read_without_workers(*, columns: bool) -> None:
    """With ``batch_size=None`` torch reads ``dataset[what the sampler gives]``."""
    batch: dict[str, Any] = {"batch_size": BATCH if columns else None}
    ds: Any = numbers()
    sampler = BatchSampler(ds, **batch)
    loader: Any = DataLoader(ds, sampler=sampler, batch_size=None)
    wanted = loader_of(ds, **batch)
    for ours, theirs in zip(loader, wanted, strict=True):
        assert ours == theirs
        assert sampler.state_dict() == wanted.state_dict()
    for _ in DataLoader(ds, sampler=sampler, batch_size=None, num_workers=1):
        with pytest.raises(sk.errors.DeliveryUnknown):
            sampler.state_dict()


def test_a_user_of_torchdata_with_workers_has_to_count() -> None:
    """The state of a requested batch is for torchdata alone: it returns it when the batch was delivered."""
    sampler, loader = sampled(numbers(), kind=StatefulDataLoader, num_workers=2)
    for count, _ in enumerate(loader, start=1):
        with pytest.raises(sk.errors.DeliveryUnknown):
            sampler.state_dict()
        assert sampler.state_dict(delivered=count, rows=False) == STATES[count]


def test_what_a_thread_reads_ahead_is_not_delivered() -> None:
    ds, sampler = numbers(), BatchSampler(numbers(), batch_size=BATCH)
    requests = iter(sampler)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: ds[next(requests)]).result() == WANTED[0]
        pool.submit(requests.state_dict).result()
    with pytest.raises(sk.errors.DeliveryUnknown):
        sampler.state_dict()


def test_a_batch_that_could_not_be_read_is_not_delivered(tmp_path: Path) -> None:
    sampler, loader = sampled(trapped(tmp_path / "flag", ZeroDivisionError, batch=2))
    with pytest.raises(ZeroDivisionError, match="a trap"):
        list(loader)
    with pytest.raises(sk.errors.DeliveryUnknown):
        sampler.state_dict()
    assert sampler.state_dict(delivered=2)["step"] == 2


@pytest.mark.parametrize(
    ("workers", "error"), [(0, ZeroDivisionError), (2, ZeroDivisionError), (0, KeyboardInterrupt)]
)
def test_a_batch_that_fails_was_not_delivered(
    tmp_path: Path, workers: int, error: type[BaseException]
) -> None:
    """A checkpoint from an except clause begins with the batch that failed."""
    flag = tmp_path / "flag"
    ds = trapped(flag, error, batch=4)
    sampler, loader = sampled(ds, num_workers=workers)
    run = sampler.counting(loader)
    found = [next(run) for _ in range(4)]
    with pytest.raises(error, match="a trap"):
        next(run)
    state = sampler.state_dict()
    flag.unlink()
    again, loader = sampled(ds, num_workers=workers)
    again.load_state_dict(state)
    assert found + list(loader) == WANTED[:10]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_batch_that_failed_can_be_skipped(tmp_path: Path, workers: int) -> None:
    sampler, loader = sampled(trapped(tmp_path / "flag", ZeroDivisionError, batch=4), num_workers=workers)
    run = sampler.counting(loader)
    found = [next(run) for _ in range(4)]
    with pytest.raises(ZeroDivisionError, match="a trap"):
        next(run)
    sampler.skip_batches(1)
    assert found + list(sampler.counting(loader)) == WANTED[:4] + WANTED[5:10]
    assert sampler.step == 10


# torch's signal handler raises wherever Python is when a worker dies: also where torch frees its iterator.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_killed_worker_is_an_error_and_the_state_stays() -> None:
    before = set(multiprocessing.active_children())
    sampler, loader = sampled(numbers(), num_workers=2)
    run = sampler.counting(loader)
    found = [next(run) for _ in range(3)]
    worker = next(iter(set(multiprocessing.active_children()) - before))
    with pytest.raises(RuntimeError, match=r"killed|exited unexpectedly"):  # noqa: PT012 - some are there already
        os.kill(worker.pid or 0, signal.SIGKILL)
        while True:
            found.append(next(run))
    del run, loader
    gc.collect()
    assert sampler.state_dict(rows=False) == STATES[len(found)]
    again, loader = sampled(numbers())
    again.load_state_dict(sampler.state_dict())
    assert found + list(loader) == WANTED[:10]


@pytest.mark.parametrize("workers", [0, 2])
def test_an_iterator_that_was_replaced_says_so(workers: int) -> None:
    sampler, loader = sampled(numbers(), num_workers=workers)
    old = sampler.counting(loader)
    next(old)
    new = sampler.counting(loader)
    with pytest.raises(sk.errors.StoppedIterator, match="later iter"):
        next(old)
    assert list(new) == WANTED[10:]
    assert sampler.epoch == 2


def test_a_run_without_an_end_that_was_left_needs_a_count() -> None:
    endless = sk.mix([numbers()], weights=[1], seed=1, stop="never")
    wanted = list(itertools.islice(loader_of(endless), 5))
    sampler, loader = sampled(endless)
    assert list(itertools.islice(loader, 2)) == wanted[:2]
    state = sampler.state_dict(delivered=2)
    with pytest.raises(sk.errors.DeliveryUnknown, match=r"data without an end was left.*steps="):
        next(iter(loader))
    sampler.load_state_dict(state)
    assert list(itertools.islice(sampler.counting(loader), 2)) == wanted[2:4]
    assert next(iter(loader)) == wanted[4]


@pytest.fixture
def accelerate_alone() -> None:
    PartialState(cpu=True)


@pytest.mark.usefixtures("accelerate_alone")
@pytest.mark.parametrize("workers", [0, 2])
def test_a_plain_loader_of_accelerate_reads_ahead_and_has_to_count(workers: int) -> None:
    sampler, loader = sampled(numbers(), num_workers=workers)
    prepared: Any = prepare_data_loader(loader, put_on_device=False)
    with pytest.raises(sk.errors.InvalidArgument, match=r"got DataLoaderShard\).*delivered=count"):
        sampler.counting(prepared)
    for count, batch in enumerate(prepared, start=1):
        assert batch == WANTED[count - 1]
        with pytest.raises(sk.errors.DeliveryUnknown):
            sampler.state_dict()
        assert sampler.state_dict(delivered=count, rows=False) == STATES[count]
    assert list(prepared) == WANTED[10:]


@pytest.mark.usefixtures("accelerate_alone")
@pytest.mark.parametrize("workers", [0, 2])
def test_a_stateful_loader_of_accelerate_is_exact(workers: int) -> None:
    def made() -> tuple[BatchSampler, Any]:
        sampler, loader = sampled(numbers(), num_workers=workers)
        return sampler, prepare_data_loader(loader, put_on_device=False, use_stateful_dataloader=True)

    for cut in (1, 2, 5, 9):
        found: list[Any] = []
        state: dict[str, Any] = {}
        for count in (cut, 10 - cut if cut > 5 else 3):  # the second resume lies in the same epoch
            sampler, loader = made()
            loader.load_state_dict(state)
            for batch in itertools.islice(loader, count):
                found.append(batch)
                if workers:
                    with pytest.raises(sk.errors.DeliveryUnknown):
                        sampler.state_dict()
                elif len(found) not in {10, cut + 10}:
                    assert sampler.state_dict(rows=False) == STATES[len(found)]
            state = json.loads(json.dumps(loader.state_dict()))
        _, loader = made()
        loader.load_state_dict(state)
        found += loader
        if len(found) == 10:
            found += loader
        assert found == WANTED[: len(found)]
        assert len(found) >= 10


@pytest.mark.usefixtures("accelerate_alone")
def test_loaders_of_accelerate_over_other_samplers_do_not_matter() -> None:
    """Accelerate does not forget a loader whose loop was left."""
    prepared: Any = prepare_data_loader(sampled(numbers())[1], put_on_device=False)
    for _ in prepared:
        break
    sampler, loader = sampled(numbers())
    for count, _ in enumerate(loader, start=1):
        assert sampler.state_dict(rows=False) == STATES[count]
    around: Any = DataLoader(numbers(), batch_sampler=BatchSamplerShard(sampler), collate_fn=list)  # type: ignore[arg-type]
    for _ in prepare_data_loader(around, put_on_device=False):
        with pytest.raises(sk.errors.DeliveryUnknown):
            sampler.state_dict()


@pytest.mark.usefixtures("accelerate_alone")
@pytest.mark.parametrize("workers", [0, 2])
def test_what_stands_between_has_to_be_counted(workers: int) -> None:
    sampler, loader = sampled(numbers(), num_workers=workers)
    skipping = skip_first_batches(loader, 2)
    run = iter(skipping)
    assert next(run) == WANTED[2]
    assert sampler.state_dict(delivered=3, rows=False) == STATES[3]
    ds: Any = numbers()
    shard = BatchSamplerShard(sampler, num_processes=2, process_index=1)
    sharded: Any = DataLoader(ds, batch_sampler=shard, num_workers=workers, collate_fn=list)
    unordered: Any = DataLoader(ds, batch_sampler=sampler, num_workers=2, in_order=False)
    stateful = sampled(numbers(), kind=StatefulDataLoader)[1]
    others: list[Any] = [skipping, sharded, unordered, stateful, [[1]]]
    for other in others:
        with pytest.raises(sk.errors.InvalidArgument, match=r"counting\(\) takes a torch DataLoader over"):
            sampler.counting(other)


def test_more_than_was_requested_cannot_have_been_delivered() -> None:
    sampler = BatchSampler(numbers(), batch_size=4)
    assert sampler.state_dict(delivered=0, rows=False) == STATES[0]
    with pytest.raises(sk.errors.InvalidArgument, match=r"at most 0, .* \(got 1\)"):
        sampler.state_dict(delivered=1)
    for _ in itertools.islice(sampler, 3):
        pass
    assert [sampler.state_dict(delivered=count, rows=False) for count in range(4)] == STATES[:4]
    for count in (4, -1):
        with pytest.raises(sk.errors.InvalidArgument, match="delivered must be"):
            sampler.state_dict(delivered=count)
