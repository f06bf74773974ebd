"""Any schedule of faults gives the right bytes or an error, in bounded time."""

from __future__ import annotations

import gc
import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.remote.fetching.fake_store import FakeStore, Fault, content, failing, good
from tests.thrift import some

import seekable as sk
from seekable.remote.cache.disk_cache import DiskCache
from seekable.remote.fetching.fetcher import Fetcher
from seekable.remote.fetching.sending import Patience
from seekable.remote.fetching.wants import Wants
from seekable.remote.stores.object_store import Passing
from seekable.storage.addresses import UNIT_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

OBJECTS = {"a": content(3 * UNIT_BYTES + 77), "b": content(1000, seed=3), "c": content(2_000_000, seed=5)}
KEYS = list(OBJECTS)
PATIENCE = Patience(tries=4, total_seconds=20.0, first_wait=0.0001, longest_wait=0.001)

FAULTS: dict[str, Callable[[], Fault]] = {
    "good": lambda: good,
    "reset": lambda: failing(Passing("connection reset")),
    "slow down": lambda: failing(Passing("503", refused=True, retry_after=0.001)),
    "stale": lambda: failing(sk.IndexStale("another etag")),
    "denied": lambda: failing(sk.errors.AccessDenied("expired")),
    "gone": lambda: failing(sk.DataNotFound("no such key")),
}
SCHEDULES = st.lists(
    st.sampled_from([name for name in FAULTS for _ in range({"good": 12, "reset": 4}.get(name, 1))]),
    max_size=40,
)


@st.composite
def wants_of(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    rows = []
    for number in draw(st.lists(st.integers(0, 2), min_size=1, max_size=8)):
        size = len(OBJECTS[KEYS[number]])
        start = draw(st.integers(0, size))
        rows.append((number, start, min(size, start + draw(st.integers(0, 400_000)))))
    return rows


def error_of(fetcher: Fetcher, wants: Wants) -> str | None:
    """Read some ranges and compare them; the message of the error if there is one."""
    try:
        held = fetcher.need(wants)
        columns = (wants.which.tolist(), wants.starts.tolist(), wants.stops.tolist())
        for number, start, stop in zip(*columns, strict=True):
            assert fetcher.range(wants.objects[number], start, stop) == OBJECTS[KEYS[number]][start:stop]
        assert held.held_bytes >= max(wants.stops - wants.starts)
    except (sk.IndexStale, sk.errors.AccessDenied, sk.DataNotFound, sk.errors.Unreachable) as error:
        return str(error)
    return None


def check_schedule(
    schedule: list[str],
    calls: list[list[tuple[int, int, int]]],
    disk: Callable[[Any], Any],
    *,
    is_ahead: bool,
) -> None:
    store = FakeStore(dict(OBJECTS), faults=[FAULTS[name]() for name in schedule])
    fetcher = Fetcher(store.store_of, disk=disk, patience_of=lambda _: PATIENCE)
    refs = tuple(map(store.ref, KEYS))
    ahead = fetcher.ahead()
    try:
        for rows in calls:
            wants = Wants(refs, *np.array(rows, np.int64).T.copy())
            if is_ahead:
                ahead.want(wants)
            error = error_of(fetcher, wants)
            assert error is None or error in {"another etag", "expired", "no such key"} or "4 tries" in error
        # Once the faults are over, and what met them has ended, all is well.
        ahead.close()
        store.script = iter([good] * 10**4)
        assert fetcher.range(refs[0], 0, refs[0].pin.size) == OBJECTS["a"]
    finally:
        ahead.close()
        fetcher.close()
    assert store.open == 0


@pytest.mark.parametrize("is_ahead", [False, True], ids=["reads", "reads ahead"])
@pytest.mark.parametrize("has_disk", [False, True], ids=["in memory", "on disk"])
@settings(max_examples=some(9, of=3), deadline=None)
@given(schedule=SCHEDULES, calls=st.lists(wants_of(), min_size=1, max_size=3))
def test_any_schedule_gives_the_right_bytes_or_an_error(
    schedule: list[str], calls: list[list[tuple[int, int, int]]], *, is_ahead: bool, has_disk: bool
) -> None:
    with TemporaryDirectory() as folder:
        disk = DiskCache(str(Path(folder) / "cache"), most_bytes=1 << 30) if has_disk else None
        check_schedule(schedule, calls, lambda _: disk, is_ahead=is_ahead)
        gc.collect()  # maps of files in a folder that goes


@pytest.mark.exhaustive
@pytest.mark.parametrize("is_ahead", [False, True], ids=["reads", "reads ahead"])
@pytest.mark.parametrize("has_disk", [False, True], ids=["in memory", "on disk"])
@settings(max_examples=some(300, of=20), deadline=None)
@given(schedule=SCHEDULES, calls=st.lists(wants_of(), min_size=1, max_size=4))
def test_any_of_many_schedules_gives_the_right_bytes_or_an_error(
    schedule: list[str], calls: list[list[tuple[int, int, int]]], *, is_ahead: bool, has_disk: bool
) -> None:
    with TemporaryDirectory() as folder:
        disk = DiskCache(str(Path(folder) / "cache"), most_bytes=4 << 20) if has_disk else None
        check_schedule(schedule, calls, lambda _: disk, is_ahead=is_ahead)


def test_a_short_answer_is_asked_for_again() -> None:
    store = FakeStore(dict(OBJECTS))
    whole = store.objects["b"]

    async def shorten() -> None:
        store.objects["b"] = whole[:50]

    async def restore() -> None:
        store.objects["b"] = whole

    ref = store.ref("b")
    store.script = iter([shorten, restore])
    fetcher = Fetcher(store.store_of, patience_of=lambda _: PATIENCE)
    assert fetcher.range(ref, 10, 90) == whole[10:90]
    assert fetcher.report().retries == 1
    fetcher.close()


def test_retries_leave_the_random_generators_of_the_user_alone() -> None:
    store = FakeStore(dict(OBJECTS), faults=[failing(Passing("connection reset")), good])
    fetcher = Fetcher(store.store_of, patience_of=lambda _: PATIENCE)
    before = random.getstate()
    assert fetcher.range(store.ref("b"), 0, 1000) == OBJECTS["b"]
    assert fetcher.report().retries == 1
    assert random.getstate() == before
    fetcher.close()
