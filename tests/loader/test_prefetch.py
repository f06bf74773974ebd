"""Batches made ahead: in order, no more than asked for, by a thread that starts late, and that ends."""

from __future__ import annotations

import collections
import contextlib
import gc
import itertools
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.loader.busy import next_of_busy, slow, started, threads, work
from tests.loader.flat import batches_of, shuffled

import seekable as sk
from seekable.loader import producers
from seekable.loader.producers import Prefetched, PrefetchedWhenBusy

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    assert left() == []
    yield
    assert left() == []


def left() -> list[threading.Thread]:
    """Return the threads of loaders that somebody holds."""
    if threads():
        gc.collect()
    return threads()


def loader_of(dataset: sk.Dataset | None = None, **arguments: Any) -> sk.Loader:
    given = {"batch_size": 4, "collate": list, "prefetch": 2, **arguments}
    return sk.Loader(shuffled(1000).map(slow) if dataset is None else dataset, **given)


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
    started(iter(loader))
    loader.close()
    assert threads() == []
    with loader:
        run = iter(loader)
        started(run)
    assert threads() == []
    runs = [iter(loader) for _ in range(3)]
    started(runs[-1])
    runs.append(iter(loader))
    assert threads() == []
    started(runs[-1])
    loader.set_epoch(9)
    assert threads() == []


def test_a_thread_ends_when_a_loop_is_left() -> None:
    loader = loader_of()
    for _ in loader:
        work(0.001)
        if threads():
            break
    assert threads() == []
    with contextlib.suppress(ZeroDivisionError):
        for _ in loader:
            work(0.001)
            if threads():
                fails(1)
    # The traceback held the iterator; it is gone.
    gc.collect()
    assert threads() == []


def test_a_thread_ends_with_a_loader_that_nobody_holds() -> None:
    run = iter(loader_of())
    started(run)
    del run
    gc.collect()
    assert threads() == []


def test_loading_a_state_ends_the_thread() -> None:
    loader = loader_of()
    run = iter(loader)
    taken = started(run)
    state = loader.state_dict()
    for _ in range(3):
        loader.load_state_dict(state)
        assert threads() == []
        assert started(run) == batches_of(shuffled(1000), 4)[len(taken) :][: len(taken)]
    loader.close()


def test_a_thread_ends_with_an_error() -> None:
    loader = loader_of(shuffled(1000).map(slow).map(fails_late))
    run = iter(loader)
    with pytest.raises(ZeroDivisionError):
        collections.deque(iter(lambda: next_of_busy(run), None))
    gc.collect()
    assert threads() == []


def fails_late(record: int) -> float:
    return record / (1 - (threading.current_thread() is not threading.main_thread()))


def fails(record: int) -> float:
    return record / 0


def test_no_more_is_made_ahead_than_asked_for() -> None:
    gate = Gate(100)
    items = Prefetched((gate[row] for row in range(100)), depth=3)
    gate.leave.release(100)
    # Three lie ready, and a fourth is in the thread's hand.
    assert next(items) == 0
    for _ in range(5):
        assert gate.was_asked.acquire(timeout=30)
    assert not gate.was_asked.acquire(blocking=False)
    assert next(items) == 1
    assert gate.was_asked.acquire(timeout=30)
    items.close()
    assert len(gate.asked) <= 7


def test_batches_are_made_beside_a_busy_consumer_before_they_are_asked_for() -> None:
    loader = loader_of()
    run = iter(loader)
    count = len(started(run))
    made = threading.Event()

    def seen(record: int) -> int:
        if threading.current_thread() is not threading.main_thread():
            made.set()
        return record

    loader = loader_of(shuffled(1000).map(slow).map(seen))
    run = iter(loader)
    started(run)
    assert made.wait(timeout=30)
    assert loader.step <= count + 1
    assert next(run) == batches_of(shuffled(1000), 4)[loader.step - 1]
    loader.close()


def test_a_consumer_that_only_takes_batches_has_them_made_in_its_thread() -> None:
    makers = set()

    def made(record: int) -> int:
        makers.add(threading.current_thread())
        return record

    assert list(loader_of(shuffled(400).map(made))) == batches_of(shuffled(400), 4)
    assert makers == {threading.main_thread()}


class Clock:
    """The time, which passes when it is told to."""

    def __init__(self) -> None:
        self.now = 1.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("took", "between", "starts"),
    [
        # Seconds of an item, seconds after each item, and whether a thread makes the last one.
        (0.001, [0.001, 0.001], True),
        (0.001, [0.001], False),
        (0.001, [0.001, 0.0, 0.001], True),
        (0.001, [0.5, 0.0, 0.0, 0.5, 0.0, 0.0, 0.5, 0.0], False),
        (0.001, [0.000_1] * 50, False),
        (0.001, [0.000_2] * 2, True),
        (0.000_01, [0.5] * 50, False),
        (10.0, [1.0] * 50, False),
    ],
)
def test_a_thread_starts_after_several_pauses_that_are_worth_it(
    monkeypatch: pytest.MonkeyPatch, took: float, between: list[float], *, starts: bool
) -> None:
    clock = Clock()
    monkeypatch.setattr(producers, "perf_counter", clock)

    def source() -> Iterator[bool]:
        while True:
            clock.now += took
            yield threading.current_thread() is threading.main_thread()

    items = PrefetchedWhenBusy(source(), depth=1)
    for pause in between:
        assert next(items)
        clock.now += pause
    assert next(items) is not starts
    items.close()
    assert threads() == []


@given(st.lists(st.sampled_from([0.0, 0.001]), max_size=12), st.integers(0, 12), st.integers(1, 3))
def test_items_and_their_end_are_those_of_the_source_wherever_the_thread_starts(
    pauses: list[float], count: int, depth: int
) -> None:
    clock = Clock()

    def source() -> Iterator[int]:
        for item in range(count):
            clock.now += 0.001
            yield item
        message = "the end"
        raise LookupError(message)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(producers, "perf_counter", clock)
        items = PrefetchedWhenBusy(source(), depth=depth)
        got = []
        for pause in [*pauses, *[0.0] * 20][:count]:
            got.append(next(items))
            clock.now += pause
        for _ in range(2 if items.outlives_interrupts else 1):
            with pytest.raises(LookupError, match="the end"):
                next(items)
        items.close()
    assert got == list(range(count))


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


@pytest.mark.usefixtures("forked_programs")
def test_a_program_ends_while_batches_are_made_ahead() -> None:
    code = """
import threading, time
import seekable as sk

run = iter(sk.Loader(sk.from_sequence(range(10**9)), batch_size=10_000, prefetch=2))
first = next(run)[:10].tolist()
while threading.active_count() == 1:
    until = time.perf_counter() + 0.01
    while time.perf_counter() < until: pass
    next(run)
print(first)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == str(list(range(10)))
    assert done.stderr == ""
