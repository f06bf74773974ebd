"""The files that the lines of scripts name: a bounded number of them is open, and mapped if it is local."""

from __future__ import annotations

import itertools
import os
import stat
import weakref
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from seekable._lazy import lazy
from seekable.errors import AccessDenied, IndexStale
from seekable.formats.kaldi.files.local_files import local_errors, missing_error
from seekable.formats.kaldi.files.stored_file import mounted_beside
from seekable.storage.access import chosen_cache
from seekable.storage.far import far
from seekable.storage.mapped import MappedFile, OpenFiles, next_use

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from seekable.storage import addresses
    from seekable.storage.access import CacheChoice
    from seekable.storage.far import Look
else:
    addresses = lazy("seekable.storage.addresses")

__all__ = ["ObjectFiles"]

_MOST_ATTEMPTS = 3
_MOST_KNOWN = 4096

_FIRST_BYTES = 64 << 10
_MOST_BYTES = 8 << 20
"""The fewest and the most bytes that are fetched of an object of a store before its size is known."""


class ObjectFiles:
    """Files by path or address, at most so many open at once. Safe from threads and after fork.

    A local file that was changed since it was opened is opened again. A pickle has the arguments alone.
    """

    def __init__(self, most: int, beside: str = "", cache: CacheChoice | None = None) -> None:
        """Begin without an open file.

        Args:
            most: the most files that are open at once.
            beside: the address of the script in a store, whose options other files of stores have too; empty
                for a local one.
            cache: the cache on disk of files of stores; None for that of the dataset that is being opened.
        """
        self._most = most
        self._beside = beside
        self._cache = cache or chosen_cache()
        self._files = OpenFiles(most)
        self._known: dict[str, weakref.ref[MappedFile]] = {}
        self._number: Callable[[], int] = itertools.count().__next__
        self._ahead_bytes = _FIRST_BYTES

    def __reduce__(self) -> tuple[Any, ...]:
        return ObjectFiles, (self._most, self._beside, self._cache)

    def mapped(self, path: str) -> MappedFile | None:
        """Return a regular file, mapped as it is now; None for a file that can only be read forward.

        Of a file of a store nothing is read; it is an `ObjectFile`, of the version that is there now.

        Args:
            path: the absolute path of the file, or its address in a store.

        Raises:
            DataNotFound: there is no such file.
            AccessDenied: this user may not read it.
            IndexStale: the file changes while it is opened, each time again.
        """
        known = self._known.get(path)
        mapped = known() if known else None
        if mapped is not None:
            try:
                mapped.check()
            except IndexStale:
                self._known.pop(path, None)
            else:
                mapped.last_use = next_use()
                return mapped
        return self._opened(path)

    def stored(self, names: Iterable[str]) -> dict[str, MappedFile]:
        """Return those of some files of stores that can be read, by address; nothing is read of them.

        Raises:
            Unreachable: a store does not answer.
        """
        found: dict[str, MappedFile] = {}
        missing: dict[str, list[tuple[str, str]]] = {}
        for path in names:
            known = self._known.get(path)
            mapped = known() if known else None
            if mapped is not None:
                found[path] = mapped
                continue
            stored = mounted_beside(path, self._beside) if self._beside else path
            missing.setdefault(addresses.parse(stored).mount, []).append((path, stored))
        for some in missing.values():
            with suppress(AccessDenied):
                for (path, stored), each in zip(
                    some, far().look_each([name for _, name in some]), strict=True
                ):
                    if each is not None:
                        found[path] = self._kept(path, partial(self._stored, stored, each))
        return found

    def first_bytes(self, *, whole: bool) -> int:
        """Return the number of bytes that are fetched of an object of a store before its size is known.

        Args:
            whole: True for an object that is all of a file.
        """
        return _MOST_BYTES if whole else self._ahead_bytes

    def note(self, size: int) -> None:
        """Note the number of bytes of an object that was read from the middle of a file of a store."""
        while self._ahead_bytes < min(size, _MOST_BYTES):
            self._ahead_bytes *= 2

    def forget(self, path: str) -> None:
        """Open a file again when it is used next."""
        self._known.pop(path, None)

    def close(self) -> None:
        """Close all files; a file that is read again is opened again."""
        self._known.clear()
        self._files.close()

    def _opened(self, path: str) -> MappedFile | None:
        if "://" in path:
            stored = mounted_beside(path, self._beside) if self._beside else path
            return self._kept(path, partial(self._stored, stored, far().look(stored)))
        for attempt in range(_MOST_ATTEMPTS):
            with local_errors(path, writing=False):
                status = os.stat(path)
            if stat.S_ISDIR(status.st_mode):
                raise missing_error(path)
            if not stat.S_ISREG(status.st_mode):
                return None
            size, mtime_ns = status.st_size, status.st_mtime_ns
            try:
                return self._kept(path, lambda: _map(path, size, mtime_ns))  # noqa: B023 - called at once
            except IndexStale:
                if attempt == _MOST_ATTEMPTS - 1:
                    raise
        raise AssertionError

    def _stored(self, path: str, look: Look) -> MappedFile:
        return far().reads.open(path, look, cache=self._cache)

    def _kept(self, path: str, make: Callable[[], MappedFile]) -> MappedFile:
        # A file that was changed gets a new number: the old one stays open until it is the oldest.
        mapped = self._files.open(self._number(), make)
        if len(self._known) >= _MOST_KNOWN:
            self._known = {name: known for name, known in list(self._known.items()) if known()}
        self._known[path] = weakref.ref(mapped)
        return mapped


def _map(path: str, size: int, mtime_ns: int) -> MappedFile:
    return MappedFile(path, size=size, mtime_ns=mtime_ns)
