from __future__ import annotations

import asyncio
import itertools
import signal
import threading
import time
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest
from tests.remote.fetching.fake_store import FakeStore, content, failing, hang

import seekable as sk
from seekable.remote.fetching import loop_thread
from seekable.remote.fetching.budget import LEAST_AHEAD_BYTES
from seekable.remote.fetching.wants import ObjectRef, Wants
from seekable.remote.stores.object_store import Passing, Pin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.remote.fetching.fetcher import Fetcher
    from seekable.remote.stores.object_store import Store

SECONDS = 30

A, B = content(100_000), content(3_000_000, seed=7)


@pytest.fixture
def store() -> FakeStore:
    return FakeStore({"a": A, "b": B})


@pytest.fixture
def fetcher(store: FakeStore) -> Iterator[Fetcher]:
    fetcher = store.fetcher()
    yield fetcher
    fetcher.close()


def test_ranges_are_fetched_once_while_they_are_held(store: FakeStore, fetcher: Fetcher) -> None:
    refs = store.ref("a"), store.ref("b")
    wants = Wants(refs, np.array([0, 1, 0]), np.array([10, 2_000_000, 500]), np.array([20, 2_900_000, 700]))
    held = fetcher.need(wants)
    assert store.reads == [("a", 10, 700), ("b", 2_000_000, 2_900_000)]
    assert held.held_bytes == 690 + 900_000
    assert fetcher.range(refs[0], 600, 700) == A[600:700]
    assert fetcher.range(refs[1], 2_000_001, 2_900_000) == B[2_000_001:2_900_000]
    assert len(store.reads) == 2
    assert fetcher.range(refs[0], 690, 710) == A[690:710]
    assert store.reads[2:] == [("a", 700, 710)]


def test_a_request_that_fails_is_sent_again(store: FakeStore, fetcher: Fetcher) -> None:
    store.script = iter(
        [failing(Passing("reset")), failing(Passing("503", refused=True))] + [failing_not] * 9
    )
    assert fetcher.range(store.ref("a"), 5, 9) == A[5:9]
    report = fetcher.report()
    assert (report.requests, report.retries, report.refusals, report.fetched_bytes) == (3, 2, 1, 4)


async def failing_not() -> None:
    pass


def test_an_error_of_the_store_ends_the_read(store: FakeStore, fetcher: Fetcher) -> None:
    store.script = iter([failing(sk.DataNotFound("gone"))])
    with pytest.raises(sk.DataNotFound, match="gone"):
        fetcher.range(store.ref("a"), 5, 9)
    assert len(store.reads) == 1


def test_a_range_beyond_the_object_is_refused(store: FakeStore, fetcher: Fetcher) -> None:
    with pytest.raises(sk.errors.InvalidArgument, match="bytes 5 to 100001 are not within the object"):
        fetcher.range(store.ref("a"), 5, 100_001)
    assert fetcher.range(store.ref("a"), 5, 5) == memoryview(b"")
    assert not store.reads


def test_what_is_wanted_ahead_is_here_when_it_is_needed(store: FakeStore, fetcher: Fetcher) -> None:
    ahead = fetcher.ahead()
    wants = Wants.of(store.ref("b"), 0, 1_000_000)
    ahead.want(wants)
    fetcher.need(wants)
    assert store.reads == [("b", 0, 1_000_000)]
    ahead.close()


def test_run_retries_each_call_of_the_store(store: FakeStore, fetcher: Fetcher) -> None:
    store.script = iter([failing(Passing("reset")), failing_not])
    assert fetcher.run(lambda found: found.stat("a"), path="fake://bucket/a").size == len(A)


