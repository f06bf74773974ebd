"""Stores, web servers and the Hub as the core asks for them: what `seekable.storage.far` returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

from seekable._lazy import lazy
from seekable.errors import AccessDenied, DataNotFound, UnsupportedFormat
from seekable.remote.listing.known import known_listings, listing_once
from seekable.remote.output_files import StoredFiles
from seekable.storage import addresses

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from seekable._typing import Int64s
    from seekable.remote import mounts, object_ranges, open_addresses
    from seekable.remote.listing import find, folder
    from seekable.remote.mounts import Mounts
    from seekable.storage.asked import Asked
    from seekable.storage.far import Far, Look, Output, Source
    from seekable.storage.listing import Arrange, Found, Inspect
    from seekable.storage.ranges import RangeSource
else:
    find = lazy("seekable.remote.listing.find")
    folder = lazy("seekable.remote.listing.folder")
    mounts = lazy("seekable.remote.mounts")
    object_ranges = lazy("seekable.remote.object_ranges")
    open_addresses = lazy("seekable.remote.open_addresses")

__all__ = ["SYSTEM"]


@final
class _System:
    """`Far` over this package."""

    output: Final[Output] = StoredFiles()

    def opened(
        self,
        source: Source,
        *,
        storage_options: Mapping[str, Any] | None,
        storage: object,
        cache: int | None,
        refresh: bool,
        index_dir: str | os.PathLike[str] | None,
    ) -> AbstractContextManager[Source]:
        return open_addresses.mounted(
            source,
            storage_options=storage_options,
            storage=storage,
            cache=cache,
            refresh=refresh,
            index_dir=index_dir,
        )

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
    ) -> tuple[Found, ...]:
        return find.find_files(asked, suffixes=suffixes, inspect=inspect, arrange=arrange, kind=kind)

    def is_plain(self, address: str) -> bool:
        return find.is_plain(address)

    def is_folder(self, address: str) -> bool:
        try:
            return folder.can_list(address) and not folder.listed(address).is_empty
        except AccessDenied:
            # Credentials may permit to read objects, and not to list them.
            if not addresses.parse(address).key or not self._is_file(address):
                raise
            return False

    def list_folder(self, address: str) -> list[str]:
        if not folder.can_list(address):
            message = f"{folder.shown(address)!r} is on a web server, which lists no files: name each file"
            raise UnsupportedFormat(message)
        found = folder.listed(address)
        if found.is_empty:
            raise DataNotFound(
                f"there is no folder {folder.shown(address)!r}: no key begins with it and a '/'"
            )
        return [*found.folders, *found.files]

    def look(self, address: str) -> Look:
        known = known_listings().status(address)
        if known is None:
            above, _, name = address.rpartition("/")
            if (listed := known_listings().folder(above)) is not None and name not in listed.files:
                message = f"there is no object {folder.shown(address)!r}: the folder was listed without it"
                raise DataNotFound(message)
            stat = folder.stat(address)
            known = stat.size, stat.identity
            known_listings().add_status(address, *known)
        return known

    def look_each(self, paths: Sequence[str]) -> list[Look | None]:
        found = folder.stat_each(paths)
        return [None if (stat := found[path]) is None else (stat.size, stat.identity) for path in paths]

    def looks(self, root: str, names: Sequence[str]) -> tuple[Int64s, Int64s]:
        return find.status_columns(root, names)

    def sizes(self, root: str, names: Sequence[str]) -> list[int | None]:
        return find.sizes(root, names)

    def lost(self, root: str, names: Iterable[str]) -> set[str]:
        return known_listings().lost(root, names)

    def ranges(self, address: str, look: Look) -> RangeSource:
        size, identity = look
        return object_ranges.ObjectRanges(object_ranges.object_ref(address, size=size, identity=identity))

    def _is_file(self, address: str) -> bool:
        try:
            self.look(address)
        except DataNotFound:
            return False
        return True


SYSTEM: Final[Far] = _System()
