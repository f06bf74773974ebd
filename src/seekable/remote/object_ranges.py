"""The byte ranges of one object in a store, of the version that it had when it was listed or indexed."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import TYPE_CHECKING, final
from weakref import WeakValueDictionary

import numpy as np

from seekable.remote.fetching.fetcher import fetcher
from seekable.remote.fetching.wants import ObjectRef, Wants
from seekable.remote.stores.store import Pin
from seekable.storage import addresses

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.remote.cache.held_ranges import Held
    from seekable.storage.access import CacheChoice
    from seekable.storage.far import Digests

    _Key = tuple[str, int, int, str | None, CacheChoice | None, Digests | None]

__all__ = ["ObjectRanges", "object_ref", "places_ahead"]

_STRIDES = 4
"""The number of reads that show a stride: this many in about equal strides are no chance."""

_AHEAD = 12
"""The places that are then fetched ahead, at the same time as the one that is needed."""

_MOST_UNEQUAL = 2
_FAR = 4 << 20


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