@pytest.fixture
def interrupts() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, also where a shell began the tests in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_ends_the_wait_and_the_request(store: FakeStore, fetcher: Fetcher) -> None:
    ended = threading.Event()

    async def interrupted() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        try:
            await hang()
        finally:
            ended.set()

    store.script = itertools.chain([interrupted], itertools.repeat(hang))  # a hedge may come between
    with pytest.raises(KeyboardInterrupt):
        fetcher.need(Wants.of(store.ref("a"), 0, 10))
    assert ended.wait(SECONDS)
    assert store.cancelled >= 1


def test_close_cancels_requests_and_refuses_further_ones(store: FakeStore, fetcher: Fetcher) -> None:
    begun = threading.Event()

    async def begin_and_hang() -> None:
        begun.set()
        await hang()

    store.script = itertools.chain([begin_and_hang], itertools.repeat(hang))
    ahead = fetcher.ahead()
    ahead.want(Wants.of(store.ref("a"), 0, 10))
    assert begun.wait(SECONDS)
    oldest = fetcher.report().oldest
    assert oldest is not None
    assert oldest.startswith("fake://bucket/a, bytes 0 to 10, sent ")
    fetcher.close()
    assert store.cancelled == 1
    with pytest.raises(RuntimeError, match="closed"):
        fetcher.range(store.ref("a"), 0, 10)
    ahead.want(Wants.of(store.ref("a"), 0, 10))


def test_a_close_begins_no_request_of_a_look_ahead(store: FakeStore, fetcher: Fetcher) -> None:
    """The end of a cancelled request makes room for the next one."""
    store.script = itertools.repeat(hang)
    store.objects = {str(number): content(100) for number in range(500)}
    refs = tuple(store.ref(str(number)) for number in range(500))
    ahead = fetcher.ahead()
    ahead.want(Wants(refs, np.arange(500), *np.array([[0], [10]]).repeat(500, axis=1)))
    while not store.reads:
        time.sleep(0)
    fetcher.close()
    assert (store.open, store.cancelled) == (0, len(store.reads))


