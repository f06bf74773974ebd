"""The checks of ``seekable doctor`` on data: its files, index and free space, and its store."""

from __future__ import annotations

import asyncio
import os
import re
import statistics
import time
from dataclasses import dataclass, replace
from itertools import cycle, islice
from operator import methodcaller
from typing import TYPE_CHECKING

from seekable.cli.machine_checks import Finding, can_be_written, graded
from seekable.errors import SeekableError
from seekable.formats.classify import classify
from seekable.index.catalog import CATALOG, read_table
from seekable.index.index_location import Place, find_index
from seekable.remote.fetching.fetcher import fetcher
from seekable.remote.index.publishing import PublishedFolder
from seekable.remote.mounts import mounted, options_of, store_of
from seekable.remote.stores.fsspec_store import FsspecStore
from seekable.remote.stores.object_store import Passing, Pin
from seekable.remote.stores.obstore_store import ObstoreStore, WholeUrls
from seekable.storage.access import Storage
from seekable.storage.addresses import is_address, parse, shown
from seekable.storage.listing import FoundFiles
from seekable.storage.memory import bytes_in_words
from seekable.storage.paths import status

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.remote.stores.object_store import Stat, Store

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_MAGIC = re.compile(r"[*?\[{]")
_MOUNTS = "/proc/self/mounts"
_NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "lustre", "fuse.sshfs", "fuse.s3fs", "fuse.gcsfuse", "9p"}
)
_AHEAD_SECONDS = 60
_LITTLE_ROOM_BYTES = 1 << 30


def data_findings(path: str, *, index_dir: str | None) -> Iterator[Finding]:
    """Yield the findings on the files of some data, on its index, and on the free space.

    Of data in a store come those on the store first, and where a file cannot be found or read that is one.

    Raises:
        DataNotFound: there is no such data on this machine.
    """
    if "://" not in path:
        yield from _found_files(path, index_dir=index_dir)
        return
    with mounted(path, Storage(), index_dir=index_dir) as renamed:
        findings = [*_store_findings(_folder(str(renamed)))]
        if all(finding.level != "bad" for finding in findings):
            try:
                findings += _found_files(_without_scheme(str(renamed)), index_dir=index_dir)
            except (SeekableError, OSError) as error:
                findings.append(graded("data", "files", "not found", bad=str(error)))
        yield from sorted(findings, key=lambda finding: finding.group == "data")


def _without_scheme(source: str) -> str:
    """Return the address after the scheme of a spec; a spec of tokens is returned as it is."""
    is_tokens = source.startswith(("megatron:", "tokens:"))
    return source if is_tokens else _address_in(source)


def _address_in(source: str) -> str:
    """Return the address in a source, which is all of it or stands after the scheme of a spec."""
    found = _SCHEME.search(source)
    return source[found.start() :] if found else source


def _folder(source: str) -> str:
    """Return the address of the folder of a source: its fixed part.

    Example:
        >>> _folder("scp:s3://bucket/feats.scp"), _folder("s3://bucket/web/*.jsonl"), _folder("s3://bucket/web")
        ('s3://bucket', 's3://bucket/web', 's3://bucket/web')
    """
    address = _address_in(source)
    key = address.partition("://")[2].partition("/")[2]
    fixed = address.removesuffix(key) + _MAGIC.split(key)[0]
    folder, _, name = fixed.rpartition("/")
    is_file = fixed != address or ("." in name and not folder.endswith("/"))
    return folder if is_file else fixed


def _found_files(path: str, *, index_dir: str | None) -> Iterator[Finding]:
    for found in classify(path, index_dir=index_dir).found:
        place = find_index(found.root, index_dir=index_dir)
        yield _files(found)
        yield _index(place)
        if is_address(found.root):
            yield _published(found.root)
        yield _room(place)
        if is_address(found.root):
            yield from _range_findings([os.path.join(found.root, name) for name in found.names])


def _published(root: str) -> Finding:
    folder = PublishedFolder(root)
    try:
        is_there = folder.stat(CATALOG) is not None
    except (SeekableError, OSError):
        is_there = False
    way = "" if root.startswith("http") else ": `seekable index --publish` writes it, for all machines"
    value = folder.shown if is_there else f"none in {folder.shown}{way}"
    return graded("data", "published index", value)


