"""Batches made ahead: in order, no more than asked for, and by a thread that ends."""

from __future__ import annotations

import contextlib
import gc
import itertools
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from tests.loader.flat import batches_of, shuffled

import seekable as sk
from seekable.loader.producers import Prefetched

if TYPE_CHECKING:
    from collections.abc import Iterator


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "seekable-prefetch"]


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    gc.collect()
    assert threads() == []
    yield
    gc.collect()
    assert threads() == []


def loader_of(dataset: sk.Dataset | None = None, **arguments: Any) -> sk.Loader:
    given = {"batch_size": 4, "collate": list, "prefetch": 2, **arguments}
    return sk.Loader(shuffled(1000) if dataset is None else dataset, **given)


class Gate:
    """Records that wait for leave to be read, and say which were asked for."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.asked: list[int] = []
        self.leave = threading.Semaphore(0)
        self.was_asked = threading.Semaphore(0)

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, row: int) -> int:
        self.asked.append(row)
        self.was_asked.release()
        assert self.leave.acquire(timeout=30)
        return row


def test_a_thread_ends_with_its_run() -> None:
    assert list(loader_of()) == batches_of(shuffled(1000), 4)
    assert threads() == []


def test_a_thread_ends_with_close_with_leaving_and_with_a_second_iter() -> None:
    loader = loader_of()
    run = iter(loader)
    next(run)
    assert len(threads()) == 1
    loader.close()
    assert threads() == []
    with loader:
        run = iter(loader)
        next(run)
        assert len(threads()) == 1
    assert threads() == []
    runs = [iter(loader) for _ in range(3)]
    assert len(threads()) == 1
    next(runs[-1])
    loader.set_epoch(9)
    assert threads() == []


def test_a_thread_ends_when_a_loop_is_left() -> None:
    loader = loader_of()
    for _ in loader:
        break
    assert threads() == []
    with contextlib.suppress(ZeroDivisionError):
        for _ in loader:
            fails(1)
    # The traceback held the iterator; it is gone.
    gc.collect()
    assert threads() == []


def test_a_thread_ends_with_a_loader_that_nobody_holds() -> None:
    run = iter(loader_of())
    next(run)
    assert len(threads()) == 1
    del run
    gc.collect()
    assert threads() == []


def test_loading_a_state_replaces_the_thread() -> None:
    loader = loader_of()
    run = iter(loader)
    next(run)
    state = loader.state_dict()
    for _ in range(5):
        loader.load_state_dict(state)
        assert len(threads()) == 1
    assert next(run) == batches_of(shuffled(1000), 4)[1]
    loader.close()


def test_a_thread_ends_with_an_error() -> None:
    loader = loader_of(shuffled(1000).map(fails))
    with pytest.raises(ZeroDivisionError):
        list(loader)
    gc.collect()
    assert threads() == []


def fails(record: int) -> float:
    return record / 0


def test_no_more_is_made_ahead_than_asked_for() -> None:
    gate = Gate(100)
    loader = loader_of(sk.from_sequence(gate), batch_size=1, prefetch=3)
    gate.leave.release(1)
    run = iter(loader)
    assert next(run) == [0]
    gate.leave.release(100)
    # Three lie ready, and a fourth is in the thread's hand.
    for _ in range(5):
        assert gate.was_asked.acquire(timeout=30)
    assert not gate.was_asked.acquire(blocking=False)
    assert next(run) == [1]
    assert gate.was_asked.acquire(timeout=30)
    loader.close()
    assert len(gate.asked) <= 7


def test_batches_are_made_before_they_are_asked_for() -> None:
    gate = Gate(10)
    gate.leave.release(10)
    loader = loader_of(sk.from_sequence(gate), batch_size=1, prefetch=2)
    run = iter(loader)
    assert gate.was_asked.acquire(timeout=30)
    assert loader.step == 0
    assert next(run) == [0]
    loader.close()


def test_an_error_comes_where_its_item_would_have_come() -> None:
    def source() -> Iterator[int]:
        yield 1
        yield 2
        message = "no third"
        raise LookupError(message)

    for depth in (1, 2, 5):
        items = Prefetched(source(), depth=depth)
        assert [next(items), next(items)] == [1, 2]
        for _ in range(2):
            with pytest.raises(LookupError, match="no third"):
                next(items)


def test_many_readers_share_out_the_items() -> None:
    items = Prefetched(iter(range(2000)), depth=3)
    got: list[list[int]] = [[] for _ in range(4)]
    readers = [threading.Thread(target=lambda mine=mine: mine.extend(items)) for mine in got]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(timeout=30)
    assert sorted(itertools.chain.from_iterable(got)) == list(range(2000))
    assert all(mine == sorted(mine) for mine in got)


def test_a_program_ends_while_batches_are_made_ahead() -> None:
    code = """
import seekable as sk
run = iter(sk.Loader(sk.from_sequence(range(10**9)), batch_size=10, prefetch=2))
print(next(run).tolist())
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == str(list(range(10)))
    assert done.stderr == ""
