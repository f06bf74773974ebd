"""The table of a process from addresses to stores, which the processes that it starts get copies of.

A bucket or a host is *mounted* with its options. Paths of its files are addresses without options and
without secrets, and ``store_of`` finds the store of a path. A bucket that was not mounted has the options of
the environment. The stores of a source of ``sk.open`` are mounted before any file is looked for.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast, final

import xxhash

from seekable._lazy import lazy
from seekable.errors import AccessDenied, InvalidArgument
from seekable.index.index_location import listings_folder
from seekable.parallel.pickling import deserialized, serialized
from seekable.remote.stores.fsspec_store import FsspecStore, protocol_of
from seekable.remote.stores.hub_store import HubStore, is_on_hub
from seekable.remote.stores.obstore_clients import client_of, is_sent_as_written
from seekable.remote.stores.obstore_errors import redacted
from seekable.remote.stores.obstore_store import ObstoreStore, WholeUrls
from seekable.remote.stores.storage_options import StorageOptions, checked_options
from seekable.storage.access import choosing_cache
from seekable.storage.addresses import (
    ADDRESS_INSIDE,
    SUFFIX_MARK,
    Address,
    UrlSecrets,
    is_address,
    parse,
    secrets_of,
    shown,
)
from seekable.storage.file_names import expanded, has_braces
from seekable.storage.listing import address_of_path, has_addresses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from seekable.remote.listing import known
    from seekable.remote.stores.object_store import Store
    from seekable.storage.access import Storage
    from seekable.storage.far import Source
    from seekable.storage.listing import Asked
else:
    known = lazy("seekable.remote.listing.known")

__all__ = [
    "Mounts",
    "default_options",
    "handed_down",
    "mount",
    "mounted",
    "mounts_of",
    "options_of",
    "store_of",
    "take_over",
]

_OBSTORE: Final = frozenset({"s3", "gs", "az", "http", "https"})
_WEB: Final = frozenset({"http", "https"})
_VARIABLES: Final = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE,",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_KEY, or AZURE_STORAGE_SAS_KEY,",
}
"""The variables that may have what is lacking, by scheme."""

_HUB: Final = HubStore()

_OTHERS = frozenset({"hf", "file"})
"""The schemes of other readers."""


@dataclass(slots=True)
class _Mount:
    """A bucket or a host with its options.

    Attributes:
        address: its address, perhaps with a suffix.
        options: its options.
        userinfo: the user and the password of its URLs.
        queries: the queries of its URLs, by key.
        missing: the names of secrets that did not come to this process.
        fault: why they could not come; empty if they were not sent.
    """

    address: Address
    options: StorageOptions
    userinfo: str = ""
    queries: dict[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    fault: str = ""

    @property
    def place(self) -> str:
        return self.options.place(self.address.scheme)

    @property
    def is_cut_off(self) -> bool:
        """True if it cannot be used, because the environment cannot have what is missing."""
        by_fsspec = "file_system" in self.missing or self.address.scheme not in _OBSTORE
        return bool(self.missing and (self.fault or by_fsspec))

    @property
    def lacks(self) -> str:
        """What is missing, and what to do; empty if nothing is."""
        if not self.missing:
            return ""
        given = "filesystem" if "file_system" in self.missing else "options"
        way = f"open the data in it with storage=sk.Storage({given}=...)"
        if self.address.scheme in _VARIABLES and not self.is_cut_off:
            way = f"set {_VARIABLES[self.address.scheme]} in its environment, or {way}"
        return (
            f"the secret options of {shown(self.address.mount)} ({', '.join(self.missing)}) did not travel "
            f"to this process: {self.fault or 'a pickle has none'}; {way}"
        )


@final
@dataclass(slots=True)
class DefaultOptions:
    """Options for stores that are mounted without any."""

    options: Mapping[str, Any]
    are_used: bool = False
    """True if a store was mounted with them."""


_lock = threading.RLock()
_defaults: DefaultOptions | None = None
_mounts: dict[str, _Mount] = {}
_stores: dict[tuple[str, int], Store] = {}


def mount(address: str, options: Mapping[str, Any] | None = None, storage: object = None) -> str:
    """Mount the bucket or the host of an address, and return the address under which its files are named.

    This is the given address without userinfo and query. Where its bucket is mounted already with another
    endpoint, account or file system, the bucket has a suffix, so that two stores are never mixed. Options
    that differ in anything else replace the ones before. They stay in force: without options, a bucket that
    is mounted stays as it is, and paths that this library returned can be given to it again. A bucket that
    was used without options before keeps those of the environment, unless no request was answered then.

    Args:
        address: an address as the user gives it; with ``storage`` also a path of that file system.
        options: the options of the store, or None for those of ``default_options``.
        storage: an fsspec file system that reads the store, or None.

    Raises:
        InvalidArgument: no such address or option.
        WrongType: the options are not a mapping, or ``storage`` is not a file system.
    """
    if storage is not None and not is_address(address):
        address = f"{protocol_of(storage)}://{address.lstrip('/')}"
    options = _default_options() if options is None and storage is None else options
    found, secrets = parse(address), secrets_of(address)
    checked = checked_options(found.scheme, options, storage)
    with _lock:
        known = _mounts.get(found.mount) if options is None and storage is None else None
        record = _record(
            _Mount(found._replace(key=""), known.options if known else checked, secrets.userinfo)
        )
        queries = _queries(found.key, secrets.query)
        if queries.items() - record.queries.items():
            record.queries |= queries
            record.missing = ()
            _drop_stores(record.address.mount)
    return str(record.address._replace(key=found.key))


@contextlib.contextmanager
def default_options(options: Mapping[str, Any]) -> Iterator[DefaultOptions]:
    """Inside of the block, give options to all stores that are mounted without any."""
    global _defaults  # noqa: PLW0603 - one table of a process, as the mounts are
    before, _defaults = _defaults, DefaultOptions(options)
    try:
        yield _defaults
    finally:
        _defaults = before


def _default_options() -> Mapping[str, Any] | None:
    if _defaults is None:
        return None
    _defaults.are_used = True
    return _defaults.options


def store_of(path: str) -> tuple[Store, str]:
    """Return the store of an address, one for each mount and process, and the key of the address in it.

    Raises:
        AccessDenied: options of the store did not come to this process.
        InvalidArgument: the path is not an address.
        MissingDependency: the package that reads the store is not installed.
    """
    found = parse(path)
    with _lock:
        record = _mounts.get(found.mount)
        if is_on_hub(found) and (record is None or not record.options.values):
            return _HUB, found.key
        if record is None:
            record = _Mount(
                found._replace(key=""),
                checked_options(found.scheme, _default_options()),
                secrets_of(path).userinfo,
            )
            _mounts[found.mount] = record
        place = (found.mount, os.getpid())
        if place not in _stores:
            _stores[place] = _new_store(record)
        return _stores[place], found.key


def options_of(path: str) -> StorageOptions:
    """Return the options of the mount of an address; empty ones where it is not mounted."""
    with _lock:
        record = _mounts.get(parse(path).mount)
        return StorageOptions({}) if record is None else record.options


@final
class Mounts:
    """The mounts of some addresses. Unpickling it mounts them in another process.

    A pickle has no secrets. Where it is unpickled they come from the table of that process, which a child has
    of its parent (``handed_down``, or a fork), or from its environment. The errors of a store say what is
    lacking.
    """

    __slots__ = ("addresses",)

    addresses: tuple[str, ...]
    """The addresses of the mounts, such as ``s3://bucket``."""

    def __init__(self, addresses: Iterable[str]) -> None:
        self.addresses = tuple(sorted(set(addresses)))

    def __reduce__(self) -> tuple[Callable[[list[_Public]], Mounts], tuple[list[_Public]]]:
        """Pickle the options of each mount that are not secret, and the names of the others."""
        with _lock:
            records = [_mounts[address] for address in self.addresses if address in _mounts]
            return _received, ([_public(record) for record in records],)


