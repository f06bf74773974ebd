"""The cache on disk that a dataset has chosen (``sk.Storage(cache=)``): one of its own, or none.

The choice is a part of the dataset: its files carry it, also into other processes. A cache that was chosen
has a folder of its own, so that its limit evicts nothing that others have fetched.
"""

from __future__ import annotations

import contextlib
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self, final

import xxhash

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["CacheChoice", "choosing_cache", "chosen_cache"]


@final
@dataclass(frozen=True, slots=True)
class CacheChoice:
    """A cache of one dataset.

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
