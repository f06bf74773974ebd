"""The checks of ``seekable doctor`` on a store: credentials, listing, ranges, latency and rate."""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from dataclasses import dataclass, replace
from itertools import cycle, islice
from operator import methodcaller
from typing import TYPE_CHECKING

from seekable.cli.machine_checks import Finding, graded
from seekable.errors import SeekableError
from seekable.remote.fetching.fetcher import fetcher
from seekable.remote.mounts import options_of, store_of
from seekable.remote.stores.fsspec_store import FsspecStore
from seekable.remote.stores.object_store import Passing, Pin
from seekable.remote.stores.obstore_store import ObstoreStore, WholeUrls
from seekable.storage.addresses import parse, shown
from seekable.storage.memory import bytes_in_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.remote.stores.object_store import Stat, Store

__all__ = ["range_findings", "store_findings"]

_WEB = frozenset({"http", "https"})
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
_WRONG_ETAG = '"0123456789abcdef0123456789abcdef"'
_LATENCY_TRIES = 8
_RANGE_BYTES = 256 << 10
_AT_ONCE = (1, 8, 32)
_RANGES = 32
"""The ranges of each measurement of the rate: at most 8 MiB."""

_SLOW_SECONDS = 0.5
_MILLISECONDS = 1000


def store_findings(folder: str) -> Iterator[Finding]:
    """Yield the findings on the store of an address: how it is reached, and its listing.

    Args:
        folder: the address of a folder.
    """
    address = parse(folder)
    try:
        store, _ = store_of(folder)
        yield graded("store", "reached by", _package(store))
        yield _credentials(store)
    except SeekableError as error:
        yield graded("store", "credentials", "not usable", bad=str(error))
        return
    values = options_of(folder).values
    regions = [values.get("region"), values.get("default_region"), *map(os.environ.get, _REGIONS)]
    region = next(filter(None, regions), "") if address.scheme == "s3" else ""
    endpoint = shown(options_of(folder).endpoint(address.scheme)) or "that of the cloud"
    if address.scheme not in _WEB and isinstance(store, ObstoreStore):
        yield graded("store", "endpoint", endpoint + (f", region {region}" if region else ""))
    if address.scheme in _WEB:
        yield graded("store", "listing", "none: a web server has no lists; name the files, or use braces")
        return
    try:
        yield _listing(folder)
    except (SeekableError, OSError) as error:
        yield graded("store", "listing", "refused", bad=str(error))


def range_findings(paths: Sequence[str]) -> Iterator[Finding]:
    """Yield the findings on reading some objects, of which a few are read.

    Args:
        paths: the addresses of objects of one store.
    """
    try:
        found = _first_object(paths)
        if found is None:
            yield graded("store", "one range", "not tried: there is no object with bytes")
            return
        read = _Reading(*found)
        yield _one_range(read)
        yield _wrong_etag(read)
        yield _latency(read)
        yield from (_rate(read, at_once) for at_once in _AT_ONCE)
    except (SeekableError, OSError) as error:
        yield graded("store", "one range", "not read", bad=str(error))


@dataclass(frozen=True, slots=True)
class _Reading:
    """One object, whose ranges are read past all caches."""

    path: str
    stat: Stat

    @property
    def pin(self) -> Pin:
        return Pin(self.stat.size, self.stat.identity, self.stat.etag)

    def seconds(self, ranges: Sequence[tuple[int, int]], *, at_once: int) -> float:
        """Return the seconds in which ranges are read, so many at once."""
        key = parse(self.path).key

        async def read(store: Store) -> None:
            places = asyncio.Semaphore(at_once)

            async def one(start: int, stop: int) -> None:
                async with places:
                    await store.read(key, start, stop, pin=self.pin)

            await asyncio.gather(*(one(*bounds) for bounds in ranges))

        begun = time.perf_counter()
        fetcher().run(read, path=self.path)
        return time.perf_counter() - begun


def _package(store: Store) -> str:
    if isinstance(store, FsspecStore):
        return "fsspec: each object is compared after each range, which is one more request"
    return "obstore: each request says which version it is for"


def _credentials(store: Store) -> Finding:
    if not isinstance(store, ObstoreStore | WholeUrls):
        return graded("store", "credentials", "those of the file system")
    kind = store.credentials
    missing = kind.startswith("none: ")
    return graded("store", "credentials", kind, warn=kind.removeprefix("none: ") if missing else "")


def _listing(folder: str) -> Finding:
    key = parse(folder).key

    async def first_page(store: Store) -> int:
        async for page in store.list(key):
            return len(page)
        return 0

    begun = time.perf_counter()
    count = fetcher().run(first_page, path=folder)
    value = f"{count:,} object(s) in the first page, {_milliseconds(time.perf_counter() - begun)}"
    return graded("store", "listing", value)


def _first_object(paths: Sequence[str]) -> tuple[str, Stat] | None:
    """Return an object with bytes among the first ones, and its description."""
    for path in paths[:_LATENCY_TRIES]:
        stat: Stat = fetcher().run(methodcaller("stat", parse(path).key), path=path)
        if stat.size:
            return path, stat
    return None


def _one_range(read: _Reading) -> Finding:
    stop = min(read.stat.size, _RANGE_BYTES)
    seconds = read.seconds([(0, stop)], at_once=1)
    value = f"{bytes_in_words(stop)} of {shown(read.path)} in {_milliseconds(seconds)}"
    etag = read.stat.etag
    if not etag or etag.startswith("W/"):
        advice = "a change is seen by size and time alone, which may be one second for two contents"
        return graded("store", "one range", f"{value}; the store sends no strong etag", warn=advice)
    return graded("store", "one range", value)


def _wrong_etag(read: _Reading) -> Finding:
    """Return the finding on a range that is asked for under an etag that the object does not have."""
    name = "wrong etag"
    store, key = store_of(read.path)
    if not isinstance(store, ObstoreStore):
        return graded("store", name, "not tried: fsspec has no such request")

    async def once(_: Store) -> None:  # Not by the store of the fetcher, which would try again.
        await store.read(key, 0, 1, pin=replace(read.pin, etag=_WRONG_ETAG))

    try:
        fetcher().run(once, path=read.path)
    except Passing:  # It was refused, and the object is still the one that is pinned.
        return graded("store", name, "refused (412): no request is answered with another version")
    return graded(
        "store", name, "this store ignores If-Match: the etag of each answer is compared in its place"
    )


def _latency(read: _Reading) -> Finding:
    tries = sorted(read.seconds([(0, 1)], at_once=1) for _ in range(_LATENCY_TRIES))
    middle = statistics.median(tries)
    advice = "many requests at once hide it; see whether a store in the same region is at hand"
    value = f"p50 {_milliseconds(middle)}, most {_milliseconds(tries[-1])}, of {_LATENCY_TRIES} requests"
    return graded("store", "latency", value, warn=advice if middle > _SLOW_SECONDS else "")


def _rate(read: _Reading, at_once: int) -> Finding:
    size = min(read.stat.size, _RANGE_BYTES)
    starts = range(0, max(read.stat.size - size, 0) + 1, size)
    tries = _RANGES if at_once > 1 else _LATENCY_TRIES
    ranges = [(start, start + size) for start in islice(cycle(starts), tries)]
    seconds = read.seconds(ranges, at_once=at_once)
    count, total = len(ranges) / seconds, sum(stop - start for start, stop in ranges) / seconds
    value = f"{count:,.0f} requests a second, {bytes_in_words(round(total))} a second"
    return graded("store", f"{at_once} at once", value)


def _milliseconds(seconds: float) -> str:
    return f"{_MILLISECONDS * seconds:,.1f} ms"