def _files(found: FoundFiles) -> Finding:
    if is_address(found.root):
        sizes = [status(os.path.join(found.root, name)).size for name in found.names]
        value = f"{shown(found.root)}: {len(found.names):,} object(s), {bytes_in_words(sum(sizes))}"
        return graded("data", "files", value)
    statuses = [os.stat(os.path.join(found.root, name)) for name in found.names]
    size = sum(each.st_size for each in statuses)
    value = (
        f"{found.root}: {len(found.names):,} file(s), {bytes_in_words(size)}, on {_filesystem(found.root)}"
    )
    ahead = max(each.st_mtime for each in statuses) - time.time()
    if ahead > _AHEAD_SECONDS:
        advice = (
            f"a file was modified {ahead:,.0f} s in the future: set the clocks, or a change may go unseen"
        )
        return graded("data", "files", value, warn=advice)
    if _filesystem(found.root) in _NETWORK:
        advice = "random reads over a network are slow unless the data fits in memory: see shuffle(window=)"
        return graded("data", "files", value, warn=advice)
    return graded("data", "files", value)


def _index(place: Place) -> Finding:
    why = " (the data's folder cannot be written)" if place.shared else ""
    folder = place.folder
    if place.shared and read_table(place.shared):
        return graded("data", "index", f"{place.shared}, read only; what it lacks goes to {folder}")
    if not can_be_written(folder):
        bad = "it cannot be written: name a folder that can with --index folder= or SEEKABLE_INDEX_DIR"
        return graded("data", "index", f"{folder}{why}", bad="" if read_table(folder) else bad)
    if read_table(folder):
        return graded("data", "index", f"{folder}{why}")
    damaged = os.path.exists(os.path.join(folder, CATALOG))
    what = "is damaged, and will be built anew" if damaged else "is not there yet"
    return graded("data", "index", f"{folder}{why} {what}")


def _room(place: Place) -> Finding:
    folder = place.folder
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    room = os.statvfs(folder)
    free = room.f_frsize * room.f_bavail
    advice = "an index takes 8 bytes a record; an index build that runs out of room leaves the old one"
    warn = advice if free < _LITTLE_ROOM_BYTES else ""
    return graded("data", "room for it", f"{bytes_in_words(free)} free on {_filesystem(folder)}", warn=warn)


def _filesystem(path: str) -> str:
    """Return the type of the file system of a path, if /proc/self/mounts shows it."""
    best, kind = "", "a file system of unknown type"
    try:
        with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as mounts:
            lines = [line.split(" ") for line in mounts]
    except OSError:
        return kind
    real = os.path.realpath(path)
    for _, point, type_of_it, *_ in lines:
        place = point.replace("\\040", " ").rstrip("/")
        if (real == place or real.startswith(f"{place}/")) and len(place) >= len(best):
            best, kind = place, type_of_it
    return kind


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


def _store_findings(folder: str) -> Iterator[Finding]:
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


def _range_findings(paths: Sequence[str]) -> Iterator[Finding]:
    """Yield the findings on reading some objects, of which a few are read.

    Args:
        paths: the addresses of objects of one store.
    """
    try:
        found = _first_object(paths)
        if found is None:
            yield graded("store", "one range", "not tried: there is no object with bytes")
            return
        read = _ObjectReads(*found)
        yield _one_range(read)
        yield _wrong_etag(read)
        yield _latency(read)
        yield from (_rate(read, at_once) for at_once in _AT_ONCE)
    except (SeekableError, OSError) as error:
        yield graded("store", "one range", "not read", bad=str(error))


@dataclass(frozen=True, slots=True)
class _ObjectReads:
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


def _one_range(read: _ObjectReads) -> Finding:
    stop = min(read.stat.size, _RANGE_BYTES)
    seconds = read.seconds([(0, stop)], at_once=1)
    value = f"{bytes_in_words(stop)} of {shown(read.path)} in {_milliseconds(seconds)}"
    etag = read.stat.etag
    if not etag or etag.startswith("W/"):
        advice = "a change is seen by size and time alone, which may be one second for two contents"
        return graded("store", "one range", f"{value}; the store sends no strong etag", warn=advice)
    return graded("store", "one range", value)


def _wrong_etag(read: _ObjectReads) -> Finding:
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


def _latency(read: _ObjectReads) -> Finding:
    tries = sorted(read.seconds([(0, 1)], at_once=1) for _ in range(_LATENCY_TRIES))
    middle = statistics.median(tries)
    advice = "many requests at once hide it; see whether a store in the same region is at hand"
    value = f"p50 {_milliseconds(middle)}, most {_milliseconds(tries[-1])}, of {_LATENCY_TRIES} requests"
    return graded("store", "latency", value, warn=advice if middle > _SLOW_SECONDS else "")


def _rate(read: _ObjectReads, at_once: int) -> Finding:
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
