"""The addresses in a source of ``sk.open``: their stores are set up before any file is looked for."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from seekable._lazy import lazy
from seekable.errors import InvalidArgument
from seekable.index.index_location import listings_folder
from seekable.storage.access import choosing_cache
from seekable.storage.addresses import ADDRESS_INSIDE
from seekable.storage.listing import address_of_path, has_addresses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seekable.remote import mounts
    from seekable.remote.listing import known
    from seekable.storage.access import Storage
    from seekable.storage.far import Source
    from seekable.storage.listing import Asked
else:
    mounts = lazy("seekable.remote.mounts")
    known = lazy("seekable.remote.listing.known")

__all__ = ["mounted"]

_OTHERS = frozenset({"hf", "file"})
"""The schemes of other readers."""


@contextlib.contextmanager
def mounted(
    source: Source, storage: Storage, *, index_dir: str | os.PathLike[str] | None
) -> Iterator[Source]:
    """Set up the stores of a source; inside of the block a folder of a store is listed once.

    Args:
        source: the source of the user.
        storage: how its stores are reached.
        index_dir: the user's folder for indexes.

    Yields:
        The source with the addresses under which its files are named.

    Raises:
        InvalidArgument: options are not known, or they are given for local data.
        WrongType: an option has a value of another type.
    """
    for name, given in (("options", storage.options), ("cache", storage.cache)):
        if given is not None and storage.filesystem is None and not has_addresses(source):
            message = (
                f"Storage({name}=) is for data in a store, and {source!r:.200} has no address such as "
                f"s3://bucket/a.jsonl: leave it out"
            )
            raise InvalidArgument(message)
    cache = None if storage.cache is None else int(storage.cache)
    renamed = _renamed(source, partial(_mount, storage_options=storage.options, storage=storage.filesystem))
    with (
        choosing_cache(cache, _items(renamed)),
        known.listing_once(kept=listings_folder(index_dir), refresh=storage.refresh),
    ):
        yield renamed


def _renamed(source: Source, rename: Callable[[str], str]) -> Source:
    """Return a source whose items are renamed."""
    if isinstance(source, Mapping):
        return {name: cast("Asked", _renamed(asked, rename)) for name, asked in source.items()}
    if isinstance(source, str | os.PathLike):
        return _renamed_item(source, rename)
    return [_renamed_item(item, rename) for item in source]


def _items(source: Source) -> Iterator[str]:
    """Yield the items of a source."""
    if isinstance(source, Mapping):
        for asked in source.values():
            yield from _items(asked)
    elif isinstance(source, str | os.PathLike):
        yield os.fspath(source)
    else:
        yield from (os.fspath(item) for item in source)


def _renamed_item(item: str | os.PathLike[str], rename: Callable[[str], str]) -> str | os.PathLike[str]:
    if isinstance(item, str):
        return rename(item)
    address = address_of_path(os.fspath(item))
    return item if address is None else rename(address)


def _mount(text: str, *, storage_options: Mapping[str, Any] | None, storage: object) -> str:
    """Return an item of a source with the address under which its files are named.

    A path without a scheme is one of the file system, where the user gave one.
    """
    found = ADDRESS_INSIDE.search(text)
    if found is None and storage is not None:
        return mounts.mount(text, storage_options, storage)
    if found is None or found[1].lower() in _OTHERS:
        return text
    before, address = text[: found.start()], text[found.start() :]
    return before + mounts.mount(address, storage_options, storage)
