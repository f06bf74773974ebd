"""The listings of one call: a folder of a store is listed once, however many readers look into it.

Outside of `listing_once` nothing is remembered, because a store changes at any time. The files of a listing
are columns: a million take about 100 MB, and no object is made for each.
"""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

__all__ = ["Columns", "FolderListing", "Known", "ListedFiles", "Status", "known_listings", "listing_once"]

Status = tuple[int, int]
"""The number of bytes of an object, and the number made of its etag."""


Columns = tuple["NDArray[np.int64]", "NDArray[np.int64]"]
"""The sizes and the identities of files."""


@final
class ListedFiles(Mapping[str, Status]):
    """Sizes and identities of files by their names, in the order in which they were added.

    Example:
        >>> files = ListedFiles()
        >>> files.extend(["a", "b"], [5, 7], [1, 2])
        >>> len(files), files["b"], files.columns(["b", "a"])[0].tolist()
        (2, (7, 2), [7, 5])
    """

    __slots__ = ("_identities", "_names", "_rows", "_sizes")

    def __init__(self) -> None:
        """Begin with a listing of no files."""
        self._names: list[str] = []
        self._sizes, self._identities = array("q"), array("q")
        self._rows: dict[str, int] | None = None

    @classmethod
    def of(cls, names: Sequence[str], sizes: NDArray[np.int64], identities: NDArray[np.int64]) -> ListedFiles:
        """Return files with these sizes and identities."""
        found = cls()
        found._names = list(names)
        found._sizes.frombytes(sizes.astype(np.int64).tobytes())
        found._identities.frombytes(identities.astype(np.int64).tobytes())
        return found

    def extend(self, names: Iterable[str], sizes: Iterable[int], identities: Iterable[int]) -> None:
        """Add files that are not there yet.

        Args:
            names: their names.
            sizes: their numbers of bytes.
            identities: the numbers made of their etags.
        """
        self._names.extend(names)
        self._sizes.extend(sizes)
        self._identities.extend(identities)
        self._rows = None

    def add(self, others: ListedFiles) -> None:
        """Add the files of another listing."""
        self.extend(others._names, others._sizes, others._identities)

    @property
    def names(self) -> Sequence[str]:
        """The names of the files."""
        return self._names

    @property
    def has_empty(self) -> bool:
        """True if a file has no bytes."""
        return bool((np.frombuffer(self._sizes, np.int64) == 0).any()) if self._names else False

    def columns(self, names: Sequence[str]) -> Columns:
        """Return the sizes and the identities of some files, int64.

        Raises:
            KeyError: there is no such file.
        """
        if not names:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        sizes, identities = (np.frombuffer(each, np.int64) for each in (self._sizes, self._identities))
        if len(names) == len(self._names) and list(names) == self._names:
            return sizes.copy(), identities.copy()
        of_names = self._row_of()
        rows = np.fromiter((of_names[name] for name in names), np.int64, len(names))
        return sizes[rows], identities[rows]

    def taken(self, names: Sequence[str]) -> ListedFiles:
        """Return some of the files, in another order."""
        return ListedFiles.of(names, *self.columns(names))

    def __getitem__(self, name: str) -> Status:
        row = self._row_of()[name]
        return self._sizes[row], self._identities[row]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def _row_of(self) -> dict[str, int]:
        if self._rows is None:
            self._rows = {name: row for row, name in enumerate(self._names)}
        return self._rows


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
