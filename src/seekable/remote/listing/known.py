"""The listings of one call: a folder of a store is listed once, however many readers look into it.

Outside of `listing_once` nothing is remembered, because a store changes at any time.
"""

from __future__ import annotations

import contextlib
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["FolderListing", "Known", "known_listings", "listing_once"]

Status = tuple[int, int]
"""The number of bytes of an object, and the number made of its etag."""


@dataclass(frozen=True, slots=True)
class FolderListing:
    """The names directly in a folder of a store."""

    folders: tuple[str, ...]
    """The names of the folders."""

    files: Mapping[str, Status]
    """The sizes and identities of the files, by name."""

    @property
    def is_empty(self) -> bool:
        """True if no key lies below the folder."""
        return not self.folders and not self.files


@final
@dataclass(frozen=True, slots=True)
class Known:
    """Statuses of files and listings of folders, by their addresses."""

    remembers: bool
    """False if nothing is added."""

    kept: str | None = None
    """The folder in which listings are kept for later calls, None to keep none."""

    refresh: bool = True
    """False to take kept listings where there are some."""

    _statuses: dict[str, Status] = field(default_factory=dict)
    _folders: dict[str, FolderListing] = field(default_factory=dict)
    _below: dict[str, Mapping[str, Status]] = field(default_factory=dict)

    def status(self, path: str) -> Status | None:
        """Return the size and the identity of a file, None if they are not known."""
        if found := self._statuses.get(path):
            return found
        folder, _, name = path.rpartition("/")
        if (listed := self._folders.get(folder)) is not None and (found := listed.files.get(name)):
            return found
        for root, files in self._below.items():
            if path.startswith(root + "/") and (found := files.get(path[len(root) + 1 :])):
                return found
        return None

    def folder(self, path: str) -> FolderListing | None:
        """Return the listing of a folder, None if it was not listed."""
        return self._folders.get(path)

    def below(self, root: str) -> Mapping[str, Status]:
        """Return the files below a folder by their relative paths, as far as they were added."""
        return self._below.get(root, {})

    def add_status(self, path: str, size: int, identity: int) -> None:
        """Remember the size and the identity of a file."""
        if self.remembers:
            self._statuses[path] = size, identity

    def add_folder(self, path: str, listing: FolderListing) -> None:
        """Remember the listing of a folder."""
        if self.remembers:
            self._folders[path] = listing

    def add_below(self, root: str, files: Mapping[str, Status]) -> None:
        """Remember files below a folder, by their relative paths."""
        if self.remembers:
            self._below[root] = {**self._below[root], **files} if root in self._below else files


_NOTHING = Known(remembers=False)
_current: ContextVar[Known] = ContextVar("seekable_known_listings", default=_NOTHING)


def known_listings() -> Known:
    """Return the listings of the call that runs in this context."""
    return _current.get()


@contextlib.contextmanager
def listing_once(*, kept: str | None = None, refresh: bool = True) -> Iterator[None]:
    """List each folder of a store at most once inside of the block, in this thread; blocks may be nested.

    Args:
        kept: the folder in which listings are kept for later calls; None to keep none.
        refresh: False to take kept listings where there are some.
    """
    if known_listings().remembers:
        yield
        return
    token = _current.set(Known(remembers=True, kept=kept, refresh=refresh))
    try:
        yield
    finally:
        _current.reset(token)
