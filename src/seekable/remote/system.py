"""Stores, web servers and the Hub as the core asks for them: what `seekable.storage.far` returns."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final, final

from seekable._lazy import lazy
from seekable.errors import AccessDenied, DataNotFound, UnsupportedFormat
from seekable.remote.listing.known import known_listings, listing_once
from seekable.remote.output_files import StoredFiles
from seekable.storage import addresses
from seekable.storage.access import chosen_cache
from seekable.storage.files import regular_only

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Executor, Future
    from contextlib import AbstractContextManager

    from seekable._typing import Int64s
    from seekable.formats import look
    from seekable.formats.contract import Claim
    from seekable.index.build.build_index import FarBuilds, FarPieces
    from seekable.index.build.data_file import DataFile
    from seekable.index.build.file_parts import FileToIndex
    from seekable.index.build.kept_parts import Answer
    from seekable.index.build.scan import ScanBatch, ScanJob
    from seekable.index.fileset import FileSet
    from seekable.index.finder import Finder
    from seekable.remote import (
        hub_files,
        mounts,
        object_bytes,
        placeholder,
    )
    from seekable.remote.cache import disk_cache
    from seekable.remote.fetching import fetcher
    from seekable.remote.index import object_file, object_scan, publishing
    from seekable.remote.listing import find, key_listing
    from seekable.remote.mounts import Mounts
    from seekable.storage.access import CacheChoice, Storage
    from seekable.storage.compression import Compression
    from seekable.storage.far import (
        Digests,
        Far,
        FarReads,
        FarReport,
        FileOutput,
        FilesByNumber,
        Item,
        Look,
        Placeholders,
        Planned,
        PlansAhead,
        Ranges,
        Slices,
        Source,
    )
    from seekable.storage.listing import Arrange, Asked, FoundFiles, Inspect
    from seekable.storage.mapped import MappedFile
    from seekable.storage.ranges import RangeSource
    from seekable.storage.seek_points import SeekPoints
else:
    hub_files = lazy("seekable.remote.hub_files")
    placeholder = lazy("seekable.remote.placeholder")
    publishing = lazy("seekable.remote.index.publishing")
    object_scan = lazy("seekable.remote.index.object_scan")
    disk_cache = lazy("seekable.remote.cache.disk_cache")
    fetcher = lazy("seekable.remote.fetching.fetcher")
    find = lazy("seekable.remote.listing.find")
    key_listing = lazy("seekable.remote.listing.key_listing")
    mounts = lazy("seekable.remote.mounts")
    object_bytes = lazy("seekable.remote.object_bytes")
    object_file = lazy("seekable.remote.index.object_file")

__all__ = ["SYSTEM"]


@final
class _Reads:
    """`FarReads` over the fetcher of this process."""

    def is_cache_shared(self, cache: CacheChoice | None) -> bool:
        return disk_cache.disk_cache(cache) is not None

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
        size, identity = look
        ref = object_file.object_ref(
            path, size=size, identity=identity, version=version, cache=cache, digests=digests
        )
        return object_file.ObjectFile(ref, kind=kind, points=points)

    def slices(self, files: FilesByNumber, count: int) -> Slices:
        return object_file.ObjectSlices(files, count)

    def fetched(self, ranges: Iterable[Ranges]) -> object:
        return object_bytes.fetched(ranges)

    def holding(self, ranges: Iterable[Ranges]) -> AbstractContextManager[None]:
        return object_bytes.Holding(ranges)

    def ahead(self, planned: Iterator[tuple[Item, Planned]]) -> PlansAhead[Item, Planned]:
        return object_bytes.ObjectPlansAhead(planned)

    def facts(self, node: Any) -> Iterator[str]:
        return object_bytes.store_reads(node)

    def report(self) -> FarReport:
        return fetcher.fetcher().report()


@final
class _Builds:
    """`FarBuilds` over the modules of ``remote/index``."""

    def file(self, path: str, look: Look, on_wait: Callable[[int], None] | None) -> DataFile:
        return object_scan.StoredFile(path, look, on_wait)

    def file_of_placeholder(self, own: DataFile, descriptor: int, path: str) -> DataFile:
        return placeholder.PlaceholderFile(own, descriptor, path)

    def pieces(self, path: str, look: Look, pieces: Iterable[tuple[int, int]]) -> FarPieces:
        size, identity = look
        source = object_scan.PinnedObject(path, size=size, identity=identity)
        return object_scan.FetchedPieces(source, pieces)

    def before(
        self, tasks: Sequence[FileToIndex], finder: Finder, *, most_bytes: int | None
    ) -> tuple[Sequence[FileToIndex], Sequence[str]]:
        left, notices = publishing.adopt_published(tasks, finder, most_bytes=most_bytes)
        announced = object_scan.check_transfer(object_scan.transfer_of(left, finder), most_bytes=most_bytes)
        return left, [*notices, *filter(None, [announced])]

    def submit(
        self, executor: Executor, batch: ScanBatch, read: Callable[[ScanJob, int], None]
    ) -> Future[Answer]:
        return object_scan.submit(executor, batch, read)

    def newest(self, path: str) -> Look:
        return object_scan.newest_version(path)

    def check_publishable(self, roots: Iterable[str]) -> None:
        publishing.check_roots(roots)

    def publish(self, files: FileSet) -> Sequence[str]:
        return [published.in_words() for published in publishing.publish(files)]

    def by_version(self, files: FileSet) -> FileSet:
        return object_file.pinned(files)

    def version_of(self, folder: str, name: str, identity: int) -> str:
        return object_file.version_of(folder, name, identity)


@final
class _Placeholders:
    """`Placeholders` over `seekable.remote.placeholder`."""

    def is_folder(self, folder: str) -> bool:
        return placeholder.is_placeholder_folder(folder)

    def shown(self, path: str) -> str:
        return placeholder.display_path(path)

    def path_of_shown(self, roots: Iterable[str], name: str) -> str:
        return placeholder.path_of_display(roots, name)

    def size(self, path: str) -> int | None:
        return placeholder.read_remote_size(path)

    def are_elsewhere(self, paths: Iterable[str]) -> bool:
        return placeholder.are_on_hub(paths)

    def open(
        self, path: str, look: Look, *, kind: Compression | None, points: SeekPoints | None
    ) -> MappedFile:
        size, mtime_ns = look
        return placeholder.open_placeholder(path, size=size, mtime_ns=mtime_ns, kind=kind, points=points)

    def original(self, path: str) -> tuple[str, str, int, str]:
        with open(path, "rb", opener=regular_only) as file:
            meant = placeholder.read_placeholder(path, file.read())
        return meant.repo, meant.revision, meant.size, meant.etag

    def write(self, folder: str, repo: str, revision: str, files: Sequence[tuple[str, int, str]]) -> str:
        written = [placeholder.HubFile(folder, repo, revision, *file) for file in files]
        placeholder.write_placeholders(written)
        return os.path.join(placeholder.repo_folder(folder, repo), revision)


@final
class _System:
    """`Far` over this package."""

    builds: Final[FarBuilds] = _Builds()
    reads: Final[FarReads] = _Reads()
    placeholders: Final[Placeholders] = _Placeholders()
    output: Final[FileOutput] = StoredFiles()

    def opened(
        self, source: Source, storage: Storage, *, index_dir: str | os.PathLike[str] | None
    ) -> AbstractContextManager[Source]:
        return mounts.mounted(source, storage, index_dir=index_dir)

    def mount(self, address: str, options: Mapping[str, Any] | None = None, storage: object = None) -> str:
        return mounts.mount(address, options, storage)

    def mount_beside(self, address: str, other: str) -> str:
        options = mounts.options_of(other)
        system = options.file_system
        if self.has_options(address) or not options.values:
            return address
        return mounts.mount(address, None if system is not None else options.values, system)

    def has_options(self, address: str) -> bool:
        return bool(mounts.options_of(address).values)

    def passport(self, paths: Iterable[str]) -> Mounts:
        return mounts.mounts_of(paths)

    def claim(self, look: look.Look) -> Claim:
        return hub_files.hub_claim(look)

    def handed_down(self) -> bytes:
        return mounts.handed_down()

    def take_over(self, stores: bytes) -> None:
        mounts.take_over(stores)

    def listing_once(self) -> AbstractContextManager[None]:
        return listing_once()

    def find(
        self,
        asked: Asked,
        *,
        suffixes: Iterable[str],
        inspect: Inspect | None,
        arrange: Arrange | None,
        kind: str,
    ) -> tuple[FoundFiles, ...]:
        return find.find_files(asked, suffixes=suffixes, inspect=inspect, arrange=arrange, kind=kind)

    def is_plain(self, address: str) -> bool:
        return find.is_plain(address)

    def is_folder(self, address: str) -> bool:
        try:
            return key_listing.can_list(address) and not key_listing.listed(address).is_empty
        except AccessDenied:
            # Credentials may permit to read objects, and not to list them.
            if not addresses.parse(address).key or not self._is_file(address):
                raise
            return False

    def list_folder(self, address: str) -> list[str]:
        if not key_listing.can_list(address):
            message = f"{addresses.shown(address)!r} is on a web server, which lists no files: name each file"
            raise UnsupportedFormat(message)
        found = key_listing.listed(address)
        if found.is_empty:
            raise DataNotFound(
                f"there is no folder {addresses.shown(address)!r}: no key begins with it and a '/'"
            )
        return [*found.folders, *found.files]

    def look(self, address: str) -> Look:
        known = known_listings().status(address)
        if known is None:
            above, _, name = address.rpartition("/")
            if (listed := known_listings().folder(above)) is not None and name not in listed.files:
                message = f"there is no object {addresses.shown(address)!r}: the folder was listed without it"
                raise DataNotFound(message)
            stat = key_listing.stat(address)
            known = stat.size, stat.identity
            known_listings().add_status(address, *known)
        return known

    def look_each(self, paths: Sequence[str]) -> list[Look | None]:
        found = key_listing.stat_each(paths)
        return [None if (stat := found[path]) is None else (stat.size, stat.identity) for path in paths]

    def looks(self, root: str, names: Sequence[str]) -> tuple[Int64s, Int64s]:
        return find.status_columns(root, names)

    def sizes(self, root: str, names: Sequence[str]) -> list[int | None]:
        return find.sizes(root, names)

    def lost(self, root: str, names: Iterable[str]) -> set[str]:
        return known_listings().lost(root, names)

    def ranges(self, address: str, look: Look) -> RangeSource:
        size, identity = look
        ref = object_file.object_ref(address, size=size, identity=identity, cache=chosen_cache())
        return object_file.ObjectRanges(ref)

    def _is_file(self, address: str) -> bool:
        try:
            self.look(address)
        except DataNotFound:
            return False
        return True


SYSTEM: Final[Far] = _System()