def mounts_of(paths: Iterable[str]) -> Mounts:
    """Return the mounts of those of some paths that are addresses."""
    return Mounts(parse(path).mount for path in paths if is_address(path))


class _Public(NamedTuple):
    """A mount without its secrets."""

    address: str
    options: StorageOptions
    secrets: tuple[str, ...]
    """The names of the secrets."""


def _public(record: _Mount) -> _Public:
    options = record.options.without_secrets()
    secrets = [name for name, value in record.options.values.items() if options.values.get(name) != value]
    secrets += ["user and password"] * bool(record.userinfo) + ["queries"] * bool(record.queries)
    return _Public(record.address.mount, options, tuple(secrets) or record.missing)


def _received(sent: list[_Public]) -> Mounts:
    with _lock:
        for public in sent:
            known = _mounts.get(public.address)
            if known is None or not _serves(known, public):
                _put(_Mount(parse(public.address), public.options, missing=public.secrets))
    return Mounts(public.address for public in sent)


def _serves(known: _Mount, public: _Public) -> bool:
    """Return True if a mount of this process leads to the same store as a pickled one, and says as much."""
    own, scheme = _public(known), known.address.scheme
    if own.options.place(scheme) != public.options.place(scheme):
        return False
    return bool(own.secrets) or (own.options == public.options and not public.secrets)


def _put(record: _Mount) -> None:
    """Add a mount to the table, in the place of the one that there is."""
    if _mounts.get(record.address.mount) != record:
        _mounts[record.address.mount] = record
        _drop_stores(record.address.mount)


def handed_down() -> bytes:
    """Return all mounts with their secrets, for `take_over`; empty if there are none.

    These bytes go through a pipe or a socket to a child that this process starts itself, and nowhere else.
    """
    with _lock:
        return serialized([_in_full(record) for record in _mounts.values()], way_out="") if _mounts else b""


