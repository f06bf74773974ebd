"""The way to data in stores, as a value: ``sk.Storage``."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Self, final

import msgspec
import xxhash

from seekable._arguments import (
    checked_choice,
    checked_count,
    checked_flag,
    explains_fields,
)
from seekable._lazy import lazy
from seekable.errors import InvalidArgument, WrongType
from seekable.storage.mapped import MOST_OPEN_FILES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seekable.storage import addresses
else:
    addresses = lazy("seekable.storage.addresses")

PUBLIC_OPTIONS = frozenset(
    (
        *("region", "default_region", "endpoint", "account_name", "anonymous", "timeout"),
        *("connect_timeout", "read_timeout", "retries", "allow_http", "virtual_hosted_style_request"),
        *("request_payer", "use_emulator", "s3_express", "profile"),
    )
)
"""The names of options whose values are not secret: they may stand in texts and in pickles."""


@explains_fields("sk.Storage")
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Storage:
    """The way to the files of a dataset. Nothing of it enters the fingerprint or the index.

    Neither its text nor its pickle has a secret: another process takes keys from its own environment.

    Args:
        options: of addresses, how the store is reached, by names of obstore: ``endpoint``, ``region``,
            ``anonymous``, ``access_key_id``, ``secret_access_key``, ``timeout`` in seconds, ``retries`` and
            others; what is left out is taken from the environment.
        filesystem: a file system of fsspec that reads the addresses, for stores that obstore does not read.
        cache: of addresses, the most bytes of a cache on disk that the dataset has for itself, False for
            none. By default it shares the cache of the machine, whose limit is ``SEEKABLE_REMOTE_BYTES``.
        pin: of addresses, ``"version"`` to read the versions that objects have now, in buckets that keep
            versions; a rewrite does not disturb the dataset then. By default it raises ``IndexStale``.
        refresh: of addresses, False to take the listing that the last call kept instead of listing again.
            Nothing is asked of the store then; new files are not seen, and a file that was changed raises
            ``IndexStale`` when it is read.
        max_open_files: the most files of the dataset that are open at once, one descriptor each; the file
            used least recently is closed for the next one, and stays mapped for a while unless it is a table.
            The index takes none of them.

    Raises:
        InvalidArgument: a value breaks its rule, or ``options`` and ``filesystem`` are both given.
        WrongType: a value has a wrong type.

    Example:
        >>> Storage(options={"region": "eu-west-1", "secret_access_key": "wJalr"}, refresh=False)
        Storage(options={'region': 'eu-west-1', 'secret_access_key': ...}, refresh=False)
    """

    options: Mapping[str, Any] | None = None
    filesystem: Any = None
    cache: int | Literal[False] | None = None
    pin: Literal["etag", "version"] = "etag"
    refresh: bool = True
    max_open_files: int = MOST_OPEN_FILES

    def __post_init__(self) -> None:
        """Check each value, as far as that needs no address."""
        _check_options(self.options)
        _check_file_system(self.filesystem, self.options)
        if self.cache is not None and self.cache is not False:
            checked_count("cache", self.cache, least=0)
        checked_choice("pin", self.pin, ("etag", "version"))
        checked_flag("refresh", self.refresh)
        checked_count("max_open_files", self.max_open_files, least=1)

    @property
    def is_for_stores(self) -> bool:
        """True if a value is given that only addresses can have."""
        return not (self.options is self.filesystem is self.cache is None)

    def __repr__(self) -> str:
        """Show what differs from the defaults; of options that may be secret the names alone."""
        texts: list[str] = []
        if self.options is not None:
            public = _public(self.options)
            shown_options = (f"{name!r}: {public.get(name, ...)!r}" for name in self.options)
            texts.append(f"options={{{', '.join(shown_options)}}}".replace("Ellipsis", "..."))
        if self.filesystem is not None:
            texts.append(f"filesystem=<{type(self.filesystem).__name__}>")
        texts += [
            f"{name}={value!r}"
            for name, value, default in (
                ("cache", self.cache, None),
                ("pin", self.pin, "etag"),
                ("refresh", self.refresh, True),
                ("max_open_files", self.max_open_files, MOST_OPEN_FILES),
            )
            if value is not default and value != default
        ]
        return f"Storage({', '.join(texts)})"

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle has: no secret, and no file system, which may hold one."""
        options = None if self.options is None else _public(self.options)
        kept = {name: getattr(self, name) for name in ("cache", "pin", "refresh", "max_open_files")}
        return {"options": options, "filesystem": None, **kept}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Take the values of a pickle."""
        for name, value in state.items():
            object.__setattr__(self, name, value)


def checked_reach(storage: object) -> Storage:
    """Return how the store is reached that something is written to, or that a file of ours is read from.

    Raises:
        WrongType: it is no ``sk.Storage``; its text may hold a secret, and is not shown.
        InvalidArgument: it says what only ``sk.open`` can do.
    """
    if storage is None:
        return Storage()
    if not isinstance(storage, Storage):
        message = (
            f"storage must be a sk.Storage(...), or left out (got a {type(storage).__name__}): write "
            f"storage=sk.Storage(options=...), or sk.Storage(filesystem=...)"
        )
        raise WrongType(message)
    of_reading = [name for name in _OF_READING if getattr(storage, name) != getattr(Storage(), name)]
    if of_reading:
        message = (
            f"here storage takes options= and filesystem= of sk.Storage, the others are for sk.open (got "
            f"{' and '.join(f'{name}=' for name in of_reading)}): leave them out"
        )
        raise InvalidArgument(message)
    return storage


_OF_READING = ("cache", "pin", "refresh", "max_open_files")
"""What matters where records are read."""


def _check_options(options: object) -> None:
    if options is not None and not isinstance(options, Mapping):
        message = f"options must be a mapping of names to values (got a {type(options).__name__})"
        raise WrongType(message)
    for name in options or ():
        if not isinstance(name, str):
            message = f"options must have names of options as its keys (got {name!r})"
            raise WrongType(message)


_OF_FSSPEC = ("info", "cat_file", "find", "ls")
"""The methods of a file system of fsspec that are called."""


def _check_file_system(given: object, options: object) -> None:
    missing = [name for name in _OF_FSSPEC if not callable(getattr(given, name, None))]
    if given is not None and missing:
        # Its text may hold a secret.
        message = (
            f"filesystem must be an fsspec file system (got a {type(given).__name__}, without "
            f"{', '.join(missing)})"
        )
        raise WrongType(message)
    if given is not None and options:
        message = "filesystem and options exclude each other: give the options to it, where you make it"
        raise InvalidArgument(message)


def _public(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are not secret; of an endpoint all but the name of a user."""
    kept = {name: value for name, value in options.items() if name in PUBLIC_OPTIONS}
    if "endpoint" in kept:
        kept["endpoint"] = addresses.shown(str(kept["endpoint"]))
    return kept


