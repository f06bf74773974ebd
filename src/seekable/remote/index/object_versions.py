"""The versions of objects in buckets that keep versions, so that a rewrite does not disturb a reader.

A listing has no versions, so each object is asked for once. A file in the index folder has the version of
each object by its name, with the number made of its etag; of a damaged file nothing is used.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec

from seekable.errors import IndexStale, InvalidArgument
from seekable.remote.listing import folder as requests
from seekable.storage.files import locked, regular_only, write_atomically

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["keep_versions", "pinned", "version_of"]

_FILE = "versions.json"

_Versions = dict[str, tuple[int, str]]
"""By the name of an object, the number made of its etag, and its version."""


class _Files(Protocol):
    """Indexed files, such as a `FileSet`."""

    @property
    def runs(self) -> tuple[tuple[str, str, int], ...]: ...

    @property
    def mtimes_ns(self) -> NDArray[np.int64]: ...

    def names(self) -> list[str]: ...

    def by_versions(self) -> Self: ...


F = TypeVar("F", bound=_Files)


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
    found = requests.stat_each([f"{root}/{name}" for name in missing])
    for name in missing:
        address = f"{root}/{name}"
        stat = found[address]
        if stat is None or stat.identity != wanted[name]:
            message = f"{requests.shown(address)!r} was changed after it was listed; open the dataset again"
            raise IndexStale(message)
        if stat.version in (None, "null"):
            message = (
                f'pin="version" needs a bucket that keeps versions, and {requests.shown(address)!r} has '
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
