from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.remote.fetching.fake_store import FakeStore, content, failing

import seekable as sk
from seekable.remote.fetching.wants import Wants
from seekable.remote.stores.store import Passing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.remote.fetching.fetcher import Fetcher

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
    assert store.reads[2:] == [("a", 690, 710)]


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
    with pytest.raises(sk.InvalidArgument, match="bytes 5 to 100001 are not within the object"):
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