@final
class CacheChoice(msgspec.Struct, frozen=True):
    """A cache on disk that one dataset has for itself (``sk.Storage(cache=)``).

    The choice is a part of the dataset: its files carry it, also into other processes. The cache has a folder
    of its own, so that its limit evicts nothing that others have fetched.

    Example:
        >>> CacheChoice.of(1000, ["s3://bucket/a"])
        CacheChoice(most_bytes=1000, name='1000-6c9369593ecb5ae5')
        >>> CacheChoice.named("1000-6c9369593ecb5ae5").most_bytes, CacheChoice.named("objects")
        (1000, None)
    """

    most_bytes: int
    """The most bytes that it takes on disk; 0 for no cache."""

    name: str
    """The name of its folder, made of the limit and of the addresses of the dataset."""

    @classmethod
    def of(cls, most_bytes: int, addresses: Iterable[str]) -> Self:
        """Return the cache of a dataset, the same one in all processes.

        Args:
            most_bytes: its limit; 0 for none.
            addresses: the addresses that the dataset was opened by.
        """
        text = "\0".join(sorted(addresses)).encode("utf-8", "surrogateescape")
        return cls(most_bytes, f"{most_bytes}-{xxhash.xxh3_64_hexdigest(text)}")

    @classmethod
    def named(cls, name: str) -> Self | None:
        """Return the cache whose folder has a name, None if no cache has such a name."""
        most_bytes, dash, _ = name.partition("-")
        return cls(int(most_bytes), name) if dash and most_bytes.isdecimal() else None


_current: Final[ContextVar[CacheChoice | None]] = ContextVar("seekable_cache_choice", default=None)


def chosen_cache() -> CacheChoice | None:
    """Return the cache of the dataset that is being opened in this context, None for that of the machine."""
    return _current.get()


@contextlib.contextmanager
def choosing_cache(most_bytes: int | None, addresses: Iterable[str]) -> Iterator[None]:
    """Inside of the block, let what is opened have a cache of its own, unless a block around it chose one.

    Args:
        most_bytes: its limit, 0 for no cache; None to choose none.
        addresses: the addresses that the dataset is opened by.
    """
    if most_bytes is None or chosen_cache() is not None:
        yield
        return
    token = _current.set(CacheChoice.of(most_bytes, addresses))
    try:
        yield
    finally:
        _current.reset(token)
