"""The byte ranges of one object in a store, of the version that it had when it was listed or indexed."""

from __future__ import annotations

from typing import Protocol, final
from weakref import WeakValueDictionary

from seekable.remote import addresses
from seekable.remote.fetching.fetcher import fetcher
from seekable.remote.fetching.wants import ObjectRef
from seekable.remote.stores.store import Pin

__all__ = ["ObjectRanges", "object_ranges", "object_ref"]


class _Version(Protocol):
    """The size and the identity of an object."""

    @property
    def size(self) -> int:
        """The number of bytes of the object."""

    @property
    def mtime_ns(self) -> int:
        """The number made of its etag."""


@final
class ObjectRanges:
    """The byte ranges of one object, fetched when they are read. Safe from threads."""

    __slots__ = ("path", "ref", "size")

    def __init__(self, ref: ObjectRef) -> None:
        """Send no request.

        Args:
            ref: the address of the object, and its version.
        """
        self.ref = ref
        self.size = ref.pin.size
        self.path = addresses.shown(ref.path)
        """The address in messages."""

    def range(self, start: int, stop: int) -> memoryview:
        """Return some bytes, ``0 <= start <= stop <= size``, in memory, from the disk cache, or fetched now.

        Raises:
            IndexStale: the object in the store is of another version.
            DataNotFound, AccessDenied, Unreachable: it cannot be read.
        """
        if start >= stop:
            return memoryview(b"")
        return fetcher().range(self.ref, start, stop)


def object_ref(path: str, *, size: int, identity: int, version: str | None = None) -> ObjectRef:
    """Return the reference to one version of an object; all readers of it in this process share its etag.

    Args:
        path: the address of the object.
        size: its number of bytes.
        identity: the number made of its etag.
        version: the version to read, in a bucket that keeps versions; None for the present one.
    """
    key = path, size, identity, version
    ref = _refs.get(key)
    if ref is None:
        ref = _refs.setdefault(key, ObjectRef(path, Pin(size, identity, version=version)))
    return ref


def object_ranges(path: str, version: _Version) -> ObjectRanges:
    """Return the byte ranges of an object.

    Args:
        path: its address.
        version: the size and the identity that it must have.
    """
    return ObjectRanges(object_ref(path, size=version.size, identity=version.mtime_ns))


_refs: WeakValueDictionary[tuple[str, int, int, str | None], ObjectRef] = WeakValueDictionary()
