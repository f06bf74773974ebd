"""Data files that lie in stores, as they were when they were indexed, and the ranges to fetch of them.

In buckets that keep versions, a rewrite does not disturb a reader. A listing has no versions, so each object
is asked for once. A file in the index folder has the version of each object by its name, with the number made
of its etag; of a damaged file nothing is used.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections import deque
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol, TypeVar, final
from weakref import WeakValueDictionary

import msgspec
import numpy as np

from seekable.errors import IndexStale, InvalidArgument
from seekable.remote.fetching.fetcher import fetcher
from seekable.remote.fetching.wants import ObjectRef, Wants
from seekable.remote.listing import key_listing
from seekable.remote.stores.object_store import Pin
from seekable.storage import addresses
from seekable.storage.files import locked, regular_only, write_atomically
from seekable.storage.mapped import MappedFile, next_use
from seekable.storage.seek_points import CompressedContent

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.remote.cache.held_ranges import Held, HeldRanges
    from seekable.storage.compression import Compression
    from seekable.storage.far import FilesByNumber
    from seekable.storage.ranges import RangeSource
    from seekable.storage.seek_points import SeekPoints

    Numbers = NDArray[np.int64] | NDArray[np.uint64]
    from collections.abc import Sequence

    from seekable.storage.access import CacheChoice
    from seekable.storage.far import Digests

    _Key = tuple[str, int, int, str | None, CacheChoice | None, Digests | None]
    from typing import Self

    from numpy.typing import NDArray

__all__ = [
    "ObjectFile",
    "ObjectRanges",
    "ObjectSlices",
    "fetch_objects",
    "keep_versions",
    "object_ref",
    "pinned",
    "places_ahead",
    "version_of",
    "wants_of",
]

_STRIDES = 4
"""The number of reads that show a stride: this many in about equal strides are not by chance."""

_AHEAD = 12
"""The places that are then fetched ahead, at the same time as the one that is needed."""

_MOST_UNEQUAL = 2
_FAR = 4 << 20

_NO_DESCRIPTOR = -1

_FILE = "versions.json"


@final
class ObjectRanges:
    """The byte ranges of one object, fetched when they are read. Safe from threads."""

    __slots__ = ("_starts", "path", "ref", "size")

    def __init__(self, ref: ObjectRef) -> None:
        """Describe an object; no request is sent.

        Args:
            ref: the address of the object, and its version.
        """
        self.ref = ref
        self.size = ref.pin.size
        self.path = addresses.shown(ref.path)
        """The address in messages."""
        self._starts: deque[int] = deque(maxlen=_STRIDES)

    def range(self, start: int, stop: int) -> memoryview:
        """Return some bytes, ``0 <= start <= stop <= size``, in memory, from the disk cache, or fetched now.

        Raises:
            IndexStale: the object in the store is of another version.
            DataNotFound, AccessDenied, Unreachable: it cannot be read.
        """
        if start >= stop:
            return memoryview(b"")
        self._starts.append(start)
        places = places_ahead(tuple(self._starts), self.size)
        if not places or fetcher().memory.view(self.ref.key, start, stop) is not None:
            return fetcher().range(self.ref, start, stop)
        # Next to a read that has to wait, others cost no time.
        held = self.fetch([start, *places], stop - start)
        found = fetcher().range(self.ref, start, stop)
        del held
        return found

    def fetch(self, starts: Sequence[int], count: int) -> Held:
        """Fetch ranges together; they stay in memory as long as what is returned does.

        Args:
            starts: the first byte of each.
            count: the number of bytes of each; fewer at the end of the object.

        Raises:
            IndexStale, DataNotFound, AccessDenied, Unreachable: as `range`.
        """
        first = np.array(starts, np.int64)
        ranges = np.zeros_like(first), first, np.minimum(first + count, self.size)
        return fetcher().need(Wants((self.ref,), *ranges))


def places_ahead(starts: Sequence[int], size: int) -> list[int]:
    """Return the places of the next reads, if the last reads went through an object in about equal strides.

    A reader that looks for the pages of a column reads so: it goes from the header of one to the next.

    Args:
        starts: the first bytes of the last reads, in their order.
        size: the number of bytes of the object.

    Example:
        >>> places_ahead([0, 1_000_000, 2_000_000, 3_000_000], size=6_000_000)
        [4000000, 5000000]
        >>> places_ahead([0, 1_000_000, 2_000_000, 9_000_000], size=99_000_000)
        []
    """
    strides = [after - before for before, after in pairwise(starts)]
    if len(starts) < _STRIDES or min(strides) <= 0 or max(strides) > min(_MOST_UNEQUAL * min(strides), _FAR):
        return []
    stride = (starts[-1] - starts[0]) / len(strides)
    places = (int(starts[-1] + step * stride) for step in range(1, _AHEAD + 1))
    return [place for place in places if place < size]


def object_ref(
    path: str,
    *,
    size: int,
    identity: int,
    version: str | None = None,
    cache: CacheChoice | None = None,
    digests: Digests | None = None,
) -> ObjectRef:
    """Return the reference to one version of an object; all readers of it in this process share its etag.

    Args:
        path: the address of the object.
        size: its number of bytes.
        identity: the number made of its etag.
        version: the version to read, in a bucket that keeps versions; None for the present one.
        cache: the cache on disk that its dataset has chosen; None for the one that all others share.
        digests: the digests of its units; None for no comparison.
    """
    key = path, size, identity, version, cache, digests
    ref = _refs.get(key)
    if ref is None:
        ref = _refs.setdefault(key, ObjectRef(path, Pin(size, identity, version=version), cache, digests))
    return ref


_refs: WeakValueDictionary[_Key, ObjectRef] = WeakValueDictionary()


@final
class _ObjectContent:
    """The bytes of an object, of which slices are fetched when they are taken."""

    __slots__ = ("_source",)

    def __init__(self, source: RangeSource) -> None:
        self._source = source

    def __getitem__(self, at: slice) -> memoryview:
        """Return some bytes, after fetching those that are not on this machine."""
        start, stop, _ = at.indices(self._source.size)
        return self._source.range(start, max(start, stop))


@final
class ObjectFile(MappedFile):
    """An object of a store, as it was when it was indexed: its view is the content. Safe from threads.

    It takes no descriptor, and `check` sends no request: each answer of the store is compared with the
    version that was indexed.
    """

    __slots__ = ("_content", "_source")

    def __init__(self, ref: ObjectRef, *, kind: Compression | None, points: SeekPoints | None) -> None:
        """Send no request.

        Args:
            ref: the address of the object, and its version.
            kind: the compression of the object, None if it is not compressed.
            points: the seek points of a compressed one.
        """
        self.path = ref.path
        self.size = ref.pin.size
        self.mtime_ns = ref.pin.identity
        self.last_use = next_use()
        self.reader = None
        self._descriptor = _NO_DESCRIPTOR
        self._source = ObjectRanges(ref)
        self.name = self._source.path
        raw = _ObjectContent(self._source)
        self._content: CompressedContent | None = None
        self.view = raw
        if kind is not None and points is not None:
            key = (self.mtime_ns, self.size)
            self.view = self._content = CompressedContent(self.name, key, raw, kind=kind, points=points)

    @property
    def source(self) -> RangeSource:
        """The byte ranges of the object, compressed as it is."""
        return self._source

    @property
    def is_compressed(self) -> bool:
        """True if the view is decompressed content."""
        return self._content is not None

    @property
    def ref(self) -> ObjectRef:
        """The address of the object, and its version."""
        return self._source.ref

    def check(self) -> None:
        """Do nothing: each answer of the store is checked."""

    def advise(self, start: int, end: int) -> None:
        """Do nothing: bytes are fetched by `fetch_objects` and by the look-ahead of loaders."""

    def span_to_fetch(self, start: int, end: int) -> tuple[int, int]:
        """Return the bytes of the object that hold some content; an empty span if they are in memory.

        Args:
            start: the first byte of the content.
            end: the byte after its last.
        """
        if self._content is None or start >= end:
            return start, end
        return self._content.span_to_read(start, end) or (0, 0)


def wants_of(files: FilesByNumber, which: Int64s, starts: Numbers, ends: Numbers) -> Wants:
    """Return the ranges of objects that hold some content; content in memory, and local files, are left out.

    Args:
        files: the files.
        which: the index of each range's file, int64.
        starts: its first byte in the content, int64 or uint64.
        ends: the byte after its last.
    """
    numbers, inverse = np.unique(which, return_inverse=True)
    opened = [files.mapped(file) for file in numbers.tolist()]
    objects = [each for each in opened if isinstance(each, ObjectFile)]
    refs = tuple(each.ref for each in objects)
    is_object = np.array([isinstance(each, ObjectFile) for each in opened], np.bool_)
    rows = np.flatnonzero(is_object[inverse] & (starts < ends))
    among = (np.cumsum(is_object) - 1)[inverse[rows]]
    first, last = starts[rows].astype(np.int64), ends[rows].astype(np.int64)
    if any(each.is_compressed for each in objects):
        spans = [
            objects[number].span_to_fetch(start, end)
            for number, start, end in zip(among.tolist(), first.tolist(), last.tolist(), strict=True)
        ]
        first, last = np.array(spans, np.int64).reshape(-1, 2).T
        some = first < last
        among, first, last = among[some], first[some].copy(), last[some].copy()
    return Wants(refs, among, first, last)


def fetch_objects(files: FilesByNumber, which: Int64s, starts: Numbers, ends: Numbers) -> Held | None:
    """Fetch the bytes of records of objects, many at once; see `wants_of` for the arguments.

    Returns:
        The bytes in memory, which are there as long as the caller keeps this; None if there is nothing to
        fetch.

    Raises:
        IndexStale: an object is of another version than the one that was indexed.
        DataNotFound, AccessDenied, Unreachable: bytes cannot be fetched.
    """
    wants = wants_of(files, which, starts, ends)
    return fetcher().need(wants) if len(wants) else None


@final
class ObjectSlices:
    """Slices of some files for readers of many records: those in memory are found by whole arrays."""

    __slots__ = ("_files", "_firsts", "_memory")

    def __init__(self, files: FilesByNumber, count: int) -> None:
        """Open no file yet.

        Args:
            files: the files, some of which are objects of stores.
            count: the number of the files.
        """
        self._files = files
        self._firsts = np.full(count, -1, np.int64)
        self._memory: HeldRanges | None = None

    def read(self, which: Int64s, starts: Numbers, ends: Numbers) -> list[memoryview]:
        """Return the bytes of ranges, after fetching together those that are not here; see `wants_of`.

        Raises:
            IndexStale: a file is of another version than the one that was indexed.
            DataNotFound, AccessDenied, Unreachable: bytes cannot be fetched.
        """
        reading, first, last = fetcher(), starts.astype(np.int64), ends.astype(np.int64)
        if reading.memory is not self._memory:  # In a forked child, and after the end of a fetcher.
            self._memory = reading.memory
            self._firsts[:] = -1
        found = reading.memory.cells.find(self._firsts[which], first, last)
        missing = found.missing
        if not missing.size:
            reading.note_reads(len(which), int((last - first).sum()))
            return found.views()  # type: ignore[return-value]
        return self._fetched(which, first, last, missing)

    def _fetched(self, which: Int64s, starts: Int64s, ends: Int64s, missing: Int64s) -> list[memoryview]:
        held = fetch_objects(self._files, which, starts, ends)
        cells = fetcher().memory.cells
        for file in np.unique(which[missing]).tolist():
            mapped = self._files.mapped(file)
            mapped.check()
            if isinstance(mapped, ObjectFile) and not mapped.is_compressed:
                self._firsts[file] = cells.first(mapped.ref.key)
        views = cells.find(self._firsts[which], starts, ends).views()
        for row, view in enumerate(views):
            if view is None:
                file, start, end = int(which[row]), int(starts[row]), int(ends[row])
                views[row] = self._files.mapped(file).view[start:end]
        del held
        return views  # type: ignore[return-value]


_Versions = dict[str, tuple[int, str]]
"""By the name of an object, the number made of its etag, and its version."""


class _IndexedFiles(Protocol):
    """Indexed files, such as a `FileSet`."""

    @property
    def runs(self) -> tuple[tuple[str, str, int], ...]: ...

    @property
    def mtimes_ns(self) -> NDArray[np.int64]: ...

    def names(self) -> list[str]: ...

    def by_versions(self) -> Self: ...


F = TypeVar("F", bound=_IndexedFiles)


def pinned(files: F) -> F:
    """Return the same files, of which objects are read by the versions that they have now.

    Raises:
        InvalidArgument: a bucket keeps no versions.
        IndexStale: an object is another one than the one that was indexed.
        AccessDenied, Unreachable: a version cannot be asked for.
    """
    names, identities = iter(files.names()), iter(files.mtimes_ns.tolist())
    for root, folder, count in files.runs:
        own = list(itertools.islice(names, count)), list(itertools.islice(identities, count))
        if "://" in root:
            keep_versions(folder, root, *own)
    return files.by_versions()


def keep_versions(folder: str, root: str, names: Sequence[str], identities: Sequence[int]) -> None:
    """Keep the versions of objects beside their index; those that are kept already are not asked for.

    Args:
        folder: the index folder.
        root: the address of the folder of the objects.
        names: their names, relative to it.
        identities: the numbers made of their etags when they were indexed.

    Raises:
        InvalidArgument: the bucket keeps no versions.
        IndexStale: an object is another one than the one that was indexed.
        AccessDenied, Unreachable: a version cannot be asked for.
        OSError: the index folder cannot be written.
    """
    path = os.path.join(folder, _FILE)
    kept, fresh = _read(path), _Versions()
    wanted = dict(zip(names, identities, strict=True))
    missing = [name for name, identity in wanted.items() if kept.get(name, (-1, ""))[0] != identity]
    found = key_listing.stat_each([f"{root}/{name}" for name in missing])
    for name in missing:
        address = f"{root}/{name}"
        stat = found[address]
        if stat is None or stat.identity != wanted[name]:
            message = f"{addresses.shown(address)!r} was changed after it was listed; open the dataset again"
            raise IndexStale(message)
        if stat.version in (None, "null"):
            message = (
                f'pin="version" needs a bucket that keeps versions, and {addresses.shown(address)!r} has '
                f"none: leave pin= out of sk.Storage, or turn versions on for the bucket and write the "
                f"objects again"
            )
            raise InvalidArgument(message)
        fresh[name] = wanted[name], str(stat.version)
    if fresh:
        with locked(f"{path}.lock", waiting=lambda: None):
            _decoded.cache_clear()
            write_atomically(path, msgspec.json.encode(_read(path) | fresh))
            _decoded.cache_clear()


def version_of(folder: str, name: str, identity: int) -> str:
    """Return the version of an object that was kept.

    Args:
        folder: the index folder.
        name: the name of the object, relative to the folder of the data.
        identity: the number made of its etag when it was indexed.

    Raises:
        IndexStale: its version was not kept.
    """
    path = os.path.join(folder, _FILE)
    kept = _read(path).get(name)
    if kept is None or kept[0] != identity:
        message = f"{path!r} has no version of {name!r} as it was indexed: open the dataset again"
        raise IndexStale(message)
    return kept[1]


def _read(path: str) -> _Versions:
    with contextlib.suppress(OSError, ValueError):
        return _decoded(path, os.stat(path).st_mtime_ns)
    return {}


@lru_cache(maxsize=16)
def _decoded(path: str, _mtime_ns: int) -> _Versions:
    with open(path, "rb", opener=regular_only) as file:
        return msgspec.json.decode(file.read(), type=_Versions)
