"""The listings of one call: a folder of a store is listed once, however many readers look into it.

Outside of `listing_once` nothing is remembered, because a store changes at any time.
"""

from __future__ import annotations

import contextlib
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

from seekable.remote.listing.listed_files import ListedFiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from seekable.remote.listing.listed_files import Status

__all__ = ["FolderListing", "Known", "known_listings", "listing_once"]


@dataclass(frozen=True, slots=True)
class FolderListing:
    """The names directly in a folder of a store."""

    folders: tuple[str, ...]
    """The names of the folders."""

    files: ListedFiles
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
    _below: dict[str, ListedFiles] = field(default_factory=dict)
    _whole: set[str] = field(default_factory=set)
    _earlier: dict[str, Sequence[str]] = field(default_factory=dict)

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

    def below(self, root: str) -> ListedFiles:
        """Return the files below a folder by their relative paths, as far as they were added."""
        return self._below.get(root, _NO_FILES)

    def lost(self, root: str, names: Iterable[str]) -> set[str]:
        """Return those of some files below a folder that are certainly not there: a whole listing lacks them.

        Args:
            root: the address of the folder.
            names: the files, by their relative paths.
        """
        whole = [(f"{each}/", self._below[each]) for each in self._whole]

        def is_lost(path: str) -> bool:
            above, _, name = path.rpartition("/")
            listed = self._folders.get(above)
            if listed is not None:
                return name not in listed.files
            return any(path.startswith(start) and path[len(start) :] not in files for start, files in whole)

        return {name for name in names if is_lost(f"{root}/{name}")}

    def earlier(self, root: str) -> Sequence[str]:
        """Return the names that an earlier listing had below a folder; none if it was not listed."""
        return self._earlier.get(root, ())

    def add_status(self, path: str, size: int, identity: int) -> None:
        """Remember the size and the identity of a file."""
        if self.remembers:
            self._statuses[path] = size, identity

    def add_folder(self, path: str, listing: FolderListing) -> None:
        """Remember the listing of a folder."""
        if self.remembers:
            self._folders[path] = listing

    def add_all_below(self, root: str, files: ListedFiles) -> None:
        """Remember all files that are below a folder now, by their relative paths."""
        if self.remembers:
            self._below[root] = files
            self._whole.add(root)

    def add_below(self, root: str, files: ListedFiles) -> None:
        """Remember some files below a folder, by their relative paths."""
        if not self.remembers:
            return
        old = self._below.get(root)
        if old is not None:
            files = files.taken(list(files))
            files.add(old.taken([name for name in old if name not in files]))
        self._below[root] = files

    def add_earlier(self, root: str, names: Sequence[str]) -> None:
        """Remember the names of an earlier listing, by which the next one is cut into parts."""
        self._earlier[root] = names


_NO_FILES = ListedFiles()
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
