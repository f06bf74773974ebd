"""The table of a process from addresses to stores, which the processes that it starts get copies of.

A bucket or a host is *mounted* with its options. Paths of its files are addresses without options and
without secrets, and ``store_of`` finds the store of a path. A bucket that was not mounted has the options of
the environment.
"""

from __future__ import annotations

import contextlib
import os
import threading
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, final

import msgspec
import xxhash

from seekable._secrets import may_send_secrets, seal, unseal
from seekable.remote.stores.fsspec_store import FsspecStore, protocol_of
from seekable.remote.stores.hub_store import HubStore, is_on_hub
from seekable.remote.stores.obstore_clients import client_of
from seekable.remote.stores.obstore_store import ObstoreStore
from seekable.remote.stores.options import StorageOptions, checked_options
from seekable.remote.stores.whole_urls import WholeUrls
from seekable.remote.url_keys import is_sent_as_written
from seekable.storage.addresses import SUFFIX_MARK, Address, UrlSecrets, is_address, parse, secrets_of
from seekable.storage.file_names import expanded, has_braces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from seekable.remote.stores.store import Store

__all__ = ["Mounts", "default_options", "mount", "mounts_of", "options_of", "store_of"]

_OBSTORE: Final = frozenset({"s3", "gs", "az", "http", "https"})
_WEB: Final = frozenset({"http", "https"})


@dataclass(slots=True)
class _Mount:
    """A bucket or a host with its options.

    Attributes:
        address: its address, perhaps with a suffix.
        options: its options.
        userinfo: the user and the password of its URLs.
        queries: the queries of its URLs, by key.
    """

    address: Address
    options: StorageOptions
    userinfo: str = ""
    queries: dict[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        return self.options.place(self.address.scheme)


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
_HUB: Final = HubStore()


def mount(address: str, options: Mapping[str, Any] | None = None, storage: object = None) -> str:
    """Mount the bucket or the host of an address, and return the address under which its files are named.

    This is the given address without userinfo and query. Where its bucket is mounted already with another
    endpoint, account or file system, the bucket has a suffix, so that two stores are never mixed. Options
    that differ in anything else replace the ones before. They stay in force: without options, a bucket that
    is mounted stays as it is, and paths that this library returned can be given to it again. A bucket that
    was used without options before keeps those of the environment, unless no request was answered then.

    Args:
        address: an address as the user gives it; with ``storage`` also a path of that file system.
        options: the options of the store (``storage_options=``), or None for those of ``default_options``.
        storage: an fsspec file system that reads the store, or None.

    Raises:
        InvalidArgument: no such address or option.
        WrongType: the options are no mapping, or ``storage`` is no file system.
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
        InvalidArgument: the path is no address.
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

    A pickle has secrets in clear on the way to a process of our own alone. Every other pickle has them
    sealed, so that worker processes of other libraries have them too (``seekable._secrets``). Elsewhere they
    come from the table of the process that unpickles, or from its environment.
    """

    __slots__ = ("addresses",)

    addresses: tuple[str, ...]
    """The addresses of the mounts, such as ``s3://bucket``."""

    def __init__(self, addresses: Iterable[str]) -> None:
        self.addresses = tuple(sorted(set(addresses)))

    def __reduce__(self) -> tuple[Callable[[list[_Sent], bytes], Mounts], tuple[list[_Sent], bytes]]:
        """Pickle the options of each mount."""
        with _lock:
            records = [_mounts[address] for address in self.addresses if address in _mounts]
            sealed = b"" if may_send_secrets() else _sealed(records)
            return _received, ([_sent(record) for record in records], sealed)


def mounts_of(paths: Iterable[str]) -> Mounts:
    """Return the mounts of those of some paths that are addresses."""
    return Mounts(parse(path).mount for path in paths if is_address(path))


_Sent = tuple[str, StorageOptions, str, dict[str, str]]
"""A mount on the way to another process: its address, options, userinfo and queries."""


def _sent(record: _Mount) -> _Sent:
    if may_send_secrets():
        return record.address.mount, record.options, record.userinfo, dict(record.queries)
    return record.address.mount, record.options.without_secrets(), "", {}


class _Secrets(msgspec.Struct):
    """The secrets of a mount that are texts."""

    options: dict[str, str | dict[str, str]]
    userinfo: str
    queries: dict[str, str]


def _sealed(records: Sequence[_Mount]) -> bytes:
    """Return the secrets of mounts, sealed; empty if there are none."""
    secrets: dict[str, _Secrets] = {}
    for record in records:
        public = record.options.without_secrets().values
        hidden = {name: value for name, value in record.options.values.items() if name not in public}
        texts = {name: value for name, value in hidden.items() if isinstance(value, str | dict)}
        if texts or record.userinfo or record.queries:
            secrets[record.address.mount] = _Secrets(texts, record.userinfo, record.queries)
    return seal(msgspec.json.encode(secrets)) if secrets else b""


def _unsealed(sent: list[_Sent], sealed: bytes) -> list[_Sent]:
    """Return mounts with the secrets that were sealed, for mounts of which this process has none."""
    content = unseal(sealed) if sealed else None
    if content is None:
        return sent
    secrets = msgspec.json.decode(content, type=dict[str, _Secrets])
    found: list[_Sent] = []
    for address, options, userinfo, queries in sent:
        known, own = _mounts.get(address), secrets.get(address)
        if own is None or (known is not None and known.options != known.options.without_secrets()):
            found.append((address, options, userinfo, queries))
        else:
            found.append((address, StorageOptions(options.values | own.options), own.userinfo, own.queries))
    return found


def _received(sent: list[_Sent], sealed: bytes = b"") -> Mounts:
    with _lock:
        for address, options, userinfo, queries in _unsealed(sent, sealed):
            known = _mounts.get(address)
            if known is None:
                _mounts[address] = _Mount(parse(address), options, userinfo, queries)
                continue
            if queries.items() - known.queries.items():
                known.queries |= queries
                _drop_stores(address)
            if _is_more(options, known.options):
                known.options = options
                _drop_stores(address)
    return Mounts(address for address, *_ in sent)


def _is_more(options: StorageOptions, known: StorageOptions) -> bool:
    """Return True if received options are other than known ones, and not the same without their secrets."""
    return options != known and options != known.without_secrets()


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
        _drop_stores(known.address.mount)
    return known


def _is_free(record: _Mount) -> bool:
    """Return True if a mount was made without options, and no request to its bucket was answered.

    So it is after a first call without the options that the bucket needs.
    """
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