def test_a_close_waits_while_threads_leave_the_loop(
    store: FakeStore, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads of a client end their requests behind the loop; each refers to it until then."""
    references = iter(range(20, 0, -1))
    monkeypatch.setattr(loop_thread, "_LOOK_SECONDS", 0)
    monkeypatch.setattr(loop_thread, "getrefcount", lambda _: next(references, 0))
    fetcher.range(store.ref("a"), 5, 9)
    fetcher.close()
    assert next(references, None) is None


def test_a_reader_gets_in_before_a_look_ahead_that_fills_all_places(
    store: FakeStore, fetcher: Fetcher
) -> None:
    """Requests of a look-ahead that hang do not keep another reader from its bytes for good."""
    store.script = itertools.chain([hang] * 63, itertools.repeat(failing_not))
    refs = tuple(ObjectRef(f"fake://bucket/{number}", Pin(100, 1)) for number in range(63))
    store.objects |= {str(number): content(100) for number in range(63)}
    ahead = fetcher.ahead()
    ahead.want(Wants(refs, np.arange(63), *np.array([[0], [10]]).repeat(63, axis=1)))
    while fetcher.report().requests < 63:
        time.sleep(0)
    assert fetcher.range(store.ref("a"), 0, 10) == A[:10]
    ahead.close()


def test_hung_requests_are_hedged(store: FakeStore, fetcher: Fetcher) -> None:
    refs = tuple(ObjectRef(f"fake://bucket/{number}", Pin(100, 1)) for number in range(200))
    store.objects |= {str(number): content(100) for number in range(200)}
    store.script = itertools.chain([failing_not] * 190, [hang] * 5, itertools.repeat(failing_not))
    fetcher.need(Wants(refs, np.arange(200), *np.array([[0], [10]]).repeat(200, axis=1)))
    report = fetcher.report()
    assert (report.requests, report.hedges, report.retries) == (205, 5, 0)


def test_a_wait_in_the_thread_of_requests_is_refused(store: FakeStore, fetcher: Fetcher) -> None:
    async def read_again(_: Store) -> None:
        fetcher.range(store.ref("a"), 0, 10)

    with pytest.raises(RuntimeError, match="waited for in the thread that sends requests"):
        fetcher.run(read_again, path="fake://bucket/a")


def test_listings_go_on_behind_the_last_page(store: FakeStore, fetcher: Fetcher) -> None:
    store.objects = {f"{number:02}": b"" for number in range(7)}
    store.script = iter([failing_not, failing(Passing("reset")), *[failing_not] * 9])

    async def keys(found: Store) -> list[str]:
        return [stat.key async for page in found.list("") for stat in page]

    assert fetcher.run(keys, path="fake://bucket/a") == sorted(store.objects)
    assert fetcher.report().retries == 1


class Zeros:
    """An object of zeros that takes no memory."""

    def __len__(self) -> int:
        return 1 << 30

    def __getitem__(self, at: slice) -> bytes:
        return bytes(at.stop - at.start)


def test_a_look_ahead_stops_at_its_budget_and_goes_on_from_the_front(
    store: FakeStore, fetcher: Fetcher
) -> None:
    store.objects["zeros"] = cast("bytes", Zeros())
    ref, size = store.ref("zeros"), len(Zeros())
    ahead = fetcher.ahead()
    ahead.want(Wants.of(ref, 0, size))
    while sum(stop - start for _, start, stop in store.reads) < LEAST_AHEAD_BYTES or store.open:
        time.sleep(0)
    ahead.want(Wants.of(ref, 8 << 20, size))
    while sum(stop - start for _, start, stop in store.reads) < LEAST_AHEAD_BYTES + (8 << 20) or store.open:
        time.sleep(0)
    assert [start for _, start, _ in sorted(store.reads)] == [number << 23 for number in range(9)]
    while ahead.waiting_bytes != size - LEAST_AHEAD_BYTES - (8 << 20):
        time.sleep(0)
    fetcher.need(Wants.of(ref, 70 << 20, 71 << 20))
    assert len(set(store.reads)) == len(store.reads)
    ahead.close()


def test_several_readers_share_what_is_fetched_ahead(store: FakeStore, fetcher: Fetcher) -> None:
    async def landed() -> None:
        while tasks := [flight.task for ahead in aheads for flight in ahead._flights]:
            await asyncio.wait(tasks)
            await asyncio.sleep(0)

    size, whole = 40 << 20, bytes(40 << 20)
    store.objects = {str(number): whole for number in range(4)}
    aheads = [fetcher.ahead() for _ in store.objects]
    for number, ahead in enumerate(aheads):
        ahead.want(Wants.of(store.ref(str(number)), 0, size))
    fetcher._loop.call(landed())
    fetched = [size - ahead.waiting_bytes for ahead in aheads]
    share = LEAST_AHEAD_BYTES // len(aheads)
    assert min(fetched) == share
    assert sum(fetched) <= size + 3 * share, "more came than for the first one before it had company"
    for ahead in aheads[:3]:
        ahead.close()
    aheads[3].want(Wants.of(store.ref("3"), 0, size))
    fetcher._loop.call(landed())
    assert not aheads[3].waiting_bytes
    aheads[3].close()


def test_what_a_look_ahead_drops_leaves_memory(store: FakeStore, fetcher: Fetcher) -> None:
    store.objects = {str(number): bytes(1 << 20) for number in range(100)}
    refs = tuple(store.ref(str(number)) for number in range(100))
    ahead = fetcher.ahead()
    for number in range(0, 100, 10):
        wants = Wants(refs, *np.array([[row, 0, 1 << 20] for row in range(number, min(100, number + 20))]).T)
        ahead.want(wants)
        held = fetcher.need(wants.take(np.arange(10)))
        assert held.held_bytes == 10 << 20
        assert fetcher.memory.total_bytes <= (64 + 10 + 20) << 20
    assert len(store.reads) == 100
    ahead.close()
