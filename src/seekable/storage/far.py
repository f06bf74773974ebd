"""The one slot for data that lies far away: in object stores, on web servers, on the Hugging Face Hub.

A path with ``://`` in it is *far*. Whatever is done with one is asked of `far`, whose implementation is
a subject of its own and is loaded at the first such path. The core knows the protocols of this module alone.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from seekable._lazy import imported

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    import numpy as np
    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.storage.access import CacheChoice, Storage
    from seekable.storage.compression import Compression
    from seekable.storage.listing import Arrange, Asked, FoundFiles, Inspect
    from seekable.storage.mapped import MappedFile
    from seekable.storage.ranges import RangeSource
    from seekable.storage.seek_points import SeekPoints

    Source = Asked | Mapping[str, Asked]
    Numbers = NDArray[np.int64] | NDArray[np.uint64]

_HOME = "seekable.remote.system:SYSTEM"
"""The implementation: its module, and its name in it."""

Look = tuple[int, int]
"""The size of a file in bytes, and the number made of its etag; of a local file, its modification time."""


class Digests(Protocol):
    """The unit digests of an object. It is a value: two with the same digests are equal."""

    def __hash__(self) -> int: ...

    def difference(self, start: int, data: memoryview, /) -> str | None:
        """Return in what some bytes from an offset on differ from the indexed ones; None if they do not."""


class FilesByNumber(Protocol):
    """Files that are given by their numbers, such as those of a `FileSet`."""

    def mapped(self, file: int, /) -> MappedFile:
        """Return a file, open.

        Raises:
            IndexStale: the file is not the one that was indexed.
        """


class Ranges(Protocol):
    """Ranges of bytes of some files; see `seekable.nodes.graph.FileRanges`."""

    @property
    def files(self) -> FilesByNumber:
        """The files, by their numbers."""

    @property
    def which(self) -> Int64s:
        """The index of each range's file."""

    @property
    def starts(self) -> NDArray[np.uint64]:
        """The first byte of each range."""

    @property
    def ends(self) -> NDArray[np.uint64]:
        """The byte after its last."""


class ReadPlan(Protocol):
    """A plan of records to read, as far as its bytes are concerned."""

    def __len__(self) -> int: ...

    @property
    def bytes(self) -> int:
        """The approximate number of bytes that reading takes."""

    def slice(self, start: int, stop: int) -> ReadPlan:
        """Return the plan of some of the records."""

    def ranges(self) -> Iterator[Ranges]:
        """Yield the ranges of bytes that reading takes."""


Item_co = TypeVar("Item_co", covariant=True)
Reads_co = TypeVar("Reads_co", covariant=True)
Item = TypeVar("Item")
Planned = TypeVar("Planned", bound=ReadPlan)


class PlansAhead(Protocol[Item_co, Reads_co]):
    """Plans that are made ahead of their reading, so that their bytes are fetched meanwhile."""

    def __iter__(self) -> Iterator[tuple[Item_co, Reads_co]]: ...

    def read_to(self, stop: int) -> None:
        """Note that the records of the present plan before ``stop`` are read next."""


class Slices(Protocol):
    """Slices of some files for readers of many records."""

    def read(self, which: Int64s, starts: Numbers, ends: Numbers) -> list[memoryview]:
        """Return the bytes of ranges, after fetching together those that are not here.

        Args:
            which: the index of each range's file.
            starts: its first byte in the content.
            ends: the byte after its last.

        Raises:
            IndexStale: a file is of another version than the one that was indexed.
            DataNotFound, AccessDenied, Unreachable: bytes cannot be fetched.
        """


class FarReport(Protocol):
    """The requests of this process."""

    @property
    def oldest(self) -> str | None:
        """The oldest request that has no answer yet; None if there is none."""