def _in_full(record: _Mount) -> tuple[_Public, bytes, str]:
    """Return a mount without its secrets, the pickle of what is lacking there, and why that is empty."""
    rest = (record.options.values, record.userinfo, record.queries, record.missing, record.fault)
    try:
        return _public(record), serialized(rest, way_out=""), ""
    except InvalidArgument as error:
        return _public(record), b"", redacted(str(error.__cause__), record.options.secrets)


def take_over(mounts: bytes) -> None:
    """Mount what the parent of this process has mounted; bytes of ``handed_down`` in that process."""
    with _lock:
        for public, rest, fault in deserialized(mounts):
            try:
                values, *others = deserialized(rest)
                record = _Mount(parse(public.address), StorageOptions(values), *others)
            except Exception as error:  # noqa: BLE001 - options of users may be objects of any class
                record = _Mount(parse(public.address), public.options, missing=public.secrets)
                record.fault = fault or str(error)
            _put(record)


def _queries(key: str, query: str) -> dict[str, str]:
    """Return the query of each key that braces in a key stand for; none without a query."""
    keys = expanded(key) if query and has_braces(key) else [key]
    return dict.fromkeys(keys, query) if query else {}


def _record(wanted: _Mount) -> _Mount:
    """Return the mount of the table for a wanted one, which is added, or replaces what it has of options."""
    plain = wanted.address
    known = _mounts.get(plain.mount)
    if known is not None and known.place != wanted.place and not _is_free(known):
        digest = xxhash.xxh3_64_hexdigest(wanted.place.encode())[:8]
        wanted.address = plain._replace(authority=f"{plain.authority}{SUFFIX_MARK}{digest}")
        known = _mounts.get(wanted.address.mount)
    if known is None:
        _mounts[wanted.address.mount] = wanted
        return wanted
    has_options = bool(wanted.options.values) and wanted.options != known.options
    if has_options or (wanted.userinfo and wanted.userinfo != known.userinfo):
        known.options = wanted.options if has_options else known.options
        known.userinfo = wanted.userinfo or known.userinfo
        known.missing, known.fault = (), ""
        _drop_stores(known.address.mount)
    return known


def _is_free(record: _Mount) -> bool:
    """Return True if a mount was made without options, and no request to its bucket was answered.

    So it is after a first call without the options that the bucket needs, and where they did not come.
    """
    if record.is_cut_off:
        return True
    stores = [store for (address, _), store in _stores.items() if address == record.address.mount]
    return (
        not (record.options.values or record.userinfo or record.queries)
        and record.address.scheme in _OBSTORE
        and not any(getattr(store, "has_answered", True) for store in stores)
    )


def _drop_stores(address: str) -> None:
    """Forget the stores of a mount, so that the next ones have its new options."""
    for place in [place for place in _stores if place[0] == address]:
        del _stores[place]


def _new_store(record: _Mount) -> Store:
    """Return a new store of a mount.

    Raises:
        AccessDenied: it lacks secrets that the environment cannot have.
    """
    if record.is_cut_off:
        raise AccessDenied(record.lacks)
    store = _store_of_scheme(record)
    store.lacks = record.lacks
    return store


def _store_of_scheme(record: _Mount) -> Store:
    if record.options.file_system is not None or record.address.scheme not in _OBSTORE:
        return FsspecStore(record.address, record.options)
    if record.address.scheme == "az":
        return _obstore_store(record, next(iter(record.queries.values()), ""), only_key=None)
    plain = _obstore_store(record, "", only_key=None)
    return WholeUrls(plain, partial(_store_of_url, record)) if record.address.scheme in _WEB else plain


def _store_of_url(record: _Mount, key: str) -> ObstoreStore | None:
    """Return a new store of one URL, which has one object; None for a key that needs no store of its own."""
    query = record.queries.get(key)
    if query is None and is_sent_as_written(key):
        return None
    return _obstore_store(record, query or "", only_key=key)


def _obstore_store(record: _Mount, query: str, *, only_key: str | None) -> ObstoreStore:
    secrets = UrlSecrets(record.userinfo, query)
    connect = partial(client_of, record.address, record.options, secrets, key=only_key or "")
    texts = [*record.options.secrets, *filter(None, secrets), *filter(None, secrets.userinfo.split(":"))]
    return ObstoreStore(record.address, connect, secrets=texts, only_key=only_key)


def _renew_lock() -> None:
    global _lock  # noqa: PLW0603 - the parent's lock may be held, by a thread that a child does not have
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)


@contextlib.contextmanager
def mounted(
    source: Source, storage: Storage, *, index_dir: str | os.PathLike[str] | None
) -> Iterator[Source]:
    """Mount the stores of a source; inside the block each folder is listed once.

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
        return mount(text, storage_options, storage)
    if found is None or found[1].lower() in _OTHERS:
        return text
    before, address = text[: found.start()], text[found.start() :]
    return before + mount(address, storage_options, storage)
