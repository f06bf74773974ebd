"""Each harmed answer of each server: the right bytes are delivered, or an error; never other bytes."""

from __future__ import annotations

import random
import re
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from tests.remote.acceptance.faults import LASTING, PASSING, QUICK
from tests.remote.conftest import SERVERS, WRITABLE
from tests.remote.proxy import Fault
from tests.thrift import some

import seekable as sk
from seekable.remote import mounts
from seekable.remote.cache.disk_cache import UNIT_BYTES
from seekable.remote.fetching.fetcher import fetcher
from seekable.remote.fetching.wants import ObjectRef, Wants
from seekable.remote.stores.object_store import Pin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.remote.proxy import Front, Proxies
    from tests.remote.servers.bucket import Bucket

CONTENT = random.Random(0).randbytes(11_000_000)
EACH = ["nginx", *(pytest.param(name, marks=pytest.mark.exhaustive) for name in WRITABLE)]
KEY = "folder/an object.bin"


@pytest.fixture
def harmed(store: Bucket, proxies: Proxies, forget: Callable[[], None]) -> Iterator[tuple[Front, ObjectRef]]:
    """An object of CONTENT behind a proxy, of which nothing is here."""
    forget()
    store.upload({KEY: CONTENT})
    front = proxies.before(store.server)
    behind = store.behind(front)
    path = mounts.mount(f"{behind.url}/{KEY}", {**behind.options, **QUICK})
    key = mounts.store_of(path)[1]
    stat = fetcher().run(lambda opened: opened.stat(key), path=path)
    yield front, ObjectRef(path, Pin(stat.size, stat.identity))
    front.shut()


def spans() -> Iterator[tuple[int, int]]:
    """Yield ranges that lie apart, further than units of the cache are long."""
    return ((start, start + 2000) for start in range(1000, len(CONTENT), 2 * UNIT_BYTES))


@pytest.mark.parametrize("store", EACH, indirect=True)
def test_a_harmed_answer_is_asked_for_again(harmed: tuple[Front, ObjectRef]) -> None:
    front, ref = harmed
    ranges = spans()
    front.log(clear=True)
    for fault in PASSING.values():
        front.rule(fault, target="bytes=")
        start, stop = next(ranges)
        assert fetcher().range(ref, start, stop) == CONTENT[start:stop]
        assert [noted.fault for noted in front.log(clear=True)][:1] == [fault.encoded()["name"]]


@pytest.mark.exhaustive
@pytest.mark.parametrize("store", SERVERS, indirect=True)
def test_harm_that_lasts_is_an_error_that_names_the_object(harmed: tuple[Front, ObjectRef]) -> None:
    front, ref = harmed
    options = {name: value for name, value in mounts.options_of(ref.path).values.items() if name not in QUICK}
    mounts.mount(ref.path, {**options, "retries": 1})
    ranges = spans()
    for fault, error in LASTING.values():
        front.rule(fault, target="bytes=", count=1000)
        start, stop = next(ranges)
        with pytest.raises(error, match=re.escape(KEY.rpartition("/")[2])):
            fetcher().range(ref, start, stop)
        front.calm()
        assert fetcher().range(ref, start, stop) == CONTENT[start:stop]
    for fault in (Fault(longer=100), Fault(whole=True), Fault(etag=""), Fault(status=412)):
        front.rule(fault, target="bytes=", count=1000)
        start, stop = next(ranges)
        with suppress(sk.SeekableError):
            assert fetcher().range(ref, start, stop) == CONTENT[start:stop]
        front.calm()


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(some(8)))
@pytest.mark.parametrize("store", SERVERS, indirect=True)
def test_many_ranges_under_random_faults(seed: int, harmed: tuple[Front, ObjectRef]) -> None:
    front, ref = harmed
    front.by_chance(seed, dict.fromkeys(PASSING.values(), 0.04), most_in_a_row=1)
    wanted = [Wants.of(ref, start, stop) for start, stop in spans()]
    held = fetcher().need(Wants.joined(wanted))
    for start, stop in spans():
        assert fetcher().range(ref, start, stop) == CONTENT[start:stop]
    del held