class FarReads(Protocol):
    """The bytes of far files."""

    def is_cache_shared(self, cache: CacheChoice | None) -> bool:
        """Return True if the processes of this machine share what they fetch, in a cache on disk.

        Args:
            cache: the cache that a dataset has chosen; None for the one that all others share.
        """

    def open(
        self,
        path: str,
        look: Look,
        *,
        kind: Compression | None = None,
        points: SeekPoints | None = None,
        version: str | None = None,
        cache: CacheChoice | None = None,
        digests: Digests | None = None,
    ) -> MappedFile:
        """Return a file as it was looked at, open; nothing is fetched.

        Args:
            path: its address.
            look: its size and number.
            kind: its compression, None if it is not compressed.
            points: the seek points of a compressed file.
            version: the version to read, in a bucket that keeps versions; None for the present one.
            cache: the cache on disk that its dataset has chosen; None for the one that all others share.
            digests: the digests of its units; None for no comparison.
        """

    def slices(self, files: FilesByNumber, count: int) -> Slices:
        """Return the slices of files, some of which are far; no file is opened.

        Args:
            files: the files.
            count: their number.
        """

    def fetched(self, ranges: Iterable[Ranges]) -> object:
        """Fetch ranges together, and return what keeps them in memory.

        Raises:
            IndexStale: a file is of another version than the one that was indexed.
            DataNotFound, AccessDenied, Unreachable: bytes cannot be fetched.
        """

    def holding(self, ranges: Iterable[Ranges]) -> AbstractContextManager[None]:
        """Return a context in which ranges are in memory; entering it fetches them, see `fetched`."""

    def ahead(self, planned: Iterator[tuple[Item, Planned]]) -> PlansAhead[Item, Planned]:
        """Return plans that are made ahead of their reading.

        Args:
            planned: the plans in the order of reading, each with something that comes back with it.
        """

    def facts(self, node: Any) -> Iterator[str]:
        """Yield lines on the requests that reading a node of a dataset sends."""

    def report(self) -> FarReport:
        """Return counts of the requests of this process."""


class Placeholders(Protocol):
    """Small local files that stand for files of the Hub, so that an index can hold these."""

    def is_folder(self, folder: str) -> bool:
        """Return True if a folder is one in which placeholders are written; nothing is looked at."""

    def shown(self, path: str) -> str:
        """Return the name of a file in messages: of a placeholder, the address that it stands for."""

    def path_of_shown(self, roots: Iterable[str], name: str) -> str:
        """Return the path of a file by the name that `shown` gave it; any other name comes back as it is."""

    def size(self, path: str) -> int | None:
        """Return the number of bytes of the file that a placeholder stands for; None if there is none.

        Raises:
            UnsupportedFormat: the placeholder was moved or damaged.
        """

    def are_elsewhere(self, paths: Iterable[str]) -> bool:
        """Return True if one of some placeholders is of a file that has no copy on this machine.

        Raises:
            UnsupportedFormat: a placeholder was moved or damaged.
        """

    def open(
        self, path: str, look: Look, *, kind: Compression | None, points: SeekPoints | None
    ) -> MappedFile:
        """Return the file that a placeholder stands for, open.

        Args:
            path: the placeholder.
            look: its own size and modification time.
            kind: the compression of the file, None if it is not compressed.
            points: the seek points of a compressed file.

        Raises:
            IndexStale: the placeholder does not exist, or has another size or modification time.
            AccessDenied: this user may not read it.
            UnsupportedFormat: it was moved or damaged.
        """

    def original(self, path: str) -> tuple[str, str, int, str]:
        """Return the repository, the commit, the number of bytes and the etag that a placeholder stands for.

        Raises:
            UnsupportedFormat: the placeholder was moved or damaged.
        """

    def write(self, folder: str, repo: str, revision: str, files: Sequence[tuple[str, int, str]]) -> str:
        """Write placeholders for the files of a commit, and return their root.

        Args:
            folder: the folder of all placeholders on this machine.
            repo: the repository.
            revision: the commit.
            files: the path, the number of bytes and the etag of each file.

        Raises:
            AccessDenied: the folder cannot be written.
        """


class FileOutput(Protocol):
    """Files that are written, each whole or not at all.

    What is read is read anew each time, past all caches, because other processes write to the same place.
    """

    def size(self, path: str) -> int | None:
        """Return the number of bytes of a file; None if there is no such file."""

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the bytes of each file directly in a folder, by name; empty if there is no such folder."""

    def names(self, folder: str) -> list[str]:
        """Return the names of the files and folders directly in a folder.

        Raises:
            FileNotFoundError: there is no such local folder. Of a store the result is empty then.
        """

    def has_folder(self, folder: str) -> bool:
        """Return True if there is such a folder: in a store, if an object lies below it."""

    def make_folder(self, folder: str) -> None:
        """Make a folder and its parents, unless they exist; folders of stores need not be made."""

    def read(self, path: str) -> bytes:
        """Return all bytes of a file.

        Raises:
            FileNotFoundError: there is no such file.
            OSError, AccessDenied, Unreachable: it cannot be read.
        """

    def write(self, path: str, data: bytes | memoryview) -> None:
        """Write a file, in place of the one that is there.

        Raises:
            OSError: the folder cannot be written, or the disk is full.
            AccessDenied, Unreachable: the store cannot be written.
        """

    def seen(self, path: str) -> object:
        """Return a mark of the file that `replace` may replace; None without a file.

        Raises:
            AccessDenied, Unreachable: the store cannot be read.
        """

    def replace(self, path: str, data: bytes, *, old: object) -> object:
        """Write a file in place of exactly the one that was there, and return what to replace next.

        Of a local file, and in a store that takes no conditions, whatever is there is replaced.

        Args:
            path: the path of the file.
            data: the content.
            old: what `seen`, or the last call of this method, returned.

        Raises:
            FileExistsError: there was no such file, and now there is one.
            IndexStale: another file is there, or the one to be replaced is gone.
            OSError, AccessDenied, Unreachable: it cannot be written.
        """

    def place(self, made: str, path: str) -> None:
        """Give a complete, synced local file its name, which replaces the file that is there.

        Args:
            made: the local path of the file, in the `scratch` folder of the folder of ``path``.
            path: the path that it gets.

        Raises:
            OSError, AccessDenied, Unreachable: the folder cannot be written.
        """

    def local(self, paths: Sequence[str]) -> AbstractContextManager[list[str]]:
        """Give local paths with the content of files: their own, or those of copies, which go at the end.

        Raises:
            FileNotFoundError: a file is not there.
            OSError, AccessDenied, Unreachable: it cannot be read.
        """

    def kept_local(self, path: str, size: int) -> str:
        """Return the local path of a file whose name stands for its content; a copy stays in the cache.

        Args:
            path: the path, whose last part has a digest of the content.
            size: the bytes of the file. A copy of this size is taken as it is.

        Raises:
            FileNotFoundError: the file is not there.
            OSError, AccessDenied, Unreachable: it cannot be read, or the cache folder cannot be written.
        """

    def delete(self, path: str) -> None:
        """Remove a file; nothing happens if there is none."""

    def scratch(self, folder: str) -> str:
        """Return the local folder for locks, unfinished files and states: of a local folder, itself."""


class Far(Protocol):
    """Data that lies far away."""

    @property
    def builds(self) -> Any:
        """The builds that the index asks for: `seekable.index.build.build_index.FarBuilds`."""

    @property
    def reads(self) -> FarReads:
        """Bytes of files that are read there."""

    @property
    def placeholders(self) -> Placeholders:
        """Local files that stand for files of the Hub."""

    @property
    def output(self) -> FileOutput:
        """Files that are written there."""

    def opened(
        self, source: Source, storage: Storage, *, index_dir: str | os.PathLike[str] | None
    ) -> AbstractContextManager[Source]:
        """Set up the stores for one call of ``sk.open``; inside the block a folder is listed once.

        The block has the source with the addresses under which its files are named.

        Args:
            source: the source of the user.
            storage: how its stores are reached.
            index_dir: the user's folder for indexes.

        Raises:
            InvalidArgument: options are not known, or they are given for local data.
            WrongType: an option has a value of another type.
        """

    def mount(self, address: str, options: Mapping[str, Any] | None = None, storage: object = None) -> str:
        """Set up the store of an address, and return the address under which its files are named.

        Args:
            address: an address as the user gives it; with ``storage`` also a path of that file system.
            options: the options of the store; None for those of the environment.
            storage: a file system of fsspec that reads the store, or None.

        Raises:
            InvalidArgument: no such address or option.
            WrongType: the options are not a mapping, or ``storage`` is not a file system.
        """

    def mount_beside(self, address: str, other: str) -> str:
        """Return the address of a file whose store has the options of another one, unless it has its own."""

    def has_options(self, address: str) -> bool:
        """Return True if the store of an address was set up with options."""

    def passport(self, paths: Iterable[str]) -> object:
        """Return what another process needs to read those of some paths that are far; it unpickles this.

        It has no secrets, which that process takes from its environment.
        """

    def handed_down(self) -> bytes:
        """Return all stores that were set up, with their secrets: for a child, through its own pipe alone."""

    def take_over(self, stores: bytes) -> None:
        """Set up the stores that the parent of this process has handed down."""

    def claim(self, look: Any) -> Any:
        """Return the files of a spec ``hf:...`` and their format, a `seekable.formats.contract.Claim`.

        Raises:
            InvalidArgument: it is incomplete, or names no repository and no folder.
            SeekableError: as ``sk.open``.
        """

    def listing_once(self) -> AbstractContextManager[None]:
        """List each folder at most once inside of the block, in this thread; blocks may be nested."""

    def find(
        self,
        asked: Asked,
        *,
        suffixes: Iterable[str],
        inspect: Inspect | None,
        arrange: Arrange | None,
        kind: str,
    ) -> tuple[FoundFiles, ...]:
        """Return the data files of a source with addresses; see `seekable.formats.look.find_files`."""

    def is_plain(self, address: str) -> bool:
        """Return True if an address is known not to be the folder of another tool; the store is not asked."""

    def is_folder(self, address: str) -> bool:
        """Return True if there is a folder of this address; of web servers, which list nothing, always False.

        Raises:
            Unreachable, AccessDenied: the store cannot be asked.
        """

    def list_folder(self, address: str) -> list[str]:
        """Return the names of the files and folders directly in a folder.

        Raises:
            DataNotFound: there is no such folder.
            UnsupportedFormat: it is on a web server, which lists nothing.
            Unreachable, AccessDenied: the store cannot be asked.
        """

    def look(self, address: str) -> Look:
        """Return the size of a file, and the number made of its etag.

        Raises:
            DataNotFound: there is no such file.
            Unreachable, AccessDenied: the store cannot be asked.
        """

    def look_each(self, paths: Sequence[str]) -> list[Look | None]:
        """Look at files of one store; return the size and the number of each, None where there is no file.

        Raises:
            Unreachable, AccessDenied: the store cannot be asked.
        """

    def looks(self, root: str, names: Sequence[str]) -> tuple[Int64s, Int64s]:
        """Return the sizes and the numbers of files below the address of a folder.

        Raises:
            DataNotFound: a file does not exist.
            Unreachable, AccessDenied: the store cannot be asked.
        """

    def sizes(self, root: str, names: Sequence[str]) -> list[int | None]:
        """Return the bytes of each file below the address of a folder, None where there is none.

        Raises:
            Unreachable, AccessDenied: the store cannot be asked.
        """

    def lost(self, root: str, names: Iterable[str]) -> set[str]:
        """Return those of some files below an address that a listing of this call shows to be gone."""

    def ranges(self, address: str, look: Look) -> RangeSource:
        """Return the bytes of a file, which must be as it was looked at.

        They are kept in the cache of the dataset that is being opened.
        """


@functools.cache
def far() -> Far:
    """Return what reads and writes far data.

    Raises:
        MissingDependency: it is not installed.
    """
    found: Far = imported(_HOME)
    return found


def handed_down() -> bytes:
    """Return the stores of this process with their secrets, for `take_over`; empty while nothing is far.

    A child process that this one starts itself gets them beside its work: no pickle has a secret.
    """
    return far().handed_down() if far.cache_info().currsize else b""


def take_over(stores: bytes) -> None:
    """Set up the stores that the parent of this process has handed down."""
    if stores:
        far().take_over(stores)


def is_far(path: str) -> bool:
    """Return True if a path is read and written by `far`.

    Example:
        >>> is_far("s3://bucket/a.jsonl"), is_far("corpus/a.jsonl")
        (True, False)
    """
    return "://" in path
